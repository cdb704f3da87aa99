// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
	"github.com/unwindd/unwindd/internal/escape"
)

// maxFlameCalls bounds the calls of a page: a browser takes some 100 MB for so many. The
// lightest are left out, which the page mentions.
const maxFlameCalls = 3_000_000

// WritePage writes the profile as a page of HTML: one file that needs no other, with flame
// graphs of every event, by time and by thread, and a table of functions.
func (r *Profile) WritePage(w io.Writer) error { return flamepage.Write(w, r.flamePage(maxFlameCalls)) }

// flamePage is the page of the profile, with at most as many calls as most.
func (r *Profile) flamePage(most int) *flamepage.Page {
	t := &profileText{Printer: NewPrinter(io.Discard), r: r, naming: names{most: wideName}}
	t.nameLines()
	page := &flamepage.Page{Name: escape.Text(r.title())}
	b := newPageBuilder(t, page)
	for i := range r.values {
		v := &r.values[i]
		if v.kind != valueOfWeight {
			continue
		}
		e := t.flameEvent(v)
		b.addSamples(&e, v)
		if step := joinSamples(&e, maxFlameSamples); step > 0 && e.IsTimed {
			page.Facts = append(page.Facts, flamepage.Fact{Name: "times of " + e.Name, Value: "in steps of " + newAmounts(step, "nanoseconds").text(step)})
		}
		page.Events = append(page.Events, e)
	}
	b.leaveOut(most)
	if r.p.Lost > 0 {
		page.Facts = append(page.Facts, flamepage.Fact{Name: "samples lost", Value: strconv.FormatUint(r.p.Lost, 10)})
	}
	guesses := r.countGuesses()
	page.Facts = append(page.Facts, guesses.facts()...)
	for _, p := range r.p.Problems {
		page.Problems = append(page.Problems, escape.Text(p))
	}
	return page
}

// flameFunction is a function in the page's format.
func (t *profileText) flameFunction(f *profileFunction) flamepage.Function {
	out := flamepage.Function{Name: escape.Text(f.name), Kind: kindOf(f)}
	if short := t.name(f); short != f.name {
		out.Short = escape.Text(short)
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
	e := flamepage.Event{Name: escape.Text(v.name), Unit: v.unit, Count: c.samples, Amount: a.text(c.total)}
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
