// SPDX-License-Identifier: Apache-2.0

// Package symtab names code by ELF symbol tables.
package symtab

import (
	"cmp"
	"debug/elf"
	"errors"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// Table has the functions of one code object, by address. It implements symbol.Source, does
// not change, and may be used concurrently.
//
// Of several names for the same code it takes the one that a user of the library would
// write: a global or weak one before a local one, then the one with the fewest leading
// underscores, then global before weak, then the shorter. (Other tools depend on the order
// of the table: addr2line takes the first, llvm-symbolizer the last one of the largest
// size. In glibc addr2line prints __GI___libc_malloc, llvm-symbolizer __libc_malloc, gdb
// and this package malloc.)
type Table struct {
	entries []entry
	names   int // their total bytes
}

// entry is a function, or one of several sizes that begin at the same address.
type entry struct {
	start, end uint64
	name       string // raw
	file       string // of the STT_FILE symbol before a local one
	// outer is the entry, before this one, of the nearest function that ends
	// later; -1. Entries nest where assembly defines functions in functions.
	outer int32
	other uint8 // st_other
	sized bool
	// isShared is set where functions of other names have its code.
	isShared bool
}

// New reads the function symbols of a code object: .symtab, .dynsym and .gnu_debugdata of
// all the objects together, which are the object and its separate debug file in either
// order; nil ones are left out. Objects without symbols make a table without entries.
//
// Symbols of type STT_FUNC and STT_GNU_IFUNC count, and STT_NOTYPE in sections of code. Those
// that lead to descriptors of functions have the address of the code. A
// symbol without a size ends at the next one or at the end of its section, and inside a
// function that has a size it is a label and left out.
//
// With an error New returns a table of the symbols that could be read.
func New(objects ...*object.Object) (*Table, error) {
	c := collector{}
	err := c.addAll(objects)
	return build(c.list), err
}

// addAll adds the symbols of objects; nil ones are left out.
func (c *collector) addAll(objects []*object.Object) error {
	var failed []error
	c.objects = objects
	for _, o := range objects {
		if o == nil {
			continue
		}
		failed = append(failed, c.add(o))
		mini, err := o.MiniDebug()
		switch {
		case err == nil:
			failed = append(failed, c.add(mini))
		case !errors.Is(err, object.ErrNoSection) && !errors.Is(err, object.ErrNoData):
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// candidate is a symbol that may become an entry.
type candidate struct {
	start, end uint64
	limit      uint64 // end of the section; 0: unknown
	name, file string
	binding    elf.SymBind
	other      uint8
	typed      bool
	dynamic    bool // in .dynsym
	indirect   bool // STT_GNU_IFUNC: it chooses the function
}

type collector struct {
	list    []candidate
	objects []*object.Object      // all of the object's files; nil ones are none
	keep    func(*candidate) bool // nil: keep all
}

func (c *collector) add(o *object.Object) error {
	sections := o.Sections()
	if c.keep == nil {
		c.list = slices.Grow(c.list, o.SymbolCount())
	}
	file := ""
	return o.EachSymbol(func(s *object.Symbol) {
		if s.Type == elf.STT_FILE {
			file = s.Name
		}
		typed := s.Type == elf.STT_FUNC || s.Type == elf.STT_GNU_IFUNC
		if !typed && s.Type != elf.STT_NOTYPE || s.Name == "" || !s.Defined() || s.Section == uint32(elf.SHN_ABS) || s.Section == uint32(elf.SHN_COMMON) {
			return
		}
		x := candidate{start: s.Address, name: s.Name, binding: s.Binding, other: s.Other, typed: typed, dynamic: s.Dynamic, indirect: s.Type == elf.STT_GNU_IFUNC}
		if s.Binding == elf.STB_LOCAL && !s.Dynamic {
			x.file = file
		}
		if uint64(s.Section) < uint64(len(sections)) {
			section := sections[s.Section]
			switch {
			case section.Flags&elf.SHF_EXECINSTR == 0:
				if !typed || !section.IsDescriptors() {
					return
				}
				if section = c.describe(&x, o, section); section == nil {
					return
				}
			case o.IsRelocatable():
				x.start += section.Address
			}
			if section.Size <= ^section.Address {
				x.limit = section.Address + section.Size
			}
		} else if !typed || len(sections) > 0 {
			return
		}
		if !typed && IsMarker(s.Name) || s.Name == entryMarker && o.Machine() == machineIntelGT {
			return
		}
		if elf.Machine(o.Machine()) == elf.EM_ARM && typed {
			x.start &^= 1 // the bit marks Thumb code
		}
		if s.Size > ^x.start {
			return
		}
		x.end = x.start + s.Size
		if x.limit > x.start {
			x.end = min(x.end, x.limit)
		}
		if c.keep == nil || c.keep(&x) {
			c.list = append(c.list, x)
		}
	})
}

// describe moves a symbol that leads to the descriptor of a function to its code, and returns the
// section that this is in; nil where it is not known. A separate debug file has no bytes of the
// descriptors.
func (c *collector) describe(x *candidate, o *object.Object, descriptors *object.Section) *object.Section {
	offset := x.start
	if !o.IsRelocatable() {
		offset -= descriptors.Address
	}
	for _, other := range append([]*object.Object{o}, c.objects...) {
		if other == nil {
			continue
		}
		s := other.Section(descriptors.Name)
		if s == nil || s.Address != descriptors.Address {
			continue
		}
		if address, in, ok := s.DescribedCode(offset); ok {
			x.start = address
			return in
		}
	}
	return nil
}

// IsMarker reports whether a name, which is not empty, names no function: it marks a kind
// of code or data ($a, $d, $x on Arm and RISC-V), or is a compiler's local label.
func IsMarker(name string) bool {
	return name[0] == '$' || strings.HasPrefix(name, ".L")
}

// Intel's compilers give every kernel of a zebin a second symbol, of a function
// that begins behind the code that loads the kernel's arguments.
const (
	machineIntelGT = 205 // EM_INTELGT
	entryMarker    = "_entry"
)

// better orders names of the same code, the better one first.
func better(a, b *candidate) int {
	return cmp.Or(
		boolean(b.typed, a.typed),
		boolean(b.binding != elf.STB_LOCAL, a.binding != elf.STB_LOCAL),
		cmp.Compare(underscores(a.name), underscores(b.name)),
		boolean(b.binding != elf.STB_WEAK, a.binding != elf.STB_WEAK),
		cmp.Compare(len(a.name), len(b.name)),
		strings.Compare(a.name, b.name),
	)
}

func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func underscores(name string) (n int) {
	for n < len(name) && name[n] == '_' {
		n++
	}
	return n
}

// place is the start of a candidate and its index.
type place struct {
	start uint64
	index int32
}

// inOrder sorts candidates by address, the better ones first among equal addresses. Most
// addresses have one candidate: it sorts places, which are small, by them alone.
func inOrder(list []candidate) []place {
	order := make([]place, len(list))
	for i := range list {
		order[i] = place{list[i].start, int32(i)}
	}
	slices.SortFunc(order, func(a, b place) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Compare(a.index, b.index)
	})
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && order[j].start == order[i].start {
			j++
		}
		if j > i+1 {
			slices.SortStableFunc(order[i:j], func(x, y place) int {
				a, b := &list[x.index], &list[y.index]
				if sized := boolean(b.start != b.end, a.start != a.end); sized != 0 {
					return sized
				}
				return better(a, b)
			})
		}
		i = j
	}
	return order
}

// build builds a table from symbols.
func build(list []candidate) *Table {
	order := inOrder(list)
	t := &Table{entries: make([]entry, 0, len(list))}
	// Of functions that begin at the same address the best one stays, and larger ones for
	// the code beyond it.
	limits := make([]uint64, 0, len(list)) // by entry: the end of its section
	var covered uint64                     // the largest end of a function with a size so far
	for _, p := range order {
		s := &list[p.index]
		sized := s.end > s.start
		if n := len(t.entries); n > 0 {
			if last := &t.entries[n-1]; last.start == s.start && (!sized || s.end <= last.end) {
				last.isShared = last.isShared || s.typed && !isSameFunction(symbol.StripVersion(s.name), symbol.StripVersion(last.name))
				continue
			}
		}
		if !sized && s.start < covered {
			continue // a label
		}
		covered = max(covered, s.end)
		t.entries = append(t.entries, entry{start: s.start, end: s.end, name: s.name, file: s.file, other: s.other, sized: sized})
		limits = append(limits, s.limit)
	}
	t.entries = slices.Clone(t.entries)
	for i := range t.entries {
		e := &t.entries[i]
		if e.sized {
			continue
		}
		e.end = limits[i]
		for j := i + 1; j < len(t.entries); j++ {
			if next := t.entries[j].start; next > e.start {
				if e.end == 0 || next < e.end {
					e.end = next
				}
				break
			}
		}
		e.end = max(e.end, e.start)
	}
	t.link()
	for i := range t.entries {
		t.names += len(t.entries[i].name) + 1
	}
	return t
}

// isSameFunction reports whether two names of one code name one function, or two variants
// of the same constructor (C1, C2) or destructor (D0 to D2) of the Itanium C++ ABI.
func isSameFunction(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] {
			return i > 0 && (a[i-1] == 'C' || a[i-1] == 'D') && a[i+1:] == b[i+1:]
		}
	}
	return true
}

