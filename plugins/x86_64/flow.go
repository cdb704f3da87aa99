// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// maxCode is the size of the largest function that is analysed.
const maxCode = 1 << 18

var errBudget = errors.New("the code takes more steps to read than any compiled function")

// A flow follows code from an instruction over every branch, and finds the
// state before each instruction that it reaches.
//
// A region is what jumps and straight-line code reach from one instruction. A
// call leads to the region after it only if it returns. One that never does may
// lie before another part of the function, with another frame. But an
// instruction of compiled code has one frame, whichever way it is reached: a
// region whose jumps contradict what is known shows that the call before it
// does not return.
type flow struct {
	code    []byte
	initial bool  // the memory at the beginning counts: its words are values
	start   state // at the beginning

	effects []effect
	index   []int32  // of the effect at an offset, plus one; negative: none there
	states  []*state // before the instruction at an offset
	reached []int    // offsets that have a state, in the order of discovery
	order   []int32  // of an offset in reached
	symbols map[int]uint8
	// doubtful are offsets after calls that may not return.
	doubtful map[int]bool
	strong   []arrival // waiting: reached by jumps
	later    []arrival // waiting: after calls
	tables   []int     // offsets of the jumps through tables
	trial    *trial    // set while a region is only tried
	steps    int
}

// An arrival is a state that reaches an instruction.
type arrival struct {
	at   int
	from int // the call that it comes from; -1: none
	st   state
}

// A trial follows a region without believing in it.
type trial struct {
	mark         int  // of reached, when it began
	later        int  // of later
	tables       int  // of tables
	contradicted bool // it has another frame than what is known of the same instructions
	confirmed    bool // it leads to what is known, or to a return, with the right frame
	sp           value
	begin        value // the stack pointer
	level        bool  // it, which began with another value, becomes sp, and
	below        bool  // was never below what it began with
}

func newFlow(code []byte, start state, initial bool) *flow {
	return &flow{
		code: code, start: start, initial: initial,
		index:   make([]int32, len(code)),
		states:  make([]*state, len(code)),
		order:   make([]int32, len(code)),
		symbols: make(map[int]uint8), doubtful: make(map[int]bool),
		steps: min(8<<20, 1<<14+128*len(code)),
	}
}

// effect returns what the instruction at an offset does; nil where there is
// none.
func (f *flow) effect(at int) *effect {
	if i := f.index[at]; i != 0 {
		if i < 0 {
			return nil
		}
		return &f.effects[i-1]
	}
	e, ok := readEffect(f.code[at:])
	if !ok {
		f.index[at] = -1
		return nil
	}
	f.effects = append(f.effects, e)
	f.index[at] = int32(len(f.effects))
	return &f.effects[len(f.effects)-1]
}

// run follows the code from entry, through jumps, calls and tables.
//
// Regions after calls that lead to known code or to a return with the right
// frame are believed first, and those that contradict it not at all. What no
// evidence speaks of comes last.
func (f *flow) run(entry int) error {
	if err := f.follow(arrival{entry, -1, f.start}); err != nil {
		return err
	}
	if err := f.resume(); err != nil {
		return err
	}
	return f.followTables()
}

