// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
)

// A Symbol is an entry of a symbol table.
type Symbol struct {
	Name string // raw: mangled, with @VERSION where the table has it
	// Decorated is the name in the file where Name is without its convention of calls, as of C on
	// 32-bit x86 of Windows; else "".
	Decorated string
	// Address is st_value: a virtual address, but in a relocatable object an
	// offset in the section. Where that is laid out it is an offset too.
	Address uint64
	Size    uint64
	// Section is the index of the section, with SHN_XINDEX resolved; the special
	// indexes (SHN_UNDEF, SHN_ABS, SHN_COMMON) are debug/elf's.
	Section uint32
	Type    elf.SymType
	Binding elf.SymBind
	Other   uint8 // st_other: the visibility, and bits of the machine
	Dynamic bool  // from .dynsym
}

// Defined reports whether the symbol has a place in the object.
func (s *Symbol) Defined() bool { return s.Section != uint32(elf.SHN_UNDEF) }

// Symbols returns the entries of .symtab, then the entries of .dynsym, without the
// null entries. An object without section headers has the symbols of PT_DYNAMIC. An object without
// symbols has none and no error; with an error come the symbols that could be read. The object
// does not keep them.
func (o *Object) Symbols() ([]Symbol, error) {
	list := slices.Grow([]Symbol(nil), o.SymbolCount())
	err := o.EachSymbol(func(s *Symbol) { list = append(list, *s) })
	return list, err
}

// SymbolCount returns about how many symbols EachSymbol will yield, to allocate memory for them; no
// more than the file is large enough for.
func (o *Object) SymbolCount() int {
	count := uint64(0)
	if o.pe != nil {
		count = uint64(o.pe.SymbolCount())
	}
	if o.macho != nil {
		count = uint64(o.macho.SymbolCount()) //nolint:gosec // not negative
	}
	for _, s := range o.sections {
		if s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM {
			count += min(s.Size, uint64(len(o.data))) / uint64(o.header.symbolSize())
		}
	}
	return int(min(count, maxSymbolRoom))
}

// maxSymbolRoom bounds the memory that is allocated for symbols before they are read.
const maxSymbolRoom = 1 << 16

// EachSymbol calls yield with each symbol that Symbols returns. A symbol is valid until the next
// call. A PE file has its COFF symbol table, and its exports, which are dynamic.
func (o *Object) EachSymbol(yield func(*Symbol)) error {
	var problems []error
	err := Guard(func() error {
		switch {
		case o.pe != nil:
			return o.eachPESymbol(yield)
		case o.macho != nil:
			return o.eachMachOSymbol(yield)
		}
		var tables int
		for _, dynamic := range []bool{false, true} {
			typ := elf.SHT_SYMTAB
			if dynamic {
				typ = elf.SHT_DYNSYM
			}
			for _, s := range o.sections {
				if s.Type != typ {
					continue
				}
				tables++
				if err := o.eachInSection(s, dynamic, yield); err != nil && !errors.Is(err, ErrNoData) {
					problems = append(problems, fmt.Errorf("%s: section %s (%d): %w", o.name, s.Name, s.Index, err))
				}
				break // there is at most one of a type
			}
		}
		if tables == 0 && len(o.sections) == 0 {
			if err := o.eachDynamicSymbol(yield); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", o.name, err))
			}
		}
		return nil
	})
	if err != nil {
		problems = append(problems, fmt.Errorf("%s: symbols: %w", o.name, err))
	}
	return errors.Join(problems...)
}

// Remembered returns what find returned for a key when it was asked first, as long as the object is
// open. What find returns depends on the object alone; keys are constants, so that they are few.
func (o *Object) Remembered(key string, find func() any) any {
	if known, ok := o.remembered.Load(key); ok {
		return known
	}
	found := find()
	o.remembered.Store(key, found)
	return found
}

// symbolSize returns the size of an Elf32_Sym or Elf64_Sym.
func (h *header) symbolSize() int {
	if h.wide {
		return 24
	}
	return 16
}

