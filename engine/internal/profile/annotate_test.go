// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// annotatedFake is the profile of a file of samples alone, with annotations.
func annotatedFake(tb testing.TB, f gpusamples.File, names ...string) (*trace.Profile, error) {
	tb.Helper()
	k := newGPUMaker(tb)
	r := k.newRecording(nil)
	defer r.close()
	b := newProfileBuilder(r)
	if err := b.addOthers(tb.Context(), nil, nil, []gpusamples.File{f}, &trace.ProfileOptions{}); err != nil {
		tb.Fatal(err)
	}
	b.name(tb.Context(), 1, nil)
	err := b.annotate(tb.Context(), names)
	return b.profile(), err
}

// codeOf are the instructions of an annotation that have samples, with how many.
func codeOf(p *trace.Profile, a *trace.ProfileAnnotation) (list []string) {
	counts := map[int32]int{}
	for _, place := range a.Places {
		for i := range p.Samples {
			if p.Stacks[p.Samples[i].Stack].Frame == place.Frame {
				counts[place.Code]++
			}
		}
	}
	for i, in := range a.Code {
		if n := counts[int32(i)]; n > 0 {
			list = append(list, fmt.Sprintf("%d at %#x %s", n, in.Offset, in.Text))
		}
	}
	if n := counts[-1]; n > 0 {
		list = append(list, fmt.Sprintf("%d at no instruction", n))
	}
	return list
}

