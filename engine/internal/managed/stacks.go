// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

const (
	// batchStacks and batchFrames bound the stacks that a plugin is asked about in one call.
	batchStacks = 256
	batchFrames = 1 << 16
)

// HasFrames reports whether a runtime of the process may know frames.
func (x *Process) HasFrames(ctx context.Context) bool {
	for _, i := range x.all(ctx) {
		if i.answer.HasFrames && !i.hasFailed() {
			return true
		}
	}
	return false
}

// hasCode reports whether a runtime of the process made code.
func (x *Process) hasCode(ctx context.Context) bool {
	for _, i := range x.all(ctx) {
		if len(i.code.ranges) > 0 {
			return true
		}
	}
	return false
}

// Over yields the stacks of each, which walks the threads in order, with the frames of
// runtimes. Plugins are asked about many stacks at once.
func (x *Process) Over(ctx context.Context, threads []*trace.Thread, each iter.Seq[*trace.Stack]) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		isMade := x.hasCode(ctx)
		prepare := func() {
			next := threads[:min(len(threads), batchStacks)]
			threads = threads[len(next):]
			if isMade && len(next) > 1 {
				x.Prepare(ctx, next)
			}
		}
		if !x.HasFrames(ctx) {
			prepare()
			each(yield)
			return
		}
		var batch []*trace.Stack
		frames := 0
		pass := func() bool {
			x.Extend(ctx, batch)
			for _, s := range batch {
				if !yield(s) {
					return false
				}
			}
			clear(batch)
			batch, frames = batch[:0], 0
			return true
		}
		count := 0
		for s := range each {
			if count%batchStacks == 0 {
				prepare()
			}
			count++
			batch = append(batch, s)
			if frames += len(s.Frames); (len(batch) == batchStacks || frames >= batchFrames) && !pass() {
				return
			}
		}
		pass()
	}
}

// Extend adds the frames of runtimes to native stacks, and to the stacks of their launchers.
func (x *Process) Extend(ctx context.Context, stacks []*trace.Stack) {
	if !x.HasFrames(ctx) {
		return
	}
	list := make([]*extended, len(stacks))
	for i, s := range stacks {
		list[i] = &extended{thread: s.Thread, native: s.Frames, isCut: s.LeftOut > 0}
	}
	x.ask(ctx, list)
	for i, s := range stacks {
		s.Frames = list[i].frames()
	}
	x.extendLaunchers(ctx, stacks)
}

// launchers are the stacks of launchers with the frames of runtimes: many threads may have one
// launcher, and share its native frames.
type launchers struct {
	mu    sync.Mutex
	known map[*trace.Frame][]trace.Frame // by the first native frame
}

// maxLaunchers bounds the launchers whose stacks are kept.
const maxLaunchers = 1 << 10

// extendLaunchers extends the stacks of launchers as they wait. What was recorded at a launch is
// not what runtimes know now.
func (x *Process) extendLaunchers(ctx context.Context, stacks []*trace.Stack) {
	x.launchers.mu.Lock()
	defer x.launchers.mu.Unlock()
	if len(x.launchers.known) > maxLaunchers {
		x.launchers.known = nil
	}
	var list []*extended
	each := func(do func(l *trace.Launcher, first *trace.Frame)) {
		for _, s := range stacks {
			for k := range s.Launchers {
				if l := &s.Launchers[k]; l.Thread != nil && len(l.Frames) > 0 && l.Evidence != trace.LaunchRecorded {
					do(l, &l.Frames[0])
				}
			}
		}
	}
	each(func(l *trace.Launcher, first *trace.Frame) {
		if _, isKnown := x.launchers.known[first]; !isKnown {
			if x.launchers.known == nil {
				x.launchers.known = map[*trace.Frame][]trace.Frame{}
			}
			x.launchers.known[first] = nil
			list = append(list, &extended{thread: l.Thread, native: l.Frames, isCut: l.LeftOut > 0})
		}
	})
	if len(list) > 0 {
		x.ask(ctx, list)
		for _, e := range list {
			x.launchers.known[&e.native[0]] = e.frames()
		}
	}
	each(func(l *trace.Launcher, first *trace.Frame) { l.Frames = x.launchers.known[first] })
}

// extended is a native stack, and what runtimes know of it.
type extended struct {
	thread *trace.Thread
	handle uint64 // by which runtimes know the thread
	native []trace.Frame
	isCut  bool // frames outside the last one were left out
	runs   []run
	added  int // frames in runs
}

// run is frames of a runtime that stand for native ones, or before one.
type run struct {
	first, count int
	frames       []trace.Frame
}

// overlaps reports whether two runs stand for the same native frame, or one stands between
// those of the other.
func (r *run) overlaps(o *run) bool {
	switch {
	case r.count > 0 && o.count > 0:
		return r.first < o.first+o.count && o.first < r.first+r.count
	case r.count > 0:
		return o.first > r.first && o.first < r.first+r.count
	}
	return r.first > o.first && r.first < o.first+o.count
}

