// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"encoding/binary"
	"slices"

	"github.com/unwindd/unwindd/sdk/codeflow"
)

// maxCode is the size of the largest function that is analysed.
const maxCode = 1 << 18

// A flow follows code from an instruction over every branch, and finds the state before
// each instruction that it reaches. Addresses are the numbers of instructions in the code.
//
// A call leads to what lies behind it only if it returns. One that never does may lie
// before another part of the function, with another frame. But an instruction of
// compiled code has one frame, whichever way it is reached: what follows a call is
// believed when it leads to known code, or to a return, with the right frame, and
// forgotten when it contradicts what is known.
type flow struct {
	*codeflow.Flow[state]
	pieces    *codeflow.Pieces
	code      []byte   // of the pieces
	effects   []effect // of the instructions, as far as they were read
	isInitial bool     // memory at the start counts: its words are values
	isGo      bool     // the function has a frame of Go's: it preserves no registers
	isFinal   bool     // ways without evidence are decided about
	steps     int      // that are left
	allSteps  int      // that there were

	// Of returnsRight: the walks over known code, the last one that met each instruction,
	// what waits in it, and the steps that are left.
	walks     uint32
	seen      []uint32
	waiting   []arrival
	walkSteps int
}

// An arrival is a state that reaches an instruction.
type arrival = codeflow.Arrival[state]

// point is an instruction that was reached.
type point = codeflow.Point[state]

// maxSteps bounds the steps of a flow.
const maxSteps = 8 << 20

func newFlow(pieces *codeflow.Pieces, isInitial bool) *flow {
	code := pieces.Code
	n := len(code) / instructionSize
	f := &flow{pieces: pieces, code: code, effects: make([]effect, n), isInitial: isInitial, allSteps: min(maxSteps, 1<<14+512*n)}
	f.steps, f.walkSteps = f.allSteps, f.allSteps
	f.Flow = codeflow.ByInstruction(f, &f.steps)
	return f
}

// linksOf returns the registers below 19, a bit each, that code returns by, or moves to the
// link register. In other code such a register has the return address for a moment: Go's
// has it in x3 where it asks for a larger stack.
func linksOf(code []byte) (registers uint32) {
	for at := range uint64(len(code) / instructionSize) {
		w := word(code, at)
		var r uint32
		switch {
		case w&0xffe0ffff == 0xaa0003fe: // mov x30, xR
			r = w >> 16 & 31
		case w&0xfffffc1f == 0xd65f0000: // ret xR
			r = w >> 5 & 31
		default:
			continue
		}
		if r < 19 {
			registers |= 1 << r
		}
	}
	return registers
}

// effect is what an instruction does.
func (f *flow) effect(at uint64) *effect {
	e := &f.effects[at]
	if e.kind == effectUnread {
		readEffect(word(f.code, at), e)
	}
	return e
}

// word is the instruction of a number.
func word(code []byte, at uint64) uint32 {
	return binary.LittleEndian.Uint32(code[at*instructionSize:])
}

// isInside says whether there is an instruction of that number.
func (f *flow) isInside(at uint64) bool { return at < uint64(len(f.effects)) }

// target is the instruction that a direct branch goes to; ok is false for one outside the
// code.
func (f *flow) target(at uint64, e *effect) (target uint64, ok bool) {
	target, ok = f.pieces.Target(at*instructionSize, uint64(int64(e.target))) //nolint:gosec // modular
	return target / instructionSize, ok && f.isInside(target/instructionSize)
}

// run follows a function from its first instruction: what jumps reach, what lies behind
// calls, where tables lead, and last what the unwinder reaches.
func (f *flow) run() error {
	entry := entryState()
	entry.links = linksOf(f.code)
	if err := f.Follow(&arrival{Source: codeflow.None, State: entry}); err != nil {
		return err
	}
	if err := f.Resume(f); err != nil {
		return err
	}
	if err := f.followTables(); err != nil {
		return err
	}
	f.isFinal = true
	if err := f.Resume(f); err != nil {
		return err
	}
	return f.followLandingPads()
}

