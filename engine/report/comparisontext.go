// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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
	// having counts the targets that have each stack, and read is how many targets were read; nil: that was not needed yet.
	having map[roleStack]int
	read   int
}

// subjectWords are the words for targets, or for threads.
type subjectWords struct{ one, many string }

// subjects has the words for targets, and for the threads of one.
var subjects = map[bool]*subjectWords{false: {"target", "targets"}, true: {"thread", "threads"}}

func (c *Comparison) newText(p *Printer, o TextOptions) *comparisonText {
	t := &comparisonText{
		Printer: p, paint: newPaint(o.Color), o: o, top: cmp.Or(c.Top, len(c.c.Classes)),
		comparedFrames: newComparedFrames(c.c, o.FullNames || o.Verbose), names: newTargetNames(c.c), words: subjects[c.c.ByThread],
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

// count is a number of targets, or of threads, in words.
func (t *comparisonText) count(n int) string { return plural(n, t.words.one, t.words.many) }

// totals is the first line: how many targets, threads and classes there are.
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
		line += ", " + t.threads(threads)
	} else if t.c.CrashedOnly {
		line += ", only the crashed ones"
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

// threads is a number of threads in words.
func (t *comparisonText) threads(n int) string {
	if t.c.CrashedOnly {
		return plural(n, "crashed thread", "crashed threads")
	}
	return plural(n, "thread", "threads")
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
		if t.isUsualBuild(&c.Builds[i]) {
			continue
		}
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

// problems writes the problems of the comparison and of its targets, equal ones once.
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

// isUsualBuild reports whether more targets have a build of a module than any other one.
func (t *comparisonText) isUsualBuild(b *trace.ModuleBuild) bool {
	for i := range t.c.Modules {
		if m := &t.c.Modules[i]; m.Name == b.Name && len(m.Builds) > 1 {
			last := len(m.Builds) - 1
			return m.Builds[last].BuildID == b.BuildID && m.Builds[last].Count > m.Builds[last-1].Count
		}
	}
	return false
}
