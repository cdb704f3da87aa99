// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// TestDispatchesSayWhyTheirWavesStopped counts the waves of two dispatches.
func TestDispatchesSayWhyTheirWavesStopped(t *testing.T) {
	wave := func(dispatch string, isRunning bool, stop *trace.Stop) *trace.Thread {
		return &trace.Thread{Wave: &sdk.Wave{Dispatch: dispatch}, IsRunning: isRunning, Stop: stop}
	}
	trap := func(n uint32) *trace.Stop {
		return &trace.Stop{Reason: sdk.StopTrap, TrapID: n, HasTrapID: true}
	}
	fault := &trace.Stop{Reason: sdk.StopMemoryFault}
	var of Target
	of.addDevices(&trace.Devices{
		Agents: []sdk.TargetAgent{{ID: "1", Processor: "gfx90a"}, {ID: "2"}},
		Queues: []sdk.TargetQueue{{ID: "1", Agent: "1"}, {ID: "2", Agent: "1"}},
		Dispatches: []sdk.TargetDispatch{
			{ID: "1", Queue: "1", Kernel: "k", Grid: [3]uint32{256, 2, 1}, Group: [3]uint32{64, 1, 1}},
			{ID: "2", Queue: "2"},
			{ID: "3", Queue: "2"},
		},
	}, target.ListThreads([]*trace.Thread{
		{}, wave("1", true, nil), wave("1", false, trap(3)), wave("1", false, fault), wave("1", true, nil),
		wave("1", false, trap(2)), wave("1", false, nil), wave("1", false, trap(2)), wave("2", false, fault),
	}))
	var b bytes.Buffer
	text := &text{Printer: NewPrinter(&b), framed: map[int]bool{}}
	text.devices(&of)
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"agent 1: gfx90a, 2 queues",
		"agent 2: a processor that is not known, 0 queues",
		"dispatch 1 of queue 1: k, 256x2 work-items in groups of 64; 7 waves: 1 stopped by memory fault, 2 stopped by trap 2, 1 stopped by trap 3, 2 running, 1 stopped",
		"dispatch 2 of queue 2; 1 wave stopped by memory fault",
		"dispatch 3 of queue 2",
		"",
	}, "\n")
	if b.String() != want {
		t.Errorf("%s\nexpected\n%s", b.String(), want)
	}
}

// TestPartsOfAWaveAreOneWave counts waves of which several threads are parts, each with lanes at a place
// of its own.
func TestPartsOfAWaveAreOneWave(t *testing.T) {
	part := func(inGroup uint32, isRunning bool, state string, stop *trace.Stop) *trace.Thread {
		return &trace.Thread{
			Wave:       &sdk.Wave{Dispatch: "7", Group: [3]uint32{1, 0, 0}, HasGroup: true, InGroup: inGroup, HasInGroup: true},
			LaneStates: make([]sdk.LaneState, 1), IsRunning: isRunning, State: state, Stop: stop,
		}
	}
	var of Target
	of.addDevices(&trace.Devices{Dispatches: []sdk.TargetDispatch{{ID: "7", Queue: "1", Kernel: "_Z5scalePfi"}}}, target.ListThreads([]*trace.Thread{
		part(0, false, "", &trace.Stop{Reason: sdk.StopMemoryFault}), part(0, true, "", nil), part(0, false, "blocked on barrier 1", nil),
		part(1, false, "blocked on barrier 1", nil), part(1, true, "", nil), part(2, true, "", nil),
	}))
	var b bytes.Buffer
	text := &text{Printer: NewPrinter(&b), framed: map[int]bool{}}
	text.devices(&of)
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = "dispatch 7 of queue 1: scale; 3 waves: 1 stopped by memory fault, 1 not running, 1 running\n"
	if b.String() != want {
		t.Errorf("%s\nexpected\n%s", b.String(), want)
	}
}

// TestTheWaveThatFailedIsFirst has a process that ended itself because a wave failed.
func TestTheWaveThatFailedIsFirst(t *testing.T) {
	r := reportOf()
	for _, th := range []*trace.Thread{{ID: "aborting", Crashed: true, Signal: 6}, {ID: "other"}, {ID: "w", Crashed: true, Wave: &sdk.Wave{}}} {
		r.stacks = append(r.stacks, &trace.Stack{Thread: th, Stopped: trace.Stopped{Reason: trace.StopOutermost}})
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	wave, thread, other := strings.Index(b.String(), "thread w"), strings.Index(b.String(), "thread aborting"), strings.Index(b.String(), "thread other")
	if wave < 0 || thread < wave || other < thread {
		t.Errorf("%s\nexpected the wave, the thread that aborted, the other one", b.String())
	}
}

// TestCodeOfDevicesIsNamedByWhereItIs reads the text beside a frame without a
// position.
func TestCodeOfDevicesIsNamedByWhereItIs(t *testing.T) {
	for name, want := range map[string]string{
		"/usr/lib/libc.so.6":                              "libc.so.6",
		"file:///srv/example/host#offset=12288&size=7208": "code object of host",
		"file:///srv/example/k.co":                        "code object of k.co",
		"memory://15331#offset=0x600000000000&size=6368":  "code object in memory",
	} {
		if got := (&Module{Path: name}).short(); got != want {
			t.Errorf("%s is %q, expected %q", name, got, want)
		}
	}
}

// TestListsOfManyWavesAreShort has IDs of which no two follow each other, and IDs that do.
func TestListsOfManyWavesAreShort(t *testing.T) {
	var apart, together idList
	for i := range 1000 {
		apart.add(fmt.Sprintf("d0.sm%d.w0", i))
		together.add(fmt.Sprintf("w%d", i))
	}
	if got := apart.short(); !strings.HasPrefix(got, "d0.sm0.w0 d0.sm1.w0 ") || !strings.HasSuffix(got, " d0.sm31.w0 and 968 more") {
		t.Errorf("%s", got)
	}
	if got := together.short(); got != "w0-w999" {
		t.Errorf("%s", got)
	}
}