// ask asks the runtimes about stacks.
func (x *Process) ask(ctx context.Context, list []*extended) {
	for _, i := range x.all(ctx) {
		var batch []*extended
		frames := 0
		for _, e := range list {
			handle, isThreads := x.handleOf(e.thread)
			if !i.answer.HasFrames || e.thread.Arch != i.module.Arch || e.thread.Unread != "" || !isThreads || !i.hasThread(handle) {
				continue
			}
			e.handle = handle
			if frames += len(e.native); len(batch) == batchStacks || len(batch) > 0 && frames > batchFrames {
				i.askFrames(ctx, batch)
				batch, frames = nil, len(e.native)
			}
			batch = append(batch, e)
		}
		i.askFrames(ctx, batch)
	}
}

// carriers are the handles of the threads that execute what runtimes schedule.
type carriers struct {
	once  sync.Once
	known map[*trace.Goroutine]uint64
}

// handleOf returns the handle by which runtimes know the thread whose native stack a thread has:
// its own, or its carrier's. A thread that a runtime schedules and that nothing executes has none.
func (x *Process) handleOf(th *trace.Thread) (handle uint64, has bool) {
	if th.Goroutine == nil {
		return th.Handle, true
	}
	x.carriers.once.Do(func() {
		x.carriers.known = map[*trace.Goroutine]uint64{}
		for _, carrier := range x.process.Threads() {
			if carrier.Executes != nil {
				x.carriers.known[carrier.Executes.Goroutine] = carrier.Handle
			}
		}
	})
	handle, has = x.carriers.known[th.Goroutine]
	return handle, has
}

// askFrames asks about stacks in one call.
func (i *instance) askFrames(ctx context.Context, batch []*extended) {
	if len(batch) == 0 || i.hasFailed() || ctx.Err() != nil {
		return
	}
	req := &sdk.ManagedFramesRequest{Runtime: i.request.Runtime, Threads: make([]sdk.NativeStack, len(batch))}
	if limits := i.owner.options.Locals; limits != nil {
		req.Variables = true
		req.Depth, req.Elements = uint32(max(limits.Depth, 0)), uint32(max(limits.Elements, 0)) //nolint:gosec // small
	}
	for k, e := range batch {
		req.Threads[k] = sdk.NativeStack{Thread: e.handle, Frames: i.nativeFrames(ctx, e.native), IsCut: e.isCut}
	}
	answer, err := call(ctx, i, "ManagedFrames", func() (*sdk.ManagedFramesAnswer, error) {
		return i.runtime.ManagedFrames(ctx, i.owner.engine, req)
	})
	if err != nil {
		return
	}
	if len(answer.Stacks) != len(batch) {
		i.problem("ManagedFrames: %d answers for %d stacks: they are not used", len(answer.Stacks), len(batch))
		return
	}
	for k, e := range batch {
		s := &answer.Stacks[k]
		if s.Problem != "" {
			i.problem("thread %s: %s", e.thread.ID, s.Problem)
		}
		if err := i.take(e, s.Runs); err != nil {
			i.problem("thread %s: its frames are not used: %v", e.thread.ID, err)
		}
	}
}

// nativeFrames describes native frames to a plugin.
func (i *instance) nativeFrames(ctx context.Context, frames []trace.Frame) []sdk.NativeFrame {
	list := make([]sdk.NativeFrame, len(frames))
	for k := range frames {
		f := &frames[k]
		out := &list[k]
		out.PC, out.InModule = f.PC, f.Module == &i.module.Module.Module
		if f.HasCFA && f.CFASpace == locexpr.DefaultSpace {
			out.CFA, out.HasCFA = f.CFA, true
		}
		out.Function = i.functionOf(ctx, f)
	}
	return list
}

// functionOf returns the linkage name of a frame's function; "" where it is not known.
func (i *instance) functionOf(ctx context.Context, f *trace.Frame) (name string) {
	if n := len(f.Symbols); n > 0 {
		if name = f.Symbols[n-1].LinkageName; name == "" {
			name = f.Symbols[n-1].Function
		}
		return symbol.StripVersion(name)
	}
	if f.Module == nil {
		return ""
	}
	lookup := f.PC
	if !f.Exact {
		lookup -= uint64(i.machine.Description.CallDistance)
	}
	_ = object.Guard(func() error { // functions of a file that is cut are not known
		name = functionAt(ctx, i.owner.process, lookup).Name
		return nil
	})
	return name
}

// take checks the runs of a stack, and takes them. Where another runtime has said something of
// the same frames, that counts.
func (i *instance) take(e *extended, runs []sdk.ManagedRun) error {
	end := 0
	for k := range runs {
		r := &runs[k]
		switch n := uint64(len(e.native)); {
		case uint64(r.First)+uint64(r.Count) > n:
			return fmt.Errorf("run %d stands for %d native frames from %d on, of %d", k, r.Count, r.First, n)
		case int(r.First) < end:
			return fmt.Errorf("run %d begins at native frame %d, which is before the end of the run before it, %d", k, r.First, end)
		case len(r.Frames) == 0:
			return fmt.Errorf("run %d has no frames", k)
		}
		end = int(r.First) + int(r.Count)
	}
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
	return nil
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
