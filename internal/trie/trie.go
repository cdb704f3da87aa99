// SPDX-License-Identifier: Apache-2.0

// Package trie numbers paths of labels: stacks of frames or of names, of which most
// have their outer parts in common.
package trie

// A Trie is a tree of nodes, each of which goes on from its parent by a label. Nodes
// are numbered by first appearance; the root is node 0, and a parent comes before those
// that go on from it. It is not for concurrent use.
//
// Most paths that are looked for are new, and so is everything that goes on from
// them: that costs a look at one entry, where a hash table would cost a miss of the
// processor's cache and its growth.
type Trie struct {
	nodes []node
	// wide are the nodes that go on from one with more than maxSiblings. Those that
	// came first are in its list.
	wide map[edge]uint32
}

// A node is in the list of those that go on from its parent.
type node struct {
	label uint32
	first uint32 // one that goes on from it; 0: none does
	next  uint32 // another that goes on from its parent; 0: there is none
}

type edge struct{ parent, label uint32 }

// maxSiblings is how many nodes are in a list. Functions call from a few places, and
// those that call from hundreds are few.
const maxSiblings = 16

// New makes a tree that has a root, with room for a number of nodes. What of that is not
// used costs addresses, not memory.
func New(room int) *Trie { return &Trie{nodes: make([]node, 1, 1+min(room, MaxRoom))} }

// MaxRoom bounds the room that is made for nodes before there are any.
const MaxRoom = 1 << 22

// Child is the number of the node that goes on from another by a label; isNew says that
// it is made now. The one that was asked for last comes first in its list: it is likely
// to be met again.
func (t *Trie) Child(parent, label uint32) (child uint32, isNew bool) {
	first := t.nodes[parent].first
	before, count := uint32(0), 0
	for at := first; at != 0; count++ {
		n := &t.nodes[at]
		if n.label == label {
			if before != 0 {
				t.nodes[before].next = n.next
				n.next, t.nodes[parent].first = first, at
			}
			return at, false
		}
		before, at = at, n.next
	}
	child = uint32(len(t.nodes))
	if count < maxSiblings {
		t.nodes[parent].first = child
		t.nodes = append(Grown(t.nodes), node{label: label, next: first})
		return child, true
	}
	e := edge{parent, label}
	if at, ok := t.wide[e]; ok {
		return at, false
	}
	if t.wide == nil {
		t.wide = map[edge]uint32{}
	}
	t.wide[e] = child
	t.nodes = append(Grown(t.nodes), node{label: label})
	return child, true
}

// Grown is a list that has room for one more. It doubles, which copies less than append
// does to a long list.
func Grown[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	return append(make([]T, 0, 2*len(list)+1), list...)
}
