// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/trace"
)

// frameAtIndex is the frame of an index in the JSON of stacks: a physical frame, or a call that
// was inlined into one.
type frameAtIndex struct {
	frame    *trace.Frame
	symbol   *trace.Symbol // nil: there is no name
	physical int           // the number of the physical frame, from 0 on; managed frames do not count
}

// about returns the facts of an answer about the frame.
func (f *frameAtIndex) about(thread string, index int) framed {
	out := framed{Thread: thread, Frame: index}
	if s := f.symbol; s != nil {
		out.Function, out.File, out.Line = clip(s.Function, maxText), s.File, s.Line
	}
	return out
}

// frameAt finds the frame of an index.
func frameAt(s *trace.Stack, index int) (*frameAtIndex, error) {
	next, physical := 0, 0
	for i := range s.Frames {
		if f := within(&s.Frames[i], index, &next); f != nil {
			f.physical = physical
			return f, nil
		}
		if s.Frames[i].IsNative() {
			physical++
		}
	}
	return nil, fmt.Errorf("thread %s has no frame %d of its own: stack lists its frames, of which there are %d", s.Thread.ID, index, next)
}

// within finds the frame of an index among the calls that were inlined into a frame, itself and
// the functions that left it by tail calls. next is the index of the first of them, and then of
// the frame behind them.
func within(f *trace.Frame, index int, next *int) *frameAtIndex {
	for k := range max(len(f.Symbols), 1) {
		if *next == index {
			found := &frameAtIndex{frame: f}
			if k < len(f.Symbols) {
				found.symbol = &f.Symbols[k]
			}
			return found
		}
		*next++
	}
	callers := f.TailCallers()
	for i := range callers {
		if found := within(&callers[i], index, next); found != nil {
			return found
		}
	}
	return nil
}
