// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"fmt"
	"sort"
)

const (
	// maxTable bounds the bytes of a table of positions or of bytecode.
	maxTable = 1 << 24
	// maxLines bounds the lines of a script, and maxSource its characters.
	maxLines  = 1 << 22
	maxSource = 1 << 25
	// functionEntry is the bytecode offset of a function's beginning.
	functionEntry = -1
)

// errNoPositions is returned for bytecode without a table of positions: V8 makes it when it is
// needed first, as for a stack trace.
var errNoPositions = errors.New("V8 has not made its table of positions")

// sourcePositions decodes a table of positions: pairs of the difference from the code offset
// before, whose sign says something else, and from the source position before.
type sourcePositions struct{ data []byte }

// position returns the position of the last entry at or before an offset: 0 for none.
func (t sourcePositions) position(offset int64) (position uint64, err error) {
	code, raw := int64(functionEntry), int64(0)
	data := t.data
	for len(data) > 0 {
		var n, more int64
		if n, data, err = zigZag(data); err != nil {
			return 0, err
		}
		if n < 0 {
			n = -(n + 1)
		}
		if more, data, err = zigZag(data); err != nil {
			return 0, err
		}
		code, raw = code+n, raw+more
		if raw < 0 || code < functionEntry || code > maxTable {
			return 0, fmt.Errorf("the position %#x is at the code offset %d", raw, code)
		}
		if code > offset {
			break
		}
		if raw&1 == 0 { // else it is in a file of V8 itself
			position = uint64(raw)
		}
	}
	return position, nil
}

// scriptOffset returns the place in a script of a position: its first bit stands for a file of
// V8, 30 bits follow that are 1 more than the place, then 16 for inlined functions.
func scriptOffset(position uint64) int64 {
	return int64(position>>1&(1<<30-1)) - 1 //nolint:gosec // 30 bits
}

// zigZag decodes a number of groups of 7 bits, whose last bit is the sign.
func zigZag(data []byte) (int64, []byte, error) {
	n, data, err := groups(data)
	return int64(n>>1) ^ -int64(n&1), data, err //nolint:gosec // as it was made
}

// groups decodes an unsigned number of groups of 7 bits, the lowest first.
func groups(data []byte) (n uint64, left []byte, err error) {
	for i, b := range data {
		if i > 9 {
			break
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return n, data[i+1:], nil
		}
	}
	return 0, nil, errors.New("a number has no end")
}

// place is a line and a column of a file, from 1 on.
type place struct{ line, column uint32 }

// placeInBytecode returns the place of a bytecode offset.
func (c *call) placeInBytecode(s *script, bytecode object, offset int64) (place, error) {
	table, ok := c.tables[bytecode]
	if !ok {
		var err error
		if table, err = c.tableOf(bytecode); err != nil {
			return place{}, err
		}
		c.tables[bytecode] = table
	}
	if len(table.data) == 0 {
		return place{}, errNoPositions
	}
	position, err := table.position(offset)
	if err != nil {
		return place{}, fmt.Errorf("the positions of the bytecode at %#x: %w", bytecode, err)
	}
	return c.placeInScript(s, scriptOffset(position))
}

// tableOf reads the table of positions of bytecode.
func (c *call) tableOf(bytecode object) (sourcePositions, error) {
	w, err := c.word(bytecode, bytecodePositions)
	if err != nil {
		return sourcePositions{}, err
	}
	o, ok := objectOf(w)
	if !ok || !c.isType(o, typeByteArray) {
		return sourcePositions{}, nil
	}
	data, err := c.bytes(o, maxTable)
	return sourcePositions{data}, err
}

// placeInScript returns the place of a character of a script.
func (c *call) placeInScript(s *script, position int64) (place, error) {
	if !s.isRead {
		s.ends, s.failure = c.lineEnds(s.object)
		s.isRead = true
	}
	if s.failure != nil {
		return place{}, fmt.Errorf("the lines of %s: %w", s.name, s.failure)
	}
	position = max(position, 0)
	n := sort.Search(len(s.ends), func(i int) bool { return s.ends[i] >= position })
	if n == len(s.ends) {
		return place{}, fmt.Errorf("the position %d is behind the end of %s", position, s.name)
	}
	line, column := int64(n), position
	if n > 0 {
		column -= s.ends[n-1] + 1
	}
	if line == 0 {
		column += s.column
	}
	line += s.line
	if line < 0 || column < 0 || line >= maxSource || column >= maxSource {
		return place{}, fmt.Errorf("the position %d of %s is in line %d, column %d", position, s.name, line, column)
	}
	return place{uint32(line) + 1, uint32(column) + 1}, nil //nolint:gosec // checked
}

// lineEnds returns where the lines of a script end, in characters.
func (c *call) lineEnds(o object) ([]int64, error) {
	w, err := c.word(o, scriptLineEnds)
	if err != nil {
		return nil, err
	}
	if list, ok := objectOf(w); ok && c.isType(list, typeFixedArray) {
		words, err := c.words(list, maxLines)
		if err != nil {
			return nil, err
		}
		return c.checkEnds(words)
	}
	if w, err = c.word(o, scriptSource); err != nil {
		return nil, err
	}
	source, ok := objectOf(w)
	if !ok {
		return nil, errors.New("it has no source")
	}
	length, err := c.length(source)
	if err != nil {
		return nil, err
	}
	if length > maxSource {
		return nil, fmt.Errorf("its source has %d characters, expected at most %d", length, maxSource)
	}
	units, err := c.units(source, length)
	if err != nil {
		return nil, err
	}
	return endsOf(units), nil
}

// checkEnds returns the ends of lines that V8 found.
func (c *call) checkEnds(words []uint64) ([]int64, error) {
	ends := make([]int64, len(words))
	for i, w := range words {
		n, ok := c.smi(w)
		if !ok || n < 0 || i > 0 && n <= ends[i-1] {
			return nil, fmt.Errorf("line %d ends at %#x", i+1, w)
		}
		ends[i] = n
	}
	return ends, nil
}

// endsOf finds the ends of lines: at the last character of a line's end, and of the source.
func endsOf(units []uint16) (ends []int64) {
	for i, u := range units {
		switch u {
		case '\n', 0x2028, 0x2029:
			ends = append(ends, int64(i))
		case '\r':
			if i+1 == len(units) || units[i+1] != '\n' {
				ends = append(ends, int64(i))
			}
		}
	}
	return append(ends, int64(len(units)))
}
