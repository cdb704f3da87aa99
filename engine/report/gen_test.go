// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/enginetest"
)

// TestStackOfAGenThreadGoesOnWhereItWasLaunched is about the stack that was
// recorded at the launch: the launcher's own is another one by now.
func TestStackOfAGenThreadGoesOnWhereItWasLaunched(t *testing.T) {
	got := enginetest.Report(t, genSnapshot)
	if len(got.Threads) != 4 {
		t.Fatalf("%d threads, expected the launcher and 3", len(got.Threads))
	}
	host := got.Threads[0].ID
	launch := []string{"launch 25 launch", "sum_trees 30 launch", "main 42 launch", "_start 0 launch"}
	for i, want := range []struct {
		id     string
		own    []string // frames of the thread
		active string   // its lanes
	}{
		{host, []string{"await 18 context", "plant 36 cfi", "main 43 cfi", "_start 0 cfi"}, ""},
		{"g0", []string{"sum 11 context", "sum 11 object", "sum 11 object", "sum 11 object", "sums 19 object"}, "4"},
		{"g1", []string{"sum 12 context", "sum 11 object", "sums 19 object"}, "2,5,7"},
		{"g2", []string{"sum 14 context", "sums 19 object"}, "1"},
	} {
		th := got.Threads[i]
		frames := want.own
		if i > 0 {
			frames = append(frames, launch...)
			if l := th.LaunchedBy; l == nil || l.Thread != host || l.Evidence != "recorded" || l.Frame == nil || *l.Frame != len(want.own) {
				t.Errorf("%s: launched by %+v, expected by %s in frame %d", th.ID, l, host, len(want.own))
			}
		}
		if th.ID != want.id || th.Stopped.Reason != "outermost" {
			t.Errorf("thread %s stopped by %s, expected %s at its outermost frame", th.ID, th.Stopped.Reason, want.id)
		}
		var found []string
		for j, f := range th.Frames {
			found = append(found, fmt.Sprintf("%s %d %s", f.Function, f.Line, f.FoundBy))
			thread, space, active := th.ID, "scratch", ""
			if i == 0 || j >= len(want.own) {
				thread, space = host, ""
			}
			for _, l := range f.Lanes {
				if l.State == "active" {
					active = l.Lanes
				}
			}
			wantActive := ""
			if j < len(want.own) {
				wantActive = want.active
			}
			if f.Thread != thread || f.CFASpace != space || active != wantActive {
				t.Errorf("%s, frame %d: of thread %s, with a CFA in %q and the lanes %q active, expected %s, %q and %q",
					th.ID, j, f.Thread, f.CFASpace, active, thread, space, wantActive)
			}
		}
		if diff := cmp.Diff(frames, found); diff != "" {
			t.Errorf("%s: frames (-expected +found)\n%s", th.ID, diff)
		}
	}
}

// TestGenStackOfALane is about a lane that is active in one thread only.
func TestGenStackOfALane(t *testing.T) {
	out := enginetest.Text(t, genSnapshot, func(a *enginetest.Ask) { a.Stack.Lane = new(uint32(2)) })
	for _, want := range []string{
		"sums.elf+0x4a0\n     lanes 2 inactive\n",                                  // of g0
		"  #2 0x00000000001401e8 sums+0x1e8 /usr/src/sums.cl:19:14\n  launched by", // of g1
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
