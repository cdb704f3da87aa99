// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// endings are stacks that end in an outermost frame: one is complete, one has a
// guess, one ends where its return address is 0.
func endings() *given {
	bare := &target.Module{Module: trace.Module{ID: 4}}
	frame := func(pc uint64, found trace.FoundBy, rests bool, names ...string) trace.Frame {
		f := trace.Frame{PC: pc, FoundBy: found, RestsOnGuess: rests, Module: &bare.Module, ModuleOffset: pc - 0x7000}
		for _, name := range names {
			f.Symbols = append(f.Symbols, trace.Symbol{Function: name, Inlined: len(f.Symbols) < len(names)-1})
		}
		return f
	}
	passing := func(f trace.Frame, n uint16) trace.Frame { f.PassedOver = n; return f }
	outermost := trace.Stopped{Reason: trace.StopOutermost, Detail: "_start has no caller"}
	return &given{Head: Head{
		Target:  Target{Kind: "elf-core", Path: "core", Problems: []string{}},
		Modules: []Module{{ID: 4, Problem: "not found", Segments: []Segment{{Start: "0x7000", Size: "0x1000", Address: "0x0"}}}},
	}, stacks: []*trace.Stack{
		{Thread: &trace.Thread{ID: "1"}, Stopped: outermost, Frames: []trace.Frame{
			frame(0x7010, trace.ByContext, false, "f"), frame(0x7020, trace.ByCFI, false, "_start")}},
		{Thread: &trace.Thread{ID: "2"}, Stopped: outermost, Frames: []trace.Frame{
			frame(0x7010, trace.ByContext, false, "inner", "f"), passing(frame(0x7030, trace.ByScan, false, "inner", "g"), 3),
			frame(0x7020, trace.ByCFI, true, "inner", "_start")}},
		{Thread: &trace.Thread{ID: "3"}, EndAssumed: true, Stopped: trace.Stopped{Reason: trace.StopOutermost, Detail: "the return address is 0"},
			Frames: []trace.Frame{frame(0x7010, trace.ByContext, false)}},
	}}
}

func TestStacksWithGuessesDoNotReadAsComplete(t *testing.T) {
	var b bytes.Buffer
	if err := endings().WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `elf-core core

thread 1
  #0 0x0000000000007010 f in module at 0x7000
  #1 0x0000000000007020 _start in module at 0x7000

thread 2
  #0 inlined            inner in module at 0x7000
  #1 0x0000000000007010 f in module at 0x7000
  #2 inlined            inner in module at 0x7000
  #3 0x0000000000007030 g in module at 0x7000 (a guess, by scan) (passed over 3 possible return addresses)
  #4 inlined            inner in module at 0x7000
  #5 0x0000000000007020 _start in module at 0x7000 (rests on a guess)
  stopped: outermost: _start has no caller, if frame 3, a guess, and those after it are right

thread 3
  #0 0x0000000000007010 ?? in module at 0x7000+0x10
  stopped: outermost: the return address is 0

modules
  0x0000000000007000 module at 0x7000
    problem: not found
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestJSONSaysWhichFramesRestOnGuesses(t *testing.T) {
	var b bytes.Buffer
	if err := endings().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Threads []struct {
			Frames []struct {
				RestsOnGuess bool `json:"rests_on_guess"`
				PassedOver   int  `json:"passed_over"`
			}
			Stopped struct{ Reason, Detail string }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var rests []bool
	for _, f := range got.Threads[1].Frames {
		rests = append(rests, f.RestsOnGuess)
	}
	if want := []bool{false, false, false, false, true, true}; !cmp.Equal(want, rests) {
		t.Errorf("%v, expected %v", rests, want)
	}
	if n := got.Threads[1].Frames[3].PassedOver; n != 3 {
		t.Errorf("%d words were passed over, expected 3", n)
	}
	if s := got.Threads[1].Stopped; s.Reason != "outermost" || s.Detail == "_start has no caller" {
		t.Errorf("%+v, expected a reason that names the guess", s)
	}
}
