// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// branches is the tree of a comparison by functions, with frames without a branch in one: a chain.
type branches struct {
	nodes []trace.CallNode
	// first and list have the children of a node n: list[first[n+1]:first[n+2]]. The outermost
	// frames are the children of -1.
	first, list []int32
	// isShown has, by node, whether it or one further in is not in all classes.
	isShown []bool
	// folded is the number of stacks that are in all classes, and so not shown.
	folded int
}

// newBranches folds a tree to where classes part, unless isWhole. readable is the number of classes
// with stacks.
func newBranches(nodes []trace.CallNode, readable int, isWhole bool) *branches {
	b := &branches{nodes: nodes, isShown: make([]bool, len(nodes)), first: make([]int32, len(nodes)+2), list: make([]int32, len(nodes))}
	for i := range slices.Backward(nodes) {
		n := &nodes[i]
		b.isShown[i] = b.isShown[i] || isWhole || n.ClassCount < readable
		if b.isShown[i] && n.Parent >= 0 {
			b.isShown[n.Parent] = true // it precedes its children
		}
		b.first[n.Parent+2]++
	}
	for i := range nodes {
		if nodes[i].Ends > 0 && !b.isShown[i] {
			b.folded++
		}
		b.first[i+1] += b.first[i]
	}
	b.first[len(nodes)+1] += b.first[len(nodes)]
	next := slices.Clone(b.first)
	for i := range nodes {
		n := &next[nodes[i].Parent+1]
		b.list[*n] = int32(i) //nolint:gosec // an index
		*n++
	}
	return b
}

// children are the frames that a node calls, or the outermost frames for -1.
func (b *branches) children(node int) []int32 { return b.list[b.first[node+1]:b.first[node+2]] }

// shown are the children that are shown, those that the fewest targets have first.
func (b *branches) shown(node int) (list []int32) {
	for _, c := range b.children(node) {
		if b.isShown[c] {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(x, y int32) int { return cmp.Compare(b.nodes[x].Targets, b.nodes[y].Targets) })
	return list
}

// chain appends the frames from a node inwards, as far as all its threads go.
func (b *branches) chain(list []int, node int) []int {
	for {
		list = append(list, node)
		children := b.children(node)
		if len(children) != 1 || b.nodes[children[0]].Threads != b.nodes[node].Threads {
			return list
		}
		node = int(children[0])
	}
}

// branch is a chain of a tree, or how many ones are left out in its place.
type branch struct {
	parent, depth int
	nodes         []int // outermost first
	leftOut       int
}

// each yields the chains that are shown, outermost first, of the children of each at most a number; 0: all.
func (b *branches) each(most int, yield func(*branch) bool) {
	type open struct{ node, parent, depth, leftOut int }
	var todo []open
	add := func(parent, depth int) {
		children := b.shown(parent)
		if most > 0 && len(children) > most {
			todo = append(todo, open{parent: parent, depth: depth, leftOut: len(children) - most})
			children = children[:most]
		}
		for _, c := range slices.Backward(children) {
			todo = append(todo, open{int(c), parent, depth, 0})
		}
	}
	add(-1, 0)
	var chain []int
	for len(todo) > 0 {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if o.leftOut > 0 {
			if !yield(&branch{parent: o.parent, depth: o.depth, leftOut: o.leftOut}) {
				return
			}
			continue
		}
		chain = b.chain(chain[:0], o.node)
		if !yield(&branch{o.parent, o.depth, chain, 0}) {
			return
		}
		add(chain[len(chain)-1], o.depth+1)
	}
}

// path is the frames from the outermost to a node.
func (b *branches) path(node int) (list []int) { return b.below(-1, node) }

// below is the frames behind one on the path to a node, outermost first.
func (b *branches) below(outer, node int) (list []int) {
	for ; node >= 0 && node != outer; node = b.nodes[node].Parent {
		list = append(list, node)
	}
	slices.Reverse(list)
	return list
}
