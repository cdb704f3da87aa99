// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"encoding/binary"

	"github.com/unwindd/unwindd/internal/leb128"
)

// cursor reads a part of a section. A read past its end returns zeros, and the cursor has
// failed from then on.
type cursor struct {
	data        []byte // the whole section
	off         uint64 // of the next byte in the section
	end         uint64 // at most len(data)
	isBigEndian bool
	failed      bool
}

// newCursor returns a cursor on a section from off to end, which is cut to the section.
func newCursor(section []byte, big bool, off, end uint64) cursor {
	end = min(end, uint64(len(section)))
	return cursor{data: section, off: min(off, end), end: end, isBigEndian: big, failed: off > end}
}

func (c *cursor) hasMore() bool { return !c.failed && c.off < c.end }

// left is the number of bytes left.
func (c *cursor) left() uint64 {
	if c.failed {
		return 0
	}
	return c.end - c.off
}

func (c *cursor) fail() { c.failed, c.off = true, c.end }

// skip skips n bytes.
func (c *cursor) skip(n uint64) {
	if c.failed || n > c.end-c.off {
		c.fail()
		return
	}
	c.off += n
}

func (c *cursor) bytes(n uint64) []byte {
	start := c.off
	if c.skip(n); c.failed {
		return nil
	}
	return c.data[start:c.off:c.off]
}

// uint reads an unsigned integer of 0 to 8 bytes.
func (c *cursor) uint(size int) uint64 {
	start := c.off
	if c.skip(uint64(size)); c.failed {
		return 0
	}
	return uintAt(c.data[start:c.off], c.isBigEndian)
}

// uintAt reads an unsigned integer of len(b) bytes, at most 8.
func uintAt(b []byte, big bool) (v uint64) {
	if big {
		for _, x := range b {
			v = v<<8 | uint64(x)
		}
		return v
	}
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// uleb reads an unsigned LEB128 number; bits past the 64th are dropped.
func (c *cursor) uleb() uint64 {
	if c.off < c.end && c.data[c.off] < leb128.More {
		c.off++
		return uint64(c.data[c.off-1])
	}
	if c.failed {
		return 0
	}
	v, next := ulebAt(c.data[:c.end], c.off)
	if next == 0 {
		c.fail()
		return 0
	}
	c.off = next
	return v
}

// ulebAt reads an unsigned LEB128 number at an offset, and returns the offset behind it; 0
// where it does not end. Bits past the 64th are dropped.
func ulebAt(b []byte, off uint64) (v, next uint64) {
	v, end, _ := leb128.Unsigned(b, int(off))
	return v, uint64(end)
}

// sleb reads a signed LEB128 number; bits past the 64th are dropped.
func (c *cursor) sleb() int64 {
	if c.failed {
		return 0
	}
	v, next, _ := leb128.Signed(c.data[:c.end], int(c.off))
	if next == 0 {
		c.fail()
		return 0
	}
	c.off = uint64(next)
	return v
}

// text reads a string that ends in a zero byte, without it.
func (c *cursor) text() []byte {
	if c.failed {
		return nil
	}
	n := bytes.IndexByte(c.data[c.off:c.end], 0)
	if n < 0 {
		c.fail()
		return nil
	}
	b := c.data[c.off : c.off+uint64(n)]
	c.off += uint64(n) + 1
	return b
}

// maxInitialLength is how many bytes initialLength reads at most.
const maxInitialLength = 12

// initialLength reads the length that begins a unit or a table, and the size of
// offsets in it (DWARF 5, 7.2.2 and 7.4).
func (c *cursor) initialLength() (length uint64, offsetSize int) {
	length, offsetSize = c.uint(4), 4
	switch {
	case length == 0xffffffff:
		length, offsetSize = c.uint(8), 8
	case length >= 0xfffffff0:
		c.fail()
	}
	return length, offsetSize
}
