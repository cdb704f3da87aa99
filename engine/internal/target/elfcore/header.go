// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/filekind"
	"github.com/unwindd/unwindd/engine/object"
)

// ErrNotCore means that a file is not an ELF core. An error that wraps it names the file's
// format if it is known.
var ErrNotCore = errors.New("not an ELF core")

// maxPrograms bounds the program headers of a core. Linux lets a process have
// any number of mappings (vm.max_map_count); the default is 65,530.
const maxPrograms = 1 << 22

// numbers is the encoding of numbers in a core.
type numbers struct {
	order binary.ByteOrder
	is64  bool // ELFCLASS64
}

// size is the size of an address and of a C long.
func (n numbers) size() int {
	if n.is64 {
		return 8
	}
	return 4
}

// word reads an address or a C long at the start of b.
func (n numbers) word(b []byte) uint64 {
	if n.is64 {
		return n.order.Uint64(b)
	}
	return uint64(n.order.Uint32(b))
}

// pick reads the word at one of two offsets, by the class.
func (n numbers) pick(b []byte, narrow, wide int) uint64 {
	if n.is64 {
		return n.order.Uint64(b[wide:])
	}
	return uint64(n.order.Uint32(b[narrow:]))
}

// offset returns the 32-bit or the 64-bit offset, by the class.
func (n numbers) offset(narrow, wide int) int {
	if n.is64 {
		return wide
	}
	return narrow
}

// mask truncates an address to the size of the address space.
func (n numbers) mask(address uint64) uint64 {
	if n.is64 {
		return address
	}
	return address & 0xffffffff
}

// program is a program header.
type program struct {
	typ      elf.ProgType
	flags    elf.ProgFlag
	offset   uint64
	address  uint64
	fileSize uint64
	memSize  uint64
	align    uint64
}

// programSize returns the size of a program header.
func (n numbers) programSize() uint64 { return uint64(n.offset(32, 56)) }

// program reads a program header (System V gABI, Program Header).
func (n numbers) program(b []byte) program {
	return program{
		typ:      elf.ProgType(n.order.Uint32(b)),
		flags:    elf.ProgFlag(n.order.Uint32(b[n.offset(24, 4):])),
		offset:   n.pick(b, 4, 8),
		address:  n.pick(b, 8, 16),
		fileSize: n.pick(b, 16, 32),
		memSize:  n.pick(b, 20, 40),
		align:    n.pick(b, 28, 48),
	}
}

// coreHeader has the members of a core's ELF header, and the program headers.
type coreHeader struct {
	numbers
	machine  uint16
	flags    uint32
	programs []program
}

// class returns the class of the core.
func (h *coreHeader) class() elf.Class {
	if h.is64 {
		return elf.ELFCLASS64
	}
	return elf.ELFCLASS32
}

// elfMachine returns the machine of the core's process.
func (h *coreHeader) elfMachine() object.ELFMachine {
	return object.NewELFMachine(h.machine, h.class(), h.order)
}

// arch returns the name of the architecture of the core's process.
func (h *coreHeader) arch() string { return object.ArchName(h.machine, h.class(), h.order) }

// notCore returns the error for data that is no core.
func notCore(data []byte) error {
	if kind := filekind.Of(data); kind.What != "" {
		return fmt.Errorf("%w: the file is %s", ErrNotCore, kind.What)
	}
	return fmt.Errorf("%w: offset 0x0: the file begins with %q, expected %q", ErrNotCore, data[:min(len(data), 4)], elf.ELFMAG)
}

// IsCore reports whether the first bytes of a file are a core's, from its magic to its
// type.
func IsCore(head []byte) bool { return filekind.IsELF(head, elf.ET_CORE) }

// readHeader reads the ELF header and the program headers as far as they are there (System V
// gABI, ELF Header). Problems tell which program headers are missing.
func readHeader(data []byte) (h coreHeader, problems []string, err error) {
	if h, err = readStart(data); err != nil {
		return h, nil, err
	}
	problems, err = h.readPrograms(data)
	return h, problems, err
}

