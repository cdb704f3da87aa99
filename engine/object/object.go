// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/pe"
)

// An Object is a code object: an ELF file of either class and byte order, a PE file, the PDB file
// of one, a Mach-O file of 64 bits, or a file of another format that Formats recognise. It may be used concurrently by
// several users, each of which closes it; see Close.
type Object struct {
	name    string
	data    []byte
	mapping *Mapping    // nil for bytes in memory
	foreign bool        // it has a format of Formats: the fields below are empty
	pe      *pe.File    // nil: it is no PE file
	pdb     *pdb        // nil: it is no PDB file
	macho   *macho.File // nil: it is no Mach-O file

	header   header
	programs []Program
	segments []Segment // in the file's order
	byStart  []Segment // sorted by Address
	sections []*Section
	byName   map[string]*Section
	problems []string

	synthetic     []*Section // see SyntheticSections
	syntheticOnce sync.Once

	relocatable bool // see IsRelocatable
	// relocated are the relocation sections of a relocatable object, by the
	// section that they are for.
	relocated map[uint32][]*Section
	debugOnly bool
	laidOut   bool           // sections have the addresses of LaidOut
	code      map[string]int // see codeByName; made for the first relocation of a laid out object
	codeOnce  sync.Once
	// indexes are the sections of type SHT_SYMTAB_SHNDX, by their symbol table.
	indexes     map[uint32]*Section
	indexesOnce sync.Once

	relocations atomic.Pointer[relocations]
	unpacked    atomic.Int64 // bytes made by decompressing and relocating
	keptBytes   atomic.Int64 // the part of them that is kept, and copies

	buildID func() []byte
	mini    func() (*Object, error)
	laid    func() (*Object, error)
	laidAs  atomic.Pointer[Object] // the result of laid

	headerSize uint64 // see sizeOfHeaders
	isLoaded   bool   // see NewLoaded
	asFile     func() []byte

	rest *rest // of the file, see SetRest; nil: all of it is there

	remembered sync.Map // see Remembered

	uses   atomic.Int64
	forget func() // removes it from its Store; nil where it is in none
}

// Open maps a file and reads its headers. Nothing else of the file is touched.
// A file that is neither an ELF, a PE, a PDB nor a Mach-O file gives ErrNotELF.
func Open(path string) (*Object, error) {
	path, err := InDSYM(path)
	if err != nil {
		return nil, err
	}
	m, err := mapPath(path, true)
	if err != nil {
		return nil, err
	}
	return openMapping(m)
}

// openMapping makes an object of a mapping, which it closes on error.
func openMapping(m *Mapping) (*Object, error) {
	return openMappingWith(m, nil)
}

func openMappingWith(m *Mapping, formats Formats) (*Object, error) {
	o, err := NewWith(m.path, m.data, formats)
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	o.mapping = m
	return o, nil
}

