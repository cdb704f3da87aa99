// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/code"
)

// otherwise returns the first row of a frame, among its own and those that there are for where that does not do, that
// leads to a caller; the frame's own and its error where none does. caller and err came of its own row.
func (w *walker) otherwise(ctx context.Context, f *frame, own *code.Row, caller *frame, err error) (*code.Row, *frame, error) {
	source := own
	for source.Otherwise != nil && (err != nil || source.ToModule && caller != nil && caller.module == nil) {
		source = source.Otherwise
		f.forget()
		f.source = source
		if caller, err = w.recover(ctx, f, source); err == nil && source.By.IsGuess() && !w.mayBeReturn(ctx, caller) {
			err = errNoReturn
		}
	}
	if err == nil || source == own {
		return source, caller, err
	}
	f.forget()
	f.source = own
	caller, err = w.recover(ctx, f, own)
	return own, caller, err
}

// mayBeReturn reports whether the PC of a frame that was found by a guess follows a call, as far as its code is here.
func (w *walker) mayBeReturn(ctx context.Context, f *frame) bool {
	if f == nil || !w.isCode(f.pc-1) {
		return false
	}
	site, err := w.callSite(ctx, f.pc)
	return err == nil && (site.IsAfterCall || w.isUnseenCode(f.pc))
}
