// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/target"
)

// TestTrustIsHowAFrameWasFound: every way to find a frame has a trust, and rules do not
// undo that a frame further in was found by a scan.
func TestTrustIsHowAFrameWasFound(t *testing.T) {
	for _, tt := range []struct {
		found      []engine.FoundBy
		want, last string
	}{
		{[]engine.FoundBy{engine.ByContext}, "context", "context"},
		{[]engine.FoundBy{engine.ByContext, engine.ByCFI}, "context", "cfi"},
		{[]engine.FoundBy{engine.ByCFI, "breakpad", "pe", engine.ByObject, engine.ByRules, engine.ByCallSite}, "cfi", "cfi"},
		{[]engine.FoundBy{engine.ByFramePointer, engine.ByCFI}, "frame_pointer", "cfi"},
		{[]engine.FoundBy{engine.ByScan, engine.ByCFI}, "scan", "cfi_scan"},
		{[]engine.FoundBy{engine.ByScan, engine.ByFramePointer}, "scan", "frame_pointer"},
		{[]engine.FoundBy{engine.ByLaunch, engine.ByCallChain}, "prewalked", "prewalked"},
		{[]engine.FoundBy{"another"}, "none", "none"},
	} {
		hasScan, got := false, []string(nil)
		for _, by := range tt.found {
			got = append(got, trust(&engine.Frame{FoundBy: by}, &hasScan))
		}
		if got[0] != tt.want || got[len(got)-1] != tt.last {
			t.Errorf("%v: %v", tt.found, got)
		}
	}
}

// Where a target does not say where an image is, it has the pages of its segments.
func TestImagesHaveWholePages(t *testing.T) {
	m := &target.LoadedModule{Segments: []target.Segment{{Start: 0x401040, Size: 0x10}, {Start: 0x403000, Size: 0x1001}}}
	if got := imageOf(m); got != (image{0x401000, 0x405000}) {
		t.Errorf("%#x", got)
	}
	m.Base, m.Size = 0x400000, 0x6000
	if got := imageOf(m); got != (image{0x400000, 0x406000}) {
		t.Errorf("%#x", got)
	}
	if got := imageOf(&target.LoadedModule{}); got != (image{}) {
		t.Errorf("%#x", got)
	}
}
