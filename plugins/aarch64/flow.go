// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"encoding/binary"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// maxCode is the size of the largest function that is analysed.
const maxCode = 1 << 18

// flow follows code from an instruction over every branch, and finds the state before
// each instruction that it reaches. Addresses are the numbers of instructions in the code.
type flow struct {
	*codeflow.Function[state]
	code     []byte
	effects  []effect // of the instructions, as far as they were read
	isGo     bool     // the function has a frame of Go's: it preserves no registers
	isFinal  bool     // edges without evidence are decided now
	allSteps int      // the steps at the beginning

	// Of Agrees: the walks over known code, the last walk that met each instruction, the
	// arrivals that wait, and the steps that are left.
	walks     uint32
	seen      []uint32
	waiting   []arrival
	walkSteps int
}

// arrival is a state that reaches an instruction.
type arrival = codeflow.Arrival[state]

// point is an instruction that was reached.
type point = codeflow.Point[state]

const (
	// maxSteps bounds the steps of a flow.
	maxSteps = 8 << 20
	// maxCalls is the number of calls in a row that are assumed to return to find
	// evidence.
	maxCalls = 64
)

func newFlow(pieces *codeflow.Pieces, isAhead bool) *flow {
	n := len(pieces.Code) / instructionSize
	steps := min(maxSteps, 1<<14+512*n)
	f := &flow{code: pieces.Code, effects: make([]effect, n), allSteps: steps, walkSteps: steps}
	f.Function = codeflow.NewFunction(f, pieces, instructionSize, codeflow.Limits{Steps: steps, Calls: maxCalls})
	f.IsAhead = isAhead
	return f
}