// maxCalls is how many calls in a row are taken to return to find evidence.
const maxCalls = 64

// try follows an arrival, and what lies behind so many calls, without believing in it. A
// trial that would use up the steps of the flow is cut; when half of them are gone, no
// calls are taken to return any more.
func (f *flow) try(a *arrival, calls int) codeflow.Trial {
	if f.steps < f.allSteps/2 {
		calls = 0
	}
	return f.Try(a, calls, min(f.allSteps/8, f.steps-f.allSteps/4))
}

// Decide says whether a call returns to an arrival. Evidence comes first: that behind no
// other call, then that behind some. What has none is believed if all calls of the function
// have one frame: whatever reaches it, be it the call or the unwinder, has that too.
func (f *flow) Decide(a *arrival, isLast bool) codeflow.Decision {
	calls := 0
	if isLast {
		calls = maxCalls
	}
	switch t := f.try(a, calls); {
	case t.IsContradicted:
		return codeflow.Refuted
	case t.IsConfirmed:
		return codeflow.Believed
	case isLast && f.isFinal && !t.IsCut:
		return f.judgeByCalls(a)
	}
	return codeflow.Undecided
}

// Rank has all ways judged together.
func (f *flow) Rank(*arrival) int { return 0 }

// Copy copies a state: its slots are never changed.
func (f *flow) Copy(dst, src *state) { *dst = *src }

// Step executes an instruction.
func (f *flow) Step(at uint64, st *state) (next uint64, continues bool) {
	e := f.effect(at)
	next = at + 1
	switch e.kind {
	case effectNone, effectStop:
		f.meetsNothing(at)
		return next, false
	case effectReturn:
		f.leaves(st, e)
		return next, false
	case effectJump:
		if target, ok := f.target(at, e); ok && e.direct {
			return target, true
		}
		f.leaves(st, e)
		return next, false
	}
	st.apply(e, f.isInitial)
	switch e.kind {
	case effectCall:
		f.calls(next, at, st)
		return next, false
	case effectBranch:
		if target, ok := f.target(at, e); ok {
			f.Arrive(target, st)
		}
		if !f.passes(at, e, st) {
			return next, false
		}
	case effectAccess:
		f.isGo = f.isGo || !e.isLoad && (e.first == gprX29 || e.second == gprX29) && f.Trial() == nil && st.hasGoFrame()
	}
	return next, f.isInside(next)
}

// calls holds what lies behind a call. That a trial has the same frame there as known code
// says little of what lies further back: a call that does not return may lie before known
// code too.
func (f *flow) calls(next, at uint64, st *state) {
	t := f.Trial()
	if t != nil {
		t.Note = true
	}
	if f.isInside(next) && (t == nil || f.Point(next) == nil) {
		f.Defer(next, at, st)
	}
}

// passes makes st what it is where a branch is not taken: the loop that probes a large
// frame ends when sp has reached a register. ok is false where it has not yet.
func (f *flow) passes(at uint64, e *effect, st *state) (ok bool) {
	if !e.notEqual || at == 0 {
		return true
	}
	c := f.effect(at - 1)
	if at > 1 && c.kind == effectAccess && !c.isLoad && c.writeback == offsetOnly { // the probe
		c = f.effect(at - 2)
	}
	if c.kind != effectCompare {
		return true
	}
	sp, end := &st.gpr[gprSP], st.gpr[c.index]
	if sp.kind == address && end.kind == address && sp.reg == end.reg {
		return *sp == end
	}
	*sp = end
	return true
}

// meetsNothing notes that a trial leads to a word that is no instruction, or never executed.
func (f *flow) meetsNothing(at uint64) {
	t := f.Trial()
	if t != nil && (f.effect(at).kind == effectNone || word(f.code, at) == 0) {
		t.IsContradicted = true
	}
}

// leaves judges a region by how it leaves the function: by a return, or by a jump that
// may be a call in the place of one.
func (f *flow) leaves(st *state, e *effect) {
	t := f.Trial()
	switch {
	case t == nil || f.isInitial:
	case f.isRestored(st):
		t.IsConfirmed = true
	case e.kind == effectReturn:
		t.IsContradicted = true
	}
}

