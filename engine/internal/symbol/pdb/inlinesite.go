// SPDX-License-Identifier: Apache-2.0

package pdb

// siteRow is a row of the lines of an inlined call, for code from start up to end: offsets from
// the function's start.
type siteRow struct {
	start, end uint32
	part       uint32 // 0: of the function's main code; else the number of its separated part
	position
}

// Operations of binary annotations (BinaryAnnotationOpcode of cvinfo.h).
const (
	opCodeOffset        = 1
	opPart              = 2
	opChangeOffset      = 3
	opCodeLength        = 4
	opFile              = 5
	opLine              = 6
	opLineEnd           = 7
	opRangeKind         = 8
	opColumn            = 9
	opColumnEndDelta    = 10
	opOffsetAndLine     = 11
	opLengthAndOffset   = 12
	opColumnEnd         = 13
	maxCompressedNumber = 0x1fffffff
)

// number reads a number of binary annotations: 7, 14 or 29 bits.
func (r *fields) number() uint32 {
	first := uint32(r.U8())
	switch {
	case first < 0x80:
		return first
	case first < 0xc0:
		return first&0x3f<<8 | uint32(r.U8())
	case first < 0xe0:
		next := r.Take(3)
		return first&0x1f<<24 | uint32(next[0])<<16 | uint32(next[1])<<8 | uint32(next[2])
	}
	r.Rest, r.IsCut = nil, true
	return 0
}

// signed reads a number whose lowest bit is its sign.
func signed(v uint32) int32 {
	if v&1 != 0 {
		return -int32(v >> 1) //nolint:gosec // at most 31 bits
	}
	return int32(v >> 1) //nolint:gosec // likewise
}

// annotations reads the binary annotations of an inlined call.
type annotations struct {
	fields
	from   inlinee
	dst    []siteRow
	isOpen bool // the last of dst ends where the next one begins
	part   uint32
	offset uint32
	line   int32 // from the inlinee's
	file   uint32
	column uint32
}

// appendRows appends the rows of binary annotations for an inlinee.
func appendRows(dst []siteRow, b []byte, from inlinee) []siteRow {
	a := annotations{fields: fieldsOf(b), from: from, dst: dst, file: from.file}
	for len(a.Rest) > 0 && a.step() {
	}
	if a.isOpen && a.dst[len(a.dst)-1].end == 0 { // without a length: nothing tells where it ends
		a.dst = a.dst[:len(a.dst)-1]
	}
	return a.dst
}

// step reads an operation; false where there are no more of them.
func (a *annotations) step() bool {
	switch op := a.number(); op {
	case opCodeOffset:
		a.offset = a.number()
		a.begin()
	case opPart:
		a.part, a.offset = a.number(), 0
		a.isOpen = a.isOpen && a.drop()
	case opChangeOffset:
		a.offset += a.number()
		a.begin()
	case opCodeLength:
		a.length(a.number())
	case opFile:
		a.file = a.number()
	case opLine:
		a.line += signed(a.number())
	case opOffsetAndLine:
		v := a.number()
		a.line += signed(v >> 4)
		a.offset += v & 0xf
		a.begin()
	case opLengthAndOffset:
		length := a.number()
		a.offset += a.number()
		start := a.offset
		a.begin()
		a.length(length)
		a.offset = start
	case opColumn:
		a.column = a.number()
	case opLineEnd, opRangeKind, opColumnEndDelta, opColumnEnd:
		a.number()
	default:
		return false // 0 fills the record
	}
	return !a.IsCut
}

// begin ends the row before the offset, and begins one.
func (a *annotations) begin() {
	if a.IsCut {
		return
	}
	if a.isOpen {
		a.end(a.offset)
	}
	line := max(int32(a.from.line)+a.line, 0) //nolint:gosec // lines of 24 bits; before the first there is none
	if a.from.line == noLine {
		line = 0
	}
	a.dst = append(a.dst, siteRow{start: a.offset, part: a.part, position: position{file: a.file, line: int(line), column: int(a.column)}})
	a.isOpen = true
}

// length ends the row by its length. Where none was begun, it is of the code from the offset on:
// older compilers by LLVM did not begin a row at the start of a function.
func (a *annotations) length(n uint32) {
	if a.IsCut {
		return
	}
	if !a.isOpen {
		a.begin()
	}
	a.offset = a.dst[len(a.dst)-1].start + n
	a.end(a.offset)
	a.isOpen = false
}

// end sets the end of the last row, which is left out where it has no code.
func (a *annotations) end(offset uint32) {
	last := &a.dst[len(a.dst)-1]
	if last.end = offset; last.end <= last.start {
		a.drop()
	}
}

// drop leaves out the last row.
func (a *annotations) drop() bool {
	a.dst = a.dst[:len(a.dst)-1]
	return false
}
