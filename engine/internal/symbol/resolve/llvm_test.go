// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

func open(t testing.TB, path string) *object.Object {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// textAddresses picks addresses in .text, the same for the same file.
func textAddresses(t testing.TB, path string, n int) []uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]uint64, n)
	for i := range list {
		list[i] = text.Addr + random.Uint64N(text.Size)
	}
	return list
}

// llvmChains asks llvm-symbolizer, names as they are in the file.
func llvmChains(t testing.TB, path string, addresses []uint64) [][]trace.Symbol {
	t.Helper()
	var in strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	out := oracle.With{Input: in.String()}.Run(t, "llvm-symbolizer-22", "--no-demangle", "--obj="+path)
	blocks := strings.Split(strings.TrimRight(out, "\n"), "\n\n")
	if len(blocks) != len(addresses) {
		t.Fatalf("llvm-symbolizer gave %d answers, expected %d", len(blocks), len(addresses))
	}
	chains := make([][]trace.Symbol, len(blocks))
	for i, block := range blocks {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for k := 0; k+1 < len(lines); k += 2 {
			f := trace.Symbol{Function: lines[k]}
			place := lines[k+1]
			for _, to := range []*int{&f.Column, &f.Line} {
				at := strings.LastIndexByte(place, ':')
				fmt.Sscan(place[at+1:], to)
				place = place[:at]
			}
			if f.File = place; place == "??" {
				f.File = ""
			}
			chains[i] = append(chains[i], f)
		}
	}
	return chains
}

// A difference from llvm-symbolizer has a class that explains it.
const (
	same      = "same"
	qualified = "qualified" // DWARF has no linkage name: llvm-symbolizer prints the bare DW_AT_name
	alias     = "alias"     // the table has both names at the function's start
	different = "different"
)

// compare sorts how a chain differs.
func compare(got, want []trace.Symbol, aliases map[uint64][]string) string {
	if len(got) == 0 && len(want) == 1 && want[0] == (trace.Symbol{Function: "??"}) {
		return same
	}
	if len(got) != len(want) {
		return different
	}
	class := same
	for i := range got {
		g, w := got[i], want[i]
		if g.File != w.File || g.Line != w.Line || g.Column != w.Column || g.Inlined != (i < len(got)-1) {
			return different
		}
		name := g.LinkageName
		if name == "" {
			name = g.Function
		}
		switch {
		case name == w.Function, name == "" && w.Function == "??":
		case g.LinkageName == "" && strings.HasSuffix(name, "::"+w.Function):
			class = qualified
		case g.HasStart && slices.Contains(aliases[g.Start], w.Function):
			if class == same {
				class = alias
			}
		default:
			return different
		}
	}
	return class
}

// aliasesOf lists all names of all functions by their start.
func aliasesOf(t testing.TB, objects ...*object.Object) map[uint64][]string {
	t.Helper()
	table := make(map[uint64][]string)
	for _, o := range objects {
		if o == nil {
			continue
		}
		list, err := o.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			table[s.Address] = append(table[s.Address], symbol.StripVersion(s.Name))
		}
	}
	return table
}

// checkChains compares 2,000 addresses of the file at path with what o and debug
// say, and returns how many are of each class.
func checkChains(t *testing.T, path string, o, debug *object.Object) map[string]int {
	t.Helper()
	r := New(o, debug)
	aliases := aliasesOf(t, o, debug)
	addresses := textAddresses(t, path, 2000)
	classes := make(map[string]int)
	for i, want := range llvmChains(t, path, addresses) {
		got, err := r.Frames(nil, addresses[i])
		if err != nil {
			t.Fatal(err)
		}
		class := compare(got, want, aliases)
		if classes[class]++; class == different && classes[class] <= 5 {
			t.Errorf("%#x:\n got %s\nwant %s", addresses[i], chainText(got), chainText(want))
		}
	}
	if p := r.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	return classes
}

func chainText(frames []trace.Symbol) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "\n\t%s [%s] %s:%d:%d inlined=%v", f.Function, f.LinkageName, f.File, f.Line, f.Column, f.Inlined)
	}
	return b.String()
}

// compileShapes compiles testdata and returns the executable, which tests share.
func compileShapes(t testing.TB, compiler string, flags ...string) string {
	t.Helper()
	source, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	command := []string{compiler, "-std=c++17", "-I", source, "-o", "shapes", filepath.Join(source, "shapes.cpp"), filepath.Join(source, "other.cpp")}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{append(command, flags...)}}.Make(t)
	return filepath.Join(dir, "shapes")
}

