// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// comparisonWidth is the width of text in columns: of a terminal.
const comparisonWidth = 80

// Bounds on the parts of a comparison as text, unless it is verbose.
const (
	maxFacts    = 3  // of a class
	maxThere    = 2  // branches that the others take
	maxBranches = 8  // of a node
	maxRows     = 50 // of the tree
)

// comparisonText writes a comparison for people.
type comparisonText struct {
	*Printer
	paint
	comparedFrames
	o     TextOptions
	top   int
	names *targetNames
	tree  *branches
	words *subjectWords
	// readable is the number of classes with stacks.
	readable   int
	hasMoments bool
}

// subjectWords are the words for what is compared.
type subjectWords struct{ one, many string }

// subjects has the words for targets, and for the threads of one.
var subjects = map[bool]*subjectWords{false: {"target", "targets"}, true: {"thread", "threads"}}

func (c *Comparison) newText(p *Printer, o TextOptions) *comparisonText {
	t := &comparisonText{
		Printer: p, paint: newPaint(o.Color), o: o, top: cmp.Or(c.Top, len(c.c.Classes)),
		comparedFrames: newComparedFrames(c.c, o.FullNames), names: newTargetNames(c.c), words: subjects[c.c.ByThread],
	}
	for i := range c.c.Classes {
		if c.c.Classes[i].Unread == "" {
			t.readable++
		}
	}
	for i := range c.c.Targets {
		t.hasMoments = t.hasMoments || c.c.Targets[i].Count > 1
	}
	t.tree = newBranches(c.c.Functions, t.readable, t.readable < 2)
	return t
}

// WriteText writes the classes for people, the smallest first, each with the frame at which it parts from
// the rest, and the tree of stacks, folded to where classes part.
func (c *Comparison) WriteText(w io.Writer, o TextOptions) error {
	t := c.newText(NewPrinter(w), o)
	t.printf("%s\n", t.header(t.totals()))
	t.classes()
	t.collectives()
	t.branches()
	t.modules()
	t.problems()
	return t.Flush()
}

// count is a number of what is compared, in words.
func (t *comparisonText) count(n int) string { return plural(n, t.words.one, t.words.many) }

// totals is what was compared.
func (t *comparisonText) totals() string {
	if len(t.c.Targets) == 0 {
		return "no targets"
	}
	threads, unread, most := 0, 0, 0
	for i := range t.c.Targets {
		threads += t.c.Targets[i].Threads
		most = max(most, t.c.Targets[i].Count)
	}
	classes := 0
	for i := range t.c.Classes {
		if t.c.Classes[i].Unread != "" {
			unread += len(t.c.Classes[i].Targets)
			continue
		}
		classes++
	}
	line := t.count(len(t.c.Targets))
	if path := t.onePath(); t.c.ByThread && path != "" {
		line += " of " + cutFront(escape.Text(path), comparisonWidth/2)
	}
	if !t.c.ByThread {
		line += ", " + plural(threads, "thread", "threads")
	}
	if t.hasMoments {
		line += fmt.Sprintf(", at %d moments", most)
	}
	switch {
	case classes == 1 && unread == 0:
		line += ": all alike"
	default:
		line += ": " + plural(classes, "class", "classes")
	}
	if unread > 0 {
		line += fmt.Sprintf(", %d not read", unread)
	}
	if n := len(t.c.Problems); n > 0 {
		line += ", " + plural(n, "problem", "problems") + " below"
	}
	return line
}

// onePath is the path of all targets; "" where it is not one.
func (t *comparisonText) onePath() string {
	for i := range t.c.Targets {
		if t.c.Targets[i].Path != t.c.Targets[0].Path {
			return ""
		}
	}
	return t.c.Targets[0].Path
}

// classes writes the classes, the smallest first.
func (t *comparisonText) classes() {
	for i := range t.c.Classes {
		if i == t.top {
			t.restOfClasses(i)
			break
		}
		t.printf("\n")
		t.class(i)
	}
}

