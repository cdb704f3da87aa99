// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"slices"
	"strconv"
)

// StandIns are the sections of a file for whoever needs sections: its own, or, of a file
// without section headers, such as one that was read from the memory it was loaded
// to, what its program headers lead to under the usual names: the null section,
// .note, .dynsym, .dynstr, .dynamic, and of each PT_LOAD what lies behind those as
// .text, .data or .rodata. Of several with one name the others have a number
// behind it.
func (o *Object) StandIns() []*Section {
	o.standInsOnce.Do(func() {
		if o.standIns = o.sections; len(o.sections) == 0 && !o.foreign {
			// What is in a file that is cut is left out.
			_ = Guard(func() error { o.standIns = o.makeStandIns(); return nil })
		}
	})
	return o.standIns
}

// StandIn is Section among StandIns.
func (o *Object) StandIn(name string) *Section {
	if len(o.sections) > 0 {
		return o.Section(name)
	}
	for _, s := range o.StandIns() {
		if s.Name == name && s.Type != elf.SHT_NULL {
			return s
		}
	}
	return nil
}

func (o *Object) makeStandIns() []*Section {
	list := o.tableStandIns()
	slices.SortStableFunc(list, func(a, b *Section) int { return cmp.Compare(a.Address, b.Address) })
	for _, s := range o.byStart {
		from := s.Address
		for _, t := range list {
			if t.Address-s.Address < s.MemSize {
				from = max(from, min(t.Address+t.Size, s.Address+s.FileSize))
			}
		}
		name, flags := ".rodata", elf.SHF_ALLOC
		switch {
		case s.Flags&elf.PF_X != 0:
			name, flags = ".text", flags|elf.SHF_EXECINSTR
		case s.Flags&elf.PF_W != 0:
			name, flags = ".data", flags|elf.SHF_WRITE
		}
		if from >= s.Address+s.FileSize {
			continue
		}
		// A segment may have more bytes in the file than in memory, and another one may lie over it.
		if of := o.standIn(name, elf.SHT_PROGBITS, flags, from, s.Address+s.FileSize-from); of != nil {
			list = append(list, of)
		}
	}
	all := []*Section{{object: o}}
	names := map[string]int{}
	for _, s := range list {
		if names[s.Name]++; names[s.Name] > 1 {
			s.Name += "." + strconv.Itoa(names[s.Name])
		}
		s.Index = len(all)
		all = append(all, s)
	}
	return all
}

// tableStandIns are those of notes and of dynamic linking.
func (o *Object) tableStandIns() (list []*Section) {
	add := func(name string, typ elf.SectionType, address, size uint64) {
		if s := o.standIn(name, typ, elf.SHF_ALLOC, address, size); s != nil {
			list = append(list, s)
		}
	}
	for _, p := range o.programs {
		switch p.Type {
		case elf.PT_NOTE:
			add(".note", elf.SHT_NOTE, p.Address, p.FileSize)
		case elf.PT_DYNAMIC:
			add(".dynamic", elf.SHT_DYNAMIC, p.Address, p.FileSize)
		}
	}
	tags, err := o.dynamicTags()
	if err != nil {
		return list
	}
	if n, err := o.countDynamicSymbols(tags); err == nil && n > 0 && n <= maxSymbols {
		add(".dynsym", elf.SHT_DYNSYM, tags[elf.DT_SYMTAB], n*uint64(o.header.symbolSize()))
		add(".dynstr", elf.SHT_STRTAB, tags[elf.DT_STRTAB], tags[elf.DT_STRSZ])
	}
	return list
}

// standIn is a section of bytes that the file has at a virtual address; nil where it
// does not have them.
func (o *Object) standIn(name string, typ elf.SectionType, flags elf.SectionFlag, address, size uint64) *Section {
	in := o.segmentAt(address)
	if in == nil || size == 0 || address-in.Address >= in.FileSize || size > in.FileSize-(address-in.Address) {
		return nil
	}
	return &Section{Name: name, Type: typ, Flags: flags, Address: address, Offset: in.Offset + (address - in.Address), Size: size, object: o}
}
