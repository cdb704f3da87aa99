// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// eventsRecording has samples of events: each of these weights, by the event's name.
func eventsRecording(events []trace.ProfileEvent, weights map[string][]uint64) *recording {
	r := newRecording(events...)
	f := r.frame(trace.ProfileFrame{Module: -1, Symbols: []trace.Symbol{{Function: "main"}}})
	for i, e := range events {
		for _, weight := range weights[e.Name] {
			r.sample(trace.ProfileSample{Event: int16(i), Thread: r.thread(1, 1, "work"), Stack: r.stack(f), Stop: r.stop(trace.StopOutermost, ""), Weight: weight})
		}
	}
	return r
}

func clockEvent(name string) trace.ProfileEvent {
	return trace.ProfileEvent{Name: name, Unit: "nanoseconds", Meaning: "cpu-clock"}
}

func countEvent(name string) trace.ProfileEvent { return trace.ProfileEvent{Name: name, Unit: "count"} }

// hybrid has the events that perf records on a processor with two kinds of cores.
func hybrid() *recording {
	return eventsRecording(
		[]trace.ProfileEvent{countEvent("cpu_atom/cycles:Pu/"), countEvent("cpu_core/cycles:Pu/"), countEvent("dummy:HGu")},
		map[string][]uint64{"cpu_atom/cycles:Pu/": {3}, "cpu_core/cycles:Pu/": {10, 20}},
	)
}

func TestTheFirstEventIsTheHeaviestThatHasSamples(t *testing.T) {
	for _, c := range []struct {
		events  []trace.ProfileEvent
		weights map[string][]uint64
		want    string
	}{
		{[]trace.ProfileEvent{countEvent("major-faults"), clockEvent("cpu-clock:u"), countEvent("dummy:u")},
			map[string][]uint64{"cpu-clock:u": {5}}, "cpu-clock:u"},
		{[]trace.ProfileEvent{countEvent("major-faults"), clockEvent("cpu-clock")},
			map[string][]uint64{"major-faults": {1000}, "cpu-clock": {5}}, "cpu-clock major-faults"},
		{[]trace.ProfileEvent{countEvent("instructions"), countEvent("cycles:P")},
			map[string][]uint64{"instructions": {1000}, "cycles:P": {5}}, "cycles:P instructions"},
		{[]trace.ProfileEvent{countEvent("a"), countEvent("b"), countEvent("c"), countEvent("d")},
			map[string][]uint64{"a": {1}, "b": {2}, "c": {3, 4}}, "c a b"},
		{[]trace.ProfileEvent{countEvent("sched:sched_switch"), {Name: trace.OffCPUEvent, Unit: "nanoseconds"}},
			map[string][]uint64{"sched:sched_switch": {1, 1, 1}, trace.OffCPUEvent: {7, 8}}, trace.OffCPUEvent + " sched:sched_switch"},
		{[]trace.ProfileEvent{countEvent("a"), countEvent("b")}, nil, "a"},
	} {
		p := eventsRecording(c.events, c.weights).view(t)
		if got := strings.Join(p.Events(), " "); got != c.want {
			t.Errorf("%v: %s, expected %s", c.weights, got, c.want)
		}
		if built := p.pprof(); c.weights != nil && (built.DefaultSampleType != p.Events()[0] || built.CheckValid() != nil || len(built.Sample[0].Value) != len(p.Events())) {
			t.Errorf("%v: pprof begins with %s", c.weights, built.DefaultSampleType)
		}
		for name, write := range formats(p) {
			if err := write(io.Discard); err != nil {
				t.Errorf("%v: %s: %v", c.weights, name, err)
			}
		}
	}
}

func TestEventsWithoutSamplesHaveALineOfTheSummaryAndNoSection(t *testing.T) {
	events := []trace.ProfileEvent{clockEvent("cpu-clock")}
	for i := range 7 {
		events = append(events, countEvent(fmt.Sprintf("e%d", i)))
	}
	p := eventsRecording(events, map[string][]uint64{"cpu-clock": {5}, "e2": {1}}).view(t)
	var summary, text, js bytes.Buffer
	_ = p.WriteSummary(&summary, SummaryOptions{})
	_ = p.WriteText(&text, TextOptions{})
	_ = p.WriteJSON(&js)
	if want := "events: 1 of cpu-clock (5 ns), 1 of e2\nwithout samples: e0, e1, e3, e4, e5, 1 more\n"; !strings.Contains(summary.String(), want) {
		t.Errorf("%s\nexpected %s", summary.String(), want)
	}
	if strings.Contains(text.String(), "e0") || strings.Contains(text.String(), "e6") {
		t.Errorf("events without samples are in the text:\n%s", text.String())
	}
	// JSON has all events in the recording's order.
	var whole struct{ Events []struct{ Name string } }
	if err := json.Unmarshal(js.Bytes(), &whole); err != nil || len(whole.Events) != len(events) || whole.Events[3].Name != "e2" {
		t.Errorf("JSON has the events %+v, %v", whole.Events, err)
	}
	empty := eventsRecording(events, map[string][]uint64{"e2": {1}}).view(t, "e3", "e4")
	text.Reset()
	_ = empty.WriteText(&text, TextOptions{})
	if diff := cmp.Diff("perf.data: no samples\n", text.String()); diff != "" || !slices.Equal(empty.Events(), []string{"e3"}) {
		t.Errorf("%s %v", diff, empty.Events())
	}
}

