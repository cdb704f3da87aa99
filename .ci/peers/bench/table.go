// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// section of the document is questions of one kind, by size.
type section struct {
	name, title string
	unit        string // of the sizes; "": they are not of one kind
	make        func(b *bench) ([]*contest, error)
	outcomes    []*outcome
}

// ratio is ours by a peer's, in each round.
type ratio []float64

// of makes a ratio of what the rounds have in common.
func of(ours, theirs []*cost.Cost, figure func(*cost.Cost) float64) (r ratio) {
	for i := range min(len(ours), len(theirs)) {
		if their := figure(theirs[i]); their > 0 {
			r = append(r, figure(ours[i])/their)
		}
	}
	slices.Sort(r)
	return r
}

// median is 0 of no rounds.
func (r ratio) median() float64 {
	if len(r) == 0 {
		return 0
	}
	return (r[(len(r)-1)/2] + r[len(r)/2]) / 2
}

// String has the median, and the smallest and the largest where there are several.
func (r ratio) String() string {
	switch len(r) {
	case 0:
		return ""
	case 1:
		return number(r[0])
	}
	return fmt.Sprintf("%s (%s to %s)", number(r.median()), number(r[0]), number(r[len(r)-1]))
}

// number has two digits that say something.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 0.1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func seconds(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f ms", float64(d)/1e6)
}

func mib(kib float64) string {
	if kib >= 100*1024 {
		return fmt.Sprintf("%.0f MiB", kib/1024)
	}
	return fmt.Sprintf("%.1f MiB", kib/1024)
}

// The figures of a run.
var (
	wall   = func(c *cost.Cost) float64 { return float64(c.Wall) }
	cpu    = func(c *cost.Cost) float64 { return float64(c.CPU) }
	own    = func(c *cost.Cost) float64 { return float64(c.Own) }
	mapped = func(c *cost.Cost) float64 { return float64(c.All) }
)

// figure is one of those that tools are compared by.
type figure struct {
	name   string
	figure func(*cost.Cost) float64
}

var (
	byClock    = figure{"time", wall}
	processors = figure{"processors", cpu}
	memory     = figure{"memory", own}
	withFiles  = figure{"with files", mapped}
	figures    = []figure{byClock, processors, memory, withFiles}
)

// text is a figure with its unit.
func (f figure) text(x float64) string {
	if f.name == memory.name || f.name == withFiles.name {
		return mib(x)
	}
	return seconds(time.Duration(x))
}

// least is the smallest of a figure over the rounds.
func least(runs []*cost.Cost, figure func(*cost.Cost) float64) float64 {
	best := math.Inf(1)
	for _, c := range runs {
		best = min(best, figure(c))
	}
	return best
}

// middle is the median of a figure over the rounds.
func middle(runs []*cost.Cost, figure func(*cost.Cost) float64) float64 {
	var all ratio
	for _, c := range runs {
		all = append(all, figure(c))
	}
	slices.Sort(all)
	return all.median()
}

// write writes the table of a section, and how its figures grow.
func (s *section) write(w io.Writer) {
	if len(s.outcomes) == 0 {
		return
	}
	fmt.Fprintf(w, "### %s\n\n", s.title)
	fmt.Fprint(w, "| input | tool | time | processors | memory | with files | unwindd / it: time | processors | memory | with files | answers |\n")
	fmt.Fprint(w, "|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range s.outcomes {
		for i, r := range o.results {
			input := ""
			if i == 0 {
				input = o.input
			}
			fmt.Fprintf(w, "| %s | %s | %s |\n", input, r.tool, strings.Join(o.cells(i), " | "))
		}
	}
	fmt.Fprintln(w)
	s.writeGrowth(w)
}

// cells are those behind the name of a tool.
func (o *outcome) cells(i int) []string {
	r, ours := o.results[i], o.results[0]
	if len(r.runs) == 0 {
		return []string{"", "", "", "", "", "", "", "", oneLine(cmp.Or(r.failed, "not measured"))}
	}
	list := []string{"", "", "", "", "", "", "", "", r.decision.String()}
	for n, f := range figures {
		list[n] = f.text(middle(r.runs, f.figure))
		if smallest := f.text(least(r.runs, f.figure)); smallest != list[n] {
			list[n] += " (" + smallest + ")"
		}
		if i > 0 {
			list[4+n] = of(ours.runs, r.runs, f.figure).String()
		}
	}
	return list
}

// oneLine is text that fits into a cell.
func oneLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.ReplaceAll(line, "|", "\\|")
}