// A rawSymbol is a symbol as it is in the table.
type rawSymbol struct {
	name        uint32
	info, other uint8
	shndx       uint16
	value, size uint64
}

func (h *header) symbol(b []byte) rawSymbol {
	f := fields{b, h.order, h.wide}
	if h.wide {
		return rawSymbol{f.u32(0), b[4], b[5], f.u16(6), f.u64(8), f.u64(16)}
	}
	return rawSymbol{f.u32(0), b[12], b[13], f.u16(14), uint64(f.u32(4)), uint64(f.u32(8))}
}

// eachInSection yields the symbols of a symbol table section.
func (o *Object) eachInSection(s *Section, dynamic bool, yield func(*Symbol)) error {
	b, err := s.raw()
	if err != nil {
		return err
	}
	if size := o.header.symbolSize(); s.EntrySize != 0 && s.EntrySize != uint64(size) {
		return fmt.Errorf("entries of %d bytes, expected %d", s.EntrySize, size)
	}
	if uint64(s.Link) >= uint64(len(o.sections)) {
		return fmt.Errorf("string table is section %d of %d", s.Link, len(o.sections))
	}
	names, err := o.sections[s.Link].raw()
	if err != nil {
		return fmt.Errorf("string table, section %s (%d): %w", o.sections[s.Link].Name, s.Link, err)
	}
	return o.eachInTable(b, names, o.extendedIndexes(s), dynamic, yield)
}

// eachInTable yields the symbols in b.
func (o *Object) eachInTable(b, names, indexes []byte, dynamic bool, yield func(*Symbol)) error {
	h := &o.header
	size := h.symbolSize()
	n := len(b) / size
	if n == 0 {
		return nil
	}
	if n > maxSymbols {
		return fmt.Errorf("%d symbols, expected at most %d", n, maxSymbols)
	}
	if len(names) > maxSymbolNames {
		return fmt.Errorf("string table of %d bytes, expected at most %d", len(names), maxSymbolNames)
	}
	strings := newStringTable(names)
	var symbol Symbol
	var bad, firstBad int
	for i := 1; i < n; i++ { // the first one is the null symbol
		raw := h.symbol(b[i*size : i*size+size])
		name, ok := strings.at(uint64(raw.name))
		if !ok && raw.name != 0 {
			if bad == 0 {
				firstBad = i
			}
			bad++
			continue
		}
		symbol = Symbol{
			Name:    name,
			Address: raw.value,
			Size:    raw.size,
			Section: sectionIndex(h, raw.shndx, indexes, i),
			Type:    elf.ST_TYPE(raw.info),
			Binding: elf.ST_BIND(raw.info),
			Other:   raw.other,
			Dynamic: dynamic,
		}
		yield(&symbol)
	}
	switch {
	case bad > 0:
		return fmt.Errorf("names of %d symbols (the first is symbol %d) are not in the %d bytes of the string table", bad, firstBad, len(names))
	case len(b)%size != 0:
		return fmt.Errorf("symbol table has %d bytes, expected a multiple of %d", len(b), size)
	}
	return nil
}

// sectionIndex resolves SHN_XINDEX by the table of SHT_SYMTAB_SHNDX.
func sectionIndex(h *header, shndx uint16, indexes []byte, symbol int) uint32 {
	if shndx == uint16(elf.SHN_XINDEX) {
		if b, ok := slice(indexes, 4*uint64(symbol), 4); ok {
			return h.order.Uint32(b)
		}
	}
	return uint32(shndx)
}

// extendedIndexes returns the SHT_SYMTAB_SHNDX table of a symbol table; nil
// when there is none.
func (o *Object) extendedIndexes(symtab *Section) []byte {
	o.indexesOnce.Do(func() {
		o.indexes = make(map[uint32]*Section)
		for _, s := range o.sections {
			if s.Type == elf.SHT_SYMTAB_SHNDX && o.indexes[s.Link] == nil {
				o.indexes[s.Link] = s
			}
		}
	})
	s := o.indexes[uint32(symtab.Index)]
	if s == nil {
		return nil
	}
	b, err := s.raw()
	if err != nil {
		return nil
	}
	return b
}

