// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// Of returns the target of a process with its goroutines after its threads. Goroutines name the
// thread that executes them, and threads their goroutine. It reads from the process's own
// target, and closing it does nothing. Parts of the goroutines that cannot be read are among
// the problems of its Info.
func Of(ctx context.Context, p *walk.Process) target.Target {
	own := p.State()
	threads := slices.Clone(own.Threads())
	byID := make(map[string]*trace.Thread, len(threads))
	for _, th := range threads {
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
			th.Handle = uint64(len(threads))
			threads = append(threads, th)
		}
		problems = append(problems, r.problems...)
	}
	for i, th := range threads {
		if g := executes[th.ID]; g != nil && th.Goroutine == nil {
			executing := *th
			executing.Executes = g
			threads[i] = &executing
		}
	}
	info := own.Info()
	info.Problems = append(slices.Clone(info.Problems), problems...)
	return target.WithThreads(own, threads, info)
}
