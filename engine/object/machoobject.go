// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// This file makes objects of Mach-O files (mach-o/loader.h) in terms of ELF: sections have types, flags
// and, where DWARF names them, the names of ELF, and machines the numbers of ELF. Other sections are called
// __SEGMENT,__section.

// machoMachines are the machines of Mach-O files by the numbers of ELF.
var machoMachines = map[uint32]elf.Machine{macho.MachineX86_64: elf.EM_X86_64, macho.MachineARM64: elf.EM_AARCH64}

// machoTypes are the types of ELF by the types of Mach-O files. Others are executables.
var machoTypes = map[uint32]elf.Type{
	macho.TypeObject: elf.ET_REL, macho.TypeExecute: elf.ET_EXEC, macho.TypeCore: elf.ET_CORE,
	macho.TypeDylib: elf.ET_DYN, macho.TypeDylinker: elf.ET_DYN, macho.TypeBundle: elf.ET_DYN, macho.TypeDylibStub: elf.ET_DYN,
}

// IsMachO reports whether the object is a Mach-O file.
func (o *Object) IsMachO() bool { return o.macho != nil }

// MachO returns the object as a Mach-O file; nil if it is none. It is read inside Guard.
func (o *Object) MachO() *macho.File { return o.macho }

// isMachO reports whether the bytes begin as a Mach-O file.
func isMachO(data []byte) (is bool) {
	_ = Guard(func() error { is = macho.IsMachO(data); return nil })
	return is
}

// newMachO makes an object of a Mach-O file.
func newMachO(name string, data []byte) (*Object, error) {
	o := &Object{name: name, data: data}
	err := Guard(func() error {
		f, err := macho.New(name, data)
		if err != nil {
			return err
		}
		o.takeMachO(f)
		return nil
	})
	switch {
	case errors.Is(err, macho.ErrNotMachO):
		return nil, fmt.Errorf("%s: %w", name, ErrNotELF)
	case err != nil:
		return nil, err
	}
	o.lazy()
	return o, nil
}

