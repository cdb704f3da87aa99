// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/trace"
)

// pageStacks are the names of a profile's stacks, outermost first, each behind the
// process.
func pageStacks(p *profile.Profile) (list []string) {
	for _, s := range p.Sample {
		names := slices.Clone(s.Label[processLabel])
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) {
				names = append(names, line.Function.Name)
			}
		}
		list = append(list, strings.Join(names, ";"))
	}
	return list
}

// TestPagesTellProcessesAndCodeApart: what the pages show has the process, functions
// with marks, and modules where functions are not known. Downloads have not.
func TestPagesTellProcessesAndCodeApart(t *testing.T) {
	r := workday().view(t)
	p, root := r.pagesProfile()
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if root != processLabel {
		t.Errorf("the trees are of %q", root)
	}
	want := strings.Split(`work 10;_start;main;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name);deep(int; odd?name)
work 10;_start;main;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name)
work 10;_start;main;[libc.so.6]
work 10;_start;main;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name)
work 10;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name)
odd;?name 20;[unknown]
odd;?name 20
work 10;_start;main;[kernel.kallsyms]_[k];clear_page_[k]
work 10;_start;main;grade_[G]
[unknown];grade_[G]
work 10;_start;main`, "\n")
	if diff := cmp.Diff(want, pageStacks(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	answer := httptest.NewRecorder()
	r.downloadPage(answer, nil)
	var file bytes.Buffer
	if err := r.WritePprof(&file); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(answer.Body.Bytes(), file.Bytes()) {
		t.Error("another profile is downloaded")
	}
}

// TestPagesOfOneProcessHaveNoTrees: a root of one process would say nothing.
func TestPagesOfOneProcessHaveNoTrees(t *testing.T) {
	p, root := waves().view(t).pagesProfile()
	if root != "" || p.Sample[0].Label[processLabel] != nil {
		t.Errorf("the trees are of %q: %v", root, p.Sample[0].Label)
	}
}

// TestProcessesAreNamedByTheirMainThreads, of whose names by the one with most samples.
func TestProcessesAreNamedByTheirMainThreads(t *testing.T) {
	r := newRecording()
	for _, s := range []struct {
		pid, tid int
		comm     string
	}{{5, 6, "io"}, {5, 6, "io"}, {5, 5, "sh"}, {5, 5, "cc1"}, {5, 5, "cc1"}, {7, 8, "only"}, {9, 9, ""}, {-1, -1, ""}} {
		r.sample(trace.ProfileSample{Event: -1, Thread: r.thread(s.pid, s.tid, s.comm)})
	}
	want := map[int]string{5: "cc1", 7: "only", 9: "[unknown]", -1: "[unknown]"}
	names := r.view(t).processNames()
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a, b := processName(names, 5), processName(names, -1); a != "cc1 5" || b != "[unknown]" {
		t.Errorf("%q, %q", a, b)
	}
}
