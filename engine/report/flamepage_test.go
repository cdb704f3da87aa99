// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
)

// graphsOf are the flame graphs of a page, each as folded stacks are written.
func graphsOf(t *testing.T, page string) (folded []string) {
	t.Helper()
	_, text, _ := strings.Cut(page, `id="data">`)
	text, _, _ = strings.Cut(text, "</script>")
	var data struct {
		Functions []flamepage.Function
		Events    []flamepage.Graph
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	marks := [...]string{flamepage.Thread: "", flamepage.CPU: "", flamepage.Kernel: kernelMark, flamepage.GPU: deviceMark}
	for _, g := range data.Events {
		self := slices.Clone(g.Totals)
		names := make([]string, len(g.Totals))
		for i, caller := range g.Callers {
			f := data.Functions[g.Functions[i]]
			names[i] = strings.ReplaceAll(f.Name, ";", ":") + marks[f.Kind] // as folded stacks have it
			if caller >= 0 {
				names[i] = names[caller] + ";" + names[i]
				self[caller] -= g.Totals[i]
			}
		}
		lines := map[string]uint64{}
		for i, name := range names {
			lines[name] += self[i]
		}
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			if lines[name] > 0 {
				fmt.Fprintf(&b, "%s %d\n", name, lines[name])
			}
		}
		folded = append(folded, b.String())
	}
	return folded
}

// TestFlameGraphsAreTheFoldedStacks of every event.
func TestFlameGraphsAreTheFoldedStacks(t *testing.T) {
	r, err := NewProfile(&workday().Profile)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	graphs := graphsOf(t, page.String())
	if len(graphs) != len(r.Events()) || len(graphs) == 0 {
		t.Fatalf("%d graphs of %d events", len(graphs), len(r.Events()))
	}
	for i, event := range r.Events() {
		var want bytes.Buffer
		if err := r.MarkGuesses().WriteFolded(&want, event); err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(strings.ReplaceAll(want.String(), guessMark, guessText(1, 1)), "\n")
		slices.Sort(lines)
		got := strings.SplitAfter(graphs[i], "\n")
		slices.Sort(got)
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("%s (-folded +page):\n%s", event, diff)
		}
	}
}

// TestLightCallsAreLeftOut where a graph would have too many, never one of whose calls
// stays another, and the page says so.
func TestLightCallsAreLeftOut(t *testing.T) {
	r, err := NewProfile(&workday().Profile)
	if err != nil {
		t.Fatal(err)
	}
	whole := r.flameGraph(&r.values[0], &flamepage.Page{}, map[string]int32{}, maxFlameCalls)
	for most := range len(whole.Totals) {
		g := r.flameGraph(&r.values[0], &flamepage.Page{}, map[string]int32{}, most)
		if len(g.Totals) > most || len(g.Totals)+g.LeftOut != len(whole.Totals) || g.Total != whole.Total {
			t.Errorf("of %d calls %d stay and %d are left out, expected at most %d", len(whole.Totals), len(g.Totals), g.LeftOut, most)
		}
		for i, caller := range g.Callers {
			if int(caller) >= i || g.Totals[i] < g.Least {
				t.Errorf("at most %d: call %d has caller %d and weight %d", most, i, caller, g.Totals[i])
			}
		}
	}
}
