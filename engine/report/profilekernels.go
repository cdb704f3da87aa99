// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// The sizes of the text's tables of kernels.
const (
	topKernels      = 30 // lines of the table of kernels
	detailedKernels = 10 // of which the first have their stalls and lines
	kernelDetails   = 3  // stalls, and lines, of each of those
)

// isDispatched reports whether a frame is in a function that was dispatched.
func (r *Profile) isDispatched(f *trace.ProfileFrame) bool {
	return f.Dispatched >= 0 && int(f.Dispatched) < len(r.p.Kernels)
}

// kernelsOfStacks are the kernels of stacks: the dispatched function of the innermost frame;
// -1: there is none.
func (r *Profile) kernelsOfStacks() []int32 {
	kernelOf := make([]int32, len(r.p.Stacks))
	kernelOf[0] = -1
	for i := 1; i < len(kernelOf); i++ { // a caller comes before those that it called
		s := &r.p.Stacks[i]
		if f := &r.p.Frames[s.Frame]; r.isDispatched(f) {
			kernelOf[i] = f.Dispatched
		} else {
			kernelOf[i] = kernelOf[s.Caller]
		}
	}
	return kernelOf
}

// kernelCount is the amount of an event in a kernel.
type kernelCount struct {
	kernel  int32
	weight  uint64
	samples uint64
	lanes   uint64   // that were active, of all samples
	states  []uint64 // weights, by state; nil: there are no samples
	lines   []countedName
}

// countedName is a name with an amount of an event.
type countedName struct {
	name   string
	weight uint64
}

// compareCounted puts the heaviest first.
func compareCounted(a, b countedName) int {
	return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.name, b.name))
}

// countKernels goes over the samples of some events once. The counts are by kernel, and
// perStack are the weights of all stacks.
func (r *Profile) countKernels(isCounted func(event int16) bool) (counts []kernelCount, kernelOf []int32, perStack []uint64) {
	counts = make([]kernelCount, len(r.p.Kernels))
	kernelOf, perStack = r.kernelsOfStacks(), make([]uint64, len(r.p.Stacks))
	counted := make([]bool, len(r.valueOf))
	for i := range counted {
		counted[i] = r.valueOf[i] >= 0 && isCounted(int16(i)-1) //nolint:gosec // events are numbered by int16
	}
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		if !counted[s.Event+1] {
			continue
		}
		perStack[s.Stack] = add(perStack[s.Stack], s.Total())
		kernel := kernelOf[s.Stack]
		if kernel < 0 {
			continue
		}
		c := &counts[kernel]
		if c.states == nil {
			c.states = make([]uint64, max(1, len(r.p.States)))
		}
		c.weight = add(c.weight, s.Total())
		c.samples += s.Count()
		c.lanes += uint64(s.ActiveLanes) * s.Count()
		if int(s.State) < len(c.states) {
			c.states[s.State] = add(c.states[s.State], s.Total())
		}
	}
	for i := range counts {
		counts[i].kernel = int32(i) //nolint:gosec // Frame.Dispatched has as many bits
	}
	return counts, kernelOf, perStack
}

// kernelJSON is a kernel of a profile.
type kernelJSON struct {
	ID         int     `json:"id"`
	Name       string  `json:"name"`
	Function   string  `json:"function,omitempty"`
	Module     *int32  `json:"module,omitempty"`
	Dispatches uint64  `json:"dispatches,omitempty"`
	Time       *uint64 `json:"time,omitempty"`
	Samples    uint64  `json:"samples"`
	Lanes      uint32  `json:"lanes,omitempty"`
}

