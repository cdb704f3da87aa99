// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"debug/elf"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
	"github.com/unwindd/unwindd/engine/object"
)

// aliases are the symbols of one code object with all their names, for answers with the name
// that another tool chooses. It may be used concurrently.
//
// Both tools look at .symtab, and at .dynsym where there is no .symtab; and both take the
// nearest symbol that begins at or below an address. A name is returned only where the symbol
// covers the address: one without a size ends at the next symbol, or at the end of its
// section.
type aliases struct {
	all   []alias // in the order of the table
	files []file  // by symbol

	requests  atomic.Int32
	indexLLVM sync.Once
	llvm      []uint32 // llvm-symbolizer's choices, one for each address, by address
	indexGNU  sync.Once
	gnu       []uint32 // addr2line's candidates, by section and address, then in the order of the table
}

// scanned is the number of questions that are answered by scanning all symbols before they
// are sorted.
const scanned = 8

// alias is a symbol of code or data.
type alias struct {
	start, end uint64 // end is start where the symbol has no size
	limit      uint64 // end of the section; 0: unknown
	name       string // raw
	section    uint32
	index      uint32 // in the symbol table
	typ        elf.SymType
	isLocal    bool
}

// file is an STT_FILE symbol.
type file struct {
	index  uint32
	name   string
	isLate bool // symbols precede it: it does not apply to global ones
}

// Named is a symbol that covers an address.
type Named struct {
	Name  string // raw: mangled, with @VERSION where the table has it
	Start uint64 // ELF virtual address
	Size  uint64 // bytes; 0: not in the table
	File  string // of the STT_FILE symbol that it belongs to, without its directory; ""
}

// newAliases reads a code object's symbols. With an error it returns the symbols that could
// be read.
func newAliases(o *object.Object) (*aliases, error) {
	symbols, err := o.Symbols()
	sections := o.Sections()
	static := false
	for i := range symbols {
		if !symbols[i].Dynamic {
			static = true
			break
		}
	}
	t := &aliases{all: make([]alias, 0, len(symbols))}
	others := false
	for i := range symbols {
		s := &symbols[i]
		if s.Dynamic == static {
			continue
		}
		if s.Type == elf.STT_FILE {
			t.files = append(t.files, file{uint32(i), s.Name, others})
			continue
		}
		others = true
		if a, ok := newAlias(o, sections, s); ok {
			a.index = uint32(i)
			t.all = append(t.all, a)
		}
	}
	return t, err
}

func newAlias(o *object.Object, sections []*object.Section, s *object.Symbol) (a alias, ok bool) {
	switch s.Type {
	case elf.STT_NOTYPE, elf.STT_OBJECT, elf.STT_FUNC, elf.STT_GNU_IFUNC:
	default:
		return a, false
	}
	if s.Name == "" || !s.Defined() || s.Section == uint32(elf.SHN_ABS) || s.Section == uint32(elf.SHN_COMMON) || s.Type == elf.STT_NOTYPE && symtab.IsMarker(s.Name) {
		return a, false
	}
	a = alias{start: s.Address, name: cmp.Or(s.Decorated, s.Name), section: s.Section, typ: s.Type, isLocal: s.Binding == elf.STB_LOCAL}
	if uint64(s.Section) < uint64(len(sections)) {
		section := sections[s.Section]
		if section.Flags&elf.SHF_ALLOC == 0 {
			return a, false // compilers that optimize at link time leave some in sections that are not loaded
		}
		if o.IsRelocatable() {
			a.start += section.Address
		}
		if section.Size <= ^section.Address {
			a.limit = section.Address + section.Size
		}
	}
	if s.Size > ^a.start {
		return a, false
	}
	a.end = a.start + s.Size
	return a, true
}

func (a *alias) isFunction() bool { return a.typ == elf.STT_FUNC || a.typ == elf.STT_GNU_IFUNC }

// covers reports whether the symbol, which begins at or below the address, includes it.
func (a *alias) covers(address uint64) bool {
	switch {
	case a.end > a.start:
		return address < a.end
	case a.limit > a.start:
		return address < a.limit
	}
	return address == a.start
}

func (a *alias) named() Named { return Named{Name: a.name, Start: a.start, Size: a.end - a.start} }

// fileOf returns the STT_FILE symbol before a symbol; isLate means that symbols of other
// files precede it.
func (t *aliases) fileOf(a *alias) (name string, isLate bool) {
	i := sort.Search(len(t.files), func(i int) bool { return t.files[i].index > a.index }) - 1
	if i < 0 {
		return "", false
	}
	return t.files[i].name, t.files[i].isLate
}

// find returns the symbols with a raw name that chooseLLVM may return, by address.
func (t *aliases) find(name string) []Named {
	t.indexLLVM.Do(t.sortLLVM)
	var list []Named
	for _, i := range t.llvm {
		if a := &t.all[i]; a.name == name {
			list = append(list, a.named())
		}
	}
	return list
}
