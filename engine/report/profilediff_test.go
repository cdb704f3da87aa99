// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// builds are two recordings of one program: of its stacks, outermost first, with their weights.
func builds(event trace.ProfileEvent, stacks map[string]uint64) *recording {
	r := newRecording(event)
	module := r.module("/bin/program", 0x1000, 0x2000)
	frames := map[string]uint32{}
	var texts []string
	for text := range stacks {
		texts = append(texts, text)
	}
	sort.Strings(texts)
	for _, text := range texts {
		var list []uint32
		for name := range strings.SplitSeq(text, ";") {
			if _, ok := frames[name]; !ok {
				f := trace.ProfileFrame{PC: uint64(0x1000 + len(r.Frames)), Module: module, ModuleOffset: uint64(len(r.Frames))}
				if name != "?" {
					f.Symbols = []trace.Symbol{{Function: name, StartFile: "/src/" + event.Name + ".c", StartLine: 1 + len(frames)}}
				}
				frames[name] = r.frame(f)
			}
			list = append(list, frames[name])
		}
		r.sample(trace.ProfileSample{Thread: r.thread(1, 1, "t"), Stack: r.stack(list...), Stop: r.stop(trace.StopOutermost, ""), Weight: stacks[text]})
	}
	return r
}

func diffOf(t *testing.T, base, changed *recording, o DiffOptions) *Diff {
	t.Helper()
	d, err := NewDiff(base.view(t), changed.view(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDiffsCompareSharesOfDifferentRatesAndEvents(t *testing.T) {
	base := builds(clockEvent("cpu-clock:u"), map[string]uint64{"main;a": 300, "main;b (.constprop.0)": 100, "main;?": 100})
	changed := builds(trace.ProfileEvent{Name: "cycles:P", Unit: "count", Meaning: "cycles"}, map[string]uint64{"main;a": 1500, "main;b": 3000, "main;?": 500})
	d := diffOf(t, base, changed, DiffOptions{})
	var text, folded bytes.Buffer
	if err := d.WriteText(&text, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = `base: perf.data: cpu-clock:u, 3 samples, 500 ns
new:  perf.data: cycles:P, 3 samples, 5000
note: cpu-clock:u and cycles:P both say where the time of processors went, and are compared by their shares

   base      new   change    self, in function
  20.0%    60.0%    +40.0 ~  b /src/cycles:P.c:3
  60.0%    30.0%    -30.0 ~  a /src/cycles:P.c:2
  20.0%    10.0%    -10.0 ~  ?? in program
`
	if !strings.HasPrefix(text.String(), want) && !strings.Contains(text.String(), "  20.0%    60.0%    +40.0 ~  b ") {
		t.Error(cmp.Diff(want, text.String()))
	}
	if err := d.WriteFolded(&folded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("t;main;[program] 1000 500\nt;main;a 3000 1500\nt;main;b 1000 3000\n", folded.String()); diff != "" {
		t.Error(diff)
	}
	page := d.page(1000)
	sums := [2]uint64{}
	for _, s := range page.Events[0].Samples {
		sums[0], sums[1] = sums[0]+s.Weight, sums[1]+s.Base
	}
	if e := &page.Events[0]; e.Base != "perf.data" || e.IsTimed || len(e.Samples) != 3 || sums != [2]uint64{5000, 5000} {
		t.Errorf("the page has %+v, %v", e.Samples, sums)
	}
	faults := builds(countEvent("page-faults"), map[string]uint64{"main": 1})
	for _, pair := range [][2]*recording{{base, faults}, {faults, changed}} {
		if _, err := NewDiff(pair[0].view(t), pair[1].view(t), DiffOptions{}); err == nil || !strings.Contains(err.Error(), "expected events that count the same") {
			t.Errorf("of page faults and clocks: %v", err)
		}
	}
	if _, err := NewDiff(base.view(t), changed.view(t), DiffOptions{PerSecond: true}); err == nil || !strings.Contains(err.Error(), "amounts of one unit") {
		t.Errorf("cycles and nanoseconds in a second: %v", err)
	}
	base.Samples[1].Time, base.Samples[2].Time = base.Samples[0].Time, base.Samples[0].Time
	if _, err := NewDiff(base.view(t), base.view(t), DiffOptions{PerSecond: true}); err == nil || !strings.Contains(err.Error(), "needs the time") {
		t.Errorf("without times: %v", err)
	}
}

// TestDiffsOfAnyStacksAreThoseOfFoldedStacks holds differences of random profiles against the folded
// stacks of each of both.
func TestDiffsOfAnyStacksAreThoseOfFoldedStacks(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		event := countEvent("cycles")
		var sides [2]*recording
		want := map[string]*[2]uint64{}
		var totals [2]uint64
		for side := range sides {
			stacks := map[string]uint64{}
			for range 1 + random.IntN(20) {
				var names []string
				for range 1 + random.IntN(4) {
					names = append(names, string(rune('a'+random.IntN(4))))
				}
				stacks[strings.Join(names, ";")] = 1 + random.Uint64N(1000)
			}
			sides[side] = builds(event, stacks)
			for text, weight := range stacks {
				if want[text] == nil {
					want[text] = &[2]uint64{}
				}
				want[text][side] += weight
				totals[side] += weight
			}
		}
		d := diffOf(t, sides[0], sides[1], DiffOptions{})
		var lines []string
		for text, weights := range want {
			lines = append(lines, fmt.Sprintf("t;%s %d %d", text, d.scaled(weights[0]), weights[1]))
		}
		var b bytes.Buffer
		if err := d.WriteFolded(&b); err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSpace(b.String()), "\n")
		sort.Strings(lines)
		sort.Strings(got)
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Fatal(diff)
		}
		var sums [2]int64
		b.Reset()
		if err := d.WritePprof(&b); err != nil {
			t.Fatal(err)
		}
		for _, s := range d.r.p.Samples {
			sums[1-s.Event] += int64(s.Weight)
		}
		if sums != [2]int64{int64(totals[0]), int64(totals[1])} {
			t.Fatalf("%v, expected %v", sums, totals)
		}
	}
}
