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

// waveStack is the stack of a wave in divergent code, which goes on in a host
// thread that waits.
func waveStack(id string) *trace.Stack {
	kernel := trace.Symbol{Function: "grade", File: "grade.cl", Line: 23, Column: 3, Start: 0x1600, HasStart: true}
	inlined := []trace.Symbol{{Function: "repair", File: "grade.cl", Line: 8, Inlined: true}, kernel}
	launch := &trace.Launch{Thread: "7", Kind: "dispatch", Evidence: trace.LaunchWaiting}
	inGroup := sdk.Wave{Kernel: "grade", Dispatch: "1", InGroup: 2, HasInGroup: true}
	return &trace.Stack{
		Thread: &trace.Thread{ID: id, Arch: "amdgpu", LaunchedBy: launch, Wave: &inGroup},
		Lanes:  4,
		Frames: []trace.Frame{{PC: 0x7f0016b4, ModuleOffset: 0x16b4, Exact: true, FoundBy: trace.ByContext, Symbols: inlined, Details: &trace.FrameDetails{Lanes: []trace.LaneGroup{
			{Lanes: trace.LaneSet{1}, State: trace.LaneActive, PC: 0x7f0016b4, HasPC: true, Symbols: inlined},
			{Lanes: trace.LaneSet{2}, State: trace.LaneInactive, PC: 0x7f0016c4, HasPC: true, Symbols: []trace.Symbol{
				{Function: "repair", File: "grade.cl", Line: 11, Column: 2, Inlined: true}, kernel}},
			{Lanes: trace.LaneSet{4}, State: trace.LaneInactive},
			{Lanes: trace.LaneSet{8}, State: trace.LaneNotOnEntry},
		}}}},
		Stopped: trace.Stopped{Reason: trace.StopOutermost, Detail: "grade is a kernel"},
		Launchers: []trace.Launcher{{
			Launch: launch,
			Frames: []trace.Frame{{PC: 0x401043, FoundBy: trace.ByContext, Symbols: []trace.Symbol{
				{Function: "wait_for", Line: 21, File: "host.c", Inlined: true}, {Function: "main", Line: 32, File: "host.c"}}}},
			Stopped: trace.Stopped{Reason: trace.StopNoRow, Detail: "no call frame information"},
		}},
	}
}

func reportOf(stacks ...*trace.Stack) *given {
	return &given{Head: Head{Target: Target{Kind: "snapshot", Path: "s", Problems: []string{}}, Modules: []Module{}}, stacks: stacks}
}

func stackText(t *testing.T, r *given, o TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b, o); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(b.String(), "snapshot s\n\n")
}

