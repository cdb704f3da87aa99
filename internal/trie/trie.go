// SPDX-License-Identifier: Apache-2.0

// Package trie numbers paths of labels: stacks of frames or of names, of which most
// have their outer parts in common.
package trie

// Trie is a tree of nodes, each of which is the child of its parent by a label. Nodes
// are numbered by first appearance; the root is node 0, and a parent comes before its
// children. It is not for concurrent use.
//
// Most requested paths are new, and so are all their continuations: that costs a
// look at one entry, where a hash table would cost a miss of the processor's cache
// and its growth.
type Trie struct {
	nodes []node
	// wide has the children of nodes with more than maxSiblings; the first ones are
	// in the list.
	wide map[edge]uint32
}

// node is an element of the list of its parent's children.
type node struct {
	label uint32
	first uint32 // a child; 0: there is none
	next  uint32 // the next child of its parent; 0: there is none
}

type edge struct{ parent, label uint32 }

// maxSiblings bounds the nodes in a list. Most functions call from a few places, and
// few from hundreds.
const maxSiblings = 16

// New returns a tree with a root, with capacity for a number of nodes. Unused capacity
// costs addresses, not memory.
func New(capacity int) *Trie { return &Trie{nodes: make([]node, 1, 1+min(capacity, MaxCapacity))} }

// MaxCapacity bounds the initial capacity.
const MaxCapacity = 1 << 22

// Child returns the number of a node's child by a label; isNew reports that it did not
// exist before. The child that was requested last comes first in its list: it is likely
// to be requested again.
func (t *Trie) Child(parent, label uint32) (child uint32, isNew bool) {
	first := t.nodes[parent].first
	before, count := uint32(0), 0
	for i := first; i != 0; count++ {
		n := &t.nodes[i]
		if n.label == label {
			if before != 0 {
				t.nodes[before].next = n.next
				n.next, t.nodes[parent].first = first, i
			}
			return i, false
		}
		before, i = i, n.next
	}
	child = uint32(len(t.nodes))
	if count < maxSiblings {
		t.nodes[parent].first = child
		t.nodes = append(Grown(t.nodes), node{label: label, next: first})
		return child, true
	}
	e := edge{parent, label}
	if i, ok := t.wide[e]; ok {
		return i, false
	}
	if t.wide == nil {
		t.wide = map[edge]uint32{}
	}
	t.wide[e] = child
	t.nodes = append(Grown(t.nodes), node{label: label})
	return child, true
}

// Grown returns a list with capacity for one more. It doubles a full one, which copies
// less than append does for a long list.
func Grown[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	return append(make([]T, 0, 2*len(list)+1), list...)
}
