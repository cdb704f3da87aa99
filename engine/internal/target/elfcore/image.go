// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
)

const (
	// maxHeaders bounds the size of an image's ELF header and program headers.
	maxHeaders = 64 << 10
	// maxAllHeaders bounds the headers of all images together.
	maxAllHeaders = 256 << 20
	// maxImageNotes bounds the size of notes that are searched for a build ID.
	maxImageNotes = 64 << 10
	// maxImagePrograms bounds the program headers of an image in memory. Real images have
	// a dozen.
	maxImagePrograms = 512
	// maxImage bounds a code object that is assembled from memory.
	maxImage = 256 << 20
	// maxImages bounds all such code objects together, if the core is not smaller anyway.
	maxImages = 1 << 30
	// maxVDSO bounds the vDSO, which has one or two pages.
	maxVDSO = 1 << 20
)

// image is a code object in the target's memory, as its ELF header there describes it.
type image struct {
	bias     uint64       // is added to virtual addresses
	headers  *imageHeader // nil if the ELF header is not in the core
	programs []object.Program
	offset   uint64 // of the image in the file that it is a part of
	buildID  []byte // nil if it has none, or it is not in the core
}

// imageHeader has members of an image's ELF header.
type imageHeader struct {
	typ   elf.Type
	entry uint64
}

// loads yields the program headers of type PT_LOAD that have bytes in the file.
func loads(programs []object.Program) iter.Seq[*object.Program] {
	return func(yield func(*object.Program) bool) {
		for i := range programs {
			if p := &programs[i]; p.Type == elf.PT_LOAD && p.FileSize > 0 && !yield(p) {
				return
			}
		}
	}
}

// dynamic returns the address of PT_DYNAMIC; ok is false if there is none.
func dynamic(n numbers, programs []object.Program, bias uint64) (address uint64, ok bool) {
	for _, p := range programs {
		if p.Type == elf.PT_DYNAMIC {
			return n.mask(p.Address + bias), true
		}
	}
	return 0, false
}

// imageAt reads the image whose ELF header is at an address. ok is false unless
// the core has there the ELF header and the program headers of a code object for
// its machine.
func (c *Core) imageAt(start uint64) (im image, ok bool) { return c.imageOf(start, c.header.machine) }

// imageOf is imageAt for code objects of another machine.
func (c *Core) imageOf(start uint64, machine uint16) (im image, ok bool) {
	head := c.memory.readDumped(start, uint64(c.header.offset(52, 64)))
	if len(head) < c.header.offset(52, 64) || string(head[:4]) != elf.ELFMAG {
		return im, false
	}
	// The size of the headers depends on the program headers, which link editors put
	// right after the ELF header.
	n := numbers{binary.LittleEndian, head[elf.EI_CLASS] == byte(elf.ELFCLASS64)}
	if head[elf.EI_DATA] == byte(elf.ELFDATA2MSB) {
		n.order = binary.BigEndian
	}
	if n != c.header.numbers {
		return im, false
	}
	header, programs, ok := c.imagePrograms(start, head, machine)
	if !ok {
		return im, false
	}
	im = image{headers: header, programs: programs}
	// The header is at the start of the file. If several segments of a small file begin in
	// its first page, it is in the first of them.
	for p := range loads(im.programs) {
		if p.Offset < c.pageSize {
			im.bias = c.header.mask(start - (p.Address - p.Offset))
			im.buildID = c.imageBuildID(im.programs, im.bias)
			return im, true
		}
	}
	return im, false
}

// imagePrograms reads the bytes of an image's ELF header, and the program headers (System V
// gABI, ELF Header). ok is false if these are missing, or not for a code object of the machine.
func (c *Core) imagePrograms(start uint64, head []byte, machine uint16) (header *imageHeader, programs []object.Program, ok bool) {
	n := c.header.numbers
	offset, stride := n.pick(head, 28, 32), uint64(n.order.Uint16(head[n.offset(42, 54):]))
	count := uint64(n.order.Uint16(head[n.offset(44, 56):]))
	typ := elf.Type(n.order.Uint16(head[16:]))
	switch {
	case n.order.Uint16(head[18:]) != machine, head[elf.EI_VERSION] != byte(elf.EV_CURRENT),
		typ != elf.ET_EXEC && typ != elf.ET_DYN,
		offset == 0 || offset > maxHeaders, count == 0 || count > maxImagePrograms, stride < n.programSize():
		return nil, nil, false
	}
	size := offset + count*stride
	if size > maxHeaders || size > c.headerBudget {
		return nil, nil, false
	}
	c.headerBudget -= size
	b := c.memory.readDumped(start, size)
	if uint64(len(b)) < size {
		return nil, nil, false
	}
	programs = make([]object.Program, count)
	for i := range programs {
		programs[i] = n.objectProgram(b[offset+uint64(i)*stride:])
	}
	return &imageHeader{typ, n.pick(head, 24, 24)}, programs, true
}

// objectProgram reads a program header of a code object.
func (n numbers) objectProgram(b []byte) object.Program {
	p := n.program(b)
	return object.Program{
		Type: p.typ, Flags: p.flags, Offset: p.offset, Address: p.address, PhysicalAddress: n.pick(b, 12, 24),
		FileSize: p.fileSize, MemSize: p.memSize, Align: p.align,
	}
}

