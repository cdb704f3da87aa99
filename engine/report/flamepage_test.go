// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
	"github.com/unwindd/unwindd/engine/trace"
)

// graphsOf are the flame graphs of a page, each as folded stacks are written.
func graphsOf(page *flamepage.Page) (folded []string) {
	marks := [...]string{flamepage.Kernel: kernelMark, flamepage.GPU: deviceMark, flamepage.Gap: ""}
	names := make([]string, len(page.Calls))
	for i, c := range page.Calls {
		f := page.Functions[c.Function]
		names[i] = strings.ReplaceAll(f.Name, ";", ":") + marks[f.Kind] // as folded stacks have it
		if c.IsGuess {
			names[i] += guessMark
		}
		switch {
		case f.Kind == flamepage.Gap: // folded stacks do not have it
			names[i] = names[c.Caller]
		case c.Caller >= 0:
			names[i] = names[c.Caller] + ";" + names[i]
		}
	}
	for i := range page.Events {
		lines := map[string]uint64{}
		for _, s := range page.Events[i].Samples {
			lines[names[s.Call]] += s.Weight
		}
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(&b, "%s %d\n", name, lines[name])
		}
		folded = append(folded, b.String())
	}
	return folded
}

// TestFlameGraphsAreTheFoldedStacks of every event.
func TestFlameGraphsAreTheFoldedStacks(t *testing.T) {
	r := workday().view(t)
	graphs := graphsOf(r.flamePage(maxFlameCalls))
	if len(graphs) != len(r.Events()) || len(graphs) == 0 {
		t.Fatalf("%d graphs of %d events", len(graphs), len(r.Events()))
	}
	for i, event := range r.Events() {
		var want bytes.Buffer
		if err := r.MarkGuesses().WriteFolded(&want, event); err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(want.String(), "\n")
		slices.Sort(lines)
		got := strings.SplitAfter(graphs[i], "\n")
		slices.Sort(got)
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("%s (-folded +page):\n%s", event, diff)
		}
	}
}

// TestStacksThatEndEarlyAreMarked in the page, and only these.
func TestStacksThatEndEarlyAreMarked(t *testing.T) {
	r := workday()
	for _, by := range []trace.FoundBy{trace.ByCallChain, trace.ByLaunch, trace.ByProfiler} { // what was recorded as it is
		f := r.frame(trace.ProfileFrame{PC: 0x400105, FoundBy: by, Module: 0, Symbols: []trace.Symbol{{Function: string(by)}}})
		r.sample(trace.ProfileSample{Event: 0, Stack: r.stack(f), Stop: r.stop(trace.StopEndOfStack, "it ends here"), Weight: 1e6})
	}
	page := r.view(t).flamePage(maxFlameCalls)
	got := map[string]uint64{}
	for _, s := range page.Events[0].Samples {
		for c := s.Call; c >= 0; c = page.Calls[c].Caller {
			if f := page.Functions[page.Calls[c].Function]; f.Kind == flamepage.Gap {
				got[f.Name] += s.Weight
			}
		}
	}
	want := map[string]uint64{
		"[cut short: the recorded stack ends here]": 1e6, "[cut short: no code object has the address]": 1e6, "[cut short: no rule leads to the caller]": 1e6,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-expected +page:\n%s", diff)
	}
}

// TestLightCallsAreLeftOut where a page would have too many, and what happened in them stays
// below their callers.
func TestLightCallsAreLeftOut(t *testing.T) {
	r := workday().view(t)
	whole := len(r.flamePage(maxFlameCalls).Calls)
	for most := range whole {
		page := r.flamePage(most)
		light := 0
		for i, c := range page.Calls {
			if int(c.Caller) >= i {
				t.Errorf("at most %d: call %d has caller %d", most, i, c.Caller)
			}
			if page.Functions[c.Function].Name == leftOutName {
				light++
			}
		}
		if len(page.Calls)-light > most || page.LeftOut == "" {
			t.Errorf("%d calls of %d stay, expected at most %d; %q", len(page.Calls)-light, whole, most, page.LeftOut)
		}
		for i := range page.Events {
			total := uint64(0)
			for _, s := range page.Events[i].Samples {
				total += s.Weight
			}
			if e := r.flamePage(maxFlameCalls).Events[i]; len(e.Samples) != len(page.Events[i].Samples) || total != sumOf(&e) {
				t.Errorf("at most %d: %s has %d", most, e.Name, total)
			}
		}
	}
}

func sumOf(e *flamepage.Event) (sum uint64) {
	for _, s := range e.Samples {
		sum += s.Weight
	}
	return sum
}

// TestManySamplesAreJoined by their calls and threads, in steps of time that are as short as can be.
func TestManySamplesAreJoined(t *testing.T) {
	made := func() *flamepage.Event {
		e := &flamepage.Event{}
		for i := range 1000 {
			e.Samples = append(e.Samples, flamepage.Sample{Call: int32(i % 3), Thread: int32(i / 500), Time: 50 + uint64(i)*1000, Weight: uint64(i)})
		}
		return e
	}
	for _, c := range []struct {
		most, samples int
		step          uint64
	}{{1000, 1000, 0}, {999, 384, 7805}, {100, 48, 62438}, {3, 6, 499501}} {
		e := made()
		step := joinSamples(e, c.most)
		if len(e.Samples) != c.samples || step != c.step || sumOf(e) != sumOf(made()) {
			t.Errorf("at most %d: %d samples in steps of %d, expected %d in %d; weight %d of %d", c.most, len(e.Samples), step, c.samples, c.step, sumOf(e), sumOf(made()))
		}
		if !slices.IsSortedFunc(e.Samples, func(a, b flamepage.Sample) int { return int(a.Time) - int(b.Time) }) {
			t.Errorf("at most %d: not by time", c.most)
		}
	}
}

// TestKindsOfFunctions: the code of a kernel, of an accelerator, what a program made while it
// ran and what a runtime executes are told apart.
func TestKindsOfFunctions(t *testing.T) {
	for _, c := range []struct {
		f    profileFunction
		want flamepage.Kind
	}{
		{profileFunction{name: "main", module: "/bin/a", file: "a.c", isNamed: true}, flamepage.CPU},
		{profileFunction{name: "[unknown]"}, flamepage.CPU},
		{profileFunction{name: "k", isKernel: true, module: "[kernel.kallsyms]", isNamed: true}, flamepage.Kernel},
		{profileFunction{name: "g", isDevice: true, isNamed: true}, flamepage.GPU},
		{profileFunction{name: "Lorg/A;::run", module: "/tmp/perf-12.map", isNamed: true}, flamepage.JIT},
		{profileFunction{name: "x", module: "/home/u/.debug/jit/jit-12.dump", isNamed: true}, flamepage.JIT},
		{profileFunction{name: "x", isNamed: true, isJIT: true}, flamepage.JIT},
		{profileFunction{name: "x", isNamed: true}, flamepage.CPU}, // of folded stacks
		{profileFunction{name: "[//anon]+0x12", module: "//anon"}, flamepage.JIT},
		{profileFunction{name: "work", file: "/src/a.py", isNamed: true}, flamepage.Managed},
		{profileFunction{name: "py::work:/src/a.py", module: "/tmp/perf-12.map", isNamed: true}, flamepage.Managed},
	} {
		if got := kindOf(&c.f); got != c.want {
			t.Errorf("%+v is of kind %d, expected %d", c.f, got, c.want)
		}
	}
}
