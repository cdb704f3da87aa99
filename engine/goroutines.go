// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/target"
)

// HasGo reports whether a code object of the target is of Go, as a runtime of the engine's
// recognises it.
func (t *Target) HasGo() bool { return t.managed != nil && t.managed.MayHaveThreads("goroutine") }

// WithGoroutines is the target with the threads that its language runtimes schedule as additional
// threads, behind the target's threads: goroutines and others. trace.Thread.Goroutine describes
// each. The plugins of runtimes find them (Options.InProcessRuntimes has that of Go:
// plugins/goruntime); parts that cannot be read are among the problems of the result. The target
// must stay open as long as the result is used; they share code objects.
func (t *Target) WithGoroutines(ctx context.Context) *Target {
	state := t.process.State()
	if t.managed != nil && t.managed.MayHaveThreads("") {
		state = t.managed.Threads(ctx, "", state)
	} else {
		info := state.Info()
		why := "no code object that was found has a runtime that schedules threads, as Go's does"
		if len(t.engine.runtimes()) == 0 {
			why = "the engine has no plugin of a language runtime"
		}
		info.Problems = append(slices.Clone(info.Problems), info.Path+": no goroutines: "+why)
		state = target.WithThreads(state, state.Threads(), info)
	}
	with := t.engine.attach(state, t.engine.finderOf(t.process.State()))
	with.input = t.input
	with.nameByMaps(t.perfMaps)
	return with
}
