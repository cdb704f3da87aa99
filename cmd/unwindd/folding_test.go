// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/subject"
)

// TestCrashedThreadsAndInnermostFramesAlone prints less of a core, and of a snapshot in which no thread
// crashed.
func TestCrashedThreadsAndInnermostFramesAlone(t *testing.T) {
	out, _, status := unwindd(t, "stack", "--crashed", serverCore)
	if status != 0 || strings.Count(out, "thread") != 1 || !strings.Contains(out, ", crashed\n") {
		t.Errorf("status %d, printed\n%s", status, out)
	}
	out, _, status = unwindd(t, "stack", "--top", "2", serverCore)
	if status != 0 || strings.Count(out, "  #") != 5 { // one of them is an inlined call
		t.Errorf("status %d, printed\n%s", status, out)
	}
	mustSay(t, out, "\n  #2  0x0000000000401941 serve+0x11", "\n  ... 9 frames left out\n", "3 threads: 5267-5269\n")
	for _, th := range stackJSON(t, serverCore, "--top", "2", "--crashed").Threads {
		if len(th.Frames) != 3 || len(th.LeftOut) != 1 || th.LeftOut[0].Index != 3 || th.LeftOut[0].Frames != 9 || th.Stopped.Reason != "outermost" {
			t.Errorf("thread %s: %d frames, %v, %v", th.ID, len(th.Frames), th.LeftOut, th.Stopped)
		}
	}
	// A wave's frames come first, its launcher's after them.
	out, _, _ = unwindd(t, "stack", "--top", "3", "--thread", "w0", mixed)
	whole, _, _ := unwindd(t, "stack", "--thread", "w0", mixed)
	if n := strings.Count(out, "  #"); n < 3 || !strings.HasPrefix(whole, strings.Split(out, "  ...")[0]) {
		t.Errorf("printed\n%s\nof\n%s", out, whole)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--top", "0"}, 2, "--top 0: expected 1 or more"},
		{[]string{"--crashed", "--thread", "5266"}, 2, "--crashed and --thread 5266"},
	} {
		_, stderr, status := unwindd(t, append([]string{"stack", serverCore}, c.args...)...)
		if status != c.status {
			t.Errorf("%v: status %d, expected %d", c.args, status, c.status)
		}
		mustSay(t, stderr, c.says)
	}
	if _, stderr, status := unwindd(t, "stack", "--crashed", "../../examples/gen/gen.snapshot"); status != 1 || !strings.Contains(stderr, "none of its") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// TestRecursionsOfEachKind are folded in the text, and JSON has every frame of them, as it
// says where they are.
func TestRecursionsOfEachKind(t *testing.T) {
	core := subject.Core(t, subject.Build(t, "recursions"))
	out, _, _ := unwindd(t, "stack", core)
	mustSay(t, out, "the 2 frames of the cycle odd < even repeat ", "cycle between < twice repeat ", "of the cycle outer < (inner repeated) repeat ")
	th := stackJSON(t, core).Threads[0]
	if len(th.Cycles) < 3 {
		t.Fatalf("cycles %v", th.Cycles)
	}
	for _, c := range th.Cycles {
		if c.Frames == 0 || c.Last-c.First+1 != c.Frames*c.Times {
			t.Errorf("cycle %+v", c)
			continue
		}
		for i := c.First; i+c.Frames <= c.Last; i++ {
			if a, b := th.Frames[i].Function, th.Frames[i+c.Frames].Function; a != b {
				t.Errorf("cycle %+v: frame %d is of %s, one time round later %s", c, i, a, b)
			}
		}
	}
	cut := stackJSON(t, core, "--max-frames", "50", "--locals").Threads[0]
	if len(cut.LeftOut) != 1 || cut.LeftOut[0].Frames == 0 || cut.Frames[len(cut.Frames)-1].Function != "_start" {
		t.Errorf("left out %v, %d frames", cut.LeftOut, len(cut.Frames))
	}
	for _, f := range cut.Frames {
		if f.Function == "outer" && (f.Locals == nil || len(*f.Locals) != 1) {
			t.Errorf("frame %d: locals %v", f.Index, f.Locals)
		}
	}
}
