// SPDX-License-Identifier: Apache-2.0

package pdb

import "github.com/unwindd/unwindd/engine/internal/symbol/msf"

// Kinds of symbol records (cvinfo.h).
const (
	kindEnd           = 0x0006
	kindGlobalData    = 0x110d
	kindLocalData     = 0x110c
	kindThunk         = 0x1102
	kindPublic        = 0x110e
	kindLocalProc     = 0x110f
	kindGlobalProc    = 0x1110
	kindLocalThread   = 0x1112
	kindGlobalThread  = 0x1113
	kindTrampoline    = 0x112c
	kindSeparated     = 0x1132
	kindLocalProcID   = 0x1146
	kindGlobalProcID  = 0x1147
	kindInlineSite    = 0x114d
	kindInlineSiteEnd = 0x114e
	kindProcIDEnd     = 0x114f
	kindLocalProcDPC  = 0x1155
	kindLocalDPCID    = 0x1156
	kindInlineSite2   = 0x115d
)

// isProcedure are the kinds of records of functions.
var isProcedure = map[uint16]bool{
	kindLocalProc: true, kindGlobalProc: true, kindLocalProcID: true, kindGlobalProcID: true, kindLocalProcDPC: true, kindLocalDPCID: true,
}

// record is a symbol record: its kind and what follows.
type record struct {
	kind uint16
	fields
	start, next uint32 // offsets of the record, and of the next one
}

const recordHeader = 4 // length and kind

// recordAt reads a symbol record before the end of a stream's symbols.
func recordAt(s *msf.Stream, start, end uint32) (x record, ok bool) {
	if start > end || end-start < recordHeader {
		return x, false
	}
	r, err := readAt(s, start, recordHeader)
	if err != nil {
		return x, false
	}
	length := uint32(r.U16())
	x = record{kind: r.U16(), start: start, next: start + 2 + length}
	if length < 2 || x.next > end || x.next < start { // a stream may have 4 GiB
		return x, false
	}
	x.fields, err = readAt(s, start+recordHeader, length-2)
	return x, err == nil
}

// procedure is code that a record names: of a function or of a thunk.
type procedure struct {
	section        // RVA in the space of symbols
	record  uint32 // offset of the record
}

// readProcedure reads a record of code; ok is false for records of other kinds.
func (d *dbi) readProcedure(x record) (p procedure, end uint32, ok bool) {
	p.record = x.start
	var size, offset uint32
	var number uint16
	switch {
	case isProcedure[x.kind]:
		x.U32() // parent
		end = x.U32()
		x.U32() // next
		size = x.U32()
		x.Take(12)
		offset, number = x.U32(), x.U16()
	case x.kind == kindThunk:
		x.U32() // parent
		end = x.U32()
		x.U32() // next
		offset, number = x.U32(), x.U16()
		size = uint32(x.U16())
	case x.kind == kindTrampoline:
		x.U16() // its kind
		size = uint32(x.U16())
		offset = x.U32()
		x.U32() // of the function
		number = x.U16()
	default:
		return p, 0, false
	}
	start, isKnown := d.rva(number, offset)
	if x.IsCut || !isKnown || start+size <= start {
		return p, end, false
	}
	p.section = section{start, start + size}
	return p, end, true
}

// separated is code of a function that the linker put elsewhere.
type separated struct {
	section
	number   uint32 // among the parts of the function, from 1 on
	function procedure
}

// readSeparated reads a record of separated code.
func (f *File) readSeparated(x *moduleIndex, r record) (s separated, ok bool) {
	if r.kind != kindSeparated {
		return s, false
	}
	r.Take(8) // parent and end
	size := r.U32()
	r.U32() // flags
	offset, ofOffset := r.U32(), r.U32()
	start, isKnown := f.dbi.rva(r.U16(), offset)
	owner, hasOwner := f.dbi.rva(r.U16(), ofOffset)
	if r.IsCut || !isKnown || !hasOwner || start+size <= start {
		return s, false
	}
	first, n := find(x.procedures, owner)
	if n == 0 {
		return s, false
	}
	return separated{section: section{start, start + size}, function: x.procedures[first]}, true
}

// nameOffset is where the name of a record of code begins, behind its header; 0: it has none.
func nameOffset(kind uint16) int {
	switch {
	case isProcedure[kind]:
		return 35
	case kind == kindThunk:
		return 21
	}
	return 0
}

// name is the name of a record of code.
func (x *record) name() string {
	n := nameOffset(x.kind)
	if n == 0 || n > len(x.Rest) {
		return ""
	}
	r := fieldsOf(x.Rest[n:])
	return r.Text()
}
