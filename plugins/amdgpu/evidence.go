package amdgpu

import (
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// namedScalars is how many scalar registers rows can name one by one.
const namedScalars = 106

// Evidence is all that a state shows of the frame. Views are made from nothing
// else, and most instructions change nothing of it: what is the view before such
// an instruction is that after it.
type evidence struct {
	scalars  [isa.VCCHi + 1]scalar // zero where they tell nothing
	exec     scalar                // EXEC's low half
	masks    masks                 // none while EXEC is what it was on entry
	lanes    []laneEvidence        // by place and lane
	parts    []partEvidence        // by place
	hasBases bool                  // some place is relative to a stack pointer that the function aligned
}

// A laneEvidence is a value at a site that is a lane of a place. rank is how good
// that is at best: rankLane for one lane, rankUniform for any of all, rankFirst for
// any of those that were active on entry.
type laneEvidence struct {
	site
	rank uint8
	v    scalar
}

// A partEvidence says whose lanes that were active on entry, and whose others, a
// place has: those of a vector register or of none. Every vector register that
// states have is there, and private memory that has some.
type partEvidence struct {
	at      place
	in, out uint16
}

const noRegister = ^uint16(0)

// entryMask is EXEC while it is what it was on entry.
var entryMask = scalar{kind: maskScalar, id: entryColumn}

// isOfCaller says whether a value is one of the caller's, or leads to one.
func (e *evidence) isOfCaller(v *scalar) bool {
	switch v.kind {
	case entryScalar:
		return v.add == 0 && v.id < namedScalars || isa.Reg(v.id) == stackPointer
	case alignedScalar:
		return true
	case maskScalar:
		return e.exec != entryMask
	}
	return false
}

// gather takes the evidence from a state. VCC's high half has no number in waves of
// 32 lanes.
func (e *evidence) gather(s *codeState, lanes uint32) {
	e.exec = s.scalars[isa.ExecLo]
	e.lanes, e.parts, e.hasBases = e.lanes[:0], e.parts[:0], false
	e.masks = masks{tuples: e.masks.tuples[:0]}
	if e.exec != entryMask {
		e.masks.columns, e.masks.tuples = s.masks.columns, append(e.masks.tuples, s.masks.tuples...)
	}
	for i := range e.scalars {
		e.scalars[i] = scalar{}
		if v := &s.scalars[i]; e.isOfCaller(v) && (lanes == wave64 || isa.Reg(i) != isa.VCCHi) {
			e.scalars[i] = *v
		}
	}
	for i := range s.places {
		p, v := s.places[i].at, &s.places[i].v
		known := len(e.lanes) + len(e.parts)
		for k := range v.lanes {
			if held := v.lanes[k].value(); e.isOfCaller(&held) {
				e.lanes = append(e.lanes, laneEvidence{site{kind: inLane, at: p, lane: v.lanes[k].lane}, rankLane, held})
			}
		}
		wholeIn, wholeOut := v.whole()
		if v.in.kind == uniformPart && wholeIn && e.isOfCaller(&v.in.u) {
			if v.in == v.out && len(v.lanes) == 0 {
				e.lanes = append(e.lanes, laneEvidence{site{kind: inLane, at: p}, rankUniform, v.in.u})
			}
			e.lanes = append(e.lanes, laneEvidence{site{kind: inFirst, at: p}, rankFirst, v.in.u})
		}
		part := partEvidence{p, noRegister, noRegister}
		if v.in.kind == entryPart && wholeIn {
			part.in = v.in.id
		}
		if v.out.kind == entryPart && wholeOut {
			part.out = v.out.id
		}
		if !p.isPrivate() || part.in != noRegister || part.out != noRegister {
			e.parts = append(e.parts, part)
		}
		e.hasBases = e.hasBases || p.isPrivate() && p.base() != 0 && known != len(e.lanes)+len(e.parts)
	}
}

func (e *evidence) equal(o *evidence) bool {
	return e.exec == o.exec && e.scalars == o.scalars && e.masks.equal(&o.masks) && slices.Equal(e.lanes, o.lanes) && slices.Equal(e.parts, o.parts)
}