// more writes how many classes are left out.
func (t *comparisonText) restOfClasses(shown int) {
	targets := 0
	for i := shown; i < len(t.c.Classes); i++ {
		targets += len(t.c.Classes[i].Targets)
	}
	rest := len(t.c.Classes) - shown
	t.printf("\n%s\n", t.faint(fmt.Sprintf("%s more, with %s: --top %d describes them, too",
		plural(rest, "class", "classes"), t.count(targets), len(t.c.Classes))))
}

// class writes a class.
func (t *comparisonText) class(number int) {
	c := &t.c.Classes[number]
	t.printf("%s %s\n", t.header(fmt.Sprintf("class %d:", number+1)), t.who(c))
	if c.Unread != "" {
		t.printf("  %s %s\n", t.warn("not read:"), cutShort(c.Unread, maxMarkdownLine))
		return
	}
	for i, fact := range c.Facts {
		if i == maxFacts && !t.o.Verbose {
			t.printf("  %s\n", t.faint(plural(len(c.Facts)-i, "fact", "facts")+" more (-v)"))
			break
		}
		t.printf("  %s\n", t.warn(cutShort(fact, maxMarkdownLine)))
	}
	for i := range c.Builds {
		t.printf("  with build %s of %s\n", shortID(c.Builds[i].BuildID), c.Builds[i].Name)
	}
	t.parting(number)
	t.moments(c)
	t.incomplete(c)
	t.variants(c)
}

// who names the targets of a class.
func (t *comparisonText) who(c *trace.TargetClass) string {
	details := []string{t.count(len(c.Targets))}
	if all := len(t.c.Targets); len(c.Targets) < all {
		details[0] = fmt.Sprintf("%d of %s", len(c.Targets), t.count(all))
	}
	details = append(details, t.names.common(c.Targets)...)
	detail := " (" + strings.Join(details, ", ") + ")"
	return t.names.of(c.Targets, comparisonWidth-len("class 100: ")-utf8.RuneCountInString(detail)) + detail
}

// shortID is the beginning of a build ID, which is enough to tell builds apart.
func shortID(id string) string { return cmp.Or(id[:min(len(id), 12)], "unknown") }

// parting writes where a class parts from the rest.
func (t *comparisonText) parting(number int) {
	c := &t.c.Classes[number]
	p := c.PartsAt
	if p == nil || len(c.Facts)+len(c.Builds) > 0 && t.isUsual(number) {
		if number != t.largest() && len(c.Facts)+len(c.Builds) > 0 {
			t.printf("  %s\n", t.faint("most others have its stacks too"))
		}
		t.example(c)
		return
	}
	head := roleWords(p.Role) + " parts from the others"
	switch {
	case p.Last >= 0:
		head += " in "
		t.printf("  %s%s\n", head, t.function(t.frame(p.Last, number, comparisonWidth-2-utf8.RuneCountInString(head))))
	case t.partingThread(number) == nil:
		t.printf("  %s of the others is missing\n", roleWords(p.Role))
	default:
		t.printf("  %s at the outermost frame\n", head)
	}
	t.rows(t.partingRows(number))
	t.example(c)
}

// partingRow is what a class, or others, do behind the last frame that they have in common.
type partingRow struct {
	who              string
	nodes            []int
	class            int    // whose lines the frames have; -1: that of all
	text             string // in place of nodes
	marks            string
	targets, threads int
}

// partingRows are what the class does, and what the others do.
func (t *comparisonText) partingRows(number int) (rows []partingRow) {
	p := t.c.Classes[number].PartsAt
	if th := t.partingThread(number); th != nil {
		own := partingRow{who: "here", class: number, text: "ends there", marks: threadMarks(th), targets: len(t.c.Classes[number].Targets), threads: th.Threads}
		if own.nodes = t.tree.below(p.Last, th.Node); p.Last < 0 {
			own.text = "no frame"
		}
		rows = append(rows, own)
	}
	left := p.More
	for i := range p.There {
		b := &p.There[i]
		if i >= maxThere && !t.o.Verbose {
			left++
			continue
		}
		row := partingRow{who: "others", class: -1, text: "end there", targets: b.Targets, threads: b.Threads}
		switch {
		case b.Node >= 0 && p.IsMissing:
			row.nodes = t.tree.below(p.Last, p.Node)
		case b.Node >= 0:
			row.nodes = t.tree.chain(nil, b.Node)
		}
		rows = append(rows, row)
	}
	if left > 0 {
		rows = append(rows, partingRow{who: "others", class: -1, text: "in " + plural(left, "other way", "other ways")})
	}
	if n := t.elsewhere(number); n > 0 {
		rows = append(rows, partingRow{who: "others", class: -1, text: "elsewhere", targets: n, threads: n})
	}
	return rows
}

