// SPDX-License-Identifier: Apache-2.0

package ranges

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Flatten against its definition: of the ranges that contain an address the last one wins.
func TestFlattenKeepsTheInnermostRange(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		ranges := make([]Range, random.IntN(8))
		for i := range ranges {
			start := random.Uint64N(20)
			ranges[i] = Range{start, start + random.Uint64N(8), int32(i)}
		}
		x := Flatten(slices.Clone(ranges))
		all := slices.Collect(x.All())
		for a := range uint64(30) {
			want := -1
			for i, r := range ranges {
				if r.Start <= a && a < r.End {
					want = i
				}
			}
			if got := x.At(a); got != want {
				t.Fatalf("%v at %d: %d, want %d; flat %v", ranges, a, got, want, x)
			}
			i := slices.IndexFunc(all, func(r Range) bool { return r.Start <= a && a < r.End })
			if (i >= 0) != (want >= 0) || i >= 0 && int(all[i].Index) != want {
				t.Fatalf("%v at %d: want %d of %v", ranges, a, want, all)
			}
		}
	}
}
