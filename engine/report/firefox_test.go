// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// numberColumn is a column of a table: numbers, null as NaN.
type numberColumn []float64

func (c *numberColumn) UnmarshalJSON(b []byte) error {
	var list []*float64
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*c = make(numberColumn, len(list))
	for i, n := range list {
		(*c)[i] = math.NaN()
		if n != nil {
			(*c)[i] = *n
		}
	}
	return nil
}

// firefoxFile is the part of a file that tests read.
type firefoxFile struct {
	Meta   firefoxMeta
	Libs   []firefoxLib
	Shared struct {
		StackTable    struct{ Frame, PrefixOffset numberColumn }
		FrameTable    struct{ Address, Lib, InlineDepth, Category, Subcategory, Func, NativeSymbol, Line, Column numberColumn }
		FuncTable     struct{ Name, Resource, Source, LineNumber numberColumn }
		ResourceTable struct{ Name, Type numberColumn }
		NativeSymbols struct{ LibIndex, Address, Name numberColumn }
		Sources       struct{ Filename numberColumn }
		StringArray   []string
	}
	Threads []struct {
		Name, ProcessName, PID string
		TID                    any
		IsMainThread           bool
		Markers                struct{ Name, StartTime, EndTime, Phase numberColumn }
		Samples                struct {
			Stack, TimeDeltas, Weight, ThreadCPUDelta numberColumn
			WeightType                                string
		}
	}
}

// firefoxOf writes and reads a profile.
func firefoxOf(t *testing.T, p *Profile) *firefoxFile {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteFirefox(&b); err != nil {
		t.Fatal(err)
	}
	f := &firefoxFile{}
	if err := json.Unmarshal(b.Bytes(), f); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	for _, wrong := range checkFirefox(b.Bytes()) {
		t.Error(wrong)
	}
	return f
}

// firefoxColumns are the columns of each table, and the table that their numbers are
// rows of: "" for numbers that are none.
var firefoxColumns = map[string]map[string]string{
	"stackTable": {"frame": "frameTable", "prefixOffset": ""},
	"frameTable": {
		"address": "", "lib": "libs", "inlineDepth": "", "category": "categories", "subcategory": "", "func": "funcTable",
		"nativeSymbol": "nativeSymbols", "innerWindowID": "", "line": "", "column": "", "originalLocation": "",
	},
	"funcTable": {
		"name": "stringArray", "isJS": "", "relevantForJS": "", "resource": "resourceTable", "source": "sources",
		"lineNumber": "", "columnNumber": "", "originalLocation": "",
	},
	"resourceTable":       {"name": "stringArray", "host": "", "type": ""},
	"nativeSymbols":       {"libIndex": "libs", "address": "", "name": "stringArray", "functionSize": ""},
	"sources":             {"id": "", "filename": "stringArray", "startLine": "", "startColumn": "", "sourceMapURL": "", "content": ""},
	"sourceLocationTable": {"source": "", "line": "", "column": ""},
	"samples":             {"stack": "stackTable", "timeDeltas": "", "weight": "", "threadCPUDelta": ""},
}

