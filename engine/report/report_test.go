// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

var libm = &target.Module{Module: trace.Module{ID: 3, Path: "/usr/lib/libm.so.6"}}

// stacks are the stacks of a crashed thread and of three that are equal.
func stacks() []*trace.Stack {
	park := func(id string) *trace.Stack {
		return &trace.Stack{
			Thread: &trace.Thread{ID: id, Arch: "x86_64"},
			Frames: []trace.Frame{
				{PC: 0x7f01, FoundBy: trace.ByContext, Module: &libm.Module, ModuleOffset: 0x1234},
				{PC: 0x7f02, FoundBy: trace.ByScan, Module: &libm.Module, ModuleOffset: 0x1235,
					Symbols: []trace.Symbol{{Function: "wait", Start: 0x1230, HasStart: true}}},
			},
			Stopped: trace.Stopped{Reason: trace.StopNoRow, Detail: "no call frame information"},
		}
	}
	crash := &trace.Stack{
		Thread: &trace.Thread{ID: "12", Name: "main", Arch: "x86_64", Crashed: true},
		Frames: []trace.Frame{
			{PC: 0x401012, Exact: true, CFA: 0x7ff0, HasCFA: true, FoundBy: trace.ByContext, Module: &libm.Module, ModuleOffset: 0x1012,
				Symbols: []trace.Symbol{
					{Function: "ns::inner<int>()", LinkageName: "_ZN2ns5innerIiEEvv", File: "a.h", Line: 7, Inlined: true},
					{Function: "outer(int)", LinkageName: "_Z5outeri", File: "a.cc", Line: 3, Column: 9, Start: 0x1000, HasStart: true},
				}},
			{PC: 0x401100, FoundBy: trace.ByCFI, Module: &libm.Module, ModuleOffset: 0x1100, SignalFrame: true,
				Symbols: []trace.Symbol{{Function: "__restore_rt", Start: 0x1101, HasStart: true}}},
			{PC: 0x66, FoundBy: trace.ByCFI},
		},
		Stopped: trace.Stopped{Reason: trace.StopOutermost, Detail: "the return address is undefined"},
	}
	return []*trace.Stack{park("10"), park("11"), crash, park("13")}
}

func testReport() *given {
	return &given{Head: Head{
		Target:  Target{Kind: "elf-core", Path: "core", Signal: 11, FaultAddress: "0x0", Problems: []string{"core: cut at 4096 bytes"}},
		Modules: []Module{{ID: 3, Path: libm.Path, Arch: "x86_64", Problem: "not found", Segments: []Segment{}}},
	}, stacks: stacks()}
}

