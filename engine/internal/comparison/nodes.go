// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// standsOf are the units that have a thread at each of some nodes, which are sorted and differ.
type standsOf struct {
	class, targets int
	nodes          []uint32
}

// writeNodes fills the trees of the comparison.
func (r *result) writeNodes() {
	var byFunction, byLine, lineClasses []standsOf
	functionThreads, lineThreads := make([]int, r.functions.size()), make([]int, r.lines.size())
	for i, c := range r.classes {
		one := standsOf{class: i, targets: len(c.units)}
		for k := range c.threads {
			one.nodes = append(one.nodes, c.threads[k].function)
			functionThreads[c.threads[k].function] += c.threads[k].threads
		}
		byFunction = append(byFunction, one.sorted())
		all := standsOf{class: i}
		for _, v := range c.variants {
			one := standsOf{class: i, targets: len(v.units)}
			for k := range v.threads {
				one.nodes = append(one.nodes, v.threads[k].line)
				lineThreads[v.threads[k].line] += v.threads[k].threads
			}
			one = one.sorted()
			byLine, all.nodes = append(byLine, one), append(all.nodes, one.nodes...)
		}
		lineClasses = append(lineClasses, all.sorted())
	}
	r.out.Functions = callNodes(r.functions, functionThreads, byFunction, byFunction)
	for i := range r.out.Functions {
		r.out.Functions[i].Frame = r.attributes[i+1]
	}
	r.out.Lines = callNodes(r.lines, lineThreads, byLine, lineClasses)
	for i := range r.out.Lines {
		n := &r.out.Lines[i]
		n.Frame, n.Function = r.part.frames[r.lines.label[i+1]], node(r.function[i+1])
	}
}

func (s standsOf) sorted() standsOf {
	slices.Sort(s.nodes)
	s.nodes = slices.Compact(s.nodes)
	return s
}

// callNodes are the nodes of a tree. threads are the threads that stand at each node; targets and classes are
// complete, and of the classes each once.
func callNodes(t *ordered, threads []int, targets, classes []standsOf) []trace.CallNode {
	through, targetCount, classCount := slices.Clone(threads), make([]int, t.size()), make([]int, t.size())
	sum(t.tree, through)
	for i := range targets {
		targets[i].count(t, targetCount, targets[i].targets)
	}
	for i := range classes {
		classes[i].count(t, classCount, 1)
	}
	sum(t.tree, targetCount)
	sum(t.tree, classCount)
	list := make([]trace.CallNode, t.size()-1)
	for i := range list {
		list[i] = trace.CallNode{
			Parent: node(t.parent[i+1]), Threads: through[i+1], Ends: threads[i+1], Targets: targetCount[i+1], ClassCount: classCount[i+1],
		}
	}
	listClasses(t, list, classes)
	return list
}

// count counts units once at each node that their stacks lead through, when the counts of children are added.
func (s *standsOf) count(t *ordered, counts []int, units int) {
	for i, n := range s.nodes {
		counts[n] += units
		if i > 0 {
			counts[t.common(s.nodes[i-1], n)] -= units
		}
	}
}

// maxNodeClasses bounds the classes in the lists of all nodes together.
const maxNodeClasses = 1 << 24

// listClasses lists the classes of each node.
func listClasses(t *ordered, list []trace.CallNode, classes []standsOf) {
	lengths := make([]int, len(list))
	for i := range list {
		lengths[i] = list[i].ClassCount
	}
	longest := longestList(lengths, maxNodeClasses)
	total := 0
	for i := range list {
		if list[i].ClassCount <= longest {
			total += list[i].ClassCount
		}
	}
	all := make([]int, total)
	for i := range list {
		if n := list[i].ClassCount; n <= longest {
			list[i].Classes, all = all[:0:n], all[n:]
		}
	}
	met := make([]int, t.size()) // the last class
	for _, c := range classes {
		for _, n := range c.nodes {
			// Of a node's callers none has fewer classes.
			for ; n != 0 && met[n] != c.class+1 && list[n-1].ClassCount <= longest; n = t.parent[n] {
				met[n] = c.class + 1
				list[n-1].Classes = append(list[n-1].Classes, c.class)
			}
		}
	}
}
