// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
)

// Bounds on the claims of a file, far above real files. A sparse file can have any size at no
// cost, so the size of the file alone bounds neither memory nor time.
const (
	maxPrograms        = 1 << 22
	maxSections        = 1 << 20
	maxSymbols         = 1 << 25
	maxNotes           = 1 << 22
	maxSectionNames    = 1 << 28  // bytes
	maxSymbolNames     = 1 << 30  // bytes
	maxRelocations     = 1 << 32  // bytes, of one section
	maxPackedMiniDebug = 1 << 28  // bytes
	maxUnpacked        = 1 << 34  // bytes, of all sections together
	maxChecked         = 1 << 34  // bytes that a CRC-32 is made of
	maxBuildID         = 64       // bytes
	maxDictionary      = 64 << 20 // bytes, as `xz -9` takes
)

// pnXNUM in e_phnum: the number of program headers is in sh_info of
// section header 0.
const pnXNUM = 0xffff

// A Program is a program header.
type Program struct {
	Type            elf.ProgType
	Flags           elf.ProgFlag
	Offset          uint64 // in the file
	Address         uint64 // virtual
	PhysicalAddress uint64
	FileSize        uint64 // bytes in the file
	MemSize         uint64 // bytes in memory
	Align           uint64
}

// header is an ELF header, with the counts as they really are.
type header struct {
	class      elf.Class
	order      binary.ByteOrder
	osabi      uint8
	abiVersion uint8
	typ        elf.Type
	machine    uint16
	flags      uint32
	entry      uint64
	phoff      uint64
	phentsize  uint64
	phnum      uint64
	shoff      uint64
	shentsize  uint64
	shnum      uint64
	shstrndx   uint64
	wide       bool // 64-bit
	headerSize uint64
}

// fields reads integers out of the bytes of one record of a known size.
type fields struct {
	b     []byte
	order binary.ByteOrder
	wide  bool
}

func (f fields) u16(offset int) uint16 { return f.order.Uint16(f.b[offset:]) }
func (f fields) u32(offset int) uint32 { return f.order.Uint32(f.b[offset:]) }
func (f fields) u64(offset int) uint64 { return f.order.Uint64(f.b[offset:]) }

// word reads an address-sized field that lies at narrow in the 32-bit record
// and at wide in the 64-bit one.
func (f fields) word(narrow, wide int) uint64 {
	if f.wide {
		return f.u64(wide)
	}
	return uint64(f.u32(narrow))
}

// half reads a 32-bit field with an offset for each class.
func (f fields) half(narrow, wide int) uint32 {
	if f.wide {
		return f.u32(wide)
	}
	return f.u32(narrow)
}

// slice returns n bytes of data at offset; ok is false where they are not there.
func slice(data []byte, offset, n uint64) (b []byte, ok bool) {
	size := uint64(len(data))
	if offset > size || n > size-offset {
		return nil, false
	}
	return data[offset : offset+n : offset+n], true
}

// entries returns n entries of size bytes each; ok is false where they are not there.
func entries(data []byte, offset, n, size uint64) (b []byte, ok bool) {
	if size != 0 && n > math.MaxInt64/size {
		return nil, false
	}
	return slice(data, offset, n*size)
}

