// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
)

// parting writes where a class parts from the rest.
func (t *comparisonText) parting(number int) {
	c := &t.c.Classes[number]
	p := c.PartsAt
	if p == nil || len(c.Facts)+len(c.Builds) > 0 && t.isUsual(number) {
		if number != t.largest() && len(c.Facts)+len(c.Builds) > 0 && !t.isWithoutStacks(c) {
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

// isWithoutStacks reports whether no thread of a class is compared, because none crashed.
func (t *comparisonText) isWithoutStacks(c *trace.TargetClass) bool {
	return t.c.CrashedOnly && len(c.Threads) == 0
}

// partingRow is a way on from the last frame that a class has in common with others: its own, or one of theirs.
type partingRow struct {
	who              string
	nodes            []int
	entry            int    // how many of the nodes lead to the function that the thread was started for
	class            int    // whose lines the frames have; -1: that of all
	text             string // in place of nodes
	marks            string
	targets, threads int
}

// partingRows are the way of the class, and the ways of others.
func (t *comparisonText) partingRows(number int) (rows []partingRow) {
	p := t.c.Classes[number].PartsAt
	if th := t.partingThread(number); th != nil {
		own := partingRow{who: "here", class: number, text: "ends there", marks: threadMarks(th), targets: len(t.c.Classes[number].Targets), threads: th.Threads}
		if own.nodes = t.tree.below(p.Last, th.Node); p.Last < 0 {
			own.text, own.entry = "no frame", t.entryIn(own.nodes, p.Role)
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
			if row.nodes = t.tree.below(p.Last, p.Node); p.Last < 0 {
				row.entry = t.entryIn(row.nodes, p.Role)
			}
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

// threadMarks are words for a thread of a class that crashed, moves or stands still, or whose stack is cut.
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

// leastBegin is how many characters are kept of the function at which a class parts.
const leastBegin = 24

// row is the text of a row in about a number of characters.
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
	before := ""
	if r.entry > 0 {
		before = t.gap(r.nodes[:r.entry]) + " > "
	}
	return before + t.chain(r.nodes[r.entry:], r.class, room-len(before)-len(marks), leastBegin) + marks
}

// entryIn is how many frames lead to the function by which a thread has its role: they tell less than the ones that
// follow. 0: none has that name.
func (t *comparisonText) entryIn(nodes []int, role string) int {
	i := slices.IndexFunc(nodes, func(n int) bool {
		f := &t.c.Functions[n].Frame
		return cmp.Or(f.Short, f.Function) == role
	})
	return max(i, 0)
}

// isUsual reports whether most other targets have the stack at which a class parts from the others.
func (t *comparisonText) isUsual(number int) bool {
	have, all := t.others(number)
	return !t.c.Classes[number].PartsAt.IsMissing && have > all/2
}

// roleStack is a stack of threads of a role.
type roleStack struct {
	role string
	node int
}

// others is how many other targets were read, and how many of them have the stack at which a class parts.
func (t *comparisonText) others(number int) (have, all int) {
	if t.having == nil {
		t.countHaving()
	}
	own, p := len(t.c.Classes[number].Targets), t.c.Classes[number].PartsAt
	have = t.having[roleStack{p.Role, p.Node}]
	if !p.IsMissing {
		have -= own
	}
	return have, t.read - own
}

// countHaving counts the targets that have each stack.
func (t *comparisonText) countHaving() {
	t.having = map[roleStack]int{}
	last := map[roleStack]int{} // the class that was counted last, from 1 on: one may have the stack twice, as where some of its threads move
	for i := range t.c.Classes {
		c := &t.c.Classes[i]
		if c.Unread != "" || t.isWithoutStacks(c) {
			continue
		}
		t.read += len(c.Targets)
		for k := range c.Threads {
			if s := (roleStack{c.Threads[k].Role, c.Threads[k].Node}); last[s] != i+1 {
				last[s] = i + 1
				t.having[s] += len(c.Targets)
			}
		}
	}
}

// elsewhere is how many other targets have neither the stack at which a class parts nor one of its branches. It is
// known of the main thread, of which each target has one, unless only those that crashed are compared.
func (t *comparisonText) elsewhere(number int) int {
	p := t.c.Classes[number].PartsAt
	if p.Role != mainRole || p.IsMissing || p.More > 0 || t.c.ByThread || t.c.CrashedOnly {
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
		if c := &t.c.Classes[i]; c.Unread == "" && !t.isWithoutStacks(c) {
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
