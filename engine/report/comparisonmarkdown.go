// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the comparison as a section in GitHub's flavour of Markdown: a table of the classes,
// what tells the smallest ones apart, and the tree folded away. A section has at most the given number of bytes, or
// MaxMarkdown where that is 0, and counts the rest.
func (c *Comparison) WriteMarkdown(w io.Writer, o TextOptions, most int) error {
	m := &markdown{most: max(cmp.Or(most, MaxMarkdown), minMarkdownSection)}
	m.Printer = NewPrinter(&m.written)
	t := c.newText(m.Printer, TextOptions{FullNames: o.FullNames})
	m.out.WriteString("## " + codeSpan(t.totals()) + "\n")
	m.add(t.classTable(m.room() / 2))
	m.add(fenced(clipped(m.lines(t.classes), m.room()/2)))
	m.add(fenced(clipped(m.lines(t.collectives), m.room()/3)))
	m.folded(m.lines(t.branches), "Where classes part")
	m.folded(m.lines(t.modules), "Modules of which builds differ")
	m.add(fenced(clipped(m.lines(t.problems), m.room())))
	_, err := io.WriteString(w, m.out.String())
	return err
}

// folded adds a block of code that is folded away.
func (m *markdown) folded(lines []string, summary string) {
	if room := m.room() - len(detailsOf(nil, summary)); len(lines) > 0 && room > 0 {
		m.add(detailsOf(clipped(lines, room), summary))
	}
}

// classTable is a table of the classes, of at most so many bytes.
func (t *comparisonText) classTable(room int) string {
	head := "| Class | Number of " + t.words.many + " | Which | Parts in | Here | The others |\n|---|---|---|---|---|---|\n"
	var b strings.Builder
	for i := range t.c.Classes {
		row := t.classRow(i)
		if i == t.top || i == maxMarkdownRows || len(head)+b.Len()+len(row) > room {
			rest := "\n" + plural(len(t.c.Classes)-i, "more class", "more classes") + " left out.\n"
			if i == 0 {
				return rest[1:]
			}
			return head + b.String() + rest
		}
		b.WriteString(row)
	}
	if b.Len() == 0 {
		return ""
	}
	return head + b.String()
}

// classRow is the line of a class.
func (t *comparisonText) classRow(number int) string {
	c := &t.c.Classes[number]
	cells := []string{"", "", ""}
	switch {
	case c.Unread != "":
		cells[0] = "not read: " + c.Unread
	case c.PartsAt != nil:
		rows := t.partingRows(number)
		cells[0] = roleWords(c.PartsAt.Role)
		if c.PartsAt.Last >= 0 {
			cells[0] += ": " + t.frame(c.PartsAt.Last, number, textName)
		}
		for i := range rows {
			column := 1
			if rows[i].who == "others" {
				column = 2
			}
			if cells[column] == "" {
				cells[column] = t.row(&rows[i], comparisonWidth)
			}
		}
	case len(c.Facts) > 0:
		cells[1] = c.Facts[0]
	}
	line := fmt.Sprintf("| %d | %d | %s |", number+1, len(c.Targets), cell(t.names.of(c.Targets, comparisonWidth/2)))
	for _, text := range cells {
		line += " " + cell(text) + " |"
	}
	return line + "\n"
}
