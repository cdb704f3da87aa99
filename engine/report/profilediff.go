// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/selection"
	"github.com/unwindd/unwindd/engine/trace"
)

// DiffOptions are the options of a difference of profiles.
type DiffOptions struct {
	// PerSecond compares the amounts in a second of each recording; else the shares of the whole.
	PerSecond bool
	// NoSymbols means that no symbols were requested.
	NoSymbols bool
}

// Diff is the difference of two profiles: of a base, and of a changed one. Functions of both are
// the same where they have the same name, whatever their files are.
type Diff struct {
	r             *Profile // of both
	base, changed diffSide
	scale         float64 // of the base's weights, which are comparable with it
	o             DiffOptions
	// note says that different events are compared; "": they have the same name.
	note string
}

// diffSide is one of the two profiles.
type diffSide struct {
	subject, event, unit string
	samples              int
	total                uint64
	seconds              float64 // from the first sample to the last; 0: not known
}

// NewDiff compares the first event of a changed profile with the event of the base that has the
// same meaning; where there is none, with the first one, if both say where the time of processors
// went. It is an error where no events can be compared, or have no samples, or, per second, where
// the time of a recording is not known.
func NewDiff(base, changed *Profile, o DiffOptions) (*Diff, error) {
	d := &Diff{o: o}
	if base.isEmpty || changed.isEmpty || len(base.values) == 0 || len(changed.values) == 0 {
		empty := changed
		if base.isEmpty || len(base.values) == 0 {
			empty = base
		}
		return nil, fmt.Errorf("%s has no samples to compare", empty.subject())
	}
	now := &changed.values[0]
	before, err := d.counterpart(base, changed, now)
	if err != nil {
		return nil, err
	}
	d.base, d.changed = base.side(before), changed.side(now)
	if d.base.total == 0 || d.changed.total == 0 {
		return nil, fmt.Errorf("%s, %s: the samples of %s weigh nothing", d.base.subject, d.changed.subject, now.name)
	}
	d.scale = float64(d.changed.total) / float64(d.base.total)
	if o.PerSecond {
		if d.base.seconds == 0 || d.changed.seconds == 0 {
			return nil, fmt.Errorf("%s, %s: --per-second needs the time from the first sample to the last, which one of them does not have", d.base.subject, d.changed.subject)
		}
		d.scale = d.changed.seconds / d.base.seconds
	}
	d.combine(selection.Combine(base.p, before.event, changed.p, now.event))
	return d, nil
}

// stacksEvent is the event of folded stacks, which give no name of one.
const stacksEvent = "samples"

// counterpart is the event of the base that is compared with one of the changed profile.
func (d *Diff) counterpart(base, changed *Profile, now *profileValue) (*profileValue, error) {
	meaning := changed.meanings[now.event+1]
	for i := range base.values {
		if v := &base.values[i]; v.kind == valueOfWeight && v.unit == now.unit && (v.name == now.name || base.meanings[v.event+1] == meaning) {
			return v, nil
		}
	}
	first := &base.values[0]
	if isUnnamed := first.name == stacksEvent || now.name == stacksEvent; isUnnamed && !d.o.PerSecond {
		d.note = fmt.Sprintf("%s and %s are compared by their shares: folded stacks do not say what they count", first.name, now.name)
		return first, nil
	}
	if !processorTime[meaning] || !processorTime[base.meanings[first.event+1]] {
		return nil, fmt.Errorf("%s has %s, and %s has %s: expected events that count the same; --event chooses one",
			base.subject(), strings.Join(base.Events(), ", "), changed.subject(), strings.Join(changed.Events(), ", "))
	}
	if first.unit != now.unit && d.o.PerSecond {
		return nil, fmt.Errorf("%s has %s, and %s has %s: --per-second compares amounts of one unit: expected shares, without it",
			base.subject(), first.name, changed.subject(), now.name)
	}
	d.note = fmt.Sprintf("%s and %s both say where the time of processors went, and are compared by their shares", first.name, now.name)
	return first, nil
}