func TestTextSaysWhatLanesDoAndGoesOnInTheLauncher(t *testing.T) {
	want := `thread w
  kernel grade, dispatch 1, wave 2, lane 0 is work-item 8
  #0 inlined            repair grade.cl:8
  #1 0x000000007f0016b4 grade+0xb4 grade.cl:23:3
     lanes 0 active
     lanes 1 inactive at 0x7f0016c4 repair grade.cl:11:2, in grade grade.cl:23:3
     lanes 2 inactive
     lanes 3 not active on entry
  launched by thread 7, which waits in
  #2 inlined            wait_for host.c:21
  #3 0x0000000000401043 main host.c:32
  stopped: no-row: no call frame information
`
	if diff := cmp.Diff(want, stackText(t, reportOf(waveStack("w")), TextOptions{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJSONHasLanesAndTheFramesOfTheLauncher(t *testing.T) {
	var b bytes.Buffer
	if err := reportOf(waveStack("w")).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Threads []struct {
			LaunchedBy map[string]any `json:"launched_by"`
			Frames     []struct {
				Index   int
				Thread  string
				Inlined bool
				Lanes   []any
			}
			Stopped map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	th := got.Threads[0]
	if diff := cmp.Diff(map[string]any{"thread": "7", "kind": "dispatch", "evidence": "waiting", "frame": 2.0}, th.LaunchedBy); diff != "" {
		t.Errorf("launched_by (-want +got):\n%s", diff)
	}
	var frames []string
	for _, f := range th.Frames {
		frames = append(frames, fmt.Sprintf("%d %s %v %d", f.Index, f.Thread, f.Inlined, len(f.Lanes)))
	}
	if diff := cmp.Diff([]string{"0 w true 0", "1 w false 4", "2 7 true 0", "3 7 false 0"}, frames); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	var lanes any
	if err := json.Unmarshal([]byte(`[
		{"lanes":"0","state":"active","pc":"0x7f0016b4","frames":[
			{"function":"repair","file":"grade.cl","line":8,"inlined":true},
			{"function":"grade","file":"grade.cl","line":23,"column":3,"inlined":false}]},
		{"lanes":"1","state":"inactive","pc":"0x7f0016c4","frames":[
			{"function":"repair","file":"grade.cl","line":11,"column":2,"inlined":true},
			{"function":"grade","file":"grade.cl","line":23,"column":3,"inlined":false}]},
		{"lanes":"2","state":"inactive","frames":[]},
		{"lanes":"3","state":"not-on-entry","frames":[]}]`), &lanes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lanes, any(th.Frames[1].Lanes)); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
	if th.Stopped["reason"] != "no-row" {
		t.Errorf("stopped: %v, expected what the launcher's stack ends with", th.Stopped)
	}
}

// TestWavesThatAreEqualAreOneStack is ten thousand waves at one place, of which
// some differ in what their lanes do, and two crashed.
func TestWavesThatAreEqualAreOneStack(t *testing.T) {
	var stacks []*trace.Stack
	for i := range 10000 {
		s := waveStack(fmt.Sprintf("w%d", i))
		s.Thread.Wave.InGroup = uint32(i)
		switch i {
		case 5:
			s.Frames[0].Lanes()[0].Lanes = trace.LaneSet{3}
		case 6:
			s.Launchers[0].Launch = &trace.Launch{Thread: "8", Evidence: trace.LaunchWaiting}
			s.Thread.LaunchedBy = s.Launchers[0].Launch
		case 7, 8:
			s.Thread.Crashed, s.Thread.Signal = true, 11
		}
		stacks = append(stacks, s)
	}
	r := reportOf(stacks...)
	var heads []string
	for _, line := range strings.Split(stackText(t, r, TextOptions{}), "\n") {
		if strings.Contains(line, "thread") && !strings.HasPrefix(line, " ") {
			heads = append(heads, line)
		}
	}
	want := []string{
		"2 threads, crashed by signal 11 (SIGSEGV): w7 w8",
		"9996 threads: w0-w4 w9-w9999",
		"thread w5",
		"thread w6",
	}
	if diff := cmp.Diff(want, heads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := stackText(t, r, TextOptions{}); !strings.Contains(text, "w9-w9999\n  kernel grade, dispatch 1\n  #0") {
		t.Error("what equal waves have in common is not said")
	}
	if n := strings.Count(stackText(t, r, TextOptions{NoFold: true}), "\nthread w"); n != 9999 {
		t.Errorf("%d threads by themselves after the first one, expected 9999", n)
	}
}

func TestLauncherWithoutAStack(t *testing.T) {
	s := waveStack("w")
	s.Launchers[0].Frames, s.Launchers[0].Stopped = nil, trace.Stopped{}
	s.Launchers[0].Problem = "thread 7 is not in the target"
	if text := stackText(t, reportOf(s), TextOptions{}); !strings.HasSuffix(text, "\n  launched by thread 7, whose stack is not known: thread 7 is not in the target\n") {
		t.Error(text)
	}
	s.Launchers[0].Problem = ""
	s.Thread.LaunchedBy.Evidence = trace.LaunchQueue
	if text := stackText(t, reportOf(s), TextOptions{}); !strings.Contains(text, "work-item 8, launched by thread 7 (dispatch, queue)\n") ||
		!strings.HasSuffix(text, "not active on entry\n") {
		t.Error(text)
	}
}

func TestOneLaneSaysOnlyWhatIsNotUsual(t *testing.T) {
	for lane, want := range []string{"", "     lanes 1 inactive at 0x7f0016c4 repair grade.cl:11:2, in grade grade.cl:23:3\n", "     lanes 2 inactive\n"} {
		one, ok := waveStack("w").Lane(uint32(lane))
		if !ok {
			t.Fatalf("no lane %d", lane)
		}
		text := stackText(t, reportOf(one), TextOptions{OneLane: true})
		var got string
		for _, line := range strings.SplitAfter(text, "\n") {
			if strings.HasPrefix(line, "     lanes") {
				got += line
			}
		}
		if got != want {
			t.Errorf("lane %d: %q, expected %q in\n%s", lane, got, want, text)
		}
	}
}

// TestPageHasAGridOfAPartOfAWave has a thread of two lanes of four: the page shows where the others are
// missing.
func TestPageHasAGridOfAPartOfAWave(t *testing.T) {
	s := waveStack("d0.sm0.w1:1")
	s.Thread.Lanes, s.Thread.LaneStates = 4, []sdk.LaneState{{Lane: 1}, {Lane: 2}}
	s.Frames[0].Details.Lanes = []trace.LaneGroup{{Lanes: trace.LaneSet{6}, State: trace.LaneActive}}
	page := func() string {
		var b bytes.Buffer
		if err := reportOf(s).report().WritePage(&b, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const grid = `<tr><th>0<td class=""><td class="active">A<td class="active">A<td class="">`
	if got := page(); !strings.Contains(got, grid) {
		t.Errorf("the page has no %s", grid)
	}
	s.Thread.LaneStates = make([]sdk.LaneState, 4)
	if got := page(); strings.Contains(got, "<table class=\"x\"><tr><th>0") {
		t.Error("a thread that has all lanes, which do the same, has a grid")
	}
}
