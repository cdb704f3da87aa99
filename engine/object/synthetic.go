// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"slices"
	"strconv"
)

// SyntheticSections returns the sections of a file; where it has no section headers, such as a file
// that was read from the memory it was loaded to, they are made of the program headers, with the
// usual names: the null section, .note, .dynsym, .dynstr, .dynamic, and the rest of each PT_LOAD
// behind those as .text, .data or .rodata. Of several with one name the others have a number
// behind it.
func (o *Object) SyntheticSections() []*Section {
	o.syntheticOnce.Do(func() {
		if o.synthetic = o.sections; len(o.sections) == 0 && !o.foreign {
			// Parts of a file that is cut are left out.
			_ = Guard(func() error { o.synthetic = o.makeSynthetic(); return nil })
		}
	})
	return o.synthetic
}

// SyntheticSection is Section among SyntheticSections.
func (o *Object) SyntheticSection(name string) *Section {
	if len(o.sections) > 0 {
		return o.Section(name)
	}
	for _, s := range o.SyntheticSections() {
		if s.Name == name && s.Type != elf.SHT_NULL {
			return s
		}
	}
	return nil
}

func (o *Object) makeSynthetic() []*Section {
	list := o.syntheticTables()
	slices.SortStableFunc(list, func(a, b *Section) int { return cmp.Compare(a.Address, b.Address) })
	for _, s := range o.byStart {
		start := s.Address
		for _, t := range list {
			if t.Address-s.Address < s.MemSize {
				start = max(start, min(t.Address+t.Size, s.Address+s.FileSize))
			}
		}
		name, flags := ".rodata", elf.SHF_ALLOC
		switch {
		case s.Flags&elf.PF_X != 0:
			name, flags = ".text", flags|elf.SHF_EXECINSTR
		case s.Flags&elf.PF_W != 0:
			name, flags = ".data", flags|elf.SHF_WRITE
		}
		if start >= s.Address+s.FileSize {
			continue
		}
		// A segment may have more bytes in the file than in memory, and another one may lie over it.
		if section := o.newSynthetic(name, elf.SHT_PROGBITS, flags, start, s.Address+s.FileSize-start); section != nil {
			list = append(list, section)
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

// syntheticTables returns the sections of notes and of dynamic linking.
func (o *Object) syntheticTables() (list []*Section) {
	add := func(name string, typ elf.SectionType, address, size uint64) {
		if s := o.newSynthetic(name, typ, elf.SHF_ALLOC, address, size); s != nil {
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

// newSynthetic returns a section of the bytes of the file at a virtual address; nil where it does not
// have them.
func (o *Object) newSynthetic(name string, typ elf.SectionType, flags elf.SectionFlag, address, size uint64) *Section {
	segment := o.segmentAt(address)
	if segment == nil || size == 0 || address-segment.Address >= segment.FileSize || size > segment.FileSize-(address-segment.Address) {
		return nil
	}
	return &Section{Name: name, Type: typ, Flags: flags, Address: address, Offset: segment.Offset + (address - segment.Address), Size: size, object: o}
}

// CodeSection returns the index among SyntheticSections of the section of code that has an address;
// 0 where none has.
func (o *Object) CodeSection(address uint64) uint32 {
	for i, s := range o.SyntheticSections() {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Flags&elf.SHF_ALLOC != 0 && address-s.Address < s.Size {
			return uint32(i) //nolint:gosec // ELF counts sections in 32 bits
		}
	}
	return 0
}
