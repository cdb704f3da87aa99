// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// namedScalars is the number of scalar registers that rows can name one by
// one.
const namedScalars = 106

// evidence is the part of a state that a view depends on. Most instructions change none
// of it, and then the view after the instruction is the view before it.
type evidence struct {
	scalars  [isa.VCCHi + 1]scalar // zero where the value is not of the caller
	exec     scalar                // EXEC's low half
	masks    masks                 // empty while EXEC has its value on entry
	lanes    []laneEvidence        // by place and lane
	parts    []partEvidence        // by place
	hasBases bool                  // some place is relative to a stack pointer that the function aligned
}

// laneEvidence is a value in lanes of a place. rank is the best rank that the site
// can have: rankLane where one lane has the value, rankUniform where all have it, and
// rankFirst where all have it that were active on entry.
type laneEvidence struct {
	site
	rank uint8
	v    scalar
}

// partEvidence names the vector register whose lanes a place has, or noRegister: active
// for the lanes that were active on entry, inactive for the others. It lists every
// vector register that the state describes, and private memory that has lanes of one.
type partEvidence struct {
	place            place
	active, inactive uint16
}

const noRegister = ^uint16(0)

// entryMask is the value of EXEC while it is unchanged since entry.
var entryMask = scalar{kind: maskScalar, id: entryColumn}

// isOfCaller reports whether a value is one of the caller's, or helps to find one.
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

// gather collects the evidence of a state. VCC's high half is left out in waves of 32
// lanes, where it has no DWARF number.
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
		p, v := s.places[i].place, &s.places[i].v
		known := len(e.lanes) + len(e.parts)
		for k := range v.lanes {
			if held := v.lanes[k].value(); e.isOfCaller(&held) {
				e.lanes = append(e.lanes, laneEvidence{site{kind: inLane, place: p, lane: v.lanes[k].lane}, rankLane, held})
			}
		}
		wholeIn, wholeOut := v.whole()
		if v.active.kind == uniformPart && wholeIn && e.isOfCaller(&v.active.u) {
			if v.active == v.inactive && len(v.lanes) == 0 {
				e.lanes = append(e.lanes, laneEvidence{site{kind: inLane, place: p}, rankUniform, v.active.u})
			}
			e.lanes = append(e.lanes, laneEvidence{site{kind: inFirst, place: p}, rankFirst, v.active.u})
		}
		part := partEvidence{p, noRegister, noRegister}
		if v.active.kind == entryPart && wholeIn {
			part.active = v.active.id
		}
		if v.inactive.kind == entryPart && wholeOut {
			part.inactive = v.inactive.id
		}
		if !p.isPrivate() || part.active != noRegister || part.inactive != noRegister {
			e.parts = append(e.parts, part)
		}
		e.hasBases = e.hasBases || p.isPrivate() && p.base() != 0 && known != len(e.lanes)+len(e.parts)
	}
}

func (e *evidence) equal(o *evidence) bool {
	return e.exec == o.exec && e.scalars == o.scalars && e.masks.equal(&o.masks) && slices.Equal(e.lanes, o.lanes) && slices.Equal(e.parts, o.parts)
}
