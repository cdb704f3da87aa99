// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"os"
	"strings"
	"testing"
)

// Of a text of several processes the one is shown that its head names, by its ID or its name; else the first one.
func TestWhichProcessOfASpindumpIsShown(t *testing.T) {
	data, err := os.ReadFile("testdata/spindump.txt")
	if err != nil {
		t.Fatal(err)
	}
	const head = "Command:          Spin\nPath:             /Users/USER/Spin\nPID:              812\n"
	for _, c := range []struct{ head, command, thread, image, problem string }{
		{head, "Spin", "0x2331", "Spin", "the stacks of another process are left out: these are of Spin"},
		{"Command:   other\nPID:   9\n", "other", "0x99", "other", "these are of other"},
		{"Command:   other\n", "other", "0x99", "other", "these are of other"},
		{"", "Spin", "0x2331", "Spin", "these are of Spin"},
		{"Command:   nobody\nPID:   77\n", "Spin", "0x2331", "Spin", "the text has no stacks of nobody, which it is about"},
	} {
		text := strings.Replace(string(data), head, c.head, 1)
		r, err := Read([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", c.head, err)
			continue
		}
		if r.Facts.Process.Command != c.command || len(r.Threads) != 1 || r.Threads[0].ID != c.thread || r.Images[0].Name != c.image || !strings.Contains(strings.Join(r.Problems, "\n"), c.problem) {
			t.Errorf("%q: %s", c.head, shown(r))
		}
	}
	text := strings.Replace(string(data), "  Thread 0x2331    DispatchQueue", "  Thread <multiple>    DispatchQueue", 1) + "\nCustom Output:\n\nProcess: tool [1]\n  Thread 0x1\n  1 f (a + 1) [0x1]\n"
	file, err := ReadTrees("a", []byte(text))
	if err != nil || len(file.Threads) != 2 {
		t.Errorf("%v, %d threads", err, len(file.Threads))
	}
	for i := range file.Frames {
		if f := &file.Frames[i]; !f.Kernel && (len(f.BuildID) != 16 || !strings.HasPrefix(f.Object, "/")) {
			t.Errorf("%+v", f)
		}
	}
}

// Microstackshots are of several threads and moments, and said to be.
func TestMicrostackshots(t *testing.T) {
	const text = `Date/Time:       2020-12-31 19:35:30 -0500
OS Version:      Mac OS X 10.14.5 (Build 18F132)
Architecture:    x86_64
Data Source:     Microstackshots
Steps:           2

Powerstats for:  first
UUID:            7FD00FD0-E003-36A7-BF4B-5D368BC2D350
  3  start + 1 (dyld + 100) [0x1064]
    2  f + 1 (first + 8) [0x20008]

  Binary Images:
    0x1000 - 0x1fff dyld <8FD00FD0-E003-36A7-BF4B-5D368BC2D350> /usr/lib/dyld
    0x20000 - ??? first <7FD00FD0-E003-36A7-BF4B-5D368BC2D350> /bin/first

Powerstats for:  second [7]
  1  g + 1 (second + 8) [0x20008]

  Binary Images:
    0x20000 - ??? second <9FD00FD0-E003-36A7-BF4B-5D368BC2D350> /bin/second
`
	r, err := Read([]byte(text))
	if err != nil || len(r.Threads) != 1 || len(r.Facts.Annotations) != 1 || r.Facts.Annotations[0].Value != microstackshots || len(r.Images) != 2 {
		t.Errorf("%v", err)
	}
	file, err := ReadTrees("a", []byte(text))
	if err != nil || len(file.Threads) != 2 || !strings.Contains(strings.Join(file.Problems, "\n"), microstackshots) {
		t.Fatalf("%v: %+v", err, file)
	}
	objects := ""
	for i := range file.Frames {
		objects += file.Frames[i].Object + " "
	}
	if objects != "/usr/lib/dyld /bin/first /bin/second " {
		t.Errorf("frames in %s", objects)
	}
}
