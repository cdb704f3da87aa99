// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// exits collects how code is left other than by returning. The state before an
// instruction is whether the one before it wrote the top of the stack.
type exits struct {
	*codeflow.Flow[bool]
	code    []byte
	start   uint64
	bounded bool
	found   sdk.CodeExits
}

// codeExits follows the code from the PC over every branch. It is nil where the
// code cannot be read.
func codeExits(r *sdk.CodeRange) *sdk.CodeExits {
	size := uint64(len(r.Code))
	if r.PC-r.Start >= size || size > maxCode || r.Start+size < r.Start {
		return nil
	}
	x := &exits{code: r.Code, start: r.Start, bounded: r.Bounded}
	steps := len(r.Code) // each instruction is followed once
	x.Flow = codeflow.ByInstruction(x, &steps)
	if x.Follow(&codeflow.Arrival[bool]{Address: r.PC - r.Start}) != nil {
		x.found.Open = true
	}
	slices.Sort(x.found.Jumps)
	slices.Sort(x.found.Slots)
	x.found.Jumps, x.found.Slots = slices.Compact(x.found.Jumps), slices.Compact(x.found.Slots)
	return &x.found
}

// Copy copies a state.
func (x *exits) Copy(dst, src *bool) { *dst = *src }

// Join keeps the first state: code is followed once.
func (x *exits) Join(p *codeflow.Point[bool], atTop *bool, isFirst bool) bool {
	if isFirst {
		p.State = *atTop
	}
	return isFirst
}

// Step notes how an instruction leaves the code. Nothing is followed any more once it
// may go anywhere.
func (x *exits) Step(at uint64, atTop *bool) (next uint64, continues bool) {
	e, ok := readEffect(x.code[at:])
	if !ok || x.found.Open {
		x.found.Open = true
		return at, false
	}
	next = at + uint64(e.length)
	switch e.kind {
	case effectReturn:
		// A return to what was just written is a jump: so do thunks that keep
		// processors from speculating.
		x.found.Open = *atTop
		return next, false
	case effectStop:
		return next, false
	case effectJump:
		x.leave(at, next, &e)
		return next, false
	case effectBranch:
		x.jump(at + uint64(e.target))
	case effectCall:
		if target := at + uint64(e.target); e.direct && target < uint64(len(x.code)) {
			x.jump(target)
		}
		if next == uint64(len(x.code)) && x.bounded {
			return next, false // the function ends with a call that does not return
		}
	}
	*atTop = e.kind == effectPush || e.hasMem && e.mem.base == gprSP && e.mem.offset == 0 && e.kind != effectLoad
	if next == uint64(len(x.code)) {
		x.jump(next)
		return next, false
	}
	return next, true
}

// jump goes on at an offset, which may be outside the code.
func (x *exits) jump(to uint64) {
	if to < uint64(len(x.code)) {
		atTop := false
		x.Arrive(to, &atTop)
		return
	}
	x.found.Jumps = append(x.found.Jumps, x.start+to)
}

// leave is a jump at an offset that is not a branch.
func (x *exits) leave(at, next uint64, e *effect) {
	switch {
	case e.direct:
		x.jump(at + uint64(e.target))
	case e.hasMem && e.mem.rip && !e.mem.opaque:
		x.found.Slots = append(x.found.Slots, x.start+next+uint64(e.mem.offset))
	default:
		x.found.Open = true
	}
}
