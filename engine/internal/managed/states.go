// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/lock"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// This file has what runtimes say of threads beside frames: states, locks and exceptions.

// lockKey identifies a lock of a runtime.
type lockKey struct {
	runtime *instance
	address uint64
}

// locks are the locks of the process's runtimes, as far as they are known.
type locks struct {
	mu      sync.Mutex
	holders map[lockKey]*trace.Thread
	waits   map[*trace.Thread]*waiting
	order   []*trace.Thread // that wait, as they came
}

// waiting is the locks that a thread waits for.
type waiting struct {
	locks  []waitedLock
	native *trace.Wait // nil: it waits for none that another thread holds
}

type waitedLock struct {
	lockKey
	name string
}

// openLocks adds the locks that a runtime lists without stacks.
func (x *Process) openLocks(i *instance, list []sdk.RuntimeLock) {
	if len(list) == 0 {
		return
	}
	threads := map[uint64]*trace.Thread{}
	for _, th := range x.process.ThreadList().Where(func(th *trace.Thread) bool { return th.Goroutine == nil && th.Wave == nil }) {
		threads[th.Handle] = th
	}
	i.locks = map[uint64][]sdk.ManagedLock{}
	x.locks.mu.Lock()
	defer x.locks.mu.Unlock()
	for k := range list {
		l := &list[k]
		key := lockKey{i, l.Address}
		if holder := threads[l.Holder]; l.HasHolder && holder != nil {
			i.locks[l.Holder] = append(i.locks[l.Holder], sdk.ManagedLock{Address: l.Address, Name: l.Name})
			x.locks.hold(key, holder)
		}
		for _, handle := range l.Waiters {
			i.locks[handle] = append(i.locks[handle], sdk.ManagedLock{Address: l.Address, Name: l.Name, IsWaited: true})
			if th := threads[handle]; th != nil {
				x.locks.await(th).add(key, l.Name)
			}
		}
	}
}

// hold notes that a thread holds a lock. Of several the first counts.
func (l *locks) hold(key lockKey, th *trace.Thread) {
	if l.holders == nil {
		l.holders = map[lockKey]*trace.Thread{}
	}
	if l.holders[key] == nil {
		l.holders[key] = th
	}
}

// await returns the locks that a thread waits for.
func (l *locks) await(th *trace.Thread) *waiting {
	w := l.waits[th]
	if w == nil {
		if l.waits == nil {
			l.waits = map[*trace.Thread]*waiting{}
		}
		w = &waiting{}
		l.waits[th] = w
		l.order = append(l.order, th)
	}
	return w
}

func (w *waiting) add(key lockKey, name string) {
	if !slices.ContainsFunc(w.locks, func(known waitedLock) bool { return known.lockKey == key }) {
		w.locks = append(w.locks, waitedLock{key, name})
	}
}

// state adds the state of a thread to its stack. Frames say that the thread is the
// runtime's, too.
func (i *instance) state(e *extended, s *sdk.ManagedStack) {
	state := trace.RuntimeThread{Runtime: i.about.Name, Module: &i.module.Module.Module, Name: s.Name, State: s.State}
	for _, l := range slices.Concat(s.Locks, i.locks[e.handle]) {
		isKnown := slices.ContainsFunc(state.Locks, func(known trace.RuntimeLock) bool {
			return known.Address == l.Address && known.IsWaited == l.IsWaited
		})
		if !isKnown {
			state.Locks = append(state.Locks, trace.RuntimeLock{Address: l.Address, Name: l.Name, IsWaited: l.IsWaited})
		}
	}
	if x := s.Exception; x != nil {
		state.Exception = &trace.RuntimeException{Type: x.Type, Text: x.Text}
		for k := range x.Frames[:min(len(x.Frames), max(i.owner.options.MaxFrames, 1))] {
			state.Exception.Traceback = append(state.Exception.Traceback, symbolOf(&x.Frames[k]))
		}
	}
	if len(s.Runs) > 0 || !state.IsSilent() {
		e.states, e.runtimes = append(e.states, state), append(e.runtimes, i)
	}
}

