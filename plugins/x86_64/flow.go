// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"math"

	"github.com/unwindd/unwindd/sdk/codeflow"
)

// maxCode is the size of the largest function that is analysed.
const maxCode = 1 << 18

// A flow follows code from an instruction over every branch, and finds the
// state before each instruction that it reaches. Addresses are offsets in the code.
//
// A region is what jumps and straight-line code reach from one instruction. A
// call leads to the region after it only if it returns. One that never does may
// lie before another part of the function, with another frame. But an
// instruction of compiled code has one frame, whichever way it is reached: a
// region whose jumps contradict what is known shows that the call before it
// does not return.
type flow struct {
	*codeflow.Flow[state]
	pieces  *codeflow.Pieces
	code    []byte // of the pieces
	initial bool   // the memory at the beginning counts: its words are values
	start   state  // at the beginning

	effects []effect
	index   codeflow.Table[int32] // of the effect at an offset, plus one; negative: none there
	symbols map[uint64]uint8
	// doubtful are offsets after calls that may not return.
	doubtful map[uint64]bool
	tables   []uint64 // offsets of the jumps through tables
	steps    int

	// Of a trial: the stack pointer that it began with, and another one that it
	// may become without ever having been below the first.
	begin, level value
}

// An arrival is a state that reaches an instruction.
type arrival = codeflow.Arrival[state]

// point is an instruction that was reached.
type point = codeflow.Point[state]

func newFlow(pieces *codeflow.Pieces, start state, initial bool) *flow {
	code := pieces.Code
	f := &flow{
		pieces: pieces, code: code, start: start, initial: initial,
		symbols: make(map[uint64]uint8), doubtful: make(map[uint64]bool),
		steps: min(8<<20, 1<<14+128*len(code)),
	}
	f.Flow = codeflow.ByInstruction(f, &f.steps)
	return f
}

// effect returns what the instruction at an offset does; nil where there is
// none.
func (f *flow) effect(at uint64) *effect {
	i := f.index.Put(at)
	if *i == 0 {
		e, ok := readEffect(f.code[at:])
		if !ok {
			*i = -1
			return nil
		}
		f.effects = append(f.effects, e)
		*i = int32(len(f.effects))
	}
	if *i < 0 {
		return nil
	}
	return &f.effects[*i-1]
}

// run follows the code from entry, through jumps, calls and tables.
//
// Regions after calls that lead to known code or to a return with the right
// frame are believed first, and those that contradict it not at all. What no
// evidence speaks of comes last.
func (f *flow) run(entry uint64) error {
	if err := f.Follow(&arrival{Address: entry, Source: codeflow.None, State: f.start}); err != nil {
		return err
	}
	if err := f.Resume(f); err != nil {
		return err
	}
	return f.followTables()
}

// maxCalls is how many calls in a row are taken to return to find evidence.
const maxCalls = 8

// try follows a region, and those behind as many calls, and forgets them. Where
// those are followed too, it is evidence that the stack pointer becomes that of
// the tables, in which the function jumps.
func (f *flow) try(a *arrival, calls int) codeflow.Trial {
	f.begin, f.level = a.State.gpr[gprSP], value{}
	if s := f.tableState(); s != nil && s.gpr[gprSP] != f.begin && calls > 0 {
		f.level = s.gpr[gprSP]
	}
	tables := len(f.tables)
	t := f.Try(a, calls, math.MaxInt)
	f.tables = f.tables[:tables]
	return t
}

// Decide says whether a call returns to a region.
func (f *flow) Decide(a *arrival, isLast bool) codeflow.Decision {
	calls := 0
	if isLast {
		calls = maxCalls
	}
	switch t := f.try(a, calls); {
	case t.IsContradicted, isLast && !t.IsConfirmed && !f.isPlausible(a):
		f.doubtful[a.Address] = true
		return codeflow.Refuted
	case t.IsConfirmed, isLast:
		return codeflow.Believed
	}
	return codeflow.Undecided
}

// Rank has calls without arguments on the stack judged first: what comes after
// them may show by which tables the function jumps.
func (f *flow) Rank(a *arrival) int {
	if pushedBefore(f.code, int(a.Address)) > 0 {
		return 1
	}
	return 0
}

// isPlausible says whether a region of which there is no evidence may follow its
// call. In a function that jumps through tables they may lead there: then its
// frame must be that of the tables, or become it, as after a call whose
// arguments were pushed. In others it must not follow a call whose arguments
// stay where they are.
func (f *flow) isPlausible(a *arrival) bool {
	if len(f.tables) == 0 {
		return hasDroppedArguments(f.code, int(a.Address))
	}
	table := f.tableState()
	return table != nil && a.State.gpr[gprSP] == table.gpr[gprSP]
}

