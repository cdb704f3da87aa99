// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// deepFrames is how many frames the stack of testdata/bounds/deep.snapshot has.
const deepFrames = 16385

// TestDeepStacksAreWalkedByPartsAsAWhole compares a stack of four parts and one frame with
// the same as one, and with what is kept of it under limits.
func TestDeepStacksAreWalkedByPartsAsAWhole(t *testing.T) {
	ctx := context.Background()
	all := openBounded(t, "testdata/bounds/deep.snapshot", AllFrames)
	whole, _ := all.process.Activations(ctx, all.Threads()[0])
	if len(whole.Frames) != deepFrames {
		t.Fatalf("%d frames, expected %d", len(whole.Frames), deepFrames)
	}
	equal := func(what string, want, got []trace.Frame) {
		t.Helper()
		if !slices.EqualFunc(want, got, func(a, b trace.Frame) bool {
			return a.PC == b.PC && a.CFA == b.CFA && a.HasCFA == b.HasCFA && a.FoundBy == b.FoundBy && a.ModuleOffset == b.ModuleOffset && a.RestsOnGuess == b.RestsOnGuess
		}) {
			t.Errorf("the %s are %d others than those of the whole stack", what, len(got))
		}
	}
	for _, c := range []struct{ most, left, outermost int }{
		{AllFrames, 0, 0}, {deepFrames, 0, 0},
		{deepFrames - 64, 0, 0}, // the outermost ones are all that there are
		{deepFrames - 65, 1, 64},
		{1, deepFrames - 2, 1}, {100, deepFrames - 164, 64}, {4095, deepFrames - 4159, 64}, {4096, deepFrames - 4160, 64}, {4097, deepFrames - 4161, 64},
		{8191, deepFrames - 8255, 64},
	} {
		one := openBounded(t, "testdata/bounds/deep.snapshot", c.most)
		s := one.Walk(ctx, one.Threads()[0])
		if s.LeftOut != c.left || len(s.Outermost) != c.outermost || s.Stopped != whole.Stopped || len(s.Frames)+s.LeftOut+len(s.Outermost) != deepFrames {
			t.Errorf("of %d: %d frames, %d left out, %d outermost, %v, expected %v", c.most, len(s.Frames), s.LeftOut, len(s.Outermost), s.Stopped, whole.Stopped)
			continue
		}
		equal("innermost frames", whole.Frames[:len(s.Frames)], s.Frames)
		equal("outermost frames", whole.Frames[deepFrames-c.outermost:], s.Outermost)
	}
}

// TestAKeptFrameTakesLittleMemory has what is there after a walk, of its frames and of what
// walking them took.
func TestAKeptFrameTakesLittleMemory(t *testing.T) {
	const most = 200 // bytes
	one := openBounded(t, "testdata/bounds/deep.snapshot", AllFrames)
	ctx := context.Background()
	used := func() int64 {
		runtime.GC()
		runtime.GC() // what the first one found to be unused has been given back
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // of this process
	}
	one.Walk(ctx, one.Threads()[0]) // rows, and the memory of walkers
	// What other tests left behind may go at any time, so the same is asked more than once.
	for range 5 {
		before, frames := used(), 0
		stacks := make([]*trace.Stack, 8)
		for i := range stacks {
			stacks[i] = one.Walk(ctx, one.Threads()[i])
			frames += len(stacks[i].Frames)
		}
		kept := used() - before
		runtime.KeepAlive(stacks)
		if kept <= 0 {
			continue
		}
		if frames < 4*deepFrames || kept > int64(most*frames) {
			t.Errorf("%d frames take %d bytes, expected at most %d each", frames, kept, most)
		}
		return
	}
	t.Error("there is less memory in use after a walk than before it, five times")
}
