// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/trace"
)

// nightshift is a recording of two kernels, of which one was launched by a stack that
// is only near.
func nightshift() *recording {
	r := newRecording(
		trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"},
		trace.ProfileEvent{Name: "gpu-pc-sampling", Unit: "count", Lanes: true, States: true, Device: true},
		trace.ProfileEvent{Name: "gpu-kernel-time", Unit: "nanoseconds", Device: true},
	)
	work := r.module("/opt/work", 0x400000, 0x402000)
	gpu := r.module("/opt/grade.co", 0x100000, 0x101000)
	lost := r.module("memory://7#offset=0x10&size=16", 0, 0)
	r.Kernels = []trace.ProfileKernel{
		{Name: "_Z5gradePi", Module: gpu, Dispatches: 2, Time: 3_000_000, HasTime: true, Lanes: 64},
		{Name: "copy", Module: lost, Lanes: 32},
		{Name: "idle", Module: -1, Dispatches: 7},
	}
	r.States = []trace.WaveState{
		{}, {Name: "issued"}, {Name: "waitcnt", Stalled: true}, {Name: "barrier", Stalled: true},
		{Name: "alu-dependency", Stalled: true}, {Name: "no-instruction", Stalled: true},
	}
	line := func(function string, line int) trace.Symbol {
		return trace.Symbol{Function: function, File: "/src/grade.cl", Line: line, StartFile: "/src/grade.cl", StartLine: 1}
	}
	main := r.frame(trace.ProfileFrame{PC: 0x400110, Module: work, ModuleOffset: 0x110, Dispatched: -1,
		Symbols: []trace.Symbol{{Function: "main", Start: 0x100, HasStart: true}}})
	near := r.frame(trace.ProfileFrame{Module: -1, Dispatched: -1, Symbols: []trace.Symbol{{Function: "[near]"}}})
	wave := func(pc uint64, dispatched int32, symbols ...trace.Symbol) uint32 {
		return r.frame(trace.ProfileFrame{PC: pc, Exact: true, FoundBy: trace.ByContext, Module: gpu, ModuleOffset: pc - 0x100000,
			Device: true, Dispatched: dispatched, Symbols: symbols})
	}
	first, second := wave(0x100010, 0, line("grade(int*)", 8)), wave(0x100020, 0, line("grade(int*)", 9))
	inlined := line("repair", 3)
	inlined.Inlined = true
	third := wave(0x100030, 0, inlined, line("grade(int*)", 12))
	callee := wave(0x100200, -1, line("helper", 30))
	unknown := r.frame(trace.ProfileFrame{PC: 0x40, Exact: true, FoundBy: trace.ByContext, Module: lost, ModuleOffset: 0x40, Device: true,
		Dispatched: 1, NamedBy: "rocprofv3", Instruction: "s_nop 0", Symbols: []trace.Symbol{{Function: "copy"}}})

	thread, outermost := r.thread(10, 10, "work"), r.stop(trace.StopOutermost, "")
	sample := func(event int16, weight uint64, lanes uint16, state uint8, launch trace.LaunchEvidence, frames ...uint32) {
		r.sample(trace.ProfileSample{Event: event, Thread: thread, Stop: outermost, Weight: weight, ActiveLanes: lanes, State: state,
			Launch: launch, Stack: r.stack(frames...)})
	}
	sample(0, 1e6, 0, 0, trace.EvidenceUnknown, main)
	for range 4 {
		sample(1, 1, 64, 2, trace.EvidenceProbe, main, first)
	}
	for state := range uint8(6) {
		sample(1, 1, 32, state, trace.EvidenceProbe, main, second)
	}
	sample(1, 2, 16, 3, trace.EvidenceRecorded, main, third)
	sample(1, 1, 8, 2, trace.EvidenceRecorded, main, first, callee)
	sample(1, 3, 32, 0, trace.EvidenceNear, main, near, unknown)
	sample(2, 3e6, 0, 0, trace.EvidenceProbe, main, first)
	return r
}

