// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"

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
	}, []*trace.Thread{
		{}, wave("1", true, nil), wave("1", false, trap(3)), wave("1", false, fault), wave("1", true, nil),
		wave("1", false, trap(2)), wave("1", false, nil), wave("1", false, trap(2)), wave("2", false, fault),
	})
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
