// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// linkers are the registers by which linkers and compilers jump far: x16 and x17, and x27
// of Go.
var linkers = [...]uint8{16, 17, 27}

// A farValue is what a register holds, as far as a jump shows it.
type farValue struct {
	isAddress bool // at
	isWord    bool // the word at an address
	at        uint64
}

// farState has the values of linkers.
type farState [len(linkers)]farValue

// of is the value of a register.
func (s *farState) of(r uint8) farValue {
	if i := slices.Index(linkers[:], r); i >= 0 {
		return s[i]
	}
	return farValue{}
}

// exits collects how code is left other than by returning.
type exits struct {
	*codeflow.Flow[farState]
	code    []byte
	start   uint64
	bounded bool
	found   sdk.CodeExits
}

// codeExits follows the code from the PC over every branch. It is nil where the code cannot
// be read.
func codeExits(r *sdk.CodeRange) *sdk.CodeExits {
	size := uint64(len(r.Code))
	skipped := -r.Start % instructionSize
	if r.PC-r.Start >= size || r.PC-r.Start < skipped || size > maxCode || r.Start+size < r.Start || r.PC%instructionSize != 0 {
		return nil
	}
	x := &exits{code: r.Code[skipped:], start: r.Start + skipped, bounded: r.Bounded}
	steps := 64 + 2*len(r.Code) // a state changes few times
	x.Flow = codeflow.ByInstruction(x, &steps)
	if x.Follow(&codeflow.Arrival[farState]{Address: (r.PC - x.start) / instructionSize}) != nil {
		x.found.Open = true
	}
	slices.Sort(x.found.Jumps)
	slices.Sort(x.found.Slots)
	x.found.Jumps, x.found.Slots = slices.Compact(x.found.Jumps), slices.Compact(x.found.Slots)
	return &x.found
}

// Copy copies a state.
func (x *exits) Copy(dst, src *farState) { *dst = *src }

// Join keeps what holds in both states.
func (x *exits) Join(p *codeflow.Point[farState], s *farState, isFirst bool) (hasChanged bool) {
	if isFirst {
		p.State = *s
		return true
	}
	for i := range s {
		if p.State[i] != s[i] && p.State[i] != (farValue{}) {
			p.State[i], hasChanged = farValue{}, true
		}
	}
	return hasChanged
}

// Step notes how an instruction leaves the code. Nothing is followed any more once it may
// go anywhere.
func (x *exits) Step(at uint64, s *farState) (next uint64, continues bool) {
	next = at + 1
	if x.found.Open || !isInstruction(x.code, at) {
		x.found.Open = true
		return next, false
	}
	var e effect
	readEffect(word(x.code, at), &e)
	target := at + uint64(int64(e.target)/instructionSize) //nolint:gosec // modular
	switch e.kind {
	case effectNone:
		x.found.Open = true
		return next, false
	case effectReturn:
		x.found.Open = e.dst != gprX30
		return next, false
	case effectStop:
		return next, false
	case effectJump:
		if e.direct {
			x.jump(target, s)
		} else {
			x.leave(s.of(e.dst), s)
		}
		return next, false
	case effectBranch:
		x.jump(target, s)
	case effectCall:
		if !isInstruction(x.code, next) && x.bounded {
			return next, false // the function ends with a call that does not return
		}
	}
	x.apply(at, &e, s)
	if !isInstruction(x.code, next) {
		x.jump(next, s)
		return next, false
	}
	return next, true
}

// jump goes on at an instruction, which may be outside the code.
func (x *exits) jump(to uint64, s *farState) {
	if isInstruction(x.code, to) {
		x.Arrive(to, s)
		return
	}
	x.jumpFar(x.start+to*instructionSize, s)
}

// jumpFar goes on at an address, which is outside the code if no instruction of it is there.
func (x *exits) jumpFar(to uint64, s *farState) {
	at := to - x.start
	switch {
	case at >= uint64(len(x.code)) && x.start-to >= instructionSize: // nor before the first instruction
		x.found.Jumps = append(x.found.Jumps, to)
	case at%instructionSize == 0 && isInstruction(x.code, at/instructionSize):
		x.Arrive(at/instructionSize, s)
	default:
		x.found.Open = true
	}
}

// leave is a jump to what a register holds.
func (x *exits) leave(v farValue, s *farState) {
	switch {
	case v.isAddress:
		x.jumpFar(v.at, s)
	case v.isWord:
		x.found.Slots = append(x.found.Slots, v.at)
	default:
		x.found.Open = true
	}
}

// apply makes s the state after an instruction.
func (x *exits) apply(at uint64, e *effect, s *farState) {
	w := word(x.code, at)
	after := *s
	for i, r := range linkers {
		v := s[i]
		switch {
		case e.kind == effectCall && r < 19:
			v = farValue{}
		case rd(w) == r && isPageAddress(w):
			v = farValue{isAddress: true, at: pageAddress(x.start+at*instructionSize, w)}
		case rd(w) == r && w&0xff000000 == 0x58000000: // LDR (literal)
			v = farValue{isWord: true, at: x.start + at*instructionSize + uint64(4*signed(w, 5, 19))} //nolint:gosec // modular
		case e.kind == effectMove && e.dst == r:
			if v = s.of(e.src); v.isAddress {
				v.at += uint64(int64(e.imm)) //nolint:gosec // modular
			} else if e.imm != 0 {
				v = farValue{}
			}
		case e.kind == effectAccess && e.isLoad && !e.isVector && (e.first == r || e.second == r):
			base := s.of(e.src)
			v = farValue{}
			if base.isAddress && !e.isPair && e.size == 8 && e.writeback == offsetOnly {
				v = farValue{isWord: true, at: base.at + uint64(int64(e.imm))} //nolint:gosec // modular
			}
		case e.clobbers>>r&1 != 0, e.dst == r, e.kind == effectAccess && e.src == r && e.writeback != offsetOnly && e.writeback != noOffset:
			v = farValue{}
		}
		after[i] = v
	}
	*s = after
}

// isPageAddress says whether a word is ADR or ADRP.
func isPageAddress(w uint32) bool { return w&0x1f000000 == 0x10000000 }

// pageAddress is the address that an ADR or ADRP at pc makes.
func pageAddress(pc uint64, w uint32) uint64 {
	n := uint64(signed(w, 5, 19)<<2 | int64(w>>29&3)) //nolint:gosec // modular
	if w>>31 == 0 {
		return pc + n
	}
	return pc&^0xfff + n<<12
}
