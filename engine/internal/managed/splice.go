// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// This file puts the frames of runtimes into native stacks.

// extended is a native stack, with the frames and states that runtimes know.
type extended struct {
	thread *trace.Thread
	handle uint64 // by which runtimes know the thread
	native []trace.Frame
	isCut  bool // frames outside the last one were left out
	wait   *trace.Wait
	runs   []run
	added  int // frames in runs
	// states are the thread's in runtimes.
	states   []trace.RuntimeThread
	runtimes []*instance
}

// run is frames of a runtime that stand for native ones, or before one.
type run struct {
	first, count int
	frames       []trace.Frame
}

// overlaps reports whether two runs stand for the same native frame, or one stands between two
// native frames of the other.
func (r *run) overlaps(o *run) bool {
	switch {
	case r.count > 0 && o.count > 0:
		return r.first < o.first+o.count && o.first < r.first+r.count
	case r.count > 0:
		return o.first > r.first && o.first < r.first+r.count
	}
	return r.first > o.first && r.first < o.first+o.count
}

// take takes the runs of a stack. Where another runtime has said something of the same frames,
// that counts.
func (i *instance) take(e *extended, runs []sdk.ManagedRun) {
	left := 0
	for k := range runs {
		own := run{first: int(runs[k].First), count: int(runs[k].Count)}
		if slices.ContainsFunc(e.runs, func(other run) bool { return own.overlaps(&other) }) {
			i.problem("thread %s: frames that stand for native ones from %d on are left out: another runtime has frames for these", e.thread.ID, own.first)
			continue
		}
		frames := runs[k].Frames
		if most := max(i.owner.options.MaxFrames-e.added, 0); len(frames) > most {
			left += len(frames) - most
			frames = frames[:most]
		}
		if len(frames) == 0 {
			continue
		}
		own.frames = i.framesOf(e, &own, frames)
		e.added += len(frames)
		e.runs = append(e.runs, own)
	}
	if left > 0 {
		i.problem("thread %s: %d frames outside its %d innermost are left out", e.thread.ID, left, i.owner.options.MaxFrames)
	}
}

// framesOf makes the frames of a run. They have the place of the native frame that they stand
// for or before.
func (i *instance) framesOf(e *extended, r *run, list []sdk.ManagedFrame) []trace.Frame {
	var at trace.Frame
	if n := len(e.native); n > 0 {
		at = e.native[min(r.first, n-1)]
	}
	out := make([]trace.Frame, len(list))
	for k := range list {
		f := &out[k]
		f.PC, f.Exact = at.PC, at.Exact
		f.CFA, f.CFASpace, f.HasCFA = at.CFA, at.CFASpace, at.HasCFA
		f.FoundBy, f.RestsOnGuess = trace.ByRuntime, at.RestsOnGuess || at.FoundBy.IsGuess()
		f.Symbols, f.Details = i.owner.symbols.of(i.about.Name, &list[k])
		if limits := i.owner.options.Locals; limits != nil {
			f.Details = &trace.FrameDetails{Managed: f.Details.Managed, Locals: [][]trace.FrameVariable{variablesOf(list[k].Variables, limits)}}
		}
	}
	return out
}

// frames returns the stack with the runs in their places.
func (e *extended) frames() []trace.Frame {
	if len(e.runs) == 0 {
		return e.native
	}
	slices.SortStableFunc(e.runs, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	out := make([]trace.Frame, 0, len(e.native)+e.added)
	next := 0
	for _, r := range e.runs {
		out = append(out, e.native[next:max(r.first, next)]...)
		out = append(out, r.frames...)
		next = max(r.first, next)
		for range r.count {
			f := e.native[next]
			f.BehindManaged = true
			out = append(out, f)
			next++
		}
	}
	return append(out, e.native[next:]...)
}

// symbols has the functions and details of managed frames, which many stacks share.
type symbols struct {
	mu      sync.Mutex
	known   map[symbolKey][]trace.Symbol
	details map[trace.Managed]*trace.FrameDetails
}

// symbolKey is a place in a function of a language.
type symbolKey struct {
	function, file string
	line, column   uint32
}

// maxSymbols bounds the functions that are shared.
const maxSymbols = 1 << 16

// of returns the function of a frame, as a list of one, and its details.
func (s *symbols) of(runtime string, f *sdk.ManagedFrame) ([]trace.Symbol, *trace.FrameDetails) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSymbols {
		s.known = map[symbolKey][]trace.Symbol{}
	}
	key := symbolKey{f.Function, f.File, f.Line, f.Column}
	list := s.known[key]
	if list == nil {
		list = []trace.Symbol{symbolOf(f)}
		s.known[key] = list
	}
	about := trace.Managed{Runtime: runtime, Kind: kindOf(f.Kind)}
	details := s.details[about]
	if details == nil {
		if s.details == nil {
			s.details = map[trace.Managed]*trace.FrameDetails{}
		}
		details = &trace.FrameDetails{Managed: &about}
		s.details[about] = details
	}
	return list, details
}
