// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file is about ABIs in which every function that calls another one makes a frame of the
// same form, so that frames form a chain from the stack pointer on (the back chain of 64-bit
// POWER). Frames found by it are no guesses. The top frame, and one that a signal interrupted, may
// not have made its frame yet: its caller is found by the rows of its code, or guessed.

// byBackChain returns the caller of a frame that is in a call, by the chain; nil where the ABI
// has none, or where it does not lead on to code above the frame.
func (w *walker) byBackChain(ctx context.Context, f *frame) *frame {
	if w.machine.chainSource == nil || f.exact {
		return nil
	}
	sp, err := w.stackFloor(ctx, f)
	if err != nil {
		return nil
	}
	f.source = w.machine.chainSource
	caller, err := w.recover(ctx, f, f.source)
	if err != nil || caller == nil || f.cfaSpace != locexpr.DefaultSpace || f.cfa <= sp || caller.pc == 0 || !w.isCode(caller.pc) {
		f.forget()
		return nil
	}
	return caller
}

// beforeChain returns the caller of a frame that need not have made its frame yet, where nothing
// bounds its function: the call before the address in the link register names a function whose
// code, read from there, leads to the frame with that return address. It is a guess: another
// function may be entered by a jump in between. nil where that does not hold; the chain itself
// skips a caller there.
func (w *walker) beforeChain(ctx context.Context, f *frame) *frame {
	if w.machine.chainSource == nil || !w.machine.hasLink || !f.exact || f.module == nil || !f.module.Code.IsKnown() || f.module.Code.BoundsAt(f.lookup).IsKnown {
		return nil
	}
	pc, err := w.entryReturn(ctx, f)
	if err != nil {
		return nil
	}
	site, err := w.callSite(ctx, pc)
	if err != nil || !site.IsAfterCall || !site.IsDirect {
		return nil
	}
	target := w.segmentAt((pc + uint64(site.Target)) & w.machine.addresses)
	if target == nil || target.Module != f.module || !w.process.bounds.mayRead() {
		return nil
	}
	start := target.ObjectAddress((pc + uint64(site.Target)) & w.machine.addresses)
	rules, err := f.module.Code.RowFrom(ctx, start, f.lookup, f.exact)
	if err != nil || rules == nil {
		return nil
	}
	f.source = &code.Row{Rules: rules, By: trace.ByScan, Defaults: w.machine.Defaults}
	caller, err := w.recover(ctx, f, f.source)
	if err != nil || caller == nil || caller.pc != pc {
		f.forget()
		return nil
	}
	return caller
}

// isLastOfChain reports whether the chain of frames ends with a frame that is in a call: the
// register that its CFA counts from, or the stack pointer that the chain leads to, is 0.
func (w *walker) isLastOfChain(ctx context.Context, f *frame) bool {
	source := w.machine.chainSource
	if source == nil || f.exact {
		return false
	}
	if cfa := source.Rules.CFA; cfa.Kind == cfi.CFARegister {
		base, err := f.value(ctx, cfa.Register)
		return err == nil && base == 0
	}
	f.source = source
	defer f.forget()
	sp, _ := f.rule(uint64(w.machine.Description.SP))
	if sp.Kind != cfi.ValOffset || f.findCFA(ctx, source) != nil {
		return false
	}
	next, ok := displace(f.cfa, sp.Offset, w.machine.addresses)
	return ok && next == 0
}