// writeKernels writes the kernels, and marks their modules. Where some events were requested,
// or a part is selected, it writes the kernels in its samples.
func (r *Profile) writeKernels(b output, modules []bool) error {
	if len(r.p.Kernels) == 0 {
		return nil
	}
	all, _, _ := r.countKernels(func(int16) bool { return true })
	counts, _, _ := r.countKernels(r.isOfWaves)
	n := 0
	for i := range r.p.Kernels {
		if (r.isFiltered || r.whole != nil) && all[i].samples == 0 {
			continue
		}
		k := &r.p.Kernels[i]
		out := kernelJSON{ID: i, Name: k.Name, Dispatches: k.Dispatches, Samples: counts[i].weight, Lanes: k.Lanes}
		if name := symbol.Demangle(k.Name); name != k.Name {
			out.Function = name
		}
		if k.Module >= 0 {
			out.Module = &k.Module
			modules[k.Module] = true
		}
		if k.HasTime {
			out.Time = &k.Time
		}
		if err := nextJSON(b, n, out); err != nil {
			return err
		}
		n++
	}
	return nil
}

// kernels writes the tables of kernels: one for each event of waves, or one of their times
// where there is none.
func (t *profileText) kernels() {
	if len(t.r.p.Kernels) == 0 {
		return
	}
	isOfDevice := false
	var events []*profileValue
	for i := range t.r.values {
		v := &t.r.values[i]
		if v.kind != valueOfWeight {
			continue
		}
		isOfDevice = isOfDevice || t.r.isOfDevice(v.event)
		if t.r.isOfWaves(v.event) {
			events = append(events, v)
		}
	}
	if len(events) == 0 && isOfDevice {
		events = append(events, nil)
	}
	for _, v := range events {
		t.kernelTable(v)
	}
}

// kernelTable writes the kernels by an event; nil: by their times.
func (t *profileText) kernelTable(v *profileValue) {
	counts, kernelOf, perStack := t.r.countKernels(func(event int16) bool { return v != nil && event == v.event })
	w := kernelWriter{profileText: t, event: v}
	for i := range counts {
		c := &counts[i]
		k := &t.r.p.Kernels[i]
		if c.samples == 0 && !k.HasTime && k.Dispatches == 0 {
			continue
		}
		w.list = append(w.list, c)
		w.weight, w.time = add(w.weight, c.weight), add(w.time, k.Time)
		w.hasTime = w.hasTime || k.HasTime
		w.hasDispatches = w.hasDispatches || k.Dispatches > 0
	}
	if len(w.list) == 0 {
		return
	}
	slices.SortStableFunc(w.list, func(a, b *kernelCount) int {
		x, y := &t.r.p.Kernels[a.kernel], &t.r.p.Kernels[b.kernel]
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(y.Time, x.Time), cmp.Compare(y.Dispatches, x.Dispatches),
			strings.Compare(x.Name, y.Name))
	})
	w.countLines(kernelOf, perStack)
	w.write()
}

// kernelWriter writes the kernels by one event.
type kernelWriter struct {
	*profileText
	event                  *profileValue // nil: there is none
	list                   []*kernelCount
	weight, time           uint64
	hasTime, hasDispatches bool
}

// countLines finds the lines where the first kernels were sampled.
func (w *kernelWriter) countLines(kernelOf []int32, perStack []uint64) {
	lines := map[int32]map[string]uint64{}
	for _, c := range w.list[:min(len(w.list), detailedKernels)] {
		lines[c.kernel] = map[string]uint64{}
	}
	for i := 1; i < len(kernelOf); i++ {
		weights := lines[kernelOf[i]]
		symbols := w.r.p.Frames[w.r.p.Stacks[i].Frame].Symbols
		if perStack[i] == 0 || weights == nil || len(symbols) == 0 || symbols[0].File == "" || symbols[0].Line == 0 {
			continue
		}
		file := oneLine(symbols[0].File)
		if !w.isWhole {
			file = path.Base(file)
		}
		name := position(file, symbols[0].Line, 0)
		weights[name] = add(weights[name], perStack[i])
	}
	for _, c := range w.list {
		for name, weight := range lines[c.kernel] {
			c.lines = append(c.lines, countedName{name, weight})
		}
		slices.SortFunc(c.lines, compareCounted)
	}
}

