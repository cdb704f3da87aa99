// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
)

// localsIndent stands before the variables of a frame.
const localsIndent = "        "

// locals writes the variables of a function of a frame.
func (t *text) locals(f *trace.Frame, level int) {
	if list := f.Locals(); level < len(list) {
		t.variables(list[level], lanesThatExecute(f))
	}
}

// lanesThatExecute are the active lanes of a frame.
func lanesThatExecute(f *trace.Frame) (all trace.LaneSet) {
	groups := f.Lanes()
	for i := range groups {
		if groups[i].State == trace.LaneActive {
			all = groups[i].Lanes
		}
	}
	return all
}

// waiting writes the variables of lanes that wait at other places.
func (t *text) waiting(groups []trace.LaneGroup, width int) {
	for i := range groups {
		g := &groups[i]
		for level, list := range g.Locals {
			if len(list) == 0 {
				continue
			}
			t.waitingIn(g, level, width)
			t.variables(list, g.Lanes)
		}
	}
}

// waitingIn writes the function in which lanes have the variables that follow.
func (t *text) waitingIn(g *trace.LaneGroup, level, width int) {
	name := "??"
	if level < len(g.Symbols) && g.Symbols[level].Function != "" {
		name = g.Symbols[level].Function
	}
	t.printf("   %*s %s %s have in %s\n", width, "", t.faint("lanes"), g.Lanes, t.function(name))
}

// variables writes variables. Where lanes differ several have one name; all are the lanes of
// the whole list.
func (t *text) variables(list []trace.FrameVariable, all trace.LaneSet) {
	for len(list) > 0 {
		n := sameVariable(list)
		if !t.laneTable(list[:n]) {
			for i := range n {
				t.variable(&list[i], all)
			}
		}
		list = list[n:]
	}
}

// sameVariable is the number of leading elements that are one variable in several lanes.
func sameVariable(list []trace.FrameVariable) (n int) {
	first := &list[0]
	seen := slices.Clone(first.Lanes)
	for n = 1; n < len(list); n++ {
		v := &list[n]
		if v.Lanes == nil || len(v.Lanes) != len(seen) || v.Name != first.Name || v.Line != first.Line || v.IsShadowed != first.IsShadowed {
			return n
		}
		for i := range seen {
			if seen[i]&v.Lanes[i] != 0 {
				return n
			}
			seen[i] |= v.Lanes[i]
		}
	}
	return n
}

// variable writes a variable in a line.
func (t *text) variable(v *trace.FrameVariable, all trace.LaneSet) {
	isOfSome := v.Lanes != nil && !slices.Equal(v.Lanes, all)
	if !isOfSome && !v.IsShadowed && !t.isVerbose {
		t.line = append(append(t.line[:0], variableName(v)...), " = "...)
		t.line = value.AppendLine(t.line, &v.Value, v.Language)
		t.printLine(localsIndent, t.line)
		return
	}
	t.printf(localsIndent+"%s", variableName(v))
	if isOfSome {
		t.printf(" %s", t.faint("lanes "+v.Lanes.String()))
	}
	t.printf(" = %s", value.Line(&v.Value, v.Language))
	t.remarks(v)
	t.printf("\n")
}

func variableName(v *trace.FrameVariable) string {
	if v.Name == "" {
		return "<unnamed " + string(v.Kind) + ">"
	}
	return v.Name
}

// remarks writes the remarks on a variable behind its value.
func (t *text) remarks(v *trace.FrameVariable) {
	if v.IsShadowed {
		t.printf(" %s", t.faint("(shadowed)"))
	}
	if t.isVerbose {
		t.printf(" %s", t.faint(about(v)))
	}
}

// about is the verbose description of a variable beside its value.
func about(v *trace.FrameVariable) string {
	parts := []string{string(v.Kind)}
	if v.Type != "" {
		parts = append(parts, v.Type)
	}
	if location := v.Location(); location != "" {
		parts = append(parts, "at "+location)
	}
	if v.Problem != "" && v.Status != "error" {
		parts = append(parts, v.Problem)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
