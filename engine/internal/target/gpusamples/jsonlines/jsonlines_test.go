// SPDX-License-Identifier: Apache-2.0

package jsonlines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

const header = `{"record":"format","format_version":1,"clock":"CLOCK_MONOTONIC"}` + "\n"

// maxProblems is how many problems linetext keeps.
const maxProblems = 100

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened opens a text, and returns its problems, without its path.
func opened(t testing.TB, text string) (*File, []string) {
	t.Helper()
	path := write(t, text)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var problems []string
	for _, p := range f.Problems() {
		problems = append(problems, strings.TrimPrefix(p, path+":"))
	}
	return f, problems
}

// collect reads all samples and keeps them.
func collect(t testing.TB, f *File) (all []gpusamples.Sample) {
	t.Helper()
	err := f.Samples(func(in *gpusamples.Sample) error {
		s := *in
		if s.Launch != nil {
			l := *s.Launch
			l.Frames = append([]uint64(nil), l.Frames...)
			s.Launch = &l
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unknown is a sample of which nothing is told.
func unknown(with gpusamples.Sample) gpusamples.Sample {
	with.Kernel, with.State = -1, -1
	if with.PID == 0 {
		with.PID = -1
	}
	return with
}

// whole has a line of each kind with all members, and a launch behind the sample
// that names it.
const whole = header + `
{"record":"module","id":"1","path":"/app/grade.co","build_id":"00ff","arch":"amdgpu","processor":"gfx90a","segments":[{"section":".text","address":"0x1000","size":"0x2000","start":"0x7f0000001000"}],"comment":1}
{"record":"sample","event":"stalls","time":1000,"module":1,"module_offset":"0x16c4","exec_mask":"0xff00000000000001","lanes":64,"weight":7,"wave":{"agent":1,"queue":"q","dispatch":3,"kernel":"grade","group":[1,2,3],"in_group":4},"launched_by":{"launch":17}}
{"record":"launch","id":"17","pid":10,"tid":11,"comm":"host","api":"hipLaunchKernel","time":900,"end":950,"frames":["0x401043","0x401071"]}
{"time":1001,"pc":"0x7f0000001004","launched_by":{"pid":10,"tid":12,"frames":[]},"exec_mask":null,"record":"sample"}
`

func TestLinesOfEachKindAreRead(t *testing.T) {
	f, problems := opened(t, whole)
	if len(problems) > 0 || f.facts.Clock != "CLOCK_MONOTONIC" {
		t.Errorf("problems %q, clock %q", problems, f.facts.Clock)
	}
	modules := []gpusamples.Module{{
		ID: "1", PID: -1, Path: "/app/grade.co", BuildID: []byte{0, 0xff}, Arch: "amdgpu", Processor: "gfx90a",
		Segments: []trace.Segment{{Section: ".text", Address: 0x1000, Size: 0x2000, Start: 0x7f0000001000}},
	}}
	if d := cmp.Diff(modules, f.facts.Modules); d != "" {
		t.Errorf("modules (-want +got):\n%s", d)
	}
	launch := gpusamples.Launch{PID: 10, TID: 11, Comm: "host", API: "hipLaunchKernel", Time: 900, HasTime: true, End: 950, HasEnd: true, Frames: []uint64{0x401043, 0x401071}}
	if d := cmp.Diff([]gpusamples.Launch{launch}, f.facts.Launches); d != "" {
		t.Errorf("launches (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]gpusamples.Process{{PID: 10}}, f.facts.Processes); d != "" {
		t.Errorf("processes (-want +got):\n%s", d)
	}
	events := []gpusamples.Event{{Name: "stalls", Samples: 1, Lanes: true}, {Name: gpusamples.DefaultEvent, Samples: 1}}
	if d := cmp.Diff(events, f.facts.Events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]gpusamples.Kernel{{Name: "grade", Dispatches: 1}}, f.facts.Kernels); d != "" {
		t.Errorf("kernels (-want +got):\n%s", d)
	}
	samples := []gpusamples.Sample{
		{
			PID: 10, Offset: 0x16c4, HasOffset: true, Time: 1000, HasTime: true, Weight: 7, ActiveLanes: 9, Lanes: 64, HasLanes: true, State: -1,
			Launch: &launch,
		},
		unknown(gpusamples.Sample{Event: 1, PID: 10, PC: 0x7f0000001004, Time: 1001, HasTime: true, Weight: 1, Launch: &gpusamples.Launch{PID: 10, TID: 12}, LaunchIndex: -1}),
	}
	if d := cmp.Diff(samples, collect(t, f)); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
}

func TestFilesThatAreNotOfSamplesAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"an empty file", "", "the file is empty"},
		{"blank lines", "\n \r\n", "it has no lines"},
		{"no JSON", "\x7fELF\x02\x01\x01", `line 1: offset 0x0: found '\x7f', expected an object`},
		{"a sample in the first line", "\n" + `{"record":"sample","pc":"0x1"}`, `line 2: record is "sample", expected "format" in the first line`},
		{"no record", `{"format_version":1}`, "line 1: has no record"},
		{"a record of another kind", `{"record":"perf"}`, `line 1: offset 0x10, record: "perf", expected format, module, launch or sample`},
		{"no version", `{"record":"format"}`, "line 1: has no format_version, expected 1"},
		{"another version", `{"record":"format","format_version":2}`, "line 1: format_version is 2, expected 1"},
		{"a version that is none", `{"record":"format","format_version":"1"}`, "line 1: offset 0x24, format_version: found a string, expected a number"},
		{"more than an object", header[:len(header)-1] + `{}`, "found an object, expected the end of the text"},
		{"a long line", header[:len(header)-1] + strings.Repeat(" ", linetext.MaxLine), "line 1: the line has more than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Open(write(t, tt.text))
			if f != nil || !errors.Is(err, gpusamples.ErrOtherForm) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, expected %q", err, tt.want)
			}
		})
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, object.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

func TestABadLineCostsOnlyItself(t *testing.T) {
	const good = `{"record":"sample","pc":"0x10","weight":5}` + "\n"
	long := `{"record":"sample","pc":"0x1","a":"` + strings.Repeat("x", linetext.MaxLine) + `"}`
	for _, tt := range []struct{ name, line, want string }{
		{"no JSON", `x`, `2: offset 0x0: found 'x', expected an object`},
		{"a line that was cut", `{"record":"sample","pc":"0x`, `2: offset 0x1b, pc: the text ends within a string`},
		{"two objects", `{"record":"sample","pc":"0x1"}{}`, `found an object, expected the end of the text`},
		{"a long line", long, `2: the line has more than 1048576 bytes`},
		{"no record", `{"pc":"0x1"}`, `2: has no record, which says what the line describes`},
		{"an unknown record", `{"record":"samples"}`, `record: "samples", expected format, module, launch or sample`},
		{"a record of another type", `{"record":1}`, `record: found a number, expected a string`},
		{"a record twice", `{"record":"sample","record":"launch","pc":"0x1"}`, `record: the member is given twice`},
		{"a member twice", `{"record":"sample","pc":"0x1","pc":"0x1"}`, `pc: the member is given twice`},
		{"no place", `{"record":"sample"}`, `2: has neither pc nor module`},
		{"two places", `{"record":"sample","pc":"0x1","module":1,"module_offset":"0x1"}`, `2: pc stands beside module or module_offset`},
		{"no offset", `{"record":"sample","module":1}`, `2: has a module, but no module_offset`},
		{"no module", `{"record":"sample","module_offset":"0x1"}`, `2: has neither pc nor module`},
		{"a PC that is a number", `{"record":"sample","pc":16}`, `offset 0x18, pc: found a number, expected a string`},
		{"a PC that is none", `{"record":"sample","pc":"16"}`, `pc: is "16", expected 0x and hexadecimal digits`},
		{"a large PC", `{"record":"sample","pc":"0x10000000000000000"}`, `pc: is 0x10000000000000000, expected at most 64 bits`},
		{"a mask that is a number", `{"record":"sample","pc":"0x1","exec_mask":255}`, `exec_mask: found a number, expected a string`},
		{"many lanes", `{"record":"sample","pc":"0x1","lanes":65}`, `lanes: 65, expected a whole number from 0 to 64`},
		{"a negative weight", `{"record":"sample","pc":"0x1","weight":-1}`, `weight: -1, expected a whole number from 0 to 1099511627776`},
		{"a weight with a fraction", `{"record":"sample","pc":"0x1","weight":1.5}`, `weight: 1.5, expected a whole number`},
		{"a large weight", `{"record":"sample","pc":"0x1","weight":1099511627777}`, `weight: 1099511627777, expected`},
		{"a time that is a string", `{"record":"sample","pc":"0x1","time":"1"}`, `time: found a string, expected a number`},
		{"an empty ID", `{"record":"sample","module":"","module_offset":"0x1"}`, `module: an ID without characters`},
		{"a long ID", `{"record":"sample","module":"` + strings.Repeat("x", maxText+1) + `","module_offset":"0x1"}`, `module: a string of 4097 bytes, expected at most 4096`},
		{"coordinates", `{"record":"sample","pc":"0x1","wave":{"group":[1,2]}}`, `wave.group: 2 coordinates, expected 3`},
		{"a launch without members", `{"record":"sample","pc":"0x1","launched_by":{}}`, `2: launched_by: has no pid`},
		{"a launch without thread", `{"record":"sample","pc":"0x1","launched_by":{"pid":1,"frames":[]}}`, `2: launched_by: has no tid`},
		{"a launch twice", `{"record":"sample","pc":"0x1","launched_by":{"launch":1,"pid":1,"tid":1,"frames":[]}}`, `launched_by: launch stands beside other members`},
		{"a frame that is none", `{"record":"sample","pc":"0x1","launched_by":{"pid":1,"tid":1,"frames":["0x1","y"]}}`, `launched_by.frames[1]: is "y", expected 0x`},
		{"many frames", `{"record":"launch","id":1,"pid":1,"tid":1,"frames":["0x1"` + strings.Repeat(`,"0x1"`, maxFrames) + `]}`, `frames[65536]: the list has more than 65536 elements`},
		{"a launch that ends before it begins", `{"record":"launch","id":1,"pid":1,"tid":1,"time":2,"end":1,"frames":[]}`, `2: has an end that is not behind its time`},
		{"an end without a time", `{"record":"launch","id":1,"pid":1,"tid":1,"end":1,"frames":[]}`, `2: has an end that is not behind its time`},
		{"a launch without ID", `{"record":"launch","pid":1,"tid":1,"frames":[]}`, `2: has no id`},
		{"a launch without frames", `{"record":"launch","id":1,"pid":1,"tid":1}`, `2: has no frames`},
		{"a large thread ID", `{"record":"launch","id":1,"pid":1,"tid":2147483648,"frames":[]}`, `tid: 2147483648, expected a whole number from 0 to 2147483647`},
		{"a module without ID", `{"record":"module","path":"/a","arch":"gpu"}`, `2: has no id`},
		{"a module of nothing", `{"record":"module","id":1,"arch":"gpu"}`, `2: neither path nor build_id say`},
		{"a module without arch", `{"record":"module","id":1,"path":"/a"}`, `2: has no arch`},
		{"a build ID that is none", `{"record":"module","id":1,"path":"/a","arch":"gpu","build_id":"abc"}`, `build_id: "abc", expected at most 512 pairs`},
		{"a segment without start", `{"record":"module","id":1,"path":"/a","arch":"gpu","segments":[{"address":"0x0","size":"0x1"}]}`, `segments[0]: expected address, size and start`},
		{"a segment past the end", `{"record":"module","id":1,"path":"/a","arch":"gpu","segments":[{"address":"0x0","size":"0x20","start":"0xfffffffffffffff0"}]}`, `segments[0]: 0x20 bytes at 0xfffffffffffffff0 reach past the last address`},
		{"another clock", `{"record":"format","format_version":1,"clock":"x"}`, `2: clock is "x", that of lines before it "CLOCK_MONOTONIC": times are of no clock that is known`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, problems := opened(t, header+tt.line+"\n"+good)
			if len(problems) != 1 || !strings.Contains(problems[0], tt.want) || !strings.HasSuffix(problems[0], ": the line is left out") {
				t.Errorf("problems %q, expected %q", problems, tt.want)
			}
			want := []gpusamples.Sample{unknown(gpusamples.Sample{Module: -1, PC: 0x10, Weight: 5, LaunchIndex: -1})}
			if d := cmp.Diff(want, collect(t, f)); d != "" {
				t.Errorf("samples (-want +got):\n%s", d)
			}
		})
	}
}

