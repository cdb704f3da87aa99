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

// relocations are the types that SetRelocations gave.
type relocations struct {
	table  []reloc.Entry
	byType map[uint32]reloc.Entry
}

// SetRelocations gives relocation types of the machine, which sections of a
// relocatable object are relocated by, before those that its System V supplement
// has. Of an object that has the same ones already it changes nothing, so that each
// user of a shared object may give them; with others, what Data made so far is made
// again when it is next asked for. What Data has given stays as it is.
func (o *Object) SetRelocations(table []reloc.Entry) {
	if o.header.typ != elf.ET_REL {
		return // nothing is relocated
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
func (o *Object) relocation(typ uint32, by *relocations) (r reloc.Entry, ok bool) {
	if by != nil {
		r, ok = by.byType[typ]
	}
	if !ok {
		r, ok = machineRelocations[elf.Machine(o.header.machine)][typ]
	}
	return r, ok
}

// relocate applies the relocations of a section of a relocatable object to its
// contents. Owned says that b may be written to, and whether what is returned is no
// part of the file.
func (s *Section) relocate(b []byte, owned bool, by *relocations) ([]byte, bool, error) {
	o := s.object
	if o.header.typ != elf.ET_REL || s.Flags&elf.SHF_EXECINSTR != 0 || !relocatable(s.Type) {
		return b, owned, nil
	}
	var total uint64
	for _, from := range o.relocated[uint32(s.Index)] {
		// Many sections of relocations could be the same bytes.
		limit := min(uint64(len(o.data)), maxRelocations)
		if total += min(from.Size, limit+1); total > limit {
			return nil, false, fmt.Errorf("relocations of section %s (%d): offset %#x: all of them are more than %d bytes", from.Name, from.Index, from.Offset, limit)
		}
		if !owned {
			if err := o.grow(uint64(len(b))); err != nil {
				return nil, false, err
			}
			b = append([]byte(nil), b...)
			owned = true
		}
		if err := s.applyAll(from, b, by); err != nil {
			return nil, false, fmt.Errorf("relocations of section %s (%d): %w", from.Name, from.Index, err)
		}
	}
	return b, owned, nil
}

// relocatable says whether contents of a type hold addresses. Tables of the
// link editor itself refer by index.
func relocatable(t elf.SectionType) bool {
	switch t {
	case elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_RELA, elf.SHT_REL, elf.SHT_GROUP, elf.SHT_SYMTAB_SHNDX:
		return false
	}
	return true
}

// A relocationEntry is an entry of a relocation table, in the file's terms.
type relocationEntry struct {
	at     uint64 // where it is in the file, for messages
	place  uint64 // offset in the section that it is for
	typ    uint32
	symbol uint64
	addend uint64
}

// A relocationTable reads the entries of an SHT_REL or SHT_RELA section.
type relocationTable struct {
	from    *Section
	h       *header
	b       []byte
	size    int  // of an entry
	addends bool // SHT_RELA
}

func (o *Object) relocationTable(from *Section) (t relocationTable, err error) {
	t = relocationTable{from: from, h: &o.header, addends: from.Type == elf.SHT_RELA}
	if t.b, err = from.raw(); err != nil {
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
	if from.EntrySize != 0 && from.EntrySize != uint64(t.size) {
		return t, fmt.Errorf("entries of %d bytes, expected %d", from.EntrySize, t.size)
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
	e := relocationEntry{at: t.from.Offset + uint64(i*t.size), place: f.word(0, 0), typ: uint32(info), symbol: info >> 32}
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
func (s *Section) applyAll(from *Section, b []byte, by *relocations) error {
	o := s.object
	h := &o.header
	table, err := o.relocationTable(from)
	if err != nil {
		return err
	}
	symbols, err := o.symbolValues(from.Link)
	if err != nil {
		return err
	}
	for i := range table.len() {
		e := table.at(i)
		r, ok := o.relocation(e.typ, by)
		if !ok {
			return fmt.Errorf("offset %#x: relocation type %d of machine %d is not known", e.at, e.typ, h.machine)
		}
		if r.Kind == reloc.None {
			continue
		}
		f, err := s.relocatedField(&e, &r, b)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", e.at, err)
		}
		value, err := symbols.at(e.symbol)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", e.at, err)
		}
		if err := f.apply(&r, value+e.addend, s.Address+e.place, !table.addends); err != nil {
			return fmt.Errorf("offset %#x: relocation type %d: %w", e.at, e.typ, err)
		}
	}
	return nil
}

// relocatedField is the field of b, the contents of s, that a relocation is for.
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

// References returns the places of a section that refer to sections of the same
// object, sorted by offset, of several relocations of one place the first. In a
// relocatable object every section may begin at address 0: a relocated number
// alone does not say which section it is an address of. Undefined and absolute
// symbols are in no section, and left out; so is what needs no symbol, and the
// distance between two places of one section. There
// are none where the object is not relocatable.
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
	by := o.relocations.Load()
	total := uint64(0)
	var subtracted []Reference
	for _, from := range o.relocated[uint32(s.Index)] {
		limit := min(uint64(len(o.data)), maxRelocations)
		if total += min(from.Size, limit+1); total > limit {
			return nil, fmt.Errorf("relocations of section %s (%d): offset %#x: all of them are more than %d bytes", from.Name, from.Index, from.Offset, limit)
		}
		table, err := o.relocationTable(from)
		if err != nil {
			return nil, fmt.Errorf("relocations of section %s (%d): %w", from.Name, from.Index, err)
		}
		symbols, err := o.symbolValues(from.Link)
		if err != nil {
			return nil, fmt.Errorf("relocations of section %s (%d): %w", from.Name, from.Index, err)
		}
		for i := range table.len() {
			e := table.at(i)
			section, err := symbols.section(e.symbol)
			if err != nil {
				return nil, fmt.Errorf("relocations of section %s (%d): offset %#x: %w", from.Name, from.Index, e.at, err)
			}
			if section != 0 {
				section = symbols.named(e.symbol, section)
			}
			switch r, _ := o.relocation(e.typ, by); {
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
	// The distance between two places of a section is no address of it.
	slices.SortStableFunc(subtracted, byOffset)
	return slices.DeleteFunc(list, func(r Reference) bool {
		i, found := slices.BinarySearchFunc(subtracted, r, byOffset)
		return found && subtracted[i].Section == r.Section
	}), nil
}
