// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/pe"
)

// This file makes objects of PE files ("PE Format") in terms of ELF: sections have types and flags,
// machines the numbers of ELF, and addresses are the image base that the file prefers plus the
// RVA.

// peMachines are the machines of PE files ("Machine Types") by the numbers of ELF.
var peMachines = map[uint16]elf.Machine{
	pe.MachineX86: elf.EM_386, pe.MachineX86_64: elf.EM_X86_64,
	pe.MachineARM: elf.EM_ARM, pe.MachineARM64: elf.EM_AARCH64,
}

// pageAlign is the least alignment of sections of images in memory.
const pageAlign = 1 << 12

// IsPE reports whether the object is a PE file.
func (o *Object) IsPE() bool { return o.pe != nil }

// PE returns the object as a PE file; nil if it is none. It is read inside Guard.
func (o *Object) PE() *pe.File { return o.pe }

// isPE reports whether the bytes begin as a PE file.
func isPE(data []byte) (is bool) {
	_ = Guard(func() error { is = pe.IsPE(data); return nil })
	return is
}

// newPE makes an object of a PE file.
func newPE(name string, data []byte) (*Object, error) {
	return openPE(name, data, func() (*pe.File, error) { return pe.New(name, data) })
}

// A Piece is a part of an image in memory, and where it is in the bytes that have it.
type Piece = pe.Piece

// NewLoaded makes an object of the image of a PE file in memory, of which data, such as a dump, has
// pieces, sorted by address and apart. Data must not change, and nothing of it is copied. What no piece
// has is missing, as in a file that was cut. ErrNotELF where no piece begins as an image.
func NewLoaded(name string, data []byte, pieces []Piece) (*Object, error) {
	o, err := openPE(name, data, func() (*pe.File, error) { return pe.NewImage(name, data, pieces) })
	if err != nil {
		return nil, err
	}
	o.isLoaded, o.debugOnly = true, false
	o.asFile = sync.OnceValue(func() (b []byte) {
		_ = Guard(func() error { b = o.pe.AsFile(); return nil })
		return b
	})
	return o, nil
}

// IsLoaded reports whether the object was made of an image in memory, by NewLoaded.
func (o *Object) IsLoaded() bool { return o.isLoaded }

// openPE makes an object of a PE file that is read inside Guard.
func openPE(name string, data []byte, open func() (*pe.File, error)) (*Object, error) {
	o := &Object{name: name, data: data}
	err := Guard(func() error {
		f, err := open()
		if err != nil {
			return err
		}
		o.takePE(f)
		return nil
	})
	switch {
	case errors.Is(err, pe.ErrNotPE):
		return nil, fmt.Errorf("%s: %w", name, ErrNotELF)
	case err != nil:
		return nil, err
	}
	o.lazy()
	return o, nil
}

