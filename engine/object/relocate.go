// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk/reloc"
)

// relocations are the types that SetRelocations set.
type relocations struct {
	table  []reloc.Entry
	byType map[uint32]reloc.Entry
}

// SetRelocations sets relocation types of the machine, by which sections of a relocatable object
// are relocated; types of the machine's System V supplement come after them. Setting the same
// types again changes nothing, so that each user of a shared object may set them; with others,
// contents are made again by the next call of Data. Bytes that Data returned stay as they are.
func (o *Object) SetRelocations(table []reloc.Entry) {
	if !o.relocatable {
		return // it has no relocations
	}
	for {
		old := o.relocations.Load()
		if old != nil && slices.Equal(old.table, table) || old == nil && len(table) == 0 {
			return
		}
		r := &relocations{slices.Clone(table), make(map[uint32]reloc.Entry, len(table))}
		for _, t := range table {
			r.byType[t.Type] = t
		}
		if o.relocations.CompareAndSwap(old, r) {
			o.unpacked.Store(0)
			return
		}
	}
}

// relocation describes a relocation type.
func (o *Object) relocation(typ uint32, types *relocations) (r reloc.Entry, ok bool) {
	if types != nil {
		r, ok = types.byType[typ]
	}
	if !ok {
		r, ok = machineRelocations[elf.Machine(o.header.machine)][typ]
	}
	return r, ok
}

// relocate applies the relocations of a section of a relocatable object to its
// contents. owned: b may be written to; the same is returned for the result, which is then no part
// of the file.
func (s *Section) relocate(b []byte, owned bool, types *relocations) ([]byte, bool, error) {
	o := s.object
	if !o.relocatable || s.Flags&elf.SHF_EXECINSTR != 0 || !relocatable(s.Type) || o.header.typ != elf.ET_REL && s.Flags&elf.SHF_ALLOC != 0 {
		return b, owned, nil
	}
	var total uint64
	for _, relocations := range o.relocated[uint32(s.Index)] {
		// Many sections of relocations could be the same bytes.
		limit := min(uint64(len(o.data)), maxRelocations)
		if total += min(relocations.Size, limit+1); total > limit {
			return nil, false, fmt.Errorf("relocations of section %s (%d): offset %#x: all of them are more than %d bytes", relocations.Name, relocations.Index, relocations.Offset, limit)
		}
		if !owned {
			if err := o.grow(uint64(len(b))); err != nil {
				return nil, false, err
			}
			b = append([]byte(nil), b...)
			owned = true
		}
		if err := s.applyAll(relocations, b, types); err != nil {
			return nil, false, fmt.Errorf("relocations of section %s (%d): %w", relocations.Name, relocations.Index, err)
		}
	}
	return b, owned, nil
}

// relocatable reports whether contents of a type have addresses. Tables of the link editor itself
// have indexes.
func relocatable(t elf.SectionType) bool {
	switch t {
	case elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_RELA, elf.SHT_REL, elf.SHT_GROUP, elf.SHT_SYMTAB_SHNDX:
		return false
	}
	return true
}

// A relocationEntry is an entry of a relocation table, in the file's terms.
type relocationEntry struct {
	offset uint64 // where it is in the file, for messages
	place  uint64 // offset in the section that it is for
	typ    uint32
	symbol uint64
	addend uint64
}

// A relocationTable reads the entries of an SHT_REL or SHT_RELA section.
type relocationTable struct {
	section *Section
	h       *header
	b       []byte
	size    int  // of an entry
	addends bool // SHT_RELA
}

func (o *Object) relocationTable(section *Section) (t relocationTable, err error) {
	t = relocationTable{section: section, h: &o.header, addends: section.Type == elf.SHT_RELA}
	if t.b, err = section.raw(); err != nil {
		return t, err
	}
	t.size = 8
	switch {
	case t.h.wide && t.addends:
		t.size = 24
	case t.h.wide:
		t.size = 16
	case t.addends:
		t.size = 12
	}
	if section.EntrySize != 0 && section.EntrySize != uint64(t.size) {
		return t, fmt.Errorf("entries of %d bytes, expected %d", section.EntrySize, t.size)
	}
	if len(t.b)%t.size != 0 {
		return t, fmt.Errorf("%d bytes, expected a multiple of %d", len(t.b), t.size)
	}
	return t, nil
}

func (t *relocationTable) len() int { return len(t.b) / t.size }

func (t *relocationTable) at(i int) relocationEntry {
	b := t.b[i*t.size : (i+1)*t.size]
	f := fields{b, t.h.order, t.h.wide}
	info := f.word(4, 8)
	e := relocationEntry{offset: t.section.Offset + uint64(i*t.size), place: f.word(0, 0), typ: uint32(info), symbol: info >> 32}
	switch {
	case !t.h.wide:
		e.typ, e.symbol = uint32(info&0xff), info>>8
	case t.h.machine == uint16(elf.EM_MIPS) && t.h.order == binary.LittleEndian:
		// The symbol comes first, and up to three types follow, the last one's
		// byte first (64-bit ELF Object File Specification of MIPS, 2.9).
		e.typ, e.symbol = uint32(info>>56)|uint32(info>>48&0xff)<<8|uint32(info>>40&0xff)<<16, uint64(uint32(info))
	}
	switch {
	case t.addends && t.h.wide:
		e.addend = t.h.order.Uint64(b[16:])
	case t.addends:
		e.addend = uint64(int64(int32(t.h.order.Uint32(b[8:]))))
	}
	return e
}

