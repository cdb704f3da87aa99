// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
)

// sourceOf returns the source lines around a function's line at a frame; nil: none are
// requested.
type sourceOf func(f *trace.Frame, s *trace.Symbol) (trace.SourceLines, error)

// tabWidth is the distance of a terminal's tab stops.
const tabWidth = 8

// sourceLines writes the lines around a function's line at a frame. Why they may be wrong is
// written once, and why there are none at the end, by noSource.
func (t *text) sourceLines(f *trace.Frame, s *trace.Symbol) {
	if t.source == nil || s.Line < 1 || s.File == "" || t.ownOnly && (s != t.own || f != t.ownFrame) {
		return
	}
	l, err := t.source(f, s)
	if t.ownOnly {
		t.ownShown = true
		if err != nil || l.Warning != "" {
			return // it was not requested: a line that may be wrong is not shown
		}
	}
	if err != nil {
		if t.isNew(err.Error()) {
			t.sourceless = append(t.sourceless, err.Error())
		}
		return
	}
	if l.Warning != "" && t.isNew(l.Warning) {
		t.printf(localsIndent+"%s %s\n", t.warn("warning:"), l.Warning)
	}
	width := len(strconv.Itoa(l.First + len(l.Text) - 1))
	for i, line := range l.Text {
		number := fmt.Sprintf("%*d", width, l.First+i)
		if l.First+i == s.Line {
			t.printf("      > %s", t.header(number))
		} else {
			t.printf(localsIndent+"%s", t.faint(number))
		}
		if line != "" {
			t.printf("  %s", expand(line))
		}
		t.printf("\n")
	}
}

// noSource writes for which files there are no lines: the first one, or all.
func (t *text) noSource(all bool) {
	switch n := len(t.sourceless); {
	case n == 0:
	case n == 1:
		t.printf("\n%s\n", t.faint("no source: "+t.sourceless[0]))
	case all:
		t.printf("\n%s\n", t.faint(fmt.Sprintf("no source of %d files:", n)))
		for _, why := range t.sourceless {
			t.printf("  %s\n", t.faint(why))
		}
	default:
		t.printf("\n%s\n", t.faint(fmt.Sprintf("no source of %d files (-v lists them), the first one: %s", n, t.sourceless[0])))
	}
}

// isNew reports whether a sentence about source files is written for the first time.
func (t *text) isNew(sentence string) bool {
	if t.mentioned[sentence] {
		return false
	}
	if t.mentioned == nil {
		t.mentioned = map[string]bool{}
	}
	t.mentioned[sentence] = true
	return true
}

// expand replaces tabs by blanks.
func expand(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	for column := 0; line != ""; {
		part, rest, isTab := strings.Cut(line, "\t")
		b.WriteString(part)
		column += utf8.RuneCountInString(part)
		if isTab {
			n := tabWidth - column%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
		line = rest
	}
	return b.String()
}

// sourceLines writes the lines around a function's line at a frame.
func (j *stackJSON) sourceLines(f *trace.Frame, s *trace.Symbol) {
	if j.source == nil || s.Line < 1 || s.File == "" {
		return
	}
	l, err := j.source(f, s)
	if err != nil {
		return
	}
	j.member("source")
	j.open("{")
	j.numberMember("first", l.First)
	j.textsMember("lines", l.Text)
	j.textMember("warning", l.Warning)
	j.close("}")
}
