// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/internal/problems"
)

// Machines, as the file header numbers them ("Machine Types").
const (
	MachineX86    = 0x14c
	MachineARM    = 0x1c4
	MachineX86_64 = 0x8664
	MachineARM64  = 0xaa64
)

// A File is a PE file. It may be used concurrently. The bytes of a mapped file are
// read inside object.Guard.
type File struct {
	name      string
	source    fileSource
	header    header
	base      uint64
	isImage   bool   // see NewImage
	headersAt uint64 // offset of the headers; not 0 of an image only
	sections  []*Section
	byName    map[string]*Section
	mapped    []*Section   // those that an image has, sorted by RVA
	symbols   []byte       // the symbol table
	names     *stringTable // nil where there is none

	hybrid    func() hybrid // see readHybrid
	tableOnce sync.Once
	table     functionTable
	tableErr  error
	// isTableCut: code that no function of table has may be of one that is missing.
	isTableCut bool

	mu       sync.Mutex
	problems problems.List[string]
}

// maxProblems bounds how many problems are kept.
const maxProblems = 16

// New reads the headers of a file. The bytes must not change; the name is used in
// messages only. A file that is no PE file gives ErrNotPE.
func New(name string, data []byte) (*File, error) {
	f := newFile(name)
	header, err := readHeader(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.header, f.base = header, header.imageBase
	f.names = newStringTable(data, &header)
	f.readSections(data, data)
	f.readSymbols(data)
	f.source = fileSource{data: data, head: prefix(data, 0, uint64(header.sizeOfHeaders)), mapped: f.mapped}
	for _, s := range f.sections {
		s.checkBounds()
	}
	return f, nil
}

func newFile(name string) *File {
	f := &File{name: name}
	f.hybrid = sync.OnceValue(f.readHybrid)
	return f
}

// problem keeps a sentence that names the file.
func (f *File) problem(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(err.Error())
	}
}

// Problems returns errors so far without which the file can be used, each a sentence that names the
// file, the section and the offset. At most 16 are kept.
func (f *File) Problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.problems.Kept())
}

// Machine returns the Machine of the file header, as MachineX86_64.
func (f *File) Machine() uint16 { return f.header.machine }

// TimeDateStamp returns when the file was made, in seconds since 1970, or a hash of it.
func (f *File) TimeDateStamp() uint32 { return f.header.timeDateStamp }

// IsDLL reports whether the file is a library (IMAGE_FILE_DLL).
func (f *File) IsDLL() bool { return f.header.characteristics&isDLL != 0 }

// IsPlus reports whether the file is PE32+, with addresses of 64 bits.
func (f *File) IsPlus() bool { return f.header.isPlus }

// ImageBase returns the virtual address that RVAs are relative to, which the file prefers.
func (f *File) ImageBase() uint64 { return f.base }

// HeadersOffset returns where the headers are: 0 in a file, an offset of the bytes that have an image.
func (f *File) HeadersOffset() uint64 { return f.headersAt }

// SizeOfHeaders returns how many bytes at the start of the file are at the start of the image.
func (f *File) SizeOfHeaders() uint32 { return f.header.sizeOfHeaders }

// SizeOfImage returns how many bytes of memory the image takes.
func (f *File) SizeOfImage() uint32 { return f.header.sizeOfImage }

// Entry returns the virtual address of the entry point; 0 where there is none.
func (f *File) Entry() uint64 {
	if f.header.entry == 0 {
		return 0
	}
	return f.address(f.header.entry)
}

// address returns the virtual address of an RVA.
func (f *File) address(rva uint32) uint64 { return f.base + uint64(rva) }

// rva returns the RVA of a virtual address; false where it is not in the image.
func (f *File) rva(address uint64) (uint32, bool) {
	if address < f.base || address-f.base >= uint64(f.header.sizeOfImage) {
		return 0, false
	}
	return uint32(address - f.base), true
}

// Sections returns all sections, in the file's order.
func (f *File) Sections() []*Section { return f.sections }

// Section returns the first section of a name; nil when there is none.
func (f *File) Section(name string) *Section { return f.byName[name] }

// SectionAt returns the section that contains a virtual address; nil when none does.
func (f *File) SectionAt(address uint64) *Section {
	rva, ok := f.rva(address)
	if !ok {
		return nil
	}
	return f.sectionAt(rva)
}

func (f *File) sectionAt(rva uint32) *Section {
	i, ok := slices.BinarySearchFunc(f.mapped, rva, func(s *Section, rva uint32) int { return cmp.Compare(s.RVA, rva) })
	if !ok {
		i--
	}
	if i >= 0 && rva-f.mapped[i].RVA < f.mapped[i].span() {
		return f.mapped[i]
	}
	return nil
}

// Bytes returns the n bytes at a virtual address; they alias the file, or are a copy of
// memory. ErrNoBytes where one of them is missing.
func (f *File) Bytes(address, n uint64) ([]byte, error) {
	rva, ok := f.rva(address)
	if !ok {
		return nil, fmt.Errorf("%s: address %#x is not in the image, %#x bytes at %#x: %w", f.name, address, f.header.sizeOfImage, f.base, ErrNoBytes)
	}
	return f.at(rva, n, "data")
}
