// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"github.com/unwindd/unwindd/cfi"
)

// functionRows reads a function whose first instruction is at the start of
// code, and returns the rows of every instruction whose frame is certain. Frames
// are found by the first register in order that has them.
func functionRows(start uint64, code []byte, order *[gprCount]uint8) ([]cfi.Row, error) {
	f := newFlow(code, entryState(), false)
	if err := f.run(0); err != nil {
		return nil, err
	}
	contradicted := f.contradicted()
	var list rowList
	for at, s := range f.states {
		if s == nil || contradicted[at] {
			continue
		}
		e := f.effect(at)
		if e == nil {
			continue
		}
		v := s.view(order, e.kind == effectCall)
		if v.cfa.Kind == cfi.NoCFA {
			continue
		}
		end := uint64(at) + uint64(e.length)
		if n := len(list.rows); n > 0 && list.rows[n-1].End > start+uint64(at) {
			// Two instructions that overlap: a jump goes over a prefix.
			list.rows[n-1].End = start + uint64(at)
		}
		list.add(start+uint64(at), start+end, v.cfa, v.rules)
	}
	return list.rows, nil
}

// tableState is the frame in which the function jumps through tables; nil where
// it does not, or in different ones.
func (f *flow) tableState() *state {
	var frame *state
	for _, at := range f.tables {
		s := f.states[at]
		if s == nil {
			continue
		}
		if frame == nil {
			frame = s
			continue
		}
		both := join(frame, s, f.initial)
		if f.hasLost(frame, s, &both) {
			return nil
		}
		frame = &both
	}
	return frame
}

// followTables follows the jumps that go through a table. Where the tables lead
// is not in the code, but every instruction of a function is reached somehow:
// what nothing else reaches, is reached through a table. That holds where all
// the tables of the function are used in one frame.
func (f *flow) followTables() error {
	frame := f.tableState()
	if frame == nil {
		return nil
	}
	start := *frame
	for r := range start.gpr {
		if preserved>>r&1 == 0 && start.gpr[r].kind != address {
			start.gpr[r] = value{}
		}
	}
	doubtful, padded := false, false // padded: only padding lies since
	for at := 0; at < len(f.code); {
		e := f.effect(at)
		if e == nil {
			at = f.nextReached(at) // data
			continue
		}
		doubtful = f.doubtful[at] || doubtful && padded
		padded = e.filler
		if f.states[at] == nil && (!e.filler || e.endbr) && e.kind != effectStop {
			a := arrival{at, -1, start}
			t, err := f.try(a)
			if err != nil {
				return err
			}
			if t.contradicted || doubtful && !t.confirmed {
				at = f.nextBlock(at)
				continue
			}
			if err := f.follow(a); err != nil {
				return err
			}
			if err := f.resume(); err != nil {
				return err
			}
		}
		at += int(e.length)
	}
	return nil
}

// nextBlock is the offset after the code that runs on from at.
func (f *flow) nextBlock(at int) int {
	for at < len(f.code) {
		e := f.effect(at)
		if e == nil {
			return f.nextReached(at)
		}
		at += int(e.length)
		if e.kind == effectJump || e.kind == effectReturn || e.kind == effectStop {
			break
		}
	}
	return at
}

// nextReached is the first offset after at that is reached.
func (f *flow) nextReached(at int) int {
	for at++; at < len(f.code) && f.states[at] == nil; at++ {
	}
	return at
}

// isThroughTable says whether an indirect jump goes through a table of targets
// in the function, rather than to another function.
func (f *flow) isThroughTable(e *effect, s *state) bool {
	if e.hasMem {
		return e.mem.table
	}
	return e.dst != gprNone && s.gpr[e.dst].kind == tableEntry
}

// contradicted finds the instructions that lead to a return where the stack
// pointer is not at the return address. What was concluded there is wrong: a
// call before it does not return, or it is no plain function.
func (f *flow) contradicted() map[int]bool {
	wrong := make(map[int]bool)
	for at, s := range f.states {
		if s == nil {
			continue
		}
		if e := f.effect(at); e != nil && e.kind == effectReturn {
			sp := s.gpr[gprSP]
			if sp.kind != unknown && sp != entryValue(gprSP) {
				wrong[at] = true
			}
		}
	}
	if len(wrong) == 0 {
		return wrong
	}
	before := make(map[int][]int) // what runs on into an instruction, or jumps to it
	for at, s := range f.states {
		if s == nil {
			continue
		}
		e := f.effect(at)
		if e == nil {
			continue
		}
		next := at + int(e.length)
		switch e.kind {
		case effectReturn, effectStop, effectCall:
		case effectJump:
			if e.direct {
				before[f.target(at, e)] = append(before[f.target(at, e)], at)
			}
		case effectBranch:
			before[f.target(at, e)] = append(before[f.target(at, e)], at)
			before[next] = append(before[next], at)
		default:
			before[next] = append(before[next], at)
		}
	}
	var queue []int
	for at := range wrong {
		queue = append(queue, at)
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, b := range before[at] {
			if !wrong[b] {
				wrong[b] = true
				queue = append(queue, b)
			}
		}
	}
	return wrong
}
