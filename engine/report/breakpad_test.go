// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// TestTrustIsHowAFrameWasFound: every way to find a frame has a trust, and rules do not
// undo that a frame further in was found by a scan.
func TestTrustIsHowAFrameWasFound(t *testing.T) {
	for _, tt := range []struct {
		found      []trace.FoundBy
		want, last string
	}{
		{[]trace.FoundBy{trace.ByContext}, "context", "context"},
		{[]trace.FoundBy{trace.ByContext, trace.ByCFI}, "context", "cfi"},
		{[]trace.FoundBy{trace.ByCFI, "breakpad", "pe", trace.ByObject, trace.ByRules, trace.ByCallSite}, "cfi", "cfi"},
		{[]trace.FoundBy{trace.ByFramePointer, trace.ByCFI}, "frame_pointer", "cfi"},
		{[]trace.FoundBy{trace.ByScan, trace.ByCFI}, "scan", "cfi_scan"},
		{[]trace.FoundBy{trace.ByScan, trace.ByFramePointer}, "scan", "frame_pointer"},
		{[]trace.FoundBy{trace.ByLaunch, trace.ByCallChain}, "prewalked", "prewalked"},
		{[]trace.FoundBy{"another"}, "none", "none"},
	} {
		hasScan, got := false, []string(nil)
		for _, by := range tt.found {
			got = append(got, trust(&trace.Frame{FoundBy: by}, &hasScan))
		}
		if got[0] != tt.want || got[len(got)-1] != tt.last {
			t.Errorf("%v: %v", tt.found, got)
		}
	}
}

// Where a target does not say where an image is, it has the pages of its segments.
func TestImagesHaveWholePages(t *testing.T) {
	m := &trace.Module{Segments: []trace.Segment{{Start: 0x401040, Size: 0x10}, {Start: 0x403000, Size: 0x1001}}}
	if got := imageOf(m); got != (image{0x401000, 0x405000}) {
		t.Errorf("%#x", got)
	}
	m.Base, m.Size = 0x400000, 0x6000
	if got := imageOf(m); got != (image{0x400000, 0x406000}) {
		t.Errorf("%#x", got)
	}
	if got := imageOf(&trace.Module{}); got != (image{}) {
		t.Errorf("%#x", got)
	}
}