// MemorySize is about how many bytes the table keeps.
func (t *Table) MemorySize() uint64 {
	return uint64(cap(t.entries))*uint64(unsafe.Sizeof(entry{})) + uint64(t.names)
}

// link sets outer. Entries that begin together have growing ends, so the chain
// from an entry leads through all functions around it, nearest first.
func (t *Table) link() {
	var open []int32 // entries whose ends shrink
	// In a group the search starts at the first, the smallest: chain it to the next of the
	// group by going through the groups from the end.
	for i := 0; i < len(t.entries); {
		j := i + 1
		for j < len(t.entries) && t.entries[j].start == t.entries[i].start {
			j++
		}
		for k := j - 1; k >= i; k-- {
			for len(open) > 0 && t.entries[open[len(open)-1]].end <= t.entries[k].end {
				open = open[:len(open)-1]
			}
			t.entries[k].outer = -1
			if len(open) > 0 {
				t.entries[k].outer = open[len(open)-1]
			}
			open = append(open, int32(k))
		}
		i = j
	}
}

// maxNesting bounds the functions around an address that are searched.
const maxNesting = 256

// find returns the nearest function that begins at or below an address and contains it.
func (t *Table) find(address uint64) *entry {
	// The first entry of the last group that begins at or below the address.
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].start > address }) - 1
	if i < 0 {
		return nil
	}
	start := t.entries[i].start
	i = sort.Search(i, func(i int) bool { return t.entries[i].start >= start })
	for range maxNesting {
		e := &t.entries[i]
		if address < e.end {
			return e
		}
		if e.outer < 0 {
			return nil
		}
		i = int(e.outer)
	}
	return nil
}

