// SPDX-License-Identifier: Apache-2.0

package comparison

// tree is a tree in which a parent precedes its children; node 0 is its root. Of a very deep tree too, an
// ancestor is found in a few steps: each node has its parent, and one ancestor further out, so chosen that
// the steps to any ancestor are few.
type tree struct {
	parent, depth, jump []uint32
}

func newTree(capacity int) *tree {
	t := &tree{make([]uint32, 1, capacity+1), make([]uint32, 1, capacity+1), make([]uint32, 1, capacity+1)}
	return t
}

// add adds a node.
func (t *tree) add(parent uint32) {
	jump := parent
	if j := t.jump[parent]; t.depth[parent]-t.depth[j] == t.depth[j]-t.depth[t.jump[j]] {
		jump = t.jump[j]
	}
	t.parent, t.depth, t.jump = append(t.parent, parent), append(t.depth, t.depth[parent]+1), append(t.jump, jump)
}

// size is the number of nodes, with the root.
func (t *tree) size() int { return len(t.parent) }

// ancestor is the node or the ancestor of it that has a depth.
func (t *tree) ancestor(node, depth uint32) uint32 {
	for t.depth[node] > depth {
		if j := t.jump[node]; t.depth[j] >= depth {
			node = j
		} else {
			node = t.parent[node]
		}
	}
	return node
}

// common is the innermost node that two nodes have in common.
func (t *tree) common(a, b uint32) uint32 {
	if t.depth[a] < t.depth[b] {
		a, b = b, a
	}
	a = t.ancestor(a, t.depth[b])
	for a != b {
		if t.jump[a] != t.jump[b] {
			a, b = t.jump[a], t.jump[b]
		} else {
			a, b = t.parent[a], t.parent[b]
		}
	}
	return a
}

// nearest is the innermost of a node and its ancestors for which is is true, as it is then for all of its ancestors;
// the root where there is none.
func (t *tree) nearest(node uint32, is func(uint32) bool) uint32 {
	for node != 0 && !is(node) {
		if j := t.jump[node]; j != 0 && !is(j) {
			node = j
		} else {
			node = t.parent[node]
		}
	}
	return node
}

// ordered is a tree whose nodes are numbered so that each subtree's follow each other, children in an order.
type ordered struct {
	*tree
	// label is the frame of each node, and last the last node of its subtree.
	label, last []uint32
	// number is the node of each node of the tree that was ordered; 0: the root, or it was left out.
	number []uint32
}

func newOrdered(capacity int) *ordered {
	return &ordered{tree: newTree(capacity), label: make([]uint32, 1, capacity+1), last: make([]uint32, 1, capacity+1), number: make([]uint32, capacity)}
}

// add adds a node of the tree that is ordered.
func (o *ordered) add(node, parent, label uint32) {
	o.number[node] = uint32(o.size()) //nolint:gosec // memory has room for fewer
	o.tree.add(o.number[parent])
	o.label, o.last = append(o.label, label), append(o.last, 0)
}

// finish finds the ends of subtrees.
func (o *ordered) finish() *ordered {
	for i := o.size() - 1; i >= 0; i-- {
		o.last[i] = max(o.last[i], uint32(i)) //nolint:gosec // as above
		if p := o.parent[i]; i > 0 {
			o.last[p] = max(o.last[p], o.last[i])
		}
	}
	return o
}

// order orders a tree by the ranks of labels.
func order(parent, label, rank []uint32) *ordered {
	first, next := children(parent, label, rank)
	o := newOrdered(len(parent))
	for node := first[0]; node != 0; {
		o.add(node, parent[node], label[node])
		if first[node] != 0 {
			node = first[node]
			continue
		}
		for node != 0 && next[node] == 0 {
			node = parent[node]
		}
		node = next[node]
	}
	return o.finish()
}

// children lists the children of each node: the first one, and the next one of the same parent. The root has no next
// one.
func children(parent, label, rank []uint32) (first, next []uint32) {
	n := len(parent)
	// Nodes are sorted by counting their ranks.
	start := make([]uint32, len(rank)+1)
	for i := 1; i < n; i++ {
		start[rank[label[i]]+1]++
	}
	for i := range rank {
		start[i+1] += start[i]
	}
	sorted := make([]uint32, n-1)
	for i := 1; i < n; i++ {
		r := rank[label[i]]
		sorted[start[r]] = uint32(i) //nolint:gosec // as above
		start[r]++
	}
	first, next = make([]uint32, n), make([]uint32, n)
	for i := n - 2; i >= 0; i-- {
		node := sorted[i]
		p := parent[node]
		next[node], first[p] = first[p], node
	}
	return first, next
}

// only leaves out the nodes that are not used and are no ancestors of used ones.
func (o *ordered) only(used []bool) *ordered {
	for i := o.size() - 1; i > 0; i-- {
		if used[i] {
			used[o.parent[i]] = true
		}
	}
	out := newOrdered(o.size())
	for i := 1; i < o.size(); i++ {
		if used[i] {
			out.add(uint32(i), o.parent[i], o.label[i]) //nolint:gosec // as above
		}
	}
	return out.finish()
}

// sum adds to each node's numbers its children's.
func sum[T ~int | ~int64](t *tree, list []T) {
	for i := t.size() - 1; i > 0; i-- {
		list[t.parent[i]] += list[i]
	}
}
