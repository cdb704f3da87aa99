// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
	"github.com/unwindd/unwindd/engine/internal/selection"
	"github.com/unwindd/unwindd/internal/escape"
)

// diffRow is a function in both profiles. Weights of the base are scaled.
type diffRow struct {
	line        int32
	before, now uint64
}

func (r *diffRow) change() float64 { return float64(r.now) - float64(r.before) }

// diffLines are the lines of a table of a difference.
const diffLines = 25

// diffText writes a difference for people.
type diffText struct {
	*profileText
	d             *Diff
	before, after *profileCount
	whole         float64 // of which shares are: the weight of the changed profile
	amounts       amounts // per second
	width         int     // of columns
}

// WriteText writes the difference for people: the functions in which most changed, by what
// happened in themselves, and by what happened in them and in all that they called.
func (d *Diff) WriteText(w io.Writer, o TextOptions) error {
	b := NewPrinter(w)
	t := &profileText{Printer: b, r: d.r, paint: newPaint(o.Color), isWhole: o.Verbose, naming: names{o.FullNames || o.Verbose, wideName}}
	t.nameLines()
	x := diffText{profileText: t, d: d, before: t.count(d.before()), after: t.count(d.now()), whole: float64(d.changed.total)}
	x.amounts = newAmounts(x.perSecond(max(d.changed.total, d.scaled(d.base.total))), d.changed.unit)
	x.width = len("percent")
	if d.o.PerSecond {
		x.width = len(x.text(max(d.changed.total, d.scaled(d.base.total)))) + 1 // and a sign
	}
	for _, line := range d.heading() {
		b.printf("%s\n", t.header(line))
	}
	hasChance := x.table("self", x.before.flat, x.after.flat)
	hasChance = x.table("total", x.before.cum, x.after.cum) || hasChance
	if hasChance {
		b.printf("\n%s\n", t.faint("~ is a change that so few samples show by chance, in one case of twenty at least"))
	}
	return b.Flush()
}

// table writes the functions by how much one of their amounts changed.
func (x *diffText) table(title string, before, now []uint64) (hasChance bool) {
	var rows []diffRow
	same := 0
	for line := range x.lines {
		r := diffRow{int32(line), x.d.scaled(before[line]), now[line]} //nolint:gosec // an index
		switch {
		case r.before == 0 && r.now == 0:
		case x.text(r.before) == x.text(r.now):
			same++
		default:
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b diffRow) int {
		return cmp.Or(cmp.Compare(math.Abs(b.change()), math.Abs(a.change())), compareLines(&x.lines[a.line], &x.lines[b.line]))
	})
	x.printf("\n%s\n", x.header(fmt.Sprintf("%*s  %*s  %*s    %s, in function", x.width, "base", x.width, "new", x.width, "change", title)))
	for i := range rows {
		if i == diffLines {
			x.printf("%s\n", x.faint(fmt.Sprintf("%*sin %d functions more", 3*x.width+8, "", len(rows)-i)))
			break
		}
		hasChance = x.row(&rows[i], before[rows[i].line]) || hasChance
	}
	if same > 0 {
		x.printf("%s\n", x.faint(fmt.Sprintf("%*s%s without a change", 3*x.width+8, "", plural(same, "function", "functions"))))
	}
	return hasChance
}

// row writes a function. It reports whether its change may be by chance.
func (x *diffText) row(r *diffRow, before uint64) (isChance bool) {
	isChance = x.isByChance(before, r.now)
	x.printf("%*s  %*s  ", x.width, x.text(r.before), x.width, x.text(r.now))
	switch change := x.change(r); {
	case isChance:
		x.printf("%s  ", x.faint(change+" ~"))
	case r.change() > 0:
		x.printf("%s    ", x.warn(change))
	default:
		x.printf("%s    ", change)
	}
	f := &x.lines[r.line]
	x.function(f, x.path(f.file))
	switch {
	case r.before == 0:
		x.printf(" %s", x.faint("(only in new)"))
	case r.now == 0:
		x.printf(" %s", x.faint("(only in base)"))
	}
	x.printf("\n")
	return isChance
}

// perSecond is a weight in one second of the changed recording.
func (x *diffText) perSecond(weight uint64) uint64 {
	if x.d.changed.seconds == 0 {
		return weight
	}
	return uint64(math.Round(float64(weight) / x.d.changed.seconds))
}

// text is a weight as a share, or as an amount in a second.
func (x *diffText) text(weight uint64) string {
	if x.d.o.PerSecond {
		return x.amounts.text(x.perSecond(weight)) + "/s"
	}
	return strings.TrimSpace(percent(weight, x.d.changed.total))
}

// change is the text of a change: in points of percent, or as an amount in a second.
func (x *diffText) change(r *diffRow) string {
	if !x.d.o.PerSecond {
		return fmt.Sprintf("%+*.1f", x.width, 100*r.change()/x.whole)
	}
	sign, most, least := "+", r.now, r.before
	if r.now < r.before {
		sign, most, least = "-", r.before, r.now
	}
	return fmt.Sprintf("%*s", x.width, sign+x.amounts.text(x.perSecond(most-least))+"/s")
}

// isByChance reports whether a change is less than two standard errors of the numbers of samples.
// A function has as many samples as its part of the weight.
func (x *diffText) isByChance(before, now uint64) bool {
	variance := func(weight uint64, s *diffSide) (value, variance float64) {
		n, part := float64(s.samples), float64(weight)/float64(s.total)
		left := 1 - part
		if x.d.o.PerSecond { // the whole is by chance, too
			left = 1
		}
		return part, math.Max(part, 1/n) * math.Max(left, 1/n) / n
	}
	p, v := variance(before, &x.d.base)
	q, w := variance(now, &x.d.changed)
	change := q - p
	if x.d.o.PerSecond {
		ratio := float64(x.d.scaled(x.d.base.total)) / float64(x.d.changed.total)
		change, v = q-p*ratio, v*ratio*ratio
	}
	return change*change < 4*(v+w)
}

