// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestRecordedLaunchersAreJoinedWhereTheyAre is about waves whose launching thread was recorded: their
// stacks go on in it as long as it is in a function that launches or waits. The process is that of
// examples/rocm-core, whose thread 2451 waits in hsa_signal_wait_scacquire.
func TestRecordedLaunchersAreJoinedWhereTheyAre(t *testing.T) {
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	core, err := e.Open(filepath.Join("..", "examples", "rocm-core", "crash.core"))
	if err != nil {
		t.Fatal(err)
	}
	const wait = "hsa_signal_wait_scacquire"
	for _, c := range []struct {
		name               string
		thread             string
		waits, launches    []string
		wantFrames, wantBy string
	}{
		{"it waits", "2451", []string{wait}, []string{"launch"}, "5", "2451 waiting"},
		{"it launches", "2451", nil, []string{"launch", wait}, "5", "2451 waiting"},
		{"it has gone on", "2451", []string{"wait"}, []string{"launch"}, "0", "2451 queue"},
		{"no functions are known", "2451", nil, nil, "0", "2451 queue"},
		{"it is not there", "77", []string{wait}, nil, "0", "77 queue"},
	} {
		launch := &trace.Launch{Thread: c.thread, Kind: "dispatch", Evidence: trace.LaunchQueue, WaitFunctions: c.waits, LaunchFunctions: c.launches}
		state := core.Process().State()
		threads := slices.Clone(state.Threads())
		var waves []*trace.Thread
		for i, th := range threads {
			if th.Wave != nil {
				wave := *th
				wave.LaunchedBy = launch
				threads[i] = &wave
				waves = append(waves, &wave)
			}
		}
		joined := e.Attach(target.WithThreads(state, threads, state.Info()))
		for s := range joined.StacksOf(t.Context(), waves) {
			by := s.LaunchedBy()
			frames := 0
			for i := range s.Launchers {
				frames += len(s.Launchers[i].Frames)
			}
			if got := by.Thread + " " + by.Evidence; got != c.wantBy || fmt.Sprint(frames) != c.wantFrames {
				t.Errorf("%s: wave %s is launched by %s with %d frames, expected %s with %s", c.name, s.Thread.ID, got, frames, c.wantBy, c.wantFrames)
			}
		}
		joined.Close()
	}
}
