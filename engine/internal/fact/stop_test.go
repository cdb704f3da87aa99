// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// TestStopsOfWavesSayWhatHappened has what the hardware says of waves.
func TestStopsOfWavesSayWhatHappened(t *testing.T) {
	for _, c := range []struct {
		stop *trace.Stop
		want string
	}{
		{nil, ""},
		{&trace.Stop{Reason: sdk.StopMemoryFault}, "a wave accessed memory that is not mapped for it"},
		{&trace.Stop{Reason: sdk.StopMemoryFault, Address: 0x7f4200f00000, HasAddress: true, HasPCExact: true},
			"a wave accessed memory that is not mapped for it at 0x7f4200f00000 (PC not exact)"},
		{&trace.Stop{Reason: sdk.StopMemoryFault, Address: 8, HasAddress: true}, "null pointer, a wave accessed memory that is not mapped for it at 0x8"},
		{&trace.Stop{Reason: sdk.StopTrap, TrapID: 2, HasTrapID: true}, "a wave executed trap 2"},
	} {
		crash := &crash{thread: &trace.Thread{Wave: &sdk.Wave{}, Stop: c.stop}, stack: &trace.Stack{}}
		if got := crash.stop(); got != c.want {
			t.Errorf("%+v: %q, expected %q", c.stop, got, c.want)
		}
	}
	// Where lanes have states of their own, the thread is named after the one that failed.
	lane := &crash{
		thread: &trace.Thread{
			Name: "block (1,0,0) thread (3,0,0)", Wave: &sdk.Wave{Kernel: "_Z5scalePfi"}, LaneStates: make([]sdk.LaneState, 1),
			Stop: &trace.Stop{Reason: sdk.StopAddressError, Details: []string{"misaligned address", "WARP_MISALIGNED_ADDRESS"}, HasPCExact: true},
		},
		stack: &trace.Stack{Frames: []trace.Frame{{Symbols: []trace.Symbol{{Function: "load(float*)", LinkageName: "_Z4loadPf"}}}}},
	}
	const want = "a wave accessed an invalid address (misaligned address) in load, kernel scale, block (1,0,0) thread (3,0,0) (PC not exact)"
	if got := lane.stop(); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	lane.thread.Stop.Details = append(lane.thread.Stop.Details, "it loads from R5:R4, now 0x10")
	if got := lane.stop(); !strings.Contains(got, "(misaligned address: it loads from R5:R4, now 0x10)") {
		t.Errorf("%q does not tell the access", got)
	}
	lane.stack.Frames[0].Symbols[0].LinkageName = "_Z5scalePfi"
	if got := lane.stop(); strings.Contains(got, "kernel") {
		t.Errorf("%q names the kernel, in which it is", got)
	}
	// The runtime ends the process by abort once a wave failed.
	aborted := &crash{thread: &trace.Thread{Wave: &sdk.Wave{}, Stop: &trace.Stop{Reason: sdk.StopMemoryFault}}, stack: &trace.Stack{}, kept: &trace.Crash{Sender: &trace.Sender{}}, signal: "SIGABRT"}
	if got, want := aborted.explainers()[1](aborted), "a wave accessed memory that is not mapped for it"; got != want {
		t.Errorf("a process that aborts: %q, expected %q", got, want)
	}
	for _, r := range sdk.StopReasons {
		if r.Name != sdk.StopSingleStep && stops[r.Name] == "" {
			t.Errorf("nothing is said of %s", r.Name)
		}
	}
}
