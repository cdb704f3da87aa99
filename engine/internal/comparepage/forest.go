// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/look"
	"github.com/unwindd/unwindd/engine/trace"
)

// forest is a tree of stacks as it is on a page.
type forest struct {
	nodes   []trace.CallNode
	kept    []int   // the nodes of the page, in order
	places  []int32 // of each node in kept; -1: it is left out
	parents []int32 // of kept, as places in it
	numbers []int32 // of kept, in preorder from 1 on
}

// newForest keeps of a tree the nodes that are needed, and of the others at most so many that the most
// targets have, the outermost first. The caller of a node that is kept is kept too.
func newForest(nodes []trace.CallNode, isNeeded []bool, most int) *forest {
	f := &forest{nodes: nodes, places: make([]int32, len(nodes))}
	f.kept = make([]int, len(nodes))
	for i := range f.kept {
		f.kept[i] = i
	}
	if len(nodes) > most {
		f.cut(isNeeded, most)
	}
	for i := range f.places {
		f.places[i] = -1
	}
	f.parents = make([]int32, len(f.kept))
	for place, i := range f.kept {
		f.places[i], f.parents[place] = int32(place), -1
		if parent := nodes[i].Parent; parent >= 0 {
			f.parents[place] = f.places[parent]
		}
	}
	f.numbers = look.Preorder(f.parents)
	return f
}

// cut keeps at most so many nodes.
func (f *forest) cut(isNeeded []bool, most int) {
	levels := make([]int32, len(f.nodes))
	for i := range f.nodes {
		if parent := f.nodes[i].Parent; parent >= 0 {
			levels[i] = levels[parent] + 1
		}
	}
	rank := func(i int) int {
		if isNeeded[i] {
			return 0
		}
		return 1
	}
	slices.SortFunc(f.kept, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)), cmp.Compare(f.nodes[b].Targets, f.nodes[a].Targets), cmp.Compare(levels[a], levels[b]), cmp.Compare(a, b))
	})
	f.kept = f.kept[:most]
	slices.Sort(f.kept)
}

// place is the number of a node in the page, or of its innermost caller that is in the page, and how many
// frames there are between them. It is 0 for no node.
func (f *forest) place(node int) (number, cut int) {
	for ; node >= 0 && node < len(f.places); node, cut = f.nodes[node].Parent, cut+1 {
		if place := f.places[node]; place >= 0 {
			return int(f.numbers[place]), cut
		}
	}
	return 0, cut
}

// leftOut is the number of nodes that are not on the page.
func (f *forest) leftOut() int { return len(f.nodes) - len(f.kept) }
