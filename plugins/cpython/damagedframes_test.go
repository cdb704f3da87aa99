// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/sdk"
)

// TestDamagedFrames damages the memory of recordings: no frame is another without a problem.
func TestDamagedFrames(t *testing.T) {
	paths, err := filepath.Glob("testdata/frames-*.gz")
	if err != nil {
		t.Fatal(err)
	}
	var list []*managed.Process
	for _, path := range paths {
		f := readStacks(t, path)
		list = append(list, &managed.Process{
			Name: filepath.Base(path), New: New, Engine: &memory{pages: f.Pages}, Open: &f.Open, Frames: []*sdk.ManagedFramesRequest{&f.Frames}, Threads: true,
		})
	}
	managed.Test(t, list, managed.Times())
}
