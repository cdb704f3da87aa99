// SPDX-License-Identifier: Apache-2.0

package funcname_test

import (
	"debug/elf"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/proof"
)

// libraries are patterns of large libraries of several languages. Machines have some of them.
var libraries = []string{
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libLLVM*.so*", "/usr/lib/x86_64-linux-gnu/libclang-cpp.so*", "/usr/lib/x86_64-linux-gnu/libicu*.so.*",
	"/usr/lib/x86_64-linux-gnu/liblldb*.so.*", "/usr/lib/x86_64-linux-gnu/librustc_driver*.so", "/root/.rustup/toolchains/*/lib/librustc_driver*.so",
	"/usr/lib/x86_64-linux-gnu/libgphobos.so.*", "/usr/lib/x86_64-linux-gnu/libphobos2*.so.*", "/usr/lib/x86_64-linux-gnu/libprotobuf.so.*", "/usr/lib/x86_64-linux-gnu/libz3.so.*",
	"/usr/lib/x86_64-linux-gnu/libigc.so.*", "/usr/lib/x86_64-linux-gnu/libgnat*.so", "/usr/lib/x86_64-linux-gnu/libpython3*.so.*",
}

// TestNamesOfLibraries shortens the names of all symbols of large libraries: none may be longer,
// nor have brackets that do not close, nor be empty.
func TestNamesOfLibraries(t *testing.T) {
	proof.Only(t)
	seen := map[string]bool{}
	shortened, cut, longest := 0, 0, ""
	var sample []string
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a sample
	for _, pattern := range libraries {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			count := len(seen)
			for _, mangled := range symbols(t, file) {
				name := symbol.Demangle(mangled)
				if seen[mangled] || name == mangled {
					continue
				}
				seen[mangled] = true
				short := funcname.Short(name, mangled, "")
				switch {
				case len(short) > len(name) || short == "":
					t.Errorf("%q is %q", name, short)
				case funcname.IsBalanced(name) && !funcname.IsBalanced(short):
					t.Errorf("%q is %q: its brackets do not close", name, short)
				}
				if short != name {
					shortened++
				}
				if len(short) > len(longest) {
					longest = short
				}
				fit := funcname.Fit(short, 40)
				if utf8.RuneCountInString(fit) > 40 || funcname.IsBalanced(short) && !funcname.IsBalanced(fit) && strings.Contains(fit, "...") {
					t.Errorf("%q in 40 is %q", short, fit)
				}
				if fit != short {
					cut++
				}
				if len(sample) < 200 {
					sample = append(sample, name+"\n\t"+short+"\n\t"+fit)
				} else if n := source.IntN(len(seen)); n < 200 {
					sample[n] = name + "\n\t" + short + "\n\t" + fit
				}
			}
			t.Logf("%s: %d names", file, len(seen)-count)
		}
	}
	t.Logf("%d names, %d shortened, %d of all cut to 40; the longest is %q", len(seen), shortened, cut, longest)
	if len(seen) == 0 {
		t.Skip("there is none of these libraries")
	}
	t.Log("some:\n" + strings.Join(sample, "\n"))
}

// symbols returns the names in the symbol tables of a file.
func symbols(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		return nil // a script of the linker
	}
	defer f.Close()
	dynamic, _ := f.DynamicSymbols()
	static, _ := f.Symbols()
	for _, s := range append(dynamic, static...) {
		names = append(names, s.Name)
	}
	return names
}
