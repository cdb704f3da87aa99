// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// maxSummary is the number of lines of one kind in a summary.
const maxSummary = 5

// SummaryOptions are the options of a summary.
type SummaryOptions struct {
	Color bool
	// Verbose lists all hints.
	Verbose bool
}

// WriteSummary summarizes the quality of the profile in a few lines: samples, how their
// frames were found, why stacks end, modules without symbols, and problems.
func (r *Profile) WriteSummary(w io.Writer, o SummaryOptions) error {
	b := NewPrinter(w)
	t := &summary{
		Printer: b, paint: newPaint(o.Color), r: r,
		perStack: make([]uint64, len(r.p.Stacks)), perFrame: make([]uint64, len(r.p.Frames)), perStop: make([]uint64, len(r.p.Stops)),
	}
	t.samples()
	t.frames()
	t.stops()
	t.memory()
	if !r.NoSymbols {
		t.unnamed()
	}
	problems := slices.Clone(r.p.Problems)
	for i := range r.p.Modules {
		for _, p := range r.p.Modules[i].Unused {
			problems = append(problems, r.p.Modules[i].Path+": "+p)
		}
	}
	for i, p := range problems {
		if i == maxSummary {
			t.printf("%s %d more\n", t.warn("problems:"), len(problems)-i)
			break
		}
		t.printf("%s %s\n", t.warn("problem:"), p)
	}
	for _, line := range hintLines(r.hints(), o.Verbose) {
		t.printf("%s %s\n", t.warn("hint:"), line)
	}
	return b.Flush()
}

type summary struct {
	*Printer
	paint
	r        *Profile
	count    uint64
	perStack []uint64 // number of samples with the stack, or one that continues it
	perFrame []uint64 // number of times that samples have the frame
	perStop  []uint64 // number of samples with this end
}

// samples writes the number of samples.
func (t *summary) samples() {
	perEvent := make([]eventAmount, len(t.r.values))
	sampled := make([]bool, len(t.r.p.Threads))
	for i := range t.r.p.Samples {
		s := &t.r.p.Samples[i]
		if !t.r.isRequested(s) {
			continue
		}
		t.count += s.Count()
		t.perStack[s.Stack] += s.Count()
		t.perStop[s.Stop] += s.Count()
		e := &perEvent[t.r.valueOf[s.Event+1]]
		e.samples += s.Count()
		e.weight = add(e.weight, s.Total())
		sampled[s.Thread] = true
	}
	processes, threads := map[int]bool{}, map[[2]int]bool{}
	for i := range t.r.p.Threads {
		if th := &t.r.p.Threads[i]; sampled[i] {
			processes[th.PID] = true
			threads[[2]int{th.PID, th.TID}] = true
		}
	}
	// A caller comes before those that it called.
	for i := len(t.perStack) - 1; i > 0; i-- {
		stack := t.r.p.Stacks[i]
		t.perStack[stack.Caller] += t.perStack[i]
		t.perFrame[stack.Frame] += t.perStack[i]
	}
	parts := t.events(perEvent)
	t.printf("%s %s", t.header(t.r.subject()+":"), plural(int(t.count), "sample", "samples"))
	if len(threads) > 0 {
		t.printf(" of %s in %s", plural(len(threads), "thread", "threads"), plural(len(processes), "process", "processes"))
	}
	if t.r.p.Lost > 0 {
		t.printf(", %s", t.warn(fmt.Sprintf("%d more lost", t.r.p.Lost)))
	}
	t.printf("\n")
	if len(parts) > 0 && !t.r.isEmpty {
		t.printf("events: %s\n", strings.Join(parts, ", "))
	}
	t.empty()
	t.selected(perEvent)
}

// eventAmount is the amount of an event.
type eventAmount struct{ samples, weight uint64 }

// events are the amounts of events as text.
func (t *summary) events(perEvent []eventAmount) []string {
	var parts []string
	for i, e := range perEvent {
		v := &t.r.values[i]
		if v.kind != valueOfWeight {
			continue
		}
		part := fmt.Sprintf("%d of %s", e.samples, v.name)
		if e.weight != e.samples {
			part += fmt.Sprintf(" (%s)", newAmounts(e.weight, v.unit).text(e.weight))
		}
		parts = append(parts, part)
	}
	if len(parts) > maxSummary {
		parts = append(parts[:maxSummary], fmt.Sprintf("%d events more", len(parts)-maxSummary))
	}
	return parts
}

