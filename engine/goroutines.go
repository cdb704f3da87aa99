// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/goroutine"
)

// HasGo reports whether a code object of the target is of Go.
func (t *Target) HasGo() bool { return goroutine.HasGo(t.process) }

// WithGoroutines is the target with the goroutines of its Go programs as additional
// threads, behind the target's threads: trace.Thread.Goroutine describes each. They are
// found by the DWARF of Go's runtime; where that is missing, the target has a problem. Behind
// them are the threads that other language runtimes schedule.
// The target must stay open as long as the result is used; they share code objects.
func (t *Target) WithGoroutines(ctx context.Context) *Target {
	state, hasOthers := t.process.State(), t.managed != nil && t.managed.HasThreads(ctx, "")
	if !hasOthers || t.HasGo() && !t.managed.HasThreads(ctx, "goroutine") {
		state = goroutine.Of(ctx, t.process)
	}
	if hasOthers {
		state = t.managed.Threads(ctx, "", state)
	}
	with := t.engine.attach(state, t.engine.finderOf(t.process.State()))
	with.input = t.input
	with.nameByMap(t.perfMap)
	return with
}
