package symtab

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
)

// Aliases is the symbols of one code object with all their names, for answers
// with the name that another tool takes. It may be used concurrently.
//
// Both tools look at .symtab, and at .dynsym where there is no .symtab; and
// both take the nearest symbol that begins at or below an address. A name is
// given only where the symbol holds the address: one without a size ends at the
// next symbol, or where its section does.
type Aliases struct {
	all   []alias // in the order of the table
	files []file  // by symbol

	asked     atomic.Int32
	indexLLVM sync.Once
	llvm      []uint32 // llvm-symbolizer's choices, one for each address, by address
	indexGNU  sync.Once
	gnu       []uint32 // addr2line's candidates, by section and address, then in the order of the table
}

// scanned is how many questions are answered by looking at all symbols before
// it is worth while to sort them.
const scanned = 8

// An alias is a symbol of code or data.
type alias struct {
	start, end uint64 // end is start where the symbol has no size
	limit      uint64 // end of the section; 0: unknown
	name       string // raw
	section    uint32
	index      uint32 // in the symbol table
	typ        elf.SymType
	local      bool
}

// file is an STT_FILE symbol.
type file struct {
	index uint32
	name  string
	late  bool // there are other symbols before it: it says nothing of global ones
}

// A Named is a symbol that holds an address.
type Named struct {
	Name  string // raw: mangled, with @VERSION where the table has it
	Start uint64 // ELF virtual address
	Size  uint64 // bytes; 0: the table does not tell it
	File  string // of the STT_FILE symbol that it belongs to, without its directory; ""
}

// NewAliases reads a code object's symbols. With an error comes what could be
// read.
func NewAliases(o *object.Object) (*Aliases, error) {
	symbols, err := o.Symbols()
	sections := o.Sections()
	static := false
	for i := range symbols {
		if !symbols[i].Dynamic {
			static = true
			break
		}
	}
	t := &Aliases{all: make([]alias, 0, len(symbols))}
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
	if s.Name == "" || !s.Defined() || s.Section == uint32(elf.SHN_ABS) || s.Section == uint32(elf.SHN_COMMON) || s.Type == elf.STT_NOTYPE && isMarker(s.Name) {
		return a, false
	}
	a = alias{start: s.Address, name: s.Name, section: s.Section, typ: s.Type, local: s.Binding == elf.STB_LOCAL}
	if uint64(s.Section) < uint64(len(sections)) {
		in := sections[s.Section]
		if o.Type() == elf.ET_REL {
			a.start += in.Address
		}
		if in.Size <= ^in.Address {
			a.limit = in.Address + in.Size
		}
	}
	if s.Size > ^a.start {
		return a, false
	}
	a.end = a.start + s.Size
	return a, true
}

// sortLLVM keeps one symbol for each address: the last one of the largest size.
func (t *Aliases) sortLLVM() {
	t.llvm = make([]uint32, len(t.all))
	for i := range t.all {
		t.llvm[i] = uint32(i)
	}
	slices.SortFunc(t.llvm, func(i, j uint32) int {
		a, b := &t.all[i], &t.all[j]
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(i, j))
	})
	n := 0
	for i := range t.llvm {
		if i+1 < len(t.llvm) && t.all[t.llvm[i]].start == t.all[t.llvm[i+1]].start {
			continue
		}
		t.llvm[n] = t.llvm[i]
		n++
	}
	t.llvm = t.llvm[:n]
}

func (t *Aliases) sortGNU() {
	for i := range t.all {
		if t.all[i].typ != elf.STT_OBJECT {
			t.gnu = append(t.gnu, uint32(i))
		}
	}
	slices.SortFunc(t.gnu, func(i, j uint32) int {
		a, b := &t.all[i], &t.all[j]
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.start, b.start), cmp.Compare(i, j))
	})
}

// LLVM returns the symbol of code or data at an ELF virtual address that
// llvm-symbolizer names: of those at the nearest address the last one of the
// largest size.
func (t *Aliases) LLVM(address uint64) (Named, bool) {
	a := t.nearestLLVM(address)
	if a == nil || !a.holds(address) {
		return Named{}, false
	}
	n := a.named()
	if a.local {
		n.File, _ = t.fileOf(a)
	}
	return n, true
}