// isRestored says whether the frame is what it was at the function's start, as it is
// before a return and a jump in the place of one.
func (f *flow) isRestored(st *state) bool {
	if link := st.gpr[gprX30]; st.gpr[gprSP] != held(gprSP) || link != held(gprX30) && link.kind != signedEntry {
		return false
	}
	if f.isGo {
		return true
	}
	for r := uint8(19); r <= gprX29; r++ {
		if st.gpr[r] != held(r) {
			return false
		}
	}
	return st.vectors == entryVectors
}

var entryVectors = entryState().vectors

// Join joins a state into that of an instruction. Known code is not followed by a trial.
func (f *flow) Join(p *point, st *state, isFirst bool) (hasChanged bool) {
	if isFirst {
		p.State = *st
		return true
	}
	t, old := f.Trial(), &p.State
	if old.equal(st) {
		if f.IsKnown(p) {
			t.IsConfirmed = true
		}
		return false
	}
	both := join(old, st, f.isInitial)
	if t != nil {
		if f.hasLost(old, st, &both) {
			t.IsContradicted = true
			return false
		}
		if f.IsKnown(p) {
			t.IsConfirmed = true
			t.IsContradicted = t.IsContradicted || !isSameFrame(old, st) && !f.returnsRight(p.Address, st)
			return false
		}
	}
	if both.equal(old) {
		return false
	}
	p.State = both
	return true
}

// hasLost says whether joining two states loses what one of them knew of the frame.
func (f *flow) hasLost(a, b, both *state) bool {
	if f.isInitial {
		return a.gpr[gprSP] != b.gpr[gprSP] // the preserved registers may hold anything by now
	}
	return (f.knows(a)|f.knows(b))&^f.knows(both) != 0
}

// isSameFrame says whether two states have the same in all that a return restores.
func isSameFrame(a, b *state) bool {
	return [gprCount - 19]value(a.gpr[19:]) == [gprCount - 19]value(b.gpr[19:]) && a.vectors == b.vectors && slices.Equal(a.slots, b.slots)
}

// returnsRight says whether every return that known code leads to from an instruction
// finds the caller's registers, if the code is entered with another state than was known:
// what restores a register may lie before it.
func (f *flow) returnsRight(at uint64, st *state) bool {
	if f.isInitial {
		return true
	}
	if f.seen == nil {
		f.seen = make([]uint32, len(f.effects))
	}
	f.walks++
	f.waiting = append(f.waiting[:0], arrival{Address: at, State: *st})
	for len(f.waiting) > 0 {
		a := f.waiting[len(f.waiting)-1]
		f.waiting = f.waiting[:len(f.waiting)-1]
		if !f.runsRight(a.Address, &a.State) {
			return false
		}
	}
	return true
}

// runsRight executes known code up to where it ends. It is false at a return without the
// caller's registers.
func (f *flow) runsRight(at uint64, st *state) bool {
	for ; f.isInside(at) && f.Point(at) != nil && f.seen[at] != f.walks; at++ {
		f.seen[at] = f.walks
		if f.walkSteps--; f.walkSteps < 0 {
			return false
		}
		e := f.effect(at)
		if e.kind == effectReturn {
			return f.isRestored(st)
		}
		w := f.edges(at)
		st.apply(e, false)
		if w.Jumps {
			f.waiting = append(f.waiting, arrival{Address: w.Target, State: *st})
		}
		if !w.Continues && e.kind != effectCall {
			return true
		}
	}
	return true
}

// edges are where an instruction goes on by without calls.
func (f *flow) edges(at uint64) (w codeflow.Edges) {
	e := f.effect(at)
	w.Next = at + 1
	w.Target, w.Jumps = f.target(at, e)
	switch e.kind {
	case effectNone, effectStop, effectReturn, effectCall:
		w.Jumps = false
	case effectJump:
		w.Jumps = w.Jumps && e.direct
	case effectBranch:
		w.Continues = true
	default:
		w.Jumps, w.Continues = false, true
	}
	return w
}
