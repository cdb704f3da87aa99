// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// A scalar is what is known of 32 bits, which a scalar register holds, or one lane of a
// vector register.
type scalar struct {
	kind   scalarKind
	isHigh bool   // maskScalar, partScalar: the lanes from 32 on
	id     uint16 // entryScalar: an isa.Reg; alignedScalar: a symbol; maskScalar, partScalar: a column
	add    uint32
	at     uint64 // codeLow, codeHigh: an address
}

type scalarKind uint8

const (
	unknownScalar  scalarKind = iota
	entryScalar               // what register id held on entry, plus add
	alignedScalar             // a stack pointer that the function aligned, plus add; id is the alignment's symbol
	constantScalar            // add
	codeLow                   // the low half of the address at, to which add was added
	codeHigh                  // the high half
	maskScalar                // half of a mask, or a whole one of 32 lanes
	partScalar                // half of a condition, or a whole one: it has some lanes of mask id, and becomes a mask when it is read
)

// entryOf is what a register held on entry.
func entryOf(r isa.Reg) scalar { return scalar{kind: entryScalar, id: uint16(r)} }

// hasName says whether v's id is a name that a state gave: a column or a symbol.
func (v *scalar) hasName() bool { return v.hasColumn() || v.kind == alignedScalar }

// hasColumn says whether v's id is a column.
func (v *scalar) hasColumn() bool { return v.kind == maskScalar || v.kind == partScalar }

// plus adds n.
func (v scalar) plus(n uint32) scalar {
	switch v.kind {
	case entryScalar, alignedScalar, constantScalar:
		v.add += n
		return v
	case codeLow, codeHigh:
		// A second sum of the low halves might carry once more.
		if v.add == 0 {
			v.add = n
			return v
		}
	}
	return scalar{}
}

// A part is what some lanes of a vector register hold: those that were active on entry,
// or the others.
type part struct {
	kind partKind
	id   uint16 // entryPart: a vector register
	u    scalar // uniformPart
}

type partKind uint8

const (
	unknownPart partKind = iota
	entryPart            // what the same lane of vector register id held on entry
	uniformPart          // u, in every lane
)

// A vector is what is known of a vector register, or of 4 bytes of every lane's private
// memory: in is what the lanes hold that were active on entry to the function, out what
// the others hold. Lanes that an instruction wrote by number are listed apart.
type vector struct {
	in, out part
	lanes   []laneValue // the lanes that hold something else, sorted; the list is replaced, never changed
}

// A laneValue is what one lane holds: in if it was active on entry, out if not.
type laneValue struct {
	lane    uint8
	in, out part
}

// scalarPart is a value in every lane, or nothing known.
func scalarPart(v scalar) part {
	if v.kind == unknownScalar {
		return part{}
	}
	return part{kind: uniformPart, u: v}
}

// value is what the lane holds, if that does not depend on whether it was active on entry.
func (l *laneValue) value() scalar {
	if l.in == l.out && l.in.kind == uniformPart {
		return l.in.u
	}
	return scalar{}
}

// whole says of in and of out whether all of their lanes hold that.
func (v *vector) whole() (in, out bool) {
	in, out = true, true
	for i := range v.lanes {
		in, out = in && v.lanes[i].in == v.in, out && v.lanes[i].out == v.out
	}
	return in, out
}

// isUsual says whether a lane holds what in and out say. Such lanes are not listed.
func (v *vector) isUsual(l laneValue) bool { return l.in == v.in && l.out == v.out }

func (v *vector) equal(o *vector) bool {
	return v.in == o.in && v.out == o.out && slices.Equal(v.lanes, o.lanes)
}

// lane is what lane n holds.
func (v *vector) lane(n uint8) laneValue {
	i, found := slices.BinarySearchFunc(v.lanes, n, func(l laneValue, n uint8) int { return cmp.Compare(l.lane, n) })
	if found {
		return v.lanes[i]
	}
	return laneValue{n, v.in, v.out}
}

