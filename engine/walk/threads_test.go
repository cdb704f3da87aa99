// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// asked is an architecture that counts what it is asked about threads.
type requested struct {
	sdk.Architecture
	calls, threads int
}

func (a *requested) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	a.calls, a.threads = a.calls+1, a.threads+len(req.Threads)
	return a.Architecture.BindThreads(ctx, e, req)
}

// crowd is a process of many threads, each of which is at a place of its own.
func crowd(t *testing.T, n int, launcher string) (*Process, *requested) {
	t.Helper()
	state := &many{hashed: hashed{}}
	for i := range n {
		th := &trace.Thread{Handle: uint64(i), ID: fmt.Sprint(i), Arch: "x86_64"}
		d := x86_64.Description()
		th.Registers.Set(d.PC, []byte{byte(i), byte(i >> 8), byte(i >> 16), 1, 0, 0, 0, 0})
		if launcher != "" && i > 0 {
			th.LaunchedBy = &trace.Launch{Thread: launcher, Evidence: trace.LaunchWaiting}
		}
		state.threads = append(state.threads, th)
	}
	arch := &requested{Architecture: x86_64.New()}
	return newProcess(t, arch, Options{MaxFrames: 8}, state), arch
}

type many struct {
	hashed
	threads []*trace.Thread
}

func (m *many) Threads() []*trace.Thread            { return m.threads }
func (m *many) Mapped(uint64) (mapped, isCode bool) { return true, false }

// countBound is how many threads' answers are kept.
func (p *Process) countBound() (n int) {
	for i := range p.threads.batches {
		n += len(p.threads.batches[i].states) + len(p.threads.batches[i].alone)
	}
	return n
}

func TestThreadsAreAskedAboutByBatches(t *testing.T) {
	const n = 2*maxBound + 10
	p, arch := crowd(t, n, "")
	pass := func(threads []*trace.Thread) {
		t.Helper()
		arch.calls, arch.threads = 0, 0
		i, most := 0, 0
		for s := range p.StacksOf(t.Context(), target.ListThreads(threads)) {
			if s.Thread != threads[i] || len(s.Frames) == 0 || s.Frames[0].PC != threads[i].Handle|1<<24 {
				t.Fatalf("stack %d is of thread %s: %+v", i, s.Thread.ID, s.Frames)
			}
			i++
			most = max(most, p.countBound())
		}
		if i != len(threads) || arch.calls != 3 || arch.threads != len(threads) {
			t.Errorf("%d stacks of %d, %d calls about %d threads, expected 3 about each once", i, len(threads), arch.calls, arch.threads)
		}
		if slices.Equal(threads, p.Threads()) && most > maxBound {
			t.Errorf("what was said of %d threads was kept at once, expected one batch", most)
		}
		if p.countBound() != 0 {
			t.Errorf("what was said of %d threads is kept after all were walked", p.countBound())
		}
	}
	pass(p.Threads())
	pass(p.Threads()) // again, as whoever looks at a target twice does
	mixed := slices.Clone(p.Threads())
	slices.SortStableFunc(mixed, func(a, b *trace.Thread) int { return int(a.Handle%2) - int(b.Handle%2) })
	pass(mixed)

	// After that one thread is asked about alone, and many are a batch again.
	arch.calls, arch.threads = 0, 0
	for i := range maxAlone + 10 {
		p.Walk(t.Context(), p.Threads()[i])
		p.Walk(t.Context(), p.Threads()[i])
	}
	if arch.calls != maxAlone+1 || arch.threads != maxAlone+maxBound {
		t.Errorf("%d calls about %d threads, expected %d alone and a batch", arch.calls, arch.threads, maxAlone)
	}
}

// The launcher of all waves is walked once, though its batch is long past.
func TestALauncherOfManyIsAskedAboutOnce(t *testing.T) {
	const n = 3 * maxBound
	p, arch := crowd(t, n, "0")
	for s := range p.Stacks(t.Context()) {
		if s.Thread.Handle == 0 {
			continue
		}
		if len(s.Launchers) != 1 || s.Launchers[0].Thread != p.Threads()[0] || len(s.Launchers[0].Frames) == 0 {
			t.Fatalf("thread %s: launchers %+v", s.Thread.ID, s.Launchers)
		}
	}
	if arch.calls != 3 {
		t.Errorf("%d calls, expected one for each batch", arch.calls)
	}
}

// A thread of another target has no stack here, whatever its handle is.
func TestThreadsOfOtherTargetsAreNotWalked(t *testing.T) {
	p, _ := crowd(t, 3, "")
	for _, handle := range []uint64{0, 2, 3, 1 << 63} {
		s := p.Walk(t.Context(), &trace.Thread{Handle: handle, ID: "0", Arch: "x86_64"})
		if s.Stopped.Reason != trace.StopNoMemory || len(s.Frames) != 0 {
			t.Errorf("handle %d: %+v", handle, s)
		}
	}
	// Nor need handles be indices.
	p, _ = crowd(t, 3, "")
	for i, th := range p.Threads() {
		th.Handle = uint64(7 - i)
	}
	for _, th := range p.Threads() {
		if s := p.Walk(t.Context(), th); len(s.Frames) == 0 {
			t.Errorf("handle %d: %+v", th.Handle, s)
		}
	}
}

// Stacks may be kept by the hundred thousand.
func TestFramesAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(trace.Frame{}); n > 96 {
		t.Errorf("a frame has %d bytes, expected at most 96", n)
	}
}

// Frames that were recorded at a launch are one list for all that it launched.
func TestRecordedFramesAreShared(t *testing.T) {
	p, _ := crowd(t, 10, "")
	launches := []*trace.Launch{
		{Thread: "0", Evidence: trace.LaunchRecorded, Frames: []uint64{0x10, 0x20}},
		{Thread: "0", Evidence: trace.LaunchRecorded, Frames: []uint64{0x10, 0x30}},
	}
	for i, th := range p.Threads()[1:] {
		th.LaunchedBy = launches[i%2]
	}
	var first [2][]trace.Frame
	for s := range p.StacksOf(t.Context(), target.ListThreads(p.Threads()[1:])) {
		k := int(s.Thread.Handle-1) % 2
		frames := s.Launchers[0].Frames
		if len(frames) != 2 || frames[1].PC != launches[k].Frames[1] {
			t.Fatalf("thread %s: %+v", s.Thread.ID, frames)
		}
		if first[k] == nil {
			first[k] = frames
		}
		if &frames[0] != &first[k][0] {
			t.Errorf("thread %s has frames of its own", s.Thread.ID)
		}
	}
}
