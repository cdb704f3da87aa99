// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/stackpage"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

const (
	// maxPageValues bounds the parts of all variables of a page: a browser has an
	// element for each. The lines of variables are not bounded by it.
	maxPageValues = 50_000
	// maxPageValueText bounds the text of a part that has parts itself, in bytes.
	maxPageValueText = 160
	// maxPageDepth bounds the parts within one another: browsers bound the elements
	// within one another.
	maxPageDepth = 64
)

// locals are the variables of a function of a frame.
func (p *pageText) locals(f *trace.Frame, level int) []stackpage.Variables {
	list := f.Locals()
	if level >= len(list) || len(list[level]) == 0 {
		return nil
	}
	return []stackpage.Variables{{List: p.variables(list[level], lanesThatExecute(f))}}
}

// waiting are the variables of lanes that wait at other places.
func (p *pageText) waiting(f *trace.Frame, width int) (out []stackpage.Variables) {
	groups := f.Lanes()
	for i := range groups {
		g := &groups[i]
		for level, list := range g.Locals {
			if len(list) > 0 {
				title := p.takeLine(func() { p.waitingIn(g, level, width) })
				out = append(out, stackpage.Variables{Title: title, List: p.variables(list, g.Lanes)})
			}
		}
	}
	return out
}

// variables are variables as the text has them: variables of many lanes as a table, others in
// a line each, with their parts.
func (p *pageText) variables(list []trace.FrameVariable, all trace.LaneSet) (out []stackpage.Variable) {
	for len(list) > 0 {
		n := sameVariable(list)
		same := list[:n]
		list = list[n:]
		if table := p.take(func() { p.laneTable(same) }); table != nil {
			out = append(out, stackpage.Variable{Lines: table})
			continue
		}
		for i := range same {
			v := &same[i]
			out = append(out, stackpage.Variable{
				Lines: p.take(func() { p.variable(v, all) }), Type: p.typeOf(&v.Value),
				Parts: p.valueParts(&v.Value, v.Language, 0),
			})
		}
	}
	return out
}

// typeOf is the type of a variable where its line does not have it.
func (p *pageText) typeOf(v *trace.Value) string {
	if p.isVerbose {
		return ""
	}
	return escape.Text(v.Type)
}

// valueParts are the parts of a value, as far as the page's limit allows.
func (p *pageText) valueParts(v *trace.Value, language uint64, depth int) (out []stackpage.Value) {
	if depth == maxPageDepth || p.values < len(v.Children) {
		return nil
	}
	p.values -= len(v.Children)
	for i := range v.Children {
		c := &v.Children[i]
		part := stackpage.Value{Name: escape.Text(partName(c)), Type: escape.Text(c.Type), Text: escape.Text(value.Line(c, language))}
		if part.Parts = p.valueParts(c, language, depth+1); part.Parts != nil {
			part.Text = cutShort(part.Text, maxPageValueText)
		}
		part.Note = leftOut(c, len(part.Parts))
		out = append(out, part)
	}
	return out
}

// partName is the name of a part of a value.
func partName(v *trace.Value) string {
	if v.Name == "" && v.Role != trace.RolePlain {
		return string(v.Role)
	}
	return v.Name
}

// leftOut describes the parts of a value that a page does not show, beyond the number shown;
// "" where it shows all.
func leftOut(v *trace.Value, shown int) string {
	switch more := v.More + uint64(len(v.Children)-shown); {
	case more > 0:
		return fmt.Sprintf("and %d more", more)
	case v.IsDeep:
		return "more lies deeper"
	}
	return ""
}