// note notes the locks of stacks whose runtimes have been asked, and sets the holders of those that
// their threads wait for.
func (l *locks) note(list []*extended) {
	l.mu.Lock()
	defer l.mu.Unlock()
	each := func(do func(e *extended, key lockKey, known *trace.RuntimeLock)) {
		for _, e := range list {
			for n := range e.states {
				for k := range e.states[n].Locks {
					known := &e.states[n].Locks[k]
					do(e, lockKey{e.runtimes[n], known.Address}, known)
				}
			}
		}
	}
	each(func(e *extended, key lockKey, known *trace.RuntimeLock) {
		if known.IsWaited {
			l.await(e.thread).add(key, known.Name)
		} else {
			l.hold(key, e.thread)
		}
	})
	each(func(_ *extended, key lockKey, known *trace.RuntimeLock) {
		if known.IsWaited {
			known.Holder = l.holders[key]
		}
	})
	for _, e := range list {
		if e.wait != nil && e.wait.Owner != nil && e.wait.Owner != e.thread {
			l.await(e.thread).native = e.wait
		}
	}
}

// Deadlocks returns the threads that wait for each other, each for a lock of a language that the
// next one holds, or for one of the operating system: of the stacks that were walked so far, and
// of the locks that runtimes list without stacks. At least one of the locks is a language's.
func (x *Process) Deadlocks(ctx context.Context) (list []trace.Deadlock) {
	x.all(ctx)
	l := &x.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	var scheduled []*trace.Thread
	for _, th := range x.process.ThreadList().Where(func(th *trace.Thread) bool { return th.Goroutine != nil }) {
		scheduled = append(scheduled, th)
	}
	l.awaitEnds(scheduled)
	index := make(map[*trace.Thread]int, len(l.order))
	for n, th := range l.order {
		index[th] = n
	}
	next, waits := make([]int, len(l.order)), make([]*trace.Wait, len(l.order))
	for n, th := range l.order {
		next[n] = -1
		if waits[n] = l.waitOf(th); waits[n] == nil {
			continue
		}
		if to, isWaiting := index[waits[n].Owner]; isWaiting && to != n {
			next[n] = to
		}
	}
	for _, circle := range lock.Circles(next) {
		var d trace.Deadlock
		isLanguages := false
		for _, n := range circle {
			isLanguages = isLanguages || waits[n].Kind == trace.WaitLock || l.order[n].Goroutine != nil
			d.Links = append(d.Links, trace.DeadlockLink{Thread: l.order[n], Wait: waits[n]})
		}
		if isLanguages {
			list = append(list, d)
		}
	}
	return list
}

// awaitEnds notes the threads that wait for the end of one other that the same runtime schedules.
func (l *locks) awaitEnds(threads []*trace.Thread) {
	type key struct {
		scheduler *trace.Scheduler
		number    uint64
	}
	known := map[key]*trace.Thread{}
	for _, th := range threads {
		if g := th.Goroutine; g != nil && g.Scheduler != nil {
			known[key{g.Scheduler, g.ID}] = th
		}
	}
	if len(known) == 0 {
		return
	}
	for _, th := range threads {
		if g := th.Goroutine; g != nil && g.Scheduler != nil && len(g.WaitsFor) == 1 {
			if other := known[key{g.Scheduler, g.WaitsFor[0]}]; other != nil && other != th {
				l.await(th).native = &trace.Wait{Kind: trace.WaitThread, Owner: other}
			}
		}
	}
}

// waitOf returns what a thread waits for, where another thread holds it: a lock of a language, or
// else one of the operating system.
func (l *locks) waitOf(th *trace.Thread) *trace.Wait {
	w := l.waits[th]
	for _, known := range w.locks {
		if holder := l.holders[known.lockKey]; holder != nil && holder != th {
			return &trace.Wait{Kind: trace.WaitLock, Address: known.address, HasAddress: true, Name: known.name, Owner: holder}
		}
	}
	return w.native
}

// Fatal returns the messages with which runtimes ended the process.
func (x *Process) Fatal(ctx context.Context) (list []string) {
	for _, i := range x.all(ctx) {
		if i.answer.Fatal != "" {
			list = append(list, i.answer.Fatal)
		}
	}
	return list
}
