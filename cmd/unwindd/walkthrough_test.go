// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// walkthrough is the document whose commands build on one another: it is run as a whole.
const walkthrough = "writing-a-plugin.md"

// walkthroughFolder is the folder that the document works in.
const walkthroughFolder = "/home/you/unwindd-arch-riscv64"

// walkthroughBlocks are the blocks of the document: what is written before each, its
// language, its text, and what a block of commands prints, where that is shown.
var walkthroughBlocks = regexp.MustCompile("(?s)([^\n]*)\n?\n```([a-z]+)\n(.*?)```\n(?:\n```\n(.*?)```\n)?")

// namesFile is the end of a paragraph that a file, or a change of one, follows.
var namesFile = regexp.MustCompile("`([a-z0-9_./-]+\\.[a-z]+)`:$")

// A walkthroughRun is the document under way, in a folder of its own.
type walkthroughRun struct {
	dir string
	env []string
}

// TestWritingAPlugin does what docs/writing-a-plugin.md says, step by step: it writes the
// files, makes the changes, and runs the commands, which must print what is shown.
func TestWritingAPlugin(t *testing.T) {
	long(t)
	oracle.Tools(t, "go", "sh", "python3", "sha256sum", "riscv64-linux-gnu-gcc", "qemu-riscv64", "gdb-multiarch")
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", walkthrough))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), filepath.Base(walkthroughFolder))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The module is as a user has it, but the build cache is the tests' own.
	proxy := subject.NewModuleProxy(t)
	env := append(proxy.Env, "GOFLAGS=-trimpath", "GOCACHE="+strings.TrimSpace(oracle.Run(t, "go", "env", "GOCACHE")))
	w := &walkthroughRun{dir, slices.Concat(commandEnvironment(t), env, []string{"UNWINDD=" + root})}
	files, changes, commands, shown := 0, 0, 0, 0
	for _, block := range walkthroughBlocks.FindAllStringSubmatch(string(text), -1) {
		before, language, content, output := block[1], block[2], block[3], block[4]
		name := namesFile.FindStringSubmatch(before)
		switch {
		case language == "diff" && name != nil:
			changes++
			w.change(t, name[1], content)
		case language == "diff":
			t.Fatalf("the file that this changes is not said:\n%s", content)
		case name != nil:
			files++
			w.write(t, root, name[1], content)
		case language == "sh":
			commands++
			if strings.Contains(content, filepath.Base(walkthroughFolder)+"@latest") {
				proxy.Add(t, "example.com/"+filepath.Base(walkthroughFolder), dir, subject.Whole)
			}
			got := w.run(t, content)
			if output == "" {
				break
			}
			shown++
			if diff := cmp.Diff(plainOutput(output), plainOutput(got)); diff != "" {
				t.Errorf("%sis shown to print (-) what it does not (+):\n%s", content, diff)
			}
		default:
			t.Fatalf("a block that is neither commands nor a file:\n%s", content)
		}
		if t.Failed() {
			t.FailNow() // what follows builds on it
		}
	}
	if fences := strings.Count(string(text), "```"); fences != 2*(files+changes+commands+shown) || commands < 10 {
		t.Errorf("%d files, %d changes, %d blocks of commands with %d outputs, of %d fences of blocks", files, changes, commands, shown, fences)
	}
}

// write writes a file. One that the example has too is the same there.
func (w *walkthroughRun) write(t *testing.T, root, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(name, "testdata/") {
		return
	}
	kept, err := os.ReadFile(filepath.Join(root, "examples", "arch-riscv64", name))
	if err != nil {
		return
	}
	ours := regexp.MustCompile(".*SPDX-License-Identifier.*\n").ReplaceAllString(string(kept), "")
	if diff := cmp.Diff(ours, content); diff != "" {
		t.Errorf("%s is not that of the example (-):\n%s", name, diff)
	}
}

// change makes the change of a file that a block shows: lines that begin with - become
// those that begin with +, beside lines that stay.
func (w *walkthroughRun) change(t *testing.T, name, diff string) {
	t.Helper()
	var from, to strings.Builder
	for line := range strings.Lines(diff) {
		if line[0] != '+' {
			from.WriteString(line[1:])
		}
		if line[0] != '-' {
			to.WriteString(line[1:])
		}
	}
	path := filepath.Join(w.dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), from.String()); n != 1 {
		t.Fatalf("%s has %d times what is changed, expected once:\n%s", name, n, diff)
	}
	changed := strings.Replace(string(b), from.String(), to.String(), 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs commands, which must succeed, and returns what they print.
func (w *walkthroughRun) run(t *testing.T, commands string) string {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", commands)
	cmd.Dir = w.dir
	cmd.Env = slices.Concat(os.Environ(), []string{"LC_ALL=C.UTF-8"}, w.env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s%v\n%s", commands, err, out)
	}
	return strings.ReplaceAll(string(out), w.dir, walkthroughFolder)
}

// plainOutput is an output without what differs from run to run: hashes, times, and how
// wide the columns are that paths stand in.
func plainOutput(output string) string {
	for _, r := range []struct{ what, by string }{{`[0-9a-f]{64}`, "HASH"}, {`[0-9.]+s\b|\(cached\)`, "TIME"}, {`(\S) {2,}`, "$1  "}, {`\t`, "  "}} {
		output = regexp.MustCompile(r.what).ReplaceAllString(output, r.by)
	}
	return output
}
