// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"encoding/binary"
	"errors"
)

// maxCode is the size of the largest function that is analysed.
const maxCode = 1 << 18

var errBudget = errors.New("the code takes more steps to read than any compiled function")

// A flow follows a function from its first instruction over every branch, and finds
// the state before each instruction that it reaches.
//
// A call leads to what lies behind it only if it returns. One that never does may lie
// before another part of the function, with another frame. But an instruction of
// compiled code has one frame, whichever way it is reached: what follows a call is
// believed when it leads to known code, or to a return, with the right frame, and
// forgotten when it contradicts what is known.
type flow struct {
	code   []byte
	states []*state // before the instruction of an index
	tried  []bool   // the state is a trial's
	later  []arrival
	steps  int
	trial  *trial
}

// An arrival is a state that reaches an instruction.
type arrival struct {
	at int
	st state
}

// A trial follows what lies behind a call without believing in it.
type trial struct {
	added                   []int // instructions that it has given states
	confirmed, contradicted bool
}

// maxBeyond is how many calls in a row are taken to return to find evidence.
const maxBeyond = 8

func newFlow(code []byte) *flow {
	n := len(code) / instructionSize
	return &flow{code: code, states: make([]*state, n), tried: make([]bool, n), steps: 1<<14 + 256*n}
}

func (f *flow) effect(at int) (effect, bool) {
	return readEffect(binary.LittleEndian.Uint32(f.code[at*instructionSize:]))
}

// run follows the function: what jumps reach, what lies behind calls, and where tables
// lead.
func (f *flow) run() error {
	if err := f.follow(arrival{0, entryState()}); err != nil {
		return err
	}
	if err := f.resume(); err != nil {
		return err
	}
	return f.followTables()
}

// resume follows what lies behind calls, as far as evidence confirms that they return.
func (f *flow) resume() error {
	for progress := true; progress; {
		progress = false
		pending := f.later
		f.later = nil
		var open []arrival
		for _, a := range pending {
			t, err := f.try(a)
			switch {
			case err != nil:
				return err
			case t.contradicted:
			case t.confirmed:
				progress = true
				if err := f.follow(a); err != nil {
					return err
				}
			default:
				open = append(open, a)
			}
		}
		f.later = append(f.later, open...)
	}
	return nil
}

// followTables follows the jumps that go through a table. Where the tables lead is not
// in the code, but every instruction of a function is reached somehow: what nothing else
// reaches, is reached through a table, or by the unwinder. It is believed where it leads
// to a return or to known code with the frame that all the tables of the function share.
func (f *flow) followTables() error {
	start, ok := f.tableState()
	if !ok {
		return nil
	}
	for at := range f.states {
		if f.states[at] != nil {
			continue
		}
		t, err := f.try(arrival{at, start})
		if err != nil {
			return err
		}
		if t.contradicted || !t.confirmed {
			continue
		}
		if err := f.follow(arrival{at, start}); err != nil {
			return err
		}
		if err := f.resume(); err != nil {
			return err
		}
	}
	return nil
}

// tableState is the frame in which the function jumps through tables; ok is false where
// it does not, or in different ones.
func (f *flow) tableState() (frame state, ok bool) {
	for at, s := range f.states {
		if s == nil {
			continue
		}
		e, known := f.effect(at)
		if !known || e.kind != effectJump || e.direct || s.isRestored() {
			continue
		}
		if !ok {
			frame, ok = *s, true
			continue
		}
		both := join(&frame, s)
		if (frame.knows()|s.knows())&^both.knows() != 0 {
			return frame, false
		}
		frame = both
	}
	for r := range 19 {
		frame.gpr[r] = value{}
	}
	return frame, ok
}

// isRestored says whether the frame is what it was at the function's start, as it is
// before a jump in the place of a return.
func (s *state) isRestored() bool {
	row, ok := s.row(false)
	return ok && len(row.Rules) == 0 && s.gpr[gprSP] == value{kind: address}
}