func TestLinesMayEndInAnyWay(t *testing.T) {
	for _, text := range []string{
		header + `{"record":"sample","pc":"0x10"}`,
		strings.ReplaceAll(header, "\n", "\r\n") + "\r\n" + `{"record":"sample","pc":"0x10"}` + "\r\n",
		header + header + ` { "record" : "sample" , "pc" : "0x10" } ` + "\n\n\n",
	} {
		f, problems := opened(t, text)
		if got := collect(t, f); len(got) != 1 || got[0].PC != 0x10 || len(problems) > 0 {
			t.Errorf("%q: %v, problems %q", text, got, problems)
		}
	}
}

// Which of two descriptions is meant nobody knows: neither is used. The samples
// stay.
func TestIDsOfSeveralMeanings(t *testing.T) {
	f, problems := opened(t, header+`
{"record":"module","id":1,"path":"/a","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x1000"}]}
{"record":"module","id":2,"path":"/b","arch":"gpu"}
{"record":"module","id":"2","path":"/b","arch":"gpu"}
{"record":"module","id":1,"path":"/b","arch":"gpu"}
{"record":"launch","id":1,"pid":1,"tid":1,"frames":["0x1"]}
{"record":"launch","id":2,"pid":1,"tid":1,"frames":["0x1"]}
{"record":"launch","id":2,"pid":1,"tid":1,"frames":["0x1"]}
{"record":"launch","id":1,"pid":1,"tid":1,"frames":["0x2"]}
{"record":"launch","id":1,"pid":1,"tid":1,"frames":["0x1"]}
{"record":"launch","id":4,"pid":1,"tid":1,"frames":["0x1"],"time":1}
{"record":"launch","id":4,"pid":1,"tid":1,"frames":["0x1"],"time":2}
{"record":"module","id":6,"path":"/a","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x8000"}]}
{"record":"module","id":6,"path":"/a","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x9000"}]}
{"record":"sample","module":1,"module_offset":"0x10","launched_by":{"launch":1}}
{"record":"sample","module":2,"module_offset":"0x10","launched_by":{"launch":2}}
{"record":"sample","module":3,"module_offset":"0x10","launched_by":{"launch":3}}
{"record":"sample","pc":"0x1010"}
`)
	if d := cmp.Diff([]string{
		"6: module 1 is described twice, and differently: neither is used: the line is left out",
		"10: launch 1 is described twice, and differently: neither is used: the line is left out",
		"11: launch 1 is described twice, and differently: neither is used: the line is left out",
		"13: launch 4 is described twice, and differently: neither is used: the line is left out",
		"15: module 6 is described twice, and differently: neither is used: the line is left out",
	}, problems); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
	want := []gpusamples.Sample{
		unknown(gpusamples.Sample{Module: -1, Problem: "several lines describe its module, not all alike", Offset: 0x10, HasOffset: true, Weight: 1, LaunchIndex: -1}),
		unknown(gpusamples.Sample{Module: 1, Offset: 0x10, HasOffset: true, PID: 1, Weight: 1, Launch: &gpusamples.Launch{PID: 1, TID: 1, Frames: []uint64{1}}, LaunchIndex: 1}),
		unknown(gpusamples.Sample{Module: -1, Problem: "no line describes its module", Offset: 0x10, HasOffset: true, Weight: 1, LaunchIndex: -1}),
		unknown(gpusamples.Sample{Module: -1, PC: 0x1010, Weight: 1, LaunchIndex: -1}),
	}
	if d := cmp.Diff(want, collect(t, f)); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
}

