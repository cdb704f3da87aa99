// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// goroutineStacks are the stacks of a thread that crashed, of one that executes no
// goroutine, and of goroutines: the first one is the thread's, two are equal, the
// others wait in the same place as these, each with one thing that tells it from them.
func goroutineStacks() *given {
	origin := &trace.GoroutineOrigin{
		CreatedBy: &trace.CodePlace{PC: 0x401, Function: "main.main", File: "/a/b.go", Line: 7},
		StartedAt: &trace.CodePlace{PC: 0x402, Function: "main.work"},
	}
	system := &trace.GoroutineOrigin{CreatedBy: origin.CreatedBy, StartedAt: origin.StartedAt, IsSystem: true}
	other := &trace.GoroutineOrigin{CreatedBy: &trace.CodePlace{PC: 0x403}}
	waits := trace.GoroutineState{State: "waiting", WaitReason: "chan \u202e receive"}
	scanned, locked := waits, waits
	scanned.IsScanned, locked.IsLocked = true, true
	stack := func(id uint64, state trace.GoroutineState, origin *trace.GoroutineOrigin, parent uint64, pc uint64) *trace.Stack {
		g := &trace.Goroutine{ID: id, GoroutineState: &state, GoroutineOrigin: origin, Parent: parent, WaitSince: id * 1e9, WaitAtLeast: id * 30e9}
		return &trace.Stack{
			Thread:  &trace.Thread{ID: fmt.Sprint("goroutine ", id), Name: "main.work", Goroutine: g},
			Frames:  []trace.Frame{{PC: pc, FoundBy: trace.ByContext}},
			Stopped: trace.Stopped{Reason: trace.StopOutermost},
		}
	}
	running := stack(1, trace.GoroutineState{State: "running"}, &trace.GoroutineOrigin{}, 0, 0x10)
	running.Thread.Crashed, running.Thread.Signal, running.Thread.Goroutine.Thread = true, 11, "4711"
	thread := &trace.Stack{Thread: &trace.Thread{ID: "4711", Name: "server", Crashed: true, Signal: 11, Executes: running.Thread}, Frames: running.Frames, Stopped: running.Stopped}
	idle := &trace.Stack{Thread: &trace.Thread{ID: "4712"}, Frames: stack(0, waits, origin, 0, 0x20).Frames, Stopped: running.Stopped}
	return reportOf(thread, idle, running,
		stack(5, waits, origin, 1, 0x20), stack(6, waits, origin, 1, 0x20), stack(7, waits, origin, 2, 0x20),
		stack(8, scanned, origin, 1, 0x20), stack(9, locked, origin, 1, 0x20), stack(10, waits, system, 1, 0x20), stack(11, waits, other, 0, 0x20))
}

func TestGoroutinesAreWrittenAsTheyAre(t *testing.T) {
	threads := goroutineStacks().read(t).Threads
	if threads[0].Executes != "goroutine 1" || threads[2].Goroutine.Thread != "4711" || threads[1].Goroutine != nil || threads[1].Executes != "" {
		t.Errorf("%+v", threads[:3])
	}
	at := &CodePlace{PC: "0x401", Function: "main.main", File: "/a/b.go", Line: 7}
	waits := &Goroutine{ID: 5, State: "waiting", WaitReason: "chan \u202e receive", WaitSince: 5e9, WaitLeast: 150e9, Parent: 1, CreatedBy: at, StartedAt: &CodePlace{PC: "0x402", Function: "main.work"}}
	if d := cmp.Diff(waits, threads[3].Goroutine); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Goroutines are folded where all but their numbers is equal, and so is a thread with
// the goroutine that it executes.
func TestTextOfGoroutines(t *testing.T) {
	var b bytes.Buffer
	if err := goroutineStacks().WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "  #") && line != "\n" {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		"snapshot s",
		`goroutine 1 [running], thread 4711 "server", crashed`,
		"thread 4712",
		`3 goroutines [chan \u202e receive, at least 2 minutes]: 5-7`, "created by main.main at /a/b.go:7",
		`goroutine 8 [chan \u202e receive (scan), at least 4 minutes]`, "created by main.main in goroutine 1 at /a/b.go:7",
		`goroutine 9 [chan \u202e receive, at least 4 minutes, locked to thread]`, "created by main.main in goroutine 1 at /a/b.go:7",
		`goroutine 10 [chan \u202e receive, at least 5 minutes, system]`, "created by main.main in goroutine 1 at /a/b.go:7",
		`goroutine 11 [chan \u202e receive, at least 5 minutes]`, "created by 0x403",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s\n%s", d, b.String())
	}
}