// TestStatesOfWavesAreValues: each state that occurs is a value of the event, in all forms
// that have values.
func TestStatesOfWavesAreValues(t *testing.T) {
	p := nightshift().view(t)
	want := []string{
		"cpu-clock nanoseconds 1000000", "gpu-pc-sampling count 16", "gpu-pc-sampling:active-lanes count 504",
		"gpu-pc-sampling:waitcnt count 6", "gpu-pc-sampling:barrier count 3", "gpu-pc-sampling:alu-dependency count 1",
		"gpu-pc-sampling:issued count 1", "gpu-pc-sampling:no-instruction count 1", "gpu-kernel-time nanoseconds 3000000",
	}
	var b bytes.Buffer
	if err := p.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	out, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, v := range out.SampleType {
		var sum int64
		for _, s := range out.Sample {
			sum += s.Value[i]
		}
		got = append(got, fmt.Sprintf("%s %s %d", v.Type, v.Unit, sum))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pprof (-want +got):\n%s", diff)
	}
	var folded strings.Builder
	if err := p.WriteFolded(&folded, "gpu-pc-sampling:waitcnt"); err != nil {
		t.Fatal(err)
	}
	if want := "work;main;grade(int*)_[G] 5\nwork;main;grade(int*)_[G];helper_[G] 1\n"; folded.String() != want {
		t.Errorf("folded: %s, expected %s", folded.String(), want)
	}
	b.Reset()
	if err := p.WriteSpeedscope(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"gpu-pc-sampling:waitcnt, work 10","unit":"none","startValue":0,"endValue":6`, `"gpu-kernel-time, work 10","unit":"nanoseconds"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("speedscope has no %s", want)
		}
	}
	if diff := cmp.Diff([]string{"cpu-clock", "gpu-pc-sampling", "gpu-kernel-time"}, p.Events()); diff != "" {
		t.Errorf("events: %s", diff)
	}
}

// TestManyStatesAreFewValues: beyond the most frequent they are one value, and names that
// are the same are told apart.
func TestManyStatesAreFewValues(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "e", Unit: "count", States: true, Lanes: true, Device: true})
	r.States = make([]trace.WaveState, 256)
	thread, stop := r.thread(1, 1, "t"), r.stop(trace.StopOutermost, "")
	var total uint64
	for i := range r.States {
		r.States[i].Name = fmt.Sprint("s", i)
		r.sample(trace.ProfileSample{Thread: thread, Stop: stop, Weight: uint64(i), State: uint8(i)})
		total += uint64(i)
	}
	r.States[255].Name, r.States[254].Name, r.States[253].Name = "active-lanes", "s253", "s253"
	p := r.view(t)
	var names []string
	var sum uint64
	for _, v := range p.values[2:] {
		names = append(names, v.name)
		for i := range r.Samples {
			sum += v.amount(&r.Samples[i])
		}
	}
	if len(names) != stateValuesMost+1 || sum != total {
		t.Errorf("%d values with %d, expected %d with %d", len(names), sum, stateValuesMost+1, total)
	}
	for i, want := range map[int]string{0: "e:active-lanes#2", 1: "e:s253", 2: "e:s253#2", 3: "e:s252", stateValuesMost: "e:other-states"} {
		if names[i] != want {
			t.Errorf("value %d is %s, expected %s", i, names[i], want)
		}
	}
}

