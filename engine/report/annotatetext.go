// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// hotShare is the share of a function's samples that makes a line hot.
	hotShare = 0.05
	// instructionWidth is the largest width of the column of instructions.
	instructionWidth = 48
)

// WriteAnnotations writes the functions of Profile.Annotations for people: for each the lines
// of its source, then its instructions, with the number of samples at each.
func (r *Profile) WriteAnnotations(w io.Writer, o TextOptions) error {
	b := NewPrinter(w)
	t := &annotationText{profileText: &profileText{Printer: b, r: r, paint: newPaint(o.Color), isWhole: o.Verbose, naming: names{o.FullNames || o.Verbose, wideName}}}
	for i, counts := range r.countAnnotations(false) {
		if i > 0 {
			t.printf("\n")
		}
		t.annotation(&r.p.Annotations[i], counts)
	}
	return b.Flush()
}

type annotationText struct{ *profileText }

// annotation writes one function.
func (t *annotationText) annotation(a *trace.ProfileAnnotation, counts []*annotationCount) {
	t.title(a, counts)
	columns := t.columns(counts)
	if len(a.Lines) > 0 {
		t.lines(a, columns)
	}
	if len(a.Code) > 0 {
		t.instructions(a, columns)
	}
	for _, c := range counts {
		t.rest(c, c.unlined, len(a.Lines), "no line that is known")
		t.rest(c, c.elsewhere, len(a.Code), "no instruction of its own")
	}
}

// rest writes the number of samples at none of the places that are shown.
func (t *annotationText) rest(c *annotationCount, samples uint64, places int, where string) {
	if samples > 0 && places > 0 {
		t.printf("%s\n", t.faint(fmt.Sprintf("%s of %s at %s", plural(int(samples), "sample", "samples"), c.name, where))) //nolint:gosec // as many as Samples
	}
}

// title writes the function's name, the amount of each event, and missing data.
func (t *annotationText) title(a *trace.ProfileAnnotation, counts []*annotationCount) {
	f := profileFunction{name: oneLine(a.Function)}
	if a.Module >= 0 {
		f.module = oneLine(t.r.p.Modules[a.Module].Path)
	}
	if a.Device {
		t.printf("%s", t.device(deviceColumn))
	}
	t.function(&f, "")
	t.printf("\n")
	for _, c := range counts {
		t.printf("  %s: %s", c.name, plural(int(c.all.samples), "sample", "samples")) //nolint:gosec // as many as Samples
		if c.all.weight != c.all.samples {
			t.printf(", %s", newAmounts(c.all.weight, c.unit).text(c.all.weight))
		}
		if t.r.hasLanes(c.event) {
			t.printf(", %s lanes active", mean(c.all.lanes, c.all.samples))
		}
		var parts []string
		stalls := t.r.stallsOf(&c.all)
		for _, state := range stalls[:min(len(stalls), maxSummary)] {
			parts = append(parts, t.r.stateName(state)+" "+strings.TrimSpace(percent(c.all.states[state], c.all.weight)))
		}
		if len(parts) > 0 {
			t.printf(", stalled by %s", strings.Join(parts, ", "))
		}
		t.printf("\n")
	}
	if len(counts) == 0 {
		t.printf("  %s\n", t.faint("no samples of its own: they are in what it calls"))
	}
	if len(a.InlinedInto) > 0 {
		names := make([]string, len(a.InlinedInto))
		for i, name := range a.InlinedInto {
			names[i] = t.naming.of(&trace.Symbol{Function: name})
		}
		t.printf("  %s\n", t.faint("inlined into "+strings.Join(names, ", ")))
	}
	if a.IsRecorded {
		t.printf("  %s\n", t.warn("the code object was not found: these are the sampled instructions, as the file of samples has them"))
	}
	for _, p := range a.Problems {
		t.printf("  %s\n", t.faint(p))
	}
}

// column is numbers of one kind, beside lines and instructions.
type column struct {
	title  string
	width  int
	number func(c *annotationCount, place *sampleCount) (text string, isHot bool)
	count  *annotationCount
}

// columns are the columns of the events, which lines and instructions share.
func (t *annotationText) columns(counts []*annotationCount) (list []column) {
	for _, c := range counts {
		list = append(list, t.amountColumn(c), column{"%", 6, func(c *annotationCount, place *sampleCount) (string, bool) {
			if place.weight == 0 {
				return "", false
			}
			return strings.TrimSpace(percent(place.weight, c.all.weight)), float64(place.weight) >= float64(c.all.weight)*hotShare
		}, c})
		if t.r.hasLanes(c.event) {
			list = append(list, column{"lanes", 5, func(_ *annotationCount, place *sampleCount) (string, bool) {
				return mean(place.lanes, place.samples), false
			}, c})
		}
		stalls := t.r.stallsOf(&c.all)
		for _, state := range stalls[:min(len(stalls), annotationStalls)] {
			list = append(list, column{t.r.stateName(state), 6, func(_ *annotationCount, place *sampleCount) (string, bool) {
				if place.states == nil || place.states[state] == 0 {
					return "", false
				}
				return fmt.Sprint(place.states[state]), false
			}, c})
		}
	}
	for i := range list {
		list[i].width = max(list[i].width, utf8.RuneCountInString(list[i].title))
	}
	return list
}

