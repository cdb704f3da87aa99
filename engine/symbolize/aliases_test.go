// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

func aliasesOf(list ...alias) *aliases {
	t := &aliases{all: list}
	for i := range t.all {
		t.all[i].index = uint32(i)
		if t.all[i].limit == 0 {
			t.all[i].limit = 0x1000
		}
	}
	return t
}

func fn(name string, start, size uint64) alias {
	return alias{name: name, start: start, end: start + size, typ: elf.STT_FUNC}
}

func label(name string, start uint64) alias {
	return alias{name: name, start: start, end: start, typ: elf.STT_NOTYPE}
}

func TestChoicesOfOtherTools(t *testing.T) {
	tests := []struct {
		name      string
		aliases   *aliases
		address   uint64
		llvm, gnu string
	}{
		{"the last and the first", aliasesOf(fn("a", 0x10, 8), fn("b", 0x10, 8)), 0x12, "b", "a"},
		{"the largest and the smallest", aliasesOf(fn("a", 0x10, 16), fn("b", 0x10, 8)), 0x12, "a", "b"},
		{"only one holds it", aliasesOf(fn("a", 0x10, 16), fn("b", 0x10, 8)), 0x1a, "a", "a"},
		{"function before label", aliasesOf(label("a", 0x10), fn("b", 0x10, 8), label("c", 0x10)), 0x10, "b", "b"},
		{"beyond its end", aliasesOf(fn("a", 0x10, 8)), 0x18, "", ""},
		{"nearest only", aliasesOf(fn("a", 0x10, 0x100), fn("b", 0x20, 8)), 0x30, "", ""},
		{"without a size up to the next", aliasesOf(label("a", 0x10), fn("b", 0x20, 8)), 0x1f, "a", "a"},
		{"without a size up to the section's end", aliasesOf(label("a", 0x10)), 0x1000, "", ""},
		{"data is no code", aliasesOf(alias{name: "d", start: 0x10, end: 0x18, typ: elf.STT_OBJECT}), 0x12, "d", ""},
		{"before the first", aliasesOf(fn("a", 0x10, 8)), 0xf, "", ""},
		{"IFUNC is a function", aliasesOf(label("a", 0x10), alias{name: "i", start: 0x10, end: 0x18, typ: elf.STT_GNU_IFUNC}), 0x12, "i", "i"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for n := range scanned { // by all symbols, then sorted
				if got, _ := test.aliases.chooseLLVM(test.address); got.Name != test.llvm {
					t.Errorf("time %d: LLVM's is %q, want %q", n, got.Name, test.llvm)
				}
				if got, _ := test.aliases.chooseGNU(0, test.address); got.Name != test.gnu {
					t.Errorf("time %d: GNU's is %q, want %q", n, got.Name, test.gnu)
				}
			}
		})
	}
}

func TestFindGivesRawNames(t *testing.T) {
	found := aliasesOf(fn("_Z1fv", 0x10, 8), fn("_Z1gv", 0x20, 8)).find("_Z1gv")
	if len(found) != 1 || found[0].Start != 0x20 || found[0].Size != 8 {
		t.Errorf("%+v", found)
	}
}

// Names of a static program, with the C library's aliases and IFUNCs, are those
// that the tools give.
func TestNamesEqualLLVMSymbolizerAndAddr2line(t *testing.T) {
	oracle.Tools(t, "gcc", "strip", "llvm-symbolizer-22", "addr2line")
	dir := t.TempDir()
	for _, command := range []string{`printf '#include <stdio.h>\nint main(){puts("x");}' | gcc -O2 -static -x c - -o program`, "strip -g program"} {
		oracle.With{Dir: dir}.Run(t, "sh", "-c", command)
	}
	path := filepath.Join(dir, "program")
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	table, err := newAliases(o)
	if err != nil {
		t.Fatal(err)
	}
	text := o.Section(".text")
	var addresses []uint64
	var in strings.Builder
	for a := text.Address; a < text.Address+text.Size; a += 101 {
		addresses = append(addresses, a)
		fmt.Fprintf(&in, "%#x\n", a)
	}
	ask := func(tool string, args ...string) []string {
		return strings.Split(oracle.With{Input: in.String()}.Run(t, tool, args...), "\n")
	}
	llvm := ask("llvm-symbolizer-22", "-e", path, "--no-demangle", "--output-style=GNU")
	gnu := ask("addr2line", "-fe", path)
	equal, ended := 0, 0
	for i, a := range addresses {
		l, _ := table.chooseLLVM(a)
		if l.Name == "" {
			l.Name = "??"
		}
		if l.Name != llvm[2*i] {
			t.Errorf("%#x: LLVM's is %q, it says %q", a, l.Name, llvm[2*i])
		}
		g, ok := table.chooseGNU(uint32(text.Index), a)
		switch {
		case g.Name == gnu[2*i]:
			equal++
			if file, _, _ := strings.Cut(gnu[2*i+1], ":"); g.File != file && file != "??" {
				t.Errorf("%#x: the file is %q, addr2line says %q", a, g.File, file)
			}
		case !ok:
			ended++ // the nearest symbol ends before the address
		default:
			t.Errorf("%#x: GNU's is %q, it says %q", a, g.Name, gnu[2*i])
		}
	}
	t.Logf("%d addresses, %d equal addr2line's, of %d it says a symbol that has ended", len(addresses), equal, ended)
	if equal < len(addresses)/2 || len(addresses) < 3000 {
		t.Errorf("%d of %d equal", equal, len(addresses))
	}
}
