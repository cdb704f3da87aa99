// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// This file makes objects of PDB files, which have the debug information of a PE file: debug files
// without code, whose addresses are RVAs. The sections are the image's ("The PDB DBI (Debug Info)
// Stream", Optional Debug Header Stream). Functions and lines are read by package pdb.

// pdb is the data of a PDB file that identify it.
type pdb struct {
	guid    [16]byte // as the file has it
	age     uint32   // that the image has
	machine uint16   // as PE files have it; 0: unknown
}

func (p *pdb) buildID() []byte { return debugIdentity(p.guid[:], p.age) }

// IsPDB reports whether the object is a PDB file.
func (o *Object) IsPDB() bool { return o.pdb != nil }

// isPDB reports whether the bytes begin as a PDB file of any kind.
func isPDB(data []byte) (is bool) {
	_ = Guard(func() error { is = msf.Is(data); return nil })
	return is
}

// newPDB makes an object of a PDB file.
func newPDB(name string, data []byte) (*Object, error) {
	o := &Object{name: name, data: data}
	err := Guard(func() error {
		f, err := msf.New(name, data)
		if err != nil {
			return err
		}
		return o.takePDB(f)
	})
	if err != nil {
		return nil, err
	}
	o.lazy()
	return o, nil
}

// The streams of a PDB file that have fixed numbers, and the sizes of what they begin with.
const (
	pdbInfoStream = 1
	pdbInfoSize   = 28
	pdbDBIStream  = 3
	pdbDBIHeader  = 64
)

// takePDB fills in the data of the headers.
func (o *Object) takePDB(f *msf.File) error {
	info, err := streamBytes(f, pdbInfoStream, 0, pdbInfoSize)
	if err != nil {
		return err
	}
	o.pdb = &pdb{age: binary.LittleEndian.Uint32(info[8:]), guid: [16]byte(info[12:])}
	o.debugOnly, o.byName = true, map[string]*Section{}
	o.header = header{class: elf.ELFCLASS32, order: binary.LittleEndian, typ: elf.ET_DYN}
	if dbi := f.Stream(pdbDBIStream); dbi != nil && dbi.Size() >= pdbDBIHeader {
		head, err := dbi.Bytes(0, pdbDBIHeader)
		if err != nil {
			return err
		}
		o.pdb.age = binary.LittleEndian.Uint32(head[8:])
		o.pdb.machine = binary.LittleEndian.Uint16(head[58:])
		if err := o.takePDBSections(f, dbi, head); err != nil {
			o.problems = append(o.problems, err.Error())
		}
	}
	o.header.machine = uint16(peMachines[o.pdb.machine])
	if o.pdb.machine == pe.MachineX86_64 || o.pdb.machine == pe.MachineARM64 {
		o.header.class, o.header.wide = elf.ELFCLASS64, true
	}
	o.byStart = slices.Clone(o.segments)
	slices.SortStableFunc(o.byStart, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	o.headerSize = o.sizeOfHeaders()
	return nil
}

// streamBytes returns the bytes at an offset of a stream.
func streamBytes(f *msf.File, number int, offset, size uint32) ([]byte, error) {
	s := f.Stream(number)
	if s == nil {
		return nil, fmt.Errorf("%s: directory, offset 0: %d streams, expected stream %d", f.Name(), f.Streams(), number)
	}
	return s.Bytes(offset, size)
}

const (
	sectionHeaderSize = 40
	maxPDBSections    = 1 << 16 // PE files count them in 16 bits
	// pdbSectionHeaders is the place of the number of the stream with section headers in the
	// optional debug header.
	pdbSectionHeaders = 5
	noPDBStream       = 0xffff
)

// takePDBSections makes sections and segments of the section headers of the image.
func (o *Object) takePDBSections(f *msf.File, dbi *msf.Stream, head []byte) error {
	offset := uint64(pdbDBIHeader)
	for _, at := range []int{24, 28, 32, 36, 40, 52} { // the sizes of the parts before the optional header
		offset += uint64(binary.LittleEndian.Uint32(head[at:]))
	}
	size := binary.LittleEndian.Uint32(head[48:])
	if size < 2*(pdbSectionHeaders+1) {
		return nil
	}
	if offset+uint64(size) > uint64(dbi.Size()) {
		return dbi.Errorf(0, "an optional debug header of %d bytes at offset %#x, expected it in the %d bytes of the stream", size, offset, dbi.Size())
	}
	numbers, err := dbi.Bytes(uint32(offset), size)
	if err != nil {
		return err
	}
	number := binary.LittleEndian.Uint16(numbers[2*pdbSectionHeaders:])
	if number == noPDBStream {
		return nil
	}
	s := f.Stream(int(number))
	if s == nil {
		return dbi.Errorf(uint32(offset), "section headers in stream %d, expected one of %d", number, f.Streams())
	}
	table, err := s.Bytes(0, min(s.Size(), maxPDBSections*sectionHeaderSize))
	if err != nil {
		return err
	}
	o.sections = append(o.sections, &Section{object: o}) // the null section, as PE files have it
	for ; len(table) >= sectionHeaderSize; table = table[sectionHeaderSize:] {
		o.addPDBSection(table)
	}
	return nil
}

// addPDBSection makes a section and a segment of a section header.
func (o *Object) addPDBSection(b []byte) {
	word := func(offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
	header := &pe.Section{VirtualSize: word(8), RVA: word(12), RawSize: word(16), Characteristics: word(36)}
	name, _, _ := strings.Cut(string(b[:8]), "\x00")
	s := &Section{
		Name: name, Type: elf.SHT_NOBITS, Address: uint64(header.RVA), Size: uint64(header.MemSize()), Align: pageAlign,
		Flags: peSectionFlags(header), Index: len(o.sections), object: o,
	}
	o.sections = append(o.sections, s)
	if o.byName[name] == nil {
		o.byName[name] = s
	}
	o.segments = append(o.segments, Segment{Address: s.Address, MemSize: s.Size, Align: pageAlign, Flags: peSegmentFlags(header)})
}