// amountColumn is the amount of an event: the number of samples, or for accelerators the
// weight of the samples, each of which may stand for many.
func (t *annotationText) amountColumn(c *annotationCount) column {
	title, a := "samples", newAmounts(c.all.weight, c.unit)
	if !t.r.isOfDevice(c.event) {
		a = amounts{}
	}
	if a.unit != "" {
		title = "time"
	}
	return column{title, 9, func(c *annotationCount, place *sampleCount) (string, bool) {
		switch {
		case place.samples == 0:
			return "", false
		case t.r.isOfDevice(c.event):
			return a.text(place.weight), false
		}
		return fmt.Sprint(place.samples), false
	}, c}
}

// titles writes the titles of columns.
func (t *annotationText) titles(columns []column, rest string) {
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "%*s  ", c.width, c.title)
	}
	t.printf("\n%s\n", t.header(b.String()+rest))
}

// numbers writes the numbers of a line or instruction.
func (t *annotationText) numbers(columns []column, count func(c *annotationCount) *sampleCount) {
	for _, c := range columns {
		s := count(c.count)
		text, isHot := "", false
		if s.samples > 0 {
			text, isHot = c.number(c.count, s)
		}
		text = fmt.Sprintf("%*s", c.width, text)
		if isHot {
			t.printf("%s  ", t.warn(text))
		} else {
			t.printf("%s  ", text)
		}
	}
}

// lines writes the lines of a function's source.
func (t *annotationText) lines(a *trace.ProfileAnnotation, columns []column) {
	width := 4
	hasInlined := false
	for i := range a.Lines {
		width = max(width, len(fmt.Sprint(a.Lines[i].Line)))
		hasInlined = hasInlined || slices.ContainsFunc(columns, func(c column) bool { return c.count.lines[i].inlined > 0 })
	}
	if hasInlined {
		columns = t.withInlined(columns)
	}
	file := ""
	for i := range a.Lines {
		l := &a.Lines[i]
		if !l.HasText && !slices.ContainsFunc(columns, func(c column) bool { return c.count.lines[i].samples > 0 }) {
			continue // outside the shown lines
		}
		switch {
		case l.File != file:
			file = l.File
			t.titles(columns, fmt.Sprintf("%*s  %s", width, "line", oneLine(file)))
		case i > 0 && l.Line > a.Lines[i-1].Line+1 && l.HasText:
			t.printf("%s\n", t.faint("..."))
		}
		t.numbers(columns, func(c *annotationCount) *sampleCount { return &c.lines[i] })
		t.printf("%s", t.faint(fmt.Sprintf("%*d", width, l.Line)))
		if l.Text != "" {
			t.printf("  %s", expand(l.Text))
		}
		t.printf("\n")
	}
}

// withInlined adds a column behind the first one's share: the part in calls that are inlined
// at the line.
func (t *annotationText) withInlined(columns []column) (list []column) {
	for _, c := range columns {
		list = append(list, c)
		if c.title == "%" {
			list = append(list, column{"inlined", len("inlined"), func(c *annotationCount, place *sampleCount) (string, bool) {
				if place.inlined == 0 {
					return "", false
				}
				return strings.TrimSpace(percent(place.inlined, c.all.weight)), false
			}, c.count})
		}
	}
	return list
}

// instructions writes the instructions of a function. Where the line differs from the line of
// the instruction before, it stands behind, and the line of PTX behind that.
func (t *annotationText) instructions(a *trace.ProfileAnnotation, columns []column) {
	width, longest := 6, len("instruction")
	for i := range a.Code {
		width = max(width, len(address(a.Code[i].Offset)))
		longest = max(longest, utf8.RuneCountInString(a.Code[i].Text))
	}
	longest = min(longest, instructionWidth)
	t.titles(columns, fmt.Sprintf("%*s  instruction", width, "offset"))
	before, beforePTX := "", ""
	for i := range a.Code {
		instruction := &a.Code[i]
		t.numbers(columns, func(c *annotationCount) *sampleCount { return &c.code[i] })
		t.printf("%s  ", t.faint(fmt.Sprintf("%*s", width, address(instruction.Offset))))
		text := cmp.Or(instruction.Text, "-")
		place, ptx := t.placeOf(instruction), ptxOf(instruction)
		isNew := place != "" && place != before
		if isNew {
			before = place
		}
		isNewPTX := ptx != "" && ptx != beforePTX
		if isNewPTX {
			beforePTX = ptx
		}
		switch {
		case !isNew && !isNewPTX:
			t.printf("%s\n", text)
		case !isNewPTX:
			t.printf("%-*s  %s\n", longest, text, t.place(place))
		case !isNew:
			t.printf("%-*s  %s\n", longest, text, t.faint(ptx))
		default:
			t.printf("%-*s  %s  %s\n", longest, text, t.place(place), t.faint(ptx))
		}
	}
}

// ptxOf is the line of PTX of an instruction; "" where it has none.
func ptxOf(instruction *trace.AnnotatedInstruction) string {
	if instruction.PTXLine == 0 {
		return ""
	}
	return oneLine(fmt.Sprintf("PTX %d: %s", instruction.PTXLine, strings.Join(strings.Fields(instruction.PTX), " ")))
}

// placeOf is the line of an instruction, with the function that is inlined there.
func (t *annotationText) placeOf(instruction *trace.AnnotatedInstruction) string {
	if instruction.File == "" {
		return ""
	}
	place := oneLine(instruction.File)
	if !t.isWhole {
		place = path.Base(place)
	}
	if instruction.InlineLine > 0 {
		place = position(place, instruction.InlineLine, 0)
	}
	if instruction.Inlined != "" {
		place += " " + t.naming.of(&trace.Symbol{Function: instruction.Inlined, File: instruction.File})
	}
	return place
}
