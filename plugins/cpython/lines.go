// SPDX-License-Identifier: Apache-2.0

package cpython

import "math"

// position is a place in the source of a function. Line 0 is an unknown one, and so is column 0: the
// first one is 1.
type position struct{ line, column uint32 }

// newPosition makes a position of numbers that may be outside of what lines and columns can be.
func newPosition(line, column int64) position {
	if line <= 0 || line > math.MaxInt32 {
		return position{}
	}
	if column < 0 || column >= math.MaxInt32 {
		column = -1
	}
	return position{uint32(line), uint32(column + 1)} //nolint:gosec // in range
}

// position returns the position of the instruction at a place in a code object, in bytes. Before
// the first instruction it is where the function begins.
func (c *code) position(minor int, place int64) position {
	switch {
	case place < 0:
		return newPosition(int64(c.firstLine), -1)
	case minor < 10:
		return newPosition(lineByNotes(c.lines, int64(c.firstLine), place), -1)
	case minor == 10:
		return newPosition(lineByRanges(c.lines, int64(c.firstLine), place), -1)
	}
	return positionByLocations(c.lines, int64(c.firstLine), place/2)
}

// lineByNotes returns the line of an instruction by co_lnotab, the table before 3.10: pairs of bytes
// that advance the place and the line.
func lineByNotes(table []byte, line, place int64) int64 {
	start := int64(0)
	for i := 0; i+1 < len(table); i += 2 {
		if start += int64(table[i]); start > place {
			break
		}
		line += int64(int8(table[i+1])) //nolint:gosec // signed in C
	}
	return line
}

// lineByRanges returns the line of an instruction by co_linetable of 3.10: pairs of the bytes of a
// range and of how much its line differs from the line before. 0 where the range has no line.
func lineByRanges(table []byte, line, place int64) int64 {
	const noLine = -128
	end := int64(0)
	for i := 0; i+1 < len(table); i += 2 {
		delta := int64(int8(table[i+1])) //nolint:gosec // signed in C
		if delta != noLine {
			line += delta
		}
		if end += int64(table[i]); place < end {
			if delta == noLine {
				return 0
			}
			return line
		}
	}
	return 0
}

// The forms of entries of the location table, from 3.11 on. The ones below formOneLine have the
// columns of one line in one more byte.
const (
	formOneLine   = 10 // to 12: the line differs by 0 to 2
	formNoColumns = 13
	formLong      = 14
	formNone      = 15
)

// positionByLocations returns the position of the instruction with a number by the location table of
// 3.11 and later.
func positionByLocations(table []byte, line, number int64) position {
	t := locations{rest: table}
	end := int64(0)
	for len(t.rest) > 0 {
		head := t.byte()
		form := head >> 3 & 15
		column, hasLine := int64(-1), true
		switch {
		case form < formOneLine:
			column = int64(form)<<3 | int64(t.byte()>>4)
		case form < formNoColumns:
			line += int64(form) - formOneLine
			column = int64(t.byte())
			t.byte()
		case form == formNoColumns:
			line += t.signed()
		case form == formLong:
			line += t.signed()
			t.unsigned()                     // how many lines more
			column = int64(t.unsigned()) - 1 //nolint:gosec // at most 2**60
			t.unsigned()
		default:
			hasLine = false
		}
		if t.isCut || head&0x80 == 0 {
			return position{}
		}
		if end += int64(head&7) + 1; number < end {
			if !hasLine {
				return position{}
			}
			return newPosition(line, column)
		}
	}
	return position{}
}

// locations reads the numbers of a location table.
type locations struct {
	rest  []byte
	isCut bool
}

func (t *locations) byte() byte {
	if len(t.rest) == 0 {
		t.isCut = true
		return 0
	}
	b := t.rest[0]
	t.rest = t.rest[1:]
	return b
}

// maxShift bounds the numbers of a location table: they have 6 bits a byte.
const maxShift = 54

// unsigned reads a number with 6 bits in each byte, the lowest first; another byte follows where bit
// 6 is set.
func (t *locations) unsigned() (n uint64) {
	for shift := 0; ; shift += 6 {
		b := t.byte()
		if shift > maxShift {
			t.isCut = true
		}
		if t.isCut {
			return 0
		}
		n |= uint64(b&63) << shift
		if b&64 == 0 {
			return n
		}
	}
}

// signed reads a number whose lowest bit is its sign.
func (t *locations) signed() int64 {
	n := t.unsigned()
	if n&1 == 1 {
		return -int64(n >> 1) //nolint:gosec // at most 2**59
	}
	return int64(n >> 1) //nolint:gosec // at most 2**59
}
