// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// functionRows reads a function, and returns the rows of every instruction whose frame
// is certain.
func functionRows(code *codeflow.Pieces) ([]cfi.Row, error) {
	f := newFlow(code, false)
	if err := f.run(); err != nil {
		return nil, err
	}
	return f.Rows(), nil
}

// commonFrame joins the states before instructions of one kind, at which the unwinder or
// a table continues. ok is false where there are none, or their frames differ.
func (f *flow) commonFrame(isOne func(p *point, e *effect) bool) (frame state, ok bool) {
	for _, p := range f.Found() {
		if !isOne(p, f.effect(p.Address)) {
			continue
		}
		if !ok {
			frame, ok = p.State, true
			continue
		}
		both := join(&frame, &p.State, false)
		if frame.gpr[gprSP].kind == address && p.State.gpr[gprSP].kind == address && both.gpr[gprSP].kind != address ||
			f.knows(&both)&knowsFrame == 0 {
			return frame, false
		}
		frame = both
	}
	for r := range 19 {
		frame.gpr[r] = value{}
	}
	return frame, ok
}

// tableState is the frame in which the function jumps through tables. A jump to a sum
// goes through a table; a jump through a register is a tail call if the frame is the
// caller's again.
func (f *flow) tableState() (frame state, ok bool) {
	return f.commonFrame(func(p *point, e *effect) bool {
		return e.kind == effectJump && !e.direct && !e.signed &&
			(p.State.gpr[e.dst&31].kind == computedValue || !f.isRestored(&p.State))
	})
}

// callState is the frame in which the function calls, as it is behind a call.
func (f *flow) callState() (frame state, ok bool) {
	frame, ok = f.commonFrame(func(p *point, e *effect) bool {
		return e.kind == effectCall && f.knowsAtCall(&p.State)
	})
	frame.gpr[gprX30] = value{}
	frame.expire()
	f.forgetUnsaved(&frame)
	return frame, ok && f.knowsAtCall(&frame)
}

// forgetUnsaved forgets the registers that a frame has not saved although the function
// writes them somewhere: compilers save each only where it is needed, maybe in a part
// that was not reached.
func (f *flow) forgetUnsaved(frame *state) {
	general, vectors := f.written(0, uint64(len(f.effects)))
	for r := uint8(19); r <= gprX29; r++ {
		if general>>r&1 != 0 && !frame.hasSaved(entryValue(r)) {
			frame.gpr[r] = value{}
		}
	}
	for i := range frame.vectors {
		if vectors>>(firstVector+i)&1 != 0 && !frame.hasSaved(entryVectors[i]) {
			frame.vectors[i] = value{}
		}
	}
}

// written returns the registers that code writes, a bit each.
func (f *flow) written(first, end uint64) (general, vectors uint32) {
	for n := first; n < end; n++ {
		e := f.effect(n)
		general |= e.clobbers | 1<<(e.dst&63)
		if e.kind == effectAccess && e.isLoad && !e.isVector {
			general |= 1<<(e.first&63) | 1<<(e.second&63)
		}
		vectors |= e.vectors
	}
	return general, vectors
}

// isBlockStart reports whether an instruction that nothing is known to reach may begin a
// block: the code before it does not run on to it.
func (f *flow) isBlockStart(n uint64) bool {
	return f.Point(n) == nil && f.effect(n-1).kind >= effectCall && f.effect(n-1).kind != effectBranch
}

// followTables follows the jumps that go through a table. The targets are not in the
// code, but every instruction of a function is reached somehow: an instruction that
// nothing else reaches is reached through a table, or by the unwinder. It is accepted
// where it leads to a return or to known code with the frame that all the tables of the
// function share.
func (f *flow) followTables() error {
	start, ok := f.tableState()
	if !ok {
		return nil
	}
	return f.followBlocks(func(a *arrival) bool {
		a.State = start
		t := f.Examine(a, maxCalls)
		return t.IsConfirmed && !t.IsContradicted
	})
}

// followBlocks follows the blocks that nothing is known to reach, if believe accepts
// them. believe gives an arrival its state.
func (f *flow) followBlocks(believe func(a *arrival) bool) error {
	for n := range uint64(len(f.effects)) {
		if n == 0 || !f.isBlockStart(n) {
			continue
		}
		a := arrival{Address: n, Source: codeflow.None}
		if !believe(&a) {
			if f.Err() != nil {
				return f.Err()
			}
			continue
		}
		if err := f.Follow(&a); err != nil {
			return err
		}
		if err := f.Resume(f); err != nil {
			return err
		}
	}
	return nil
}

// callFrame is the frame of all calls, and of the tables where there are some. ok is
// false where they differ.
func (f *flow) callFrame() (frame state, ok bool) {
	if frame, ok = f.callState(); !ok {
		return frame, false
	}
	table, hasTables := f.tableState()
	return frame, !hasTables || table.gpr[gprSP] == frame.gpr[gprSP]
}

// followLandingPads follows the landing pads, which the unwinder enters with the frame of
// a call. One that does not return calls a function to continue.
func (f *flow) followLandingPads() error {
	return f.followBlocks(func(a *arrival) bool {
		frame, ok := f.callFrame()
		if !ok {
			return false
		}
		a.State = frame
		t := f.Examine(a, maxCalls)
		return !t.IsContradicted && !t.IsCut && (t.IsConfirmed || t.Note)
	})
}