// linksOf returns the registers below 19, a bit each, that code returns by, or moves to
// the link register. In other code such a register has the return address only briefly:
// Go's has it in x3 where it grows the stack.
func linksOf(code []byte) (registers uint32) {
	for n := range uint64(len(code) / instructionSize) {
		w := word(code, n)
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

// effect returns the effect of the instruction of a number.
func (f *flow) effect(n uint64) *effect {
	e := &f.effects[n]
	if e.kind == effectUnread {
		readEffect(word(f.code, n), e)
	}
	return e
}

// word is the instruction of a number.
func word(code []byte, n uint64) uint32 {
	return binary.LittleEndian.Uint32(code[n*instructionSize:])
}

// flowKinds has the effects that do not lead to the next instruction alone.
var flowKinds = [...]codeflow.Kind{effectCall: codeflow.Call, effectBranch: codeflow.Branch, effectJump: codeflow.Jump,
	effectReturn: codeflow.Return, effectStop: codeflow.Stop}

func (e *effect) instruction() (decoded codeflow.Instruction, ok bool) {
	return codeflow.Instruction{Kind: flowKinds[e.kind], Length: 1, IsDirect: e.direct, Distance: int64(e.target)}, e.kind != effectNone
}

// Instruction reads the instruction of a number.
func (f *flow) Instruction(n uint64) (decoded codeflow.Instruction, ok bool) {
	return f.effect(n).instruction()
}

// run follows a function from its first instruction: first through jumps, then behind
// calls, through tables, and last from landing pads.
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

// Examine tries an arrival. A trial that would use up the steps of the flow is cut; when
// half of them are gone, calls are no longer assumed to return.
func (f *flow) Examine(a *arrival, calls int) codeflow.Trial {
	steps := f.StepsLeft()
	if steps < f.allSteps/2 {
		calls = 0
	}
	return f.Try(a, calls, min(f.allSteps/8, steps-f.allSteps/4))
}

// Guess accepts an arrival if all calls of the function have one frame: both the call and
// the unwinder reach it with that frame. It knows the registers that all calls know.
func (f *flow) Guess(a *arrival, t codeflow.Trial) codeflow.Decision {
	if !f.isFinal || t.IsCut {
		return codeflow.Undecided
	}
	frame, ok := f.callFrame()
	if !ok || frame.gpr[gprSP] != a.State.gpr[gprSP] {
		return codeflow.Undecided
	}
	a.State = frame
	return codeflow.Believed
}

// Apply makes a state the one after an instruction.
func (f *flow) Apply(n uint64, st *state) {
	e := f.effect(n)
	st.apply(e, f.IsAhead)
	if e.kind == effectAccess {
		f.isGo = f.isGo || !e.isLoad && (e.first == gprX29 || e.second == gprX29) && f.Trial() == nil && st.hasGoFrame()
	}
}

// Call defers the code behind a call. A trial with the frame of known code there proves
// little about the code further back: a call that does not return may lie before known
// code too.
func (f *flow) Call(n, next uint64, st *state) (continues bool) {
	if t := f.Trial(); t != nil {
		t.Note = true
		if f.Point(next) != nil {
			f.Apply(n, st)
			return false
		}
	}
	return f.Function.Call(n, next, st)
}

// Pass makes st the state where a branch is not taken: the loop that probes a large frame
// ends when sp has reached a register. ok is false where it has not.
func (f *flow) Pass(n uint64, st *state) (ok bool) {
	if !f.effect(n).notEqual || n == 0 {
		return true
	}
	c := f.effect(n - 1)
	if n > 1 && c.kind == effectAccess && !c.isLoad && c.writeback == offsetOnly { // the probe
		c = f.effect(n - 2)
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

// Leave judges a region by how it leaves the function: by a return, or by a jump that may
// be a tail call. A trial that leads to a word that is not an instruction, or is never
// executed, is contradicted.
func (f *flow) Leave(n uint64, st *state) {
	t, e := f.Trial(), f.effect(n)
	switch {
	case t == nil:
	case e.kind == effectNone, e.kind == effectStop:
		t.IsContradicted = t.IsContradicted || e.kind == effectNone || word(f.code, n) == 0
	case f.IsAhead:
	case f.isRestored(st):
		t.IsConfirmed = true
	case e.kind == effectReturn:
		t.IsContradicted = true
	}
}

// isRestored reports whether the frame is the same as at the function's start, as before
// a return or a tail call.
func (f *flow) isRestored(st *state) bool {
	if link := st.gpr[gprX30]; st.gpr[gprSP] != entryValue(gprSP) || link != entryValue(gprX30) && link.kind != signedEntry {
		return false
	}
	if f.isGo {
		return true
	}
	for r := uint8(19); r <= gprX29; r++ {
		if st.gpr[r] != entryValue(r) {
			return false
		}
	}
	return st.vectors == entryVectors
}

var entryVectors = entryState().vectors

// Equal compares two states.
func (f *flow) Equal(a, b *state) bool { return a.equal(b) }

// Merge keeps what two states have in common.
func (f *flow) Merge(a, b *state) (both state, isA, hasLost bool) {
	both = join(a, b, f.IsAhead)
	return both, both.equal(a), f.Trial() != nil && f.hasLost(a, b, &both)
}

// hasLost reports whether joining two states loses a fact that one of them had about the
// frame.
func (f *flow) hasLost(a, b, both *state) bool {
	if f.IsAhead {
		return a.gpr[gprSP] != b.gpr[gprSP] // the preserved registers may have any value by now
	}
	return (f.knows(a)|f.knows(b))&^f.knows(both) != 0
}

// IsWrongReturn reports whether an instruction is a return where the stack pointer
// differs from the function's start.
func (f *flow) IsWrongReturn(p *point) bool {
	e, top := f.effect(p.Address), p.State.gpr[gprSP]
	return e.kind == effectReturn && e.dst == gprX30 && top.kind != unknown && top != entryValue(gprSP)
}

// Row is the row of an instruction.
func (f *flow) Row(p *point) (row cfi.Row, ok bool) {
	return p.State.row(f.effect(p.Address).kind == effectCall)
}

// isSameFrame reports whether two states are the same in all that a return restores.
func isSameFrame(a, b *state) bool {
	return [gprCount - 19]value(a.gpr[19:]) == [gprCount - 19]value(b.gpr[19:]) && a.vectors == b.vectors && slices.Equal(a.slots, b.slots)
}

// Agrees reports whether every return that known code leads to from an instruction finds
// the caller's registers, if the code is entered with another state than was known: the
// restore of a register may lie before it.
func (f *flow) Agrees(p *point, st *state) bool {
	if f.IsAhead || isSameFrame(&p.State, st) {
		return true
	}
	if f.seen == nil {
		f.seen = make([]uint32, len(f.effects))
	}
	f.walks++
	f.waiting = append(f.waiting[:0], arrival{Address: p.Address, State: *st})
	for len(f.waiting) > 0 {
		a := f.waiting[len(f.waiting)-1]
		f.waiting = f.waiting[:len(f.waiting)-1]
		if !f.runsRight(a.Address, &a.State) {
			return false
		}
	}
	return true
}

// runsRight executes known code up to its ends. It is false at a return without the
// caller's registers.
func (f *flow) runsRight(n uint64, st *state) bool {
	for ; f.IsInside(n) && f.Point(n) != nil && f.seen[n] != f.walks; n++ {
		f.seen[n] = f.walks
		if f.walkSteps--; f.walkSteps < 0 {
			return false
		}
		e := f.effect(n)
		if e.kind == effectReturn {
			return f.isRestored(st)
		}
		w := f.Edges(n)
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
