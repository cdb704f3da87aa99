package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteFolded writes the stacks of one event, a line for each, in the form that
// flame graphs are made from: the thread's name, the functions from the outermost
// on, and the sum of the weights. Lines are in the order of their bytes.
func (r *Profile) WriteFolded(w io.Writer, event string) error {
	at := slices.IndexFunc(r.values, func(v profileValue) bool { return v.name == event })
	if at < 0 {
		return fmt.Errorf("%s: no event %s", r.p.Path, event)
	}
	v := &r.values[at]
	f := folder{r: r, names: map[string]int32{}, child: map[foldedKey]int32{}, nodes: make([]foldedNode, 1), known: map[foldedStack]int32{}}
	f.ofFunction = make([]int32, len(r.functions))
	for i := range r.functions {
		name := r.functions[i].name
		if r.functions[i].isKernel {
			name += "_[k]"
		}
		f.ofFunction[i] = f.name(name)
	}
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		if s.Event != v.event {
			continue
		}
		node := f.stack(f.under(0, f.name(r.comm(s))), s.Stack)
		f.nodes[node].count = add(f.nodes[node].count, v.of(s))
	}
	b := NewPrinter(w)
	f.write(b)
	return b.Flush()
}

// folder puts stacks of equal names together.
type folder struct {
	r          *Profile
	texts      []string
	names      map[string]int32
	ofFunction []int32
	child      map[foldedKey]int32
	nodes      []foldedNode
	known      map[foldedStack]int32
	missing    []uint32
}

// A foldedStack is a stack under the name of a thread.
type foldedStack struct {
	root  int32
	stack uint32
}

type foldedKey struct{ parent, name int32 }

type foldedNode struct {
	name     int32
	children []int32
	count    uint64 // of the stacks that end here
}

// name is the number of a name in a line, where ";" stands between names.
func (f *folder) name(text string) int32 {
	text = strings.ReplaceAll(text, ";", ":")
	if text == "" {
		text = "[unknown]"
	}
	i, ok := f.names[text]
	if !ok {
		i = int32(len(f.texts))
		f.names[text] = i
		f.texts = append(f.texts, text)
	}
	return i
}

// stack is the node of a stack under a thread's name. Samples share their callers,
// so most of it is known.
func (f *folder) stack(root int32, stack uint32) int32 {
	f.missing = f.missing[:0]
	node := root
	for n := stack; n != 0; n = f.r.p.Stacks[n].Caller {
		if at, ok := f.known[foldedStack{root, n}]; ok {
			node = at
			break
		}
		f.missing = append(f.missing, n)
	}
	for i := len(f.missing) - 1; i >= 0; i-- {
		functions := f.r.functionOf[f.r.p.Stacks[f.missing[i]].Frame]
		for k := len(functions) - 1; k >= 0; k-- {
			node = f.under(node, f.ofFunction[functions[k]])
		}
		f.known[foldedStack{root, f.missing[i]}] = node
	}
	return node
}

func (f *folder) under(parent, name int32) int32 {
	key := foldedKey{parent, name}
	n, ok := f.child[key]
	if !ok {
		n = int32(len(f.nodes))
		f.child[key] = n
		f.nodes = append(f.nodes, foldedNode{name: name})
		f.nodes[parent].children = append(f.nodes[parent].children, n)
	}
	return n
}

// An entry is what follows a stack in lines: the end of one, or a name with what
// is under it. Entries in the order of their texts give lines in theirs.
type foldedEntry struct {
	text string
	node int32 // 0: the line ends
}

func (f *folder) entries(node int32) []foldedEntry {
	var list []foldedEntry
	for _, c := range f.nodes[node].children {
		n := &f.nodes[c]
		if n.count > 0 {
			list = append(list, foldedEntry{f.texts[n.name] + " " + strconv.FormatUint(n.count, 10), 0})
		}
		if len(n.children) > 0 {
			list = append(list, foldedEntry{f.texts[n.name] + ";", c})
		}
	}
	slices.SortFunc(list, func(a, b foldedEntry) int { return strings.Compare(a.text, b.text) })
	return list
}

// write writes the lines. Stacks may be as deep as --max-stack says, so what is
// open is kept in a list.
func (f *folder) write(b *Printer) {
	var prefix []byte
	type level struct {
		entries []foldedEntry
		length  int // of the prefix
	}
	open := []level{{entries: f.entries(0)}}
	for len(open) > 0 {
		top := &open[len(open)-1]
		if len(top.entries) == 0 {
			open = open[:len(open)-1]
			continue
		}
		e := top.entries[0]
		top.entries = top.entries[1:]
		prefix = append(prefix[:top.length], e.text...)
		if e.node != 0 {
			open = append(open, level{f.entries(e.node), len(prefix)})
			continue
		}
		b.printf("%s\n", prefix)
	}
}
