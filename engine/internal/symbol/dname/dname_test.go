// SPDX-License-Identifier: Apache-2.0

package dname

import (
	"debug/elf"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// readable are names as binutils print them, and as LLVM does; "": it leaves them.
var readable = []struct{ name, gnu, llvm string }{
	{"_Dmain", "D main", "D main"},
	{"_D1d3recFiCQj1CZi", "d.rec(int, d.C)", ""},
	{"_D3std5stdio12__ModuleInfoZ", "ModuleInfo for std.stdio", "ModuleInfo for std.stdio"},
	{"_D3foo1xi", "foo.x", "foo.x"},
	{"_D3foo__T3barTiVmi3VAyaa2_6869Z1fMxFNaNbKiLdMNkPFZvXv", `foo.bar!(int, 3uL, "hi").f(ref int, lazy double, scope return void() function...) const`, ""},
	{"_D3foo1CQf6__ctorMFZ", "", ""},
	{"_D3foo1C6__ctorMFZC3foo1C", "foo.C.this()", ""},
	{"_D3foo1S10__postblitMFZv", "foo.S.this(this)", ""},
	{"_D3foo__T1gVdeN1P1Vbi1Vai97Vwi8364Z1fFDxFZvHiAaB2ilZv", `foo.g!(-0x1.p1, true, 'a', '\U000020ac').f(void() delegate const, char[][int], Tuple!(int, long))`, ""},
	{"_D", "", ""}, {"_Dx", "", ""}, {"_DQa", "", ""}, {"_D99a", "", ""}, {"main", "", ""},
}

func TestNamesAreReadable(t *testing.T) {
	for _, c := range readable {
		if got, ok := GNU(c.name); got != c.gnu || ok != (c.gnu != "") {
			t.Errorf("GNU(%q) is %q, expected %q", c.name, got, c.gnu)
		}
		if got, ok := LLVM(c.name); got != c.llvm || ok != (c.llvm != "") {
			t.Errorf("LLVM(%q) is %q, expected %q", c.name, got, c.llvm)
		}
	}
}

// libraries are D's run-time libraries by LDC and GDC.
var libraries = []string{"/usr/lib/*/libphobos2-ldc-shared.so.*", "/usr/lib/*/libgphobos.so.*"}

// TestNamesOfLibrariesAreThoseOfOtherTools compares every name of D's libraries with c++filt
// and llvm-cxxfilt.
func TestNamesOfLibrariesAreThoseOfOtherTools(t *testing.T) {
	found := map[string]bool{}
	for _, pattern := range libraries {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			symbols, _ := f.DynamicSymbols()
			for _, s := range symbols {
				if strings.HasPrefix(s.Name, "_D") {
					found[s.Name] = true
				}
			}
			_ = f.Close()
		}
	}
	if len(found) == 0 {
		oracle.Missing(t, "none of %v is there", libraries)
		return
	}
	names := slices.Sorted(maps.Keys(found))
	for tool, of := range map[string]func(string) (string, bool){"c++filt -s dlang": GNU, "llvm-cxxfilt-22": LLVM} {
		command := strings.Fields(tool)
		oracle.Tools(t, command[0])
		want := strings.Split(strings.TrimSuffix(oracle.With{Input: strings.Join(names, "\n") + "\n"}.Run(t, command[0], command[1:]...), "\n"), "\n")
		wrong := 0
		for i, name := range names {
			got, ok := of(name)
			if !ok {
				got = name
			}
			if got != want[i] {
				if wrong++; wrong <= 5 {
					t.Errorf("%s is\n%s, %s has\n%s", name, got, tool, want[i])
				}
			}
		}
		t.Logf("%s: %d of %d names differ", tool, wrong, len(names))
	}
}

// hostile are names that nest, or refer to one another.
var hostile = []string{
	"_D1a" + strings.Repeat("FPFPF", 1<<12), "_D1aF" + strings.Repeat("P", 1<<14) + "iZv", "_D" + strings.Repeat("__T1aT", 1<<12), "_D1aS" + strings.Repeat("1", 1<<13),
	"_D1aFHiiHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeHQdQeZv", "_D__T1aS" + strings.Repeat("11", 1<<12),
	"_D1aFB" + strings.Repeat("9", 20) + "i", "_D1aG" + strings.Repeat("9", 1<<12) + "i", "_D1aF" + strings.Repeat("QbQb", 1<<12),
}

func TestHostileNamesTakeNoTime(t *testing.T) {
	for _, name := range hostile {
		start := time.Now()
		GNU(name)
		LLVM(name)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%.40s takes %v", name, d)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, c := range readable {
		f.Add(c.name)
	}
	for _, name := range hostile {
		f.Add(name[:min(len(name), 400)])
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, of := range []func(string) (string, bool){GNU, LLVM} {
			if text, ok := of(name); ok && (text == "" || len(text) > 2*maxOutput) {
				t.Errorf("%d bytes", len(text))
			}
		}
	})
}