// takePE fills in the data of the headers.
func (o *Object) takePE(f *pe.File) {
	o.pe = f
	o.header = header{
		class: elf.ELFCLASS32, order: binary.LittleEndian, typ: elf.ET_EXEC,
		machine: uint16(peMachines[f.Machine()]), entry: f.Entry(), wide: f.IsPlus(),
	}
	if f.IsPlus() {
		o.header.class = elf.ELFCLASS64
	}
	if f.IsDLL() {
		o.header.typ = elf.ET_DYN
	}
	o.sections = append(o.sections, &Section{object: o}) // the null section: symbols count from 1
	o.byName = map[string]*Section{}
	o.segments = append(o.segments, Segment{
		Offset: f.HeadersOffset(), FileSize: uint64(f.SizeOfHeaders()), Address: f.ImageBase(), MemSize: uint64(f.SizeOfHeaders()), Align: pageAlign, Flags: elf.PF_R,
	})
	for _, section := range f.Sections() {
		s := peSection(section)
		s.Index, s.object = len(o.sections), o
		o.sections = append(o.sections, s)
		if o.byName[s.Name] == nil {
			o.byName[s.Name] = s
		}
		if section.IsMapped() {
			o.segments = append(o.segments, peSegment(section))
		}
	}
	o.byStart = slices.Clone(o.segments)
	slices.SortStableFunc(o.byStart, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	o.debugOnly = o.codeIsElsewhere()
	o.headerSize = o.sizeOfHeaders()
}

func peSection(section *pe.Section) *Section {
	s := &Section{
		Name: section.Name, Type: elf.SHT_PROGBITS, Flags: peSectionFlags(section),
		Address: section.Address(), Offset: section.Offset, Size: uint64(section.FileSize()), Align: pageAlign,
	}
	if s.Size == 0 {
		s.Type, s.Size = elf.SHT_NOBITS, uint64(section.MemSize())
	}
	return s
}

// peSectionFlags returns the flags of a section as ELF has them.
func peSectionFlags(section *pe.Section) (flags elf.SectionFlag) {
	if !section.IsDiscardable() {
		flags |= elf.SHF_ALLOC
	}
	if section.IsWritable() {
		flags |= elf.SHF_WRITE
	}
	if section.IsCode() {
		flags |= elf.SHF_EXECINSTR
	}
	return flags
}

func peSegment(section *pe.Section) Segment {
	return Segment{
		Offset: section.Offset, FileSize: uint64(section.FileSize()),
		Address: section.Address(), MemSize: uint64(section.MemSize()), Align: pageAlign, Flags: peSegmentFlags(section),
	}
}

// peSegmentFlags returns the rights to the memory of a section.
func peSegmentFlags(section *pe.Section) elf.ProgFlag {
	flags := elf.PF_R
	if section.IsWritable() {
		flags |= elf.PF_W
	}
	if section.IsCode() {
		flags |= elf.PF_X
	}
	return flags
}

// buildIDs returns all identities of the object, the best one first.
func (o *Object) buildIDs() [][]byte {
	first := o.BuildID()
	if len(first) == 0 {
		return nil
	}
	if o.pe != nil {
		if other := o.peTimeAndSize(); string(other) != string(first) {
			return [][]byte{first, other}
		}
	}
	return [][]byte{first}
}

// debugID returns the identity that an object shares with its separate debug file; nil where there
// is none. Stripping gives a PE file another size and another time.
func (o *Object) debugID() []byte {
	id := o.BuildID()
	if o.pe != nil && len(id) < guidAndAge {
		return nil
	}
	return id
}

// buildIDName returns the identity for the directory .build-id: without the age of a PE file, as for
// GDB and the linkers.
func (o *Object) buildIDName() []byte {
	id := o.debugID()
	if o.pe != nil && id != nil {
		id = id[:guidAndAge-4]
	}
	return id
}

const guidAndAge = 20 // bytes

// peBuildID returns the debug ID of a PE file, as 16 bytes in the order of its digits as text, and
// the age, or without a CodeView record time and size.
func (o *Object) peBuildID() []byte {
	var id pe.Identity
	err := Guard(func() (err error) { id, err = o.pe.Identity(); return err })
	if err != nil || !id.HasCodeView {
		return o.peTimeAndSize()
	}
	return debugIdentity(id.GUID[:], id.Age)
}

// debugIdentity returns the build ID of a GUID, as files have it, and an age.
func debugIdentity(guid []byte, age uint32) []byte {
	b := make([]byte, 0, guidAndAge)
	b = binary.BigEndian.AppendUint32(b, binary.LittleEndian.Uint32(guid))
	b = binary.BigEndian.AppendUint16(b, binary.LittleEndian.Uint16(guid[4:]))
	b = binary.BigEndian.AppendUint16(b, binary.LittleEndian.Uint16(guid[6:]))
	b = append(b, guid[8:]...)
	return binary.BigEndian.AppendUint32(b, age)
}

// SymbolName returns the name that the debug information of a PE or PDB file has on symbol servers,
// Breakpad's debug identifier; "" where there is none.
func (o *Object) SymbolName() string {
	if id := o.BuildID(); (o.pe != nil || o.pdb != nil) && len(id) == guidAndAge {
		return symbolName(id)
	}
	return ""
}

// ParseSymbolName returns the build ID of a PE or PDB file by its SymbolName; nil where the text is
// none.
func ParseSymbolName(text string) []byte {
	const digits = 2 * (guidAndAge - 4)
	if len(text) <= digits {
		return nil
	}
	guid, err := hex.DecodeString(text[:digits])
	if err != nil {
		return nil
	}
	age, err := strconv.ParseUint(text[digits:], 16, 32)
	if err != nil {
		return nil
	}
	return binary.BigEndian.AppendUint32(guid, uint32(age))
}

// symbolName returns the name that a build ID of a GUID and an age has on symbol servers.
func symbolName(id []byte) string {
	const guid = guidAndAge - 4
	return fmt.Sprintf("%X%x", id[:guid], binary.BigEndian.Uint32(id[guid:]))
}

// peTimeAndSize returns the identifier by which symbol servers know a PE file that names no debug
// information.
func (o *Object) peTimeAndSize() []byte {
	return PETimeAndSize(o.pe.TimeDateStamp(), o.pe.SizeOfImage())
}

// PETimeAndSize returns the identity of a PE file by the time and the size in memory that its headers have.
func PETimeAndSize(time, size uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, time), size)
}
