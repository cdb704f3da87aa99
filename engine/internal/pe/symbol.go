// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bytes"
	"fmt"
)

// A Symbol is an entry of the COFF symbol table ("PE Format", COFF Symbol Table), which
// MinGW's linkers leave in images and Microsoft's do not.
type Symbol struct {
	Name    string
	Value   uint32
	Section *Section // that it lies in; nil: it is undefined, a number, or of debugging
	Class   uint8    // as StorageExternal
	// IsFunction: its type is a function. Assemblers need not write the type.
	IsFunction bool
	// HasRecords: records of its own follow it. A static symbol without a type that has them
	// is a section's.
	HasRecords bool
}

// Storage classes ("PE Format", Storage Class).
const (
	StorageExternal     = 2
	StorageStatic       = 3
	StorageLabel        = 6 // code that assemblers know no type of
	StorageFile         = 103
	StorageWeakExternal = 105
)

const functionType = 0x20 // IMAGE_SYM_DTYPE_FUNCTION, in the high half of the type's low byte

// Address returns the virtual address of a symbol that lies in a section.
func (s *Symbol) Address() uint64 { return s.Section.Address() + uint64(s.Value) }

// SymbolCount returns the most records that the symbol table of the file can have.
func (f *File) SymbolCount() int { return len(f.symbols) / symbolSize }

// Symbols calls yield with each symbol of the table, in the order of the file; a symbol of
// StorageFile names the source file of the symbols behind it. Each is valid until the next call. The
// error is that names are not in the file; such symbols are left out.
func (f *File) Symbols(yield func(*Symbol)) error {
	var s Symbol
	bad, first := 0, 0
	for i := 0; i < f.SymbolCount(); {
		b := f.symbols[i*symbolSize:][:symbolSize]
		records := int(b[17])
		next := min(i+1+records, f.SymbolCount())
		own := f.symbols[(i+1)*symbolSize : next*symbolSize]
		s = Symbol{Value: u32(b, 8), Class: b[16], IsFunction: u16(b, 14)&0xf0 == functionType, HasRecords: len(own) != 0}
		if n := int(u16(b, 12)); n > 0 && n <= len(f.sections) {
			s.Section = f.sections[n-1]
		}
		var ok bool
		if s.Name, ok = f.symbolName(b, own, s.Class); !ok {
			if bad == 0 {
				first = i
			}
			bad++
		} else {
			yield(&s)
		}
		i = next
	}
	if bad > 0 {
		return fmt.Errorf("%s: symbol table at offset %#x: names of %d symbols (the first is symbol %d) are not in the string table of %#x bytes",
			f.name, f.header.symbolTable, bad, first, f.names.size())
	}
	return nil
}

// symbolName returns the name of a symbol: in its record, in the string table, or for a source file
// in the records behind it.
func (f *File) symbolName(b, records []byte, class uint8) (string, bool) {
	switch {
	case class == StorageFile:
		name, _, _ := bytes.Cut(records, []byte{0})
		return string(name), true
	case u32(b, 0) != 0:
		name, _, _ := bytes.Cut(b[:8], []byte{0})
		return string(name), true
	}
	return f.names.at(uint64(u32(b, 4)))
}

// readSymbols finds the symbol table. One that is cut is read as far as it goes.
func (f *File) readSymbols(data []byte) {
	offset, size := uint64(f.header.symbolTable), symbolSize*uint64(f.header.symbolCount)
	if offset == 0 || size == 0 {
		return
	}
	b := prefix(data, offset, size)
	if uint64(len(b)) < size {
		f.problem(fmt.Errorf("%s: symbol table of %d symbols at offset %#x is not in the %d bytes of the file", f.name, f.header.symbolCount, offset, len(data)))
	}
	f.symbols = b[:len(b)/symbolSize*symbolSize]
}

// CodeEnd returns the end of the code that begins at a virtual address, by .pdata: the end of the
// function that contains the address, with the ranges that are chained to it and follow it; or for
// code in no function, the start of the next one. It is false where the address is not code or there
// is no .pdata.
func (f *File) CodeEnd(address uint64) (end uint64, ok bool) {
	t, err := f.functions()
	rva, isIn := f.rva(address)
	if err != nil || !isIn || t.len() == 0 {
		return 0, false
	}
	i := t.next(rva) - 1
	if i < 0 || rva >= t.at(i).end {
		_, end, ok := f.gap(t, rva)
		return f.address(end), ok
	}
	for range maxChain {
		if i+1 == t.len() || t.at(i+1).begin != t.at(i).end || !f.isChained(t.at(i+1)) {
			break
		}
		i++
	}
	return f.address(t.at(i).end), true
}

// isChained reports whether a range is a part of another function.
func (f *File) isChained(e runtimeFunction) bool {
	if f.header.machine == MachineARM64 {
		return f.isARM64Fragment(e)
	}
	if e.unwind&isIndirect != 0 {
		return true
	}
	info := f.source.upTo(e.unwind, 1)
	return len(info) == 1 && info[0]>>3&IsChained != 0
}
