// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/trace"
)

// recording makes profiles by hand.
type recording struct {
	trace.Profile
	stacks map[trace.ProfileStack]uint32
}

func newRecording(events ...trace.ProfileEvent) *recording {
	return &recording{
		Profile: trace.Profile{Path: "perf.data", Events: events, Stacks: make([]trace.ProfileStack, 1)},
		stacks:  map[trace.ProfileStack]uint32{},
	}
}

func (r *recording) module(path string, start, end uint64) int32 {
	r.Modules = append(r.Modules, trace.ProfileModule{
		Module: &trace.Module{ID: 40 + len(r.Modules), Path: path, Arch: "x86_64"}, Start: start, End: end,
		Kernel: strings.HasPrefix(path, "[kernel"),
	})
	return int32(len(r.Modules) - 1)
}

func (r *recording) frame(f trace.ProfileFrame) uint32 {
	if f.FoundBy == "" {
		f.FoundBy = trace.ByCFI
	}
	r.Frames = append(r.Frames, f)
	return uint32(len(r.Frames) - 1)
}

func (r *recording) stop(reason trace.StopReason, detail string) uint16 {
	s := trace.Stopped{Reason: reason, Detail: detail}
	if i := slices.Index(r.Stops, s); i >= 0 {
		return uint16(i)
	}
	r.Stops = append(r.Stops, s)
	return uint16(len(r.Stops) - 1)
}

func (r *recording) thread(pid, tid int, comm string) uint32 {
	t := trace.ProfileThread{PID: pid, TID: tid, Comm: comm}
	if i := slices.Index(r.Threads, t); i >= 0 {
		return uint32(i)
	}
	r.Threads = append(r.Threads, t)
	return uint32(len(r.Threads) - 1)
}

// stack is the stack of frames, outermost first.
func (r *recording) stack(frames ...uint32) uint32 {
	var at uint32
	for _, f := range frames {
		key := trace.ProfileStack{Caller: at, Frame: f}
		next, ok := r.stacks[key]
		if !ok {
			next = uint32(len(r.Stacks))
			r.stacks[key] = next
			r.Stacks = append(r.Stacks, key)
		}
		at = next
	}
	return at
}

func (r *recording) sample(s trace.ProfileSample) {
	s.Time = 1e9 + uint64(len(r.Samples))*1e6
	r.Samples = append(r.Samples, s)
}

