// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/enginetest"
)

// TestWavesOfCodeWithoutRulesHaveCallers is about the kernel inspect of the
// example: its call frame information has no rule in it, and return addresses are
// in lanes of a vector register.
func TestWavesOfCodeWithoutRulesHaveCallers(t *testing.T) {
	t.Parallel()
	waves := 0
	for _, th := range enginetest.Report(t, mixed).Threads {
		var frames []string
		for _, f := range th.Frames {
			if f.Thread == th.ID {
				frames = append(frames, fmt.Sprintf("%s:%d by %s", f.Function, f.Line, f.FoundBy))
			}
		}
		if !strings.HasPrefix(frames[0], "measure") {
			continue
		}
		waves++
		if want := []string{"measure:14 by context", "compare_sides:24 by rules", "inspect:32 by rules"}; !slices.Equal(frames, want) {
			t.Errorf("thread %s: %q, expected %q", th.ID, frames, want)
		}
	}
	if waves != 2 {
		t.Errorf("%d waves are in measure, expected 2", waves)
	}
	z, err := zip.OpenReader(mixed)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := fs.ReadFile(z, "modules/2.elf")
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("inspect.co", b)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	functions := 0
	for e, err := range listing.CallFrameEntries(o) {
		if err != nil {
			t.Fatal(err)
		}
		if e.FDE == nil {
			continue
		}
		functions++
		err := e.FDE.Rows(func(row *cfi.Row) bool {
			if row.CFA.Kind != cfi.NoCFA || len(row.Rules) > 0 {
				t.Errorf("a row with rules: %+v", row)
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
	}
	if functions != 3 {
		t.Errorf("%d functions, expected 3", functions)
	}
}