// takeMachO fills in the data of the load commands.
func (o *Object) takeMachO(f *macho.File) {
	o.macho = f
	o.header = header{class: elf.ELFCLASS64, order: binary.LittleEndian, typ: elf.ET_EXEC, machine: uint16(machoMachines[f.Machine()]), wide: true}
	if typ, ok := machoTypes[f.Type()]; ok {
		o.header.typ = typ
	}
	o.header.entry, _ = f.Entry()
	o.sections = append(o.sections, &Section{object: o}) // the null section: symbols count from 1
	o.byName = map[string]*Section{}
	for _, section := range f.Sections() {
		s := machoSection(section)
		s.Index, s.object = len(o.sections), o
		o.sections = append(o.sections, s)
		if o.byName[s.Name] == nil {
			o.byName[s.Name] = s
		}
	}
	o.debugOnly = f.Type() == macho.TypeDSYM
	for _, segment := range f.Segments() {
		if segment.MemSize > 0 && segment.IsMapped() {
			o.segments = append(o.segments, o.machoSegment(segment))
		}
	}
	o.byStart = slices.Clone(o.segments)
	slices.SortStableFunc(o.byStart, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	o.headerSize = o.sizeOfHeaders()
}

// machoSection returns a section in terms of ELF.
func machoSection(section *macho.Section) *Section {
	s := &Section{
		Name: machoSectionName(section), Type: elf.SHT_PROGBITS, Address: section.Address, Offset: section.Offset, Size: section.Size, Align: 1 << min(section.Align, 63),
	}
	if !section.HasBytes() {
		s.Type = elf.SHT_NOBITS
	}
	if !section.IsDebugInfo() {
		s.Flags |= elf.SHF_ALLOC
	}
	if section.IsCode() {
		s.Flags |= elf.SHF_EXECINSTR
	}
	return s
}

// relocateMachO is relocate of a section of a Mach-O file. Sections of its object files have addresses.
func (s *Section) relocateMachO(b []byte, owned bool) ([]byte, bool, error) {
	f := s.object.macho
	if owned || f.Type() != macho.TypeObject {
		return b, owned, nil
	}
	relocated, err := f.Relocated(f.Sections()[s.Index-1])
	if err != nil || len(relocated) == 0 || &relocated[0] == &b[0] {
		return b, false, err
	}
	return relocated, true, s.object.grow(uint64(len(relocated)))
}

// machoSectionName returns the name that a section has in ELF files. Names of 16 bytes are cut:
// __debug_str_offs is .debug_str_offsets. Go's linker writes __zdebug_info, packed as .zdebug_info.
func machoSectionName(s *macho.Section) string {
	switch {
	case s.Segment == "__DWARF" && s.Name == "__debug_str_offs":
		return ".debug_str_offsets"
	case s.Segment == "__DWARF" && s.Name == "__zdebug_str_off":
		return ".zdebug_str_offsets"
	case s.Segment == "__DWARF" || s.Segment == "__TEXT" && (s.Name == "__text" || s.Name == "__eh_frame"):
		return "." + strings.TrimPrefix(s.Name, "__")
	}
	return s.Segment + "," + s.Name
}

// machoSegment returns a segment in terms of ELF. A dSYM has no bytes of the segments that it describes.
func (o *Object) machoSegment(segment *macho.Segment) Segment {
	s := Segment{Offset: segment.Offset, FileSize: segment.FileSize, Address: segment.Address, MemSize: segment.MemSize, Align: pageAlign}
	if o.debugOnly {
		s.FileSize = 0
	}
	for right, flag := range map[uint32]elf.ProgFlag{macho.CanRead: elf.PF_R, macho.CanWrite: elf.PF_W, macho.CanExecute: elf.PF_X} {
		if segment.Protection&right != 0 {
			s.Flags |= flag
		}
	}
	return s
}

// eachMachOSymbol is EachSymbol of a Mach-O file: the symbol table without entries of debug maps, then
// the exports that it lacks, which are dynamic symbols. Neither has sizes: a function or a variable ends where the next
// begins, by the symbols and the starts of functions, or its section.
func (o *Object) eachMachOSymbol(yield func(*Symbol)) error {
	ends, err := o.machoEnds()
	named := map[uint64]bool{}
	table := o.macho.Symbols(func(symbol *macho.Symbol) {
		s, ok := o.machoSymbol(symbol)
		if !ok {
			return
		}
		if s.Type == elf.STT_FUNC || s.Type == elf.STT_OBJECT {
			s.Size = ends.size(s.Address)
		}
		if s.Defined() {
			named[s.Address] = true
		}
		yield(&s)
	})
	exports := o.macho.Exports(func(e macho.Export) {
		if named[e.Address] {
			return
		}
		s := Symbol{Name: withoutUnderscore(e.Name), Address: e.Address, Binding: elf.STB_GLOBAL, Type: elf.STT_OBJECT, Section: uint32(elf.SHN_ABS), Dynamic: true}
		if section := o.macho.SectionAt(e.Address); section != nil {
			if s.Section = uint32(section.Index); section.IsCode() { //nolint:gosec // an index
				s.Type, s.Size = elf.STT_FUNC, ends.size(e.Address)
			}
		}
		yield(&s)
	})
	return errors.Join(err, table, exports)
}

// machoSymbol returns a symbol in terms of ELF; false for an entry of a debug map.
func (o *Object) machoSymbol(symbol *macho.Symbol) (s Symbol, ok bool) {
	if symbol.IsStab() || symbol.Name == "" {
		return s, false
	}
	s = Symbol{Name: withoutUnderscore(symbol.Name), Address: symbol.Value, Binding: elf.STB_LOCAL, Section: uint32(elf.SHN_UNDEF)}
	switch {
	case symbol.IsWeak():
		s.Binding = elf.STB_WEAK
	case symbol.IsExternal():
		s.Binding = elf.STB_GLOBAL
	}
	switch {
	case symbol.IsAbsolute():
		s.Section = uint32(elf.SHN_ABS)
	case symbol.IsDefined() && int(symbol.Section) < len(o.sections):
		s.Section, s.Type = uint32(symbol.Section), elf.STT_OBJECT
		// The header has a symbol of the first section.
		if section := o.sections[s.Section]; section.Flags&elf.SHF_EXECINSTR != 0 && s.Address >= section.Address {
			s.Type = elf.STT_FUNC
		}
	}
	return s, true
}

// withoutUnderscore returns the name that a symbol has in its language: the linker's begins with another
// underscore.
func withoutUnderscore(name string) string { return strings.TrimPrefix(name, "_") }

// machoEnds are the ends of the functions and variables of a Mach-O file.
type machoEnds struct {
	starts []uint64 // where functions or symbols begin, sorted
	file   *macho.File
}

func (o *Object) machoEnds() (e machoEnds, err error) {
	e.file = o.macho
	e.starts, err = o.macho.FunctionStarts()
	table := o.macho.Symbols(func(symbol *macho.Symbol) {
		if s, ok := o.machoSymbol(symbol); ok && (s.Type == elf.STT_FUNC || s.Type == elf.STT_OBJECT) {
			e.starts = append(e.starts, s.Address)
		}
	})
	slices.Sort(e.starts)
	e.starts = slices.Compact(e.starts)
	return e, errors.Join(err, table)
}

// size returns the size of the code or data at an address.
func (e *machoEnds) size(address uint64) uint64 {
	section := e.file.SectionAt(address)
	if section == nil {
		return 0
	}
	end := section.Address + section.Size
	if i, _ := slices.BinarySearch(e.starts, address+1); i < len(e.starts) {
		end = min(end, e.starts[i])
	}
	return end - address
}