func (r *recording) view(t testing.TB, events ...string) *Profile {
	t.Helper()
	p, err := NewProfile(&r.Profile, events...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// workday is a recording that has one of everything.
func workday() *recording {
	r := newRecording(
		trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"},
		trace.ProfileEvent{Name: "page-faults", Unit: "count"},
		trace.ProfileEvent{Name: "gpu-pc-sampling", Unit: "count", Lanes: true, Device: true},
	)
	work := r.module("/opt/work", 0x400000, 0x402000)
	r.Modules[work].BuildID = []byte{0xab, 0xcd}
	libc := r.module("/usr/lib/libc.so.6", 0x7f0000, 0x7f8000)
	r.Modules[libc].Problems = []string{"not found"}
	kernel := r.module("[kernel.kallsyms]", 0xffffffff81000000, 0xffffffff82000000)
	r.Modules[kernel].BuildID = []byte{0x12}
	gpu := r.module("grade.co", 0x100000, 0x101000)

	sym := func(name, linkage string, line, start int) trace.Symbol {
		return trace.Symbol{Function: name, LinkageName: linkage, File: "/src/work.cc", Line: line,
			StartFile: "/src/work.cc", StartLine: start}
	}
	physical := func(s trace.Symbol, start uint64) trace.Symbol { s.Start, s.HasStart = start, true; return s }
	inlined := func(s trace.Symbol) trace.Symbol { s.Inlined = true; return s }

	start := r.frame(trace.ProfileFrame{PC: 0x400105, Module: work, ModuleOffset: 0x105,
		Symbols: []trace.Symbol{physical(trace.Symbol{Function: "_start"}, 0x100)}})
	main := r.frame(trace.ProfileFrame{PC: 0x400210, Module: work, ModuleOffset: 0x210,
		Symbols: []trace.Symbol{physical(sym("main", "", 40, 38), 0x200)}})
	spin := r.frame(trace.ProfileFrame{PC: 0x400310, Module: work, ModuleOffset: 0x310,
		Symbols: []trace.Symbol{
			inlined(sym("std::min<int>(int, int)", "_ZSt3minIiEii", 7, 5)),
			physical(sym("spin(int)", "_Z4spini", 22, 20), 0x300),
		}})
	deep := r.frame(trace.ProfileFrame{PC: 0x400420, Module: work, ModuleOffset: 0x420,
		Symbols: []trace.Symbol{physical(sym("deep(int; odd\nname)", "_Z4deepi", 13, 11), 0x400)}})
	leaf := r.frame(trace.ProfileFrame{PC: 0x400430, Exact: true, FoundBy: trace.ByContext, Module: work, ModuleOffset: 0x430,
		Symbols: []trace.Symbol{physical(sym("deep(int; odd\nname)", "_Z4deepi", 14, 11), 0x400)}})
	unnamed := r.frame(trace.ProfileFrame{PC: 0x7f1234, Exact: true, FoundBy: trace.ByContext, Module: libc, ModuleOffset: 0x1234})
	scanned := r.frame(trace.ProfileFrame{PC: 0x400210, FoundBy: trace.ByScan, Module: work, ModuleOffset: 0x210,
		Symbols: r.Frames[main].Symbols})
	nowhere := r.frame(trace.ProfileFrame{PC: 0x66, Exact: true, FoundBy: trace.ByContext, Module: -1})
	fault := r.frame(trace.ProfileFrame{PC: 0xffffffff81000010, Exact: true, FoundBy: "callchain", Kernel: true, Module: kernel,
		ModuleOffset: 0xffffffff81000010, Symbols: []trace.Symbol{{Function: "clear_page"}}})
	entry := r.frame(trace.ProfileFrame{PC: 0xffffffff81000100, FoundBy: "callchain", Kernel: true, Module: kernel,
		ModuleOffset: 0xffffffff81000100})
	grade := r.frame(trace.ProfileFrame{PC: 0x100040, Exact: true, FoundBy: trace.ByContext, Device: true, Module: gpu, ModuleOffset: 0x40,
		Symbols: []trace.Symbol{{Function: "grade"}}})

	first, second := r.thread(10, 10, "work"), r.thread(10, 11, "worker <1>")
	other := r.thread(20, 20, "odd;\x1bname")
	nobody := r.thread(-1, -1, "")
	outermost := r.stop(trace.StopOutermost, "the return address is undefined")
	cut := r.stop(trace.StopEndOfStack, "the recorded stack ends at 0x7ff0")
	lostModule := r.stop(trace.StopNoModule, "0x66 is in no code object")
	launched := r.stop(trace.StopOutermost, "")

	clock := func(thread uint32, stop uint16, frames ...uint32) {
		r.sample(trace.ProfileSample{Event: 0, Thread: thread, Stack: r.stack(frames...), Stop: stop, Weight: 1e6})
	}
	clock(first, outermost, start, main, spin, deep, deep, leaf)
	clock(first, outermost, start, main, spin, deep, leaf)
	clock(first, outermost, start, main, spin, deep, leaf)
	clock(first, outermost, start, main, unnamed)
	clock(second, outermost, start, main, spin, deep, leaf)
	clock(second, cut, spin, deep, leaf)
	clock(first, outermost, start, scanned, unnamed)
	clock(other, lostModule, nowhere)
	clock(other, r.stop(trace.StopNoRow, "no registers"))
	r.sample(trace.ProfileSample{Event: 1, Thread: first, Stack: r.stack(start, main, entry, fault), Stop: outermost, Weight: 3})
	r.sample(trace.ProfileSample{Event: 1, Thread: first, Stack: r.stack(start, main, entry, fault), Stop: outermost, Weight: 4})
	r.sample(trace.ProfileSample{Event: 2, Thread: first, Stack: r.stack(start, main, grade), Stop: launched, Weight: 1, ActiveLanes: 48})
	r.sample(trace.ProfileSample{Event: 2, Thread: nobody, Stack: r.stack(grade), Stop: launched, Weight: 1, ActiveLanes: 16})
	r.sample(trace.ProfileSample{Event: -1, Thread: second, Stack: r.stack(start, main), Stop: outermost, Weight: 1})
	r.Problems = []string{"perf.data: cut at 4096 bytes"}
	r.Lost = 2
	return r
}

func TestFoldedStacksAreThoseOfOneEventInTheOrderOfTheirBytes(t *testing.T) {
	p := workday().view(t)
	for event, want := range map[string]string{
		"cpu-clock": `odd:?name 1000000
odd:?name;[unknown] 1000000
work;_start;main;[libc.so.6]+0x1234 2000000
work;_start;main;spin(int);std::min<int>(int, int);deep(int: odd?name);deep(int: odd?name) 2000000
work;_start;main;spin(int);std::min<int>(int, int);deep(int: odd?name);deep(int: odd?name);deep(int: odd?name) 1000000
worker <1>;_start;main;spin(int);std::min<int>(int, int);deep(int: odd?name);deep(int: odd?name) 1000000
worker <1>;spin(int);std::min<int>(int, int);deep(int: odd?name);deep(int: odd?name) 1000000
`,
		"page-faults":                  "work;_start;main;[kernel.kallsyms]+0xffffffff81000100_[k];clear_page_[k] 7\n",
		"gpu-pc-sampling":              "[unknown];grade_[G] 1\nwork;_start;main;grade_[G] 1\n",
		"gpu-pc-sampling:active-lanes": "[unknown];grade_[G] 16\nwork;_start;main;grade_[G] 48\n",
		"unknown":                      "worker <1>;_start;main 1\n",
	} {
		var b strings.Builder
		if err := p.WriteFolded(&b, event); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
	}
	if err := p.WriteFolded(io.Discard, "cycles"); err == nil {
		t.Error("an event that is not there was written")
	}
}

func TestFoldedLinesOfAnyNamesAreSorted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := newRecording(trace.ProfileEvent{Name: "e", Unit: "count"})
	var frames []uint32
	for _, name := range []string{"a", "a 1", "a;", "a-b", "a:b", "b", "a 1;", "ab", "é", "a\xff"} {
		frames = append(frames, r.frame(trace.ProfileFrame{Module: -1, Symbols: []trace.Symbol{{Function: name}}}))
	}
	outermost := r.stop(trace.StopOutermost, "")
	var total uint64
	for range 2000 {
		var stack []uint32
		for range random.IntN(4) {
			stack = append(stack, frames[random.IntN(len(frames))])
		}
		weight := random.Uint64N(20)
		total += weight
		r.sample(trace.ProfileSample{Thread: r.thread(1, 1, []string{"a", "a 1"}[random.IntN(2)]), Stack: r.stack(stack...), Stop: outermost, Weight: weight})
	}
	var b strings.Builder
	if err := r.view(t).WriteFolded(&b, "e"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if !sort.StringsAreSorted(lines) {
		t.Errorf("lines are not sorted:\n%s", b.String())
	}
	seen := map[string]bool{}
	for _, line := range lines {
		at := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseUint(line[at+1:], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total -= n
		if seen[line[:at]] {
			t.Errorf("%s is written twice", line[:at])
		}
		seen[line[:at]] = true
	}
	if total != 0 {
		t.Errorf("%d of the weights are not written", total)
	}
}

func TestFoldedStacksMayBeAsDeepAsTheyWere(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "e", Unit: "count"})
	f := r.frame(trace.ProfileFrame{Module: -1, Symbols: []trace.Symbol{{Function: "f"}}})
	stack := make([]uint32, 100_000)
	for i := range stack {
		stack[i] = f
	}
	r.sample(trace.ProfileSample{Thread: r.thread(1, 1, "t"), Stack: r.stack(stack...), Stop: r.stop(trace.StopFrameLimit, ""), Weight: 1})
	p := r.view(t)
	for name, write := range formats(p) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// formats are the ways to write a profile.
func formats(p *Profile) map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		"text": func(w io.Writer) error { return p.WriteText(w, TextOptions{}) },
		"json": p.WriteJSON, "pprof": p.WritePprof, "otlp": p.WriteOTLP, "speedscope": p.WriteSpeedscope, "firefox": p.WriteFirefox,
		"summary": func(w io.Writer) error { return p.WriteSummary(w, SummaryOptions{}) },
		"folded": func(w io.Writer) error {
			if len(p.Events()) == 0 {
				return nil
			}
			return p.WriteFolded(w, p.Events()[0])
		},
	}
}

