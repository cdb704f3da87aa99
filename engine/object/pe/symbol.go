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
	// IsFunction says that its type is that of a function. Assemblers need not say so.
	IsFunction bool
	// HasRecords says that records of its own follow it: a static symbol without a type that has
	// them is a section's.
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

// Address is the virtual address of a symbol that lies in a section.
func (s *Symbol) Address() uint64 { return s.Section.Address() + uint64(s.Value) }

// SymbolCount is how many records the symbol table of the file has, at most.
func (f *File) SymbolCount() int { return len(f.symbols) / symbolSize }

// Symbols calls yield with each symbol of the table, in the order of the file; a symbol of
// StorageFile names the source file that those behind it are from. Each is valid until the
// next call. The error says that names are not in the file; such symbols are left out.
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

// symbolName is the name of a symbol: in its record, in the string table, or of a source
// file in the records behind it.
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

// readSymbols finds the symbol table. One that the file ends in is read as far as it goes.
func (f *File) readSymbols(data []byte) {
	at, size := uint64(f.header.symbolTable), symbolSize*uint64(f.header.symbolCount)
	if at == 0 || size == 0 {
		return
	}
	b := prefix(data, at, size)
	if uint64(len(b)) < size {
		f.problem(fmt.Errorf("%s: symbol table of %d symbols at offset %#x is not in the %d bytes of the file", f.name, f.header.symbolCount, at, len(data)))
	}
	f.symbols = b[:len(b)/symbolSize*symbolSize]
}

// CodeEnd is where the code ends that begins at a virtual address, as far as .pdata tells:
// where the function does of which the address is a part, with the ranges that are chained to
// it and follow it; or for code that is in none, where the next function begins. It is false
// where the address is not code or there is no .pdata.
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

// isChained says whether a range is a part of another function.
func (f *File) isChained(e runtimeFunction) bool {
	if e.unwind&isIndirect != 0 {
		return true
	}
	head := f.source.upTo(e.unwind, 1)
	return len(head) == 1 && head[0]>>3&IsChained != 0
}
