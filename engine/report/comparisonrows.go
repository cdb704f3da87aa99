// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// treeRow is a chain of the tree, with who is in it, or how many are left out in its place.
type treeRow struct {
	indent           int
	nodes            []int
	text, who        string
	targets, threads int
}

// treeRows are the rows of the tree, at most so many, and the number of the others.
func (t *comparisonText) treeRows(most int) (rows []treeRow, left int) {
	roles := t.rolesOfOne()
	t.tree.each(t.branchesOfNode(), func(b *branch) bool {
		r := treeRow{indent: 2 * min(b.depth, maxIndent)}
		switch {
		case len(rows) == most:
			left++
			return true
		case b.leftOut > 0:
			r.text = plural(b.leftOut, "branch", "branches") + " more (-v)"
		default:
			n := &t.c.Functions[b.nodes[0]]
			r.nodes, r.targets, r.threads, r.who = slices.Clone(b.nodes), n.Targets, n.Threads, t.whoIsIn(n)
			if t.readable < 2 {
				r.who = roles[b.nodes[len(b.nodes)-1]]
			}
		}
		rows = append(rows, r)
		return true
	})
	t.nameRows(rows)
	return rows, left
}

// nameRows makes the texts of rows, with room for who is in them.
func (t *comparisonText) nameRows(rows []treeRow) {
	most := 0
	for i := range rows {
		most = max(most, utf8.RuneCountInString(rows[i].who)+2)
	}
	for i := range rows {
		r := &rows[i]
		room := comparisonWidth - t.countsWidth() - r.indent
		if r.who != "" {
			room -= most
		}
		if len(r.nodes) > 0 {
			r.text = t.chain(r.nodes, -1, max(room, minChain), leastTreeName)
		}
	}
}

// rolesOfOne has the roles of the threads that stand in a node, and whether they move, where all targets are in
// one class.
func (t *comparisonText) rolesOfOne() map[int]string {
	largest := t.largest()
	if t.readable != 1 || largest < 0 {
		return nil
	}
	roles := map[int]string{}
	for i := range t.c.Classes[largest].Threads {
		th := &t.c.Classes[largest].Threads[i]
		text := cutShort(escape.Text(th.Role), textName/2)
		if marks := threadMarks(th); marks != "" {
			text += ": " + marks
		}
		switch before := roles[th.Node]; {
		case before == "":
			roles[th.Node] = text
		case len(before) < textName:
			roles[th.Node] += ", " + text
		case !strings.HasSuffix(before, more):
			roles[th.Node] += more
		}
	}
	return roles
}

// more stands for roles that are left out.
const more = " and others"

// countsWidth is the width of the numbers before a row of the tree.
func (t *comparisonText) countsWidth() int {
	if t.c.ByThread {
		return len("threads ")
	}
	return len("targets threads  ")
}

// branches writes the tree, folded to where classes part.
func (t *comparisonText) branches() {
	most := maxRows
	if t.o.Verbose {
		most = -1
	}
	rows, left := t.treeRows(most)
	if len(rows) == 0 {
		return
	}
	title := "where classes part"
	if t.readable < 2 {
		title = "stacks"
	}
	counts := "targets threads  "
	if t.c.ByThread {
		counts = "threads "
	}
	t.printf("\n%s\n", t.header(counts+title))
	column := 0 // behind the longest row with somebody
	for _, r := range rows {
		if r.who != "" {
			column = max(column, r.indent+utf8.RuneCountInString(r.text))
		}
	}
	for _, r := range rows {
		t.treeRow(&r, column)
	}
	note := func(text string) { t.printf("%*s%s\n", t.countsWidth(), "", t.faint(text)) }
	if left > 0 {
		note(plural(left, "branch", "branches") + " more (-v)")
	}
	if t.tree.folded > 0 {
		note(plural(t.tree.folded, "other stack is", "other stacks are") + " in all classes")
	}
}

// treeRow writes a row. Who is in it stands in a column.
func (t *comparisonText) treeRow(r *treeRow, column int) {
	if r.targets == 0 {
		t.printf("%*s%s\n", t.countsWidth()+r.indent, "", t.faint(r.text))
		return
	}
	t.printf("%7d ", r.targets)
	if !t.c.ByThread {
		t.printf("%7d  ", r.threads)
	}
	t.printf("%*s%s", r.indent, "", t.function(r.text))
	if r.who != "" {
		t.printf("%*s  %s", max(column-r.indent-utf8.RuneCountInString(r.text), 0), "", t.place(r.who))
	}
	t.printf("\n")
}

const (
	// maxIndent is the depth to which branches are indented.
	maxIndent = 12
	// minChain is the room that a chain has at least.
	minChain = 28
	// leastTreeName is how many characters of the first name of a chain are kept.
	leastTreeName = 8
)

func (t *comparisonText) branchesOfNode() int {
	if t.o.Verbose {
		return 0
	}
	return maxBranches
}

// whoIsIn names the targets that have a thread in a node; "": all have.
func (t *comparisonText) whoIsIn(n *trace.CallNode) string {
	switch {
	case n.ClassCount >= t.readable:
		return ""
	case n.Classes == nil:
		return plural(n.ClassCount, "class", "classes")
	}
	var targets []int
	for _, class := range n.Classes {
		targets = append(targets, t.c.Classes[class].Targets...)
	}
	slices.Sort(targets)
	return t.names.of(targets, 28)
}
