// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// TestRegistersOfLanesThatWait is about which registers still have what lanes that wait
// expect in them.
func TestRegistersOfLanesThatWait(t *testing.T) {
	const sgpr4, sgpr32, sgpr33, vgpr5 = 36, 64, 65, 2565
	w := &walker{
		machine: &machine{Machine: &code.Machine{Description: amdgpu.Description()}},
		thread: &thread{binding: &sdk.ThreadBinding{Lanes: 64, Maps: []sdk.SpaceMap{
			{Space: 5, Ranges: []sdk.MapRange{{Kind: sdk.InterleavedMap, Size: 1 << 26, Into: 6, Element: 4, Stride: 256}}}}}},
	}
	executing := &frame{walker: w}
	waiting := &frame{walker: w, place: executing}
	for _, c := range []struct {
		name   string
		u      unitContext
		reg    uint64
		isKept bool
	}{
		{"where lanes execute", unitContext{frame: executing}, sgpr4, true},
		{"a scalar register", unitContext{frame: waiting}, sgpr4, false},
		{"one that has the variable there too", unitContext{frame: waiting, isSameThere: true}, sgpr4, true},
		{"the stack pointer", unitContext{frame: waiting}, sgpr32, true},
		{"the frame pointer", unitContext{frame: waiting}, sgpr33, true},
		{"a vector register", unitContext{frame: waiting}, vgpr5, true},
	} {
		if err := c.u.isKept(c.reg); (err == nil) != c.isKept || err != nil && !errors.Is(err, errNotKept) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
