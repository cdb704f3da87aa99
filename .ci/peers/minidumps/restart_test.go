// SPDX-License-Identifier: Apache-2.0

package minidumps

import "testing"

func TestRestartedCallsAreTwoBytesApart(t *testing.T) {
	of := func(pc string, crashed bool) *thread {
		return &thread{Crashed: crashed, Frames: []frame{{PC: pc, Function: "poll", Inlined: true}, {PC: pc, Function: "wait"}, {PC: "0x9000", Function: "main"}}}
	}
	for _, tt := range []struct {
		pc      string
		crashed bool
		class   string
	}{{"0x1002", false, callRestarted}, {"0xffe", false, callRestarted}, {"0x1001", false, ""}, {"0x1004", false, ""}, {"0x1002", true, ""}} {
		found := of("0x1000", tt.crashed).compare(of(tt.pc, tt.crashed), &program{})
		if len(found) != 1 || found[0].class != tt.class {
			t.Errorf("%s: %+v, expected one of class %q", tt.pc, found, tt.class)
		}
	}
	if found := of("0x1000", false).compare(of("0x1000", false), &program{}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	// syscall() of libc is of assembly: its call and the instruction behind it are two lines.
	got := of("0x1002", false)
	got.Frames[0].Line, got.Frames[0].Column = 38, 1
	if found := of("0x1000", false).compare(got, &program{}); len(found) != 1 || found[0].class != callRestarted {
		t.Errorf("%+v, expected one of class %q", found, callRestarted)
	}
}
