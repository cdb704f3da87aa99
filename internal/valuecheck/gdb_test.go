// SPDX-License-Identifier: Apache-2.0

package valuecheck_test

import (
	"os"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/valuecheck"
)

// TestValuesEqualGDB compares the values of all variables of all frames with gdb's,
// down to what has no parts, in programs with every type of C and C++, the containers of
// its library and the types of Rust. `.ci/peers` does the same with more compilers, levels
// and forms of debug information.
func TestValuesEqualGDB(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
	for _, c := range []struct {
		name   string
		known  int // values that gdb knows, at least
		missed int // of these, as docs/differences.md says
	}{
		{"types gcc -O2 type units 4", 430, 1},
		{"types clang-22 -O2 DWARF 5", 420, 0},
		{"types clang-14 -O0 DWARF 4", 460, 0},
		{"classes gcc -O0 DWARF 5", 190, 0},
		{"classes gcc -O2 dwz of two", 170, 1},
		{"containers gcc -O0 DWARF 5", 2000, 0},
		{"containers clang-14 libc++ -O0", 1600, 0},
		{"enums rustc -O0 DWARF 5", 1400, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := valuesOf(t, c.name)
			for _, p := range r.Pairs {
				switch p.Outcome {
				case valuecheck.Wrong, valuecheck.NoFrame, valuecheck.Extra:
					t.Error(p)
				case valuecheck.Miss:
					if c.missed--; c.missed < 0 {
						t.Error(p)
					}
				}
			}
			known := r.Known()
			t.Logf("%d frames, variables %v, values %v, explained %v", r.Frames, r.Variables, r.Values, r.Classes)
			if known < c.known {
				t.Errorf("gdb knows %d values, expected %d or more", known, c.known)
			}
			if explained := r.Values[valuecheck.Explained]; explained*100 > known*5 {
				t.Errorf("%d values differ as docs/differences.md says, of %d, expected at most 5 of 100", explained, known)
			}
		})
	}
}

// valuesOf compares the values of a program, raw and, where it has containers, in
// pretty forms.
func valuesOf(t *testing.T, name string) *valuecheck.Result {
	t.Helper()
	s := valuesSubject(t, name)
	oracle.Tools(t, "gdb")
	exe, core := valuesCore(t, s)
	r := valuecheck.NewResult()
	compare := func(pretty bool) {
		peer, err := s.GDB(exe, core, pretty)
		if err != nil {
			t.Fatal(err)
		}
		r.Add(valuecheck.Compare(ourValues(t, s, core, pretty), peer))
	}
	compare(false)
	if s.Pretty {
		compare(true)
	}
	if s.Containers != "" {
		same := valuesSubject(t, s.Containers)
		exe, gnu := valuesCore(t, same)
		peer, err := same.GDB(exe, gnu, true)
		if err != nil {
			t.Fatal(err)
		}
		r.Add(valuecheck.CompareContents(ourValues(t, s, core, true), peer))
	}
	return r
}

func ourValues(t *testing.T, s *valuecheck.Subject, core string, pretty bool) *valuecheck.Document {
	t.Helper()
	written := enginetest.Text(t, core, func(a *enginetest.Ask) {
		a.Stack.Format, a.Stack.Locals, a.Stack.Globals, a.Stack.MaxFrames = "json", true, s.Globals, new(uint32(100000))
		a.Stack.Depth, a.Stack.Elements, a.Stack.Raw = 16, 200, !pretty
	})
	d, err := valuecheck.ReadDocument([]byte(written))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func valuesSubject(t *testing.T, name string) *valuecheck.Subject {
	t.Helper()
	dir := oracle.Checkout(t, "internal/valuecheck/testdata")
	for _, s := range valuecheck.Subjects(dir, dir) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no program %q", name)
	return nil
}

func valuesCore(t *testing.T, s *valuecheck.Subject) (exe, core string) {
	t.Helper()
	if pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err != nil || strings.ContainsAny(string(pattern), "|/%") {
		oracle.Missing(t, "kernel.core_pattern is %q, expected a plain name", pattern)
	}
	exe, core, err := s.Core(oracle.Build{Sources: s.Sources, Commands: s.Commands}.Make(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return exe, core
}
