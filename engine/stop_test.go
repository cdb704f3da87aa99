// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// stopToy is an engine for the toy machine, whose code at 0x1000 has frames of 16
// bytes.
func stopToy(t *testing.T) *Engine {
	t.Helper()
	undefined := cfi.RegisterRule{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Undefined}}
	a := &toy{rows: []cfi.Row{row(0x1000, 0x1100, 16), row(0x1200, 0x1300, 8, undefined)}}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{described{a}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// stops is every way in which a thread may say why it stopped.
func stops() map[string]*trace.Stop {
	return map[string]*trace.Stop{
		"not said":              nil,
		"only the reason":       {Reason: sdk.StopBreakpoint},
		"a trap":                {Reason: sdk.StopTrap, TrapID: 3, HasTrapID: true},
		"trap 0, exact":         {Reason: sdk.StopTrap, HasTrapID: true, PCExact: true, HasPCExact: true},
		"a fault, not exact":    {Reason: sdk.StopMemoryFault, Address: 1 << 40, HasAddress: true, HasPCExact: true},
		"a fault, exact":        {Reason: sdk.StopMemoryFault, Address: 1 << 40, HasAddress: true, PCExact: true, HasPCExact: true},
		"a fault at address 0":  {Reason: sdk.StopAddressError, HasAddress: true},
		"a fault of no address": {Reason: sdk.StopMemoryFault},
	}
}

func TestAFrameIsMarkedWhereItsThreadStoppedBefore(t *testing.T) {
	for name, stop := range stops() {
		t.Run(name, func(t *testing.T) {
			s := newState(1, 0x1210, 2).thread(0x1004, stackStart, 0, 0)
			s.threads[0].Stop = stop
			var got []bool
			var pcs []uint64
			for _, f := range stopToy(t).Attach(s).Walk(context.Background(), s.threads[0]).Frames {
				got, pcs = append(got, f.Imprecise), append(pcs, f.PC)
			}
			if d := cmp.Diff([]bool{name == "a fault, not exact", false}, got); d != "" {
				t.Errorf("marks (-want +got):\n%s", d)
			}
			// The registers belong to that PC, so rows are looked up by it.
			if d := cmp.Diff([]uint64{0x1004, 0x1210}, pcs); d != "" {
				t.Errorf("PCs (-want +got):\n%s", d)
			}
		})
	}
	s := newState().thread(0x66, stackStart, 0, 0) // no frame can be left
	s.threads[0].Stop, s.threads[0].Registers = stops()["a fault, not exact"], sdk.Registers{}
	if n := len(stopToy(t).Attach(s).Walk(context.Background(), s.threads[0]).Frames); n != 0 {
		t.Errorf("%d frames of a thread without registers", n)
	}
}

// A lane that waits elsewhere did not stop at the frame's PC, nor before it.
func TestOnlyLanesThatExecuteAreWhereTheirWaveStopped(t *testing.T) {
	s := &trace.Stack{Frames: []trace.Frame{{PC: 0x10, Imprecise: true, Details: &trace.FrameDetails{Lanes: []trace.LaneGroup{
		{Lanes: trace.LaneSet{1}, State: trace.LaneActive, PC: 0x10, HasPC: true},
		{Lanes: trace.LaneSet{2}, State: trace.LaneInactive, PC: 0x14, HasPC: true},
		{Lanes: trace.LaneSet{4}, State: trace.LaneInactive},
	}}}}}
	for lane, want := range []bool{true, false, true} {
		if one, ok := s.Lane(uint32(lane)); !ok || one.Frames[0].Imprecise != want {
			t.Errorf("lane %d: %v %+v, expected %v", lane, ok, one, want)
		}
	}
}

func TestSnapshotsKeepWhyThreadsStopped(t *testing.T) {
	e := stopToy(t)
	s := newState(1, 0x1210, 2)
	var want []*trace.Stop
	for _, stop := range stops() {
		s.thread(0x1004, stackStart, 0, 0)
		s.threads[len(want)].Stop = stop
		want = append(want, stop)
	}
	first, _ := taken(t, e, e.Attach(s), SnapshotOptions{})
	second, _ := taken(t, e, first, SnapshotOptions{})
	for name, of := range map[string]*Target{"a snapshot": first, "a snapshot of a snapshot": second} {
		var got []*trace.Stop
		for _, th := range of.Threads() {
			got = append(got, th.Stop)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-target +snapshot):\n%s", name, d)
		}
		if p := of.Problems(); len(p) > 0 {
			t.Errorf("%s: problems %q", name, p)
		}
	}
}