func TestAddressesBelongToTheOneModuleThatIsThere(t *testing.T) {
	f, _ := opened(t, header+`
{"record":"module","id":1,"path":"/a","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x1000"},{"address":"0x100","size":"0x100","start":"0x3000"}]}
{"record":"module","id":2,"path":"/b","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x1080"},{"address":"0x0","size":"0x0","start":"0x5000"}]}
{"record":"module","id":3,"path":"/c","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x1180"}]}
{"record":"module","id":4,"path":"/d","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x7100"}]}
{"record":"module","id":5,"path":"/e","arch":"gpu","segments":[{"address":"0x0","size":"0x100","start":"0x7000"}]}
`)
	const several = "several modules were loaded at its address"
	for _, tt := range []struct {
		pc      uint64
		module  int
		problem string
	}{
		{0, -1, ""}, {0xfff, -1, ""}, {0x1000, 0, ""}, {0x107f, 0, ""}, {0x1080, -1, several}, {0x10ff, -1, several}, {0x1100, 1, ""}, {0x117f, 1, ""},
		{0x1180, 2, ""}, {0x127f, 2, ""}, {0x1280, -1, ""}, {0x3000, 0, ""}, {0x3100, -1, ""}, {0x5000, -1, ""}, {0x70ff, 4, ""}, {0x7100, 3, ""}, {0x7200, -1, ""}, {^uint64(0), -1, ""},
	} {
		if module, problem := f.places.At(tt.pc); module != tt.module || problem != tt.problem {
			t.Errorf("%#x: module %d, %q; expected %d, %q", tt.pc, module, problem, tt.module, tt.problem)
		}
	}
}

