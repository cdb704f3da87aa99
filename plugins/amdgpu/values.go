package amdgpu

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// A scalar is what is known of 32 bits: of a scalar register, or of what one lane
// of a vector register holds.
type scalar struct {
	kind scalarKind
	high bool   // maskScalar: the lanes from 32 on
	id   uint16 // entryScalar: an isa.Reg; alignedScalar: a symbol; maskScalar: a column
	add  uint32
	at   uint64 // codeLow, codeHigh: an address
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
)

// entryOf is what a register held on entry.
func entryOf(r isa.Reg) scalar { return scalar{kind: entryScalar, id: uint16(r)} }

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

// A part is what the lanes of a vector register hold that were active on entry,
// or the others: every lane its own.
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

// A vector is what is known of a vector register, or of as many bytes of private
// memory: of the lanes that were active on entry to the function, of the others,
// and apart from both of those lanes that an instruction wrote by number.
type vector struct {
	in, out part
	lanes   []laneValue // by lane; never changed, only replaced
}

// A laneValue is what a lane holds that was written by number. If the lane was
// active on entry, it does not hold what the vector's part in says, where in is
// set; if it was not, not what out says, where out is set. A value that is known
// is there in both cases.
type laneValue struct {
	lane    uint8
	in, out bool
	v       scalar
}

// whole says of both parts of v whether they hold for all their lanes.
func (v *vector) whole() (in, out bool) {
	in, out = true, true
	for _, l := range v.lanes {
		in, out = in && !l.in, out && !l.out
	}
	return in, out
}

func (v *vector) equal(o *vector) bool {
	return v.in == o.in && v.out == o.out && slices.Equal(v.lanes, o.lanes)
}

// lane is what lane n holds, if it was written by number.
func (v *vector) lane(n uint8) (value scalar, ok bool) {
	i, found := slices.BinarySearchFunc(v.lanes, n, func(l laneValue, n uint8) int { return cmp.Compare(l.lane, n) })
	if !found {
		return scalar{}, false
	}
	return v.lanes[i].v, true
}

// read is what lane n holds.
func (v *vector) read(n uint8) scalar {
	if value, ok := v.lane(n); ok {
		return value
	}
	if v.in == v.out && v.in.kind == uniformPart {
		return v.in.u
	}
	return scalar{}
}

// withLane is v with another value in lane n.
func (v vector) withLane(n uint8, value scalar) vector {
	lanes := make([]laneValue, 0, len(v.lanes)+1)
	for _, l := range v.lanes {
		if l.lane < n {
			lanes = append(lanes, l)
		}
	}
	lanes = append(lanes, laneValue{n, true, true, value})
	for _, l := range v.lanes {
		if l.lane > n {
			lanes = append(lanes, l)
		}
	}
	v.lanes = lanes
	return v
}

// over is v after w was written over it in the lanes of a mask of which r says
// how far it reaches.
func (v vector) over(w vector, r extent) vector {
	switch {
	case !r.mayIn && !r.mayOut:
		return v
	case r.mustIn && r.mustOut:
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
	return vector{
		in: mixed(r.mustIn, r.mayIn, v.in, w.in), out: mixed(r.mustOut, r.mayOut, v.out, w.out),
		lanes: joinLanes(v.lanes, w.lanes, func(a, b laneValue) laneValue {
			l := laneValue{in: b.in, out: b.out}
			if !r.mustIn {
				l.in = a.in || r.mayIn && b.in
			}
			if !r.mustOut {
				l.out = a.out || r.mayOut && b.out
			}
			if a.v == b.v {
				l.v = a.v
			}
			return l
		}),
	}
}

// joinLanes merges lists of lanes. What one list does not have is not known, and
// spoils neither part.
func joinLanes(a, b []laneValue, join func(a, b laneValue) laneValue) []laneValue {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	out := make([]laneValue, 0, max(len(a), len(b)))
	add := func(lane uint8, x, y laneValue) {
		l := join(x, y)
		l.lane = lane
		if l.v.kind != unknownScalar {
			l.in, l.out = true, true
		}
		if l.in || l.out {
			out = append(out, l)
		}
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].lane < b[0].lane:
			add(a[0].lane, a[0], laneValue{})
			a = a[1:]
		case len(a) == 0 || b[0].lane < a[0].lane:
			add(b[0].lane, laneValue{}, b[0])
			b = b[1:]
		default:
			add(a[0].lane, a[0], b[0])
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// A place is where a vector is: a vector register, or 4 bytes of every lane's
// private memory.
type place uint64

const (
	agprs      = 512 // vector registers from here on are accumulation registers
	vectors    = agprs + 256
	privateBit = 1 << 48
)

// register is the place of an operand's register.
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

// untouched is what a place holds of which nothing was said.
func (p place) untouched() vector {
	if p.isPrivate() {
		return vector{}
	}
	own := part{kind: entryPart, id: uint16(p)}
	return vector{in: own, out: own}
}