func TestTextHasTheKernels(t *testing.T) {
	text := func(events ...string) string {
		var b strings.Builder
		if err := nightshift().view(t, events...).WriteText(&b, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	_, got, _ := strings.Cut(text(), "\n\nperf.data: gpu-pc-sampling")
	want := `, 13 samples, 16

flat    flat%   cum     cum%  lanes      function
  10    62.5%    13    81.2%   44.8  gpu grade /src/grade.cl:1 in grade.co
   3    18.8%     3    18.8%   32.0  gpu copy in memory://7#offset=0x10&size=16 (named by rocprofv3)
   2    12.5%     2    12.5%   16.0  gpu repair /src/grade.cl:1 in grade.co
   1     6.2%     1     6.2%    8.0  gpu helper /src/grade.cl:1 in grade.co
   0     0.0%    16   100.0%      -      main in work
   0     0.0%     3    18.8%      -      [near]

 total    self      calls
100.0%              "work"
100.0%              main in work
 81.2%   62.5%  gpu ├ grade grade.cl:1
 12.5%   12.5%  gpu │ ├ repair grade.cl:1
  6.2%    6.2%  gpu │ └ helper grade.cl:1
 18.8%              └ [near]
 18.8%   18.8%  gpu   copy in memory://7#offset=0x10&size=16 (named by rocprofv3)

perf.data: gpu-kernel-time, 1 sample, 3.00 ms

   flat    flat%      cum     cum%      function
3.00 ms   100.0%  3.00 ms   100.0%  gpu grade /src/grade.cl:1 in grade.co
      0     0.0%  3.00 ms   100.0%      main in work

 total    self      calls
100.0%              "work"
100.0%              main in work
100.0%  100.0%  gpu grade grade.cl:1

perf.data: kernels of gpu-pc-sampling

samples        %      lanes     time    time%  dispatches  kernel
     13    81.2%    39.3/64  3.00 ms   100.0%           2  grade in grade.co
         stalled 84.6%: waitcnt 46.2%, barrier 23.1%, alu-dependency 7.7%
         lines: grade.cl:9 46.2%, grade.cl:8 30.8%, grade.cl:3 15.4%
      3    18.8%    32.0/32        -        -           -  copy in memory://7#offset=0x10&size=16
      0     0.0%          -        -        -           7  idle
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", got)
	}
	_, got, _ = strings.Cut(text("gpu-kernel-time"), ": kernels\n\n")
	want = `   time    time%  dispatches  kernel
3.00 ms   100.0%           2  grade in grade.co
      -        -           7  idle
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("times only (-want +got):\n%s", got)
	}
	if got := text("cpu-clock"); strings.Contains(got, "kernels") {
		t.Errorf("a recording of no accelerator has kernels:\n%s", got)
	}
}

func TestJSONHasTheKernels(t *testing.T) {
	parts := func(events ...string) string {
		var b bytes.Buffer
		if err := nightshift().view(t, events...).WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b.Bytes()) {
			t.Error("it is no JSON")
		}
		var kept strings.Builder
		for line := range strings.Lines(b.String()) {
			for _, of := range []string{`"state":"issued"`, `"near"`, `"recorded"`, `"device"`, `"dispatches"`, `"kernels"`, `{"id":1,`} {
				if strings.Contains(line, of) {
					kept.WriteString(line)
					break
				}
			}
		}
		return kept.String()
	}
	want := `{"name":"gpu-pc-sampling","unit":"count","lanes":true,"states":true,"device":true}],
{"event":"gpu-pc-sampling","comm":"work","pid":10,"tid":10,"time":1006000000,"weight":1,"active_lanes":32,"state":"issued","launched_by":"probe","frames":[2,1],"stopped":"outermost"},
{"event":"gpu-pc-sampling","comm":"work","pid":10,"tid":10,"time":1011000000,"weight":2,"active_lanes":16,"state":"barrier","launched_by":"recorded","frames":[3,4,1],"stopped":"outermost"},
{"event":"gpu-pc-sampling","comm":"work","pid":10,"tid":10,"time":1012000000,"weight":1,"active_lanes":8,"state":"waitcnt","launched_by":"recorded","frames":[5,0,1],"stopped":"outermost"},
{"event":"gpu-pc-sampling","comm":"work","pid":10,"tid":10,"time":1013000000,"weight":3,"active_lanes":32,"launched_by":"near","frames":[6,7,1],"stopped":"outermost"}],
{"pc":"0x100010","found_by":"context","module":1,"module_offset":"0x10","function":"grade(int*)","file":"/src/grade.cl","line":8,"inlined":false,"kernel":false,"device":true,"dispatched":0},
{"pc":"0x100020","found_by":"context","module":1,"module_offset":"0x20","function":"grade(int*)","file":"/src/grade.cl","line":9,"inlined":false,"kernel":false,"device":true,"dispatched":0},
{"pc":"0x100030","found_by":"context","module":1,"module_offset":"0x30","function":"repair","file":"/src/grade.cl","line":3,"inlined":true,"kernel":false,"device":true},
{"pc":"0x100030","found_by":"context","module":1,"module_offset":"0x30","function":"grade(int*)","file":"/src/grade.cl","line":12,"inlined":false,"kernel":false,"device":true,"dispatched":0},
{"pc":"0x100200","found_by":"context","module":1,"module_offset":"0x200","function":"helper","file":"/src/grade.cl","line":30,"inlined":false,"kernel":false,"device":true},
{"pc":"0x40","found_by":"context","module":2,"module_offset":"0x40","function":"copy","inlined":false,"kernel":false,"device":true,"dispatched":1,"named_by":"rocprofv3","instruction":"s_nop 0"},
"kernels":[
{"id":0,"name":"_Z5gradePi","function":"grade(int*)","module":1,"dispatches":2,"time":3000000,"samples":13,"lanes":64},
{"id":1,"name":"copy","module":2,"samples":3,"lanes":32}],
{"id":1,"path":"/opt/grade.co","arch":"x86_64","segments":[],"kernel":false,"start":"0x100000","end":"0x101000","offset":"0x0"},
`
	if got := parts("gpu-pc-sampling"); got != want {
		t.Errorf("%s", got)
	}
	if got := parts("cpu-clock"); strings.Contains(got, "_Z5grade") {
		t.Errorf("an event of the CPU has kernels:\n%s", got)
	}
}