// resume follows what waits after calls.
func (f *flow) resume() error {
	for len(f.later) > 0 {
		pending := f.later
		f.later = nil
		var open []arrival
		progress := false
		for _, a := range pending {
			t, err := f.try(a)
			switch {
			case err != nil:
				return err
			case t.contradicted:
				f.doubtful[a.at] = true
			case t.confirmed:
				progress = true
				if err := f.follow(a); err != nil {
					return err
				}
			default:
				open = append(open, a)
			}
		}
		if progress || len(open) == 0 {
			f.later = append(f.later, open...)
			continue
		}
		slices.SortStableFunc(open, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
		// Calls without arguments on the stack first: what comes after them may
		// show by which tables the function jumps.
		plain := slices.ContainsFunc(open, func(a arrival) bool { return pushedBefore(f.code, a.at) == 0 })
		for _, a := range open {
			if plain && pushedBefore(f.code, a.at) > 0 {
				f.later = append(f.later, a)
				continue
			}
			t, err := f.tryBeyond(a)
			switch {
			case err != nil:
				return err
			case t.contradicted || !f.isPlausible(&a, &t):
				f.doubtful[a.at] = true
			default:
				if err := f.follow(a); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isPlausible says whether a region of which there is no evidence may follow its
// call. In a function that jumps through tables they may lead there: then its
// frame must be that of the tables, or become it, as after a call whose
// arguments were pushed. In others it must not follow a call whose arguments
// stay where they are.
func (f *flow) isPlausible(a *arrival, t *trial) bool {
	if t.confirmed {
		return true
	}
	if len(f.tables) == 0 {
		return hasDroppedArguments(f.code, a.at)
	}
	table := f.tableState()
	return table != nil && (t.level || a.st.gpr[gprSP] == table.gpr[gprSP])
}

// follow follows a region and joins it to what is known.
func (f *flow) follow(a arrival) error {
	f.strong = append(f.strong[:0], a)
	return f.settle()
}

// try follows a region, says what speaks for it and against it, and forgets it.
func (f *flow) try(a arrival) (trial, error) { return f.tryDepth(a, 0) }

// tryBeyond follows a region, and those after its calls as long as nothing
// speaks for it or against it. What lies behind its calls does not speak against
// it: they may not return either.
func (f *flow) tryBeyond(a arrival) (trial, error) { return f.tryDepth(a, maxBeyond) }

// maxBeyond is how many calls in a row are taken to return to find evidence.
const maxBeyond = 8

func (f *flow) tryDepth(a arrival, depth int) (trial, error) {
	t := trial{mark: len(f.reached), later: len(f.later), tables: len(f.tables), begin: a.st.gpr[gprSP]}
	if s := f.tableState(); s != nil && s.gpr[gprSP] != a.st.gpr[gprSP] {
		t.sp = s.gpr[gprSP]
	}
	f.trial = &t
	err := f.follow(a)
	for ; depth > 0 && err == nil && len(f.later) > t.later && !t.contradicted; depth-- {
		level := slices.Clone(f.later[t.later:])
		f.later = f.later[:t.later]
		for _, next := range level {
			if err != nil || t.confirmed || t.level {
				break
			}
			waiting, was := len(f.later), t
			err = f.follow(next)
			if t.contradicted {
				// This call does not return: what lies behind it says nothing.
				f.later, t = f.later[:waiting], was
			}
		}
	}
	f.trial = nil
	for _, at := range f.reached[t.mark:] {
		f.states[at] = nil
	}
	f.reached = f.reached[:t.mark]
	f.later = f.later[:t.later]
	f.tables = f.tables[:t.tables]
	return t, err
}

// settle follows what waits, and what jumps reach from there; not what follows
// calls.
func (f *flow) settle() error {
	for len(f.strong) > 0 {
		next := f.strong[len(f.strong)-1]
		f.strong = f.strong[:len(f.strong)-1]
		if err := f.walk(next); err != nil {
			return err
		}
		if f.trial != nil && f.trial.contradicted {
			f.strong = f.strong[:0]
		}
	}
	return nil
}

// walk follows straight-line code from an arrival until it ends or reaches
// what is known already.
func (f *flow) walk(a arrival) error {
	at, st := a.at, a.st
	for at >= 0 && at < len(f.code) && f.arrive(at, &st) {
		if f.steps--; f.steps < 0 {
			return errBudget
		}
		e := f.effect(at)
		if e == nil {
			return nil
		}
		st = *f.states[at]
		next := at + int(e.length)
		switch e.kind {
		case effectReturn:
			f.leaves(&st, true)
			return nil
		case effectStop:
			return nil
		case effectJump:
			if !e.direct {
				if f.isThroughTable(e, &st) {
					f.tables = append(f.tables, at)
				}
				return nil
			}
			next = f.target(at, e)
			if next < 0 {
				f.leaves(&st, false)
				return nil
			}
		case effectBranch:
			st.apply(e, 0, f.initial)
			f.strong = append(f.strong, arrival{f.target(at, e), -1, st})
		case effectCall:
			target := f.target(at, e)
			if e.direct && target == next {
				st.push(value{}, 8, f.initial) // reads the PC
				break
			}
			if e.direct && target > 0 && !f.initial && f.trial == nil && f.states[target] == nil {
				// A function inside this one, with a frame of its own.
				f.strong = append(f.strong, arrival{target, -1, f.start})
			}
			st.apply(e, 0, f.initial)
			f.later = append(f.later, arrival{next, at, st})
			return nil
		default:
			st.apply(e, f.symbol(at, e), f.initial)
		}
		at = next
	}
	return nil
}

// leaves notes that a region leaves the function: by a return, or by a jump
// that may be a call in the place of a return.
func (f *flow) leaves(st *state, isReturn bool) {
	if f.trial == nil || f.initial {
		return
	}
	switch sp := st.gpr[gprSP]; {
	case sp == entryValue(gprSP):
		f.trial.confirmed = true
	case isReturn && sp.kind == address:
		f.trial.contradicted = true
	}
}

// target is the offset that a direct branch at an offset goes to; -1 for one
// outside the code.
func (f *flow) target(at int, e *effect) int {
	t := int64(at) + e.target
	if t < 0 || t >= int64(len(f.code)) {
		return -1
	}
	return int(t)
}

// symbol is the one that an instruction makes.
func (f *flow) symbol(at int, e *effect) uint8 {
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

// arrive joins a state into that of the instruction at an offset. It returns
// whether the instruction must be followed (again). Known code is not followed
// by a trial.
func (f *flow) arrive(at int, st *state) bool {
	t := f.trial
	if t != nil {
		sp := st.gpr[gprSP]
		t.below = t.below || sp.kind != address || sp.base != t.begin.base || sp.off < t.begin.off
		t.level = t.level || sp == t.sp && t.sp.kind != unknown && !t.below
	}
	old := f.states[at]
	if old == nil {
		s := *st
		f.states[at] = &s
		f.order[at] = int32(len(f.reached))
		f.reached = append(f.reached, at)
		return true
	}
	if old.equal(st) {
		if t != nil && int(f.order[at]) < t.mark {
			t.confirmed = true
		}
		return false
	}
	both := join(old, st, f.initial)
	if t != nil {
		if f.hasLost(old, st, &both) {
			t.contradicted = true
			return false
		}
		if int(f.order[at]) < t.mark {
			t.confirmed = true
			return false
		}
	}
	if both.equal(old) {
		return false
	}
	f.states[at] = &both
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