// partingThread is the stack of a class that parts, or, where it is one that the class has not, the first one of
// the role that leads through the last frame in common; nil: there is none.
func (t *comparisonText) partingThread(number int) *trace.ClassThread {
	c := &t.c.Classes[number]
	p := c.PartsAt
	for i := range c.Threads {
		th := &c.Threads[i]
		switch {
		case th.Role != p.Role:
		case !p.IsMissing && th.Node == p.Node, p.IsMissing && p.Last < 0:
			return th
		case p.IsMissing && slices.Contains(t.tree.path(th.Node), p.Last):
			return th
		}
	}
	return nil
}

// threadMarks are what a thread of a class does, besides standing in a frame.
func threadMarks(th *trace.ClassThread) string {
	var marks []string
	if th.Crashed {
		marks = append(marks, "crashed")
	}
	switch {
	case th.Moves:
		marks = append(marks, "moves on")
	case th.Still:
		marks = append(marks, "stands still")
	}
	if th.Incomplete > 0 {
		marks = append(marks, "cut")
	}
	return strings.Join(marks, ", ")
}

// rows writes rows with their numbers aligned.
func (t *comparisonText) rows(rows []partingRow) {
	digits, width := 0, 0
	for _, r := range rows {
		digits = max(digits, len(strconv.Itoa(r.targets)))
	}
	counts := make([]string, len(rows))
	for i, r := range rows {
		if r.targets == 0 {
			continue
		}
		counts[i] = fmt.Sprintf("%*s", digits-len(strconv.Itoa(r.targets)), "") + t.count(r.targets)
		if r.threads != r.targets && !t.c.ByThread {
			counts[i] += ", " + plural(r.threads, "thread", "threads")
		}
		width = max(width, len(counts[i]))
	}
	room := comparisonWidth - len("    others  ") - 2 - width
	for i, r := range rows {
		text := t.row(&r, room)
		line := fmt.Sprintf("%-*s  %s", room, text, counts[i])
		t.printf("    %-6s  %s%s\n", r.who, t.function(text), strings.TrimRight(line[len(text):], " "))
	}
}

// row is the text of a row in a number of characters.
func (t *comparisonText) row(r *partingRow, room int) string {
	marks := r.marks
	switch {
	case len(r.nodes) == 0 && marks == "":
		return r.text
	case len(r.nodes) == 0:
		return marks
	case marks != "":
		marks = " (" + marks + ")"
	}
	return t.chain(r.nodes, r.class, room-len(marks)) + marks
}

// isUsual reports whether most other targets have the stack at which a class parts from the others.
func (t *comparisonText) isUsual(number int) bool {
	have, all := t.others(number)
	return !t.c.Classes[number].PartsAt.IsMissing && have > all/2
}

// others is how many other targets were read, and how many of them have the stack at which a class parts.
func (t *comparisonText) others(number int) (have, all int) {
	p := t.c.Classes[number].PartsAt
	for i := range t.c.Classes {
		c := &t.c.Classes[i]
		if i == number || c.Unread != "" {
			continue
		}
		all += len(c.Targets)
		if slices.ContainsFunc(c.Threads, func(th trace.ClassThread) bool { return th.Role == p.Role && th.Node == p.Node }) {
			have += len(c.Targets)
		}
	}
	return have, all
}

// elsewhere is how many other targets have neither the stack at which a class parts nor one of its branches. It is
// known of the main thread, of which each target has one.
func (t *comparisonText) elsewhere(number int) int {
	p := t.c.Classes[number].PartsAt
	if p.Role != mainRole || p.IsMissing || p.More > 0 || t.c.ByThread {
		return 0
	}
	have, all := t.others(number)
	for i := range p.There {
		have += p.There[i].Targets
	}
	return all - have
}

