// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// ErrNoBytes means that the file has no bytes for an address.
var ErrNoBytes = errors.New("the file has no bytes there")

// Segment is a part of a file that is mapped as one (LC_SEGMENT_64).
type Segment struct {
	Name         string
	Address      uint64 // virtual
	MemSize      uint64 // bytes in memory
	Offset       uint64 // in the file
	FileSize     uint64 // bytes in the file
	Protection   uint32 // initial: VM_PROT_*
	MaxProtected uint32 // the most that it may be
}

// Rights in Protection (VM_PROT_*).
const (
	CanRead    = 1
	CanWrite   = 2
	CanExecute = 4
)

// IsMapped reports whether the segment is in memory: __PAGEZERO only keeps addresses free, and __DWARF is
// for debuggers.
func (s *Segment) IsMapped() bool {
	return s.Name != "__DWARF" && (s.Protection != 0 || s.MaxProtected != 0 || s.FileSize != 0)
}

// Section is a section of a segment (section_64).
type Section struct {
	Index         int // from 1 on, as symbols count
	Name, Segment string
	Address, Size uint64
	Offset        uint64 // in the file; 0: it has no bytes there
	Align         uint32 // a power of two
	Relocations   uint32 // their offset in the file
	Count         uint32 // of relocations
	Flags         uint32
	Reserved1     uint32 // of stubs and pointers: their first entry among the indirect symbols
	Reserved2     uint32 // of stubs: their size
}

// Flags of sections: the type is the lowest byte.
const (
	sectionTypeMask   = 0xff
	typeZeroFill      = 0x1
	typeSymbolStubs   = 0x8
	typeBigZeroFill   = 0xc
	typeThreadZero    = 0x12
	hasInstructions   = 0x80000000 // S_ATTR_PURE_INSTRUCTIONS
	someInstructions  = 0x00000400 // S_ATTR_SOME_INSTRUCTIONS
	isDebugInfo       = 0x02000000 // S_ATTR_DEBUG
	segmentCommand    = 72
	sectionSize       = 80
	nameSize          = 16
	maxSectionsOfFile = 1 << 16
)

// HasBytes reports whether the file has the section's bytes.
func (s *Section) HasBytes() bool {
	switch s.Flags & sectionTypeMask {
	case typeZeroFill, typeBigZeroFill, typeThreadZero:
		return false
	}
	return s.Offset != 0
}

// IsCode reports whether the section has instructions.
func (s *Section) IsCode() bool { return s.Flags&(hasInstructions|someInstructions) != 0 }

// IsDebugInfo reports whether only debuggers read the section.
func (s *Section) IsDebugInfo() bool { return s.Flags&isDebugInfo != 0 || s.Segment == "__DWARF" }

// IsStubs reports whether the section has code that jumps to functions of other files.
func (s *Section) IsStubs() bool { return s.Flags&sectionTypeMask == typeSymbolStubs }

// contains reports whether an address is in the section.
func (s *Section) contains(address uint64) bool {
	return address-s.Address < s.Size && address >= s.Address
}

// takeSegment keeps a segment and its sections.
func (f *File) takeSegment(c *command) {
	if len(c.data) < segmentCommand {
		f.problem(fmt.Errorf("segment at offset %#x: %d bytes, expected at least %d", c.offset, len(c.data), segmentCommand))
		return
	}
	s := &Segment{
		Name: Name(c.data[8 : 8+nameSize]), Address: c.u64(24), MemSize: c.u64(32), Offset: c.u64(40), FileSize: c.u64(48),
		MaxProtected: c.u32(56), Protection: c.u32(60),
	}
	if s.Address+s.MemSize < s.Address {
		f.problem(fmt.Errorf("segment %s at offset %#x: address %#x, size %#x is no range", s.Name, c.offset, s.Address, s.MemSize))
		return
	}
	f.segments = append(f.segments, s)
	count, room := uint64(c.u32(64)), uint64(len(c.data)-segmentCommand)/sectionSize
	if count > room {
		f.problem(fmt.Errorf("segment %s at offset %#x: %d sections, expected at most %d in its command", s.Name, c.offset, count, room))
		count = room
	}
	for i := range count {
		if len(f.sections) == maxSectionsOfFile {
			f.problem(fmt.Errorf("more than %d sections: the others are not read", maxSectionsOfFile))
			return
		}
		f.takeSection(&command{offset: c.offset, data: c.data[segmentCommand+i*sectionSize:][:sectionSize]})
	}
}

