// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// anyThread is a thread as snapshots have them: of a few kinds, or of a kind of its own.
func anyThread(r *rand.Rand, i int, launches []*trace.Launch, layouts []sdk.Registers) *trace.Thread {
	t := &trace.Thread{Handle: uint64(i), ID: fmt.Sprintf("w%d", i), Arch: "gpu", Processor: fmt.Sprint("p", r.IntN(2))}
	if r.IntN(50) == 0 {
		t.ID = ""
	}
	layout := layouts[r.IntN(len(layouts))]
	t.Registers = sdk.Registers{Numbers: layout.Numbers, Offsets: layout.Offsets}
	if n := len(layout.Offsets); n > 0 {
		t.Registers.Data = make([]byte, layout.Offsets[n-1])
		for k := range t.Registers.Data {
			t.Registers.Data[k] = byte(r.Uint32())
		}
	}
	t.LaunchedBy = launches[r.IntN(len(launches))]
	if r.IntN(4) > 0 {
		t.Wave = &sdk.Wave{Kernel: fmt.Sprint("k", r.IntN(3)), Agent: "1"}
		if t.Wave.HasGroup = r.IntN(3) > 0; t.Wave.HasGroup {
			t.Wave.Group = [3]uint32{r.Uint32(), r.Uint32(), r.Uint32()}
		}
		if t.Wave.HasInGroup = r.IntN(3) > 0; t.Wave.HasInGroup {
			t.Wave.InGroup = r.Uint32()
		}
		if t.Wave.HasCluster = r.IntN(3) == 0; t.Wave.HasCluster {
			t.Wave.Cluster = [3]uint32{1, r.Uint32(), 3}
		}
	}
	switch r.IntN(20) {
	case 0:
		t.Stop = &trace.Stop{Reason: sdk.StopTrap, Address: r.Uint64(), HasAddress: true}
	case 1:
		t.Spaces = []sdk.SpaceBase{{Space: 1, Base: r.Uint64()}}
	case 2:
		t.Crashed, t.Signal = true, r.IntN(3)
	case 3:
		t.Callers = []uint64{r.Uint64()}
	case 4:
		t.Problem, t.IsUnstopped = "it did not stop", true
	}
	return t
}

func copyOf(t *trace.Thread) *trace.Thread {
	own := *t
	own.Registers.Data = slices.Clone(t.Registers.Data)
	if t.Wave != nil {
		wave := *t.Wave
		own.Wave = &wave
	}
	return &own
}

func TestPackedThreadsAreThoseThatWereAdded(t *testing.T) {
	launches := []*trace.Launch{nil, {Thread: "1"}, {Thread: "2"}}
	layouts := []sdk.Registers{{}, {Numbers: []uint32{1, 2}, Offsets: []uint32{0, 8, 12}}, {Numbers: []uint32{1}, Offsets: []uint32{0, 300}}}
	for _, count := range []int{0, 1, leastPacked, leastPacked + 1, 2*leastPacked + chunkThreads, 3*leastPacked + 77} {
		r := rand.New(rand.NewPCG(1, uint64(count)))
		var p PackedThreads
		var want []*trace.Thread
		for i := range count {
			th := anyThread(r, i, launches, layouts)
			want = append(want, copyOf(th))
			if p.Len() != i {
				t.Fatalf("%d threads, expected %d", p.Len(), i)
			}
			p.Add(th)
			clear(th.Registers.Data) // it may be written over
			if th.Wave != nil {
				*th.Wave = sdk.Wave{}
			}
			*th = trace.Thread{}
		}
		list := p.List()
		if list.Len() != count || !list.HasHandles() {
			t.Fatalf("%d threads, expected %d with their handles", list.Len(), count)
		}
		for _, i := range r.Perm(count) {
			if got := list.At(i); !reflect.DeepEqual(got, want[i]) || list.ID(i) != want[i].ID {
				t.Fatalf("%d threads: thread %d is %+v, expected %+v", count, i, got, want[i])
			}
		}
		checkKinds(t, list, want)
	}
}

// checkKinds checks what is asked of kinds.
func checkKinds(t *testing.T, list *ThreadList, want []*trace.Thread) {
	t.Helper()
	all, crashed := 0, 0
	for th, n := range list.Kinds() {
		if all += n; th.Crashed {
			crashed += n
		}
	}
	var found, expected []int
	for i, th := range list.Where(func(th *trace.Thread) bool { return th.Crashed }) {
		if !th.Crashed || th != list.At(i) {
			t.Fatalf("thread %d is not the one that crashed", i)
		}
		found = append(found, i)
	}
	for i, th := range want {
		if th.Crashed {
			expected = append(expected, i)
		}
	}
	if all != len(want) || crashed != len(expected) || !slices.Equal(found, expected) {
		t.Errorf("%d threads of all kinds, %d of them crashed, %v; expected %d and %v", all, crashed, found, len(want), expected)
	}
	for n := range list.Where(func(th *trace.Thread) bool { return th.Wave != nil }) {
		if n > 3 {
			break // as the loops do that have found what they look for
		}
	}
	if i := list.Index("w7"); i >= 0 && list.ID(i) != "w7" || i < 0 && len(want) > 100 && want[7].ID != "" {
		t.Errorf("w7 is thread %d", i)
	}
}

// TestPackedThreadsAreTheSameWhileTheyAreReferredTo has one thread for all who ask for it, and lets the
// others go.
func TestPackedThreadsAreTheSameWhileTheyAreReferredTo(t *testing.T) {
	var p PackedThreads
	const count = 4 * leastPacked
	for i := range count {
		p.Add(&trace.Thread{Handle: uint64(i), ID: fmt.Sprint(i)})
	}
	list := p.List()
	kept := list.At(5000)
	other := weak.Make(list.At(0))
	for range 5 {
		runtime.GC()
	}
	if list.At(5000) != kept || kept.ID != "5000" {
		t.Error("a thread that is referred to was made twice")
	}
	if other.Value() != nil {
		t.Error("a thread that nothing refers to is kept")
	}
	all := list.Threads()
	if all[5000] != kept || &all[0] != &list.Threads()[0] || len(all) != count {
		t.Error("all threads are not the ones that are referred to")
	}
}

// TestPackedThreadsAreReadAtOnce has one thread for all who ask for it at the same time.
func TestPackedThreadsAreReadAtOnce(t *testing.T) {
	var p PackedThreads
	const count = 2 * leastPacked
	for i := range count {
		p.Add(&trace.Thread{Handle: uint64(i), ID: fmt.Sprint(i), Wave: &sdk.Wave{InGroup: uint32(i), HasInGroup: true}})
	}
	list := p.List()
	var read [4][]*trace.Thread
	var group sync.WaitGroup
	for k := range read {
		group.Go(func() {
			for i, th := range list.All() {
				if th.ID != list.ID(i) || th.Wave.InGroup != uint32(i) {
					t.Errorf("thread %d is %q of %d", i, th.ID, th.Wave.InGroup)
				}
				read[k] = append(read[k], th)
			}
			list.Threads()
		})
	}
	group.Wait()
	for _, other := range read[1:] {
		if !slices.Equal(other, read[0]) {
			t.Error("threads that are referred to were made twice")
		}
	}
}
