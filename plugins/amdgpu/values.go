// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// scalar is the known value of 32 bits: of a scalar register, or of one lane of a
// vector register.
type scalar struct {
	kind    scalarKind
	isHigh  bool   // maskScalar, partScalar: the lanes from 32 on
	id      uint16 // entryScalar: an isa.Reg; alignedScalar: a symbol; maskScalar, partScalar: a column
	add     uint32
	address uint64 // codeLow, codeHigh: an address
}

type scalarKind uint8

const (
	unknownScalar  scalarKind = iota
	entryScalar               // the value of register id on entry, plus add
	alignedScalar             // a stack pointer that the function aligned, plus add; id is the alignment's symbol
	constantScalar            // add
	codeLow                   // the low half of address, to which add was added
	codeHigh                  // the high half
	maskScalar                // half of a mask, or a whole one of 32 lanes
	partScalar                // half of a condition, or a whole one: it has some lanes of mask id, and becomes a mask when it is read
)

// entryOf returns the value of a register on entry.
func entryOf(r isa.Reg) scalar { return scalar{kind: entryScalar, id: uint16(r)} }

// hasName reports whether v's id is local to a state: a column or a symbol.
func (v *scalar) hasName() bool { return v.hasColumn() || v.kind == alignedScalar }

// hasColumn reports whether v's id is a column.
func (v *scalar) hasColumn() bool { return v.kind == maskScalar || v.kind == partScalar }

// plus returns v plus n.
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

// part is the known value of some lanes of a vector register: of those active on
// entry, or of the others.
type part struct {
	kind partKind
	id   uint16 // entryPart: a vector register
	u    scalar // uniformPart
}

type partKind uint8

const (
	unknownPart partKind = iota
	entryPart            // the value of the same lane of vector register id on entry
	uniformPart          // u, in every lane
)

// vector is the known value of a vector register, or of 4 bytes of every lane's private
// memory: active in the lanes that were active on entry to the function, inactive in
// the others. Lanes that an instruction wrote by number are listed apart.
type vector struct {
	active, inactive part
	lanes            []laneValue // the lanes that have another value, sorted; the list is replaced, never changed
}

// laneValue is the value of one lane: active if it was active on entry,
// inactive if not.
type laneValue struct {
	lane             uint8
	active, inactive part
}

// scalarPart returns a value in every lane, or the unknown part.
func scalarPart(v scalar) part {
	if v.kind == unknownScalar {
		return part{}
	}
	return part{kind: uniformPart, u: v}
}

// value returns the lane's value, if that does not depend on whether it was active on
// entry.
func (l *laneValue) value() scalar {
	if l.active == l.inactive && l.active.kind == uniformPart {
		return l.active.u
	}
	return scalar{}
}

// whole reports for active and inactive whether all of their lanes have that
// value.
func (v *vector) whole() (active, inactive bool) {
	active, inactive = true, true
	for i := range v.lanes {
		active, inactive = active && v.lanes[i].active == v.active, inactive && v.lanes[i].inactive == v.inactive
	}
	return active, inactive
}

// isUsual reports whether a lane has the values of active and inactive. Such lanes are
// not listed.
func (v *vector) isUsual(l laneValue) bool { return l.active == v.active && l.inactive == v.inactive }

func (v *vector) equal(o *vector) bool {
	return v.active == o.active && v.inactive == o.inactive && slices.Equal(v.lanes, o.lanes)
}

// lane returns the value of lane n.
func (v *vector) lane(n uint8) laneValue {
	i, found := slices.BinarySearchFunc(v.lanes, n, func(l laneValue, n uint8) int { return cmp.Compare(l.lane, n) })
	if found {
		return v.lanes[i]
	}
	return laneValue{n, v.active, v.inactive}
}

// read returns the 32 bits of lane n.
func (v *vector) read(n uint8) scalar {
	l := v.lane(n)
	return l.value()
}

// withLane returns v with another value in lane n.
func (v vector) withLane(n uint8, value scalar) vector {
	w := vector{active: scalarPart(value), inactive: scalarPart(value)}
	return v.over(w, extent{isConstant: true, bits: 1 << n})
}

// over returns v after w was written over it in the lanes of r.
func (v vector) over(w vector, r extent) vector {
	switch {
	case r.isConstant && r.bits == 0 || !r.isConstant && !r.mayActive && !r.mayInactive:
		return v
	case !r.isConstant && r.mustActive && r.mustInactive:
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
	out := vector{active: v.active, inactive: v.inactive}
	if !r.isConstant {
		out.active, out.inactive = mixed(r.mustActive, r.mayActive, v.active, w.active), mixed(r.mustInactive, r.mayInactive, v.inactive, w.inactive)
	}
	out.lanes = mergeLanes(&v, &w, r.bits, &out, func(a, b laneValue) (active, inactive part) {
		switch {
		case r.isConstant && r.bits>>a.lane&1 != 0:
			return b.active, b.inactive
		case r.isConstant:
			return a.active, a.inactive
		}
		return mixed(r.mustActive, r.mayActive, a.active, b.active), mixed(r.mustInactive, r.mayInactive, a.inactive, b.inactive)
	})
	return out
}

// mergeLanes merges the lanes that v or w lists, and the lanes of more, one by
// one. It returns the lanes whose values then differ from def's.
func mergeLanes(v, w *vector, more uint64, def *vector, merge func(a, b laneValue) (active, inactive part)) []laneValue {
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
		x, y := laneValue{n, v.active, v.inactive}, laneValue{n, w.active, w.inactive}
		if len(a) > 0 && a[0].lane == n {
			x, a = a[0], a[1:]
		}
		if len(b) > 0 && b[0].lane == n {
			y, b = b[0], b[1:]
		}
		active, inactive := merge(x, y)
		if active != def.active || inactive != def.inactive {
			list = append(list, laneValue{n, active, inactive})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// place is the place of a vector: a vector register, or 4 bytes of every
// lane's private memory.
type place uint64

const (
	agprs      = 1024 // vector registers from here on are accumulation registers
	vectors    = agprs + 256
	privateBit = 1 << 48
)

// registerPlace returns the place of an operand's register.
func registerPlace(kind isa.Kind, index uint16) (p place, ok bool) {
	switch {
	case kind == isa.VGPR && index < agprs:
		return place(index), true
	case kind == isa.AGPR && index < vectors-agprs:
		return agprs + place(index), true
	}
	return 0, false
}

// private returns the place of the 4 bytes at an offset from a base: 0 is the
// stack pointer on entry, others are symbols. Offsets count the bytes of a
// lane.
func private(base uint16, offset int32) place {
	return privateBit | place(base)<<32 | place(uint32(offset)^1<<31)
}

func (p place) isPrivate() bool { return p&privateBit != 0 }
func (p place) base() uint16    { return uint16(p >> 32) }
func (p place) offset() int32   { return int32(uint32(p) ^ 1<<31) }

// untouched returns the value of a place that the function has not written.
func (p place) untouched() vector {
	if p.isPrivate() {
		return vector{}
	}
	own := part{kind: entryPart, id: uint16(p)}
	return vector{active: own, inactive: own}
}
