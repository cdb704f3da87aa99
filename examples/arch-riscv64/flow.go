// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"errors"

	"github.com/unwindd/unwindd/cfi"
)

// maxCode is the size of the largest function that is read.
const maxCode = 1 << 18

var (
	errBudget = errors.New("the code takes more steps to read than any compiled function")
	errReturn = errors.New("the function returns with another stack pointer than it began with: what a call before it does is not what it seems")
)

// A flow follows a function over all its branches, and finds the state before each
// instruction. What two ways say differently is not known.
//
// A call may not return. What follows it may then be another part of the function, with
// another frame: what jumps say of that counts for more.
type flow struct {
	code   []byte
	states []*state // before the instruction at an offset
	weak   []bool   // that state came over a call alone
	sure   []arrival
	later  []arrival // after calls
	tables *state    // where the function jumps to the address in a register
	steps  int
}

type arrival struct {
	at int
	st *state
}

func readFunction(code []byte) (*flow, error) {
	f := &flow{code: code, states: make([]*state, len(code)), weak: make([]bool, len(code)), steps: 1<<12 + 64*len(code)}
	f.sure = append(f.sure, arrival{0, entryState()})
	if err := f.run(); err != nil {
		return nil, err
	}
	// What nothing leads to is reached by a table of addresses.
	for at := 0; at < len(code) && f.tables != nil; {
		in, ok := decode(code[at:])
		if !ok {
			break
		}
		if f.states[at] == nil {
			f.later = append(f.later, arrival{at, f.tables})
			if err := f.run(); err != nil {
				return nil, err
			}
		}
		at += in.length
	}
	return f, f.check()
}

func (f *flow) run() error {
	for len(f.sure)+len(f.later) > 0 {
		list, isWeak := &f.sure, false
		if len(f.sure) == 0 {
			list, isWeak = &f.later, true
		}
		next := (*list)[len(*list)-1]
		*list = (*list)[:len(*list)-1]
		if err := f.follow(next, isWeak); err != nil {
			return err
		}
	}
	return nil
}

// follow follows straight-line code from an arrival.
func (f *flow) follow(a arrival, isWeak bool) error {
	at, st := a.at, a.st
	for at >= 0 && at < len(f.code) {
		if st = f.arrive(at, st, isWeak); st == nil {
			return nil
		}
		if f.steps--; f.steps < 0 {
			return errBudget
		}
		in, ok := decode(f.code[at:])
		if !ok {
			return nil
		}
		after := *st
		after.step(&in)
		next := at + in.length
		switch in.effect {
		case stop:
			return nil
		case jump:
			next = f.target(at, &in)
		case jumpTo:
			f.jumps(st, &in)
			return nil
		case branch:
			f.arriveBy(f.target(at, &in), &after, isWeak)
		case call:
			f.later = append(f.later, arrival{next, &after})
			return nil
		}
		at, st = next, &after
	}
	return nil
}

// arriveBy has a branch followed later.
func (f *flow) arriveBy(at int, st *state, isWeak bool) {
	switch {
	case at < 0:
	case isWeak:
		f.later = append(f.later, arrival{at, st})
	default:
		f.sure = append(f.sure, arrival{at, st})
	}
}

// arrive joins a state to that of an instruction; nil where that says nothing new.
func (f *flow) arrive(at int, st *state, isWeak bool) *state {
	old := f.states[at]
	hasFrame := func() bool { return old.registers[sp] == st.registers[sp] }
	switch {
	case old == nil:
	case isWeak && !f.weak[at] && !hasFrame():
		return nil // the call does not return
	case !isWeak && f.weak[at] && !hasFrame():
	default:
		if st = old.join(st); st.isEqual(old) {
			return nil
		}
		isWeak = isWeak && f.weak[at]
	}
	f.states[at], f.weak[at] = st, isWeak
	return st
}

// target is the offset that a jump goes to; -1 for one outside the function.
func (f *flow) target(at int, in *instruction) int {
	if to := int64(at) + in.imm; to >= 0 && to < int64(len(f.code)) {
		return int(to)
	}
	return -1
}

// jumps notes the state at a jump through a table, which is what it is where the function
// has a frame. Elsewhere it is a return, or a call in place of one.
func (f *flow) jumps(st *state, in *instruction) {
	low := st.registers[sp]
	if in.rs1 == ra || low.kind != atEntry || low.base != sp || low.off == 0 {
		return
	}
	if f.tables == nil {
		f.tables = st
		return
	}
	f.tables = f.tables.join(st)
}

// check looks at the returns: the stack pointer is there what it was at the beginning.
func (f *flow) check() error {
	for at, st := range f.states {
		if st == nil {
			continue
		}
		in, _ := decode(f.code[at:])
		if low := st.registers[sp]; in.effect == jumpTo && in.rs1 == ra && low.kind != unknown && low != (value{kind: atEntry, base: sp}) {
			return errReturn
		}
	}
	return nil
}

// functionRows are the rows of a function whose first instruction begins the code. A row
// of a call also holds while the callee runs, which has ra then.
func functionRows(start uint64, code []byte, isExact bool) ([]cfi.Row, error) {
	f, err := readFunction(code)
	if err != nil {
		return nil, err
	}
	var rows []cfi.Row
	for at, st := range f.states {
		if st == nil {
			continue
		}
		in, ok := decode(code[at:])
		if !ok {
			continue
		}
		row, ok := st.row()
		if _, isSaved := row.Rule(uint64(ra)); !ok || in.effect == call && !isExact && !isSaved {
			continue
		}
		row.Start, row.End = start+uint64(at), start+uint64(at+in.length)
		if n := len(rows); n > 0 && rows[n-1].End > row.Start {
			rows[n-1].End = row.Start // a jump into an instruction
		}
		if n := len(rows); n > 0 && rows[n-1].End == row.Start && isSame(&rows[n-1], &row) {
			rows[n-1].End = row.End
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func isSame(a, b *cfi.Row) bool {
	if a.CFA.Register != b.CFA.Register || a.CFA.Offset != b.CFA.Offset || len(a.Rules) != len(b.Rules) {
		return false
	}
	for i := range a.Rules {
		if x, y := &a.Rules[i], &b.Rules[i]; x.Column != y.Column || x.Rule.Kind != y.Rule.Kind || x.Rule.Offset != y.Rule.Offset {
			return false
		}
	}
	return true
}