// empty writes the number of events without samples.
func (t *summary) empty() {
	if len(t.r.empty) == 0 {
		return
	}
	var names []string
	for _, event := range t.r.empty[:min(len(t.r.empty), maxSummary)] {
		names = append(names, t.r.eventNames[event+1])
	}
	if more := len(t.r.empty) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	t.printf("without samples: %s\n", strings.Join(names, ", "))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// frames writes how frames were found.
func (t *summary) frames() {
	counts := map[string]uint64{}
	var all, inlined uint64
	for i, n := range t.perFrame {
		if n == 0 {
			continue
		}
		f := &t.r.p.Frames[i]
		counts[string(f.FoundBy)] += n
		all += n
		inlined += n * uint64(max(len(f.Symbols), 1)-1)
	}
	t.printf("frames: %d", all)
	if inlined > 0 {
		t.printf(" and %d inlined calls", inlined)
	}
	var separator layout = "; found by "
	for _, name := range byCount(counts) {
		t.printf(separator)
		separator = ", "
		part := fmt.Sprintf("%s %d", name, counts[name])
		switch trace.FoundBy(name) {
		case trace.ByScan, trace.ByFramePointer:
			t.printf("%s", t.warn(part+" (a guess)"))
		default:
			t.printf("%s", part)
		}
	}
	t.printf("\n")
	if c := t.r.countGuesses(); c.guessed > 0 {
		t.printf("%s\n", t.warn(c.text()))
	}
}

// stops writes why stacks end, with the most frequent of the details.
func (t *summary) stops() {
	reasons := map[string]uint64{}
	details := map[string]map[string]uint64{}
	for i, n := range t.perStop {
		if n == 0 {
			continue
		}
		stop := &t.r.p.Stops[i]
		reason := string(stop.Reason)
		reasons[reason] += n
		if details[reason] == nil {
			details[reason] = map[string]uint64{}
		}
		details[reason][stop.Detail] += n
	}
	if len(reasons) == 0 {
		return
	}
	t.printf("stacks end:\n")
	for _, reason := range byCount(reasons) {
		detail := ""
		if trace.StopReason(reason) != trace.StopOutermost {
			most := byCount(details[reason])
			if len(most) > 1 {
				detail = fmt.Sprintf("%d of them: %s", details[reason][most[0]], most[0])
			} else {
				detail = most[0]
			}
		}
		t.printf("  %8d  %s  ", reasons[reason], percent(reasons[reason], t.count)[1:])
		if detail == "" {
			t.printf("%s\n", reason)
		} else {
			t.printf("%-13s%s\n", reason, t.faint("  "+detail))
		}
	}
}

// unnamed writes the modules whose frames have no symbols.
func (t *summary) unnamed() {
	counts := map[string]uint64{}
	why := map[string]string{}
	var all uint64
	for i, n := range t.perFrame {
		if n == 0 {
			continue
		}
		all += n
		f := &t.r.p.Frames[i]
		if len(f.Symbols) > 0 && f.Symbols[len(f.Symbols)-1].Function != "" {
			continue
		}
		name := ""
		if f.Module >= 0 {
			m := &t.r.p.Modules[f.Module]
			name = m.Path
			if why[name] == "" && len(m.Problems) > 0 {
				why[name] = m.Problems[0]
			}
		}
		counts[name] += n
	}
	if len(counts) == 0 {
		return
	}
	t.printf("frames without a function:\n")
	for i, name := range byCount(counts) {
		if i == maxSummary {
			t.printf("  in %d modules more\n", len(counts)-i)
			break
		}
		label := "in no module"
		if name != "" {
			label = "in " + path.Base(name)
		}
		t.printf("  %8d  %s  %s", counts[name], percent(counts[name], all)[1:], label)
		if why[name] != "" {
			t.printf(" %s", t.faint("("+why[name]+")"))
		}
		t.printf("\n")
	}
}

// byCount are the keys, the most frequent first.
func byCount(counts map[string]uint64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}