// TestInstructionsAreTheRecordedOnesWithoutACodeObject: of a kernel whose code was in memory
// only, the profiler's text is all that there is.
func TestInstructionsAreTheRecordedOnesWithoutACodeObject(t *testing.T) {
	path, err := filepath.Abs(grade)
	if err != nil {
		t.Fatal(err)
	}
	facts := gpusamples.Facts{
		Path: "x", Form: "rocprofv3", Events: []gpusamples.Event{{Name: gpusamples.DefaultEvent, Samples: 9}},
		Modules: []gpusamples.Module{
			{PID: -1, Path: path, Arch: "amdgpu", Segments: []trace.Segment{{Address: 0, Size: 0x4000, Start: 0x7f0000000000}}},
			{PID: -1, URI: "memory://1#offset=0x10&size=99", Size: 99, Arch: "amdgpu", Segments: []trace.Segment{{Address: 0, Size: 0x4000, Start: 0x7f0000100000}}},
		},
		Kernels: []gpusamples.Kernel{
			{Name: "grade", Module: 0, Entry: 0x1600, HasEntry: true}, {Name: "_Z4madePi", Module: 1, Entry: 0x1000, HasEntry: true},
			{Name: "stalls", Module: -1}, {Name: "_Z5otherPi", Module: 1, Entry: 0x1020, HasEntry: true},
			{Name: "nowhere", Module: -1},
		},
	}
	lines := []gpusamples.Line{{File: "/a/inner.h", Line: 7}, {File: "/a/k.cl", Line: 9}}
	f := &fakeFile{facts: facts, samples: samplesOf(
		told(gpusamples.Sample{Module: 1, Kernel: 1, Offset: 0x1014, HasOffset: true, Instruction: "s_endpgm"}),
		told(gpusamples.Sample{Module: 1, Kernel: 1, Offset: 0x1010, HasOffset: true, Instruction: "s_nop 0", Source: lines}),
		told(gpusamples.Sample{Module: 1, Kernel: 1, Offset: 0x1010, HasOffset: true, Instruction: "s_nop 0", Source: lines}),
		told(gpusamples.Sample{Module: 1, Kernel: 3, Offset: 0x1030, HasOffset: true, Instruction: "s_nop 3"}),
		told(gpusamples.Sample{Module: 0, Kernel: 0, Offset: 0x1604, HasOffset: true}), // inside the first instruction
		told(gpusamples.Sample{Module: 0, Kernel: 0, Offset: 0x1610, HasOffset: true, Instruction: "v_lshlrev_b32_e32 v1, 2, v0"}),
		told(gpusamples.Sample{Module: -1, Kernel: 2, Offset: 0x20, InKernel: true, Instruction: "send"}),
		told(gpusamples.Sample{Module: -1, Kernel: 2, Offset: 0x10, InKernel: true, Instruction: "mad"}),
		told(gpusamples.Sample{Module: -1, Kernel: 4, Offset: 0x30, InKernel: true}),
	)}
	p, err := annotatedFake(t, f, "made", "stalls", "grade", "nowhere")
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"2 at 0x1010 s_nop 0", "1 at 0x1014 s_endpgm"},
		{"1 at 0x10 mad", "1 at 0x20 send"},
		{"1 at 0x1600 .long 0xc0060002, 0x00000000  // writes s[0:1]", "1 at 0x1610 v_lshlrev_b32_e32 v1, 2, v0"},
		{"1 at 0x30 "},
	}
	var got [][]string
	for i := range p.Annotations {
		a := &p.Annotations[i]
		got = append(got, codeOf(p, a))
		if isRecorded := i < 2; a.IsRecorded != isRecorded || !a.Device {
			t.Errorf("%s: recorded %v, of an accelerator %v; %q", a.Function, a.IsRecorded, a.Device, a.Problems)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if problems := p.Annotations[3].Problems; len(problems) != 1 || !strings.HasPrefix(problems[0], "its code is not known") {
		t.Errorf("problems %q", problems)
	}
	if a := &p.Annotations[0]; len(a.Lines) != 1 || a.Lines[0].File != "/a/k.cl" || a.Lines[0].Line != 9 {
		t.Errorf("lines %v, expected the one that the file of samples has", a.Lines)
	}
}

func TestAnnotationsNeedNames(t *testing.T) {
	k := newGPUMaker(t)
	options := k.Shared.Options()
	options.NoSymbols = true
	k.Shared = walk.NewShared(k.Shared.Library(), options)
	r := k.newRecording(nil)
	defer r.close()
	if err := newProfileBuilder(r).annotate(t.Context(), []string{"main"}); !errors.Is(err, errNoNames) {
		t.Error(err)
	}
}

// TestLongFunctionsAreListedAroundTheirCode: between lines that are far apart most are left
// out.
func TestLongFunctionsAreListedAroundTheirCode(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	k := newGPUMaker(t)
	r := k.newRecording(nil)
	defer r.close()
	a := &annotator{profileBuilder: newProfileBuilder(r), sources: k.sources("")}
	for _, c := range []struct {
		lines []int
		start int
		want  string
	}{
		{[]int{5, 8}, 4, "4-8"},
		{[]int{5, 8}, 1, "1-8"},
		{[]int{500, 508}, 1, "500-508"},
		{[]int{10, 15_000, 19_999}, 10, "7-13 14997-15003 19996-20000"},
		{[]int{700, 1700}, 0, "700-1700"},
	} {
		g := &annotated{symbols: map[lineKey]*trace.Symbol{}}
		for _, line := range c.lines {
			g.needLine(&trace.Symbol{File: "a.c", Line: line, StartFile: "a.c", StartLine: c.start, Source: text.String()})
		}
		a.lines(g)
		var got []string
		for i := 0; i < len(g.Lines); {
			first := i
			for i++; i < len(g.Lines) && g.Lines[i].Line == g.Lines[i-1].Line+1; i++ {
				if want := fmt.Sprint("line ", g.Lines[i].Line); g.Lines[i].Text != want {
					t.Fatalf("%q, expected %q", g.Lines[i].Text, want)
				}
			}
			got = append(got, fmt.Sprintf("%d-%d", g.Lines[first].Line, g.Lines[i-1].Line))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %s, expected %s; %q", c.lines, got, c.want, g.Problems)
		}
	}
}
