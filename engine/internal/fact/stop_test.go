// SPDX-License-Identifier: Apache-2.0

package fact

import (
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
