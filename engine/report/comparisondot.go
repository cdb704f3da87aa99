// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/internal/escape"
)

// dotColours fill the nodes of one class each, the first ones those of the smallest classes. They are of
// Graphviz's list for X11, light enough for black text.
var dotColours = []string{"lightcoral", "gold", "lightskyblue", "palegreen", "plum", "lightsalmon", "khaki", "paleturquoise", "thistle", "burlywood"}

// maxDotName bounds a name in a graph, in characters.
const maxDotName = 120

// dotFrames is how many frames a node of a graph names, of those that have no branch between them.
const dotFrames = 4

// WriteDOT writes the tree of stacks by functions as a graph in the language of Graphviz. Frames without a branch are one
// node. A node that targets of one class alone have is filled with its colour, one that all have is not filled.
func (c *Comparison) WriteDOT(w io.Writer) error {
	t := c.newText(NewPrinter(w), TextOptions{})
	t.printf("digraph comparison {\n")
	t.printf("  graph [rankdir=LR, label=%s, labelloc=t];\n", dotText(t.totals()))
	t.printf("  node [shape=box, style=filled, fillcolor=white, fontsize=10];\n")
	node := make([]int, len(c.c.Functions)) // in which a frame is
	tree := newBranches(c.c.Functions, t.readable, true)
	tree.each(0, func(b *branch) bool {
		for _, n := range b.nodes {
			node[n] = b.nodes[0]
		}
		t.dotNode(b)
		if b.parent >= 0 {
			n := &c.c.Functions[b.nodes[0]]
			t.printf("  n%d -> n%d [penwidth=%d];\n", node[b.parent], b.nodes[0], dotWidth(n.Targets, len(c.c.Targets)))
		}
		return t.check() == nil
	})
	t.printf("}\n")
	return t.Flush()
}

// dotWidth is the width of the line to a node, by the share of the targets.
func dotWidth(targets, all int) int { return 1 + 4*targets/max(all, 1) }

// dotNode writes a node for a chain of frames.
func (t *comparisonText) dotNode(b *branch) {
	n := &t.c.Functions[b.nodes[0]]
	var lines []string
	for i, node := range b.nodes {
		if i == dotFrames-1 && len(b.nodes) > dotFrames {
			lines = append(lines, t.gap(b.nodes[i:len(b.nodes)-1]))
			node = b.nodes[len(b.nodes)-1]
		}
		lines = append(lines, t.comparedName(&t.c.Functions[node].Frame, maxDotName))
		if len(lines) > dotFrames {
			break
		}
	}
	counts := t.count(n.Targets)
	if n.Threads != n.Targets {
		counts += ", " + plural(n.Threads, "thread", "threads")
	}
	lines = append(lines, counts)
	if who := t.whoIsIn(n); who != "" {
		lines = append(lines, who)
	}
	fill := ""
	switch {
	case len(n.Classes) == 1 && t.readable > 1:
		fill = ", fillcolor=" + dotColours[n.Classes[0]%len(dotColours)]
	case n.ClassCount < t.readable:
		fill = ", fillcolor=gray92"
	}
	classes := make([]string, 0, maxBranches)
	for i, class := range n.Classes {
		if i == maxBranches {
			classes = append(classes, fmt.Sprintf("and %d more", len(n.Classes)-i))
			break
		}
		classes = append(classes, strconv.Itoa(class+1))
	}
	tip := "classes " + strings.Join(classes, ", ")
	if n.Classes == nil {
		tip = plural(n.ClassCount, "class", "classes")
	}
	t.printf("  n%d [label=%s%s, tooltip=%s];\n", b.nodes[0], dotText(lines...), fill, dotText(tip))
}

// dotEscapes are the characters with a meaning in a text of Graphviz.
var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// dotText is lines as a text in the language of Graphviz.
func dotText(lines ...string) string {
	for i, l := range lines {
		lines[i] = dotEscapes.Replace(escape.Text(l))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