// applyAll applies the relocations in section from to b, the contents of s.
func (s *Section) applyAll(section *Section, b []byte, types *relocations) error {
	o := s.object
	h := &o.header
	table, err := o.relocationTable(section)
	if err != nil {
		return err
	}
	symbols, err := o.symbolValues(section.Link)
	if err != nil {
		return err
	}
	for i := range table.len() {
		e := table.at(i)
		r, ok := o.relocation(e.typ, types)
		if !ok {
			return fmt.Errorf("offset %#x: relocation type %d of machine %d is not known", e.offset, e.typ, h.machine)
		}
		if r.Kind == reloc.None {
			continue
		}
		f, err := s.relocatedField(&e, &r, b)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", e.offset, err)
		}
		value, err := symbols.at(e.symbol)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", e.offset, err)
		}
		if err := f.apply(&r, value+e.addend, s.Address+e.place, !table.addends); err != nil {
			return fmt.Errorf("offset %#x: relocation type %d: %w", e.offset, e.typ, err)
		}
	}
	return nil
}

// relocatedField returns the field of b, the contents of s, that a relocation changes.
func (s *Section) relocatedField(e *relocationEntry, r *reloc.Entry, b []byte) (relocatedField, error) {
	h := &s.object.header
	size := uint64(r.Size)
	if r.Field == reloc.ULEB128 {
		rest, _ := slice(b, e.place, uint64(len(b))-min(e.place, uint64(len(b))))
		if size = lengthLEB128(rest); size == 0 {
			return relocatedField{}, fmt.Errorf("place %#x: no LEB128 number of at most %d bytes in the %d bytes of the section", e.place, maxLEB128, len(b))
		}
	}
	place, ok := slice(b, e.place, size)
	if !ok {
		return relocatedField{}, fmt.Errorf("place %#x is not in the %d bytes of the section", e.place, len(b))
	}
	return relocatedField{fields{place, h.order, h.wide}, r.Field}, nil
}

// A Reference is a place of a relocatable object's section that is relocated.
type Reference struct {
	Offset  uint64 // in the section that has the place
	Section uint32 // index of the section that the symbol is in
}

// References returns the places of a section that refer to sections of the same object, sorted by
// offset; of several relocations of one place the first. In a relocatable object every section may
// begin at address 0: a relocated number alone does not identify the section of the address.
// Undefined and absolute symbols, which are in no section, are left out; so are relocations without
// a symbol, and distances between two places of one section. There are none where the object is
// not relocatable.
//
// Intel's compilers for their GPUs give the symbol of a section of code the
// name of that section, and the index of the section that refers to it: such a
// symbol is taken to be in the section that it names.
func (s *Section) References() (list []Reference, err error) {
	o := s.object
	err = Guard(func() (err error) {
		list, err = s.references()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: section %s (%d): %w", o.name, s.Name, s.Index, err)
	}
	return list, nil
}

// codeByName returns the indexes of the sections of code by name; -1 where
// several have it.
func (o *Object) codeByName() map[string]int {
	code := make(map[string]int)
	for _, s := range o.sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		if _, several := code[s.Name]; several {
			code[s.Name] = -1
		} else {
			code[s.Name] = s.Index
		}
	}
	return code
}

func (s *Section) references() (list []Reference, err error) {
	o := s.object
	types := o.relocations.Load()
	total := uint64(0)
	var subtracted []Reference
	for _, relocations := range o.relocated[uint32(s.Index)] {
		limit := min(uint64(len(o.data)), maxRelocations)
		if total += min(relocations.Size, limit+1); total > limit {
			return nil, fmt.Errorf("relocations of section %s (%d): offset %#x: all of them are more than %d bytes", relocations.Name, relocations.Index, relocations.Offset, limit)
		}
		table, err := o.relocationTable(relocations)
		if err != nil {
			return nil, fmt.Errorf("relocations of section %s (%d): %w", relocations.Name, relocations.Index, err)
		}
		symbols, err := o.symbolValues(relocations.Link)
		if err != nil {
			return nil, fmt.Errorf("relocations of section %s (%d): %w", relocations.Name, relocations.Index, err)
		}
		for i := range table.len() {
			e := table.at(i)
			section, err := symbols.section(e.symbol)
			if err != nil {
				return nil, fmt.Errorf("relocations of section %s (%d): offset %#x: %w", relocations.Name, relocations.Index, e.offset, err)
			}
			if section != 0 {
				section = symbols.named(e.symbol, section)
			}
			switch r, _ := o.relocation(e.typ, types); {
			case section == 0 || r.Kind == reloc.None:
			case r.Kind == reloc.Subtract:
				subtracted = append(subtracted, Reference{e.place, section})
			default:
				list = append(list, Reference{e.place, section})
			}
		}
	}
	byOffset := func(a, b Reference) int { return cmp.Compare(a.Offset, b.Offset) }
	slices.SortStableFunc(list, byOffset)
	list = slices.CompactFunc(list, func(a, b Reference) bool { return a.Offset == b.Offset })
	// The distance between two places of a section is not an address.
	slices.SortStableFunc(subtracted, byOffset)
	return slices.DeleteFunc(list, func(r Reference) bool {
		i, found := slices.BinarySearchFunc(subtracted, r, byOffset)
		return found && subtracted[i].Section == r.Section
	}), nil
}