// Copy copies a state: its slots are never changed.
func (f *flow) Copy(dst, src *state) { *dst = *src }

// Step executes an instruction.
func (f *flow) Step(at uint64, st *state) (next uint64, continues bool) {
	e := f.effect(at)
	if e == nil {
		return at, false
	}
	next = at + uint64(e.length)
	target, isInside := f.target(at, e)
	switch e.kind {
	case effectReturn:
		f.leaves(st, true)
		return next, false
	case effectStop:
		return next, false
	case effectJump:
		switch {
		case e.direct && isInside:
			return target, true
		case e.direct:
			f.leaves(st, false)
		case f.isThroughTable(e, st):
			f.tables = append(f.tables, at)
		}
		return next, false
	case effectBranch:
		st.apply(e, 0, f.initial)
		if isInside {
			f.Arrive(target, st)
		}
	case effectCall:
		if e.direct && isInside && target == next {
			st.push(value{}, 8, f.initial) // reads the PC
			break
		}
		if e.direct && isInside && target > 0 && !f.initial && f.Trial() == nil && f.Point(target) == nil {
			f.Arrive(target, &f.start) // a function inside this one, with a frame of its own
		}
		st.apply(e, 0, f.initial)
		if next < uint64(len(f.code)) {
			f.Defer(next, at, st)
		}
		return next, false
	default:
		st.apply(e, f.symbol(at, e), f.initial)
	}
	return next, next < uint64(len(f.code))
}

// leaves notes that a region leaves the function: by a return, or by a jump
// that may be a call in the place of a return.
func (f *flow) leaves(st *state, isReturn bool) {
	t := f.Trial()
	if t == nil || f.initial {
		return
	}
	switch sp := st.gpr[gprSP]; {
	case sp == entryValue(gprSP):
		t.IsConfirmed = true
	case isReturn && sp.kind == address:
		t.IsContradicted = true
	}
}

// target is the offset that a direct branch at an offset goes to; ok is false for
// one outside the code.
func (f *flow) target(at uint64, e *effect) (target uint64, ok bool) {
	return f.pieces.Target(at, uint64(e.target))
}

// symbol is the one that an instruction makes.
func (f *flow) symbol(at uint64, e *effect) uint8 {
	if e.kind != effectAlign {
		return 0
	}
	s, ok := f.symbols[at]
	if !ok && len(f.symbols) < math.MaxUint8-firstFresh {
		s = uint8(firstFresh + len(f.symbols))
		f.symbols[at] = s
	}
	return s
}

// Join joins a state into that of an instruction. Known code is not followed by a
// trial.
func (f *flow) Join(p *point, st *state, isFirst bool) (hasChanged bool) {
	t := f.Trial()
	if t != nil {
		// The note is that the stack pointer was below what it began with.
		sp := st.gpr[gprSP]
		isBelow := sp.kind != address || sp.base != f.begin.base || sp.off < f.begin.off
		t.Note = t.Note || isBelow
		t.IsConfirmed = t.IsConfirmed || sp == f.level && sp.kind != unknown && !t.Note
	}
	if isFirst {
		p.State = *st
		return true
	}
	old := &p.State
	if old.equal(st) {
		if f.IsKnown(p) {
			t.IsConfirmed = true
		}
		return false
	}
	both := join(old, st, f.initial)
	if t != nil {
		if f.hasLost(old, st, &both) {
			t.IsContradicted = true
			return false
		}
		if f.IsKnown(p) {
			t.IsConfirmed = true
			return false
		}
	}
	if both.equal(old) {
		return false
	}
	p.State = both
	return true
}

// hasLost says whether joining two states loses what one of them knew of the
// frame.
func (f *flow) hasLost(a, b, both *state) bool {
	if f.initial {
		// The preserved registers may hold anything by now.
		return a.gpr[gprSP] != b.gpr[gprSP]
	}
	return (a.knows()|b.knows())&^both.knows() != 0
}

// knows returns what a state knows of its frame, a bit each: the CFA, the
// caller's preserved registers and the return address.
func (s *state) knows() (bits uint32) {
	v := s.view(&searchOrder, false)
	if v.cfa.Kind == 0 {
		return 0
	}
	bits = 1
	for i := range v.found {
		if v.found[i] {
			bits |= 2 << i
		}
	}
	return bits
}