// WriteFolded writes a line for each stack: the thread's name, the functions from the outermost
// on, the weight in the base, and the weight in the changed profile. Weights of the base are
// scaled to be comparable. Lines are in the order of their names.
func (d *Diff) WriteFolded(w io.Writer) error {
	f := newFolder(d.r)
	f.addSamples(d.before())
	before := make([]uint64, len(f.nodes))
	for i := range f.nodes {
		before[i], f.nodes[i].count = f.nodes[i].count, 0
	}
	f.addSamples(d.now())
	before = append(before, make([]uint64, len(f.nodes)-len(before))...)
	f.findChildren()
	f.rankTexts()
	for i, text := range f.texts {
		f.texts[i] = escape.Text(text)
	}
	b := newOutput(w)
	type open struct {
		node   uint32
		length int // of the line before its name
	}
	var line []byte
	todo := []open{{}}
	for len(todo) > 0 {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := &f.nodes[o.node]
		length := 0
		if o.node != 0 {
			line = append(line[:o.length], f.texts[n.name]...)
			length = len(line) + 1
			if before[o.node] > 0 || n.count > 0 {
				fmt.Fprintf(b, "%s %d %d\n", line, d.scaled(before[o.node]), n.count)
			}
			line = append(line, ';')
		}
		children := f.children[f.first[o.node]:f.first[o.node+1]]
		slices.SortFunc(children, func(x, y uint32) int { return cmp.Compare(f.inner[f.nodes[y].name], f.inner[f.nodes[x].name]) })
		for _, child := range children {
			todo = append(todo, open{child, length})
		}
	}
	return b.Flush()
}

// WritePprof writes the difference in the format of profile.proto, gzipped, as pprof's -diff_base
// makes it: samples of the base are negative, and have the label pprof::base, so that pprof takes
// the base for the whole. They are scaled to be comparable.
func (d *Diff) WritePprof(w io.Writer) error {
	p := d.r.pprof()
	p.SampleType, p.DefaultSampleType = p.SampleType[:1], p.SampleType[0].Type
	p.PeriodType, p.Period, p.DurationNanos = nil, 0, int64(min(d.changed.seconds*1e9, math.MaxInt64/2))
	var list []*profile.Sample
	for _, s := range p.Sample {
		before, now := d.scaled(uint64(s.Value[selection.BaseEvent])), s.Value[0] //nolint:gosec // not negative
		if before > 0 {
			old := *s
			old.Value = []int64{-int64(min(before, math.MaxInt64))} //nolint:gosec // bounded
			old.Label = map[string][]string{}
			for name, values := range s.Label {
				old.Label[name] = values
			}
			old.Label["pprof::base"] = []string{"true"}
			list = append(list, &old)
		}
		if now > 0 {
			s.Value = s.Value[:1]
			list = append(list, s)
		}
	}
	p.Sample = list
	return p.Write(w)
}

// WritePage writes the difference as a page of HTML, as Profile.WritePage does: calls are as wide
// as in the changed profile, or in the base, and coloured by their change.
func (d *Diff) WritePage(w io.Writer) error {
	return flamepage.Write(w, d.page(maxFlameCalls))
}

// page is the page, with at most as many calls as most.
func (d *Diff) page(most int) *flamepage.Page {
	t := &profileText{Printer: NewPrinter(io.Discard), r: d.r, naming: names{most: wideName}}
	t.nameLines()
	from, to := path.Base(d.base.subject), path.Base(d.changed.subject)
	if from == to {
		from, to = d.base.subject, d.changed.subject
	}
	page := &flamepage.Page{Name: escape.Text("from " + from + " to " + to)}
	b := newPageBuilder(t, page)
	e := t.flameEvent(d.now())
	b.addSamples(&e, d.now())
	before := flamepage.Event{}
	b.addSamples(&before, d.before())
	e.Samples, e.Base, e.IsTimed = d.samples(e.Samples, before.Samples), escape.Text(d.base.subject), false
	page.Threads = page.Threads[:min(len(page.Threads), 1)]
	page.Events = append(page.Events, e)
	b.leaveOut(most)
	for _, line := range d.heading() {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			name, value = "events", line
		}
		page.Facts = append(page.Facts, flamepage.Fact{Name: escape.Text(name), Value: escape.Text(value)})
	}
	for _, p := range d.r.p.Problems {
		page.Problems = append(page.Problems, escape.Text(p))
	}
	return page
}

// samples are the samples of the page: one for each call, with its weights in both profiles.
func (d *Diff) samples(now, before []flamepage.Sample) (list []flamepage.Sample) {
	index := map[int32]int{}
	sample := func(call int32) *flamepage.Sample {
		i, ok := index[call]
		if !ok {
			i = len(list)
			index[call] = i
			list = append(list, flamepage.Sample{Call: call})
		}
		return &list[i]
	}
	for i := range now {
		s := sample(now[i].Call)
		s.Weight = add(s.Weight, now[i].Weight)
	}
	for i := range before {
		s := sample(before[i].Call)
		s.Base = add(s.Base, before[i].Weight)
	}
	for i := range list {
		list[i].Base = d.scaled(list[i].Base)
	}
	return list
}