func (t *Aliases) nearestLLVM(address uint64) *alias {
	if t.asked.Add(1) > scanned {
		t.asked.Store(scanned)
		t.indexLLVM.Do(t.sortLLVM)
		if i := sort.Search(len(t.llvm), func(i int) bool { return t.all[t.llvm[i]].start > address }) - 1; i >= 0 {
			return &t.all[t.llvm[i]]
		}
		return nil
	}
	var best *alias
	for i := range t.all {
		if a := &t.all[i]; a.start <= address && (best == nil || a.start > best.start || a.start == best.start && a.end >= best.end) {
			best = a
		}
	}
	return best
}

// GNU returns the symbol of code at an ELF virtual address that addr2line
// names: of those at the nearest address in the section a function before a
// label, the shortest one that holds the address, then the first of the table.
func (t *Aliases) GNU(section uint32, address uint64) (Named, bool) {
	best := t.nearestGNU(section, address)
	if best == nil || !best.holds(address) {
		return Named{}, false
	}
	n := best.named()
	if name, late := t.fileOf(best); best.local || !late {
		n.File = name
	}
	return n, true
}

func (t *Aliases) nearestGNU(section uint32, address uint64) (best *alias) {
	if t.asked.Add(1) <= scanned {
		for i := range t.all {
			a := &t.all[i]
			if a.typ == elf.STT_OBJECT || a.section != section || a.start > address {
				continue
			}
			if best == nil || a.start > best.start || a.start == best.start && a.fitsBetter(best, address) {
				best = a
			}
		}
		return best
	}
	t.asked.Store(scanned)
	t.indexGNU.Do(t.sortGNU)
	after := func(i int) bool {
		a := &t.all[t.gnu[i]]
		return a.section > section || a.section == section && a.start > address
	}
	for i := sort.Search(len(t.gnu), after) - 1; i >= 0; i-- {
		if a := &t.all[t.gnu[i]]; a.section != section || best != nil && a.start != best.start {
			break
		}
		best = &t.all[t.gnu[i]] // the first of those that begin there
	}
	if best == nil {
		return nil
	}
	first := sort.Search(len(t.gnu), func(i int) bool {
		a := &t.all[t.gnu[i]]
		return a.section > section || a.section == section && a.start >= best.start
	})
	for i := first; i < len(t.gnu) && !after(i); i++ {
		if a := &t.all[t.gnu[i]]; a.fitsBetter(best, address) {
			best = a
		}
	}
	return best
}

// fitsBetter says whether addr2line takes a symbol that comes later in the table
// and begins at the same address.
func (a *alias) fitsBetter(best *alias, address uint64) bool {
	size, bestSize := max(a.end-a.start, 1), max(best.end-best.start, 1)
	at := address - best.start
	switch {
	case bestSize <= at:
		return size > bestSize
	case size <= at:
		return false
	case a.function() != best.function():
		return a.function()
	case (a.typ == elf.STT_NOTYPE) != (best.typ == elf.STT_NOTYPE):
		return best.typ == elf.STT_NOTYPE
	}
	return size < bestSize
}

func (a *alias) function() bool { return a.typ == elf.STT_FUNC || a.typ == elf.STT_GNU_IFUNC }

// holds says whether the symbol, one that begins at or below the address, holds it.
func (a *alias) holds(address uint64) bool {
	switch {
	case a.end > a.start:
		return address < a.end
	case a.limit > a.start:
		return address < a.limit
	}
	return address == a.start
}

func (a *alias) named() Named { return Named{Name: a.name, Start: a.start, Size: a.end - a.start} }

// fileOf returns the STT_FILE symbol before a symbol; late says that symbols of
// other files are before that.
func (t *Aliases) fileOf(a *alias) (name string, late bool) {
	i := sort.Search(len(t.files), func(i int) bool { return t.files[i].index > a.index }) - 1
	if i < 0 {
		return "", false
	}
	return t.files[i].name, t.files[i].late
}

// Find returns the symbols of a raw name, by address, of those that LLVM gives.
func (t *Aliases) Find(name string) []Named {
	t.indexLLVM.Do(t.sortLLVM)
	var list []Named
	for _, i := range t.llvm {
		if a := &t.all[i]; a.name == name {
			list = append(list, a.named())
		}
	}
	return list
}
