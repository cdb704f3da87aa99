// SPDX-License-Identifier: Apache-2.0

package trie

import (
	"math/rand/v2"
	"testing"
)

// TestTrieIsAMap holds a tree against a map of paths, with few and with many labels.
func TestTrieIsAMap(t *testing.T) {
	for _, labels := range []int{2, maxSiblings, maxSiblings + 1, 1000} {
		r := rand.New(rand.NewPCG(1, uint64(labels)))
		tree, known := New(10), map[[2]uint32]uint32{}
		at := uint32(0)
		for range 20_000 {
			if r.IntN(8) == 0 {
				at = 0
			}
			e := [2]uint32{at, uint32(r.IntN(labels))}
			want, wasKnown := known[e]
			if !wasKnown {
				want = uint32(len(known)) + 1
				known[e] = want
			}
			got, isNew := tree.Child(e[0], e[1])
			if got != want || isNew == wasKnown {
				t.Fatalf("%d labels: node %d goes on by %d to %d (new: %v), want %d (new: %v)", labels, e[0], e[1], got, isNew, want, !wasKnown)
			}
			at = got
		}
		if len(tree.nodes) != len(known)+1 {
			t.Errorf("%d labels: %d nodes, want %d", labels, len(tree.nodes), len(known)+1)
		}
	}
}