func TestTextPutsTheCrashFirstAndFoldsEqualStacks(t *testing.T) {
	var b bytes.Buffer
	if err := testReport().WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `elf-core core: signal 11 (SIGSEGV) at address 0x0
problem: core: cut at 4096 bytes

thread 12 "main", crashed
  #0 inlined            ns::inner<int> a.h:7
  #1 0x0000000000401012 outer+0x12 a.cc:3:9
  #2 0x0000000000401100 __restore_rt-0x1 in libm.so.6 <signal handler called>
  #3 0x0000000000000066 ??

3 threads: 10 11 13
  #0 0x0000000000007f01 ?? in libm.so.6+0x1234
  #1 0x0000000000007f02 wait+0x5 in libm.so.6 (a guess, by scan)
  stopped: no-row: no call frame information

modules
  /usr/lib/libm.so.6
    problem: not found
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if err := testReport().WriteText(&b, TextOptions{FullNames: true}); err != nil {
		t.Fatal(err)
	}
	want = strings.NewReplacer("ns::inner<int>", "ns::inner<int>()", "outer", "outer(int)").Replace(want)
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if err := testReport().WriteText(&b, TextOptions{NoFold: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\nthread "); n != 4 {
		t.Errorf("%d threads one by one, expected 4:\n%s", n, b.String())
	}
}

func TestColourOnlyWhereItIsWanted(t *testing.T) {
	for _, on := range []bool{false, true} {
		var b bytes.Buffer
		if err := testReport().WriteText(&b, TextOptions{Color: on}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "\x1b["); got != on {
			t.Errorf("colour %v, expected %v", got, on)
		}
	}
}

func TestJSONHasTheMembersOfTheContract(t *testing.T) {
	var b bytes.Buffer
	if err := testReport().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	thread := got["threads"].([]any)[2].(map[string]any)
	frames := thread["frames"].([]any)
	want := []any{
		map[string]any{
			"index": 0.0, "thread": "12", "pc": "0x401012", "cfa": "0x7ff0", "found_by": "context", "module": 3.0,
			"module_offset": "0x1012", "function": "ns::inner<int>()", "short_name": "ns::inner<int>", "linkage_name": "_ZN2ns5innerIiEEvv", "file": "a.h",
			"line": 7.0, "inlined": true, "signal_frame": false, "lanes": []any{},
		},
		map[string]any{
			"index": 1.0, "thread": "12", "pc": "0x401012", "cfa": "0x7ff0", "found_by": "context", "module": 3.0,
			"module_offset": "0x1012", "function": "outer(int)", "short_name": "outer", "linkage_name": "_Z5outeri", "function_offset": "0x12",
			"file": "a.cc", "line": 3.0, "column": 9.0, "inlined": false, "signal_frame": false, "lanes": []any{},
		},
		map[string]any{
			"index": 2.0, "thread": "12", "pc": "0x401100", "found_by": "cfi", "module": 3.0, "module_offset": "0x1100",
			"function": "__restore_rt", "function_offset": "-0x1", "inlined": false, "signal_frame": true, "lanes": []any{},
		},
		map[string]any{
			"index": 3.0, "thread": "12", "pc": "0x66", "found_by": "cfi", "inlined": false, "signal_frame": false, "lanes": []any{},
		},
	}
	if diff := cmp.Diff(want, frames); diff != "" {
		t.Error(diff)
	}
	delete(thread, "frames")
	if diff := cmp.Diff(map[string]any{
		"id": "12", "name": "main", "arch": "x86_64", "crashed": true, "first_own_frame": 0.0,
		"stopped": map[string]any{"reason": "outermost", "detail": "the return address is undefined"},
	}, thread); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{
		"kind": "elf-core", "path": "core", "signal": 11.0, "fault_address": "0x0", "problems": []any{"core: cut at 4096 bytes"},
	}, got["target"]); diff != "" {
		t.Error(diff)
	}
	if first := got["threads"].([]any)[0].(map[string]any)["id"]; first != "10" {
		t.Errorf("the first thread is %v: JSON keeps the target's order", first)
	}
}

// A chain that was concluded is marked on each of its frames, and so is a line that
// is from elsewhere than debug information.
func TestFramesOfSourceModulesAreMarked(t *testing.T) {
	chain := []trace.Symbol{
		{Function: "inner", File: "a.cl", Line: 7, Inlined: true, LineByAssembly: true, ScopeBySource: true},
		{Function: "k", File: "a.cl", Line: 3, ScopeBySource: true},
	}
	r := reportOf(&trace.Stack{
		Thread: &trace.Thread{ID: "w", Arch: "visa"}, Lanes: 2,
		Frames: []trace.Frame{{PC: 0x10, FoundBy: trace.ByContext, Symbols: chain, Details: &trace.FrameDetails{Lanes: []trace.LaneGroup{
			{Lanes: trace.LaneSet{2}, State: trace.LaneInactive, PC: 0x20, HasPC: true, Symbols: chain},
		}}}},
		Stopped: trace.Stopped{Reason: trace.StopOutermost},
	})
	var b bytes.Buffer
	if err := r.WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = `snapshot s

thread w
  #0 inlined            inner a.cl:7 (a guess, by source module)
  #1 0x0000000000000010 k a.cl:3 (a guess, by source module)
     lanes 1 inactive at 0x20 inner a.cl:7 (a guess, by source module), in k a.cl:3 (a guess, by source module)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	type place struct {
		Function  string `json:"function"`
		LineFrom  string `json:"line_from"`
		ScopeFrom string `json:"scope_from"`
	}
	var got struct {
		Threads []struct {
			Frames []struct {
				place
				Lanes []struct {
					Frames []place `json:"frames"`
				} `json:"lanes"`
			} `json:"frames"`
		} `json:"threads"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	frames := got.Threads[0].Frames
	places := []place{{"inner", "assembly", "source-module"}, {"k", "", "source-module"}}
	if diff := cmp.Diff(places, []place{frames[0].place, frames[1].place}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(places, frames[1].Lanes[0].Frames); diff != "" {
		t.Error(diff)
	}
}
