// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// Stacks with variables, which several processors walk at once, come in the order of the
// threads, and no goroutine is left when no one wants more of them.
func TestStacksWithVariablesAreWalkedAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p, _ := crowd(t, maxBound+100, "")
	with := newProcess(t, x86_64.New(), Options{MaxFrames: 8, Locals: &trace.DefaultValueLimits}, p.State())
	for _, most := range []int{0, 1, 50, len(p.Threads())} {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		for s := range with.Stacks(ctx) {
			if s.Thread != p.Threads()[n] {
				t.Fatalf("stack %d is that of thread %s", n, s.Thread.ID)
			}
			if n++; n >= most {
				break
			}
		}
		if n != max(most, 1) {
			t.Errorf("%d stacks of %d", n, most)
		}
		cancel()
		for range with.Stacks(ctx) {
			t.Error("a stack after the end")
		}
	}
	if got := with.Walk(context.Background(), p.Threads()[7]); got.Thread != p.Threads()[7] || len(got.Frames) == 0 {
		t.Errorf("%+v", got)
	}
}
