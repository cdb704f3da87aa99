// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file is about return addresses that a call leaves in a register, the link register, and
// that a table places there although it has another one by then. A frame in a call cannot have
// its return address there: the call overwrote it. LLVM writes such tables for functions that
// keep the address in another register while they call code that it outlined.

// errLinkOverwritten is the error for a row that cannot be right.
var errLinkOverwritten = errors.New("the link register has been overwritten by a call since, and reading the code does not say where the return address is")

// isLinkOverwritten reports whether the row of f has the return address in the link register,
// where a call of f has put its own.
func (w *walker) isLinkOverwritten(ctx context.Context, f, caller *frame) (bool, error) {
	if rule, _ := f.rule(f.source.Rules.ReturnAddress); rule.Kind != cfi.SameValue || caller.exact || f.module == nil || !f.source.By.IsDescribed() {
		return false, nil
	}
	if !f.exact {
		return caller.pc == f.pc && f.callee != nil && !f.callee.exactCallee(), nil
	}
	own := f.module.Code.BoundsAt(f.lookup)
	if !own.IsKnown || caller.module != f.module || caller.lookup < own.Start || caller.lookup >= own.End {
		return false, nil
	}
	site, err := w.callSite(ctx, caller.pc)
	if err != nil || !site.IsAfterCall || !site.IsDirect {
		return false, err
	}
	called, err := w.mayHaveCalled(ctx, caller.pc, site, f)
	return called == otherwise, err
}

// exactCallee reports whether the frame is a signal's, which called nothing.
func (f *frame) exactCallee() bool { return f.source != nil && f.source.IsSignalFrame() }

// byReadLink returns the caller of f by reading its code, where the link register has been
// overwritten; nil where that gives no possible one.
func (w *walker) byReadLink(ctx context.Context, f *frame) (*frame, error) {
	row, err := f.module.ReadRow(ctx, f.offset, f.exact)
	if err != nil || row == nil {
		return nil, err
	}
	f.forget()
	f.source = row
	w.keepLink(ctx, f)
	caller, err := w.recover(ctx, f, row)
	if err != nil || caller == nil || caller.pc == f.pc {
		return nil, nil //nolint:nilerr // it is not known
	}
	return w.ifReturn(ctx, f, caller)
}

// keepLink places a register in which f keeps its return address where the frame further in has
// it, if that is about to execute an instruction: the callees of f leave the register
// unchanged, whatever other functions do.
func (w *walker) keepLink(ctx context.Context, f *frame) {
	column := f.source.Rules.ReturnAddress
	rule, _ := f.rule(column)
	if rule.Kind != cfi.Register || rule.Register == column || f.exact || f.callee == nil || !f.callee.exact {
		return
	}
	if s, err := f.callee.find(ctx, rule.Register); err == nil {
		f.callSite = append(f.callSite[:0], placedRegister{register: rule.Register, slot: s})
	}
}

// ifReturn returns the caller, if its PC may be a return address of a call that led to f.
func (w *walker) ifReturn(ctx context.Context, f, caller *frame) (*frame, error) {
	may, err := w.mayReturnTo(ctx, caller)
	if err != nil || !may || caller.exact {
		return nil, err
	}
	site, err := w.callSite(ctx, caller.pc)
	if err != nil {
		return nil, err
	}
	if called, err := w.mayHaveCalled(ctx, caller.pc, site, f); err != nil || called == otherwise {
		return nil, err
	}
	return caller, nil
}

// withoutLink returns the caller of f where its row has the return address in a register that
// does not have it any more. ok is false where the row may be right.
func (w *walker) withoutLink(ctx context.Context, f, caller *frame) (instead *frame, stop trace.Stopped, ok bool) {
	switch rule, _ := f.rule(f.source.Rules.ReturnAddress); {
	case f.module == nil, caller == nil && (rule.Kind != cfi.Register || f.source.By != trace.ByRules || f.exact):
		return nil, trace.Stopped{}, false
	case caller != nil:
		is, err := w.isLinkOverwritten(ctx, f, caller)
		if err != nil {
			return nil, w.stopFor(err), true
		}
		if !is {
			return nil, trace.Stopped{}, false
		}
	}
	instead, err := w.byReadLink(ctx, f)
	switch {
	case err != nil:
		return nil, w.stopFor(err), true
	case instead != nil:
		return instead, trace.Stopped{}, true
	}
	instead, stop = w.guess(ctx, f, errLinkOverwritten)
	return instead, stop, true
}