// New makes an object of bytes, which must not change. The name is used in
// messages only. Bytes that end early are accepted as far as the program
// headers are there: the lost parts are missing.
func New(name string, data []byte) (*Object, error) {
	switch {
	case isPE(data):
		return newPE(name, data)
	case isPDB(data):
		return newPDB(name, data)
	case isMachO(data):
		return newMachO(name, data)
	case isUniversal(data):
		return newUniversal(name, data)
	}
	o := &Object{name: name, data: data}
	err := Guard(o.read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o.lazy()
	return o, nil
}

// lazy prepares the tables that are made when they are first needed.
func (o *Object) lazy() {
	o.uses.Store(1)
	o.laid = sync.OnceValues(o.layOut)
	o.buildID = sync.OnceValue(o.findBuildID)
	o.mini = sync.OnceValues(o.openMiniDebug)
}

func (o *Object) read() error {
	var err error
	if o.header, err = parseHeader(o.data); err != nil {
		return err
	}
	var problem string
	if o.programs, problem, err = o.header.programs(o.data); err != nil {
		return err
	}
	o.addProblem(problem)
	for i := range o.programs {
		if p := &o.programs[i]; p.Type == elf.PT_LOAD {
			o.segments = append(o.segments, Segment{p.Offset, p.FileSize, p.Address, p.MemSize, p.Align, p.Flags})
		}
	}
	list, problem := o.header.sectionHeaders(o.data)
	o.addProblem(problem)
	o.sections = make([]*Section, len(list))
	o.byName = make(map[string]*Section, len(list))
	for i := range list {
		s := &list[i]
		s.object = o
		o.sections[i] = s
		if _, ok := o.byName[s.Name]; !ok && i != 0 {
			o.byName[s.Name] = s
		}
	}
	if o.relocatable = o.header.typ == elf.ET_REL || o.isUnlinkedCubin(); o.relocatable {
		o.findRelocations()
	}
	o.segments = o.usableSegments()
	if o.debugOnly = o.codeIsElsewhere(); o.debugOnly {
		for i := range o.segments { // the bytes at their offsets, if any, belong to other parts
			o.segments[i].FileSize = 0
		}
	}
	o.byStart = slices.Clone(o.segments)
	slices.SortStableFunc(o.byStart, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	o.headerSize = o.sizeOfHeaders()
	return nil
}

// findRelocations notes which sections have relocations for which.
func (o *Object) findRelocations() {
	var tables []*Section
	for _, s := range o.sections {
		if (s.Type == elf.SHT_RELA || s.Type == elf.SHT_REL) && s.Size != 0 {
			tables = append(tables, s)
		}
	}
	tables, left := Apart(tables)
	if left != nil {
		o.problems = append(o.problems, left.Error())
	}
	o.relocated = make(map[uint32][]*Section, len(tables))
	for _, s := range tables {
		o.relocated[s.Info] = append(o.relocated[s.Info], s)
	}
}

// usableSegments returns the segments, or sections in their place. Intel's graphics compiler writes
// files with one segment that may not be read, written or executed, and that begins with the ELF
// header at the address of the code. Such segments are useless: the sections that occupy memory
// have the places of their bytes.
func (o *Object) usableSegments() []Segment {
	for i := range o.segments {
		if o.segments[i].Flags&(elf.PF_R|elf.PF_W|elf.PF_X) != 0 {
			return o.segments
		}
	}
	if len(o.segments) == 0 {
		return nil
	}
	var list []Segment
	for _, s := range o.sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_TLS != 0 || s.Size == 0 || s.Address+s.Size < s.Address {
			continue
		}
		segment := Segment{Offset: s.Offset, FileSize: s.Size, Address: s.Address, MemSize: s.Size, Align: s.Align, Flags: elf.PF_R}
		if s.Type == elf.SHT_NOBITS {
			segment.FileSize = 0
		}
		if s.Flags&elf.SHF_WRITE != 0 {
			segment.Flags |= elf.PF_W
		}
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			segment.Flags |= elf.PF_X
		}
		list = append(list, segment)
	}
	if len(list) == 0 {
		return o.segments
	}
	return list
}

func (o *Object) addProblem(problem string) {
	if problem != "" {
		o.problems = append(o.problems, o.name+": "+problem)
	}
}

// Name returns the object's name in messages: the path, or the name that New got.
func (o *Object) Name() string { return o.name }

// Path returns the path of the object's file, or of the file that contains it; "" for bytes in
// memory.
func (o *Object) Path() string {
	if o.mapping == nil {
		return ""
	}
	return o.mapping.path
}

// ModTime returns when the file of Path was written to last; the zero time for bytes in memory.
func (o *Object) ModTime() time.Time {
	if o.mapping == nil {
		return time.Time{}
	}
	return o.mapping.ModTime()
}

// Data returns all bytes of the file. They are read inside Guard. Of an image in memory they are a file
// of it, which is made once.
func (o *Object) Data() []byte {
	if o.isLoaded {
		return o.asFile()
	}
	_ = o.need(0, uint64(len(o.data)), false) // who brings the rest has the error
	return o.data
}

// FileSize returns the number of bytes of the file.
func (o *Object) FileSize() uint64 { return uint64(len(o.data)) }

// Problems returns errors of the headers without which the object can be used, each a sentence that
// names the file.
func (o *Object) Problems() []string {
	switch {
	case o.macho != nil:
		return append(o.macho.Problems(), o.problems...)
	case o.pe != nil:
		return append(o.pe.Problems(), o.problems...)
	}
	return o.problems
}

