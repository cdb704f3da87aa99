// SPDX-License-Identifier: Apache-2.0

package label

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestLabelsOfTracesAreAppliedToTheirProcess(t *testing.T) {
	rank := func(n string) map[string]string { return map[string]string{Rank: n} }
	for _, c := range []struct {
		name      string
		traced    []*Traced
		processes []Process
		want      []string // ranks
		problem   string
	}{
		{"one", []*Traced{{Path: "a", PID: 7, Labels: rank("3")}}, []Process{{PID: 7}, {PID: 8}, {}}, []string{"3", "", ""}, ""},
		{"moments of one process", []*Traced{{Path: "a", Host: "h", PID: 7, Labels: rank("3")}, {Path: "b", PID: 7, Labels: rank("3")}}, []Process{{Host: "h", PID: 7}, {Host: "h", PID: 7}}, []string{"3", "3"}, ""},
		{"its own rank", []*Traced{{Path: "a", PID: 7, Labels: rank("3")}}, []Process{{PID: 7, Labels: rank("4")}}, []string{"4"}, "a: process 7 has the rank 3 there, and 4 by itself, which counts"},
		{"two hosts", []*Traced{{Path: "a", Host: "h1", PID: 7, Labels: rank("1")}, {Path: "b", Host: "h2.site", PID: 7, Labels: rank("2")}}, []Process{{Host: "h1", PID: 7}, {Host: "h2", PID: 7}}, []string{"1", "2"}, ""},
		{"a trace of either host", []*Traced{{Path: "a", PID: 7, Labels: rank("1")}}, []Process{{Host: "h1", PID: 7}, {Host: "h2", PID: 7}}, []string{"", ""}, "a: its labels are of process 7 of one of several hosts, and are not used"},
		{"two traces", []*Traced{{Path: "a", PID: 7, Labels: rank("1")}, {Path: "b", PID: 7, Labels: rank("2")}}, []Process{{PID: 7}}, []string{""}, "a and b have other labels of process 7: neither is used"},
		{"another host", []*Traced{{Path: "a", Host: "h2", PID: 7, Labels: rank("1")}}, []Process{{Host: "h1", PID: 7}}, []string{""}, ""},
		{"another host with a domain", []*Traced{{Path: "a", Host: "h1.x", PID: 7, Labels: rank("1")}}, []Process{{Host: "h1.y", PID: 7}}, []string{""}, ""},
	} {
		for _, isReversed := range []bool{false, true} {
			list := make([]*Process, len(c.processes))
			for i := range list {
				p := c.processes[i]
				p.Labels = maps.Clone(p.Labels)
				list[i] = &p
			}
			traced := slices.Clone(c.traced)
			if isReversed {
				slices.Reverse(traced)
			}
			problems := Apply(traced, list)
			for i, p := range list {
				if p.Labels[Rank] != c.want[i] {
					t.Errorf("%s: process %d has the labels %v, expected rank %q", c.name, i, p.Labels, c.want[i])
				}
			}
			if got := strings.Join(problems, "\n"); got != c.problem {
				t.Errorf("%s: %q, expected %q", c.name, got, c.problem)
			}
		}
	}
}

func TestTracedLabelsAreReadAgain(t *testing.T) {
	g := &Traced{Path: "a", Host: "h", PID: 7, Labels: OfJob(3, 8)}
	again, err := DecodeTraced(g.Encode())
	if err != nil || string(again.Encode()) != string(g.Encode()) || again.Labels[Rank] != "3" || again.Labels[World] != "8" {
		t.Errorf("%+v, %v", again, err)
	}
	if len(OfJob(-1, -1)) > 0 {
		t.Error("labels of what is not known")
	}
	if g, err := DecodeTraced([]byte("[")); err == nil {
		t.Errorf("%+v", g)
	}
}