// checkFirefox lists the differences of a file from the format: a column that is
// missing, too long or not known, and a number that is of no row.
func checkFirefox(file []byte) (wrong []string) {
	var f struct {
		Meta struct {
			Categories []struct{ Subcategories []string }
		}
		Libs    []any
		Shared  map[string]json.RawMessage
		Threads []struct{ Samples map[string]any }
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return []string{err.Error()}
	}
	rows := map[string]int{"libs": len(f.Libs), "categories": len(f.Meta.Categories)}
	tables := map[string]map[string]any{}
	for name, raw := range f.Shared {
		if name == "stringArray" {
			var list []string
			if err := json.Unmarshal(raw, &list); err != nil {
				wrong = append(wrong, err.Error())
			}
			rows[name] = len(list)
			continue
		}
		var table map[string]any
		if err := json.Unmarshal(raw, &table); err != nil {
			wrong = append(wrong, err.Error())
		}
		tables[name] = table
		rows[name] = int(table["length"].(float64))
	}
	check := func(name string, table map[string]any) {
		length := int(table["length"].(float64))
		for column, of := range firefoxColumns[name] {
			list, ok := table[column].([]any)
			if !ok && column == "threadCPUDelta" {
				continue
			}
			if len(list) != length || !ok {
				wrong = append(wrong, fmt.Sprintf("%s.%s has %d rows of %d", name, column, len(list), length))
			}
			for i, v := range list {
				n, isNumber := v.(float64)
				if of != "" && isNumber && (n < -1 || n >= float64(rows[of])) {
					wrong = append(wrong, fmt.Sprintf("%s.%s[%d] is %v, and %s has %d rows", name, column, i, n, of, rows[of]))
				}
				if column == "prefixOffset" && (n < 0 || n > float64(i)) {
					wrong = append(wrong, fmt.Sprintf("%s.%s[%d] is %v", name, column, i, n))
				}
			}
		}
		for column := range table {
			if _, ok := firefoxColumns[name][column]; !ok && column != "length" && column != "weightType" {
				wrong = append(wrong, fmt.Sprintf("%s has a column %s", name, column))
			}
		}
	}
	for name, table := range tables {
		check(name, table)
	}
	for _, t := range f.Threads {
		check("samples", t.Samples)
	}
	for i, c := range tables["frameTable"]["category"].([]any) {
		n := tables["frameTable"]["subcategory"].([]any)[i].(float64)
		if most := len(f.Meta.Categories[int(c.(float64))].Subcategories); int(n) >= most {
			wrong = append(wrong, fmt.Sprintf("frame %d has subcategory %v of %d", i, n, most))
		}
	}
	return wrong
}

// stack is the names of a stack, outermost first.
func (f *firefoxFile) stack(row float64) []string {
	var names []string
	for i := int(row); ; {
		frame := int(f.Shared.StackTable.Frame[i])
		names = append(names, f.Shared.StringArray[int(f.Shared.FuncTable.Name[int(f.Shared.FrameTable.Func[frame])])])
		offset := int(f.Shared.StackTable.PrefixOffset[i])
		if offset == 0 {
			slices.Reverse(names)
			return names
		}
		i -= offset
	}
}

