// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// function is by what frames are the same by functions: whether a call was inlined, and where its line is, does not
// count.
type function struct {
	name, module, runtime string
	offset                uint64 // of a frame without a name
	isWave                bool
}

func functionOf(f *trace.ComparedFrame) function {
	out := function{name: f.Function, module: f.Module, runtime: f.Runtime, isWave: f.IsWave}
	if f.Function == "" {
		out.offset = f.Offset
	}
	return out
}

// compareFunctions orders functions by name. Frames without a name come after those with one.
func compareFunctions(a, b *function) int {
	return cmp.Or(compareTrue(a.name == "", b.name == ""), strings.Compare(a.name, b.name), strings.Compare(a.module, b.module),
		cmp.Compare(a.offset, b.offset), strings.Compare(a.runtime, b.runtime), compareTrue(a.isWave, b.isWave))
}

func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// compareFrames orders frames by function and line.
func compareFrames(a, b *trace.ComparedFrame) int {
	f, g := functionOf(a), functionOf(b)
	if c := compareFunctions(&f, &g); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Offset, b.Offset),
		compareTrue(a.IsInlined, b.IsInlined), compareTrue(a.IsGuess, b.IsGuess), strings.Compare(a.Short, b.Short))
}

// ranked sorts a number of things, and returns their order and the place of each.
func ranked(n int, compare func(a, b uint32) int) (sorted, rank []uint32) {
	sorted, rank = make([]uint32, n), make([]uint32, n)
	for i := range sorted {
		sorted[i] = uint32(i) //nolint:gosec // memory has room for fewer
	}
	slices.SortFunc(sorted, compare)
	for i, k := range sorted {
		rank[k] = uint32(i) //nolint:gosec // as above
	}
	return sorted, rank
}

// trees are the stacks of a comparison: by lines, and by functions.
type trees struct {
	lines, functions *ordered
	// function is the node of functions of each node of lines.
	function []uint32
	// attributes are the frames of the nodes of functions.
	attributes []trace.ComparedFrame
}

// newTrees orders the stacks of a Part.
func newTrees(p *Part) *trees {
	frames, rank := ranked(len(p.frames), func(a, b uint32) int { return compareFrames(&p.frames[a], &p.frames[b]) })
	t := &trees{lines: order(p.parent, p.frame, rank)}
	// Frames of one function follow each other, so that functions are numbered in their order.
	functionOfFrame, count := make([]uint32, len(frames)), uint32(0)
	for i, f := range frames {
		if i > 0 && functionOf(&p.frames[f]) != functionOf(&p.frames[frames[i-1]]) {
			count++
		}
		functionOfFrame[f] = count
	}
	t.byFunctions(functionOfFrame, int(count)+1)
	t.describe(p)
	return t
}

// byFunctions derives the tree by functions from the one by lines.
func (t *trees) byFunctions(functionOfFrame []uint32, count int) {
	type edge struct{ parent, function uint32 }
	known := map[edge]uint32{}
	parent, label := make([]uint32, 1), make([]uint32, 1)
	t.function = make([]uint32, t.lines.size())
	for i := 1; i < t.lines.size(); i++ {
		e := edge{t.function[t.lines.parent[i]], functionOfFrame[t.lines.label[i]]}
		node, ok := known[e]
		if !ok {
			node = uint32(len(parent)) //nolint:gosec // memory has room for fewer
			known[e] = node
			parent, label = append(parent, e.parent), append(label, e.function)
		}
		t.function[i] = node
	}
	rank := make([]uint32, count)
	for i := range rank {
		rank[i] = uint32(i) //nolint:gosec // as above
	}
	t.functions = order(parent, label, rank)
	for i, node := range t.function {
		t.function[i] = t.functions.number[node]
	}
}

// describe finds the frames of the nodes by functions. A guess in one of the stacks is one in the node, and
// a call is inlined where it is in all.
func (t *trees) describe(p *Part) {
	t.attributes = make([]trace.ComparedFrame, t.functions.size())
	isKnown := make([]bool, t.functions.size())
	for i := 1; i < t.lines.size(); i++ {
		f, node := &p.frames[t.lines.label[i]], t.function[i]
		out := &t.attributes[node]
		if !isKnown[node] {
			isKnown[node] = true
			*out = *f
			out.File, out.Line, out.Column = "", 0, 0
			if f.Function != "" {
				out.Offset = 0
			}
			continue
		}
		out.IsInlined = out.IsInlined && f.IsInlined
		out.IsGuess = out.IsGuess || f.IsGuess
		if out.Short == "" || f.Short != "" && f.Short < out.Short {
			out.Short = f.Short
		}
	}
}

// only leaves out the nodes that are not used. The new numbers of nodes are in the trees that it returns.
func (t *trees) only(usedLines, usedFunctions []bool) *trees {
	for i, isUsed := range usedLines {
		if isUsed {
			usedFunctions[t.function[i]] = true
		}
	}
	l, f := t.lines.only(usedLines), t.functions.only(usedFunctions)
	function, attributes := make([]uint32, l.size()), make([]trace.ComparedFrame, f.size())
	for i := range l.number {
		if l.number[i] != 0 {
			function[l.number[i]] = f.number[t.function[i]]
		}
	}
	for i := range f.number {
		if f.number[i] != 0 {
			attributes[f.number[i]] = t.attributes[i]
		}
	}
	return &trees{l, f, function, attributes}
}
