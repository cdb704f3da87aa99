// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"testing"

	"pgregory.net/rapid"
)

func TestIndicesAreThoseOfAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x indices
		want := map[uint64]int{}
		for i, id := range rapid.SliceOf(rapid.OneOf(rapid.Uint64Range(0, 80), rapid.Uint64())).Draw(t, "ids") {
			x.add(id, i)
			if _, again := want[id]; again {
				i = several
			}
			want[id] = i
		}
		for id, i := range want {
			if got, known := x.get(id); !known || got != i || x.find(id) != max(i, -1) {
				t.Fatalf("%d: %d, %v; expected %d", id, got, known, i)
			}
		}
		for id := range uint64(200) {
			if _, is := want[id]; !is && x.find(id) != -1 {
				t.Fatalf("%d is at %d", id, x.find(id))
			}
		}
		if len(x.list) > maxGap*(len(want)+1) {
			t.Fatalf("%d of %d are listed", len(want), len(x.list))
		}
	})
}