// TestFirefoxHasTheStacksOfSpeedscope compares the two forms thread by thread, sample
// by sample, with their weights.
func TestFirefoxHasTheStacksOfSpeedscope(t *testing.T) {
	profiles := []*recording{workday()}
	for seed := range uint64(100) {
		profiles = append(profiles, randomRecording(rand.New(rand.NewPCG(seed, 1))))
	}
	unmarked := strings.NewReplacer(kernelMark, "", deviceMark, "")
	for n, r := range profiles {
		p := r.view(t)
		f := firefoxOf(t, p)
		var b bytes.Buffer
		if err := p.WriteSpeedscope(&b); err != nil {
			t.Fatal(err)
		}
		var s struct {
			Shared   struct{ Frames []struct{ Name string } }
			Profiles []struct {
				Unit    string
				Samples [][]int
				Weights []float64
			}
		}
		if err := json.Unmarshal(b.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		// What waves did is no value there.
		for i, of := range slices.Backward(p.samplesOfThreads(valueOfState)) {
			if p.values[of.value].kind == valueOfState {
				s.Profiles = slices.Delete(s.Profiles, i, i+1)
			}
		}
		if len(s.Profiles) != len(f.Threads) && len(s.Profiles) > 0 {
			t.Fatalf("profile %d: %d threads, expected %d", n, len(f.Threads), len(s.Profiles))
		}
		for i := range s.Profiles {
			want, got := &s.Profiles[i], &f.Threads[i].Samples
			scale := 1.0
			if want.Unit == "nanoseconds" {
				scale = 1e6
			}
			if (got.WeightType == "tracing-ms") != (scale > 1) || len(got.Stack) != len(want.Samples) {
				t.Fatalf("profile %d, thread %d: %d %s", n, i, len(got.Stack), got.WeightType)
			}
			for j, frames := range want.Samples {
				names := []string{}
				for _, k := range frames {
					names = append(names, unmarked.Replace(s.Shared.Frames[k].Name))
				}
				if len(names) == 0 {
					names = []string{noFrames}
				}
				if stack := f.stack(got.Stack[j]); !slices.Equal(names, stack) || math.Abs(got.Weight[j]*scale-want.Weights[j]) > 1e-15*want.Weights[j] {
					t.Errorf("profile %d, thread %d, sample %d: %v of %q, expected %v of %q", n, i, j, got.Weight[j], stack, want.Weights[j], names)
				}
			}
		}
	}
}

// TestFirefoxTellsProcessesAndCodeApart: threads are in processes, frames have
// categories, addresses in code objects, and lines.
func TestFirefoxTellsProcessesAndCodeApart(t *testing.T) {
	f := firefoxOf(t, workday().view(t))
	var threads []string
	for _, th := range f.Threads {
		threads = append(threads, fmt.Sprintf("%s | %s %v in %s %s %v", th.ProcessName, th.Name, th.TID, th.PID, th.Samples.WeightType, th.IsMainThread))
	}
	want := strings.Split(`work | work (cpu-clock) 10 in 10 tracing-ms true
work | worker <1> (cpu-clock) 11 in 10 tracing-ms false
odd;?name | odd;?name (cpu-clock) 20 in 20 tracing-ms true
work | work (page-faults) 10 in 10 samples false
work | work (gpu-pc-sampling) 10 in 10 samples false
[unknown] | [unknown] (gpu-pc-sampling) unknown in unknown samples false
work | work (gpu-pc-sampling:active-lanes) 10 in 10 samples false
[unknown] | [unknown] (gpu-pc-sampling:active-lanes) unknown in unknown samples false
work | worker <1> (unknown) 11 in 10 samples false`, "\n")
	if diff := cmp.Diff(want, threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	s := &f.Shared
	var frames []string
	for i := range s.FrameTable.Func {
		fn := int(s.FrameTable.Func[i])
		text := fmt.Sprintf("%s %s", f.Meta.Categories[int(s.FrameTable.Category[i])].Name, s.StringArray[int(s.FuncTable.Name[fn])])
		if lib := int(s.FrameTable.Lib[i]); lib >= 0 {
			text += fmt.Sprintf(" %s+%#x depth %v", f.Libs[lib].Name, int(s.FrameTable.Address[i]), s.FrameTable.InlineDepth[i])
		}
		if n := s.FrameTable.NativeSymbol[i]; !math.IsNaN(n) {
			text += fmt.Sprintf(" in %s at %#x", s.StringArray[int(s.NativeSymbols.Name[int(n)])], int(s.NativeSymbols.Address[int(n)]))
		}
		if n := s.FuncTable.Source[fn]; !math.IsNaN(n) {
			text += fmt.Sprintf(" %s:%v from %v", s.StringArray[int(s.Sources.Filename[int(n)])], s.FrameTable.Line[i], s.FuncTable.LineNumber[fn])
		}
		frames = append(frames, text)
	}
	want = strings.Split(`User _start work+0x104 depth 0 in _start at 0x100
User main work+0x20f depth 0 in main at 0x200 /src/work.cc:40 from 38
User spin(int) work+0x30f depth 0 in spin(int) at 0x300 /src/work.cc:22 from 20
User std::min<int>(int, int) work+0x30f depth 1 in spin(int) at 0x300 /src/work.cc:7 from 5
User deep(int; odd?name) work+0x41f depth 0 in deep(int; odd?name) at 0x400 /src/work.cc:13 from 11
User deep(int; odd?name) work+0x430 depth 0 in deep(int; odd?name) at 0x400 /src/work.cc:14 from 11
User [libc.so.6]+0x1234 libc.so.6+0x1234 depth 0
User main work+0x20f depth 0 in main at 0x200 /src/work.cc:40 from 38
User [unknown]
Kernel [kernel.kallsyms]+0xffffffff81000100 [kernel.kallsyms]+0xff depth 0
Kernel clear_page [kernel.kallsyms]+0x10 depth 0
GPU grade grade.co+0x40 depth 0
Other [no frames]`, "\n")
	if diff := cmp.Diff(want, frames); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if id := "0000CDAB000000000000000000000000" + "0"; f.Libs[0].BreakpadID != id || *f.Libs[0].CodeID != "abcd" {
		t.Errorf("lib %+v, expected %s", f.Libs[0], id)
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(f.Meta.InitialVisibleThreads, want) {
		t.Errorf("%v are visible", f.Meta.InitialVisibleThreads)
	}
}

// waves is a recording of a thread of the CPU, and of waves in several states.
func waves(times ...uint64) *recording {
	r := newRecording(trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"},
		trace.ProfileEvent{Name: "gpu-pc-sampling", Unit: "count", States: true, Device: true})
	r.States = []trace.WaveState{{}, {Name: "waitcnt", Stalled: true}, {Name: "valu"}}
	host, gpu := r.module("host", 0, 0x1000), r.module("grade.co", 0, 0x1000)
	main := r.frame(trace.ProfileFrame{PC: 0x10, Module: host, ModuleOffset: 0x10, Symbols: []trace.Symbol{{Function: "main"}}})
	grade := r.frame(trace.ProfileFrame{PC: 0x20, Exact: true, Device: true, Module: gpu, ModuleOffset: 0x20,
		Symbols: []trace.Symbol{{Function: "repair", Inlined: true}, {Function: "grade"}}})
	first, stop := r.thread(1, 1, "host"), r.stop(trace.StopOutermost, "")
	cpu, wave := r.stack(main), r.stack(main, grade)
	r.sample(trace.ProfileSample{Event: 0, Thread: first, Stack: cpu, Stop: stop, Weight: 4e6})
	for i, s := range []trace.ProfileSample{
		{Stack: wave}, {Stack: wave, State: 1}, {Stack: wave, State: 2}, {Stack: wave, State: 1},
		{Stack: r.stack(grade), State: 1},
	} {
		s.Event, s.Thread, s.Stop, s.Weight = 1, first, stop, 1
		r.sample(s)
		if len(times) > 0 {
			r.Samples[len(r.Samples)-1].Time = times[i%len(times)]
		}
	}
	return r
}

// TestFirefoxHasTheStatesOfWaves: what a wave did is the subcategory of its frame.
func TestFirefoxHasTheStatesOfWaves(t *testing.T) {
	f := firefoxOf(t, waves().view(t))
	if len(f.Threads) != 2 {
		t.Fatalf("%d threads", len(f.Threads))
	}
	var got []string
	for _, row := range f.Threads[1].Samples.Stack {
		frame := int(f.Shared.StackTable.Frame[int(row)])
		c := f.Meta.Categories[int(f.Shared.FrameTable.Category[frame])]
		got = append(got, fmt.Sprintf("%s: %s, %s", strings.Join(f.stack(row), ";"), c.Name, c.Subcategories[int(f.Shared.FrameTable.Subcategory[frame])]))
	}
	want := strings.Split(`main;grade;repair: GPU, Other
main;grade;repair: GPU, stalled: waitcnt
main;grade;repair: GPU, valu
main;grade;repair: GPU, stalled: waitcnt
grade;repair: GPU, stalled: waitcnt`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a, b := f.Threads[1].Samples.Stack[1], f.Threads[1].Samples.Stack[3]; a != b {
		t.Errorf("equal stacks are %v and %v", a, b)
	}
}

// TestFirefoxHasDispatchesAsMarkers: a run of a kernel is an interval, and a sample.
func TestFirefoxHasDispatchesAsMarkers(t *testing.T) {
	r := waves()
	r.Events = append(r.Events, trace.ProfileEvent{Name: trace.KernelTimeEvent, Unit: "nanoseconds", Device: true})
	r.sample(trace.ProfileSample{Event: 2, Stack: uint32(len(r.Stacks) - 1), Weight: 2_500_000})
	f := firefoxOf(t, r.view(t))
	of := &f.Threads[2]
	if diff := cmp.Diff([]numberColumn{{6}, {8.5}, {1}, {2.5}}, []numberColumn{of.Markers.StartTime, of.Markers.EndTime, of.Markers.Phase, of.Samples.Weight}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if name := f.Shared.StringArray[int(of.Markers.Name[0])]; name != "repair" || of.Samples.ThreadCPUDelta != nil {
		t.Errorf("the marker is %s; CPU %v", name, of.Samples.ThreadCPUDelta)
	}
	for i := range f.Threads[:2] {
		if n := len(f.Threads[i].Markers.Name); n > 0 {
			t.Errorf("thread %d has %d markers", i, n)
		}
	}
}

// TestFirefoxTimes: samples are by time from the first on, exactly. Times of devices by
// another clock begin with the CPU's, and those that are not known at the beginning.
func TestFirefoxTimes(t *testing.T) {
	for _, c := range []struct {
		times     []uint64
		want      numberColumn
		isShifted bool
	}{
		{[]uint64{1e9 + 5, 1e9 + 3_000_001, 1e9 + 7}, numberColumn{0.000005, 0, 0.000002, 2.999994, 0}, false},
		{[]uint64{7e18 + 1_500_000, 7e18}, numberColumn{0, 0, 1.5, 0, 0}, true},
		{[]uint64{1e9 + 60e9}, numberColumn{60e3, 0, 0, 0, 0}, false},
		{[]uint64{0}, numberColumn{0, 0, 0, 0, 0}, false},
		{[]uint64{0, 1e9 + 1e6}, numberColumn{0, 0, 0, 1, 0}, false},
	} {
		r := waves(c.times...)
		r.Events[1].OtherClock = c.isShifted
		r.sample(trace.ProfileSample{Event: 0, Weight: 1e6}) // 6 ms behind the first
		f := firefoxOf(t, r.view(t))
		if diff := cmp.Diff(c.want, f.Threads[1].Samples.TimeDeltas); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.times, diff)
		}
		if diff := cmp.Diff(numberColumn{0, 6}, f.Threads[0].Samples.TimeDeltas); diff != "" {
			t.Errorf("%v, of the CPU (-want +got):\n%s", c.times, diff)
		}
		if (len(f.Meta.Extra) > 0) != c.isShifted {
			t.Errorf("%v: %+v", c.times, f.Meta.Extra)
		}
	}
	if got := string(appendMilliseconds(nil, math.MaxUint64)); got != "18446744073709.551615" {
		t.Error(got)
	}
}

// TestFirefoxAddressesCountFromTheImage: the addresses of an executable that is linked at an
// address are less by it.
func TestFirefoxAddressesCountFromTheImage(t *testing.T) {
	for _, c := range []struct {
		m      trace.ProfileModule
		offset uint64
		want   int64
	}{
		{trace.ProfileModule{Module: &trace.Module{}}, 0x10, 0x10},
		{trace.ProfileModule{Module: &trace.Module{}, Start: 0xffffffff81000000, Kernel: true}, 0xffffffff81000010, 0x10},
		{trace.ProfileModule{Module: &trace.Module{}, Start: 0xffffffff81000000, Kernel: true}, 0x10, -1},
		{trace.ProfileModule{Module: &trace.Module{}}, 1 << 32, -1},
	} {
		t.Run(fmt.Sprintf("%#x", c.offset), func(t *testing.T) {
			if got := firefoxAddress(&c.m, c.offset); got != c.want {
				t.Errorf("%#x, expected %#x", got, c.want)
			}
		})
	}
}

// TestFirefoxCountsBy32Bits: 32,768 frames of 65,536 inlined calls each are refused.
func TestFirefoxCountsBy32Bits(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "cycles", Unit: "count"})
	deep := r.frame(trace.ProfileFrame{Module: -1, Symbols: make([]trace.Symbol, 1<<16)})
	at := uint32(0)
	for range 1 << 15 {
		r.Stacks = append(r.Stacks, trace.ProfileStack{Caller: at, Frame: deep})
		at = uint32(len(r.Stacks) - 1)
	}
	r.sample(trace.ProfileSample{Stack: at, Thread: r.thread(1, 1, "deep"), Weight: 1})
	var b bytes.Buffer
	if err := r.view(t).WriteFirefox(&b); err == nil || !strings.Contains(err.Error(), "more than 1073741824 calls") || b.Len() > 0 {
		t.Errorf("%v; %d bytes", err, b.Len())
	}
}