// largest is the largest class with stacks; -1: none has.
func (t *comparisonText) largest() int {
	for i := len(t.c.Classes) - 1; i >= 0; i-- {
		if t.c.Classes[i].Unread == "" {
			return i
		}
	}
	return -1
}

// example writes a target of a class, and its thread that parts.
func (t *comparisonText) example(c *trace.TargetClass) {
	if t.c.ByThread {
		return
	}
	first, thread := c.Targets[0], ""
	if p := c.PartsAt; p != nil && !p.IsMissing {
		for i := range c.Threads {
			if th := &c.Threads[i]; th.Role == p.Role && th.Node == p.Node && len(th.IDs) > 0 {
				first, thread = th.IDs[0].Target, ", thread "+th.IDs[0].ID
				break
			}
		}
	}
	if path := t.c.Targets[first].Path; path != "" {
		t.printf("  %s\n", t.faint(cutShort("for example "+path+thread, maxMarkdownLine)))
	}
}

// incomplete writes how many stacks of a class end early, and why one does.
func (t *comparisonText) incomplete(c *trace.TargetClass) {
	n, why := 0, ""
	for i := range c.Threads {
		if th := &c.Threads[i]; th.Incomplete > 0 {
			n, why = n+th.Incomplete, cmp.Or(why, th.Ends)
		}
	}
	if n > 0 {
		t.printf("  %s %s\n", t.warn(plural(n, "stack ends", "stacks end")+" early:"), cutShort(why, maxMarkdownLine))
	}
}

// moments writes which threads of a class move between moments.
func (t *comparisonText) moments(c *trace.TargetClass) {
	if !t.hasMoments {
		return
	}
	var roles []string
	moves, still := 0, 0
	for i := range c.Threads {
		th := &c.Threads[i]
		switch {
		case th.Moves:
			if moves++; !slices.Contains(roles, th.Role) {
				roles = append(roles, th.Role)
			}
		case th.Still:
			still++
		}
	}
	var parts []string
	if moves > 0 {
		rest := ""
		if n := len(roles) - maxThere; n > 0 {
			roles, rest = roles[:maxThere], fmt.Sprintf(" and %d more", n)
		}
		parts = append(parts, fmt.Sprintf("%s (%s%s)", plural(moves, "stack moves", "stacks move"), strings.Join(roles, ", "), rest))
	}
	if still > 0 {
		parts = append(parts, plural(still, "stack stands still", "stacks stand still"))
	}
	if len(parts) > 0 {
		t.printf("  %s\n", strings.Join(parts, ", "))
	}
}

// variants writes the parts of a class that differ by lines, but the largest.
func (t *comparisonText) variants(c *trace.TargetClass) {
	for i := range c.Variants[:max(len(c.Variants)-1, 0)] {
		if i == maxThere && !t.o.Verbose {
			t.printf("  %s\n", t.faint(fmt.Sprintf("%s more by lines (-v)", plural(len(c.Variants)-i, "part", "parts"))))
			return
		}
		v := &c.Variants[i]
		details := fmt.Sprintf("  by lines, %s: ", t.count(len(v.Targets)))
		who := t.names.of(v.Targets, comparisonWidth/3)
		line := details + who
		t.printf("%s", line)
		if node, other := t.ownLine(c, i); node >= 0 {
			text := t.lineOf(node)
			if place := t.placeOf(other); place != "" {
				text += ", not " + place
			}
			t.printf(" in %s", t.function(text))
		}
		t.printf("\n")
	}
}

