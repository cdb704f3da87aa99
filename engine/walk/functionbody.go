// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
)

// errNoBody is the error of a frame whose row is of the body of its function, where that cannot be right.
var errNoBody = errors.New("there is only a row of the function's body, by which no call led to it")

// byBody returns the caller of f by the row of its function's body (trace.ByFunctionBody), a guess. It is believed
// where it lies above f, its return address follows a call, and the link register, if that leads out of the
// function, says the same: a call from the body would have left another address there.
func (w *walker) byBody(ctx context.Context, f *frame, source *code.Row) (*frame, trace.Stopped) {
	link, hasLink := uint64(0), false
	if caller, ok := w.byLink(ctx, f); ok {
		link, hasLink = caller.pc, true
	}
	f.forget()
	f.source = source
	caller, err := w.recover(ctx, f, source)
	if err == nil && caller != nil && (!hasLink || caller.pc == link) && w.mayBeReturn(ctx, caller) {
		if sp, err := w.stackFloor(ctx, f); err == nil && f.cfa >= sp {
			return caller, trace.Stopped{}
		}
	}
	return w.guess(ctx, f, errNoBody)
}
