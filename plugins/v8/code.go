// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"fmt"
)

// codeKind is the way in which V8 made code.
type codeKind int64

// machineCode is code that V8 made: a Code object, and where its instructions are.
type machineCode struct {
	object     object
	start, end uint64
	kind       codeKind
}

const (
	// codeAlignment divides the address of the first instruction of code.
	codeAlignment = 64
	// maxCode bounds the bytes of one function's code. V8 gives up optimising at less.
	maxCode = 1 << 20
	// maxSearched bounds the bytes in which one call looks for code.
	maxSearched = 1 << 26
	// codeStep is how many bytes of code are searched at once.
	codeStep = 1 << 15
)

// errNoCode is returned for a PC in no code that V8 made.
var errNoCode = errors.New("it is in no code that V8 made")

// codeAt returns the code that a PC is in: objects of code lie before their instructions, and say
// how many there are.
func (c *call) codeAt(pc uint64) (*machineCode, error) {
	if m := c.code[pc]; m != nil {
		return m, nil
	}
	first := pc &^ (codeAlignment - 1)
	for start := first; start > maxCode && first-start < maxCode; start -= codeAlignment {
		if (first-start)%codeStep == 0 {
			if c.searched += codeStep; c.searched > maxSearched {
				break
			}
			c.Prefetch([]uint64{start - codeStep}, codeStep)
		}
		m, ok := c.codeFrom(start)
		if !ok {
			continue
		}
		if pc < m.start || pc > m.end {
			return nil, errNoCode
		}
		c.code[pc] = m
		return m, nil
	}
	return nil, errNoCode
}

// codeFrom returns the code whose first instruction is at an address; false where none begins.
func (c *call) codeFrom(start uint64) (*machineCode, bool) {
	o := object(start - c.offset(streamStart))
	w, err := c.Pointer(uint64(o))
	if err != nil {
		return nil, false
	}
	if _, ok := objectOf(w); !ok || !c.isType(o, typeStream) {
		return nil, false
	}
	if c.values[codeStart] != 0 { // else the object is the code's own
		if o, err = c.member(o, streamCode, typeCode); err != nil {
			return nil, false
		}
		if at, err := c.Pointer(uint64(o) + c.offset(codeStart)); err != nil || at != start {
			return nil, false
		}
	}
	size, err := c.Uint(uint64(o)+c.offset(codeSize), 4)
	if err != nil || size == 0 || size > maxCode {
		return nil, false
	}
	flags, err := c.Uint(uint64(o)+c.offset(codeFlags), 4)
	if err != nil {
		return nil, false
	}
	kind := codeKind(flags & c.offset(codeKindMask)) //nolint:gosec // few bits
	return &machineCode{o, start, start + size, kind}, true
}

// errNoEnd is returned for a table that ends before its subject.
var errNoEnd = errors.New("it ends too early")

// bytecodeOffset returns the bytecode that baseline code was made from, and the offset of the one
// that a PC behind a call is in.
func (c *call) bytecodeOffset(m *machineCode, pc uint64) (object, int64, error) {
	w, err := c.word(m.object, codeData)
	if err != nil {
		return 0, 0, err
	}
	o, ok := objectOf(w)
	bytecode := object(0)
	if ok {
		bytecode = c.bytecodeOf(o)
	}
	if bytecode == 0 {
		return 0, 0, fmt.Errorf("the code at %#x leads to %#x, expected bytecode", m.object, w)
	}
	code, err := c.codeBytes(bytecode)
	if err != nil {
		return 0, 0, err
	}
	table, err := c.member(m.object, codePositions, typeByteArray)
	if err != nil {
		return 0, 0, err
	}
	data, err := c.bytes(table, maxTable)
	if err != nil {
		return 0, 0, err
	}
	offset, err := baselineOffset(data, code, c.bytecodes, pc-m.start)
	if err != nil {
		err = fmt.Errorf("the table of bytecode offsets at %#x: %w", table, err)
	}
	return bytecode, offset, err
}

// codeBytes reads the bytes of bytecode.
func (c *call) codeBytes(bytecode object) ([]byte, error) {
	n, err := c.number(bytecode, arrayLength)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxTable {
		return nil, fmt.Errorf("the bytecode at %#x has %d bytes, expected at most %d", bytecode, n, maxTable)
	}
	return c.Bytes(uint64(bytecode)+c.offset(bytecodeData), uint64(n)) //nolint:gosec // not negative
}

// baselineOffset returns the offset of the bytecode whose instructions end at an offset or behind
// it. A table has the size of the instructions before the first bytecode, and then of each one's.
func baselineOffset(table, bytecode []byte, sizes string, target uint64) (int64, error) {
	end, next, offset := uint64(0), int64(0), int64(functionEntry)
	for first := true; ; first = false {
		if !first {
			size := bytecodeSize(bytecode, next, sizes)
			if size == 0 {
				return 0, fmt.Errorf("the bytecode at offset %d is not known", next)
			}
			offset, next = next, next+size
		}
		if len(table) == 0 {
			return 0, errNoEnd
		}
		n, left, err := groups(table)
		if err != nil {
			return 0, err
		}
		table = left
		if end += n; end >= target || end < n {
			return offset, nil
		}
	}
}

// bytecodeSize returns how many bytes the bytecode at an offset has, with a prefix; 0: there is
// none. Of each bytecode, sizes has two digits: how many operands a prefix widens, and how many
// bytes the others have.
func bytecodeSize(bytecode []byte, offset int64, sizes string) int64 {
	if offset < 0 || offset >= int64(len(bytecode)) {
		return 0
	}
	prefix, scale, code := int64(0), int64(1), int(bytecode[offset])
	if code < len(prefixScales) && offset+1 < int64(len(bytecode)) {
		prefix, scale, code = 1, prefixScales[code], int(bytecode[offset+1])
	}
	if 2*code+1 >= len(sizes) {
		return 0
	}
	return prefix + 1 + int64(sizes[2*code]-'0')*scale + int64(sizes[2*code+1]-'0')
}

// prefixScales are the sizes of widened operands, by the bytecode that is the prefix: Wide,
// ExtraWide, and both for a breakpoint.
var prefixScales = [...]int64{2, 4, 2, 4}