// Frames appends one frame for the function that contains an ELF virtual address. It has no
// line; a local function has the file of its STT_FILE symbol, without a directory. The
// error is always nil.
func (t *Table) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	e := t.find(address)
	if e == nil {
		return dst, nil
	}
	f := trace.Symbol{Start: e.start, HasStart: true, File: e.file}
	f.Function, f.LinkageName = Names(e.name)
	return append(dst, f), nil
}

// Names returns the readable form of a raw symbol name, and the linkage name, "" where it
// is the same.
func Names(raw string) (function, linkage string) {
	linkage = symbol.StripVersion(raw)
	function = symbol.Demangle(linkage)
	if function == linkage {
		return function, ""
	}
	return function, linkage
}

// Function returns the symbol of the function that contains an ELF virtual address. Its End
// is its Start where the symbol has no size: then only the start is known.
func (t *Table) Function(address uint64) (symbol.Symbol, bool) {
	e := t.find(address)
	if e == nil {
		return symbol.Symbol{}, false
	}
	return e.symbol(), true
}

// Start is the ELF virtual address at which the first function begins; ok is false
// where there is none.
func (t *Table) Start() (address uint64, ok bool) {
	if len(t.entries) == 0 {
		return 0, false
	}
	return t.entries[0].start, true
}

// IsShared reports whether the function at an address has several names.
func (t *Table) IsShared(address uint64) bool {
	e := t.find(address)
	return e != nil && e.isShared
}

// File returns the file of a local function (STT_FILE), without a directory; "" where it
// has none.
func (t *Table) File(address uint64) string {
	if e := t.find(address); e != nil {
		return e.file
	}
	return ""
}

func (e *entry) symbol() symbol.Symbol {
	s := symbol.Symbol{Name: symbol.StripVersion(e.name), Start: e.start, End: e.start, Other: e.other}
	if e.sized {
		s.End = e.end
	}
	return s
}

// Functions returns all functions by address, one name for each.
func (t *Table) Functions() []symbol.Symbol {
	list := make([]symbol.Symbol, len(t.entries))
	for i := range t.entries {
		list[i] = t.entries[i].symbol()
	}
	return list
}
