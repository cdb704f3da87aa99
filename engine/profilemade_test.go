// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// recordMade records a program of testdata/profile. Dumps have the times of the clock
// that is recorded with.
func recordMade(t *testing.T, source string, arguments ...string) string {
	t.Helper()
	oracle.Tools(t, "cc", "perf")
	dir := t.TempDir()
	program, data := filepath.Join(dir, "jit"), filepath.Join(dir, "perf.data")
	if out, err := exec.Command("cc", "-O1", "-g", "-o", program, "testdata/profile/"+source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	args := append([]string{"record", "-q", "-F", "499", "-e", "cpu-clock", "-k", "mono", "--call-graph", "dwarf,4096", "-o", data, "--", program}, arguments...)
	if out, err := exec.Command("perf", args...).CombinedOutput(); err != nil {
		t.Fatalf("perf record: %v\n%s", err, out)
	}
	return data
}

// Code that a runtime made is walked by the bytes that it dumped, and named by
// the dump or the map.
func TestProfileOfCodeThatARuntimeMade(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		found     []trace.FoundBy // of spin, inner, outer, main
		problem   string
	}{
		{[]string{"dump", t.TempDir()}, []trace.FoundBy{trace.ByContext, trace.ByCFI, trace.ByRules, trace.ByRules}, ""},
		{[]string{"map"}, []trace.FoundBy{trace.ByContext, trace.ByCFI, trace.ByFramePointer, trace.ByFramePointer}, ""},
		{[]string{"over", t.TempDir()}, []trace.FoundBy{trace.ByContext, trace.ByCFI, trace.ByRules, trace.ByRules}, ""},
		{[]string{"clock", t.TempDir()}, []trace.FoundBy{trace.ByContext, trace.ByCFI, trace.ByRules, trace.ByRules}, "its times are by a clock of the processor"},
	} {
		t.Run(c.arguments[0], func(t *testing.T) {
			e := newX86Engine(t, Options{})
			recording := recordMade(t, "jit.c", c.arguments...)
			p, err := e.Profile(context.Background(), recording, trace.ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkParts(t, e, recording, trace.ProfileOptions{}, p)
			for _, th := range p.Threads {
				if c.arguments[0] == "map" {
					defer os.Remove(filepath.Join("/tmp", fmt.Sprintf("perf-%d.map", th.PID)))
				}
			}
			want := []string{"spin", "inner(made)", "outer(made)", "main"}
			right, spinning := 0, 0
			for i := range p.Samples {
				var names []string
				var found []trace.FoundBy
				for _, at := range p.StackFrames(nil, p.Samples[i].Stack) {
					f := &p.Frames[at]
					name := "?"
					if n := len(f.Symbols); n > 0 {
						name = f.Symbols[n-1].Function
					}
					names, found = append(names, name), append(found, f.FoundBy)
				}
				at := slices.Index(names, "spin")
				if at != 0 {
					continue // in the kernel, or elsewhere
				}
				spinning++
				if len(names) >= 4 && slices.Equal(names[:4], want) && slices.Equal(found[:4], c.found) {
					right++
				} else {
					t.Errorf("%s by %s", strings.Join(names, " < "), found)
				}
			}
			if is := strings.Contains(strings.Join(p.Problems, "\n"), "its times are"); is != (c.problem != "") || !strings.Contains(strings.Join(p.Problems, "\n"), c.problem) {
				t.Errorf("problems %q, expected %q", p.Problems, c.problem)
			}
			if spinning < 20 {
				t.Errorf("%d samples, expected 20 at least", spinning)
			}
			t.Logf("%d of %d right; %q", right, spinning, p.Problems)
		})
	}
}

// What a dump tells of is a trace, which is entered by a jump in mid-frame: its stacks are those
// that a map, which has no code, gives. What it is returned to without a call is itself.
func TestProfileOfTracesThatARuntimeMade(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      []string
		found     []trace.FoundBy
	}{
		{[]string{"dump", t.TempDir()}, []string{"trace(made)", "enter", "main"}, []trace.FoundBy{trace.ByContext, trace.ByScan, trace.ByCFI}},
		{[]string{"map"}, []string{"trace(made)", "enter", "main"}, []trace.FoundBy{trace.ByContext, trace.ByScan, trace.ByCFI}},
		{[]string{"back", t.TempDir()}, []string{"trace(made)", "resume(made)", "enter", "main"}, []trace.FoundBy{trace.ByContext, trace.ByRules, trace.ByScan, trace.ByCFI}},
		// Old return addresses above the stack are none of its.
		{[]string{"heap", t.TempDir()}, []string{"trace(made)", "resume(made)", ""}, []trace.FoundBy{trace.ByContext, trace.ByRules, ""}},
	} {
		t.Run(c.arguments[0], func(t *testing.T) {
			e := newX86Engine(t, Options{})
			p, err := e.Profile(context.Background(), recordMade(t, "fragment.c", c.arguments...), trace.ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, th := range p.Threads {
				if c.arguments[0] == "map" {
					defer os.Remove(filepath.Join("/tmp", fmt.Sprintf("perf-%d.map", th.PID)))
				}
			}
			right := 0
			for i := range p.Samples {
				var names []string
				var found []trace.FoundBy
				for _, at := range p.StackFrames(nil, p.Samples[i].Stack) {
					f := &p.Frames[at]
					name := "?"
					if n := len(f.Symbols); n > 0 {
						name = f.Symbols[n-1].Function
					}
					names, found = append(names, name), append(found, f.FoundBy)
				}
				n := len(c.want)
				if c.want[n-1] == "" { // nothing follows
					names, found = append(names, ""), append(found, "")
				}
				switch {
				case len(names) == 0 || names[0] != c.want[0]:
				case len(names) >= n && slices.Equal(names[:n], c.want) && slices.Equal(found[:n], c.found):
					right++
				default:
					t.Errorf("%s by %s", strings.Join(names, " < "), found)
				}
			}
			if right < 10 {
				t.Errorf("%d samples are right, expected 10 at least; %q", right, p.Problems)
			}
		})
	}
}