// writeGrowth says for each tool how often more it takes of the largest input that it
// answered than of the smallest.
func (s *section) writeGrowth(w io.Writer) {
	if s.unit == "" || len(s.outcomes) < 2 {
		return
	}
	fmt.Fprintf(w, "| tool | %s | times as large | processors | memory | with files |\n|---|---|---|---|---|---|\n", s.unit)
	for _, tool := range s.tools() {
		var sizes []float64
		var runs [][]*cost.Cost
		for _, o := range s.outcomes {
			for _, r := range o.results {
				if r.tool == tool && len(r.runs) > 0 && o.size > 0 {
					sizes, runs = append(sizes, o.size), append(runs, r.runs)
				}
			}
		}
		if len(sizes) < 2 {
			continue
		}
		last := len(sizes) - 1
		times := func(figure func(*cost.Cost) float64) string {
			return number(middle(runs[last], figure) / math.Max(middle(runs[0], figure), 1))
		}
		fmt.Fprintf(w, "| %s | %.0f to %.0f | %s | %s | %s | %s |\n", tool, sizes[0], sizes[last], number(sizes[last]/sizes[0]), times(cpu), times(own), times(mapped))
	}
	fmt.Fprintln(w)
}

// tools are all of a section, by first appearance.
func (s *section) tools() (list []string) {
	for _, o := range s.outcomes {
		for _, r := range o.results {
			if !slices.Contains(list, r.tool) {
				list = append(list, r.tool)
			}
		}
	}
	return list
}

// deficit is an answer for which a peer takes less.
type deficit struct {
	question, tool string
	ratios         []ratio // of figures[1:]
}

// deficits returns the deficits of the sections, except in time by the clock, on which
// other work of the machine has most influence: first in processor time, the worst before
// others.
func deficits(sections []*section) (list []deficit) {
	for _, s := range sections {
		for _, o := range s.outcomes {
			for _, r := range o.results[1:] {
				if isOurs(r.tool) {
					continue
				}
				d := deficit{question: s.title + ", " + o.input, tool: r.tool}
				isBehind := false
				for _, f := range figures[1:] {
					x := of(o.results[0].runs, r.runs, f.figure)
					isBehind = isBehind || x.median() > 1
					d.ratios = append(d.ratios, x)
				}
				if isBehind {
					list = append(list, d)
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b deficit) int {
		return cmp.Compare(b.ratios[0].median(), a.ratios[0].median())
	})
	return list
}

// before is the tool of an older unwindd.
const before = "before"

// isOurs says that a tool is unwindd, an older one or with other flags.
func isOurs(tool string) bool { return tool == before || strings.HasPrefix(tool, "unwindd") }

// writeGoals writes the bounds that the contests are held against, and whether they hold.
func writeGoals(w io.Writer, sections []*section) {
	fmt.Fprint(w, "### Goals\n\n| question | figure | goal | median (smallest to largest) | before | |\n|---|---|---|---|---|---|\n")
	for _, s := range sections {
		for _, o := range s.outcomes {
			for _, g := range o.goals {
				got, text := s.measured(o, o.results[0].tool, g)
				verdict := "met"
				switch {
				case text == "":
					verdict = "not measured"
				case got > g.most:
					verdict = "**missed**"
				}
				_, old := s.measured(o, before, g)
				fmt.Fprintf(w, "| %s, %s | %s | %s | %s | %s | %s |\n", s.title, o.input, g.figure.name, g, text, old, verdict)
			}
		}
	}
	fmt.Fprintln(w)
}

// String is the bound in words.
func (g goal) String() string {
	switch {
	case g.tool != "":
		return fmt.Sprintf("at most %s of %s", number(g.most), g.tool)
	case g.smaller != "":
		return fmt.Sprintf("for one at most %s of %s", number(g.most), g.smaller)
	}
	return "at most " + g.figure.text(g.most)
}

// result is that of a tool; nil: it was not measured.
func (o *outcome) result(tool string) *result {
	for _, r := range o.results {
		if r.tool == tool && len(r.runs) > 0 {
			return r
		}
	}
	return nil
}

// measured is the figure of a goal, in a form to compare and as text; "": it was not
// measured.
func (s *section) measured(o *outcome, tool string, g goal) (got float64, text string) {
	ours := o.result(tool)
	if ours == nil {
		return 0, ""
	}
	figure := g.figure.figure
	if g.tool != "" {
		theirs := o.result(g.tool)
		if theirs == nil {
			return 0, ""
		}
		x := of(ours.runs, theirs.runs, figure)
		return x.median(), x.String()
	}
	got = middle(ours.runs, figure)
	if g.smaller == "" {
		return got, fmt.Sprintf("%s (%s)", g.figure.text(got), g.figure.text(least(ours.runs, figure)))
	}
	for _, smaller := range s.outcomes {
		if r := smaller.result(tool); smaller.input == g.smaller && r != nil {
			got = got / o.size / (middle(r.runs, figure) / smaller.size)
			return got, number(got)
		}
	}
	return 0, ""
}

// writeDeficits writes them all.
func writeDeficits(w io.Writer, list []deficit) {
	fmt.Fprint(w, "### Behind a peer\n\n")
	if len(list) == 0 {
		fmt.Fprint(w, "Nowhere.\n\n")
		return
	}
	fmt.Fprint(w, "| question | peer | unwindd / it: processors | memory | with files |\n|---|---|---|---|---|\n")
	for _, d := range list {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", d.question, d.tool, d.ratios[0], d.ratios[1], d.ratios[2])
	}
	fmt.Fprintln(w)
}
