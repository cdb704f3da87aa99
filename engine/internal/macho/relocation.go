// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"encoding/binary"
	"fmt"
)

// Relocations of object files (mach-o/reloc.h), of which sections of data have two kinds, with the same numbers on
// both machines.
const (
	relocationSize                      = 8
	relocUnsigned                       = 0
	relocSubtract64, relocSubtractARM64 = 5, 1
	relocGOT64, relocGOTARM64           = 4, 7 // of a place that the linker makes
	maxRelocations                      = 1 << 24
)

// relocation is an entry of a section's relocations.
type relocation struct {
	place      uint32 // offset in the section
	symbol     uint32 // of the symbol table
	kind       uint32
	length     uint32 // of the field, a power of two
	isExternal bool   // else the field has the whole address already
}

// Relocated returns the bytes of a section of an object file, relocated as if each section stayed at its address. Bytes without
// relocations that change them alias the file.
func (f *File) Relocated(s *Section) ([]byte, error) {
	b, err := f.Data(s)
	if err != nil || f.header.typ != TypeObject || s.Count == 0 || s.IsCode() {
		return b, err
	}
	if s.Count > maxRelocations {
		return nil, f.failed(s, "%d relocations, expected at most %d", s.Count, maxRelocations)
	}
	table, err := f.bytes(place{uint64(s.Relocations), uint64(s.Count) * relocationSize}, "relocations of section "+s.Segment+","+s.Name)
	if err != nil {
		return nil, err
	}
	var own []byte
	for ; len(table) > 0; table = table[relocationSize:] {
		r := readRelocation(table)
		if !r.isExternal {
			continue
		}
		if own == nil {
			own = append(own, b...)
		}
		if err := f.relocate(s, own, r); err != nil {
			return nil, err
		}
	}
	if own != nil {
		return own, nil
	}
	return b, nil
}

func readRelocation(b []byte) relocation {
	info := binary.LittleEndian.Uint32(b[4:])
	return relocation{
		place: binary.LittleEndian.Uint32(b), symbol: info & 0xffffff, length: info >> 25 & 3, isExternal: info>>27&1 != 0, kind: info >> 28,
	}
}

// relocate adds the value of a relocation's symbol to its field, or subtracts it.
func (f *File) relocate(s *Section, b []byte, r relocation) error {
	size := uint64(1) << r.length
	if uint64(r.place)+size > uint64(len(b)) || size < 4 {
		return f.failed(s, "a relocation of %d bytes at offset %#x, expected 4 or 8 in its %#x bytes", size, r.place, len(b))
	}
	value, ok := f.symbolValue(r.symbol)
	if !ok {
		return f.failed(s, "relocation at offset %#x of symbol %d, expected one of %d", r.place, r.symbol, f.SymbolCount())
	}
	subtract, got := uint32(relocSubtractARM64), uint32(relocGOTARM64)
	if f.header.machine == MachineX86_64 {
		subtract, got = relocSubtract64, relocGOT64
	}
	switch r.kind {
	case relocUnsigned:
	case subtract:
		value = -value
	case got:
		return nil
	default:
		return f.failed(s, "relocation at offset %#x of type %d, expected %d or %d", r.place, r.kind, relocUnsigned, subtract)
	}
	field := b[r.place:]
	if size == 4 {
		binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)+uint32(value)) //nolint:gosec // wraps
	} else {
		binary.LittleEndian.PutUint64(field, binary.LittleEndian.Uint64(field)+value)
	}
	return nil
}

// UndefinedAddress returns the address that relocations give to an undefined symbol by its number: behind all sections, and
// of a common symbol with room for its bytes.
func UndefinedAddress(number int) uint64 { return 1<<62 | uint64(number)<<32 } //nolint:gosec // less than 1<<24

// symbolValue returns the value of a symbol.
func (f *File) symbolValue(number uint32) (uint64, bool) {
	if uint64(number) >= uint64(f.SymbolCount()) { //nolint:gosec // not negative
		return 0, false
	}
	b := f.data[f.symtab.offset+uint64(number)*symbolSize:][:symbolSize]
	switch b[4] & typeMask {
	case typeUndefined:
		return UndefinedAddress(int(number)), true
	case typeSection:
	default:
		return 0, true
	}
	return binary.LittleEndian.Uint64(b[8:]), true
}

// failed returns an error about a section.
func (f *File) failed(s *Section, format string, args ...any) error {
	return fmt.Errorf("%s: section %s,%s: %s", f.name, s.Segment, s.Name, fmt.Sprintf(format, args...))
}
