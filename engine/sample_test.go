// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func pcs(s *trace.Stack) []uint64 {
	var out []uint64
	for _, f := range s.Frames {
		out = append(out, f.PC)
	}
	return out
}

// TestSampleWalksLikeItsTarget walks the crash example, and then samples of it.
func TestSampleWalksLikeItsTarget(t *testing.T) {
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	core, err := e.Open("../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range core.Threads() {
		want := core.Walk(context.Background(), th)
		sp, ok := th.Registers.Uint64(x86_64.Description().SP, sdk.LittleEndian)
		if !ok {
			t.Fatal("no stack pointer")
		}
		stack := make([]byte, 16<<10)
		n, _ := core.process.State().ReadMemory(0, sp, stack)
		s := &walk.Sample{Sample: trace.Sample{Arch: "x86_64", ThreadID: th.ID, Registers: th.Registers, StackStart: sp, Stack: stack[:n]}, Loaded: core.process.Modules()}
		sampled := e.Attach(s)
		got := sampled.Walk(context.Background(), s.Thread())
		if diff := cmp.Diff(pcs(want), pcs(got)); diff != "" || got.Stopped.Reason != trace.StopOutermost {
			t.Errorf("thread %s, stopped %v (-core +sample)\n%s", th.ID, got.Stopped, diff)
		}
		sampled.Close()

		// The first part of the stack gives the first part of the frames.
		s = &walk.Sample{Sample: trace.Sample{Arch: "x86_64", Registers: th.Registers, StackStart: sp, Stack: stack[:64]}, Loaded: core.process.Modules()}
		sampled = e.Attach(s)
		got = sampled.Walk(context.Background(), s.Thread())
		if n := len(got.Frames); n == 0 || n >= len(want.Frames) || !cmp.Equal(pcs(want)[:n], pcs(got)) || got.Stopped.Reason != trace.StopEndOfStack {
			t.Errorf("thread %s: %d frames, stopped %v", th.ID, n, got.Stopped)
		}
		sampled.Close()
	}
}

var _ target.Target = (*walk.Sample)(nil)

// TestWalkerAllocatesNothing walks the threads of the crash example in turn.
func TestWalkerAllocatesNothing(t *testing.T) {
	e := newX86Engine(t, Options{NoSymbols: true})
	core, err := e.Open("../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	var samples []*walk.Sample
	for _, th := range core.Threads() {
		sp, _ := th.Registers.Uint64(x86_64.Description().SP, sdk.LittleEndian)
		stack := make([]byte, 16<<10)
		n, _ := core.process.State().ReadMemory(0, sp, stack)
		samples = append(samples, &walk.Sample{Sample: trace.Sample{Arch: "x86_64", ThreadID: th.ID, Registers: th.Registers, StackStart: sp, Stack: stack[:n]}, Loaded: core.process.Modules()})
	}
	walker := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}, Loaded: core.process.Modules()}).Process().Walker()
	round := func() {
		for i, s := range samples {
			stack := walker.Walk(context.Background(), s)
			if want := core.Walk(context.Background(), core.Threads()[i]); !cmp.Equal(pcs(want), pcs(stack)) || stack.Stopped != want.Stopped || stack.Thread.ID != s.ThreadID {
				t.Errorf("thread %s: %#x, %v, expected %#x, %v", s.ThreadID, pcs(stack), stack.Stopped, pcs(want), want.Stopped)
			}
		}
	}
	round()
	round()
	walk := func() {
		for _, s := range samples {
			walker.Walk(context.Background(), s)
		}
	}
	if n := testing.AllocsPerRun(100, walk); n != 0 {
		t.Errorf("%v allocations for %d samples", n, len(samples))
	}
}

// laned is a toy whose threads have lanes.
type laned struct{ *toy }

func (a laned) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	answer, err := a.toy.BindThreads(ctx, e, req)
	if err == nil {
		for i := range answer.Threads {
			answer.Threads[i].Lanes = 4
		}
	}
	return answer, err
}

func TestWalkerBindsOnceUnlessThreadsHaveLanes(t *testing.T) {
	for name, tt := range map[string]struct {
		arch func(*toy) sdk.Architecture
		want int // calls for three samples
	}{
		"one lane": {func(a *toy) sdk.Architecture { return a }, 1},
		"lanes":    {func(a *toy) sdk.Architecture { return laned{a} }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			a := &toy{}
			e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{tt.arch(a)}}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			walker := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "toy"}}).Process().Walker()
			for _, pc := range []uint64{0x1000, 0x1010, 0x1020} {
				s := &walk.Sample{Sample: trace.Sample{Arch: "toy", Registers: newState().thread(pc, stackStart, 0, 0).threads[0].Registers, StackStart: stackStart}}
				stack := walker.Walk(context.Background(), s)
				if got := pcs(stack); !cmp.Equal(got, []uint64{pc}) || stack.Stopped.Reason != trace.StopNoModule {
					t.Errorf("%#x, %v, expected %#x", got, stack.Stopped, pc)
				}
			}
			if a.bindings != tt.want {
				t.Errorf("%d calls of BindThreads, expected %d", a.bindings, tt.want)
			}
		})
	}
}

func TestWalkerOfAnArchitectureThatTheTargetDoesNotHave(t *testing.T) {
	e := newX86Engine(t, Options{})
	stack := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}}).Process().Walker().Walk(context.Background(), &walk.Sample{Sample: trace.Sample{Arch: "toy"}})
	if len(stack.Frames) != 0 || stack.Stopped.Reason != trace.StopPluginFailed {
		t.Errorf("%v, %v", stack.Frames, stack.Stopped)
	}
}
