// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// callSources are two units that call each other: by calls, by tail calls, and by an
// address.
var callSources = map[string]string{
	"first.c": `
		long second(long), third(long);
		long (*volatile where)(long);
		__attribute__((noinline)) static long own(long x) { return where(x) + 1; }
		long first(long x) { return second(x * 2); }
		long direct(long x) { return own(x + 1) + third(x); }
		long unknown(long x) { return where(x + 2); }`,
	"second.c": `
		long first(long), absent(long);
		long second(long x) { return x & 1 ? first(x + 1) : absent(x); }
		long third(long x) { return x * 3; }
		__attribute__((weak)) long absent(long x) { return x; }
		int main(int argc, char **argv) { return (int)second(argc); }`,
}

// TestTailCallsLeadToOtherUnits finds the functions that tail calls lead to, in
// what gcc and clang write for DWARF 5 and in GNU's form of it.
func TestTailCallsLeadToOtherUnits(t *testing.T) {
	oracle.Tools(t, "gcc", "clang")
	for _, command := range [][]string{
		{"gcc", "-gdwarf-5"}, {"gcc", "-gdwarf-4"}, {"gcc", "-gdwarf-5", "-gsplit-dwarf"}, {"clang", "-gdwarf-5"}, {"clang", "-gdwarf-4", "-ggdb"},
	} {
		dir := t.TempDir()
		args := append(command[1:], "-O2", "-o", "program")
		for name, text := range callSources {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, name)
		}
		build := exec.Command(command[0], args...)
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
		r := openMapped(t, filepath.Join(dir, "program"))
		for name, want := range map[string][]string{
			"first": {"second"}, "second": {"first", "absent"}, "third": nil, "unknown": {""}, "direct": nil,
		} {
			var got []string
			body := functionNamed(t, r, name)
			sites, areAll, err := body.TailCalls()
			if err != nil || !areAll {
				t.Errorf("%v: %s: all tail calls: %v, %v", command, name, areAll, err)
			}
			for _, site := range sites {
				callee, err := site.Callee()
				if err != nil {
					t.Fatal(err)
				}
				if callee.IsZero() {
					got = append(got, "")
					continue
				}
				bodies, areAll, err := r.Bodies(site, callee)
				if err != nil || !areAll || len(bodies) != 1 {
					t.Errorf("%v: %s: %d functions, all: %v, %v", command, name, len(bodies), areAll, err)
					continue
				}
				if _, ok, err := bodies[0].EntryPC(); !ok || err != nil {
					t.Errorf("%v: %s: no entry: %v", command, name, err)
				}
				got = append(got, bodies[0].Name())
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%v: %s leaves for %q, expected %q", command, name, got, want)
			}
		}
	}
}

// functionNamed is a function with code.
func functionNamed(t *testing.T, r *Reader, name string) Entry {
	t.Helper()
	named, err := r.findLinkage()
	if err != nil || len(named[name]) != 1 {
		t.Fatalf("%d functions %s: %v", len(named[name]), name, err)
	}
	e, err := named[name][0].entry()
	if err != nil {
		t.Fatal(err)
	}
	return e
}
