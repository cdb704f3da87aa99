// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// TestAClockThatGoesBack has a thread run again before it stopped, as records in no order of time
// say: nothing is known of how long it was stopped.
func TestAClockThatGoesBack(t *testing.T) {
	b := &profileBuilder{recording: &recording{}}
	b.out.Threads = []trace.ProfileThread{{PID: 7, TID: 7}}
	o := &offCPU{builder: b, threads: map[int]*stopped{}, numbers: map[int]int{}, isWide: true}
	s := trace.ProfileSample{Weight: 1}
	o.event(&schedEvent{kind: schedSwitch, thread: 7, next: 8, time: 1000}, &s)
	o.event(&schedEvent{kind: schedIn, thread: 7, time: 400}, nil)
	if thread := o.threads[7]; !thread.isOut || len(o.samples) > 0 || o.missed != (offCPUMissed{}) {
		t.Errorf("%+v, %d samples, %+v", thread, len(o.samples), o.missed)
	}
	o.event(&schedEvent{kind: schedSwitch, thread: 7, next: 8, time: 500}, &s)
	if o.missed.ends != 1 || len(o.samples) > 0 {
		t.Errorf("%d samples, %+v", len(o.samples), o.missed)
	}
}