// IsELF reports whether the object is an ELF file.
func (o *Object) IsELF() bool { return !o.foreign && o.pe == nil && o.pdb == nil && o.macho == nil }

// IsForeign reports whether the object has a format of Formats, which only a plugin reads.
func (o *Object) IsForeign() bool { return o.foreign }

// Machine returns e_machine, and for a PE or PDB file the ELF number of its machine; 0 where there is none,
// and for a foreign object.
func (o *Object) Machine() uint16 { return o.header.machine }

// OSABI returns the OS ABI byte of e_ident.
func (o *Object) OSABI() uint8 { return o.header.osabi }

// ABIVersion returns the ABI version byte of e_ident, whose meaning depends on the OS ABI.
func (o *Object) ABIVersion() uint8 { return o.header.abiVersion }

// Flags returns e_flags.
func (o *Object) Flags() uint32 { return o.header.flags }

// Type returns e_type; for a PE file ET_DYN if it is a library and else ET_EXEC.
func (o *Object) Type() elf.Type { return o.header.typ }

// Class returns the class of the file: 32-bit or 64-bit.
func (o *Object) Class() elf.Class { return o.header.class }

// ByteOrder returns the byte order of the file's data.
func (o *Object) ByteOrder() binary.ByteOrder { return o.header.order }

// AddressSize returns the size of an address, in bytes.
func (o *Object) AddressSize() int {
	if o.header.wide {
		return 8
	}
	return 4
}

// Entry returns the entry point, a virtual address.
func (o *Object) Entry() uint64 { return o.header.entry }

// Programs returns all program headers, in the file's order.
func (o *Object) Programs() []Program { return o.programs }

// Segments returns the program headers of type PT_LOAD, in the file's order. Where none of them
// gives any right to memory, the sections that occupy memory are in their place. A PE file has its
// headers and its sections.
func (o *Object) Segments() []Segment { return o.segments }

// Sections returns all sections, in the file's order; the first one is the null
// section. There are none where the file has no section headers.
func (o *Object) Sections() []*Section { return o.sections }

// Section returns the first section of a name; nil when there is none. A name that begins with
// ".debug_" also finds the section of the old compressed format, ".zdebug_".
func (o *Object) Section(name string) *Section {
	if s, ok := o.byName[name]; ok {
		return s
	}
	if rest, ok := strings.CutPrefix(name, ".debug_"); ok {
		return o.byName[".zdebug_"+rest]
	}
	return nil
}

// DebugOnly reports whether the file has debug information alone: its code sections have no bytes
// (`objcopy --only-keep-debug`), or it is a PDB file. Its segments have none either, and describe another file.
func (o *Object) DebugOnly() bool { return o.debugOnly }

func (o *Object) codeIsElsewhere() bool {
	code := false
	for _, s := range o.sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 {
			continue
		}
		if s.Type != elf.SHT_NOBITS {
			return false
		}
		code = true
	}
	return code
}

// ProgramData returns the bytes that a program header names. Bytes past the
// end of the file are an error with the number of bytes that are there.
func (o *Object) ProgramData(p Program) ([]byte, error) {
	b, ok := slice(o.data, p.Offset, p.FileSize)
	if !ok {
		return nil, fmt.Errorf("%s: segment of type %#x at offset %#x, size %#x is not in the %d bytes of the file",
			o.name, uint32(p.Type), p.Offset, p.FileSize, len(o.data))
	}
	return b, o.need(p.Offset, p.FileSize, false)
}

// grow accounts for n bytes that are made from the object's bytes.
//
// A file may claim any unpacked size, so only a bound on all of it together keeps memory in
// proportion. Debug sections shrink to a
// third or a tenth; whole files never to less than a hundredth.
func (o *Object) grow(n uint64) error {
	limit := int64(min(unpackedFloor+unpackedRatio*uint64(len(o.data)), maxUnpacked, math.MaxInt/2))
	if n > uint64(limit) || o.unpacked.Add(int64(n)) > limit {
		return fmt.Errorf("%w: %d bytes more, expected at most %d from a file of %d bytes", ErrTooLarge, n, limit, len(o.data))
	}
	return nil
}

const (
	unpackedFloor = 64 << 20
	unpackedRatio = 128
)
