package dwarf

import (
	"bytes"
	"encoding/binary"
)

// A cursor reads forward through the bytes of a section. A read past the end
// gives zero and sets failed; it is asked for once, after a run of reads.
type cursor struct {
	data   []byte
	off    uint64 // of the next byte in the section
	order  binary.ByteOrder
	failed bool
}

// at returns a cursor on section from off to end, which is cut to the section.
func at(section []byte, order binary.ByteOrder, off, end uint64) cursor {
	end = min(end, uint64(len(section)))
	if off > end {
		return cursor{off: off, order: order, failed: true}
	}
	return cursor{data: section[off:end], off: off, order: order}
}

func (c *cursor) more() bool { return !c.failed && len(c.data) > 0 }

func (c *cursor) bytes(n uint64) []byte {
	if c.failed || n > uint64(len(c.data)) {
		c.failed, c.data = true, nil
		return nil
	}
	b := c.data[:n]
	c.data = c.data[n:]
	c.off += n
	return b
}

// uint reads an unsigned integer of 1 to 8 bytes.
func (c *cursor) uint(size int) uint64 {
	b := c.bytes(uint64(size))
	if b == nil {
		return 0
	}
	var v uint64
	if c.order == binary.BigEndian {
		for _, x := range b {
			v = v<<8 | uint64(x)
		}
		return v
	}
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// uleb reads an unsigned LEB128 number; bits past the 64th are dropped.
func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.bytes(1)
		if b == nil {
			return 0
		}
		if shift < 64 {
			v |= uint64(b[0]&0x7f) << shift
		}
		if b[0]&0x80 == 0 {
			return v
		}
	}
}

// sleb reads a signed LEB128 number; bits past the 64th are dropped.
func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); ; shift += 7 {
		b := c.bytes(1)
		if b == nil {
			return 0
		}
		if shift < 64 {
			v |= int64(b[0]&0x7f) << shift
		}
		if b[0]&0x80 == 0 {
			if b[0]&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// text reads a string that ends in a zero byte, without it.
func (c *cursor) text() []byte {
	n := bytes.IndexByte(c.data, 0)
	if c.failed || n < 0 {
		c.failed, c.data = true, nil
		return nil
	}
	b := c.bytes(uint64(n) + 1)
	return b[:n]
}

// initialLength reads the length that begins a unit or a table, and the size of
// offsets in it (DWARF 5, 7.2.2 and 7.4).
func (c *cursor) initialLength() (length uint64, offsetSize int) {
	length, offsetSize = c.uint(4), 4
	switch {
	case length == 0xffffffff:
		length, offsetSize = c.uint(8), 8
	case length >= 0xfffffff0:
		c.failed, c.data = true, nil
	}
	return length, offsetSize
}
