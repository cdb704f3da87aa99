// SPDX-License-Identifier: Apache-2.0

package download

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	for _, s := range []setting{cleanInterval, maxUnused, missAge} {
		if got := c.setting(s); got != s.usual {
			t.Errorf("%s: %v", s.file, got)
		}
		b, err := os.ReadFile(filepath.Join(c.Dir, s.file))
		if err != nil || string(b) != fmt.Sprint(int(s.usual.Seconds())) {
			t.Errorf("%s has %q, %v", s.file, b, err)
		}
	}
	for text, want := range map[string]time.Duration{
		"0": 0, "12": 12 * time.Second, " 12\n": 12 * time.Second, "12 s": 12 * time.Second, "-3": -3 * time.Second,
		"": missAge.usual, "-": missAge.usual, "x": missAge.usual, "99999999999999999999": missAge.usual,
		"9223372036854775807": 9223372036 * time.Second,
	} {
		if err := os.WriteFile(filepath.Join(c.Dir, missAge.file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.setting(missAge); got != want {
			t.Errorf("%q: %v, expected %v", text, got, want)
		}
	}
}

// TestMissesAreBounded says that a client that lives for long keeps a bounded number of what
// no server has, and nothing that is too old to be of use.
func TestMissesAreBounded(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	var m misses
	note := func(i int) Name {
		n := Name{Dir: fmt.Sprintf("%08x", i), Names: []string{"debuginfo"}}
		c.miss(n)
		m.add(&c, n)
		return n
	}
	count := func() int {
		list, err := filepath.Glob(filepath.Join(c.Dir, "*", "debuginfo"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for i := range maxMisses + 100 {
		note(i)
	}
	if n := count(); n != maxMisses || len(m.list) != maxMisses {
		t.Errorf("%d files, %d in memory, expected %d", n, len(m.list), maxMisses)
	}
	// One that another client has got meanwhile is no miss any more.
	got := filepath.Join(c.Dir, m.list[0].name.Path())
	if err := os.WriteFile(got, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range m.list {
		m.list[i].time = m.list[i].time.Add(-2 * missAge.usual)
	}
	note(1 << 20)
	if n := count(); n != 2 || len(m.list) != 1 {
		t.Errorf("%d files, %d in memory, expected that which was got, and the last one", n, len(m.list))
	}
	if b, err := os.ReadFile(got); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestFilesAreBounded says that servers are asked for a bounded number of files, unless
// whoever asks bounds them.
func TestFilesAreBounded(t *testing.T) {
	for most, want := range map[int]int{0: DefaultMaxFiles, 3: 3, -1: 2 * DefaultMaxFiles} {
		c := New(Protocol{}, Options{MaxFiles: most})
		asked := 0
		for range 2 * DefaultMaxFiles {
			if c.mayAsk() == nil {
				asked++
			}
		}
		if asked != want {
			t.Errorf("MaxFiles %d: %d were asked for, expected %d", most, asked, want)
		}
	}
}
