// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"iter"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

const (
	// batchStacks and batchFrames bound the stacks that a plugin is asked about in one call.
	batchStacks = 256
	batchFrames = 1 << 16
)

// HasFrames reports whether a runtime of the process may know frames, or locks.
func (x *Process) HasFrames(ctx context.Context) bool {
	for _, i := range x.all(ctx) {
		if i.answer.HasFrames && !i.hasFailed() || len(i.locks) > 0 {
			return true
		}
	}
	return false
}

// HasCode implements walk.RuntimeCode.
func (x *Process) HasCode(ctx context.Context) bool {
	for _, i := range x.all(ctx) {
		if len(i.code.ranges) > 0 {
			return true
		}
	}
	return false
}

// Over yields the stacks of each, which walks the threads in order, with the frames of
// runtimes. Plugins are asked about many stacks at once.
func (x *Process) Over(ctx context.Context, threads *target.ThreadList, each iter.Seq[*trace.Stack]) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		isGenerated := x.HasCode(ctx)
		from := 0
		prepare := func() {
			to := min(from+batchStacks, threads.Len())
			if isGenerated && to-from > 1 {
				x.Prepare(ctx, threads.Slice(from, to))
			}
			from = to
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
		list[i] = &extended{thread: s.Thread, native: s.Frames, isCut: s.LeftOut > 0, wait: s.Wait}
	}
	x.ask(ctx, list)
	x.locks.note(list)
	for i, s := range stacks {
		s.Frames, s.Runtimes = list[i].frames(), list[i].states
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

// extendLaunchers extends the stacks of launchers as they wait. A stack that was recorded at a
// launch is older than the memory that runtimes read.
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

// ask asks the runtimes about stacks.
func (x *Process) ask(ctx context.Context, list []*extended) {
	for _, i := range x.all(ctx) {
		var batch []*extended
		frames := 0
		for _, e := range list {
			handle, isThreads := x.handleOf(e.thread)
			if !isThreads {
				continue
			}
			e.handle = handle
			if !i.answer.HasFrames || i.hasFailed() || e.thread.Arch != i.module.Arch || e.thread.Unread != "" || !i.hasThread(handle) {
				i.state(e, &sdk.ManagedStack{})
				continue
			}
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
		answer = &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(batch))}
	}
	for k, e := range batch {
		s := &answer.Stacks[k]
		if s.Problem != "" {
			i.problem("thread %s: %s", e.thread.ID, s.Problem)
		}
		i.take(e, s.Runs)
		i.state(e, s)
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
