// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"fmt"
	"slices"
)

// The CONTEXT_EX structure (winnt.h) is behind the CONTEXT. It has the offset, from
// itself on, and the length of three chunks; the third one is an XSAVE area without its
// first 512 bytes, which are in the CONTEXT.
const (
	contextExSize   = 24
	contextExXState = 16
	xsaveHeader     = 64
	xsaveLegacy     = 512
	xsaveCompacted  = 1 << 63 // of XCOMP_BV, and of Misc.XStateFeatures
)

// part is a component of the extended state (Intel SDM volume 1, 13.4 and 13.5):
// its size and its registers.
type part struct {
	size      int
	isAligned bool // to 64 bytes, in a compacted area
	registers func(vectors int) []field
}

// parts are the components by their number. Components without registers of the
// program are only skipped.
var parts = map[int]part{
	2:  {size: 256, registers: func(n int) []field { return numbered(0, 16, 16, n, 1, "ymm%dh") }},
	3:  {size: 64, registers: func(int) []field { return numbered(0, 16, 16, 4, 1, "bnd%d") }},
	4:  {size: 64, registers: func(int) []field { return run(0, 8, 1, "bndcfgu", "bndstatus") }},
	5:  {size: 64, registers: func(int) []field { return numbered(0, 8, 8, 8, 1, "k%d") }},
	6:  {size: 512, registers: func(n int) []field { return numbered(0, 32, 32, n, 1, "zmm%dh") }},
	7:  {size: 1024, registers: upperVectors},
	8:  {size: 128},
	9:  {size: 8, registers: func(int) []field { return run(0, 4, 1, "pkru") }},
	10: {size: 8},
	11: {size: 16, registers: func(int) []field { return run(0, 8, 1, "cet_u", "ssp") }},
	12: {size: 24},
	17: {size: 64, isAligned: true, registers: func(int) []field { return run(0, 64, 1, "tilecfg") }},
	18: {size: 8192, isAligned: true, registers: func(int) []field { return numbered(0, 1024, 1024, 8, 1, "tmm%d") }},
}

// upperVectors returns zmm16 to zmm31, which i386 does not have.
func upperVectors(vectors int) []field {
	if vectors < 16 {
		return nil
	}
	list := numbered(0, 64, 64, 16, 1, "")
	for i := range list {
		list[i].name = fmt.Sprintf("zmm%d", 16+i)
	}
	return list
}

// extended returns the registers of the extended state: the upper halves of the vector
// registers, ymm0h and zmm0h; masks; protection keys; the shadow stack's pointer.
func (c *Context) extended() []Register {
	f := c.format
	if f.xstate == 0 || c.Flags&f.xstate == 0 {
		return nil
	}
	r := record{c.Raw, c.dump.Order}
	offset := f.size + int(int32(r.u32(f.size+contextExXState)))
	length := uint64(r.u32(f.size + contextExXState + 4))
	if !r.has(f.size, contextExSize) || offset < f.size+contextExSize || offset > len(r.b) || length < xsaveHeader {
		return nil
	}
	area := r.skip(offset)
	area.b = area.b[:min(length, uint64(len(area.b)))]
	mask, layout := area.u64(0), area.u64(8)
	var list []Register
	for _, p := range c.dump.places(mask, layout, len(area.b)) {
		list = append(list, c.readPart(area, p, mask>>p.number&1 != 0)...)
	}
	return list
}

// place is the offset of a component in the area behind the first 512 bytes.
type place struct{ number, offset int }

// places finds the components of an area. In a compacted area they follow one another,
// up to one of unknown size; in others they have the processor's offsets, which are in
// the stream MiscInfo.
func (d *Dump) places(mask, layout uint64, size int) []place {
	var list []place
	offset := xsaveHeader
	for i := 2; i < 63; i++ {
		p, isKnown := parts[i]
		if layout&xsaveCompacted == 0 {
			if mask>>i&1 == 0 || d.Misc == nil || !isKnown {
				continue
			}
			s := d.Misc.XState[i]
			if offset := int64(s.Offset) - xsaveLegacy; offset >= xsaveHeader && s.Size >= uint32(p.size) && offset+int64(p.size) <= int64(size) {
				list = append(list, place{i, int(offset)})
			}
			continue
		}
		if layout>>i&1 == 0 {
			continue
		}
		if p.isAligned {
			offset = (offset + 63) &^ 63
		}
		if !isKnown || offset+p.size > size {
			break
		}
		list = append(list, place{i, offset})
		offset += p.size
	}
	return list
}

// readPart returns the registers of a component. One that is not in use is in its
// initial state, whose registers are 0, and its bytes need not be written.
func (c *Context) readPart(area record, p place, isInUse bool) []Register {
	known := parts[p.number]
	if known.registers == nil {
		return nil
	}
	var list []Register
	for _, f := range known.registers(c.format.wide) {
		value := make([]byte, f.size)
		if isInUse {
			value = slices.Clone(area.b[p.offset+f.offset : p.offset+f.offset+f.size])
		}
		list = append(list, Register{f.name, value})
	}
	return list
}
