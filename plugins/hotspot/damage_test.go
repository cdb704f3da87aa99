// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/sdk"
)

// TestDamagedFrames damages the memory of recordings: no frame is another without a problem.
func TestDamagedFrames(t *testing.T) {
	var list []*managed.Process
	for _, path := range recordings(t) {
		r := readRecording(t, path)
		list = append(list, &managed.Process{
			Name: filepath.Base(path), New: New, Engine: &recorded{recording: r}, Open: &r.Open, PCs: r.PCs,
			Frames: []*sdk.ManagedFramesRequest{{Threads: r.Stacks}}, Threads: true,
		})
	}
	managed.Test(t, list, managed.Times())
}