// readStart reads the ELF header without the program headers.
func readStart(data []byte) (h coreHeader, err error) {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return h, notCore(data)
	}
	if len(data) < 20 {
		return h, fmt.Errorf("%w: the ELF header is cut at offset %#x", ErrNotCore, len(data))
	}
	switch elf.Class(data[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
	case elf.ELFCLASS64:
		h.is64 = true
	default:
		return h, fmt.Errorf("%w: offset %#x: ELF class %d, expected 1 or 2", ErrNotCore, elf.EI_CLASS, data[elf.EI_CLASS])
	}
	switch elf.Data(data[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		h.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		h.order = binary.BigEndian
	default:
		return h, fmt.Errorf("%w: offset %#x: ELF byte order %d, expected 1 or 2", ErrNotCore, elf.EI_DATA, data[elf.EI_DATA])
	}
	if t := elf.Type(h.order.Uint16(data[16:])); t != elf.ET_CORE {
		if kind := filekind.Of(data); kind.What != "" {
			return h, fmt.Errorf("%w: the file is %s", ErrNotCore, kind.What)
		}
		return h, fmt.Errorf("%w: offset 0x10: an ELF file of type %#x, expected %d", ErrNotCore, uint16(t), elf.ET_CORE)
	}
	size := h.offset(52, 64)
	if len(data) < size {
		return h, fmt.Errorf("the ELF header of the core is cut at offset %#x, expected %d bytes", len(data), size)
	}
	h.machine = h.order.Uint16(data[18:])
	h.flags = h.order.Uint32(data[h.offset(36, 48):])
	return h, nil
}

// readPrograms reads the program headers.
func (h *coreHeader) readPrograms(data []byte) (problems []string, err error) {
	tail := h.offset(40, 52) // e_ehsize; from here on the classes have the same layout
	start := h.pick(data, 28, 32)
	stride := uint64(h.order.Uint16(data[tail+2:]))
	count := uint64(h.order.Uint16(data[tail+4:]))
	if count == 0 && hasSections(h, data) {
		return nil, nil
	}
	if count == 0 {
		return []string{"the core has no program headers, so neither threads nor memory"}, nil
	}
	if stride < h.programSize() {
		return nil, fmt.Errorf("offset %#x: program headers of %d bytes, expected %d", tail+2, stride, h.programSize())
	}
	if count == pnXNUM {
		n, source, err := h.extendedCount(data, start, stride)
		if err != nil {
			problems = append(problems, fmt.Sprintf("e_phnum is PN_XNUM, but %v; %d program headers are taken, %s", err, n, source))
		}
		count = n
	}
	if count > maxPrograms {
		problems = append(problems, fmt.Sprintf("%d program headers, of which the first %d are read", count, maxPrograms))
		count = maxPrograms
	}
	var there uint64
	if start < uint64(len(data)) {
		there = (uint64(len(data)) - start) / stride
		// The last entry may lack the padding that a larger stride gives it.
		if rest := (uint64(len(data)) - start) % stride; rest >= h.programSize() {
			there++
		}
	}
	if there < count {
		problems = append(problems, fmt.Sprintf("the file ends at offset %#x, within the program headers at offset %#x: %d of %d are there",
			len(data), start, there, count))
		count = there
	}
	h.programs = make([]program, count)
	for i := range h.programs {
		h.programs[i] = h.program(data[start+uint64(i)*stride:])
	}
	if stride == h.programSize() {
		if said := h.unpadded(data); said != "" {
			problems = append(problems, said)
		}
	}
	return problems, nil
}

// pnXNUM in e_phnum means that the number of program headers is in sh_info of
// section header 0 (System V gABI, Program Header: PN_XNUM).
const pnXNUM = 0xffff

// extendedCount finds the number of program headers of a core with 65,535 or
// more. The kernel and gdb write section header 0 behind everything else, so a
// truncated core has lost it; then the number follows from the first note
// segment's bytes, which begin right behind the program headers. The error says
// why section header 0 was not used, and source which number is used instead.
func (h *coreHeader) extendedCount(data []byte, start, stride uint64) (n uint64, source string, err error) {
	tail := h.offset(40, 52)
	section := h.pick(data, 32, 40)
	size := uint64(h.order.Uint16(data[tail+6:]))
	least := uint64(h.offset(40, 64))
	end := uint64(len(data))
	switch {
	case section == 0:
		err = errors.New("there are no section headers")
	case size < least:
		err = fmt.Errorf("section headers have %d bytes, expected %d", size, least)
	case section > end || least > end-section:
		err = fmt.Errorf("section header 0 at offset %#x is past the end of the file at %#x", section, end)
	default:
		info := h.order.Uint32(data[section+uint64(h.offset(28, 44)):])
		if info >= pnXNUM {
			return uint64(info), "", nil
		}
		err = fmt.Errorf("offset %#x: sh_info of section header 0 is %d, expected %d or more", section, info, pnXNUM)
	}
	if start < end && end-start >= h.programSize() {
		if p := h.program(data[start:]); p.fileSize > 0 && p.offset > start && (p.offset-start)/stride >= pnXNUM {
			return (p.offset - start) / stride, "as many as lie before the first segment's bytes", err
		}
	}
	return pnXNUM, "the least that it means", err
}