// A mask has bits for more lanes than a wave may have: what they are is not told.
func TestActiveLanesAreThoseOfTheWave(t *testing.T) {
	f, problems := opened(t, header+`
{"record":"sample","pc":"0x1","exec_mask":"0xffffffffffffffff"}
{"record":"sample","pc":"0x1","exec_mask":"0xffffffffffffffff","lanes":64}
{"record":"sample","pc":"0x1","exec_mask":"0xdeadbeef0000000f","lanes":32}
{"record":"sample","pc":"0x1","exec_mask":"0x7","lanes":1}
{"record":"sample","pc":"0x1","exec_mask":"0xffffffffffffffff","lanes":63}
{"record":"sample","pc":"0x1","exec_mask":"0x0","lanes":32}
{"record":"sample","pc":"0x1","exec_mask":"0x3","event":"mixed"}
{"record":"sample","pc":"0x1","event":"mixed"}
`)
	var got []uint32
	for _, s := range collect(t, f) {
		got = append(got, s.ActiveLanes)
	}
	if d := cmp.Diff([]uint32{64, 64, 4, 1, 63, 0, 2, 0}, got); d != "" {
		t.Error(d)
	}
	if e := f.facts.Events; !e[0].Lanes || e[1].Lanes {
		t.Errorf("events %+v", e)
	}
	if d := cmp.Diff([]string{"1: 1 of the 2 samples of event mixed have no exec_mask: active lanes are told of none"}, problems); d != "" {
		t.Error(d)
	}
}

func TestListsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(header)
	for i := range maxEvents + 2 {
		fmt.Fprintf(&b, `{"record":"sample","pc":"0x1","event":"e%d"}`+"\n", i)
	}
	for range 200 {
		b.WriteString("x\n")
	}
	f, problems := opened(t, b.String())
	if n := len(collect(t, f)); n != maxEvents || len(f.facts.Events) != maxEvents {
		t.Errorf("%d samples of %d events", n, len(f.facts.Events))
	}
	if len(problems) != maxProblems+1 || !strings.Contains(problems[0], `66: event "e64" is one of more than 64`) || !strings.HasSuffix(problems[maxProblems], " 102 more problems") {
		t.Errorf("%d problems, %q, %q", len(problems), problems[0], problems[len(problems)-1])
	}

	lines := `{"record":"launch","id":1,"pid":1,"tid":1,"frames":["0x1"]}
{"record":"launch","id":2,"pid":1,"tid":1,"frames":["0x1"]}
{"record":"launch","id":3,"pid":1,"tid":1,"frames":["0x1"]}
{"record":"module","id":1,"path":"/a","arch":"gpu"}
`
	bounded := linetext.New("test", []byte(header+lines))
	bounded.MaxKept = 564
	f, err := open(bounded)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.facts.Launches) != 2 || len(f.facts.Modules) != 0 || len(f.Problems()) != 2 || !strings.Contains(f.Problems()[1], "there are more than 564 bytes of modules and launches") {
		t.Errorf("%d launches, %d modules, problems %q", len(f.facts.Launches), len(f.facts.Modules), f.Problems())
	}
}

// A file of many samples needs no more memory than one of a few.
func TestMemoryDoesNotGrowWithTheSamples(t *testing.T) {
	const count = 1 << 16
	var b strings.Builder
	b.WriteString(whole)
	for i := range count {
		fmt.Fprintf(&b, `{"record":"sample","time":%d,"module":1,"module_offset":"0x%x","exec_mask":"0xff","launched_by":{"launch":17}}`+"\n", i, i)
	}
	path := write(t, b.String())
	size := b.Len()
	b = strings.Builder{}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	total := uint64(0)
	err = f.Samples(func(s *gpusamples.Sample) error {
		total += s.Weight
		return nil
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 1<<20 || total != count+8 || err != nil {
		t.Errorf("%d bytes in use for %d bytes of file, weight %d, %v", used, size, total, err)
	}
}

func TestAFileThatShrinksIsAnError(t *testing.T) {
	path := write(t, header+strings.Repeat(`{"record":"sample","pc":"0x1"}`+"\n", 4096))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.Samples(func(*gpusamples.Sample) error { return os.Truncate(path, 100) })
	if !errors.Is(err, object.ErrFileShrank) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	stop := errors.New("enough")
	if f, _ := opened(t, whole); !errors.Is(f.Samples(func(*gpusamples.Sample) error { return stop }), stop) {
		t.Error("the error of yield is lost")
	}
}
