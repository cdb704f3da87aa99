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

// waitingStacks are equal stacks of threads that wait for one of several mutexes, of one that
// waits for the end of another, and of one that waits for nothing.
func waitingStacks() *given {
	stack := func(id int, pc uint64, w *trace.Wait) *trace.Stack {
		return &trace.Stack{
			Thread: &trace.Thread{ID: fmt.Sprint(id), Name: "worker"}, Frames: []trace.Frame{{PC: pc, FoundBy: trace.ByContext}},
			Stopped: trace.Stopped{Reason: trace.StopOutermost}, Wait: w,
		}
	}
	owner := &trace.Thread{ID: "20", Name: "main"}
	mutex := func(address uint64) *trace.Wait {
		return &trace.Wait{Kind: trace.WaitMutex, Address: address, HasAddress: true, Name: "a\x1b.lock", Owner: owner, IsTimed: true}
	}
	list := []*trace.Stack{
		stack(1, 0x10, mutex(0x100)), stack(2, 0x10, mutex(0x100)), stack(3, 0x10, mutex(0x200)), stack(4, 0x10, nil),
		stack(5, 0x20, &trace.Wait{Kind: trace.WaitThread, Owner: owner}),
		stack(6, 0x30, &trace.Wait{Kind: trace.WaitRWLock, Readers: 2}), stack(7, 0x30, &trace.Wait{Kind: trace.WaitRWLock, Readers: 2}),
	}
	for i := range 10 {
		list = append(list, stack(30+i, 0x40, &trace.Wait{Kind: trace.WaitFutex, Address: uint64(i) * 16, HasAddress: true, Name: "word"}))
		list = append(list, stack(50+i, 0x50, &trace.Wait{Kind: trace.WaitCondition, Address: uint64(i) * 16, HasAddress: true}))
		list = append(list, stack(70+i, 0x60, &trace.Wait{Kind: trace.WaitCondition, Address: 16, HasAddress: true}))
	}
	return reportOf(list...)
}

func TestTextOfWaits(t *testing.T) {
	s := waitingStacks()
	first := trace.DeadlockLink{Thread: &trace.Thread{ID: "1"}, Wait: &trace.Wait{Kind: trace.WaitMutex}}
	second := trace.DeadlockLink{Thread: &trace.Thread{ID: "20", Name: "main"}, Wait: &trace.Wait{Kind: trace.WaitMutex, Address: 1, HasAddress: true, Owner: first.Thread}}
	first.Wait.Owner = second.Thread
	s.setDeadlocks([]trace.Deadlock{{Links: []trace.DeadlockLink{first, second}}, {}, {}, {}, {}})
	var b bytes.Buffer
	if err := s.WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"deadlock: thread 1 waits for a mutex held by thread 20 \"main\", which waits for the mutex at 0x1 held by thread 1\n",
		"deadlock: 1 more\n",
		"4 threads: 1-4\n  1 2 wait for the mutex at 0x100 (a\\x1b.lock) held by thread 20 \"main\"\n  3 waits for the mutex at 0x200 (a\\x1b.lock) held by thread 20 \"main\"\n",
		"thread 5 \"worker\"\n  waits for the end of thread 20 \"main\"\n",
		"2 threads: 6 7\n  wait for a read-write lock held by 2 readers\n",
		"  37 waits for the futex at 0x70 (word)\n  and for 2 other objects\n",
		"10 threads: 50-59\n  wait for a condition\n",
		"10 threads: 70-79\n  wait for the condition at 0x10\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestThreadsOfADeadlockComeFirst has a thread of a deadlock behind others, and one that crashed.
func TestThreadsOfADeadlockComeFirst(t *testing.T) {
	given := waitingStacks()
	given.stacks[5].Thread.Crashed = true
	s := given.report()
	s.Deadlocks = []trace.Deadlock{{Links: []trace.DeadlockLink{{Thread: &trace.Thread{ID: "5"}, Wait: &trace.Wait{Kind: trace.WaitMutex}}}}}
	var b bytes.Buffer
	if err := s.WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	crashed, deadlocked, others := strings.Index(b.String(), "\nthread 6 "), strings.Index(b.String(), "\nthread 5 "), strings.Index(b.String(), "\n4 threads: 1-4\n")
	if crashed < 0 || deadlocked < crashed || others < deadlocked {
		t.Errorf("at %d, %d, %d:\n%s", crashed, deadlocked, others, b.String())
	}
}

func TestWaitsAreWrittenAsTheyAre(t *testing.T) {
	s := waitingStacks()
	link := func(id string) trace.DeadlockLink { return trace.DeadlockLink{Thread: &trace.Thread{ID: id}} }
	s.setDeadlocks([]trace.Deadlock{{Links: []trace.DeadlockLink{link("1"), link("20")}}})
	r := s.read(t)
	if d := cmp.Diff([][]string{{"1", "20"}}, r.Target.Deadlocks); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for index, want := range map[int]*Wait{
		0: {Kind: "mutex", Address: "0x100", Name: "a\x1b.lock", Owner: "20", Timed: true}, 3: nil, 4: {Kind: "thread", Owner: "20"}, 5: {Kind: "rwlock", Readers: 2},
	} {
		if d := cmp.Diff(want, r.Threads[index].WaitsFor); d != "" {
			t.Errorf("thread %d (-want +got):\n%s", index, d)
		}
	}
}

// A deadlock of many threads takes a screen at most.
func TestLongDeadlocksAreCut(t *testing.T) {
	var d trace.Deadlock
	for i := range 10_000 {
		w := &trace.Wait{Kind: trace.WaitMutex, Owner: &trace.Thread{ID: fmt.Sprint((i + 1) % 10_000)}, IsTimed: i == 5000}
		d.Links = append(d.Links, trace.DeadlockLink{Thread: &trace.Thread{ID: fmt.Sprint(i)}, Wait: w})
	}
	text := d.String()
	if len(text) > 1000 || !strings.Contains(text, "and so on: 10000 threads") || !strings.HasSuffix(text, "held by thread 0 (until a timeout)") {
		t.Errorf("%d bytes: %.1000s", len(text), text)
	}
}
