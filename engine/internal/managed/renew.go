// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// This file is for a process that is looked at again and again.

// MayHaveFrames reports whether a module of the process has a runtime that may know code or frames.
// Only data of the modules' files is looked at.
func (x *Process) MayHaveFrames() bool {
	return len(x.recognised(func(d *sdk.RuntimeDescription) bool { return !d.ThreadsOnly })) > 0
}

// Names returns the names of the runtimes that may know code or frames, and that modules have. With
// threads, it returns those that know threads alone, too.
func Names(runtimes []Runtime, modules []*code.Module, threads bool) (names []string) {
	for _, found := range recognise(runtimes, modules) {
		if d := found.runtime.Description(); (threads || !d.ThreadsOnly) && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	return names
}

// Names returns the names of the runtimes that may know code or frames of the process. Only data of the
// modules' files is looked at.
func (x *Process) Names() []string { return Names(x.runtimes(), x.process.Loaded(), false) }

// Renew is called after the walk.Process's own Renew. Runtimes are opened again where the process has
// other threads than they were opened for, or where isDue; else only findings in memory are forgotten. No call
// may be in progress.
func (x *Process) Renew(isDue bool) {
	x.launchers, x.carriers, x.locks = launchers{}, carriers{}, locks{}
	threads := x.process.Threads()
	for _, o := range []*opened{&x.own, &x.schedulers} {
		list := o.list.Load()
		if list == nil {
			continue
		}
		for _, i := range *list {
			i.code.forget()
			i.locks = nil
			isDue = isDue || !i.isFor(threads)
		}
		if isDue {
			o.list.Store(nil)
		}
	}
}

// isFor reports whether the runtime was opened for these threads.
func (i *instance) isFor(threads []*trace.Thread) bool {
	known := i.request.Threads
	for _, th := range threads {
		if th.Arch != i.module.Arch || th.Wave != nil || th.Goroutine != nil {
			continue
		}
		if len(known) == 0 || known[0].Thread != th.Handle || known[0].ID != th.ID {
			return false
		}
		known = known[1:]
	}
	return len(known) == 0
}

// LeavesOut reports whether no runtime that is open may know frames of a thread, as far as its answer said
// when it was opened.
func (x *Process) LeavesOut(th *trace.Thread) bool {
	list := x.own.list.Load()
	return list == nil || !slices.ContainsFunc(*list, func(i *instance) bool { return i.answer.HasFrames && i.hasThread(th.Handle) })
}

// forget forgets the functions at PCs: the runtime may have made others there.
func (c *generatedCode) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.rows = nil, nil
}
