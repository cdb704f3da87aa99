// SPDX-License-Identifier: Apache-2.0

package codeview

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Kinds of records.
const (
	LFVTableShape   = 0x000a
	LFLabel         = 0x000e
	LFModifier      = 0x1001
	LFPointer       = 0x1002
	LFProcedure     = 0x1008
	LFMemberFunc    = 0x1009
	LFArgList       = 0x1201
	LFFieldList     = 0x1203
	LFBitField      = 0x1205
	LFMethodList    = 0x1206
	LFBaseClass     = 0x1400
	LFVirtualBase   = 0x1401
	LFIndirectBase  = 0x1402 // a virtual base of a base
	LFIndex         = 0x1404 // the rest of a list of fields
	LFVTablePointer = 0x1409
	LFVTableOffset  = 0x140c
	LFEnumerate     = 0x1502
	LFArray         = 0x1503
	LFClass         = 0x1504
	LFStructure     = 0x1505
	LFUnion         = 0x1506
	LFEnum          = 0x1507
	LFMember        = 0x150d
	LFStaticMember  = 0x150e
	LFMethod        = 0x150f
	LFNestedType    = 0x1510
	LFOneMethod     = 0x1511
	LFNestedTypeEx  = 0x1512
	LFInterface     = 0x1519
	LFBaseInterface = 0x151a
	LFVFTable       = 0x151d
	LFFuncID        = 0x1601
	LFMFuncID       = 0x1602
	LFBuildInfo     = 0x1603
	LFSubstrList    = 0x1604
	LFStringID      = 0x1605
	LFUDTSrcLine    = 0x1606
	LFUDTModSrcLine = 0x1607
	LFClass2        = 0x1608
	LFStructure2    = 0x1609
	LFUnion2        = 0x160a
	LFInterface2    = 0x160b
)

var (
	errNoStream = errors.New("there are no type records")
	errCut      = errors.New("the record is cut")
)

// cursor reads the parts of a record one after another. Behind the end it reads zeros, and failed
// is set.
type cursor struct {
	rest   []byte
	failed bool
}

func (c *cursor) take(n int) []byte {
	if n > len(c.rest) {
		c.failed, c.rest = true, nil
		return make([]byte, n)
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) u8() uint8        { return c.take(1)[0] }
func (c *cursor) u16() uint16      { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32      { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) index() TypeIndex { return TypeIndex(c.u32()) }

// text reads a text that a zero ends.
func (c *cursor) text() string {
	n := bytes.IndexByte(c.rest, 0)
	if n < 0 {
		c.failed, c.rest = true, nil
		return ""
	}
	b := c.rest[:n]
	c.rest = c.rest[n+1:]
	return string(b)
}

// numberSizes are the bytes of numbers by the leaf before them, and whether they are signed.
// Numbers below 0x8000 have no leaf.
var numberSizes = map[uint16]struct {
	size     int
	isSigned bool
}{
	0x8000: {1, true}, 0x8001: {2, true}, 0x8002: {2, false}, 0x8003: {4, true}, 0x8004: {4, false}, 0x8009: {8, true}, 0x800a: {8, false},
	0x8005: {4, false}, 0x8006: {8, false}, 0x801c: {2, false}, // bits of real numbers
	0x8007: {10, false}, 0x8008: {16, false}, 0x8017: {16, true}, 0x8018: {16, false},
}

// Number is a number in a record.
type Number struct {
	Bytes    []byte // little-endian; at least 2
	IsSigned bool
}

// Uint64 is the number, in two's complement where it is negative; false where it is larger.
func (n Number) Uint64() (uint64, bool) {
	var b [8]byte
	fill := byte(0)
	if n.IsSigned && len(n.Bytes) > 0 && n.Bytes[len(n.Bytes)-1]&0x80 != 0 {
		fill = 0xff
	}
	for i := range b {
		b[i] = fill
	}
	copy(b[:], n.Bytes)
	for _, over := range n.Bytes[min(len(n.Bytes), 8):] {
		if over != fill {
			return 0, false
		}
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// number reads a number with its leaf.
func (c *cursor) number() Number {
	head := c.take(2)
	leaf := binary.LittleEndian.Uint16(head)
	if leaf < 0x8000 {
		return Number{Bytes: head}
	}
	form, ok := numberSizes[leaf]
	if !ok {
		c.failed, c.rest = true, nil
		return Number{}
	}
	return Number{Bytes: c.take(form.size), IsSigned: form.isSigned}
}

// size reads a number that is a size or an offset.
func (c *cursor) size() uint64 {
	n, ok := c.number().Uint64()
	if !ok {
		c.failed = true
	}
	return n
}

// ReadNumber reads a number from the start of data, as symbols of constants have it, and returns
// the data behind it; false where there is none.
func ReadNumber(data []byte) (n Number, rest []byte, ok bool) {
	c := cursor{rest: data}
	n = c.number()
	return n, c.rest, !c.failed
}
