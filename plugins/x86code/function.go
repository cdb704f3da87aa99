// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// FunctionRows reads a function whose first instruction is at the start of
// code, and returns the rows of every instruction whose frame is certain. Frames
// are found by the first register in order that has them.
func (m *Mode) FunctionRows(code *codeflow.Pieces, order []uint8) ([]cfi.Row, error) {
	f := m.newFlow(code, m.entryState(), false)
	f.order = order
	if err := f.run(); err != nil {
		return nil, err
	}
	return f.Rows(), nil
}

// tableState is the frame in which the function jumps through tables; nil where
// it does not, or in different ones.
func (f *flow) tableState() *state {
	var frame *state
	for _, offset := range f.tables {
		p := f.Point(offset)
		if p == nil {
			continue
		}
		if frame == nil {
			frame = &p.State
			continue
		}
		both := join(frame, &p.State, f.IsAhead)
		if f.hasLost(frame, &p.State, &both) {
			return nil
		}
		frame = &both
	}
	return frame
}

// followTables follows the jumps that go through a table. The targets are not in the
// code, but every instruction of a function is reached somehow: an instruction that
// nothing else reaches is reached through a table. That holds where all the tables of the
// function are used in one frame.
func (f *flow) followTables() error {
	frame := f.tableState()
	if frame == nil {
		return nil
	}
	start := *frame
	for r := range start.gpr {
		if !f.mode.IsPreserved(uint8(r)) && start.gpr[r].kind != address {
			start.gpr[r] = value{}
		}
	}
	doubtful, padded := false, false // padded: only padding since
	for offset := uint64(0); offset < uint64(len(f.code)); {
		e := f.effect(offset)
		if e == nil {
			offset = f.nextReached(offset) // data
			continue
		}
		doubtful = f.IsRefuted(offset) || doubtful && padded
		padded = e.IsFiller
		if f.Point(offset) == nil && (!e.IsFiller || e.IsEndbr) && e.Kind != Stop {
			a := arrival{Address: offset, Source: codeflow.None, State: start}
			t := f.Examine(&a, 0)
			if t.IsContradicted || doubtful && !t.IsConfirmed {
				offset = f.nextBlock(offset)
				continue
			}
			_ = f.Follow(&a)
			if err := f.Resume(f); err != nil {
				return err
			}
		}
		offset += uint64(e.Length)
	}
	return nil
}

// nextBlock is the offset after the code that runs on from at.
func (f *flow) nextBlock(offset uint64) uint64 {
	for offset < uint64(len(f.code)) {
		e := f.effect(offset)
		if e == nil {
			return f.nextReached(offset)
		}
		offset += uint64(e.Length)
		if e.Kind == Jump || e.Kind == Return || e.Kind == Stop {
			break
		}
	}
	return offset
}

// nextReached is the first offset after at that is reached.
func (f *flow) nextReached(offset uint64) uint64 {
	for offset++; offset < uint64(len(f.code)) && f.Point(offset) == nil; offset++ {
	}
	return offset
}

// isThroughTable reports whether an indirect jump goes through a table of targets
// in the function, rather than to another function.
func (f *flow) isThroughTable(e *Effect, s *state) bool {
	if e.HasMem {
		return e.Mem.IsTable
	}
	return e.Dst != None && s.gpr[e.Dst].kind == tableEntry
}