func (w *kernelWriter) write() {
	a := newAmounts(w.time, "nanoseconds")
	timeWidth := max(len([]rune(a.text(w.time))), 4)
	samplesWidth := max(len(fmt.Sprint(w.weight)), len("samples"))
	var header strings.Builder
	if w.event != nil {
		fmt.Fprintf(&header, "%*s        %%  ", samplesWidth, "samples")
		if w.r.hasLanes(w.event.event) {
			header.WriteString("    lanes  ")
		}
	}
	if w.hasTime {
		fmt.Fprintf(&header, "%*s    time%%  ", timeWidth, "time")
	}
	if w.hasDispatches {
		header.WriteString("dispatches  ")
	}
	indent := strings.Repeat(" ", samplesWidth+2)
	title := "kernels"
	if w.event != nil {
		title += " of " + w.event.name
	}
	w.printf("\n%s\n\n%s\n", w.header(w.r.subject()+": "+title), w.header(header.String()+"kernel"))
	for i, c := range w.list[:min(len(w.list), topKernels)] {
		k := &w.r.p.Kernels[c.kernel]
		if w.event != nil {
			w.printf("%*d  %s  ", samplesWidth, c.weight, percent(c.weight, w.weight))
			if w.r.hasLanes(w.event.event) {
				w.printf("%9s  ", occupancy(c, k))
			}
		}
		if w.hasTime {
			time, share := "-", "      -"
			if k.HasTime {
				time, share = a.text(k.Time), percent(k.Time, w.time)
			}
			w.printf("%*s  %s  ", timeWidth, time, share)
		}
		if w.hasDispatches {
			w.printf("%10s  ", countOrDash(k.Dispatches))
		}
		w.function(w.functionOf(k), "")
		w.printf("\n")
		if i < detailedKernels {
			w.details(c, indent)
		}
	}
	if n := len(w.list) - topKernels; n > 0 {
		w.printf("%s\n", w.faint(fmt.Sprintf("and %d kernels more", n)))
	}
}

// occupancy is the average number of active lanes, and the number of all lanes.
func occupancy(c *kernelCount, k *trace.ProfileKernel) string {
	active := mean(c.lanes, c.samples)
	if k.Lanes == 0 || c.samples == 0 {
		return active
	}
	return fmt.Sprintf("%s/%d", active, k.Lanes)
}

// countOrDash is a number, or a dash for 0.
func countOrDash(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// functionOf is a kernel as a function of the text.
func (w *kernelWriter) functionOf(k *trace.ProfileKernel) *profileFunction {
	f := &profileFunction{name: oneLine(symbol.Demangle(k.Name)), isDevice: true}
	if k.Module >= 0 {
		f.module = oneLine(w.r.p.Modules[k.Module].Path)
	}
	return f
}

// details writes the stall reasons of a kernel's waves, and their lines.
func (w *kernelWriter) details(c *kernelCount, indent string) {
	var stalls []countedName
	var stalled uint64
	for state, weight := range c.states {
		if weight > 0 && state > 0 && w.r.p.States[state].Stalled {
			stalled = add(stalled, weight)
			stalls = append(stalls, countedName{w.r.stateName(uint8(state)), weight}) //nolint:gosec // at most gpusamples.MaxStates
		}
	}
	slices.SortFunc(stalls, compareCounted)
	w.shares(indent+"stalled "+strings.TrimSpace(percent(stalled, c.weight))+": ", stalls, c.weight)
	w.shares(indent+"lines: ", c.lines, c.weight)
}

// shares writes the first elements of a list with their shares of a total.
func (w *kernelWriter) shares(title string, list []countedName, total uint64) {
	if len(list) == 0 {
		return
	}
	var parts []string
	for _, c := range list[:min(len(list), kernelDetails)] {
		parts = append(parts, c.name+" "+strings.TrimSpace(percent(c.weight, total)))
	}
	w.printf("%s%s\n", w.faint(title), strings.Join(parts, ", "))
}
