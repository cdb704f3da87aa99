// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds the launcher of a wave where only its queue is recorded: the thread that
// waits for the launch to end. The runtime library then signals an object in memory, whose
// address the waiting thread has in a register or on its stack. Where the launching thread itself
// was recorded, this file tells whether it is still in the launch, or waits for its end.

// maxWaitBytes bounds the bytes of a waiting thread's stack that are searched.
const maxWaitBytes = 64 << 10

// waits are the threads of a target that wait for launches to end.
type waits struct {
	once    sync.Once
	threads []waiting

	mu    sync.Mutex
	found map[*trace.Launch]foundLaunch
}

// foundLaunch is a launch with the launching thread of the target; nil where only its ID is
// known, if anything is.
type foundLaunch struct {
	launch *trace.Launch
	thread *trace.Thread
}

// waiting is a thread that waits in one of the functions for waiting.
type waiting struct {
	thread *trace.Thread
	words  []uint64 // the contents of its registers and of its stack down to the wait; sorted
}

// launchOf returns the launch of a thread, as the target has it, or by the one thread that
// waits for the launch to end. Where several wait for it, the launcher is not known.
func (p *Process) launchOf(ctx context.Context, th *trace.Thread) foundLaunch {
	l := th.LaunchedBy
	if l.Evidence != trace.LaunchQueue {
		return foundLaunch{l, nil}
	}
	w := &p.launchers.waits
	var find func() foundLaunch
	switch {
	case l.Thread != "" && len(l.LaunchFunctions)+len(l.WaitFunctions) > 0:
		find = func() foundLaunch { return p.launchNamed(ctx, l) }
	case l.Thread == "" && l.Signal != 0 && len(l.WaitFunctions) > 0:
		w.once.Do(func() { w.threads = p.findWaiting(ctx, l.WaitFunctions) })
		find = func() foundLaunch { return w.launchOf(l) }
	default:
		return foundLaunch{l, nil}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	found, isKnown := w.found[l]
	if !isKnown {
		found = find()
		if w.found == nil {
			w.found = map[*trace.Launch]foundLaunch{}
		}
		if ctx.Err() == nil {
			w.found[l] = found
		}
	}
	return found
}

// launchNamed returns a launch whose thread was recorded, with that thread where it is in a function
// that launches or waits.
func (p *Process) launchNamed(ctx context.Context, l *trace.Launch) foundLaunch {
	launcher, err := p.launchers.thread(p, l.Thread)
	if err != nil || launcher.LaunchedBy != nil || launcher.Unread != "" || launcher.Problem != "" {
		return foundLaunch{l, nil}
	}
	names := make(map[string]bool, len(l.LaunchFunctions)+len(l.WaitFunctions))
	for _, f := range slices.Concat(l.LaunchFunctions, l.WaitFunctions) {
		names[f] = true
	}
	if p.waitFrame(ctx, p.launchers.stack(ctx, p, launcher), names) < 0 {
		return foundLaunch{l, nil}
	}
	return foundLaunch{&trace.Launch{Thread: l.Thread, Kind: l.Kind, Evidence: trace.LaunchWaiting}, launcher}
}

// launchOf returns a launch by the one thread that waits for its end; where none or several do, as
// the target has it.
func (w *waits) launchOf(l *trace.Launch) foundLaunch {
	found := foundLaunch{l, nil}
	count := 0
	for i := range w.threads {
		if _, has := slices.BinarySearch(w.threads[i].words, l.Signal); has {
			count++
			launcher := w.threads[i].thread
			found = foundLaunch{&trace.Launch{Thread: launcher.ID, Kind: l.Kind, Evidence: trace.LaunchWaiting}, launcher}
		}
	}
	if count > 1 {
		return foundLaunch{l, nil}
	}
	return found
}

// findWaiting finds the threads that are in one of the functions. Threads that were launched
// themselves wait for no launch.
func (p *Process) findWaiting(ctx context.Context, functions []string) (list []waiting) {
	names := make(map[string]bool, len(functions))
	for _, f := range functions {
		names[f] = true
	}
	mayWait := func(th *trace.Thread) bool { return th.LaunchedBy == nil && th.Unread == "" && th.Problem == "" }
	for _, th := range p.list.Where(mayWait) {
		stack := p.launchers.stack(ctx, p, th)
		if i := p.waitFrame(ctx, stack, names); i >= 0 {
			list = append(list, waiting{th, p.waitWords(ctx, th, stack, i)})
		}
	}
	return list
}

// waitFrame returns the index of the outermost frame in one of the functions; -1 for none.
func (p *Process) waitFrame(ctx context.Context, stack *trace.Stack, functions map[string]bool) int {
	m := p.machineOf(stack.Thread)
	if m == nil {
		return -1
	}
	distance := uint64(m.Description.CallDistance)
	for i := len(stack.Frames) - 1; i >= 0; i-- {
		f := &stack.Frames[i]
		lookup := f.PC
		if !f.Exact {
			lookup -= distance
		}
		s := p.Segment(lookup)
		if s == nil {
			continue
		}
		for _, name := range s.Module.AllNames(ctx, s.ObjectAddress(lookup), true) {
			if functions[name.LinkageName] || functions[name.Function] {
				return i
			}
		}
	}
	return -1
}

// waitWords returns the words in a thread's general registers, and on its stack from its top to
// the end of the frame that called the wait: registers with the signal in that frame were saved
// there by the frames further in.
func (p *Process) waitWords(ctx context.Context, th *trace.Thread, stack *trace.Stack, wait int) (words []uint64) {
	view, ok := p.View(ctx, th)
	if !ok {
		return nil
	}
	d := view.Machine().Description
	for i, number := range th.Registers.Numbers {
		if size := th.Registers.Offsets[i+1] - th.Registers.Offsets[i]; size == 8 {
			v, _ := th.Registers.Uint64(number, d.ByteOrder)
			words = append(words, v)
		}
	}
	caller := &stack.Frames[min(wait+1, len(stack.Frames)-1)]
	if sp, err := view.StackPointer(); err == nil && caller.HasCFA && caller.CFA > sp {
		bytes := make([]byte, min(caller.CFA-sp, maxWaitBytes)&^7)
		_ = object.Guard(func() error {
			n, _ := p.state.ReadMemory(caller.CFASpace, sp, bytes)
			bytes = bytes[:n&^7]
			return nil
		})
		for offset := 0; offset < len(bytes); offset += 8 {
			words = append(words, integer(bytes[offset:offset+8], view.Machine().Order))
		}
	}
	slices.Sort(words)
	return words
}
