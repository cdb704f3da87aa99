// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds callers by rows that have only where the search for the return address begins:
// frame data of functions without a frame pointer.

// searchBytes is how far a return address is searched from where its search begins. Parameters of a
// called function may not have been counted, and a stack pointer may have been rounded down.
const searchBytes = 1 << 10

// parametersBelow returns the size of the parameters that lie between the stack pointer of a frame
// and its own part of the stack, which belong to the function that it called. Code that is about to
// execute has called none.
func (f *frame) parametersBelow() (bytes uint64, isKnown bool) {
	callee := f.callee
	switch {
	case f.exact || callee == nil:
		return 0, true
	case callee.module == nil:
		return 0, false
	}
	p := callee.module.Code.Parameters(callee.lookup)
	return p.Bytes, p.IsKnown
}

// bySearch finds the caller of a frame whose row is searched. The return address is where the search
// begins, if that is known and it may be one. Else the code is read, where it tells; else it is
// searched, which is a guess. Clang's functions have room for the parameters of those that they call,
// and count it: the search begins without them.
func (w *walker) bySearch(ctx context.Context, f *frame, source *code.Row) (*frame, trace.Stopped) {
	caller, err := w.recover(ctx, f, source)
	if err != nil {
		return nil, w.stopFor(err)
	}
	below, isKnown := f.parametersBelow()
	if isKnown && caller != nil {
		if is, err := w.mayReturnFrom(ctx, f, caller.pc); err != nil {
			return nil, w.stopFor(err)
		} else if is {
			return caller, trace.Stopped{}
		}
	}
	start := f.cfa - below + uint64(w.machine.returns) //nolint:gosec // it wraps, as addresses do
	f.forget()
	if caller, err := w.byCode(ctx, f); err != nil || caller != nil {
		if err != nil {
			return nil, w.stopFor(err)
		}
		return caller, trace.Stopped{}
	}
	f.forget()
	if caller, err = w.search(ctx, f, start, source.Rules); err != nil {
		return nil, w.stopFor(err)
	} else if caller == nil {
		return w.guess(ctx, f, errNothingFound)
	}
	return caller, trace.Stopped{}
}

// errNothingFound is the error where a search finds no return address.
var errNothingFound = &code.NoRow{Reasons: []string{"frame data: no return address is where the search for it begins, nor near"}}

// byCode finds the caller by reading the code of the function of f; nil where that is not possible,
// or gives no return address.
func (w *walker) byCode(ctx context.Context, f *frame) (*frame, error) {
	if f.module == nil {
		return nil, nil
	}
	source, err := f.module.ReadRow(ctx, f.offset, f.exact)
	if err != nil || source == nil {
		return nil, err
	}
	f.source = source
	caller, err := w.recover(ctx, f, source)
	if err != nil || caller == nil {
		return nil, nil //nolint:nilerr // it needs a register that is not known
	}
	if is, err := w.mayReturnFrom(ctx, f, caller.pc); err != nil || !is {
		return nil, err
	}
	return caller, nil
}

// mayReturnFrom reports whether a word of the stack may be the return address of a frame: it follows
// a call that may have led there, or is in a function whose code is not here.
func (w *walker) mayReturnFrom(ctx context.Context, f *frame, pc uint64) (bool, error) {
	if w.isUnseenCode(pc) {
		s := w.segmentAt(pc - 1)
		b := s.Module.Code.BoundsAt(s.ObjectAddress(pc - 1))
		return !b.IsKnown || b.Start != s.ObjectAddress(pc), nil
	}
	site, err := w.callSite(ctx, pc)
	if err != nil || !site.IsAfterCall {
		return false, err
	}
	called, err := w.mayHaveCalled(ctx, pc, site, f)
	return called != otherwise, err
}

// search takes the first word from a place of the stack on that may be the return address of f. The
// rules of its row hold where the CFA is right above it.
func (w *walker) search(ctx context.Context, f *frame, start uint64, rules *cfi.Row) (*frame, error) {
	if !w.process.bounds.mayScan() {
		return nil, nil
	}
	pcs, places, read := w.stackWords(start, searchBytes)
	for i, pc := range pcs {
		is, err := w.mayReturnFrom(ctx, f, pc)
		if err != nil {
			return nil, err
		}
		if is {
			cfa := places[i] - uint64(w.machine.returns) //nolint:gosec // it wraps, as addresses do
			return w.afterReturn(ctx, f, pc, cfa, rules, cfi.Undefined), nil
		}
	}
	w.process.bounds.scannedInVain(read)
	return nil, nil
}
