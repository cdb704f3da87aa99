// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// A dump of another machine names hundreds of modules whose files are not here: those that
// a frame is in are listed.
func TestModulesWithoutFilesAreListedWhereAFrameIsInThem(t *testing.T) {
	for _, tt := range []struct {
		idle   int
		all    bool
		listed int
		more   bool
	}{{listedMissing, false, listedMissing + 1, false}, {listedMissing + 1, false, 1, true}, {listedMissing + 1, true, listedMissing + 2, false}} {
		var b bytes.Buffer
		w := &text{Printer: NewPrinter(&b), framed: map[int]bool{}, paint: newPaint(false)}
		head := Head{}
		for i := range tt.idle + 1 {
			head.Modules = append(head.Modules, Module{ID: 100 + i, Path: "served.so", Problem: "no code", DebugFile: "served.so.sym", isMissing: true, isServed: true})
			head.Modules = append(head.Modules, Module{ID: i, Path: fmt.Sprintf("lib%d.so", i), Problem: "no file", isMissing: true})
		}
		w.setHead(head)
		w.physical(&trace.Frame{Module: &trace.Module{ID: 0}}, 0, 1)
		w.modules(tt.all)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		more := fmt.Sprintf("  %d more, which no frame is in, have no file here (-v lists them)\n", tt.idle)
		if n := strings.Count(out, "no file\n"); n != tt.listed || strings.Contains(out, more) != tt.more ||
			strings.Contains(out, "no code") != tt.all {
			t.Errorf("%d without a frame, all %v: %d listed\n%s", tt.idle, tt.all, n, out)
		}
	}
}