func TestChainsEqualLLVMSymbolizer(t *testing.T) {
	tests := []struct {
		name, compiler string
		flags          []string
	}{
		{"gcc DWARF 5", "g++", []string{"-O2", "-gdwarf-5"}},
		{"gcc DWARF 4", "g++", []string{"-O2", "-gdwarf-4"}},
		{"gcc DWARF 3", "g++", []string{"-O2", "-gdwarf-3", "-gstrict-dwarf"}},
		{"gcc DWARF 2", "g++", []string{"-O2", "-gdwarf-2", "-gstrict-dwarf"}},
		{"gcc compressed", "g++", []string{"-O2", "-g", "-gz"}},
		{"gcc type units", "g++", []string{"-O2", "-gdwarf-4", "-fdebug-types-section"}},
		{"gcc 64-bit DWARF", "g++", []string{"-O2", "-gdwarf-5", "-gdwarf64"}},
		{"gcc sections collected", "g++", []string{"-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"}},
		{"gcc static", "g++", []string{"-O2", "-g", "-static"}},
		{"gcc not optimized", "g++", []string{"-O0", "-g"}},
		{"gcc link-time", "g++", []string{"-O2", "-g", "-flto"}},
		{"clang DWARF 5", "clang++", []string{"-O2", "-gdwarf-5"}},
		{"clang DWARF 4", "clang++", []string{"-O2", "-gdwarf-4"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			oracle.Tools(t, "llvm-symbolizer-22")
			path := compileShapes(t, test.compiler, test.flags...)
			classes := checkChains(t, path, open(t, path), nil)
			t.Log(classes)
			if classes[same] < 1000 {
				t.Errorf("only %d of 2000 chains are equal", classes[same])
			}
		})
	}
}

func TestChainsFromSeparateDebugFileEqualLLVMSymbolizer(t *testing.T) {
	oracle.Tools(t, "llvm-symbolizer-22", "objcopy")
	path := compileShapes(t, "g++", "-O2", "-g")
	dir := filepath.Dir(path)
	oracle.With{Dir: dir}.Run(t, "objcopy", "--only-keep-debug", "shapes", "shapes.debug")
	oracle.With{Dir: dir}.Run(t, "objcopy", "--strip-all", "shapes", "stripped")
	// llvm-symbolizer reads no symbols from a debug file: it is asked of the whole.
	classes := checkChains(t, path, open(t, filepath.Join(dir, "stripped")), open(t, filepath.Join(dir, "shapes.debug")))
	t.Log(classes)
	if classes[same] < 1000 {
		t.Errorf("only %d of 2000 chains are equal", classes[same])
	}
}

// Without DWARF each name must be one that addr2line could have given, which
// takes the first of those at the same address.
func TestNamesWithoutDWARFAreThoseOfAddr2line(t *testing.T) {
	oracle.Tools(t, "addr2line", "objcopy")
	path := compileShapes(t, "g++", "-O2", "-static")
	o := open(t, path)
	table, err := symtab.New(o)
	if err != nil {
		t.Fatal(err)
	}
	aliases := aliasesOf(t, o)
	addresses := textAddresses(t, path, 2000)
	var in strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	lines := strings.Split(oracle.With{Input: in.String()}.Run(t, "addr2line", "-f", "-e", path), "\n")
	equal, other := 0, 0
	for i, a := range addresses {
		want := symbol.StripVersion(lines[2*i])
		s, ok := table.Function(a)
		switch {
		case !ok && want == "??", s.Name == want:
			equal++
		case ok && slices.Contains(aliases[s.Start], want):
			other++
		case ok && s.End > a:
			// addr2line takes a label, or a symbol that ended before the
			// address, where it is nearer than the function around.
			if nearer(aliases, s.Start, want) {
				other++
				continue
			}
			fallthrough
		case !ok:
			if endsBefore(t, o, want, a) {
				other++
				continue
			}
			fallthrough
		default:
			t.Errorf("%#x: %q [%#x, %#x), addr2line says %q", a, s.Name, s.Start, s.End, want)
		}
	}
	t.Logf("%d equal, %d other names of the same code", equal, other)
}

// nearer says whether a symbol of that name begins after start.
func nearer(aliases map[uint64][]string, start uint64, name string) bool {
	for address, names := range aliases {
		if address > start && slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// endsBefore says whether every symbol of that name has ended before address.
func endsBefore(t *testing.T, o *object.Object, name string, address uint64) bool {
	list, err := o.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if symbol.StripVersion(s.Name) == name && s.Address <= address && address < s.Address+s.Size {
			return false
		}
	}
	return true
}
