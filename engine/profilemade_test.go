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

	"github.com/unwindd/unwindd/internal/oracle"
)

// recordMade records testdata/profile/jit.c. Dumps have the times of the clock
// that is recorded with.
func recordMade(t *testing.T, arguments ...string) string {
	t.Helper()
	oracle.Tools(t, "cc", "perf")
	dir := t.TempDir()
	program, data := filepath.Join(dir, "jit"), filepath.Join(dir, "perf.data")
	if out, err := exec.Command("cc", "-O1", "-g", "-o", program, "testdata/profile/jit.c").CombinedOutput(); err != nil {
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
		found     []FoundBy // of spin, inner, outer, main
	}{
		{[]string{"dump", t.TempDir()}, []FoundBy{ByContext, ByCFI, ByRules, ByRules}},
		{[]string{"map"}, []FoundBy{ByContext, ByCFI, ByFramePointer, ByFramePointer}},
	} {
		t.Run(c.arguments[0], func(t *testing.T) {
			e := newX86Engine(t, Options{})
			recording := recordMade(t, c.arguments...)
			p, err := e.Profile(context.Background(), recording, ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkParts(t, e, recording, ProfileOptions{}, p)
			for _, th := range p.Threads {
				if c.arguments[0] == "map" {
					defer os.Remove(filepath.Join("/tmp", fmt.Sprintf("perf-%d.map", th.PID)))
				}
			}
			want := []string{"spin", "inner(made)", "outer(made)", "main"}
			right, spinning := 0, 0
			for i := range p.Samples {
				var names []string
				var found []FoundBy
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
			if spinning < 20 {
				t.Errorf("%d samples, expected 20 at least", spinning)
			}
			t.Logf("%d of %d right; %q", right, spinning, p.Problems)
		})
	}
}