func TestEventsAreFoundByAnyOfTheirNames(t *testing.T) {
	several := eventsRecording(
		[]trace.ProfileEvent{
			clockEvent("cpu-clock:u"), countEvent("branches:uk"), countEvent("branches:k"), countEvent("sched:sched_switch"),
			countEvent("cpu/event=0x3c,name=busy/u"), {Name: "busy", Unit: "count", Meaning: "instructions"}, countEvent("page-faults"), countEvent("page-faults"),
		},
		map[string][]uint64{
			"cpu-clock:u": {9}, "branches:uk": {1}, "branches:k": {1}, "sched:sched_switch": {1}, "busy": {1},
			"cpu/event=0x3c,name=busy/u": {1}, "page-faults": {1},
		},
	)
	for _, c := range []struct {
		r    *recording
		ask  string
		want string
	}{
		{several, "cpu-clock:u", "cpu-clock:u"},
		{several, "cpu-clock", "cpu-clock:u"},
		{several, "cpu-clock:k", "!no event cpu-clock:k, expected one of: cpu-clock:u, branches:uk, branches:k, sched:sched_switch, "},
		{several, "branches", "branches:uk branches:k"},
		{several, "branches:ku", "branches:uk"},
		{several, "branch-instructions:k", "branches:k"},
		{several, "sched:sched_switch", "sched:sched_switch"},
		{several, "sched_switch", "!no event sched_switch"},
		{several, "instructions", "busy"},
		{several, "cpu/event=0x3c,name=busy/", "cpu/event=0x3c,name=busy/u"},
		{several, "page-faults#2", "page-faults#2"},
		{several, "faults", "page-faults page-faults#2"},
		{several, "", "!no event"},
		{several, ":u", "!no event"},
		{several, "/", "!no event"},
		{hybrid(), "cycles", "cycles:Pu"},
		{hybrid(), "cpu-cycles", "cycles:Pu"},
		{hybrid(), "cycles:uP", "cycles:Pu"},
		{hybrid(), "cpu_core/cycles:Pu/", "cpu_core/cycles:Pu/"},
		{hybrid(), "cpu_core/cycles/", "cpu_core/cycles:Pu/"},
		{hybrid(), "cpu_core/cpu-cycles/u", "!no event"},
		{hybrid(), "cpu_core/cpu-cycles/", "cpu_core/cycles:Pu/"},
		{hybrid(), "cpu_big/cycles/", "!no event"},
	} {
		p, err := NewProfile(&c.r.Profile, c.ask)
		if part, isError := strings.CutPrefix(c.want, "!"); isError {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, expected %s", c.ask, err, part)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.ask, err)
			continue
		}
		if got := strings.Join(p.Events(), " "); got != c.want {
			t.Errorf("%q: %s, expected %s", c.ask, got, c.want)
		}
	}
}

func TestEventsOfHybridProcessorsAreJoined(t *testing.T) {
	r := hybrid()
	var b strings.Builder
	p := r.view(t)
	if err := p.WriteFolded(&b, "cycles:Pu"); err != nil || b.String() != "work;main 33\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if r.Samples[1].Event != 1 || r.Events[0].Name != "cpu_atom/cycles:Pu/" {
		t.Error("the recording was changed")
	}
	both := r.view(t, "cpu_core/cycles:Pu/", "cpu_atom/cycles:Pu/")
	if diff := cmp.Diff([]string{"cpu_core/cycles:Pu/", "cpu_atom/cycles:Pu/"}, both.Events()); diff != "" {
		t.Error(diff)
	}
	// By number, where the names do not say it; and what is no pair.
	apart := eventsRecording([]trace.ProfileEvent{
		{Name: "cycles", Unit: "count", Meaning: "cycles", PMU: "4"}, {Name: "cycles", Unit: "count", Meaning: "cycles", PMU: "10"},
		countEvent("cpu_atom/instructions:u/"), countEvent("cpu_core/instructions/"), countEvent("cpu_core/r1a8/"), countEvent("cpu_core/r1a8/"),
	}, map[string][]uint64{"cycles": {1}, "cpu_atom/instructions:u/": {1}, "cpu_core/instructions/": {1}, "cpu_core/r1a8/": {1}})
	want := []string{"cycles", "cpu_atom/instructions:u/", "cpu_core/instructions/", "cpu_core/r1a8/", "cpu_core/r1a8/#2"}
	if diff := cmp.Diff(want, apart.view(t).Events()); diff != "" {
		t.Error(diff)
	}
}
