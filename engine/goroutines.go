// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/unwindd/unwindd/engine/goroutine"
)

// WithGoroutines is the target with the goroutines of its Go programs as threads of
// their own, behind those of the target: target.Thread.Goroutine says what each is.
// They are found by the DWARF of Go's runtime; where that is missing, the problems of
// the target say so. The target must stay open as long as the answer is used; code
// objects are shared by both.
func (t *Target) WithGoroutines(ctx context.Context) *Target {
	with := t.engine.attach(goroutine.Of(ctx, t.Process), t.engine.finderOf(t.State()))
	with.input = t.input
	with.nameByMap(t.perfMap)
	return with
}