// read is the value of 32 bits that lane n holds.
func (v *vector) read(n uint8) scalar {
	l := v.lane(n)
	return l.value()
}

// withLane is v with another value in lane n.
func (v vector) withLane(n uint8, value scalar) vector {
	w := vector{in: scalarPart(value), out: scalarPart(value)}
	return v.over(w, extent{isConstant: true, bits: 1 << n})
}

// over is v after w was written over it in the lanes of a mask. r says which those are.
func (v vector) over(w vector, r extent) vector {
	switch {
	case r.isConstant && r.bits == 0 || !r.isConstant && !r.mayIn && !r.mayOut:
		return v
	case !r.isConstant && r.mustIn && r.mustOut:
		return w
	}
	mixed := func(must, may bool, old, other part) part {
		switch {
		case must || old == other:
			return other
		case may:
			return part{}
		}
		return old
	}
	out := vector{in: v.in, out: v.out}
	if !r.isConstant {
		out.in, out.out = mixed(r.mustIn, r.mayIn, v.in, w.in), mixed(r.mustOut, r.mayOut, v.out, w.out)
	}
	out.lanes = mergeLanes(&v, &w, r.bits, &out, func(a, b laneValue) (in, out part) {
		switch {
		case r.isConstant && r.bits>>a.lane&1 != 0:
			return b.in, b.out
		case r.isConstant:
			return a.in, a.out
		}
		return mixed(r.mustIn, r.mayIn, a.in, b.in), mixed(r.mustOut, r.mayOut, a.out, b.out)
	})
	return out
}

// mergeLanes merges the lanes that v or w lists, and those of more, one by one. It
// returns the lanes that then hold something else than def says.
func mergeLanes(v, w *vector, more uint64, def *vector, merge func(a, b laneValue) (in, out part)) []laneValue {
	which := more
	for i := range v.lanes {
		which |= 1 << v.lanes[i].lane
	}
	for i := range w.lanes {
		which |= 1 << w.lanes[i].lane
	}
	if which == 0 {
		return nil
	}
	list := make([]laneValue, 0, bits.OnesCount64(which))
	for a, b := v.lanes, w.lanes; which != 0; which &= which - 1 {
		n := uint8(bits.TrailingZeros64(which)) //nolint:gosec // below 64
		x, y := laneValue{n, v.in, v.out}, laneValue{n, w.in, w.out}
		if len(a) > 0 && a[0].lane == n {
			x, a = a[0], a[1:]
		}
		if len(b) > 0 && b[0].lane == n {
			y, b = b[0], b[1:]
		}
		in, out := merge(x, y)
		if in != def.in || out != def.out {
			list = append(list, laneValue{n, in, out})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// A place is where a vector is: a vector register, or 4 bytes of every lane's
// private memory.
type place uint64

const (
	agprs      = 1024 // vector registers from here on are accumulation registers
	vectors    = agprs + 256
	privateBit = 1 << 48
)

// registerPlace is the place of an operand's register.
func registerPlace(kind isa.Kind, index uint16) (p place, ok bool) {
	switch {
	case kind == isa.VGPR && index < agprs:
		return place(index), true
	case kind == isa.AGPR && index < vectors-agprs:
		return agprs + place(index), true
	}
	return 0, false
}

// private is the place of the 4 bytes at an offset from a base: 0 is the stack
// pointer on entry, others are symbols. Offsets count the bytes of a lane.
func private(base uint16, offset int32) place {
	return privateBit | place(base)<<32 | place(uint32(offset)^1<<31)
}

func (p place) isPrivate() bool { return p&privateBit != 0 }
func (p place) base() uint16    { return uint16(p >> 32) }
func (p place) offset() int32   { return int32(uint32(p) ^ 1<<31) }

// untouched is what a place holds that the function has not written.
func (p place) untouched() vector {
	if p.isPrivate() {
		return vector{}
	}
	own := part{kind: entryPart, id: uint16(p)}
	return vector{in: own, out: own}
}
