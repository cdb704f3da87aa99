// SPDX-License-Identifier: Apache-2.0

package gpusamples

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPlacesAreThoseOfTheRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ranges []Range
		for i := range rapid.IntRange(0, 8).Draw(t, "ranges") {
			ranges = append(ranges, Range{rapid.Uint64Range(0, 40).Draw(t, "start"), rapid.Uint64Range(0, 20).Draw(t, "size"), i})
		}
		places := NewPlaces(ranges)
		for address := range uint64(64) {
			want, count := -1, 0
			for _, r := range ranges {
				if address >= r.Start && address-r.Start < r.Size {
					want, count = r.Index, count+1
				}
			}
			if count > 1 {
				want = -1
			}
			if got, problem := places.At(address); got != want || (problem != "") != (count > 1) {
				t.Fatalf("%d in %+v: %d, %q; expected %d of %d", address, ranges, got, problem, want, count)
			}
		}
	})
}