// parseHeader reads the ELF header, without the extended counts.
func parseHeader(data []byte) (h header, err error) {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return h, ErrNotELF
	}
	if len(data) < elf.EI_NIDENT {
		return h, fmt.Errorf("%w: header cut after %d of %d identification bytes", ErrNotELF, len(data), elf.EI_NIDENT)
	}
	h.class = elf.Class(data[elf.EI_CLASS])
	var programSize, sectionSize uint64
	switch h.class {
	case elf.ELFCLASS32:
		h.headerSize, programSize, sectionSize = 52, 32, 40
	case elf.ELFCLASS64:
		h.wide, h.headerSize, programSize, sectionSize = true, 64, 56, 64
	default:
		return h, fmt.Errorf("offset %#x: ELF class %d, expected 1 or 2", elf.EI_CLASS, data[elf.EI_CLASS])
	}
	switch data[elf.EI_DATA] {
	case byte(elf.ELFDATA2LSB):
		h.order = binary.LittleEndian
	case byte(elf.ELFDATA2MSB):
		h.order = binary.BigEndian
	default:
		return h, fmt.Errorf("offset %#x: ELF byte order %d, expected 1 or 2", elf.EI_DATA, data[elf.EI_DATA])
	}
	if v := data[elf.EI_VERSION]; v != byte(elf.EV_CURRENT) {
		return h, fmt.Errorf("offset %#x: ELF version %d, expected 1", elf.EI_VERSION, v)
	}
	if uint64(len(data)) < h.headerSize {
		return h, fmt.Errorf("ELF header cut: %d bytes, expected %d", len(data), h.headerSize)
	}
	f := fields{data[:h.headerSize], h.order, h.wide}
	h.osabi = data[elf.EI_OSABI]
	h.abiVersion = data[elf.EI_ABIVERSION]
	h.typ = elf.Type(f.u16(16))
	h.machine = f.u16(18)
	h.entry = f.word(24, 24)
	h.phoff = f.word(28, 32)
	h.shoff = f.word(32, 40)
	h.flags = f.half(36, 48)
	rest := 40 // e_ehsize; the fields after it have the same sizes in both classes
	if h.wide {
		rest = 52
	}
	h.phentsize = uint64(f.u16(rest + 2))
	h.phnum = uint64(f.u16(rest + 4))
	h.shentsize = uint64(f.u16(rest + 6))
	h.shnum = uint64(f.u16(rest + 8))
	h.shstrndx = uint64(f.u16(rest + 10))

	if h.phnum != 0 && h.phentsize < programSize {
		return h, fmt.Errorf("program headers of %d bytes, expected %d", h.phentsize, programSize)
	}
	if h.shoff != 0 && h.shentsize < sectionSize {
		// Nothing of a table of such entries can be trusted; the object can
		// still be used by its program headers.
		h.shentsize = 0
	}
	return h, nil
}

func (h *header) program(b []byte) Program {
	f := fields{b, h.order, h.wide}
	return Program{
		Type:            elf.ProgType(f.u32(0)),
		Flags:           elf.ProgFlag(f.half(24, 4)),
		Offset:          f.word(4, 8),
		Address:         f.word(8, 16),
		PhysicalAddress: f.word(12, 24),
		FileSize:        f.word(16, 32),
		MemSize:         f.word(20, 40),
		Align:           f.word(28, 48),
	}
}

// section fills s from a section header, without the name.
func (h *header) section(b []byte, s *Section) {
	f := fields{b, h.order, h.wide}
	s.Type = elf.SectionType(f.u32(4))
	s.Flags = elf.SectionFlag(f.word(8, 8))
	s.Address = f.word(12, 16)
	s.Offset = f.word(16, 24)
	s.Size = f.word(20, 32)
	s.Link = f.half(24, 40)
	s.Info = f.half(28, 44)
	s.Align = f.word(32, 48)
	s.EntrySize = f.word(36, 56)
}

// firstSection reads section header 0, which has the numbers that do not fit the ELF header.
func (h *header) firstSection(data []byte) (*Section, error) {
	if h.shoff == 0 {
		return nil, fmt.Errorf("there are no section headers")
	}
	if h.shentsize == 0 {
		return nil, fmt.Errorf("section headers are too small")
	}
	b, ok := slice(data, h.shoff, h.shentsize)
	if !ok {
		return nil, fmt.Errorf("section headers at offset %#x are not in the %d bytes of the file", h.shoff, len(data))
	}
	s := new(Section)
	h.section(b, s)
	if s.Type != elf.SHT_NULL {
		return nil, fmt.Errorf("offset %#x: section header 0 has type %#x, expected 0", h.shoff, uint32(s.Type))
	}
	return s, nil
}

