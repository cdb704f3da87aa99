// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/unwindd/unwindd/internal/escape"
)

// This file writes stacks as the text of an issue. All text of the target stands in code, where
// Markdown, HTML, @names and #numbers have no effect.

// MaxMarkdown is the number of characters that an issue of GitHub takes.
const MaxMarkdown = 65_536

// Bounds on the parts of a section.
const (
	maxMarkdownValue   = 300  // bytes of a fact
	maxMarkdownLine    = 1000 // bytes of a line of a stack
	maxMarkdownRows    = 24   // modules, and problems
	maxMarkdownStacks  = 1000 // stacks that are kept to be written
	minMarkdownSection = 400  // bytes that a section has at least, whatever its bound is
)

// WriteMarkdown writes the stacks as a section in GitHub's flavour of Markdown: the fact, a table
// about the target, the stack of the crashed thread, and the others folded away. A section has at
// most the given number of bytes, or MaxMarkdown where that is 0, and names the parts that are
// left out. Stacks are folded as by WriteText.
func (s *Stacks) WriteMarkdown(w io.Writer, o TextOptions, most int) error {
	m := &markdown{most: max(cmp.Or(most, MaxMarkdown), minMarkdownSection)}
	m.text = s.newText(NewPrinter(&m.written), o, wideName)
	m.paint, m.isVerbose = newPaint(false), false
	groups, rest := m.collect(s)
	s.code.prepare(groups)
	m.setHead(s.head(withDebugInfo))
	m.section(s, groups, rest)
	_, err := io.WriteString(w, m.out.String())
	return err
}

// markdown writes the text form in parts, and puts them between lines of Markdown.
type markdown struct {
	text
	written strings.Builder // by text
	out     strings.Builder
	most    int
	failed  string // the innermost function of the program itself, and its line
}

// ownPlace is the program's own function in the stack that was written last, and its line; ""
// where there is none.
func (m *markdown) ownPlace() string {
	if m.own == nil {
		return ""
	}
	place := m.names.of(m.own)
	if m.own.Line > 0 {
		place += " " + position(m.own.File, m.own.Line, m.own.Column)
	}
	return place
}

// collect returns the groups of equal stacks, and the number of stacks beyond the bound.
func (m *markdown) collect(s *Stacks) (groups []*group, rest int) {
	if !m.noFold {
		f := newStackFolder()
		for stack := range s.each {
			f.add(stack)
		}
		groups = f.ordered(s.deadlocks())
		if len(groups) > maxMarkdownStacks {
			groups, rest = groups[:maxMarkdownStacks], len(groups)-maxMarkdownStacks
		}
		return groups, rest
	}
	for stack := range s.each {
		if len(groups) == maxMarkdownStacks {
			rest++
			continue
		}
		groups = append(groups, newGroup(stack))
	}
	return groups, rest
}

// section writes all parts.
func (m *markdown) section(s *Stacks, groups []*group, rest int) {
	first := m.lines(func() {
		m.deadlocks(m.about.deadlocks)
		m.devices(&m.about.Target)
		if len(groups) > 0 {
			m.group(groups[0])
		}
	})
	m.failed = m.ownPlace()
	m.title()
	m.add(m.table(s, groups))
	m.add(m.moduleTable())
	m.add(m.problems())
	if len(s.Globals) > 0 {
		m.add(fenced(clipped(m.lines(func() { m.globals(s.Globals) }), m.room()/4)))
	}
	m.add(fenced(clipped(first, m.room()*3/5)))
	if len(groups) > 1 {
		m.others(groups, rest)
	}
}

// others writes the stacks behind the first one, as many as fit.
func (m *markdown) others(groups []*group, rest int) {
	var others []string
	room, shown, threads := m.room()-len(detailsOf(nil, ""))-200, 1, 0
	for _, g := range groups[1:] {
		lines := clipped(m.lines(func() { m.group(g) }), maxGroupBytes)
		if room -= size(lines) + 1; room < 0 {
			break
		}
		if len(others) > 0 {
			others = append(others, "")
		}
		others = append(others, lines...)
		shown++
		threads += g.count
	}
	if shown > 1 {
		m.add(detailsOf(others, plural(threads, "other thread", "other threads")))
	}
	if n := len(groups) - shown + rest; n > 0 {
		m.add(plural(n, "more stack", "more stacks") + " left out: `unwindd stack` prints all.\n")
	}
}

// maxGroupBytes bounds the text of one of the other stacks.
const maxGroupBytes = 8 << 10

// room is the number of bytes that are left for a part within fences.
func (m *markdown) room() int { return max(m.most-m.out.Len()-fenceRoom, 0) }

// fenceRoom is the room for the fences, of which long ones are rare, and blank lines of a part.
const fenceRoom = 64

// add adds a part below a blank line, where it fits.
func (m *markdown) add(part string) {
	if part == "" || m.out.Len()+1+len(part) > m.most {
		return
	}
	m.out.WriteString("\n" + part)
}

// lines returns the lines that the text form writes meanwhile, without the blank ones around.
func (m *markdown) lines(write func()) []string {
	write()
	_ = m.Flush() // into memory
	all := strings.Trim(m.written.String(), "\n")
	m.written.Reset()
	if all == "" {
		return nil
	}
	return strings.Split(all, "\n")
}

// title writes the program and the fact as a heading.
func (m *markdown) title() {
	parts := []string{codeSpan(path.Base(m.program()))}
	if event := m.event(); event != "" {
		parts = append(parts, codeSpan(event))
	}
	line := "## " + strings.Join(parts, ": ") + "\n"
	if len(line) > m.most {
		line = "## A crash\n"
	}
	m.out.WriteString(line)
}

