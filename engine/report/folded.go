// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/internal/escape"
	"github.com/unwindd/unwindd/internal/trie"
)

// WriteFolded writes the stacks of one event, a line for each, in the format that flame
// graphs are made from: the thread's name, the functions from the outermost on, and the sum
// of the weights; bottom-up, the functions from the innermost on, and the thread's name. Functions of the kernel end with _[k], functions of accelerators with _[G].
// Lines are in the order of their bytes.
func (r *Profile) WriteFolded(w io.Writer, event string) error {
	index := slices.IndexFunc(r.values, func(v profileValue) bool { return v.name == event })
	if index < 0 {
		return fmt.Errorf("%s: no event %s", r.p.Path, event)
	}
	f := newFolder(r)
	if r.isInverted() {
		f.addInverted(&r.values[index])
	} else {
		f.addSamples(&r.values[index])
	}
	f.findChildren()
	f.rankTexts()
	b := newOutput(w)
	f.write(b)
	return b.Flush()
}

// folder merges stacks of equal names: a tree of names, names of threads first.
type folder struct {
	r          *Profile
	texts      []string // of names
	names      map[string]uint32
	ofFunction []uint32 // names
	tree       *trie.Trie
	nodes      []foldedNode // of the tree
	byStack    stackNodes

	// first and children list the children of a node n: children[first[n]:first[n+1]].
	first, children []uint32
	last, inner     []int32 // by name: the order of the text that ends a stack with it, and of one that continues
	isPrefix        []bool  // by name: a text that ends a stack with it may begin another
}

// foldedNode is a name below others.
type foldedNode struct {
	parent, name uint32
	count        uint64 // of the stacks that end here
}

func newFolder(r *Profile) *folder {
	capacity := len(r.p.Threads)
	for _, s := range r.p.Stacks[1:] {
		capacity += len(r.functionOf[s.Frame])
	}
	f := &folder{
		r: r, names: map[string]uint32{}, tree: trie.New(capacity), nodes: make([]foldedNode, 1, 1+min(capacity, trie.MaxCapacity)),
		ofFunction: make([]uint32, len(r.functions)), byStack: newStackNodes(r.p),
	}
	for i := range r.functions {
		f.ofFunction[i] = f.name(r.functions[i].marked())
	}
	return f
}

// addSamples adds the samples of a value's event, grouped by the thread's name: stacks are
// cached under one name at a time.
func (f *folder) addSamples(v *profileValue) {
	var roots [][]uint32 // samples
	nodes := map[uint32]int{}
	for i := range f.r.p.Samples {
		s := &f.r.p.Samples[i]
		if !v.has(s) {
			continue
		}
		root := f.under(0, f.name(f.r.comm(s)))
		index, ok := nodes[root]
		if !ok {
			index = len(roots)
			nodes[root] = index
			roots = append(roots, nil)
		}
		roots[index] = append(roots[index], uint32(i))
	}
	for _, samples := range roots {
		root := f.under(0, f.name(f.r.comm(&f.r.p.Samples[samples[0]])))
		for _, i := range samples {
			s := &f.r.p.Samples[i]
			n := &f.nodes[f.stack(root, s.Stack)]
			n.count = add(n.count, v.amount(s))
		}
	}
}

// addInverted adds the samples of a value's event with their innermost functions first.
func (f *folder) addInverted(v *profileValue) {
	for i := range f.r.p.Samples {
		s := &f.r.p.Samples[i]
		if !v.has(s) {
			continue
		}
		name := f.name(f.r.comm(s))
		k := &f.byStack.known[s.Stack]
		if k.node == 0 || k.root != name {
			*k = stackNode{name, f.inverted(name, s.Stack)}
		}
		n := &f.nodes[k.node]
		n.count = add(n.count, v.amount(s))
	}
}

// inverted is the node of a stack from its innermost function to a thread's name.
func (f *folder) inverted(name, stack uint32) (node uint32) {
	for n := stack; n != 0; n = f.r.p.Stacks[n].Caller {
		for _, function := range f.r.functionOf[f.r.p.Stacks[n].Frame] {
			node = f.under(node, f.ofFunction[function])
		}
	}
	return f.under(node, name)
}

// name is the number of a name in a line, where ";" stands between names.
func (f *folder) name(text string) uint32 {
	text = strings.ReplaceAll(text, ";", ":")
	text = cmp.Or(text, "[unknown]")
	i, ok := f.names[text]
	if !ok {
		i = uint32(len(f.texts))
		f.names[text] = i
		f.texts = append(f.texts, text)
	}
	return i
}