// side describes a profile.
func (r *Profile) side(v *profileValue) diffSide {
	s := diffSide{subject: r.subject(), event: v.name, unit: v.unit, seconds: r.seconds}
	for i := range r.p.Samples {
		if sample := &r.p.Samples[i]; v.has(sample) {
			s.samples++
			s.total = add(s.total, sample.Weight)
		}
	}
	return s
}

// combine makes the profile of both. A function is of the first that has its name.
func (d *Diff) combine(p *trace.Profile) {
	r := &Profile{p: p, valueOf: []int{-1, 0, 1}, eventNames: []string{"", d.changed.event, d.base.event}, NoSymbols: d.o.NoSymbols}
	for event := range int16(len(p.Events)) { //nolint:gosec // there are two
		r.values = append(r.values, profileValue{name: r.eventNames[event+1], unit: unitOf(p, event), event: event})
	}
	r.nameFunctions()
	r.joinFunctions()
	d.r = r
}

// joinFunctions makes functions of one name one function.
func (r *Profile) joinFunctions() {
	type key struct {
		name, module     string
		kernel, isDevice bool
	}
	first := map[key]int32{}
	same := make([]int32, len(r.functions))
	for i := range r.functions {
		f := &r.functions[i]
		f.name = withoutClone(f.name)
		k := key{f.name, "", f.isKernel, f.isDevice}
		if !f.isNamed { // addresses differ from build to build
			k.name, k.module = "", moduleName(f.module)
		}
		n, ok := first[k]
		if !ok {
			n = int32(i) //nolint:gosec // an index
			first[k] = n
		}
		same[i] = n
	}
	for _, functions := range r.functionOf {
		for i := range functions {
			functions[i] = same[functions[i]]
		}
	}
	for i := range r.functions {
		if f := &r.functions[i]; !f.isNamed {
			f.name = "[" + strings.Trim(moduleName(f.module), "[]") + "]"
			if f.module == "" {
				f.name = r.noModule(f)
			}
		}
	}
}

// noModule names code that is in no module.
func (r *Profile) noModule(f *profileFunction) string {
	return r.moduleName(&trace.ProfileFrame{Module: -1, Kernel: f.isKernel})
}

// scaled is a weight of the base, comparable with the weights of the changed profile.
func (d *Diff) scaled(weight uint64) uint64 {
	scaled := math.Round(float64(weight) * d.scale)
	if scaled >= math.MaxUint64 {
		return math.MaxUint64
	}
	return uint64(scaled)
}

// before and now are the values of the base and of the changed profile.
func (d *Diff) before() *profileValue { return &d.r.values[selection.BaseEvent] }
func (d *Diff) now() *profileValue    { return &d.r.values[selection.ChangedEvent] }

// heading describes both profiles, in lines.
func (d *Diff) heading() []string {
	line := func(what string, s *diffSide) string {
		text := fmt.Sprintf("%s %s: %s, %s, %s", what, s.subject, s.event, plural(s.samples, "sample", "samples"), newAmounts(s.total, s.unit).text(s.total))
		if d.o.PerSecond {
			text += fmt.Sprintf(" in %.4g s", s.seconds)
		}
		return text
	}
	lines := []string{line("base:", &d.base), line("new: ", &d.changed)}
	if d.note != "" {
		lines = append(lines, "note: "+d.note)
	}
	return lines
}

// WriteSummary writes the problems of both profiles.
func (d *Diff) WriteSummary(w io.Writer, o SummaryOptions) error {
	b := NewPrinter(w)
	paint := newPaint(o.Color)
	for i, p := range d.r.p.Problems {
		if i == maxSummary && !o.Verbose {
			b.printf("%s %d more\n", paint.warn("problems:"), len(d.r.p.Problems)-i)
			break
		}
		b.printf("%s %s\n", paint.warn("problem:"), p)
	}
	return b.Flush()
}

// WriteHeading writes a line about each profile, as WriteText begins.
func (d *Diff) WriteHeading(w io.Writer) error {
	b := NewPrinter(w)
	for _, line := range d.heading() {
		b.printf("%s\n", line)
	}
	return b.Flush()
}