// try follows an arrival, and what lies behind its calls as long as nothing speaks for
// it or against it; says what does, and forgets all of it. What lies behind its calls
// does not speak against it: they may not return either.
func (f *flow) try(a arrival) (*trial, error) {
	t, waiting := &trial{}, len(f.later)
	f.trial = t
	err := f.follow(a)
	for depth := 0; depth < maxBeyond && err == nil && !t.contradicted && !t.confirmed && len(f.later) > waiting; depth++ {
		level := append([]arrival(nil), f.later[waiting:]...)
		f.later = f.later[:waiting]
		for _, next := range level {
			if f.states[min(next.at, len(f.states)-1)] != nil {
				// A call that does not return may lie before known code too; that it
				// would have the same frame there says little of what lies further back.
				continue
			}
			added, later := len(t.added), len(f.later)
			if err = f.follow(next); err != nil || t.confirmed && !t.contradicted {
				break
			}
			if t.contradicted {
				f.forget(t, added)
				f.later, t.contradicted, t.confirmed = f.later[:later], false, false
			}
		}
	}
	f.trial = nil
	f.forget(t, 0)
	f.later = f.later[:waiting]
	return t, err
}

// forget takes back the states that a trial has added from one on.
func (f *flow) forget(t *trial, from int) {
	for _, at := range t.added[from:] {
		f.states[at], f.tried[at] = nil, false
	}
	t.added = t.added[:from]
}

// follow follows jumps and straight-line code from an arrival.
func (f *flow) follow(first arrival) error {
	for waiting := []arrival{first}; len(waiting) > 0; {
		a := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		for at, st := a.at, a.st; f.arrive(at, &st); at++ {
			if f.steps--; f.steps < 0 {
				return errBudget
			}
			st = *f.states[at]
			e, ok := f.effect(at)
			if !ok || e.kind == effectStop {
				break
			}
			if e.kind == effectReturn || e.kind == effectJump && !e.direct {
				f.leaves(&st, &e)
				break
			}
			target := at + int(e.target/instructionSize)
			if e.kind == effectJump {
				if target < 0 || target >= len(f.states) {
					f.leaves(&st, &e)
				} else {
					waiting = append(waiting, arrival{target, st})
				}
				break
			}
			st.apply(&e)
			if e.kind == effectCall {
				f.later = append(f.later, arrival{at + 1, st})
				break
			}
			if e.kind == effectBranch && target >= 0 && target < len(f.states) {
				waiting = append(waiting, arrival{target, st})
			}
		}
		if f.trial != nil && f.trial.contradicted {
			return nil
		}
	}
	return nil
}

// leaves judges a region by how it leaves the function: by a return, or by a jump that
// may be a call in the place of one.
func (f *flow) leaves(st *state, e *effect) {
	if f.trial == nil {
		return
	}
	switch {
	case st.isRestored():
		f.trial.confirmed = true
	case e.kind == effectReturn:
		f.trial.contradicted = true
	}
}

// arrive joins a state into that of an instruction, and says whether the instruction
// must be followed (again). Known code is not followed by a trial.
func (f *flow) arrive(at int, st *state) bool {
	if at < 0 || at >= len(f.states) {
		return false
	}
	old := f.states[at]
	t := f.trial
	if old == nil {
		s := *st
		f.states[at] = &s
		if t != nil {
			t.added, f.tried[at] = append(t.added, at), true
		}
		return true
	}
	if old.equal(st) {
		if t != nil && !f.tried[at] {
			t.confirmed = true
		}
		return false
	}
	both := join(old, st)
	if t != nil {
		if (old.knows()|st.knows())&^both.knows() != 0 {
			t.contradicted = true
			return false
		}
		if !f.tried[at] {
			t.confirmed = true
			t.contradicted = !f.returnsRight(at, *st)
			return false
		}
	}
	if both.equal(old) {
		return false
	}
	f.states[at] = &both
	return true
}

// returnsRight says whether every return that known code leads to from an instruction
// finds the caller's registers, if the code is entered with another state than was known:
// what restores a register may lie before it.
func (f *flow) returnsRight(at int, st state) bool {
	seen := map[int]bool{}
	for waiting := []arrival{{at, st}}; len(waiting) > 0; {
		a := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		for at, st := a.at, a.st; at >= 0 && at < len(f.states) && f.states[at] != nil && !seen[at]; at++ {
			seen[at] = true
			f.steps--
			e, ok := f.effect(at)
			switch {
			case !ok || e.kind == effectStop:
			case e.kind == effectReturn:
				if !st.isRestored() {
					return false
				}
			case e.direct && e.kind != effectCall:
				next := st
				next.apply(&e)
				waiting = append(waiting, arrival{at + int(e.target/instructionSize), next})
			}
			if !ok || e.kind == effectStop || e.kind == effectReturn || e.kind == effectJump {
				break
			}
			st.apply(&e)
		}
	}
	return true
}
