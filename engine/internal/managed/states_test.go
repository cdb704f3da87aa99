// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// stated is a runtime that says of the n-th thread of a target what state has for n.
func stated(state func(n int, s *sdk.ManagedStack)) *fake {
	f := newFake()
	f.frames = func(_ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		a := scripted(req)
		for i := range a.Stacks {
			state(int(req.Threads[i].Thread), &a.Stacks[i]) //nolint:gosec // small
		}
		return a, nil
	}
	return f
}

// circle has each of the first two threads wait for what the other one holds.
func circle(n int, s *sdk.ManagedStack) {
	const left, right = 0x10, 0x20
	switch n {
	case 0:
		s.Locks = []sdk.ManagedLock{{Address: left, Name: "a Monitor"}, {Address: right, Name: "a Queue", IsWaited: true}}
	case 1:
		s.Locks = []sdk.ManagedLock{{Address: right, Name: "a Queue"}, {Address: left, Name: "a Monitor", IsWaited: true}}
	}
}

// stacksOf makes the report of a target as commands do.
func stacksOf(t *testing.T, target *engine.Target) *report.Stacks {
	s := report.NewStacks(target, target.Stacks(t.Context()))
	s.Fact = target.Fact(t.Context())
	s.LaterDeadlocks = func() []trace.Deadlock { return target.RuntimeDeadlocks(t.Context()) }
	return s
}