// clearSections removes the section headers from an ELF header: at their offset memory has
// other bytes.
func clearSections(n numbers, b []byte) {
	if len(b) < n.offset(52, 64) {
		return
	}
	clear(b[n.offset(32, 40):][:n.size()])
	clear(b[n.offset(46, 58):n.offset(52, 64)])
}

// imageBuildID finds NT_GNU_BUILD_ID in the PT_NOTE segments of an image, as far
// as the core itself has them.
func (c *Core) imageBuildID(programs []object.Program, bias uint64) []byte {
	for _, p := range programs {
		if p.Type != elf.PT_NOTE || p.FileSize == 0 {
			continue
		}
		if id := c.buildIDIn(p.Address+bias, p.FileSize, p.Align); id != nil {
			return id
		}
	}
	return nil
}

// buildIDIn finds NT_GNU_BUILD_ID among the notes at an address, as far as the
// core itself has them; nil if it is not there.
func (c *Core) buildIDIn(address, size, align uint64) []byte {
	b := c.memory.readDumped(c.header.mask(address), min(size, maxImageNotes))
	notes, _ := appendNotes(nil, c.header.numbers, b, 0, align)
	for _, nt := range notes {
		if nt.owner == "GNU" && nt.typ == 3 && len(nt.data) > 0 && len(nt.data) <= 64 {
			return bytes.Clone(nt.data)
		}
	}
	return nil
}

// memoryBuildID reads the build ID from the core at the address of the file's note section.
// Go's link editor writes a GNU build ID outside every PT_NOTE segment, so that only the
// file's section header leads to it.
func (c *Core) memoryBuildID(file *object.Object, bias uint64) (id []byte, ok bool) {
	s := file.Section(".note.gnu.build-id")
	if s == nil || s.Address == 0 || len(file.BuildID()) == 0 {
		return nil, false
	}
	id = c.buildIDIn(s.Address+bias, s.Size, 4)
	return id, id != nil
}

// sameImage returns the difference between the headers of a file and of the image; "" if there
// is none. It is used if there is no build ID.
func sameImage(im *image, file *object.Object) string {
	switch {
	case im.headers.typ != file.Type():
		return fmt.Sprintf("it has type %v, the image in memory has %v", file.Type(), im.headers.typ)
	case im.headers.entry != file.Entry():
		return fmt.Sprintf("its entry point is %#x, that of the image in memory is %#x", file.Entry(), im.headers.entry)
	case !slices.Equal(im.programs, file.Programs()):
		return "its program headers are not those of the image in memory"
	}
	return ""
}

// rebuild makes a code object from the image in memory, if the core has all
// of it. The code object has no section headers, which are not loaded, and its
// data has the values that the process wrote.
func (c *Core) rebuild(name string, im *image) (*object.Object, error) {
	n := c.header.numbers
	var size uint64
	parts := slices.Collect(loads(im.programs))
	for _, p := range parts {
		end := p.Offset + p.FileSize
		if end < p.Offset || end > maxImage {
			return nil, fmt.Errorf("it has more than %#x bytes", uint64(maxImage))
		}
		size = max(size, end)
		if have := c.memory.dumped(n.mask(p.Address+im.bias), p.FileSize); have < p.FileSize {
			return nil, fmt.Errorf("the %s lacks its memory at address %#x", c.noun(), n.mask(p.Address+im.bias)+have)
		}
	}
	if size > c.imageBudget {
		return nil, fmt.Errorf("the images in memory would have more bytes than the %s", c.noun())
	}
	c.imageBudget -= size
	b := make([]byte, size)
	for _, p := range parts {
		c.memory.read(n.mask(p.Address+im.bias), b[p.Offset:p.Offset+p.FileSize])
	}
	if len(b) < n.offset(52, 64) || string(b[:4]) != elf.ELFMAG {
		return nil, fmt.Errorf("no segment holds its ELF header")
	}
	clearSections(n, b)
	for _, p := range im.programs {
		if p.Type == elf.PT_DYNAMIC && p.Offset <= size && p.FileSize <= size-p.Offset {
			unrelocate(n, b[p.Offset:p.Offset+p.FileSize], im.bias, parts)
		}
	}
	return object.New(name, b)
}

// dynamicAddresses are the tags of PT_DYNAMIC whose values dynamic loaders turn
// into run-time addresses in place.
var dynamicAddresses = []elf.DynTag{
	elf.DT_PLTGOT, elf.DT_HASH, elf.DT_STRTAB, elf.DT_SYMTAB, elf.DT_RELA, elf.DT_REL, elf.DT_JMPREL,
	elf.DT_VERSYM, elf.DT_GNU_HASH,
}

// unrelocate turns addresses of PT_DYNAMIC back into virtual addresses.
func unrelocate(n numbers, b []byte, bias uint64, parts []*object.Program) {
	if bias == 0 {
		return
	}
	inside := func(address uint64) bool {
		return slices.ContainsFunc(parts, func(p *object.Program) bool { return address-p.Address < p.MemSize })
	}
	size := n.size()
	for len(b) >= 2*size {
		tag, value := elf.DynTag(n.word(b)), n.word(b[size:])
		if tag == elf.DT_NULL {
			return
		}
		if slices.Contains(dynamicAddresses, tag) && !inside(value) && inside(n.mask(value-bias)) {
			if n.is64 {
				n.order.PutUint64(b[size:], value-bias)
			} else {
				n.order.PutUint32(b[size:], uint32(value-bias))
			}
		}
		b = b[2*size:]
	}
}