// programs reads the program headers. A problem is an error that could be worked around.
func (h *header) programs(data []byte) (list []Program, problem string, err error) {
	if h.phoff == 0 || h.phnum == 0 {
		return nil, "", nil
	}
	n := h.phnum
	if n == pnXNUM {
		first, err := h.firstSection(data)
		switch {
		case err == nil && first.Info != 0:
			n = uint64(first.Info)
		case err != nil:
			// The kernel writes section header 0 at the end of a core, so one
			// that was cut has lost it. The bytes of the first segment follow
			// the program headers directly.
			counted, ok := h.countPrograms(data)
			if !ok {
				return nil, "", fmt.Errorf("e_phnum is PN_XNUM, but %w", err)
			}
			problem = fmt.Sprintf("e_phnum is PN_XNUM, but %v; %d program headers fit before the first segment", err, counted)
			n = counted
		}
	}
	if n > maxPrograms {
		return nil, "", fmt.Errorf("%d program headers, expected at most %d", n, maxPrograms)
	}
	b, ok := entries(data, h.phoff, n, h.phentsize)
	if !ok {
		return nil, "", fmt.Errorf("%d program headers at offset %#x are not in the %d bytes of the file", n, h.phoff, len(data))
	}
	list = make([]Program, n)
	for i := range list {
		list[i] = h.program(b[uint64(i)*h.phentsize:])
	}
	return list, problem, nil
}

// countPrograms finds how many program headers lie before the first segment's bytes.
func (h *header) countPrograms(data []byte) (n uint64, ok bool) {
	b, ok := slice(data, h.phoff, h.phentsize)
	if !ok {
		return 0, false
	}
	p := h.program(b)
	if p.FileSize == 0 || p.Offset <= h.phoff {
		return 0, false
	}
	n = (p.Offset - h.phoff) / h.phentsize
	return n, n >= pnXNUM
}

// sectionHeaders reads the section headers. Without section headers an object
// can still be used by its program headers, so an error in them is a problem.
func (h *header) sectionHeaders(data []byte) (list []Section, problem string) {
	if h.shoff == 0 {
		return nil, ""
	}
	first, err := h.firstSection(data)
	if err != nil {
		return nil, err.Error()
	}
	n := h.shnum
	if n == 0 {
		n = first.Size
	}
	names := h.shstrndx
	if names == uint64(elf.SHN_XINDEX) {
		names = uint64(first.Link)
	}
	if n == 0 {
		return nil, ""
	}
	if n > maxSections {
		return nil, fmt.Sprintf("%d section headers, expected at most %d", n, maxSections)
	}
	b, ok := entries(data, h.shoff, n, h.shentsize)
	if !ok {
		return nil, fmt.Sprintf("%d section headers at offset %#x are not in the %d bytes of the file", n, h.shoff, len(data))
	}
	list = make([]Section, n)
	nameOffsets := make([]uint32, n)
	for i := range list {
		record := b[uint64(i)*h.shentsize:]
		h.section(record, &list[i])
		list[i].Index = i
		nameOffsets[i] = h.order.Uint32(record)
	}
	if names == 0 {
		return list, ""
	}
	if names >= n {
		return list, fmt.Sprintf("section name table is section %d of %d", names, n)
	}
	table := &list[names]
	bytes, ok := slice(data, table.Offset, table.Size)
	if !ok || len(bytes) > maxSectionNames || table.Type != elf.SHT_STRTAB || table.Flags&elf.SHF_COMPRESSED != 0 {
		return list, fmt.Sprintf("section name table (section %d, type %d) at offset %#x, size %#x is not a string table in the %d bytes of the file",
			names, table.Type, table.Offset, table.Size, len(data))
	}
	strings := newStringTable(bytes)
	for i := range list {
		name, ok := strings.at(uint64(nameOffsets[i]))
		if !ok && problem == "" {
			problem = fmt.Sprintf("name of section %d at offset %#x of the section name table does not end in its %d bytes", i, nameOffsets[i], len(bytes))
		}
		list[i].Name = name
	}
	return list, problem
}
