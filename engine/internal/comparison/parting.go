// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// vertices are the nodes by functions at which stacks of a role end or part, for each role: a tree for each, below
// one root. They are in the order of their keys.
type vertices struct {
	*tree
	keys []uint64 // the role and the node; that of the root is not used
	// through and ends are how many targets have a thread whose stack leads through the vertex, and ends there, and
	// throughThreads and endThreads the threads.
	through, ends, throughThreads, endThreads []int
	// branches are the children of each vertex, the ones with the most targets first.
	branches [][]uint32
	isSorted []bool
}

func stackKey(role, node uint32) uint64 { return uint64(role)<<32 | uint64(node) }

// function is the node by functions of a vertex.
func (v *vertices) function(vertex uint32) uint32 { return uint32(v.keys[vertex]) } //nolint:gosec // its lower half

func (v *vertices) role(vertex uint32) uint32 { return uint32(v.keys[vertex] >> 32) } //nolint:gosec // its upper half

// vertex is the vertex of a stack.
func (v *vertices) vertex(key uint64) uint32 {
	i, _ := slices.BinarySearch(v.keys[1:], key)
	return uint32(i) + 1 //nolint:gosec // memory has room for fewer
}

// classStack is a stack that targets of a class have.
type classStack struct {
	vertex  uint32
	threads int
	crashed bool
}

