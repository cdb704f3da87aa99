// SPDX-License-Identifier: Apache-2.0

package v8_test

import (
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/plugins/v8"
	"github.com/unwindd/unwindd/sdk"
)

// TestDamagedFrames damages the memory of recordings: no frame is another without a problem.
func TestDamagedFrames(t *testing.T) {
	var list []*managed.Process
	for _, path := range all(t) {
		r := read(t, path)
		list = append(list, &managed.Process{
			Name: filepath.Base(path), New: v8.New, Engine: r, Open: &r.Open, PCs: r.PCs, Frames: []*sdk.ManagedFramesRequest{&r.Frames},
		})
	}
	managed.Test(t, list, managed.Times())
}
