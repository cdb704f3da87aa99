// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

func TestWavesSayWhichTheyAreAndWhatLaunchedThem(t *testing.T) {
	for _, tt := range []struct {
		name   string
		thread trace.Thread
		text   string // the line below the thread's; "" for none
		json   string // of the members that it adds
	}{
		{"all is known", trace.Thread{
			Wave:       &sdk.Wave{Agent: "1", Queue: "2", Dispatch: "3", Kernel: "add(int*)", Group: [3]uint32{4, 5, 6}, InGroup: 7, HasGroup: true, HasInGroup: true},
			LaunchedBy: &trace.Launch{Thread: "1200", Kind: "dispatch", Evidence: trace.LaunchWaiting, Frames: []uint64{1}},
		}, "  kernel add(int*), agent 1, queue 2, dispatch 3, group (4,5,6), wave 7, launched by thread 1200 (dispatch, waiting)",
			`{"wave":{"agent":"1","queue":"2","dispatch":"3","kernel":"add(int*)","group":[4,5,6],"in_group":7},
			  "launched_by":{"thread":"1200","kind":"dispatch","evidence":"waiting"}}`},
		{"what is not known is absent", trace.Thread{Wave: &sdk.Wave{Kernel: "k"}}, "  kernel k", `{"wave":{"kernel":"k"}}`},
		{"the first group is a group", trace.Thread{Wave: &sdk.Wave{HasGroup: true, HasInGroup: true}}, "  group (0,0,0), wave 0", `{"wave":{"group":[0,0,0],"in_group":0}}`},
		{"a part of a wave in a cluster, which waits", trace.Thread{
			Wave: &sdk.Wave{Kernel: "_Z5scalePfi", Cluster: [3]uint32{0, 1, 0}, HasCluster: true}, State: "blocked on barrier 2",
			Lanes: 32, LaneStates: []sdk.LaneState{{Lane: 3}, {Lane: 4}, {Lane: 5}, {Lane: 31}},
		}, "  kernel scale, cluster (0,1,0), lanes 3-5,31\n  blocked on barrier 2",
			`{"wave":{"kernel":"_Z5scalePfi","cluster":[0,1,0]},"state":"blocked on barrier 2"}`},
		{"only the process is known", trace.Thread{LaunchedBy: &trace.Launch{Thread: "9", Evidence: trace.LaunchQueue}},
			"  launched by thread 9 (queue)", `{"launched_by":{"thread":"9","evidence":"queue"}}`},
		{"a fault, at an instruction before", trace.Thread{Wave: &sdk.Wave{}, Stop: &trace.Stop{Reason: sdk.StopMemoryFault, Address: 0x7f4200f00000, HasAddress: true, HasPCExact: true}},
			"  stopped by memory fault at address 0x7f4200f00000, PC not exact", `{"wave":{},"stop":{"reason":"memory-fault","address":"0x7f4200f00000","pc_exact":false}}`},
		{"a fault at the PC, of address 0", trace.Thread{Stop: &trace.Stop{Reason: sdk.StopMemoryFault, HasAddress: true, PCExact: true, HasPCExact: true}},
			"  stopped by memory fault at address 0x0", `{"stop":{"reason":"memory-fault","address":"0x0","pc_exact":true}}`},
		{"a trap", trace.Thread{Stop: &trace.Stop{Reason: sdk.StopTrap, TrapID: 2, HasTrapID: true}}, "  stopped by trap 2", `{"stop":{"reason":"trap","trap_id":2}}`},
		{"a trap of number 0", trace.Thread{Stop: &trace.Stop{Reason: sdk.StopTrap, HasTrapID: true}}, "  stopped by trap 0", `{"stop":{"reason":"trap","trap_id":0}}`},
		{"only the reason is known", trace.Thread{Stop: &trace.Stop{Reason: sdk.StopIllegalInstruction}}, "  stopped by illegal instruction", `{"stop":{"reason":"illegal-instruction"}}`},
		{"a thread of a CPU", trace.Thread{}, "", `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.thread.ID = "w"
			r := reportOf(&trace.Stack{Thread: &tt.thread, Stopped: trace.Stopped{Reason: trace.StopOutermost}})
			var b bytes.Buffer
			if err := r.WriteText(&b, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			want := "thread w\n"
			if tt.text != "" {
				want += tt.text + "\n"
			}
			if !strings.HasSuffix(b.String(), want) {
				t.Errorf("%s\nexpected at its end\n%s", b.String(), want)
			}
			b.Reset()
			if err := r.WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			var got struct{ Threads []map[string]any }
			var members map[string]any
			if err := json.Unmarshal(b.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tt.json), &members); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"id", "crashed", "frames", "stopped"} {
				delete(got.Threads[0], name)
			}
			if d := cmp.Diff(members, got.Threads[0]); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// stoppedWaves are waves with one stack that stopped in ways of their own.
func stoppedWaves(stops ...*trace.Stop) *given {
	r := reportOf()
	for i, s := range stops {
		r.stacks = append(r.stacks, &trace.Stack{
			Thread: &trace.Thread{ID: fmt.Sprint("w", i), Wave: &sdk.Wave{}, Stop: s},
			Frames: []trace.Frame{{
				PC: 0x10, FoundBy: trace.ByContext, Imprecise: s != nil && s.HasPCExact && !s.PCExact,
				Symbols: []trace.Symbol{{Function: "inlined"}, {Function: "kernel"}},
			}, {PC: 0x20, FoundBy: trace.ByCFI}},
			Stopped: trace.Stopped{Reason: trace.StopOutermost},
		})
	}
	return r
}

func TestWavesThatStoppedForOneReasonAreOneStack(t *testing.T) {
	fault := func(address uint64, imprecise bool) *trace.Stop {
		return &trace.Stop{Reason: sdk.StopMemoryFault, Address: address, HasAddress: true, HasPCExact: imprecise}
	}
	trap := func(id uint32) *trace.Stop {
		return &trace.Stop{Reason: sdk.StopTrap, TrapID: id, HasTrapID: true}
	}
	nowhere := &trace.Stop{Reason: sdk.StopMemoryFault}
	for _, c := range []struct {
		name  string
		stops []*trace.Stop
		want  []string
	}{
		{"at one address", []*trace.Stop{fault(16, false), fault(16, false), nowhere}, []string{
			"3 threads: w0-w2", "  stopped by memory fault at address 0x10"}},
		{"at many addresses", []*trace.Stop{fault(0x9, false), fault(0x100, false), fault(0x9, false), fault(0x10, false)}, []string{
			"4 threads: w0-w3", "  stopped by memory fault at 3 addresses from 0x9 to 0x100"}},
		{"at no address that is known", []*trace.Stop{nowhere, nowhere}, []string{"2 threads: w0 w1", "  stopped by memory fault"}},
		{"where one has an exact PC", []*trace.Stop{fault(16, false), fault(16, true)}, []string{
			"thread w0", "  stopped by memory fault at address 0x10", "thread w1", "  stopped by memory fault at address 0x10, PC not exact"}},
		{"by two traps", []*trace.Stop{trap(2), trap(3), trap(2)}, []string{
			"2 threads: w0 w2", "  stopped by trap 2", "thread w1", "  stopped by trap 3"}},
		{"by two reasons", []*trace.Stop{{Reason: sdk.StopFatalHalt}, {Reason: sdk.StopMathError}}, []string{
			"thread w0", "  stopped by fatal halt", "thread w1", "  stopped by math error"}},
		{"where of one nothing is known", []*trace.Stop{nil, nowhere, nil}, []string{
			"2 threads: w0 w2", "thread w1", "  stopped by memory fault"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := stoppedWaves(c.stops...).WriteText(&b, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range strings.Split(b.String(), "\n") {
				if strings.Contains(line, "thread") || strings.Contains(line, "stopped") {
					got = append(got, line)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestOnlyTheTopFrameIsMarkedAsNotExact(t *testing.T) {
	r := stoppedWaves(&trace.Stop{Reason: sdk.StopMemoryFault, HasPCExact: true}, &trace.Stop{Reason: sdk.StopMemoryFault, PCExact: true, HasPCExact: true})
	for i, want := range []string{"[false,false,null]", "[null,null,null]"} { // the calls inlined into it have its PC
		var marks []*bool
		for _, f := range r.read(t).Threads[i].Frames {
			marks = append(marks, f.PCExact)
		}
		if got, _ := json.Marshal(marks); string(got) != want {
			t.Errorf("wave %d: pc_exact %s, expected %s", i, got, want)
		}
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "(PC not exact)"); n != 1 || !strings.Contains(b.String(), "0x0000000000000010 kernel (PC not exact)\n") {
		t.Errorf("%d frames are marked:\n%s", n, b.String())
	}
}

// What the target's signal says is not said again.
func TestTheFaultOfAProcessStandsWithItsSignal(t *testing.T) {
	fault := trace.Stop{Reason: sdk.StopMemoryFault, Address: 0x10, HasAddress: true}
	with := func(change func(*trace.Stop)) *trace.Stop {
		s := fault
		change(&s)
		return &s
	}
	for _, c := range []struct {
		name, fault string
		thread      trace.Thread
		want        bool
	}{
		{"the crashed thread's", "0x10", trace.Thread{Crashed: true, Signal: 11, Stop: &fault}, false},
		{"of no address", "", trace.Thread{Crashed: true, Signal: 8, Stop: &trace.Stop{Reason: sdk.StopMathError}}, false},
		{"at another address", "0x20", trace.Thread{Crashed: true, Signal: 11, Stop: &fault}, true},
		{"without the signal's address", "", trace.Thread{Crashed: true, Signal: 11, Stop: &fault}, true},
		{"with another signal", "0x10", trace.Thread{Crashed: true, Signal: 6, Stop: &fault}, true},
		{"with another reason", "0x10", trace.Thread{Crashed: true, Signal: 11, Stop: with(func(s *trace.Stop) { s.Reason = sdk.StopAddressError })}, true},
		{"of a thread that did not crash", "0x10", trace.Thread{Signal: 11, Stop: &fault}, true},
		{"with a PC that is not exact", "0x10", trace.Thread{Crashed: true, Signal: 11, Stop: with(func(s *trace.Stop) { s.HasPCExact = true })}, true},
		{"of a wave", "0x10", trace.Thread{Crashed: true, Signal: 11, Wave: &sdk.Wave{}, Stop: &fault}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.thread.ID = "1"
			r := reportOf(&trace.Stack{Thread: &c.thread})
			r.Target = Target{Signal: 11, FaultAddress: c.fault}
			var b bytes.Buffer
			if err := r.WriteText(&b, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(b.String(), "stopped by"); got != c.want {
				t.Errorf("it is said: %v, expected %v\n%s", got, c.want, b.String())
			}
		})
	}
}
