// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
)

// TestDamagedFrames damages the memory of recordings: no frame is another without a problem.
func TestDamagedFrames(t *testing.T) {
	var list []*managed.Process
	for _, path := range fixtures(t) {
		f := load(t, path)
		list = append(list, &managed.Process{Name: filepath.Base(path), New: New, Engine: f, Open: f.Open, Frames: f.Frames, Threads: true})
	}
	managed.Test(t, list, managed.Times())
}