// ownLine is the outermost node by lines of a variant's stacks that no other variant of the class has,
// and the node of another one at the same function; -1: there is none.
func (t *comparisonText) ownLine(c *trace.TargetClass, variant int) (own, other int) {
	others := map[int]bool{} // nodes
	byFunction := map[int]int{}
	for i := len(c.Variants) - 1; i >= 0; i-- { // the largest one last
		if i == variant {
			continue
		}
		for k := range c.Variants[i].Threads {
			for n := c.Variants[i].Threads[k].Node; n >= 0 && !others[n]; n = t.c.Lines[n].Parent {
				others[n] = true
				if _, ok := byFunction[t.c.Lines[n].Function]; !ok {
					byFunction[t.c.Lines[n].Function] = n
				}
			}
		}
	}
	own = -1
	for k := range c.Variants[variant].Threads {
		n := c.Variants[variant].Threads[k].Node
		if n < 0 || others[n] {
			continue
		}
		for t.c.Lines[n].Parent >= 0 && !others[t.c.Lines[n].Parent] {
			n = t.c.Lines[n].Parent
		}
		if own < 0 || n < own {
			own = n
		}
	}
	if own < 0 {
		return -1, -1
	}
	if n, ok := byFunction[t.c.Lines[own].Function]; ok {
		return own, n
	}
	return own, -1
}

// collectives writes the collective operations that ranks wait in.
func (t *comparisonText) collectives() {
	for i := range t.c.Collectives {
		if i == t.top {
			t.printf("%s\n", t.faint(plural(len(t.c.Collectives)-i, "collective operation", "collective operations")+" more"))
			return
		}
		c := &t.c.Collectives[i]
		t.printf("\n%s %s %s\n", t.header("collective:"), c.Operation, t.faint(fmt.Sprintf("(number %d of group %s)", c.Sequence, c.Group)))
		for _, part := range []struct{ what, ranks string }{
			{"not entered by", c.Missing}, {"waiting", c.Entered}, {"completed by", c.Completed}, {"no record of", c.Unrecorded},
		} {
			if part.ranks != "" {
				t.printf("  %-14s  %s\n", part.what, rankWords(part.ranks, comparisonWidth-24))
			}
		}
		for k, text := range c.Different {
			if k == maxFacts && !t.o.Verbose {
				t.printf("  %s\n", t.faint(plural(len(c.Different)-k, "difference", "differences")+" more (-v)"))
				break
			}
			t.printf("  %s %s\n", t.warn("differs:"), text)
		}
		if len(c.Frames) > 0 {
			t.printf("  %-14s  %s\n", "called by", t.function(c.Frames[0]))
		}
	}
}

// rankWords is a text of ranks in short, in words.
func rankWords(text string, most int) string {
	if strings.ContainsAny(text, ",-") {
		return "ranks " + inRanks(text, most)
	}
	return "rank " + inRanks(text, most)
}

// treeRow is a chain of the tree, with who is in it, or how many are left out in its place.
type treeRow struct {
	indent           int
	text, who        string
	targets, threads int
}

// treeRows are the rows of the tree, at most so many, and the number of the others.
func (t *comparisonText) treeRows(most int) (rows []treeRow, left int) {
	room := comparisonWidth - t.countsWidth()
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
			r.targets, r.threads, r.who = n.Targets, n.Threads, t.whoIsIn(n)
			if t.readable < 2 {
				r.who = roles[b.nodes[len(b.nodes)-1]]
			}
			width := room - r.indent
			if r.who != "" {
				width -= utf8.RuneCountInString(r.who) + 2
			}
			r.text = t.chain(b.nodes, -1, max(width, minChain))
		}
		rows = append(rows, r)
		return true
	})
	return rows, left
}

