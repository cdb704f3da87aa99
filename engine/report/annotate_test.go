// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// annotatedShift is nightshift with an annotation of a kernel, and of one whose code
// object is not there.
func annotatedShift() *recording {
	r := nightshift()
	r.Annotations = []trace.ProfileAnnotation{
		{
			Function: "grade(int*)", LinkageName: "_Z5gradePi", Module: 1, Device: true, Problems: []string{"no source: it is not there"},
			Lines: []trace.AnnotatedLine{
				{File: "/src/grade.cl", Line: 8, Text: "\tint w = wear[id];", HasText: true}, {File: "/src/grade.cl", Line: 9, HasText: true},
				{File: "/src/grade.cl", Line: 12, Text: "  repair();", HasText: true}, {File: "/src/other.h", Line: 3},
			},
			Code: []trace.AnnotatedInstruction{
				{Offset: 0x10, Bytes: []byte{1, 2}, Text: "s_load_dwordx2 s[0:1], s[4:5], 0x0", File: "/src/grade.cl", InlineLine: 8},
				{Offset: 0x18, Text: "s_nop 0", Line: 1, File: "/src/grade.cl", InlineLine: 9},
				{Offset: 0x20, Text: "v_mov_b32_e32 v1, s3", Line: 1, File: "/src/grade.cl", InlineLine: 9},
				{Offset: 0x30, Text: "s_waitcnt vmcnt(0)", Line: 2, Inlined: "repair", File: "/src/grade.cl", InlineLine: 3},
			},
			Places: []trace.AnnotatedPlace{
				{Frame: 2, Code: 0, Line: 0, Kernel: -1}, {Frame: 3, Code: 2, Line: 1, Kernel: -1},
				{Frame: 4, Code: 3, Line: 2, IsInlined: true, Kernel: -1}, {Frame: 5, Code: -1, Line: -1, Kernel: -1},
			},
		},
		{
			Function: "copy", Module: 2, Device: true, IsRecorded: true,
			Code:   []trace.AnnotatedInstruction{{Offset: 0x40, Text: "s_nop 0", Line: -1}},
			Places: []trace.AnnotatedPlace{{Frame: 6, Code: 0, Line: -1, Kernel: 1}, {Frame: 2, Code: 0, Line: -1, Kernel: 1}},
		},
		{Function: "main", Module: 0, InlinedInto: []string{"_start"}},
	}
	return r
}

func TestAnnotationsHaveWhyWavesWaited(t *testing.T) {
	var b strings.Builder
	if err := annotatedShift().view(t, "gpu-pc-sampling").WriteAnnotations(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `gpu grade in grade.co
  gpu-pc-sampling: 12 samples, 13, 39.3 lanes active, stalled by waitcnt 46.2%, barrier 23.1%, alu-dependency 7.7%, no-instruction 7.7%
  no source: it is not there

  samples       %  inlined  lanes  waitcnt  barrier  alu-dependency  line  /src/grade.cl
        4   30.8%            64.0        4                              8          int w = wear[id];
        6   46.2%            32.0        1        1               1     9
...
        2   15.4%    15.4%   16.0                 2                    12    repair();

  samples       %  lanes  waitcnt  barrier  alu-dependency  offset  instruction
        4   30.8%   64.0        4                             0x10  s_load_dwordx2 s[0:1], s[4:5], 0x0  grade.cl:8
                                                              0x18  s_nop 0                             grade.cl:9
        6   46.2%   32.0        1        1               1    0x20  v_mov_b32_e32 v1, s3
        2   15.4%   16.0                 2                    0x30  s_waitcnt vmcnt(0)                  grade.cl:3 repair
1 sample of gpu-pc-sampling at no line that is known
1 sample of gpu-pc-sampling at no instruction of its own

gpu copy in memory://7#offset=0x10&size=16
  gpu-pc-sampling: 1 sample, 3, 32.0 lanes active
  the code object was not found: these are the sampled instructions, as the file of samples has them

  samples       %  lanes  offset  instruction
        3  100.0%   32.0    0x40  s_nop 0

main in work
  no samples of its own: they are in what it calls
  inlined into _start
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", b.String())
	}
}

// TestAnnotationsAreOfTheEventsAskedFor: where none is, the text is of the first that has
// samples, and JSON of all.
func TestAnnotationsAreOfTheEventsAskedFor(t *testing.T) {
	for _, c := range []struct {
		events     []string
		text, json string
	}{
		{nil, "gpu-pc-sampling", "gpu-pc-sampling gpu-kernel-time"},
		{[]string{"gpu-kernel-time"}, "gpu-kernel-time", "gpu-kernel-time"},
		{[]string{"gpu-pc-sampling", "gpu-kernel-time"}, "gpu-pc-sampling gpu-kernel-time", "gpu-pc-sampling gpu-kernel-time"},
		{[]string{"cpu-clock"}, "", ""},
	} {
		p := annotatedShift().view(t, c.events...)
		var names []string
		for _, count := range p.countAnnotations(false)[0] {
			names = append(names, count.name)
		}
		if got := strings.Join(names, " "); got != c.text {
			t.Errorf("%q: %s, expected %s", c.events, got, c.text)
		}
		var b bytes.Buffer
		if err := p.WriteAnnotationsJSON(&b); err != nil {
			t.Fatal(err)
		}
		var out struct {
			Annotations []struct {
				Events []struct {
					Name   string
					States map[string]uint64
				}
			}
		}
		if err := json.Unmarshal(b.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		names = nil
		for _, e := range out.Annotations[0].Events {
			names = append(names, e.Name)
			if e.Name == "gpu-pc-sampling" && e.States["waitcnt"] != 6 {
				t.Errorf("states %v", e.States)
			}
		}
		if got := strings.Join(names, " "); got != c.json {
			t.Errorf("%q: JSON has %s, expected %s", c.events, got, c.json)
		}
	}
}