// makeVertices finds the vertices of the stacks of all classes.
func (r *result) makeVertices() {
	var keys []uint64
	for _, v := range r.views {
		for i := range v.functions {
			s := &v.functions[i].stand
			keys = append(keys, stackKey(s.role, s.function))
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for i, n := 0, len(keys); i < n; i++ {
		role := uint32(keys[i] >> 32) //nolint:gosec // its upper half
		if i == 0 || uint32(keys[i-1]>>32) != role {
			keys = append(keys, stackKey(role, 0))
			continue
		}
		keys = append(keys, stackKey(role, r.functions.common(uint32(keys[i-1]), uint32(keys[i])))) //nolint:gosec // their lower halves
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	v := &vertices{tree: newTree(len(keys)), keys: append([]uint64{0}, keys...)}
	r.vertices = v
	var path []uint32
	for i := 1; i < len(v.keys); i++ {
		vertex := uint32(i) //nolint:gosec // memory has room for fewer
		for len(path) > 0 && !r.isBelow(path[len(path)-1], vertex) {
			path = path[:len(path)-1]
		}
		parent := uint32(0)
		if len(path) > 0 {
			parent = path[len(path)-1]
		}
		v.add(parent)
		path = append(path, vertex)
	}
	n := v.size()
	v.through, v.ends, v.throughThreads, v.endThreads = make([]int, n), make([]int, n), make([]int, n), make([]int, n)
	v.branches, v.isSorted = make([][]uint32, n), make([]bool, n)
	for i := 1; i < n; i++ {
		p := v.parent[i]
		v.branches[p] = append(v.branches[p], uint32(i)) //nolint:gosec // as above
	}
}

// isBelow reports whether a vertex is in the subtree of another one, which precedes it.
func (r *result) isBelow(outer, inner uint32) bool {
	v := r.vertices
	return v.role(outer) == v.role(inner) && v.function(inner) <= r.functions.last[v.function(outer)]
}

// countVertices counts the targets and threads of each vertex.
func (r *result) countVertices() {
	v := r.vertices
	for _, c := range r.classes {
		for i := range c.threads {
			t := &c.threads[i]
			vertex := v.vertex(stackKey(t.role, t.function))
			v.endThreads[vertex] += t.threads
			if n := len(c.stacks); n > 0 && c.stacks[n-1].vertex == vertex {
				c.stacks[n-1].threads += t.threads
				c.stacks[n-1].crashed = c.stacks[n-1].crashed || t.crashed
				continue
			}
			c.stacks = append(c.stacks, classStack{vertex, t.threads, t.crashed})
			v.ends[vertex] += len(c.units)
			v.through[vertex] += len(c.units)
			if n := len(c.stacks); n > 1 {
				// The ancestors of both count once.
				v.through[v.common(c.stacks[n-2].vertex, vertex)] -= len(c.units)
			}
		}
	}
	copy(v.throughThreads, v.endThreads)
	sum(v.tree, v.through)
	sum(v.tree, v.throughThreads)
}

// parting is where a class parts from the others.
type parting struct {
	// stack is the vertex of the stack of the class that the fewest others have; 0: it has none.
	stack uint32
	// missing is the vertex of a stack that the class has not, where that tells more; 0: it does not.
	missing uint32
	// others is how many others have the stack, or miss it too.
	others int
	// last is the innermost vertex in common with others; 0: none. depth is its depth, -1: none.
	last  uint32
	depth int
	isAny bool // else all others have the stacks of the class
}

// makePartings finds where each class parts from the others.
func (r *result) makePartings() {
	r.makeVertices()
	r.countVertices()
	v := r.vertices
	var frequent []uint32 // stacks, the most frequent first
	for i := range v.ends {
		if v.ends[i] > 0 {
			frequent = append(frequent, uint32(i)) //nolint:gosec // memory has room for fewer
		}
	}
	slices.SortStableFunc(frequent, func(a, b uint32) int { return cmp.Compare(v.ends[b], v.ends[a]) })
	has := make([]int, v.size()) // the last class that has the stack
	for i, c := range r.classes {
		for _, s := range c.stacks {
			has[s.vertex] = i + 1
		}
		r.rarest(c)
		without := 0
		if c.parting.stack != 0 {
			without = r.readable - v.ends[c.parting.stack]
		}
		c.parting.isAny = without > 0
		k := slices.IndexFunc(frequent, func(s uint32) bool { return has[s] != i+1 })
		if r.isCompared(c) && k >= 0 && v.ends[frequent[k]] > without {
			r.miss(c, frequent[k])
		}
	}
}

// rarest finds the stack of a class that the fewest others have. Of equally rare ones it is one of a thread that
// crashed, then the one that parts from the others the furthest out, then the first.
func (r *result) rarest(c *class) {
	v, p := r.vertices, &c.parting
	*p = parting{others: r.readable, depth: -1}
	isCrashed := false
	for i := range c.stacks {
		s := &c.stacks[i]
		others := v.ends[s.vertex] - len(c.units)
		if p.stack != 0 && others > p.others {
			continue
		}
		last := r.lastCommon(s.vertex)
		if p.stack == 0 || cmp.Or(cmp.Compare(others, p.others), compareTrue(!s.crashed, !isCrashed), cmp.Compare(r.depth(last), p.depth)) < 0 {
			p.stack, p.others, p.last, p.depth, isCrashed = s.vertex, others, last, r.depth(last), s.crashed
		}
	}
}

// lastCommon is the innermost vertex on a stack through which those targets have a thread that do not have the stack.
func (r *result) lastCommon(stack uint32) uint32 {
	v := r.vertices
	return v.nearest(stack, func(a uint32) bool { return v.through[a] > v.ends[stack] })
}

// depth is how many frames a vertex has; -1: it is the root.
func (r *result) depth(vertex uint32) int {
	if vertex == 0 {
		return -1
	}
	return int(r.functions.depth[r.vertices.function(vertex)])
}

// miss makes a class part at a stack that it has not.
func (r *result) miss(c *class, stack uint32) {
	v, p := r.vertices, &c.parting
	p.missing, p.last, p.isAny = stack, 0, true
	p.others = r.readable - len(c.units) - v.ends[stack]
	i, _ := slices.BinarySearchFunc(c.stacks, stack, func(s classStack, vertex uint32) int { return cmp.Compare(s.vertex, vertex) })
	for _, s := range c.stacks[max(i-1, 0):min(i+1, len(c.stacks))] {
		if common := v.common(stack, s.vertex); r.depth(common) > r.depth(p.last) {
			p.last = common
		}
	}
	p.depth = r.depth(p.last)
}

// writePartings says where each class but the last one that was read parts from the others.
func (r *result) writePartings() {
	last := -1
	for i, c := range r.classes {
		if r.isCompared(c) {
			last = i
		}
	}
	for i, c := range r.classes {
		out := &r.out.Classes[i]
		if r.isCompared(c) && i != last && c.parting.isAny {
			out.PartsAt = r.partsAt(c)
		}
		out.Signature = r.signature(c, out.PartsAt != nil)
	}
}

// partsAt describes a parting.
func (r *result) partsAt(c *class) *trace.Parting {
	v, p := r.vertices, &c.parting
	stack := cmp.Or(p.missing, p.stack)
	out := &trace.Parting{Role: r.roles[v.role(stack)], Node: node(v.function(stack)), IsMissing: p.missing != 0, Last: -1, Here: -1}
	if p.last != 0 {
		out.Last = node(v.function(p.last))
	}
	next := r.next(p.last, stack)
	switch {
	case out.IsMissing:
		out.There = []trace.PartingBranch{{Node: next, Targets: v.ends[stack], Threads: v.endThreads[stack]}}
	case p.last != 0:
		out.Here = next
		out.There, out.More = r.branches(c, p.last, stack)
	default:
		out.Here = next
	}
	return out
}

// next is the index of the frame that follows a vertex on a stack; -1: the stack ends there.
func (r *result) next(last, stack uint32) int {
	f, depth := r.vertices.function(stack), uint32(max(r.depth(last), 0))+1 //nolint:gosec // not negative
	if r.functions.depth[f] < depth {
		return -1
	}
	return node(r.functions.ancestor(f, depth))
}

// branches are the frames at which other targets went on from a vertex, and more is how many there are beside them.
func (r *result) branches(c *class, last, stack uint32) (list []trace.PartingBranch, more int) {
	v := r.vertices
	if !v.isSorted[last] {
		v.isSorted[last] = true
		slices.SortStableFunc(v.branches[last], func(a, b uint32) int { return cmp.Compare(v.through[b], v.through[a]) })
	}
	own := r.ownBranches(c, last)
	more = len(v.branches[last])
	for vertex, b := range own {
		if vertex != last && v.through[vertex] == b.Targets {
			more-- // no other target has it
		}
	}
	isThere := func(vertex uint32) bool { return vertex != stack && !r.isAncestor(vertex, stack) }
	if last != stack {
		if here := v.ancestor(stack, v.depth[last]+1); v.through[here] > own[here].Targets {
			more--
		}
		if others := v.ends[last] - own[last].Targets; others > 0 {
			list = append(list, trace.PartingBranch{Node: -1, Targets: others, Threads: v.endThreads[last] - own[last].Threads})
			more++
		}
	}
	for _, vertex := range v.branches[last] {
		b := trace.PartingBranch{Node: r.next(last, vertex), Targets: v.through[vertex], Threads: v.throughThreads[vertex]}
		if n := len(list); n >= trace.MaxBranches && compareBranches(&list[n-1], &b) < 0 {
			break // so are those that follow
		}
		b.Targets, b.Threads = b.Targets-own[vertex].Targets, b.Threads-own[vertex].Threads
		if b.Targets == 0 || !isThere(vertex) {
			continue
		}
		i, _ := slices.BinarySearchFunc(list, b, func(x, y trace.PartingBranch) int { return compareBranches(&x, &y) })
		list = slices.Insert(list, i, b)
		list = list[:min(len(list), trace.MaxBranches)]
	}
	return list, more - len(list)
}

// compareBranches orders branches, the ones with the most targets first.
func compareBranches(a, b *trace.PartingBranch) int {
	return cmp.Or(cmp.Compare(b.Targets, a.Targets), cmp.Compare(a.Node, b.Node))
}

// isAncestor reports whether a vertex is an ancestor of another one.
func (r *result) isAncestor(outer, inner uint32) bool {
	v := r.vertices
	return v.depth[outer] < v.depth[inner] && v.ancestor(inner, v.depth[outer]) == outer
}

// ownBranches are the branches from a vertex that the class itself has, by their vertices; of the vertex itself
// the stacks that end there.
func (r *result) ownBranches(c *class, last uint32) map[uint32]trace.PartingBranch {
	v, own := r.vertices, map[uint32]trace.PartingBranch{}
	start, _ := slices.BinarySearchFunc(c.stacks, last, func(s classStack, vertex uint32) int { return cmp.Compare(s.vertex, vertex) })
	for _, s := range c.stacks[start:] {
		if !r.isBelow(last, s.vertex) {
			break
		}
		branch := last
		if s.vertex != last {
			branch = v.ancestor(s.vertex, v.depth[last]+1)
		}
		b := own[branch]
		own[branch] = trace.PartingBranch{Targets: len(c.units), Threads: b.Threads + s.threads}
	}
	return own
}