func textOf(t *testing.T, target *engine.Target) string {
	t.Helper()
	var b bytes.Buffer
	if err := stacksOf(t, target).WriteText(&b, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func expect(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

func TestThreadsThatWaitForEachOtherByLocksOfALanguage(t *testing.T) {
	target := open(t, serverCore, engine.Options{}, stated(circle))
	threads := target.Threads()
	first, second := threads[0].ID, threads[1].ID
	text := textOf(t, target)
	expect(t, text,
		"[waits for a Queue at 0x20, which thread "+second+" holds; holds a Monitor at 0x10]",
		"[waits for a Monitor at 0x10, which thread "+first+" \"server\" holds; holds a Queue at 0x20]",
		"\ndeadlock: thread ", "waits for a Monitor at 0x10 held by thread "+first)
	if strings.Count(text, "deadlock:") != 1 {
		t.Errorf("one deadlock is written more than once:\n%s", text)
	}
	var b bytes.Buffer
	if err := stacksOf(t, target).WriteMarkdown(&b, report.TextOptions{}, 0); err != nil {
		t.Fatal(err)
	}
	expect(t, b.String(), "deadlock: thread ")
}

// TestADeadlockOfALockThatNoStackHas: the runtime lists it, and the other is a thread's own.
func TestADeadlockOfALockThatNoStackHas(t *testing.T) {
	f := stated(func(n int, s *sdk.ManagedStack) {
		if n < 2 {
			s.Locks = []sdk.ManagedLock{{Address: 0x10, Name: "a Monitor", IsWaited: n == 1}}
			s.State = []string{"waits for the GIL", "blocked"}[n]
		}
	})
	f.answer.Locks = []sdk.RuntimeLock{{Address: 0x99, Name: "the GIL", Holder: 1, HasHolder: true, Waiters: []uint64{0}}}
	target := open(t, serverCore, engine.Options{}, f)
	first, second := target.Threads()[0].ID, target.Threads()[1].ID
	expect(t, textOf(t, target),
		"[waits for the GIL, which thread "+second+" holds; holds a Monitor at 0x10]",
		"[blocked; waits for a Monitor at 0x10, which thread "+first+" \"server\" holds; holds the GIL]",
		"waits for the GIL held by thread "+second)
	if list := target.RuntimeDeadlocks(t.Context()); len(list) != 1 || len(list[0].Links) != 2 {
		t.Errorf("found %+v", list)
	}
}

func TestAThreadThatWaitsForItsOwnLockIsNoDeadlock(t *testing.T) {
	target := open(t, serverCore, engine.Options{}, stated(func(_ int, s *sdk.ManagedStack) {
		s.Locks = []sdk.ManagedLock{{Address: 0x10, Name: "a Monitor"}, {Address: 0x10, Name: "a Monitor", IsWaited: true}}
	}))
	for s := range target.Stacks(t.Context()) {
		if len(s.Runtimes) != 1 || len(s.Runtimes[0].Locks) != 2 {
			t.Errorf("thread %s: %+v", s.Thread.ID, s.Runtimes)
		}
	}
	if list := target.RuntimeDeadlocks(t.Context()); len(list) != 0 {
		t.Errorf("found %+v", list)
	}
}

// raising has the thread that crashed raise an exception.
func raising(t *testing.T, text string) *fake {
	crashed := crashed(t, open(t, serverCore, engine.Options{})).Thread.Handle
	return stated(func(n int, s *sdk.ManagedStack) {
		if uint64(n) == crashed { //nolint:gosec // a handle
			s.Name, s.State = "worker", "running"
			s.Exception = &sdk.ManagedException{Type: "ValueError", Text: text, Frames: []sdk.ManagedFrame{
				{Function: "parse", File: "handler.scr", Line: 3, Column: 9}, {Function: "Handler.serve", File: "handler.scr", Line: 7},
			}}
		}
	})
}

func TestAnExceptionOfTheThreadThatCrashed(t *testing.T) {
	f := raising(t, "no such\nheader\x1b")
	f.answer.Fatal = "Fatal Script error: aborted"
	target := open(t, serverCore, engine.Options{}, f)
	text := textOf(t, target)
	expect(t, text, `["worker"; running]`, "\n  raised ValueError: no such\n    header", "\n    in parse at handler.scr:3:9\n    in Handler.serve at handler.scr:7\n",
		"Fatal Script error: aborted; ", "the thread had not handled ValueError: no such; header", ", raised in parse at handler.scr:3")
	if strings.Contains(text, "\x1b") {
		t.Error("text of the target is not escaped")
	}
	r := checked(t, target)
	for i := range r.Threads {
		th := &r.Threads[i]
		if !th.Crashed {
			if th.Runtimes != nil {
				t.Errorf("thread %s: %+v", th.ID, th.Runtimes)
			}
			continue
		}
		if len(th.Runtimes) != 1 || th.Runtimes[0].Runtime != "script" || th.Runtimes[0].Name != "worker" || th.Runtimes[0].State != "running" {
			t.Fatalf("found %+v", th.Runtimes)
		}
		x := th.Runtimes[0].Exception
		if x == nil || x.Type != "ValueError" || len(x.Traceback) != 2 || x.Traceback[0] != (report.TracebackFrame{Function: "parse", File: "handler.scr", Line: 3, Column: 9}) {
			t.Errorf("found %+v", x)
		}
	}
}

// TestEqualStacksInOtherStatesAreNotFolded has two threads of the server that wait in one place.
func TestEqualStacksInOtherStatesAreNotFolded(t *testing.T) {
	count := func(f *fake) int {
		return strings.Count(textOf(t, open(t, serverCore, engine.Options{}, f)), "\nthread ")
	}
	same := count(stated(func(int, *sdk.ManagedStack) {}))
	for name, state := range map[string]func(n int, s *sdk.ManagedStack){
		"states": func(n int, s *sdk.ManagedStack) { s.State = []string{"a", "b"}[n%2] },
		"locks": func(n int, s *sdk.ManagedStack) {
			s.Locks = []sdk.ManagedLock{{Address: 1, Name: "a lock", IsWaited: n%2 == 0}}
		},
		"exceptions": func(n int, s *sdk.ManagedStack) { s.Exception = &sdk.ManagedException{Type: []string{"A", "B"}[n%2]} },
	} {
		if got := count(stated(state)); got <= same {
			t.Errorf("%s: %d stacks, expected more than %d", name, got, same)
		}
	}
	named := count(stated(func(n int, s *sdk.ManagedStack) {
		s.Name = strings.Repeat("n", n+1)
		s.Locks = []sdk.ManagedLock{{Address: uint64(n), Name: "a lock"}} //nolint:gosec // small
	}))
	if named != same {
		t.Errorf("threads with names and locks of their own: %d stacks, expected %d", named, same)
	}
}

// tasks are threads of a runtime: the first two wait for each other.
func tasks() *fake {
	f := newFake()
	f.answer = sdk.OpenRuntimeAnswer{HasThreads: true}
	f.threads = func(sdk.RuntimeEngine, *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
		frame := []sdk.ManagedFrame{{Function: "rest", File: "a.scr", Line: 4, Column: 2}}
		return &sdk.ManagedThreadsAnswer{Threads: []sdk.ManagedThread{
			{Number: 1, Name: "reader", State: "waiting", WaitsFor: []uint64{2}, Frames: frame},
			{Number: 2, Name: "writer", State: "waiting", Reason: "the end of task 1", WaitsFor: []uint64{1}, Frames: []sdk.ManagedFrame{{Function: "write"}}},
			{Number: 3, State: "waiting", WaitsFor: []uint64{1, 2}, Frames: []sdk.ManagedFrame{{Function: "gather"}}},
			{Number: 4, State: "waiting", WaitsFor: []uint64{1, 2}, Frames: []sdk.ManagedFrame{{Function: "gather"}}},
		}}, nil
	}
	return f
}

func TestThreadsOfARuntimeThatWaitForEachOther(t *testing.T) {
	target := open(t, serverCore, engine.Options{}, tasks()).WithGoroutines(t.Context())
	text := textOf(t, target)
	expect(t, text, "\ntask 1 \"reader\" [waiting]\n  awaits task 2\n", "rest a.scr:4:2\n", "\ntask 2 \"writer\" [the end of task 1]\n  #0",
		"\n2 tasks [waiting]: 3 4\n", "  awaits tasks 1 2\n", "\ndeadlock: task 1 waits for the end of task 2, which waits for the end of task 1\n")
	if strings.Count(text, "deadlock:") != 1 {
		t.Errorf("threads that wait for several others are in no deadlock:\n%s", text)
	}
	var b bytes.Buffer
	if err := stacksOf(t, target).WritePage(&b, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(t, b.String(), ">tasks<", "awaits task 2")
}

// TestRuntimesOfOneProcess has one that executes serve, and one that executes what calls it: each
// has the frames of its language, and says of threads what it knows.
func TestRuntimesOfOneProcess(t *testing.T) {
	inner := stated(func(_ int, s *sdk.ManagedStack) { s.State = "waits for the script's lock" })
	outer := stated(func(n int, s *sdk.ManagedStack) {
		s.Name = "worker"
		s.Locks = []sdk.ManagedLock{{Address: 1, Name: "a monitor", IsWaited: n == 0}}
	})
	outer.about.Name = "other"
	frames := outer.frames
	outer.frames = func(e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		a, err := frames(e, req)
		for i := range a.Stacks {
			a.Stacks[i].Runs = nil
			for k := range req.Threads[i].Frames {
				if req.Threads[i].Frames[k].Function == "by_name" {
					a.Stacks[i].Runs = []sdk.ManagedRun{{First: uint32(k), Count: 1, Frames: []sdk.ManagedFrame{{Function: "compare"}}}} //nolint:gosec // small
				}
			}
		}
		return a, err
	}
	target := open(t, serverCore, engine.Options{}, inner, outer)
	text := textOf(t, target)
	expect(t, text, "[script: waits for the script's lock] [other: \"worker\"; waits for a monitor at 0x1, which thread ", "Handler.serve handler.scr:7\n", "compare in other\n",
		"frame of the runtime other")
	s := crashed(t, target)
	if len(s.Runtimes) != 2 || s.Runtimes[0].Runtime != "script" || s.Runtimes[1].Runtime != "other" {
		t.Errorf("found %+v", s.Runtimes)
	}
	r := checked(t, target)
	for i := range r.Threads {
		if len(r.Threads[i].Runtimes) != 2 {
			t.Errorf("thread %s: %+v", r.Threads[i].ID, r.Threads[i].Runtimes)
		}
	}
}

// TestARuntimeThatFailsLeavesItsLocks: what it lists without stacks is known all the same.
func TestARuntimeThatFailsLeavesItsLocks(t *testing.T) {
	f := newFake()
	f.answer.Locks = []sdk.RuntimeLock{{Address: 0x99, Name: "the GIL", Holder: 1, HasHolder: true, Waiters: []uint64{0}}}
	f.frames = func(sdk.RuntimeEngine, *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		return nil, errors.New("broken")
	}
	expect(t, textOf(t, open(t, serverCore, engine.Options{}, f)), "[waits for the GIL, which thread ", "[holds the GIL]")
}