// stack is the node of a stack under a thread's name.
func (f *folder) stack(root, stack uint32) uint32 {
	return f.byStack.find(root, stack, func(node, frame uint32) uint32 {
		functions := f.r.functionOf[frame]
		for k := len(functions) - 1; k >= 0; k-- {
			node = f.under(node, f.ofFunction[functions[k]])
		}
		return node
	})
}

func (f *folder) under(parent, name uint32) uint32 {
	n, isNew := f.tree.Child(parent, name)
	if isNew {
		f.nodes = append(trie.Grown(f.nodes), foldedNode{parent: parent, name: name})
	}
	return n
}

// findChildren lists the children of each node.
func (f *folder) findChildren() {
	f.first = make([]uint32, len(f.nodes)+1)
	for _, n := range f.nodes[1:] {
		f.first[n.parent+1]++
	}
	for i := 1; i < len(f.first); i++ {
		f.first[i] += f.first[i-1]
	}
	f.children = make([]uint32, len(f.nodes)-1)
	next := slices.Clone(f.first)
	for i, n := range f.nodes[1:] {
		f.children[next[n.parent]] = uint32(i) + 1
		next[n.parent]++
	}
}

// rankTexts sorts the texts that may follow a stack in a line by their bytes: each name with
// the separator before the next name, or with the sum of the weights.
func (f *folder) rankTexts() {
	type ranked struct {
		text string
		rank *int32
	}
	f.last, f.inner, f.isPrefix = make([]int32, len(f.texts)), make([]int32, len(f.texts)), make([]bool, len(f.texts))
	list := make([]ranked, 0, 2*len(f.texts))
	for i, text := range f.texts {
		list = append(list, ranked{text + " ", &f.last[i]}, ranked{text + ";", &f.inner[i]})
	}
	slices.SortFunc(list, func(a, b ranked) int { return strings.Compare(a.text, b.text) })
	for i, r := range list {
		*r.rank = int32(i)
	}
	for i, text := range f.texts {
		// Texts that begin with it follow it. A sum may come before or behind them.
		rank := int(f.last[i]) + 1
		f.isPrefix[i] = rank < len(list) && strings.HasPrefix(list[rank].text, text+" ")
	}
}

// foldedEntry is a continuation of a stack in lines: its end, or a name with the names under
// it. Entries in the order of their texts give lines in their order.
type foldedEntry struct {
	node   uint32
	rank   int32
	isLast bool // the line ends
}

// entries appends the continuations of a node's stack, in their order.
func (f *folder) entries(list []foldedEntry, node uint32) []foldedEntry {
	first := len(list)
	isRanked := true
	for _, c := range f.children[f.first[node]:f.first[node+1]] {
		n := &f.nodes[c]
		if n.count > 0 {
			list = append(list, foldedEntry{c, f.last[n.name], true})
			isRanked = isRanked && !f.isPrefix[n.name]
		}
		if f.first[c] < f.first[c+1] {
			list = append(list, foldedEntry{c, f.inner[n.name], false})
		}
	}
	switch own := list[first:]; {
	case len(own) < 2:
	case isRanked:
		slices.SortFunc(own, func(a, b foldedEntry) int { return cmp.Compare(a.rank, b.rank) })
	default:
		slices.SortFunc(own, func(a, b foldedEntry) int { return strings.Compare(f.entryText(a), f.entryText(b)) })
	}
	return list
}

// entryText is the text of an entry in a line.
func (f *folder) entryText(e foldedEntry) string {
	n := &f.nodes[e.node]
	if e.isLast {
		return f.texts[n.name] + " " + strconv.FormatUint(n.count, 10)
	}
	return f.texts[n.name] + ";"
}

// write writes the lines. Stacks may be as deep as --max-stack allows, so the open nodes are
// in a list, not on the call stack.
func (f *folder) write(b output) {
	for i, text := range f.texts {
		f.texts[i] = escape.Text(text)
	}
	type level struct {
		next, end int // of its entries
		length    int // of the line before them
	}
	var line []byte
	entries := f.entries(nil, 0)
	open := []level{{end: len(entries)}}
	for len(open) > 0 {
		top := &open[len(open)-1]
		if top.next == top.end {
			open = open[:len(open)-1]
			continue
		}
		e := entries[top.next]
		top.next++
		n := &f.nodes[e.node]
		line = append(line[:top.length], f.texts[n.name]...)
		if e.isLast {
			line = strconv.AppendUint(append(line, ' '), n.count, 10)
			_, _ = b.Write(append(line, '\n'))
			continue
		}
		line = append(line, ';')
		start := top.end
		entries = f.entries(entries[:start], e.node)
		open = append(open, level{start, len(entries), len(line)})
	}
}