// event is the cause of the crash in one line: a deadlock before a signal that ended it.
func (m *markdown) event() string {
	deadlock, fact := "", m.about.Target.Fact
	if len(m.about.deadlocks) > 0 {
		deadlock = "deadlock: " + m.about.deadlocks[0].String()
	}
	if c := m.about.Target.Crash; c != nil && c.Sender != nil {
		return cmp.Or(deadlock, fact, m.about.why())
	}
	return cmp.Or(fact, deadlock, m.about.why())
}

// program is the path of the program, or of the target.
func (m *markdown) program() string {
	if p := m.about.Target.Process; p != nil && p.Executable != "" {
		return p.Executable
	}
	return m.about.Target.Path
}

// table is the facts about the target.
func (m *markdown) table(s *Stacks, groups []*group) string {
	target := &m.about.Target
	process := cmp.Or(target.Process, &Process{})
	signal := m.about.why()
	if target.FaultAddress != "" && target.Signal != 0 {
		signal += " at address " + target.FaultAddress
	}
	var thread, signature string
	if len(groups) > 0 && groups[0].first.Thread.Crashed {
		th := groups[0].first.Thread
		thread = inWords(th.ID, th.Name)
		if s.Signature != nil {
			if key := s.Signature(th); key != nil {
				signature = key.String()
			}
		}
	}
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, row := range [][2]string{
		{"Program", m.program()}, {"Signal", signal}, {"First own frame", m.failed}, {"Crashed thread", thread}, {"Time", process.Time},
		{"Kernel", process.Kernel}, {"Target", inWords(target.Kind, path.Base(target.Path))}, {"Signature", signature},
	} {
		if row[1] != "" {
			b.WriteString("| " + row[0] + " | " + cell(row[1]) + " |\n")
		}
	}
	return b.String()
}

// moduleTable is the modules that the frames written so far are in, with their build IDs.
func (m *markdown) moduleTable() string {
	var b strings.Builder
	rows, more := 0, 0
	for i := range m.about.Modules {
		module := &m.about.Modules[i]
		switch {
		case !m.framed[module.ID]:
			continue
		case rows == maxMarkdownRows:
			more++
			continue
		case rows == 0:
			b.WriteString("| Module of the stack | Build ID | Debug information |\n|---|---|---|\n")
		}
		rows++
		b.WriteString("| " + cell(module.short()) + " | " + cell(cmp.Or(module.BuildID, module.DebugID, "none")) + " | " + cell(cmp.Or(module.DebugInfo, "none")) + " |\n")
	}
	if more > 0 {
		b.WriteString("\n" + plural(more, "more module", "more modules") + " left out.\n")
	}
	return b.String()
}

// problems is a list of the problems of the target.
func (m *markdown) problems() string {
	var b strings.Builder
	list := m.about.Target.Problems
	for i, p := range list {
		if i == maxMarkdownRows {
			b.WriteString("- " + plural(len(list)-i, "more problem", "more problems") + " left out\n")
			break
		}
		b.WriteString("- problem: " + codeSpan(p) + "\n")
	}
	return b.String()
}

// size is the number of bytes of lines.
func size(lines []string) (n int) {
	for _, l := range lines {
		n += len(l) + 1
	}
	return n
}

// clipped returns the first and the last of lines, as many as a number of bytes takes, with the
// count of the others between. Long lines are cut.
func clipped(lines []string, most int) []string {
	for i, l := range lines {
		lines[i] = cutShort(l, maxMarkdownLine)
	}
	if size(lines) <= most {
		return lines
	}
	most -= len("  (1000000 lines left out)\n")
	first, last := 0, len(lines)
	for used := 0; first < last; first++ {
		if used += len(lines[first]) + 1; used > most*3/4 {
			break
		}
	}
	for used := size(lines[:first]); last > first; last-- {
		if used += len(lines[last-1]) + 1; used > most {
			break
		}
	}
	kept := append([]string{}, lines[:first]...)
	kept = append(kept, fmt.Sprintf("  (%d lines left out)", last-first))
	return append(kept, lines[last:]...)
}

// fenced is a block of code, whose fence is longer than any in it.
func fenced(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	all := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(longestRun(all, '`')+1, 3))
	return fence + "text\n" + all + "\n" + fence + "\n"
}

// detailsOf folds a block of code away.
func detailsOf(lines []string, summary string) string {
	return "<details>\n<summary>" + summary + "</summary>\n\n" + fenced(lines) + "\n</details>\n"
}

// longestRun is the length of the longest run of a character.
func longestRun(s string, c byte) (longest int) {
	run := 0
	for i := range len(s) {
		if run++; s[i] != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// codeSpan is a text as code within a line; a text in which there are many backticks is none
// that a name has, and is written by codeElement.
func codeSpan(s string) string {
	s = escape.Text(cutShort(s, maxMarkdownValue))
	if strings.Contains(s, "`") || strings.TrimSpace(s) != s {
		return codeElement(s)
	}
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// cell is a text as code in a cell of a table, which a pipe would end.
func cell(s string) string {
	if strings.Contains(s, "|") {
		return codeElement(escape.Text(cutShort(s, maxMarkdownValue)))
	}
	return codeSpan(s)
}

// codeElement is a text as an HTML element in which all but letters, digits and blanks are
// character references: nothing in it has a meaning in Markdown or HTML.
func codeElement(s string) string {
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range s {
		if r < 0x80 && r != ' ' && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	b.WriteString("</code>")
	return b.String()
}
