// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"encoding/binary"
	"fmt"
)

// Symbol is an entry of the symbol table (nlist_64).
type Symbol struct {
	Name    string // as in the file: names of C begin with an underscore
	Type    uint8  // n_type
	Section uint8  // from 1 on; 0: none
	Desc    uint16 // n_desc
	Value   uint64 // a virtual address, of a symbol of a section
}

// Parts of n_type, and bits of n_desc.
const (
	stabMask       = 0xe0
	typeMask       = 0x0e
	isExternal     = 0x01
	isPrivate      = 0x10
	typeUndefined  = 0x0
	typeAbsolute   = 0x2
	typeSection    = 0xe
	descIsWeak     = 0x80 // N_WEAK_DEF
	descIsThumb    = 0x08
	descIsAltEntry = 0x200
	symbolSize     = 16
	// maxSymbolName bounds a name, and namesRatio all of them: a symbol and its entries in the debug map share theirs.
	maxSymbolName = 1 << 16
	namesRatio    = 16
	namesFloor    = 1 << 20
)

// Entries of debug maps (stab.h): they name the object files that have the DWARF of an executable that
// was linked without dsymutil.
const (
	StabBegin    = 0x2e // N_BNSYM
	StabEnd      = 0x4e // N_ENSYM
	StabFunction = 0x24 // N_FUN
	StabGlobal   = 0x20 // N_GSYM
	StabStatic   = 0x26 // N_STSYM
	StabSource   = 0x64 // N_SO
	StabObject   = 0x66 // N_OSO
)

// IsStab reports whether the entry is of a debug map.
func (s *Symbol) IsStab() bool { return s.Type&stabMask != 0 }

// IsDefined reports whether the symbol is at an address of a section.
func (s *Symbol) IsDefined() bool {
	return !s.IsStab() && s.Type&typeMask == typeSection && s.Section != 0
}

// IsCommon reports whether the linker makes a variable of the symbol, of as many bytes as its value.
func (s *Symbol) IsCommon() bool {
	return !s.IsStab() && s.Type&typeMask == typeUndefined && s.Type&isExternal != 0 && s.Value != 0
}

// IsAbsolute reports whether the symbol's value is no address of a section.
func (s *Symbol) IsAbsolute() bool { return !s.IsStab() && s.Type&typeMask == typeAbsolute }

// IsExternal reports whether other files see the symbol.
func (s *Symbol) IsExternal() bool { return s.Type&isExternal != 0 && s.Type&isPrivate == 0 }

// IsWeak reports whether another file's symbol may take its place.
func (s *Symbol) IsWeak() bool { return s.Desc&descIsWeak != 0 }

// IsAltEntry reports whether the symbol is inside the function of the symbol before it.
func (s *Symbol) IsAltEntry() bool { return s.Desc&descIsAltEntry != 0 }

// SymbolCount returns how many symbols the file has room for, of those that it claims.
func (f *File) SymbolCount() int {
	if f.symtab.offset > uint64(len(f.data)) {
		return 0
	}
	return int(min(uint64(f.symbolCount), (uint64(len(f.data))-f.symtab.offset)/symbolSize)) //nolint:gosec // of the file's size
}

// Symbols yields the entries of the symbol table, in the file's order. One is valid until the next call.
// The error is that of a table that is cut: those before it were yielded.
func (f *File) Symbols(yield func(*Symbol)) error {
	count := f.SymbolCount()
	strings, err := f.bytes(f.strtab, "the names of symbols")
	if err != nil { // a name may be there nevertheless
		strings = nil
		if f.strtab.offset < uint64(len(f.data)) {
			strings = f.data[f.strtab.offset:]
		}
	}
	le := binary.LittleEndian
	left := namesFloor + namesRatio*int64(len(strings))
	var s Symbol
	for i := range count {
		b := f.data[f.symtab.offset+uint64(i)*symbolSize:][:symbolSize] //nolint:gosec // an index
		s = Symbol{Type: b[4], Section: b[5], Desc: le.Uint16(b[6:]), Value: le.Uint64(b[8:])}
		if at := uint64(le.Uint32(b)); at < uint64(len(strings)) && left > 0 {
			s.Name = Name(strings[at:min(uint64(len(strings)), at+maxSymbolName)])
			left -= int64(len(s.Name))
		}
		yield(&s)
	}
	if left <= 0 {
		return fmt.Errorf("%s: symbol table at offset %#x: names of more bytes than %d times the %d of the table of names", f.name, f.symtab.offset, namesRatio, len(strings))
	}
	if uint64(count) < uint64(f.symbolCount) { //nolint:gosec // not negative
		return fmt.Errorf("%s: symbol table at offset %#x: %d symbols, expected %d", f.name, f.symtab.offset, count, f.symbolCount)
	}
	return err
}

// Bounds on the exports.
const (
	maxExports    = 1 << 22
	maxExportName = 1 << 16
	// reexport and stubAndResolver are flags of exports whose symbol is elsewhere, or has a resolver behind it.
	reexport        = 0x08
	stubAndResolver = 0x10
	kindMask        = 0x03
	kindAbsolute    = 0x02
)

// Export is a symbol that other files see, of the trie of exports.
type Export struct {
	Name    string
	Address uint64 // virtual
}

// Exports yields the exports of the trie, in its order, but none that another library has. Nodes that lead
// back to one before them, or outside, end it with an error.
func (f *File) Exports(yield func(Export)) error {
	text := f.Text()
	if f.exports.size == 0 || text == nil {
		return nil
	}
	trie, err := f.bytes(f.exports, "the trie of exports")
	if err != nil {
		return err
	}
	w := trieWalk{trie: trie, base: text.Address, visited: make([]uint64, (len(trie)+63)/64), yield: yield}
	if err := w.node(0); err != nil {
		return fmt.Errorf("%s: the trie of exports at offset %#x: %w", f.name, f.exports.offset, err)
	}
	return nil
}