// rolesOfOne has the roles of the threads that stand in a node, and whether they move, where all targets are in
// one class.
func (t *comparisonText) rolesOfOne() map[int]string {
	largest := t.largest()
	if t.readable != 1 {
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
	column := 0 // behind the longest row
	for _, r := range rows {
		column = max(column, r.indent+utf8.RuneCountInString(r.text))
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

// treeRow writes a row. Who is in it stands in a column, as far as the lines are wide enough.
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
		column = min(column, comparisonWidth-t.countsWidth()-2-utf8.RuneCountInString(r.who))
		t.printf("%*s  %s", max(column-r.indent-utf8.RuneCountInString(r.text), 0), "", t.place(r.who))
	}
	t.printf("\n")
}

const (
	// maxIndent is the depth to which branches are indented.
	maxIndent = 12
	// minChain is the room that a chain has at least.
	minChain = 28
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

// modules writes the modules of which targets have different builds.
func (t *comparisonText) modules() {
	for i := range t.c.Modules {
		if i == 0 {
			t.printf("\n%s\n", t.header("modules of which builds differ"))
		}
		if i == maxMarkdownRows && !t.o.Verbose {
			t.printf("  %s\n", t.faint(plural(len(t.c.Modules)-i, "module", "modules")+" more (-v)"))
			return
		}
		m := &t.c.Modules[i]
		t.printf("  %s\n", m.Name)
		for k := range m.Builds {
			if k == maxBranches && !t.o.Verbose {
				t.printf("    %s\n", t.faint(plural(len(m.Builds)-k, "build", "builds")+" more (-v)"))
				break
			}
			b := &m.Builds[k]
			who := ""
			if b.Targets != nil {
				who = t.names.of(b.Targets, comparisonWidth/2) + ", "
			}
			t.printf("    %-12s  %s%s\n", shortID(b.BuildID), who, t.count(b.Count))
		}
	}
}

// problems writes the problems of the comparison, and those of targets, equal ones once.
func (t *comparisonText) problems() {
	type problem struct {
		text    string
		targets []int
	}
	var list []*problem
	seen := map[string]*problem{}
	for i := range t.c.Targets {
		if t.c.Classes[t.c.Targets[i].Class].Unread != "" {
			continue // its class says why
		}
		for _, text := range t.c.Targets[i].Problems {
			p := seen[text]
			if p == nil {
				p = &problem{text: text}
				seen[text] = p
				list = append(list, p)
			}
			p.targets = append(p.targets, i)
		}
	}
	if len(t.c.Problems)+len(list) > 0 {
		t.printf("\n")
	}
	for i, text := range t.c.Problems {
		if i == maxMarkdownRows && !t.o.Verbose {
			t.printf("%s %d more (-v)\n", t.warn("problems:"), len(t.c.Problems)-i)
			break
		}
		t.printf("%s %s\n", t.warn("problem:"), text)
	}
	slices.SortStableFunc(list, func(a, b *problem) int { return len(b.targets) - len(a.targets) })
	for i, p := range list {
		if i == maxBranches && !t.o.Verbose {
			t.printf("%s %d more of single %s (-v)\n", t.warn("problems:"), len(list)-i, t.words.many)
			break
		}
		t.printf("%s %s: %s\n", t.warn("problem:"), t.names.of(p.targets, comparisonWidth/2), p.text)
	}
}

// roleWords names threads of a role.
func roleWords(role string) string {
	role = cutShort(escape.Text(role), textName)
	switch {
	case role == mainRole:
		return "the main thread"
	case strings.HasPrefix(role, "wave of "), strings.HasPrefix(role, "goroutine of "):
		return role
	}
	return "thread " + role
}

// comparedFrames writes the frames of a comparison.
type comparedFrames struct {
	c      *trace.Comparison
	isFull bool
	// lines has, for each node by functions, its node by lines where it has one alone; -1: it has several.
	lines []int
}

func newComparedFrames(c *trace.Comparison, isFull bool) comparedFrames {
	f := comparedFrames{c: c, isFull: isFull, lines: make([]int, len(c.Functions))}
	for i := range f.lines {
		f.lines[i] = -2
	}
	for i := range c.Lines {
		switch line := &f.lines[c.Lines[i].Function]; *line {
		case -2:
			*line = i
		default:
			*line = -1
		}
	}
	return f
}

// comparedName is the name of a frame in at most a number of characters, or whole.
func (f *comparedFrames) comparedName(frame *trace.ComparedFrame, most int) string {
	mark := ""
	if frame.IsGuess {
		mark = " (a guess)"
	}
	return escape.Text(frameName(frame, f.isFull, most)) + mark
}

// frameName is the name of a frame, or its place in a module where it has none.
func frameName(frame *trace.ComparedFrame, isFull bool, most int) string {
	switch {
	case frame.Function == "" && frame.Module == "" && frame.Offset == 0:
		return "??"
	case frame.Function == "":
		return strings.TrimPrefix(frame.Module+"+"+address(frame.Offset), "+")
	case isFull:
		return frame.Function
	}
	return funcname.Fit(escape.Text(cmp.Or(frame.Short, frame.Function)), most)
}

// lineIn is the frame with its line of a node by functions, in the stacks of a class; -1 stands for all classes. nil: it has
// several lines, or none.
func (f *comparedFrames) lineIn(node, class int) *trace.ComparedFrame {
	if n := f.lines[node]; n >= 0 {
		return &f.c.Lines[n].Frame
	}
	if class < 0 || len(f.c.Classes[class].Variants) != 1 {
		return nil
	}
	found := -1
	for i := range f.c.Classes[class].Variants[0].Threads {
		for n := f.c.Classes[class].Variants[0].Threads[i].Node; n >= 0; n = f.c.Lines[n].Parent {
			if f.c.Lines[n].Function == node && n != found {
				if found >= 0 {
					return nil
				}
				found = n
			}
		}
	}
	if found < 0 {
		return nil
	}
	return &f.c.Lines[found].Frame
}

// linePlace is the file and the line of a frame; "" where they are not known.
func linePlace(frame *trace.ComparedFrame) string {
	if frame == nil || frame.Line == 0 {
		return ""
	}
	return cutFront(escape.Text(path.Base(frame.File)+":"+strconv.Itoa(frame.Line)), 32)
}

// frame is a frame with its line.
func (f *comparedFrames) frame(node, class, most int) string {
	place := linePlace(f.lineIn(node, class))
	text := f.comparedName(&f.c.Functions[node].Frame, max(min(most, textName), 8))
	if place != "" {
		text += " " + place
	}
	return text
}

// placeOf is the file and the line of a node by lines; "" where it has none.
func (f *comparedFrames) placeOf(node int) string {
	if node < 0 {
		return ""
	}
	return linePlace(&f.c.Lines[node].Frame)
}

// lineOf is a frame of a node by lines.
func (f *comparedFrames) lineOf(node int) string {
	frame := &f.c.Lines[node].Frame
	return strings.TrimSpace(f.comparedName(&f.c.Functions[f.c.Lines[node].Function].Frame, textName/2) + " " + linePlace(frame))
}

// chain is frames from the outermost on in about a number of characters: the first with its line, as many
// as fit, how many are left out, and the last.
func (f *comparedFrames) chain(nodes []int, class, most int) string {
	name := func(i, room int) string {
		return f.comparedName(&f.c.Functions[nodes[i]].Frame, max(min(room, textName), 8))
	}
	last := len(nodes) - 1
	switch last {
	case -1:
		return "no frame"
	case 0:
		return f.withLine(name(0, most), nodes[0], class, most)
	}
	const between = " > "
	end := between + name(last, most/2)
	room := most - utf8.RuneCountInString(end)
	begin := name(0, room-len(" > ... 1000 frames"))
	if last == 1 {
		return f.withLine(begin, nodes[0], class, room) + end
	}
	gap := func(next int) string {
		if next == last {
			return ""
		}
		return between + f.gap(nodes[next:last])
	}
	begin = f.withLine(begin, nodes[0], class, room-utf8.RuneCountInString(gap(1)))
	next := 1
	for next < last {
		longer := begin + between + name(next, textName)
		if utf8.RuneCountInString(longer+gap(next+1)) > room {
			break
		}
		begin = longer
		next++
	}
	return begin + gap(next) + end
}

// withLine is a frame with its line, where that fits.
func (f *comparedFrames) withLine(text string, node, class, room int) string {
	place := linePlace(f.lineIn(node, class))
	if place == "" || utf8.RuneCountInString(text)+1+utf8.RuneCountInString(place) > room {
		return text
	}
	return text + " " + place
}

// gap says how many frames are left out, and how many of them are guesses.
func (f *comparedFrames) gap(nodes []int) string {
	guesses := 0
	for _, n := range nodes {
		if f.c.Functions[n].Frame.IsGuess {
			guesses++
		}
	}
	text := "... " + plural(len(nodes), "frame", "frames")
	if guesses > 0 {
		text += fmt.Sprintf(", %d a guess", guesses)
	}
	return text
}