func TestPprofIsReadBackAsItWas(t *testing.T) {
	var b bytes.Buffer
	if err := workday().view(t).WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := `PeriodType: cpu-clock nanoseconds
Period: 1000000
Duration: 13ms
Samples:
cpu-clock/nanoseconds[dflt] page-faults/count gpu-pc-sampling/count gpu-pc-sampling:active-lanes/count unknown/count
    1000000          0          0          0          0: 5 4 4 3 2 1 
                comm:[work]
                pid:[10] tid:[10]
    2000000          0          0          0          0: 5 4 3 2 1 
                comm:[work]
                pid:[10] tid:[10]
    2000000          0          0          0          0: 6 2 1 
                comm:[work]
                pid:[10] tid:[10]
    1000000          0          0          0          0: 5 4 3 2 1 
                comm:[worker <1>]
                pid:[10] tid:[11]
    1000000          0          0          0          0: 5 4 3 
                comm:[worker <1>]
                pid:[10] tid:[11]
    1000000          0          0          0          0: 7 
                comm:[odd;?name]
                pid:[20] tid:[20]
    1000000          0          0          0          0: 
                comm:[odd;?name]
                pid:[20] tid:[20]
          0          7          0          0          0: 9 8 2 1 
                comm:[work]
                pid:[10] tid:[10]
          0          0          1         48          0: 10 2 1 
                comm:[work]
                pid:[10] tid:[10]
          0          0          1         16          0: 10 
          0          0          0          0          1: 2 1 
                comm:[worker <1>]
                pid:[10] tid:[11]
Locations
     1: 0x400104 M=1 _start :0:0 s=0
     2: 0x40020f M=1 main /src/work.cc:40:0 s=38
     3: 0x40030f M=1 std::min<int>(int, int) /src/work.cc:7:0 s=5(_ZSt3minIiEii)
             spin(int) /src/work.cc:22:0 s=20(_Z4spini)
     4: 0x40041f M=1 deep(int; odd?name) /src/work.cc:13:0 s=11(_Z4deepi)
     5: 0x400430 M=1 deep(int; odd?name) /src/work.cc:14:0 s=11(_Z4deepi)
     6: 0x7f1234 M=2 
     7: 0x66 
     8: 0xffffffff810000ff M=3 
     9: 0xffffffff81000010 M=3 clear_page :0:0 s=0
    10: 0x100040 M=4 grade :0:0 s=0
Mappings
1: 0x400000/0x402000/0x0 /opt/work abcd [FN][FL][LN][IN]
2: 0x7f0000/0x7f8000/0x0 /usr/lib/libc.so.6  
3: 0xffffffff81000000/0xffffffff82000000/0x0 [kernel.kallsyms] 12 [FN]
4: 0x100000/0x101000/0x0 grade.co  [FN]
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJSONHasAnEntryForEverySample(t *testing.T) {
	var b bytes.Buffer
	r := workday()
	if err := r.view(t).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	want := `{"target":{"path":"perf.data","lost":2,"problems":["perf.data: cut at 4096 bytes"],"hints":[{"module":"/usr/lib/libc.so.6","needs":"names","text":"libc.so.6 lacks names here (no build ID is known): give the file before it was stripped with --module libc.so.6=FILE"}]},
"events":[
{"name":"cpu-clock","unit":"nanoseconds","lanes":false},
{"name":"page-faults","unit":"count","lanes":false},
{"name":"gpu-pc-sampling","unit":"count","lanes":true,"device":true},
{"name":"unknown","unit":"count","lanes":false}],
"samples":[
{"event":"cpu-clock","comm":"work","pid":10,"tid":10,"time":1000000000,"weight":1000000,"frames":[0,1,1,2,3,4,5],"stopped":"outermost"},
{"event":"cpu-clock","comm":"work","pid":10,"tid":10,"time":1001000000,"weight":1000000,"frames":[0,1,2,3,4,5],"stopped":"outermost"},
{"event":"cpu-clock","comm":"work","pid":10,"tid":10,"time":1002000000,"weight":1000000,"frames":[0,1,2,3,4,5],"stopped":"outermost"},
{"event":"cpu-clock","comm":"work","pid":10,"tid":10,"time":1003000000,"weight":1000000,"frames":[6,4,5],"stopped":"outermost"},
{"event":"cpu-clock","comm":"worker <1>","pid":10,"tid":11,"time":1004000000,"weight":1000000,"frames":[0,1,2,3,4,5],"stopped":"outermost"},
{"event":"cpu-clock","comm":"worker <1>","pid":10,"tid":11,"time":1005000000,"weight":1000000,"frames":[0,1,2,3],"stopped":"end-of-stack","detail":"the recorded stack ends at 0x7ff0"},
{"event":"cpu-clock","comm":"work","pid":10,"tid":10,"time":1006000000,"weight":1000000,"frames":[6,7,5],"stopped":"outermost"},
{"event":"cpu-clock","comm":"odd;\u001bname","pid":20,"tid":20,"time":1007000000,"weight":1000000,"frames":[8],"stopped":"no-module","detail":"0x66 is in no code object"},
{"event":"cpu-clock","comm":"odd;\u001bname","pid":20,"tid":20,"time":1008000000,"weight":1000000,"frames":[],"stopped":"no-row","detail":"no registers"},
{"event":"page-faults","comm":"work","pid":10,"tid":10,"time":1009000000,"weight":3,"frames":[9,10,4,5],"stopped":"outermost"},
{"event":"page-faults","comm":"work","pid":10,"tid":10,"time":1010000000,"weight":4,"frames":[9,10,4,5],"stopped":"outermost"},
{"event":"gpu-pc-sampling","comm":"work","pid":10,"tid":10,"time":1011000000,"weight":1,"active_lanes":48,"frames":[11,4,5],"stopped":"outermost"},
{"event":"gpu-pc-sampling","time":1012000000,"weight":1,"active_lanes":16,"frames":[11],"stopped":"outermost"},
{"event":"unknown","comm":"worker <1>","pid":10,"tid":11,"time":1013000000,"weight":1,"frames":[4,5],"stopped":"outermost"}],
"frames":[
{"pc":"0x400430","found_by":"context","module":0,"module_offset":"0x430","function":"deep(int; odd\nname)","linkage_name":"_Z4deepi","function_offset":"0x30","file":"/src/work.cc","line":14,"inlined":false,"kernel":false},
{"pc":"0x400420","found_by":"cfi","module":0,"module_offset":"0x420","function":"deep(int; odd\nname)","linkage_name":"_Z4deepi","function_offset":"0x20","file":"/src/work.cc","line":13,"inlined":false,"kernel":false},
{"pc":"0x400310","found_by":"cfi","module":0,"module_offset":"0x310","function":"std::min<int>(int, int)","linkage_name":"_ZSt3minIiEii","file":"/src/work.cc","line":7,"inlined":true,"kernel":false},
{"pc":"0x400310","found_by":"cfi","module":0,"module_offset":"0x310","function":"spin(int)","linkage_name":"_Z4spini","function_offset":"0x10","file":"/src/work.cc","line":22,"inlined":false,"kernel":false},
{"pc":"0x400210","found_by":"cfi","module":0,"module_offset":"0x210","function":"main","function_offset":"0x10","file":"/src/work.cc","line":40,"inlined":false,"kernel":false},
{"pc":"0x400105","found_by":"cfi","module":0,"module_offset":"0x105","function":"_start","function_offset":"0x5","inlined":false,"kernel":false},
{"pc":"0x7f1234","found_by":"context","module":1,"module_offset":"0x1234","inlined":false,"kernel":false},
{"pc":"0x400210","found_by":"scan","module":0,"module_offset":"0x210","function":"main","function_offset":"0x10","file":"/src/work.cc","line":40,"inlined":false,"kernel":false},
{"pc":"0x66","found_by":"context","inlined":false,"kernel":false},
{"pc":"0xffffffff81000010","found_by":"callchain","module":2,"module_offset":"0xffffffff81000010","function":"clear_page","inlined":false,"kernel":true},
{"pc":"0xffffffff81000100","found_by":"callchain","module":2,"module_offset":"0xffffffff81000100","inlined":false,"kernel":true},
{"pc":"0x100040","found_by":"context","module":3,"module_offset":"0x40","function":"grade","inlined":false,"kernel":false,"device":true}],
"kernels":[],
"modules":[
{"id":0,"path":"/opt/work","build_id":"abcd","arch":"x86_64","segments":[],"kernel":false,"start":"0x400000","end":"0x402000","offset":"0x0"},
{"id":1,"path":"/usr/lib/libc.so.6","arch":"x86_64","problem":"not found","segments":[],"kernel":false,"start":"0x7f0000","end":"0x7f8000","offset":"0x0"},
{"id":2,"path":"[kernel.kallsyms]","build_id":"12","arch":"x86_64","segments":[],"kernel":true,"start":"0xffffffff81000000","end":"0xffffffff82000000","offset":"0x0"},
{"id":3,"path":"grade.co","arch":"x86_64","segments":[],"kernel":false,"start":"0x100000","end":"0x101000","offset":"0x0"}]}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextHasTheFunctionsAndTheTreeOfEveryEvent(t *testing.T) {
	var b bytes.Buffer
	if err := workday().view(t).WriteText(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `perf.data: cpu-clock, 9 samples, 9.00 ms

   flat    flat%      cum     cum%  function
5.00 ms    55.6%  5.00 ms    55.6%  deep /src/work.cc:11 in work
2.00 ms    22.2%  2.00 ms    22.2%  ?? in libc.so.6
1.00 ms    11.1%  1.00 ms    11.1%  ??
      0     0.0%  6.00 ms    66.7%  _start in work
      0     0.0%  6.00 ms    66.7%  main /src/work.cc:38 in work (a guess in 16.7%)
      0     0.0%  5.00 ms    55.6%  spin /src/work.cc:20 in work
      0     0.0%  5.00 ms    55.6%  std::min<int> /src/work.cc:5 in work

 total    self  calls
 55.6%          ├ "work"
 55.6%          │ _start in work
 55.6%          │ main work.cc:38 (a guess in 20.0%)
 33.3%          │ ├ spin work.cc:20
 33.3%          │ │ std::min<int> work.cc:5
 33.3%   33.3%  │ │ deep work.cc:11 (recursive)
 22.2%   22.2%  │ └ ?? in libc.so.6
 22.2%          ├ "worker <1>"
 11.1%          │ ├ _start in work
 11.1%          │ │ main work.cc:38
 11.1%          │ │ spin work.cc:20
 11.1%          │ │ std::min<int> work.cc:5
 11.1%   11.1%  │ │ deep work.cc:11 (recursive)
 11.1%          │ └ spin work.cc:20
 11.1%          │   std::min<int> work.cc:5
 11.1%   11.1%  │   deep work.cc:11 (recursive)
 22.2%   11.1%  └ "odd;\x1bname"
 11.1%   11.1%    ??

perf.data: page-faults, 2 samples, 7

flat    flat%   cum     cum%  function
   7   100.0%     7   100.0%  clear_page in [kernel.kallsyms]
   0     0.0%     7   100.0%  ?? in [kernel.kallsyms]
   0     0.0%     7   100.0%  _start in work
   0     0.0%     7   100.0%  main /src/work.cc:38 in work

 total    self  calls
100.0%          "work"
100.0%          _start in work
100.0%          main work.cc:38
100.0%          ?? in [kernel.kallsyms]
100.0%  100.0%  clear_page in [kernel.kallsyms]

perf.data: gpu-pc-sampling, 2 samples, 2

flat    flat%   cum     cum%  lanes      function
   2   100.0%     2   100.0%   32.0  gpu grade in grade.co
   0     0.0%     1    50.0%      -      _start in work
   0     0.0%     1    50.0%      -      main /src/work.cc:38 in work

 total    self      calls
 50.0%              ├ "work"
 50.0%              │ _start in work
 50.0%              │ main work.cc:38
 50.0%   50.0%  gpu │ grade in grade.co
 50.0%              └ [unknown]
 50.0%   50.0%  gpu   grade in grade.co

perf.data: unknown, 1 sample, 1

flat    flat%   cum     cum%  function
   1   100.0%     1   100.0%  main /src/work.cc:38 in work
   0     0.0%     1   100.0%  _start in work

 total    self  calls
100.0%          "worker <1>"
100.0%          _start in work
100.0%  100.0%  main work.cc:38
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", b.String())
	}
	b.Reset()
	if err := workday().view(t).WriteText(&b, TextOptions{FullNames: true}); err != nil {
		t.Fatal(err)
	}
	if line := " 33.3%          │ │ std::min<int>(int, int) work.cc:5\n"; !strings.Contains(b.String(), line) {
		t.Errorf("%q is not in:\n%s", line, b.String())
	}
}

// Functions whose short names are equal have their full names, which tell them apart.
func TestFunctionsOfOneShortNameAreToldApart(t *testing.T) {
	p := &profileText{naming: names{most: wideName}, lines: []profileFunction{{name: "f<Item>(int)"}, {name: "f<Order>(int)"}, {name: "g<Order>(int)"}}}
	p.findAlike()
	for i, want := range []string{"f<Item>(int)", "f<Order>(int)", "g<...>"} {
		if got := p.name(&p.lines[i]); got != want {
			t.Errorf("%q is %q, expected %q", p.lines[i].name, got, want)
		}
	}
}

func TestSummaryFitsOnAScreen(t *testing.T) {
	r := workday()
	var b bytes.Buffer
	if err := r.view(t).WriteSummary(&b, SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `perf.data: 14 samples of 4 threads in 3 processes, 2 more lost
events: 9 of cpu-clock (9.00 ms), 2 of page-faults (7), 2 of gpu-pc-sampling, 1 of unknown
frames: 45 and 5 inlined calls; found by cfi 30, context 10, callchain 4, scan 1 (a guess)
guesses: 1 of 14 stacks (7.1%) have a frame that is a guess: frames may be missing below it; 1 (7.1%) have a gap, which a scan of the stack skipped
stacks end:
        11   78.6%  outermost
         1    7.1%  end-of-stack   the recorded stack ends at 0x7ff0
         1    7.1%  no-module      0x66 is in no code object
         1    7.1%  no-row         no registers
frames without a function:
         2    4.4%  in libc.so.6 (not found)
         2    4.4%  in [kernel.kallsyms]
         1    2.2%  in no module
problem: perf.data: cut at 4096 bytes
hint: libc.so.6 lacks names here (no build ID is known): give the file before it was stripped with --module libc.so.6=FILE
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", b.String())
	}
	for i := range 100 {
		r.Problems = append(r.Problems, fmt.Sprint("problem ", i))
		m := r.module(fmt.Sprint("/lib", i), 0, 0)
		r.Events = append(r.Events, trace.ProfileEvent{Name: "e", Unit: "count"})
		r.sample(trace.ProfileSample{
			Event: int16(i), Stack: r.stack(r.frame(trace.ProfileFrame{Module: m})), Weight: 1,
			Stop: r.stop(r.Stops[i%len(r.Stops)].Reason, fmt.Sprint(i)),
		})
	}
	b.Reset()
	if err := r.view(t).WriteSummary(&b, SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > 24 {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
}

func TestOnlyTheEventsAskedForAreWritten(t *testing.T) {
	r := workday()
	p := r.view(t, "page-faults")
	if diff := cmp.Diff([]string{"page-faults"}, p.Events()); diff != "" {
		t.Error(diff)
	}
	for name, write := range formats(p) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if name == "pprof" {
			p, err := profile.Parse(&b)
			if err != nil {
				t.Fatal(err)
			}
			text = p.String()
		}
		if strings.Contains(text, "cpu-clock") || strings.Contains(text, "grade") {
			t.Errorf("%s has other events:\n%s", name, text)
		}
	}
	if _, err := NewProfile(&r.Profile, "page-faults", "cycles"); err == nil || !strings.Contains(err.Error(), "expected one of: cpu-clock, page-faults, gpu-pc-sampling, unknown") {
		t.Errorf("an event that is not there: %v", err)
	}
}

func TestEventsOfOneNameAreToldApart(t *testing.T) {
	r := newRecording(make([]trace.ProfileEvent, 0)...)
	thread, stop := r.thread(1, 1, "t"), r.stop(trace.StopOutermost, "")
	for i, name := range []string{"cycles", "cycles", "", "unknown"} {
		r.Events = append(r.Events, trace.ProfileEvent{Name: name, Unit: "count"})
		r.sample(trace.ProfileSample{Event: int16(i), Thread: thread, Stop: stop, Weight: 1})
	}
	want := []string{"cycles", "cycles#2", "#1", "unknown#1"}
	if diff := cmp.Diff(want, r.view(t).Events()); diff != "" {
		t.Error(diff)
	}
}

func TestEqualProfilesGiveEqualBytes(t *testing.T) {
	first := formats(workday().view(t))
	for name, write := range formats(workday().view(t)) {
		var a, b bytes.Buffer
		if err := errors.Join(write(&a), first[name](&b)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestARecordingWithoutSamplesIsWritten(t *testing.T) {
	for _, events := range [][]trace.ProfileEvent{nil, {{Name: "cycles", Unit: "count"}}} {
		p := newRecording(events...).view(t)
		for name, write := range formats(p) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if name != "folded" && b.Len() == 0 {
				t.Errorf("%s writes nothing", name)
			}
		}
	}
}

func TestWeightsDoNotWrapAround(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "e", Unit: "count"})
	thread, stop := r.thread(1, 1, "t"), r.stop(trace.StopOutermost, "")
	for range 3 {
		r.sample(trace.ProfileSample{Thread: thread, Stop: stop, Weight: math.MaxUint64 - 1})
	}
	p := r.view(t)
	if got := p.pprof().Sample[0].Value[0]; got != math.MaxInt64 {
		t.Errorf("pprof: %d", got)
	}
	var b strings.Builder
	if err := p.WriteFolded(&b, "e"); err != nil || b.String() != "t 18446744073709551615\n" {
		t.Errorf("folded: %q, %v", b.String(), err)
	}
}

func TestSpeedscopeHasAProfileForEveryThreadOfEveryEvent(t *testing.T) {
	var b bytes.Buffer
	if err := workday().view(t).WriteSpeedscope(&b); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Schema string `json:"$schema"`
		Shared struct {
			Frames []struct {
				Name, File string
				Line       int
			}
		}
		Profiles []struct {
			Type, Name, Unit     string
			StartValue, EndValue uint64
			Samples              [][]int
			Weights              []uint64
		}
	}
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range file.Profiles {
		got = append(got, fmt.Sprintf("%s %s, %d %s", p.Type, p.Name, p.EndValue, p.Unit))
		for i, s := range p.Samples {
			var names []string
			for _, f := range s {
				names = append(names, file.Shared.Frames[f].Name)
			}
			got = append(got, fmt.Sprintf("  %d %s", p.Weights[i], strings.Join(names, ";")))
		}
	}
	want := strings.Split(`sampled cpu-clock, work 10, 5000000 nanoseconds
  1000000 _start;main;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name);deep(int; odd?name)
  1000000 _start;main;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name)
  1000000 _start;main;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name)
  1000000 _start;main;[libc.so.6]+0x1234
  1000000 _start;main;[libc.so.6]+0x1234
sampled cpu-clock, worker <1> 11, 2000000 nanoseconds
  1000000 _start;main;spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name)
  1000000 spin(int);std::min<int>(int, int);deep(int; odd?name);deep(int; odd?name)
sampled cpu-clock, odd;?name 20, 2000000 nanoseconds
  1000000 [unknown]
  1000000 
sampled page-faults, work 10, 7 none
  3 _start;main;[kernel.kallsyms]+0xffffffff81000100_[k];clear_page_[k]
  4 _start;main;[kernel.kallsyms]+0xffffffff81000100_[k];clear_page_[k]
sampled gpu-pc-sampling, work 10, 1 none
  1 _start;main;grade_[G]
sampled gpu-pc-sampling, [unknown], 1 none
  1 grade_[G]
sampled gpu-pc-sampling:active-lanes, work 10, 48 none
  48 _start;main;grade_[G]
sampled gpu-pc-sampling:active-lanes, [unknown], 16 none
  16 grade_[G]
sampled unknown, worker <1> 11, 1 none
  1 _start;main`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", strings.Join(got, "\n"))
	}
}

func TestPprofNamesHaveNoMarksOfCopies(t *testing.T) {
	for name, want := range map[string]string{
		"f(int) (.constprop.0)":             "f(int)",
		"f(int) (.isra.0) (.cold)":          "f(int)",
		"drop<J> (.llvm.7072081746995663)":  "drop<J>",
		"f(int)":                            "f(int)",
		" (.cold)":                          " (.cold)",
		"f() const::{lambda(...)#1} (.x())": "f() const::{lambda(...)#1} (.x())",
	} {
		if got := withoutClone(name); got != want {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
	}
}

// TestFormsOfRandomProfilesAgree adds up what each form says of a profile.
func TestFormsOfRandomProfilesAgree(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := randomRecording(random)
		p := r.view(t)
		out := p.pprof()
		if err := out.CheckValid(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(uncompressedPprof(t, p), libraryPprof(t, out)) {
			t.Errorf("seed %d: pprof is written in other bytes than by the library", seed)
		}
		seen := map[string]bool{}
		for _, s := range out.Sample {
			key := fmt.Sprint(s.NumLabel, s.Label)
			for _, l := range s.Location {
				key += fmt.Sprint(" ", l.ID)
			}
			if seen[key] {
				t.Errorf("seed %d: pprof has two samples %s", seed, key)
			}
			seen[key] = true
		}
		for i, v := range p.values {
			var want, asPprof, asFolded uint64
			for j := range r.Samples {
				want += v.amount(&r.Samples[j])
			}
			for _, s := range out.Sample {
				asPprof += uint64(s.Value[i])
			}
			var b strings.Builder
			if err := p.WriteFolded(&b, v.name); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				n, err := strconv.ParseUint(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				asFolded += n
			}
			if asPprof != want || asFolded != want {
				t.Errorf("seed %d: %s: pprof %d, folded %d, expected %d", seed, v.name, asPprof, asFolded, want)
			}
		}
		for name, write := range formats(p) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Errorf("seed %d: %s: %v", seed, name, err)
			}
			if (name == "json" || name == "speedscope" || name == "firefox") && !json.Valid(b.Bytes()) {
				t.Errorf("seed %d: %s is not JSON", seed, name)
			}
		}
	}
}