func (f *File) takeSection(c *command) {
	s := &Section{
		Index: len(f.sections) + 1, Name: Name(c.data[:nameSize]), Segment: Name(c.data[nameSize : 2*nameSize]),
		Address: c.u64(32), Size: c.u64(40), Offset: uint64(c.u32(48)), Align: c.u32(52), Relocations: c.u32(56), Count: c.u32(60),
		Flags: c.u32(64), Reserved1: c.u32(68), Reserved2: c.u32(72),
	}
	if s.Address+s.Size < s.Address {
		f.problem(fmt.Errorf("section %s,%s: address %#x, size %#x is no range", s.Segment, s.Name, s.Address, s.Size))
		s.Size = 0
	}
	f.sections = append(f.sections, s)
}

// Segments returns all segments, in the file's order.
func (f *File) Segments() []*Segment { return f.segments }

// Sections returns the sections of all segments, in the file's order.
func (f *File) Sections() []*Section { return f.sections }

// Text returns the segment that the header is in; nil where there is none.
func (f *File) Text() *Segment {
	for _, s := range f.segments {
		if s.Name == "__TEXT" {
			return s
		}
	}
	return nil
}

// Section returns the first section of a name in a segment; nil where there is none. The one segment of
// an object file is nameless: its sections have the names of theirs.
func (f *File) Section(segment, name string) *Section {
	for _, s := range f.sections {
		if s.Name == name && s.Segment == segment {
			return s
		}
	}
	return nil
}

// SectionAt returns the section that has an address in memory; nil where none has. Of sections that overlap
// it is the one that begins first.
func (f *File) SectionAt(address uint64) *Section {
	f.sectionOnce.Do(f.sortSections)
	i := sort.Search(len(f.byAddress), func(i int) bool { return f.byAddress[i].start > address })
	if i == 0 || !f.byAddress[i-1].section.contains(address) {
		return nil
	}
	return f.byAddress[i-1].section
}

// sectionStart is the first address of a section that no section before it has.
type sectionStart struct {
	start   uint64
	section *Section
}

// sortSections sorts the sections in memory by address.
func (f *File) sortSections() {
	list := slices.DeleteFunc(slices.Clone(f.sections), func(s *Section) bool { return s.IsDebugInfo() || s.Size == 0 })
	slices.SortStableFunc(list, func(a, b *Section) int { return cmp.Compare(a.Address, b.Address) })
	end := uint64(0)
	for _, s := range list {
		if start := max(s.Address, end); start-s.Address < s.Size {
			f.byAddress = append(f.byAddress, sectionStart{start, s})
			end = s.Address + s.Size
		}
	}
}

// Data returns the bytes of a section, which alias the file.
func (f *File) Data(s *Section) ([]byte, error) {
	if !s.HasBytes() {
		return nil, fmt.Errorf("%s: section %s,%s: %w", f.name, s.Segment, s.Name, ErrNoBytes)
	}
	return f.bytes(place{s.Offset, s.Size}, "section "+s.Segment+","+s.Name)
}

// Bytes returns the n bytes at a virtual address, which alias the file. ErrNoBytes where one of them is
// missing.
func (f *File) Bytes(address, n uint64) ([]byte, error) {
	i, ok := slices.BinarySearchFunc(f.mapped, address, func(s *Segment, address uint64) int { return cmp.Compare(s.Address, address) })
	if !ok {
		i--
	}
	if i < 0 || address-f.mapped[i].Address >= f.mapped[i].MemSize {
		return nil, fmt.Errorf("%s: address %#x is in no segment: %w", f.name, address, ErrNoBytes)
	}
	s := f.mapped[i]
	skip := address - s.Address
	if skip > s.FileSize || n > s.FileSize-skip || s.Offset > uint64(len(f.data)) || skip+n > uint64(len(f.data))-s.Offset {
		return nil, fmt.Errorf("%s: segment %s: %d bytes at address %#x: %w", f.name, s.Name, n, address, ErrNoBytes)
	}
	if f.Readable(s.Offset+skip, n) < n {
		return nil, fmt.Errorf("%s: segment %s: %d bytes at address %#x: %w", f.name, s.Name, n, address, ErrEncrypted)
	}
	return f.data[s.Offset+skip:][:n], nil
}
