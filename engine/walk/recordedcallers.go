// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/unwindd/unwindd/engine/trace"
)

// A target may have recorded the return addresses of a thread. They are used where rows lead
// to no caller.

// stepRecorded chooses between the caller that was found for f, nil with stopped if there is
// none, and the one that the target recorded.
func (w *walker) stepRecorded(f, caller *frame, stopped trace.Stopped) (*frame, trace.Stopped) {
	pc, ok := w.recordedCaller(f)
	switch {
	case !ok && caller == nil && w.isLastRecorded(f) && stopped.Reason != trace.StopOutermost:
		stopped.Detail += "; the target recorded no caller of it"
		return nil, stopped
	case !ok:
		return caller, stopped
	case caller == nil && stopped.Reason == trace.StopOutermost && stopped.Detail != zeroReturnAddress:
		return nil, stopped
	case caller != nil && (caller.pc == pc || !caller.isGuess() && (caller.module != nil || w.segmentAt(pc) == nil)):
		return caller, stopped
	}
	// Without a CFA the rest of the row says nothing about registers either.
	if !f.hasCFA {
		f.forget()
	}
	w.stack.EndAssumed = false
	caller = w.frame(f.index + 1)
	caller.callee, caller.found, caller.pc = f, trace.ByCallChain, pc
	w.place(caller)
	return caller, trace.Stopped{}
}

// recordedCaller returns the recorded return address of a frame. The frames further in must be
// the recorded ones.
func (w *walker) recordedCaller(f *frame) (pc uint64, ok bool) {
	callers := w.thread.Callers
	if f.index >= len(callers) || f.index > 0 && callers[f.index-1] != f.pc {
		return 0, false
	}
	return callers[f.index], callers[f.index] != 0
}

// isLastRecorded reports whether a frame is the outermost one that was recorded.
func (w *walker) isLastRecorded(f *frame) bool {
	n := len(w.thread.Callers)
	return f.index == n && w.thread.Callers[n-1] == f.pc
}