// symbolValues has the values of symbols by number, for relocations.
type symbolValues struct {
	o       *Object
	b       []byte
	indexes []byte
	names   []byte // of the string table; nil where it cannot be read
}

func (o *Object) symbolValues(section uint32) (v symbolValues, err error) {
	if section == 0 {
		return symbolValues{o: o}, nil // all symbols are number 0
	}
	if uint64(section) >= uint64(len(o.sections)) {
		return v, fmt.Errorf("symbol table is section %d of %d", section, len(o.sections))
	}
	s := o.sections[section]
	if s.Type != elf.SHT_SYMTAB && s.Type != elf.SHT_DYNSYM {
		return v, fmt.Errorf("symbol table, section %s (%d), has type %d, expected %d", s.Name, section, s.Type, elf.SHT_SYMTAB)
	}
	b, err := s.raw()
	if err != nil {
		return v, fmt.Errorf("symbol table, section %s (%d): %w", s.Name, section, err)
	}
	var names []byte
	if uint64(s.Link) < uint64(len(o.sections)) {
		names, _ = o.sections[s.Link].raw()
	}
	return symbolValues{o, b, o.extendedIndexes(s), names}, nil
}

// at returns S. An undefined symbol is 0, as a weak one is when linked.
func (v symbolValues) at(n uint64) (uint64, error) {
	index, value, err := v.get(n)
	if index != 0 && err == nil {
		if v.o.laidOut {
			index = v.named(n, index)
		}
		value += v.o.sections[index].Address
	}
	return value, err
}

// named returns the section of a symbol: the section with its name, where the symbol is in a section
// without code and has the name of one with code; see References.
func (v symbolValues) named(n uint64, index uint32) uint32 {
	o := v.o
	if o.sections[index].Flags&elf.SHF_EXECINSTR != 0 {
		return index
	}
	o.codeOnce.Do(func() { o.code = o.codeByName() })
	if code := o.code[v.name(n)]; code > 0 {
		return uint32(code)
	}
	return index
}

// section returns the index of a symbol's section; 0 where it is in none.
func (v symbolValues) section(n uint64) (uint32, error) {
	index, _, err := v.get(n)
	return index, err
}

// name returns the name of a symbol that get knows; "" where it has none.
func (v symbolValues) name(n uint64) string {
	size := uint64(v.o.header.symbolSize())
	raw := v.o.header.symbol(v.b[n*size : n*size+size])
	if uint64(raw.name) >= uint64(len(v.names)) {
		return ""
	}
	b := v.names[raw.name:]
	end := bytes.IndexByte(b[:min(len(b), maxSectionName)], 0)
	if end < 0 {
		return ""
	}
	return string(b[:end])
}

// maxSectionName bounds the names of symbols that are compared with names of sections.
const maxSectionName = 1024

// get returns a symbol's section, 0 where it is in none, and its value in it.
func (v symbolValues) get(n uint64) (section uint32, value uint64, err error) {
	if n == 0 {
		return 0, 0, nil
	}
	h := &v.o.header
	size := uint64(h.symbolSize())
	if n >= uint64(len(v.b))/size {
		return 0, 0, fmt.Errorf("symbol %d of %d", n, uint64(len(v.b))/size)
	}
	raw := h.symbol(v.b[n*size : n*size+size])
	switch {
	case elf.SectionIndex(raw.shndx) == elf.SHN_UNDEF, elf.SectionIndex(raw.shndx) == elf.SHN_COMMON:
		return 0, 0, nil
	case elf.SectionIndex(raw.shndx) == elf.SHN_ABS:
		return 0, raw.value, nil
	}
	index := sectionIndex(h, raw.shndx, v.indexes, int(n))
	if uint64(index) >= uint64(len(v.o.sections)) {
		return 0, 0, fmt.Errorf("symbol %d is in section %d of %d", n, index, len(v.o.sections))
	}
	return index, raw.value, nil
}