// uncompressedPprof is the output of WritePprof, before it is compressed.
func uncompressedPprof(t *testing.T, p *Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// libraryPprof is the output of the library of pprof for the same profile.
func libraryPprof(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// randomRecording has few names, so that they come again in every way.
func randomRecording(random *rand.Rand) *recording {
	names := []string{"f", "g", "f (.cold)", "", "a;b\n", "\xff", "<T as U>::f", "f(", "ü"}
	name := func() string { return names[random.IntN(len(names))] }
	r := newRecording()
	for range 1 + random.IntN(3) {
		r.Events = append(r.Events, trace.ProfileEvent{
			Name: name(), Unit: []string{"nanoseconds", "count"}[random.IntN(2)], Lanes: random.IntN(3) == 0,
			States: random.IntN(2) == 0, Device: random.IntN(3) == 0,
		})
	}
	for range 1 + random.IntN(30) {
		r.States = append(r.States, trace.WaveState{Name: name(), Stalled: random.IntN(2) == 0})
	}
	for range random.IntN(3) {
		r.module(name(), random.Uint64(), random.Uint64())
	}
	for range random.IntN(3) {
		r.Kernels = append(r.Kernels, trace.ProfileKernel{
			Name: name(), Module: int32(random.IntN(len(r.Modules)+1)) - 1, Dispatches: random.Uint64N(2), Time: random.Uint64N(9),
			HasTime: random.IntN(2) == 0, Lanes: 64 * random.Uint32N(2),
		})
	}
	for range 1 + random.IntN(8) {
		f := trace.ProfileFrame{
			Device: random.IntN(3) == 0, Dispatched: int32(random.IntN(len(r.Kernels)+1)) - 1, NamedBy: name(), Instruction: name(),
			PC: random.Uint64N(3), Exact: random.IntN(2) == 0, Kernel: random.IntN(3) == 0,
			Module: int32(random.IntN(len(r.Modules)+1)) - 1, ModuleOffset: random.Uint64N(3),
		}
		for range random.IntN(3) {
			f.Symbols = append(f.Symbols, trace.Symbol{
				Function: name(), LinkageName: name(), File: name(), Line: random.IntN(3), StartFile: name(), StartLine: random.IntN(3),
				Start: random.Uint64N(3), HasStart: random.IntN(2) == 0, Inlined: true,
			})
		}
		r.frame(f)
	}
	for range random.IntN(30) {
		stack := make([]uint32, random.IntN(6))
		for i := range stack {
			stack[i] = uint32(random.IntN(len(r.Frames)))
		}
		r.sample(trace.ProfileSample{
			Event: int16(random.IntN(len(r.Events)+1)) - 1, Stack: r.stack(stack...), Weight: random.Uint64N(100),
			Thread: r.thread(random.IntN(3)-1, random.IntN(3)-1, name()), ActiveLanes: uint16(random.IntN(65)),
			State: uint8(random.IntN(len(r.States))), Launch: trace.LaunchEvidence(random.IntN(4)),
			Stop: r.stop([]trace.StopReason{trace.StopOutermost, trace.StopNoRow, ""}[random.IntN(3)], name()),
		})
	}
	return r
}

func TestTheExecutableIsTheFirstMappingOfPprof(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "e", Unit: "count"})
	thread, stop := r.thread(1, 1, "t"), r.stop(trace.StopOutermost, "")
	for i, path := range []string{"/lib/ld-linux-x86-64.so.2", "[vdso]", "/bin/sh", "/bin/main", "/lib/libc.so"} {
		m := r.module(path, 0, 0)
		f := r.frame(trace.ProfileFrame{PC: uint64(i), Module: m})
		for range []int{9, 9, 1, 2, 9}[i] {
			r.sample(trace.ProfileSample{Thread: thread, Stop: stop, Stack: r.stack(f, f), Weight: 1})
			f = r.frame(trace.ProfileFrame{PC: uint64(100*len(r.Frames) + i), Module: m})
		}
	}
	p := r.view(t).pprof()
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, m := range p.Mapping {
		got = append(got, m.File)
		if m.ID != uint64(i)+1 {
			t.Errorf("mapping %d has ID %d", i, m.ID)
		}
	}
	want := []string{"/bin/main", "/lib/ld-linux-x86-64.so.2", "[vdso]", "/bin/sh", "/lib/libc.so"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPprofTimesAreNotMixedOfTwoClocks(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "gpu", Unit: "count", Lanes: true}, trace.ProfileEvent{Name: "cpu", Unit: "count"})
	thread, stop := r.thread(1, 1, "t"), r.stop(trace.StopOutermost, "")
	for event, times := range [][]uint64{{7e18, 7e18 + 30}, {5, 25}} {
		for _, at := range times {
			r.sample(trace.ProfileSample{Event: int16(event), Thread: thread, Stop: stop, Weight: 1})
			r.Samples[len(r.Samples)-1].Time = at
		}
	}
	for event, want := range map[string]int64{"gpu": 30, "cpu": 20} {
		if got := r.view(t, event).pprof().DurationNanos; got != want {
			t.Errorf("%s: %d ns, expected %d", event, got, want)
		}
	}
	if got := r.view(t).pprof().DurationNanos; got != 20 {
		t.Errorf("both: %d ns, expected those of the CPU's clock", got)
	}
}
