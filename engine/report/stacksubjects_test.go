// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/subject"
)

// TestRecursionsOfEachKind are folded in the text, and JSON has every frame of them, as it
// says where they are.
func TestRecursionsOfEachKind(t *testing.T) {
	t.Parallel()
	core := subject.Core(t, subject.Build(t, "recursions"))
	out := enginetest.Text(t, core)
	for _, want := range []string{"the 2 frames of the cycle odd < even repeat ", "cycle between < twice repeat ", "of the cycle outer < (inner repeated) repeat "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	th := enginetest.Report(t, core).Threads[0]
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
	cut := enginetest.Report(t, core, func(a *enginetest.Ask) { a.Stack.MaxFrames, a.Stack.Locals = new(uint32(50)), true }).Threads[0]
	if len(cut.LeftOut) != 1 || cut.LeftOut[0].Frames == 0 || cut.Frames[len(cut.Frames)-1].Function != "_start" {
		t.Errorf("left out %v, %d frames", cut.LeftOut, len(cut.Frames))
	}
	for _, f := range cut.Frames {
		if f.Function == "outer" && (f.Locals == nil || len(*f.Locals) != 1) {
			t.Errorf("frame %d: locals %v", f.Index, f.Locals)
		}
	}
}

// The frame of main in examples/crash is printed with the values of its source.
func TestStackPrintsVariables(t *testing.T) {
	t.Parallel()
	out := enginetest.Text(t, crashExample+".core", withLocals)
	_, frame, _ := strings.Cut(out, "main+0x18a /example/server.c:101:2\n")
	frame, _, _ = strings.Cut(frame, "  #9")
	want := `        small = {__size = "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\020\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\200", __align = 0}
        names = <optimized out>
        host = {name = 0x48d025 "Host", value = 0x48d02a "example.org", next = 0x0}
        good = {line = "GET /", headers = 0x7ffebe744c50}
        bad = {line = "!POST /upload", headers = 0x7ffebe744c50}
        batch = {0x7ffebe744d00, 0x7ffebe744cb0}
`
	if diff := cmp.Diff(want, frame); diff != "" {
		t.Error(diff)
	}
	if without := enginetest.Text(t, crashExample+".core"); strings.Contains(without, " = ") {
		t.Errorf("variables that nothing asked for:\n%s", without)
	}
}
