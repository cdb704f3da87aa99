// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
)

// Of returns the target of a process with its goroutines after its threads. Goroutines name the
// thread that executes them, and threads their goroutine. It reads from the process's own
// target, and closing it does nothing. Parts of the goroutines that cannot be read are among
// the problems of its Info.
func Of(ctx context.Context, p *walk.Process) target.Target {
	own := p.State()
	t := &withGoroutines{Target: own, threads: slices.Clone(own.Threads())}
	byID := make(map[string]*trace.Thread, len(t.threads))
	for _, th := range t.threads {
		byID[th.ID] = th
	}
	runtimes, problems := findRuntimes(p)
	executes := map[string]*trace.Thread{} // the goroutines that threads execute, by the threads' IDs
	for _, r := range runtimes {
		k := newMaker(ctx, r, byID, executes)
		if len(runtimes) > 1 {
			k.suffix = " of " + r.name(runtimes) // each counts from 1
		}
		for _, th := range k.all() {
			th.Handle = uint64(len(t.threads))
			t.threads = append(t.threads, th)
		}
		problems = append(problems, r.problems...)
	}
	for i, th := range t.threads {
		if g := executes[th.ID]; g != nil && th.Goroutine == nil {
			executing := *th
			executing.Executes = g
			t.threads[i] = &executing
		}
	}
	t.info = own.Info()
	t.info.Problems = append(slices.Clone(t.info.Problems), problems...)
	if sized, ok := own.(target.Sized); ok {
		return &sizedWithGoroutines{*t, sized}
	}
	return t
}

// withGoroutines is a target with more threads.
type withGoroutines struct {
	target.Target
	threads []*trace.Thread
	info    trace.Target
}

func (t *withGoroutines) Info() trace.Target       { return t.info }
func (t *withGoroutines) Threads() []*trace.Thread { return t.threads }
func (t *withGoroutines) Close() error             { return nil }

func (t *withGoroutines) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if s, ok := t.Target.(target.ScopedMemory); ok && th.Goroutine == nil {
		return s.ReadScoped(space, th, address, buf)
	}
	return t.Target.ReadMemory(space, address, buf)
}

func (t *withGoroutines) FromFile(address uint64) (m *target.Module, n uint64) {
	if f, ok := t.Target.(target.FileMemory); ok {
		return f.FromFile(address)
	}
	return nil, max(-address, 1)
}

func (t *withGoroutines) ReleasePages() {
	if p, ok := t.Target.(target.Paged); ok {
		p.ReleasePages()
	}
}

// sizedWithGoroutines is a target with goroutines that knows the size of its memory.
type sizedWithGoroutines struct {
	withGoroutines
	sized target.Sized
}

func (t *sizedWithGoroutines) MemorySize() uint64 { return t.sized.MemorySize() }
