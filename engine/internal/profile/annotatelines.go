// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/source"
	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxListedLines is the length of the longest function that is listed as a whole; of a
	// longer one only lines with code and nearLines around them are listed.
	maxListedLines = 2000
	nearLines      = 3
	// maxDeclarationDistance is how far before its first line with code a function may be
	// declared for the lines between to belong to it.
	maxDeclarationDistance = 100
)

// needLine records a line of the function, by its own frame there.
func (g *annotated) needLine(s *trace.Symbol) {
	if s.File == "" || s.Line < 1 {
		return
	}
	if key := (lineKey{s.File, s.Line}); g.symbols[key] == nil {
		copied := *s
		g.symbols[key] = &copied
	}
}

// lines makes the lines of a function, and returns the index of each.
func (a *annotator) lines(g *annotated) map[lineKey]int32 {
	byFile := map[string][]int{}
	for key := range g.symbols {
		byFile[key.file] = append(byFile[key.file], key.line)
	}
	files := make([]string, 0, len(byFile))
	for file, lines := range byFile {
		slices.Sort(lines)
		files = append(files, file)
	}
	// The file with most of its lines comes first.
	slices.SortFunc(files, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(byFile[y]), len(byFile[x])), strings.Compare(x, y))
	})
	index := map[lineKey]int32{}
	for i, file := range files {
		a.listFile(g, file, byFile[file], i == 0)
	}
	for i := range g.Lines {
		index[lineKey{g.Lines[i].File, g.Lines[i].Line}] = int32(i) //nolint:gosec // as many as lines with code, and maxListedLines
	}
	return index
}

// listFile lists the lines of a function in a file. In the function's main file they are listed
// as a whole.
func (a *annotator) listFile(g *annotated, file string, lines []int, isMain bool) {
	first := g.symbols[lineKey{file, lines[0]}]
	start, last := lines[0], lines[len(lines)-1]
	if d := start - first.StartLine; isMain && first.StartFile == file && d > 0 && d <= maxDeclarationDistance && first.StartLine > 0 {
		start = first.StartLine
	}
	isWhole := isMain && last-start < maxListedLines
	isNear := func(n, near int) bool {
		i, _ := slices.BinarySearch(lines, n-near)
		return i < len(lines) && lines[i] <= n+near
	}
	text, problem := a.text(g, first, start)
	if problem != "" {
		g.problem("no source: %s", problem)
		isWhole = false
	}
	if !isWhole && isMain && problem == "" {
		start, last = max(1, start-nearLines), last+nearLines
	}
	list := lines
	if isMain && problem == "" {
		list = nil
		for n := start; n <= last; n++ {
			switch {
			case isWhole, isNear(n, nearLines):
				list = append(list, n)
			default: // on to the lines near the next one
				i, _ := slices.BinarySearch(lines, n)
				n = max(n, lines[i]-nearLines-1)
			}
		}
	}
	for _, n := range list {
		line := trace.AnnotatedLine{File: file, Line: n}
		line.Text, line.HasText = text(n)
		if line.HasText || isNear(n, 0) {
			g.Lines = append(g.Lines, line)
		}
	}
}

// text returns the lines of the file of a function's frame, most of them after a first.
func (a *annotator) text(g *annotated, s *trace.Symbol, first int) (lineAt func(line int) (string, bool), problem string) {
	chunks := map[int]trace.SourceLines{}
	p := source.PlaceOf(s)
	if g.module != nil {
		p.BuildID, p.Object = g.module.BuildID, g.module.Path
		if o := g.module.Object; o != nil {
			p.Modified = o.ModTime()
			if len(p.BuildID) == 0 {
				p.BuildID = o.BuildID()
			}
		}
	}
	const size = source.MaxLines / 2
	chunk := func(line int) (trace.SourceLines, error) {
		n := line / size
		l, ok := chunks[n]
		if ok {
			return l, nil
		}
		path := p
		path.Line = line
		l, err := a.sources.Lines(path, source.MaxLines)
		if err == nil && len(chunks) < maxListedLines {
			chunks[n] = l
		}
		return l, err
	}
	l, err := chunk(first)
	if err != nil {
		return func(int) (string, bool) { return "", false }, err.Error()
	}
	if l.Warning != "" {
		g.problem("%s", l.Warning)
	}
	return func(line int) (string, bool) {
		l, err := chunk(line)
		if err != nil || line < l.First || line-l.First >= len(l.Text) {
			return "", false
		}
		return l.Text[line-l.First], true
	}, ""
}
