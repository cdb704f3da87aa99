package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A goFrame is where a frame of Go's runtime is, and ends.
type goFrame struct{ PC, CFA uint64 }

// TestStackEqualsGosTraceback compares the crashed thread of a Go program with the
// traceback that the program printed as it died: PCs, and the CFAs that it calls
// fp. A stripped program has neither call frame information nor symbols.
func TestStackEqualsGosTraceback(t *testing.T) {
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, subject := range []string{"gosubject", "gostripped"} {
		t.Run(subject, func(t *testing.T) {
			core, said := crash(t, build(t, subject), "panic")
			_, traceback, _ := strings.Cut(said, "\ngoroutine ")
			traceback, _, _ = strings.Cut(traceback, "\n\n")
			var want []goFrame
			for _, m := range regexp.MustCompile(`fp=(0x[0-9a-f]+) sp=0x[0-9a-f]+ pc=(0x[0-9a-f]+)`).FindAllStringSubmatch(traceback, -1) {
				want = append(want, goFrame{number(m[2]), number(m[1])})
			}
			th := &stackJSON(t, core).Threads[0]
			var got []goFrame
			for i := range th.Frames {
				if f := &th.Frames[i]; !f.Inlined {
					got = append(got, goFrame{number(f.PC), number(f.CFA)})
					if f.FoundBy != "cfi" && f.FoundBy != "context" && f.FoundBy != "rules" {
						t.Errorf("frame %d is found by %s", i, f.FoundBy)
					}
				}
			}
			if len(want) < 10 || len(got) < len(want) {
				t.Fatalf("%d frames, the runtime has %d:\n%s", len(got), len(want), traceback)
			}
			if diff := cmp.Diff(want, got[len(got)-len(want):]); diff != "" {
				t.Errorf("stopped %s: %s (-runtime +unwindd):\n%s", th.Stopped.Reason, th.Stopped.Detail, diff)
			}
		})
	}
}
