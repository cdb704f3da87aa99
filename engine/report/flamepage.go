// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
	"github.com/unwindd/unwindd/internal/escape"
)

// maxFlameCalls bounds the calls of all flame graphs of a page together: a browser takes some
// 10 MB for so many. The lightest are left out, which the page mentions.
const maxFlameCalls = 200_000

// WritePage writes the profile as a page of HTML: one file that needs no other, with a
// flame graph for every event and the functions in which most of it happened.
func (r *Profile) WritePage(w io.Writer) error {
	t := &profileText{Printer: NewPrinter(io.Discard), r: r, naming: names{most: wideName}}
	t.nameLines()
	r = r.MarkGuesses()
	page := &flamepage.Page{Name: escape.Text(r.title())}
	events := len(r.Events())
	threads := map[string]int32{}
	page.Functions = make([]flamepage.Function, len(r.functions))
	for i := range r.functions {
		page.Functions[i] = t.flameFunction(&r.functions[i])
	}
	for i := range r.values {
		v := &r.values[i]
		if v.kind != valueOfWeight {
			continue
		}
		e := t.flameEvent(v)
		e.Graph = r.flameGraph(v, page, threads, maxFlameCalls/events)
		page.Events = append(page.Events, e)
	}
	if r.p.Lost > 0 {
		page.Facts = append(page.Facts, flamepage.Fact{Name: "samples lost", Value: strconv.FormatUint(r.p.Lost, 10)})
	}
	guesses := r.countGuesses()
	page.Facts = append(page.Facts, guesses.facts()...)
	for _, p := range r.p.Problems {
		page.Problems = append(page.Problems, escape.Text(p))
	}
	return flamepage.Write(w, page)
}

// flameFunction is a function in the page's format.
func (t *profileText) flameFunction(f *profileFunction) flamepage.Function {
	out := flamepage.Function{Name: escape.Text(f.name), Kind: flamepage.CPU}
	switch {
	case f.isDevice:
		out.Kind = flamepage.GPU
	case f.isKernel:
		out.Kind = flamepage.Kernel
	}
	if short := t.name(f); short != f.name {
		out.Short = escape.Text(short)
	}
	if f.isGuess {
		mark(&out, guessText(1, 1))
	}
	switch {
	case f.line > 0:
		out.Place = escape.Text(position(f.file, f.line, 0))
	case f.file != "":
		out.Place = escape.Text(f.file)
	}
	if f.module != "" {
		out.Module = escape.Text(moduleName(f.module))
	}
	return out
}

// mark adds a remark to both names of a function.
func mark(f *flamepage.Function, text string) {
	f.Name += text
	if f.Short != "" {
		f.Short += text
	}
}

// flameEvent is an event with its table of functions, which is the text's.
func (t *profileText) flameEvent(v *profileValue) flamepage.Event {
	c := t.count(v)
	a := newAmounts(c.total, v.unit)
	e := flamepage.Event{Name: escape.Text(v.name), Samples: c.samples, Amount: a.text(c.total)}
	list := t.ordered(c)
	for i, line := range list {
		if i == topFunctions {
			e.Rest = fmt.Sprintf("%s more", plural(len(list)-i, "function", "functions"))
			break
		}
		f := t.flameFunction(&t.lines[line])
		mark(&f, guessText(c.guessed[line], c.cum[line]))
		e.Top = append(e.Top, flamepage.Row{
			Flat: a.text(c.flat[line]), FlatShare: percent(c.flat[line], c.total), Cum: a.text(c.cum[line]), CumShare: percent(c.cum[line], c.total),
			Function: f,
		})
	}
	return e
}

// flameGraph are the calls of a value, at most as many as most. Threads are numbered behind
// the functions of the page.
func (r *Profile) flameGraph(v *profileValue, page *flamepage.Page, threads map[string]int32, most int) flamepage.Graph {
	f := newFolder(r)
	// Calls refer to functions here, not to their names, which several may share.
	for i := range r.functions {
		f.ofFunction[i] = uint32(len(f.texts) + i) //nolint:gosec // a number of functions
	}
	names := len(f.texts)
	f.texts = append(f.texts, make([]string, len(r.functions))...)
	f.addSamples(v)
	totals := make([]uint64, len(f.nodes))
	for i := len(f.nodes) - 1; i > 0; i-- { // a caller comes before what it calls
		totals[i] = add(totals[i], f.nodes[i].count)
		totals[f.nodes[i].parent] = add(totals[f.nodes[i].parent], totals[i])
	}
	g := flamepage.Graph{Total: totals[0], Unit: v.unit, Callers: []int32{}, Functions: []int32{}, Totals: []uint64{}}
	g.Least = leastOf(totals[1:], most)
	calls := make([]int32, len(f.nodes))
	calls[0] = -1
	for i, n := range f.nodes[1:] {
		if totals[i+1] < g.Least {
			g.LeftOut++
			continue
		}
		calls[i+1] = int32(len(g.Totals)) //nolint:gosec // at most maxFlameCalls
		function := int32(int(n.name) - names)
		if n.parent == 0 {
			function = threadOf(page, threads, f.texts[n.name])
		}
		g.Callers, g.Functions, g.Totals = append(g.Callers, calls[n.parent]), append(g.Functions, function), append(g.Totals, totals[i+1])
	}
	return g
}

// threadOf is the number of the threads of a name among the functions of a page.
func threadOf(page *flamepage.Page, threads map[string]int32, name string) int32 {
	n, ok := threads[name]
	if !ok {
		n = int32(len(page.Functions)) //nolint:gosec // a number of functions
		threads[name] = n
		page.Functions = append(page.Functions, flamepage.Function{Name: escape.Text(name), Kind: flamepage.Thread})
	}
	return n
}

// leastOf is the weight from which calls are shown, at most as many as most; 0: all of them.
// No call weighs more than its caller, so no caller of a call that is shown is left out.
func leastOf(totals []uint64, most int) uint64 {
	if len(totals) <= most {
		return 0
	}
	sorted := slices.Clone(totals)
	slices.SortFunc(sorted, func(a, b uint64) int { return cmp.Compare(b, a) })
	return add(sorted[most], 1)
}
