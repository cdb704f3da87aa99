package engine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func pcs(s *Stack) []uint64 {
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
		n, _ := core.State().ReadMemory(0, sp, stack)
		s := &Sample{Arch: "x86_64", ThreadID: th.ID, Registers: th.Registers, StackStart: sp, Stack: stack[:n], Loaded: core.Modules()}
		sampled := e.Attach(s)
		got := sampled.Walk(context.Background(), s.Thread())
		if diff := cmp.Diff(pcs(want), pcs(got)); diff != "" || got.Stopped.Reason != StopOutermost {
			t.Errorf("thread %s, stopped %v (-core +sample)\n%s", th.ID, got.Stopped, diff)
		}
		sampled.Close()

		// The first part of the stack gives the first part of the frames.
		s = &Sample{Arch: "x86_64", Registers: th.Registers, StackStart: sp, Stack: stack[:64], Loaded: core.Modules()}
		sampled = e.Attach(s)
		got = sampled.Walk(context.Background(), s.Thread())
		if n := len(got.Frames); n == 0 || n >= len(want.Frames) || !cmp.Equal(pcs(want)[:n], pcs(got)) || got.Stopped.Reason != StopEndOfStack {
			t.Errorf("thread %s: %d frames, stopped %v", th.ID, n, got.Stopped)
		}
		sampled.Close()
	}
}

var _ target.Target = (*Sample)(nil)
