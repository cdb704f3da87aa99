// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/rocprof/rocproftest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// open opens bytes as a file.
func open(t testing.TB, data []byte) *File {
	t.Helper()
	f := &File{path: "test.json", data: data, maxKept: maxKept}
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	return f
}

// collect are the samples of a file.
func collect(t testing.TB, f *File) (list []gpusamples.Sample) {
	t.Helper()
	if err := f.Samples(func(s *gpusamples.Sample) error {
		list = append(list, *s)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// one is a file of a process.
func one(p rocproftest.Process) rocproftest.File {
	return rocproftest.File{Processes: []rocproftest.Process{p}}
}

func TestFactsOfARun(t *testing.T) {
	f := open(t, text(t, one(run())))
	const base, runtimeBase = 0x7bb600400000, 0x7bb600418000
	want := &gpusamples.Facts{
		Path: "test.json", Form: "rocprofv3", Clock: "CLOCK_BOOTTIME",
		Events:    []gpusamples.Event{{Name: gpusamples.DefaultEvent, Samples: 8, Lanes: true}},
		Processes: []gpusamples.Process{{PID: 4711, Name: "app"}},
		Modules: []gpusamples.Module{
			{
				ID: "1", PID: 4711, URI: "memory://4711#offset=0x563c46cf5a40&size=32968", Size: 32968, Arch: "amdgpu", Processor: "gfx942",
				Segments: []trace.Segment{{Size: 36864, Start: runtimeBase}},
			},
			{
				ID: "2", PID: 4711, Path: "/app/my tests/vcopy", URI: "file:///app/my%20tests/vcopy#offset=12288&size=8064", Offset: 12288, Size: 8064,
				Arch: "amdgpu", Processor: "gfx942", Segments: []trace.Segment{{Size: 17649, Start: base}},
			},
		},
		Kernels: []gpusamples.Kernel{
			{Name: "__amd_rocclr_copyBuffer", Module: 0, Entry: 0x5200, HasEntry: true},
			{Name: "_Z7vecCopyPdS_S_ii", Module: 1, Entry: 0x1f40, HasEntry: true},
		},
		Dispatches: []gpusamples.Dispatch{
			{
				ID: "1", PID: 4711, Agent: "2", Queue: "2", Kernel: 1, Grid: [3]uint32{1048576, 1, 1}, Group: [3]uint32{256, 1, 1},
				Start: 1986623975868304, End: 1986623975876596, HasTime: true, Launch: 0,
			},
			{
				ID: "2", PID: 4711, Agent: "2", Queue: "2", Kernel: 1, Grid: [3]uint32{1048576, 1, 1}, Group: [3]uint32{256, 1, 1},
				Start: 1986623975909003, End: 1986623975914531, HasTime: true, Launch: 1,
			},
			{
				ID: "3", PID: 4711, Agent: "2", Queue: "3", Kernel: 0, Grid: [3]uint32{128, 2, 1}, Group: [3]uint32{64, 2, 1},
				Start: 1986623975930955, End: 1986623975936443, HasTime: true, Launch: 2,
			},
		},
		Launches: []gpusamples.Launch{
			{PID: 4711, TID: 4711, API: "hipLaunchKernel", Time: 1986623975860000, End: 1986623975861000, HasTime: true, HasEnd: true},
			// The call of HIP made that of HSA which put the kernel into the queue.
			{PID: 4711, TID: 4713, API: "hipExtModuleLaunchKernel", Time: 1986623975900000, End: 1986623975901000, HasTime: true, HasEnd: true},
			{PID: 4711, TID: 4711}, // no call has its correlation ID
		},
	}
	if d := cmp.Diff(want, f.Facts()); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
	if p := f.Problems(); len(p) > 0 {
		t.Errorf("problems %q", p)
	}
}

func TestSamplesOfARun(t *testing.T) {
	f := open(t, text(t, one(run())))
	got := collect(t, f)
	if len(got) != 8 {
		t.Fatalf("%d samples", len(got))
	}
	want := gpusamples.Sample{
		PID: 4711, Module: 1, Kernel: 1, Offset: 0x1f48, HasOffset: true, PC: 0x7bb600401f48,
		Time: 1986623975869130, HasTime: true, Weight: 1, ActiveLanes: 63, Lanes: 64, HasLanes: true, State: -1,
		Instruction: "s_waitcnt lgkmcnt(0)", Launch: &f.facts.Launches[1], LaunchIndex: 1,
	}
	if d := cmp.Diff(want, got[1]); d != "" {
		t.Errorf("sample 1 (-want +got):\n%s", d)
	}
	// The line of the instruction stands first, that of the call that was inlined behind it.
	if d := cmp.Diff([]gpusamples.Line{{File: "/app/a.h", Line: 7}, {File: "/app/vcopy.cpp", Line: 30}}, got[0].Source); d != "" {
		t.Error(d)
	}
	if s := got[5]; s.Module != 0 || s.PC != 0x7bb600418010 || s.Offset != 0x10 || !s.HasOffset || s.Instruction != "" || s.Problem != "" {
		t.Errorf("an absolute address: %+v", s)
	}
	if s := got[6]; s.Module != -1 || s.PC != 0x1000 || s.HasOffset || s.Problem != "" {
		t.Errorf("an absolute address of no module: %+v", s)
	}
}

func TestLinesOfComments(t *testing.T) {
	const header = "/rocm/include/hip/amd_detail/amd_hip_runtime.h"
	for _, tt := range []struct {
		comment string
		want    []gpusamples.Line
	}{
		{"", nil},
		{"/a.cpp:20", []gpusamples.Line{{File: "/a.cpp", Line: 20}}},
		{header + ":? -> " + header + ":281 -> /a.cpp:18", []gpusamples.Line{{File: header}, {File: header, Line: 281}, {File: "/a.cpp", Line: 18}}},
		{"/a:b.cpp", []gpusamples.Line{{File: "/a:b.cpp"}}},
		{"/a.cpp:99999999999", []gpusamples.Line{{File: "/a.cpp:99999999999"}}},
		{"/a.cpp", []gpusamples.Line{{File: "/a.cpp"}}},
	} {
		p := run()
		p.Comments[0] = tt.comment
		if d := cmp.Diff(tt.want, collect(t, open(t, text(t, one(p))))[0].Source); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.comment, d)
		}
	}
}

func TestStatesOfStochasticSamples(t *testing.T) {
	p := run()
	p.IsStochastic = true
	f := open(t, text(t, one(p)))
	want := []trace.WaveState{{Name: "issued"}, {Name: "alu_dependency", Stalled: true}, {Name: "not_issued", Stalled: true}, {Name: "waitcnt", Stalled: true}}
	if d := cmp.Diff(want, f.Facts().States); d != "" {
		t.Error(d)
	}
	var got []int
	for _, s := range collect(t, f) {
		got = append(got, s.State)
	}
	if d := cmp.Diff([]int{0, 1, 2, 3, 0, 2, 3, 1}, got); d != "" {
		t.Error(d)
	}
}

// What is told of a run does not depend on how its text is laid out, nor on the order of
// members.
func TestLayoutMeansNothing(t *testing.T) {
	for _, isStochastic := range []bool{false, true} {
		p := run()
		p.IsStochastic = isStochastic
		second := run()
		second.PID, second.Command = 4712, []string{"other"}
		file := rocproftest.File{Processes: []rocproftest.Process{p, second}}
		compact := text(t, file)
		file.IsIndented = true
		var sorted any
		decoder := json.NewDecoder(bytes.NewReader(compact))
		decoder.UseNumber()
		if err := decoder.Decode(&sorted); err != nil {
			t.Fatal(err)
		}
		byName, err := json.Marshal(sorted) // buffer_records stand before all that they name
		if err != nil {
			t.Fatal(err)
		}
		want := open(t, compact)
		samples := collect(t, want)
		for name, data := range map[string][]byte{"indented": text(t, file), "sorted": byName, "reversed": reversed(t, compact)} {
			f := open(t, data)
			got := collect(t, f)
			if !slices.Equal(f.facts.States, want.facts.States) {
				t.Errorf("%s: states %v", name, f.facts.States)
			}
			facts, wanted := f.facts, want.facts
			if name != "indented" { // launches are told of in the order of what names them
				sortLaunches(&facts)
				sortLaunches(&wanted)
			}
			if d := cmp.Diff(wanted, facts); d != "" {
				t.Errorf("%s: facts (-want +got):\n%s", name, d)
			}
			for i := range got {
				got[i].LaunchIndex, samples[i].LaunchIndex = 0, 0
			}
			if d := cmp.Diff(samples, got); d != "" {
				t.Errorf("%s: samples (-want +got):\n%s", name, d)
			}
			if d := cmp.Diff(want.Problems(), f.Problems()); d != "" {
				t.Errorf("%s: problems %s", name, d)
			}
		}
	}
}

func sortLaunches(f *gpusamples.Facts) {
	f.Launches = slices.Clone(f.Launches)
	slices.SortFunc(f.Launches, func(a, b gpusamples.Launch) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	f.Dispatches = slices.Clone(f.Dispatches)
	for i := range f.Dispatches {
		f.Dispatches[i].Launch = 0
	}
}

// reversed is a text with the members of all objects in the other order.
func reversed(t *testing.T, data []byte) []byte {
	t.Helper()
	var turn func(value json.RawMessage) json.RawMessage
	turn = func(value json.RawMessage) json.RawMessage {
		switch value[0] {
		case '[':
			var list []json.RawMessage
			if err := json.Unmarshal(value, &list); err != nil {
				t.Fatal(err)
			}
			for i := range list {
				list[i] = turn(list[i])
			}
			out, _ := json.Marshal(list)
			return out
		case '{':
			var members map[string]json.RawMessage
			if err := json.Unmarshal(value, &members); err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, name := range slices.Backward(slices.Sorted(maps.Keys(members))) {
				out = append(out, fmt.Sprintf("%q:%s", name, turn(members[name])))
			}
			return json.RawMessage("{" + strings.Join(out, ",") + "}")
		}
		return value
	}
	return turn(bytes.TrimSpace(data))
}

// IDs mean nothing outside of their process.
func TestProcessesAreToldApart(t *testing.T) {
	first, second := run(), run()
	second.PID = 4712
	second.Objects = []rocproftest.Object{{ID: 2, Agent: 32602, URI: "file:///app/other", Base: 0x1000, Size: 0x100000, Delta: -0x1000}}
	second.Kernels = []rocproftest.Kernel{{ID: 2, Object: 2, Name: "other", Descriptor: 0x1000, Entry: 0x2f40}}
	second.Dispatches = second.Dispatches[:1]
	f := open(t, text(t, rocproftest.File{Processes: []rocproftest.Process{first, second}}))
	if p := f.Problems(); len(p) > 0 {
		t.Errorf("problems %q", p)
	}
	if d := cmp.Diff([]gpusamples.Process{{PID: 4711, Name: "app"}, {PID: 4712, Name: "app"}}, f.facts.Processes); d != "" {
		t.Error(d)
	}
	samples := collect(t, f)
	s := samples[8]
	m := f.facts.Modules[s.Module]
	if s.PID != 4712 || m.Path != "/app/other" || m.URI != "" || m.PID != 4712 || s.PC != 0x2f40 || s.Offset != 0x3f40 || f.facts.Kernels[s.Kernel].Name != "other" {
		t.Errorf("%+v of %+v", s, m)
	}
	// Its other dispatches are described by nothing but its samples.
	if s := samples[9]; s.Kernel != -1 || s.Launch == nil || s.Launch.PID != 4712 || s.Launch.API != "hipExtModuleLaunchKernel" {
		t.Errorf("%+v, %+v", s, s.Launch)
	}
	if s := samples[10]; s.Kernel != -1 || s.Launch != nil || len(f.facts.Dispatches) != 4 {
		t.Errorf("%+v of %d dispatches", s, len(f.facts.Dispatches))
	}
}

// A record with the layout of one before is read by its shape. That gives the same.
func TestShapesReadTheSame(t *testing.T) {
	p := run()
	p.IsStochastic, p.Samples = true, 100
	data := text(t, one(p))
	for range 3 { // some other layouts among them
		data = bytes.Replace(data, []byte(`"dispatch_id":2,"corr_id"`), []byte(`"dispatch_id" :2,"corr_id"`), 5)
		data = bytes.Replace(data, []byte(`"inst_index":1}`), []byte(`"inst_index":-0}`), 7)
		data = bytes.Replace(data, []byte(`"exec_mask":18446744073709551615`), []byte(`"exec_mask":18446744073709551616`), 2)
		data = bytes.Replace(data, []byte(`"exec_mask":18446744073709551615`), []byte(`"exec_mask":1.5`), 2)
		data = bytes.Replace(data, []byte(`"exec_mask":18446744073709551615`), []byte(`"exec_mask":null`), 2)
		data = bytes.Replace(data, []byte(`REASON_WAITCNT`), []byte(`REASON_WAIT\u0043NT`), 2)
		data = bytes.Replace(data, []byte(`"wave_in_grp":3,`), []byte(`"wave_in_grp":3.0,`), 2)
	}
	fast := open(t, data)
	slow := &File{path: "test.json", data: data, maxKept: maxKept, noShapes: true}
	if err := slow.open(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slow.facts, fast.facts); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(slow.Problems(), fast.Problems()); d != "" || len(fast.Problems()) != 13 {
		t.Errorf("%q %s", fast.Problems(), d)
	}
	if d := cmp.Diff(collect(t, slow), collect(t, fast)); d != "" {
		t.Error(d)
	}
}

func TestMemoryDoesNotGrowWithTheSamples(t *testing.T) {
	p := run()
	p.Samples = 1 << 16
	path := write(t, text(t, one(p)))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	err = f.Samples(func(*gpusamples.Sample) error {
		n++
		return nil
	})
	if err != nil || n != p.Samples {
		t.Errorf("%d samples, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if got := after.Mallocs - before.Mallocs; got > 2000 {
		t.Errorf("%d allocations for %d samples", got, n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 4<<20 {
		t.Errorf("%d bytes in use", used)
	}
}

// Pages of the file that were read count as memory until they are given back.
func TestPagesAreGivenBack(t *testing.T) {
	p := run()
	p.Samples = 1 << 16
	data := text(t, one(p))
	f, err := Open(write(t, data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.maxMapped = 1 << 20
	before := mappedBytes(t)
	most, n := 0, 0
	err = f.Samples(func(*gpusamples.Sample) error {
		if n++; n%4096 == 0 {
			most = max(most, mappedBytes(t)-before)
		}
		return nil
	})
	if err != nil || most > len(data)/2 {
		t.Errorf("%d bytes of %d are mapped, %v", most, len(data), err)
	}
}

// mappedBytes is how much of files is in the memory of this process.
func mappedBytes(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "RssFile:")
	n := 0
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run_results.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileThatShrinksIsAnError(t *testing.T) {
	p := run()
	p.Samples = 1 << 16
	path := write(t, text(t, one(p)))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.Samples(func(*gpusamples.Sample) error { return os.Truncate(path, 100) })
	if !errors.Is(err, object.ErrFileShrank) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

func TestAFileThatChangesIsAnError(t *testing.T) {
	p := run()
	data := text(t, one(p))
	f := open(t, data)
	copy(data[f.processes[0].chunks[0].start:], "}}}}")
	if err := f.Samples(func(*gpusamples.Sample) error { return nil }); !errors.Is(err, errChanged) {
		t.Errorf("%v", err)
	}
}

func TestTheErrorOfYieldIsHandedOn(t *testing.T) {
	p := run()
	p.Samples = 1 << 16
	stop := errors.New("enough")
	n := 0
	err := open(t, text(t, one(p))).Samples(func(*gpusamples.Sample) error {
		if n++; n == 5000 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 5000 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestOtherFiles(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		isOther          bool
	}{
		{"empty", "", "the file is empty", true},
		{"lines", `{"record":"format","format_version":1}` + "\n", "it has no member rocprofiler-sdk-tool", true},
		{"a list", `[1]`, "found an array, expected an object", true},
		{"perf.data", "PERFILE2", `found 'P', expected an object`, true},
		{"cut before it is known", `{"a":[1`, "expected a comma", true},
		{"a large other one", `{"a":[` + strings.Repeat("1,", maxAhead) + `1],"rocprofiler-sdk-tool":[]}`, "it has no member rocprofiler-sdk-tool", true},
		{"samples as CSV", `"Sample_Timestamp","Exec_Mask","Dispatch_Id","Instruction","Instruction_Comment","Correlation_Id"` + "\n", "no addresses: record JSON: rocprofv3 --pc-sampling-beta-enabled", false},
		{"kernels as CSV", `"Kind","Agent_Id","Queue_Id","Stream_Id"` + "\n", "no samples: record JSON: rocprofv3", false},
		{"calls as CSV", `"Domain","Function","Process_Id"` + "\n", "no samples: record JSON: rocprofv3", false},
		{"rocpd", "SQLite format 3\x00\x10\x00", "a rocpd database: no release of ROCm writes samples", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, []byte(tt.text))
			_, err := Open(path)
			if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), tt.want) || errors.Is(err, gpusamples.ErrOtherForm) != tt.isOther {
				t.Errorf("%v", err)
			}
			if tt.isOther && !strings.HasPrefix(err.Error(), path+": not a file: ") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestURIs(t *testing.T) {
	for _, tt := range []struct {
		uri, path    string
		offset, size uint64
		wrong        string
	}{
		{"file:///a", "/a", 0, 0, ""},
		{"file:///a#offset=12288&size=8064", "/a", 12288, 8064, ""},
		{"file:///a?size=0x10&offset=010&x=1", "/a", 8, 16, ""},
		{"FILE:///a%20b%zz%4", "/a b%zz%4", 0, 0, ""},
		{"file:///a%23b#offset=1", "/a#b", 1, 0, ""},
		{"memory://12#offset=0x563c46cf5a40&size=32968", "", 0, 32968, ""},
		{"", "", 0, 7, ""},
		{"file://a", "", 0, 7, "expected an absolute path"},
		{"file:///a/../b", "", 0, 7, "does not climb by .."},
		{"file:///a/%2e%2e/b", "", 0, 7, "does not climb by .."},
		{"file:///a/..b", "/a/..b", 0, 0, ""},
		{"file:///a%00b", "", 0, 7, "without a byte 0"},
		{"file:///a#offset=0x10000000000000000", "", 0, 7, "offset is no number"},
		{"file:///a#size=1_0", "", 0, 7, "size is no number"},
		{"file:///a#size=-1", "", 0, 7, "size is no number"},
		{"file:///a#offset=18446744073709551615&size=2", "", 0, 7, "reach past the last byte"},
		{"http://a/b", "", 0, 7, "expected file://PATH or memory://PID"},
		{"/a", "", 0, 7, "expected file://PATH or memory://PID"},
	} {
		m := gpusamples.Module{URI: tt.uri, Size: 7}
		err := locate(&m)
		if m.Path != tt.path || m.Offset != tt.offset || m.Size != tt.size || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%q: %+v, %v", tt.uri, m, err)
		}
	}
}

func TestLanes(t *testing.T) {
	for _, tt := range []struct {
		lanes         int
		mask          uint64
		active, width uint32
	}{
		{64, ^uint64(0), 64, 64}, {64, 0xff, 8, 64}, {32, 0xff, 8, 32}, {32, 1 << 40, 1, 64}, {16, 3, 2, 0}, {64, 0, 0, 64},
	} {
		p := run()
		p.Agents[1].Lanes = tt.lanes
		p.Samples, p.Sample = 1, func(_ int, s *rocproftest.Sample) { *s = rocproftest.Sample{Object: 2, Offset: 0x1f40, Mask: tt.mask} }
		if s := collect(t, open(t, text(t, one(p))))[0]; s.ActiveLanes != tt.active || s.Lanes != tt.width || !s.HasLanes {
			t.Errorf("%+v: %d of %d", tt, s.ActiveLanes, s.Lanes)
		}
	}
}

// A graph launches many kernels by one call.
func TestDispatchesOfACallShareItsLaunch(t *testing.T) {
	p := run()
	p.HIP = []rocproftest.Call{{Function: "hipGraphLaunch", TID: 4711, Correlation: 1, Start: 5, End: 9}}
	p.HSA = nil
	for i := range p.Dispatches {
		p.Dispatches[i].Correlation = 1
	}
	f := open(t, text(t, one(p)))
	if len(f.facts.Launches) != 1 || f.facts.Launches[0].API != "hipGraphLaunch" || f.facts.Dispatches[2].Launch != 0 {
		t.Errorf("%+v", f.facts.Launches)
	}
}

func TestLaunchesWithoutCorrelation(t *testing.T) {
	p := run()
	p.HIP, p.HSA = nil, nil
	for i := range p.Dispatches {
		p.Dispatches[i].Correlation = 0
	}
	f := open(t, text(t, one(p)))
	if d := cmp.Diff([]gpusamples.Launch{{PID: 4711, TID: 4711}, {PID: 4711, TID: 4713}}, f.facts.Launches); d != "" {
		t.Error(d)
	}
}

// Calls that were made in each other without end, or by another thread's word, are no
// reason to go on for ever.
func TestAncestorsInACircle(t *testing.T) {
	p := run()
	p.HIP = []rocproftest.Call{
		{Function: "a", TID: 4711, Correlation: 1, Ancestor: 3, Start: 5, End: 9},
		{Function: "b", TID: 4711, Correlation: 3, Ancestor: 1, Start: 4, End: 9},
	}
	p.Markers = []rocproftest.Call{{Function: "roctxRangePushA", TID: 4711, Correlation: 7, Start: 4, End: 9}, {Function: "hidden", Correlation: 1}}
	f := open(t, text(t, one(p)))
	if len(f.Problems()) > 0 || f.facts.Launches[0].API == "" || f.facts.Launches[0].API == "hidden" || f.facts.Launches[2].API != "roctxRangePushA" {
		t.Errorf("%+v, problems %q", f.facts.Launches, f.Problems())
	}
}

// Of what is wrong nothing but itself is lost.
func TestProblems(t *testing.T) {
	good := string(text(t, one(run())))
	for _, tt := range []struct {
		name, from, to string
		want           []string
		samples        int
	}{
		{"a sample that is none", `"pc_sample_host_trap":[`, `"pc_sample_host_trap":[7,`, []string{"found a number, expected an object"}, 8},
		{"a sample without pc", `"pc":{`, `"pd":{`, []string{"pc_sample_host_trap[0]: has no record.pc.code_object_id"}, 7},
		{"an offset that is none", `"code_object_offset":8000`, `"code_object_offset":"8000"`, []string{"pc_sample_host_trap[0].record.pc.code_object_offset: found a string, expected a number"}, 7},
		{"a negative offset", `"code_object_offset":8000`, `"code_object_offset":-8000`, []string{"has no record.pc.code_object_offset"}, 7},
		{"a member twice", `"exec_mask":18446744073709551615`, `"exec_mask":1,"exec_mask":2`, []string{"record.exec_mask: the member is given twice"}, 7},
		{"a sample without mask", `"exec_mask":18446744073709551615,`, ``, []string{"1 of the 8 samples have no exec_mask: active lanes are told of none"}, 8},
		{"an array that is none", `"agents":[`, `"agents":3,"x":[`, []string{"agents: found a number, expected an array"}, 8},
		{"an object that is none", `"strings":{`, `"strings":[],"x":{`, []string{"strings: found an array, expected an object"}, 8},
		{"no pid", `"pid":4711`, `"pid":-4711`, []string{"metadata.pid: -4711, expected a whole number"}, 8},
		{"a module twice", `"code_objects":[`, `"code_objects":[{"code_object_id":2,"load_base":3},`, []string{"code object 2 is described twice, and differently: neither is used"}, 8},
		{"a kernel twice", `"kernel_symbols":[`, `"kernel_symbols":[{"kernel_id":2,"kernel_name":"x"},`, []string{"kernel 2 is described twice, and differently: neither is used"}, 8},
		{"a dispatch twice", `"kernel_dispatch":[`, `"kernel_dispatch":[{"dispatch_info":{"dispatch_id":3}},`, []string{"dispatch 3 is described twice: its samples are of neither"}, 8},
		{"an agent twice", `"agents":[`, `"agents":[{"id":{"handle":32602},"type":2,"name":"x"},`, []string{"agent 32602 is described twice, and differently: the first is used"}, 8},
		{"a call twice", `"hip_api":[`, `"hip_api":[{"correlation_id":{"internal":1},"thread_id":9},`, []string{"the call of correlation ID 1 is described twice, and differently: neither is used"}, 8},
		{"IDs that are missing", `"kernel_symbols":[`, `"kernel_symbols":[{},`, []string{"has no kernel_id"}, 8},
		{"a range that is none", fmt.Sprintf(`"load_base":%d`, 0x7bb600400000), `"load_base":18446744073709551615`, []string{"load_base 0xffffffffffffffff and load_size 0x44f1 reach past the last address"}, 8},
		{"a path that climbs", `file:///app/`, `file:///app/../`, []string{`code object 2: uri "file:///app/../my%20tests/vcopy#offset=12288&size=8064": expected a path that does not climb by ..: it is known by its name only`}, 8},
		{"a kernel outside", fmt.Sprintf(`"kernel_address":{"handle":%d}`, 0x7bb600401f40), `"kernel_address":{"handle":5}`, []string{"kernel _Z7vecCopyPdS_S_ii begins at 0x5, expected within the 0x44f1 bytes"}, 8},
		{"a string that is none", `"pc_sample_instructions":[`, `"pc_sample_instructions":[8,`, []string{"found a number, expected a string"}, 8},
		{"a long string", `"pc_sample_comments":["`, `"pc_sample_comments":["` + strings.Repeat("x", 70000), []string{"a string of 70031 bytes, expected at most 65536"}, 8},
		{"a large record", `"kernel_dispatch":[`, `"kernel_dispatch":[{"x":"` + strings.Repeat("y", maxRecord) + `"},`, []string{"a record of 1048584 bytes, expected at most 1048576"}, 8},
		{"a process that is none", `"rocprofiler-sdk-tool":[`, `"rocprofiler-sdk-tool":[4,`, []string{"rocprofiler-sdk-tool[0]: found a number, expected an object"}, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n := strings.Count(good, tt.from); n == 0 {
				t.Fatal("the text has no such place")
			}
			f := open(t, []byte(strings.Replace(good, tt.from, tt.to, 1)))
			if got := f.Problems(); len(got) != len(tt.want) || !strings.Contains(got[0], tt.want[0]) || !strings.HasPrefix(got[0], "test.json: ") {
				t.Errorf("problems %q", got)
			}
			if n := len(collect(t, f)); n != tt.samples || f.facts.Events[0].Samples != n {
				t.Errorf("%d samples, %+v", n, f.facts.Events)
			}
		})
	}
}

// A sample whose module is not known keeps its offset.
func TestSamplesOfModulesThatAreNotKnown(t *testing.T) {
	p := run()
	p.Objects = append(p.Objects, p.Objects[1])
	p.Objects[2].Size++
	p.Samples, p.Sample = 3, func(i int, s *rocproftest.Sample) {
		*s = rocproftest.Sample{Object: []uint64{9, 2, 1}[i], Offset: 0x9000, Mask: 1}
	}
	var problems []string
	for _, s := range collect(t, open(t, text(t, one(p)))) {
		problems = append(problems, s.Problem)
		if s.Module != -1 || !s.HasOffset || s.Offset != 0x9000 {
			t.Errorf("%+v", s)
		}
	}
	if d := cmp.Diff([]string{noObject, objectsDiffer, outsideObject}, problems); d != "" {
		t.Error(d)
	}
}

// A file that was cut is read as far as it goes.
func TestFilesThatAreCut(t *testing.T) {
	p := run()
	p.Samples = 100
	data := text(t, one(p))
	at := bytes.Index(data, []byte(`"pc_sample_host_trap"`))
	most := 0
	for size := at; size < len(data)-2; size += 7 {
		f := open(t, data[:size])
		got := collect(t, f)
		if n := len(got); n < most || len(f.Problems()) != 1 || !strings.HasSuffix(f.Problems()[0], ": the rest of the file is not read") {
			t.Fatalf("%d bytes: %d samples, problems %q", size, n, f.Problems())
		}
		if most = len(got); most > 0 && (got[0].Launch == nil || got[0].Launch.API == "" || got[0].Kernel < 0) {
			t.Fatalf("%+v", got[0])
		}
	}
	if most != 100 {
		t.Errorf("%d samples", most)
	}
}

// What is kept is bounded, whatever there is most of.
func TestWhatIsKeptIsBounded(t *testing.T) {
	data := text(t, one(run()))
	for kept := 0; kept < 20000; kept += 37 {
		f := &File{path: "test.json", data: data, maxKept: kept}
		if err := f.open(); err != nil {
			t.Fatal(err)
		}
		if f.kept > kept {
			t.Errorf("%d bytes of %d", f.kept, kept)
		}
		for _, s := range collect(t, f) {
			if s.Module >= len(f.facts.Modules) || s.LaunchIndex >= len(f.facts.Launches) {
				t.Errorf("%+v", s)
			}
		}
	}
	many := `{"rocprofiler-sdk-tool":[{"agents":[` + strings.Repeat("{},", 300) + `{}]}]}`
	if p := open(t, []byte(many)).Problems(); len(p) != maxProblems+1 || !strings.HasSuffix(p[maxProblems], "test.json: 201 more problems") {
		t.Errorf("%d problems, %q", len(p), p[len(p)-1])
	}
}

// An array in which nothing is right is not read to its end, but what stands behind it is.
func TestArraysInWhichAllIsWrong(t *testing.T) {
	const sample = `{"record":{"pc":{"code_object_id":0,"code_object_offset":16}}}`
	const begin, between, end = `{"rocprofiler-sdk-tool":[{"agents":[`, `{}],"buffer_records":{"pc_sample_host_trap":[`, `]}}]}`
	wrong := strings.Repeat("{},", maxWrong-1)
	for _, tt := range []struct {
		text             string
		samples, givenUp int
	}{
		{begin + between + wrong + sample + end, 1, 0},
		{begin + wrong + between + sample + end, 1, 1},
		{begin + wrong + between + wrong + "{}," + sample + end, 0, 2},
	} {
		f := open(t, []byte(tt.text))
		p := f.Problems()
		want := fmt.Sprintf("test.json: %d arrays have 1048576 wrong records each: what stands behind those is not read", tt.givenUp)
		if n := len(collect(t, f)); n != tt.samples || tt.givenUp > 0 != (p[len(p)-1] == want) || len(p) > maxProblems+2 {
			t.Errorf("%d samples, %q", n, p[len(p)-1])
		}
	}
}

// Of many stall reasons the first are told apart.
func TestManyStates(t *testing.T) {
	p := run()
	p.IsStochastic, p.Samples = true, 1000
	p.Sample = func(i int, s *rocproftest.Sample) {
		*s = rocproftest.Sample{Object: 2, Offset: 0x1f40, Reason: fmt.Sprintf("R%d", i)}
	}
	f := open(t, text(t, one(p)))
	got := collect(t, f)
	if len(f.facts.States) != gpusamples.MaxStates || got[254].State != 254 || got[999].State != -1 || len(f.Problems()) == 0 || len(f.states) > 2*gpusamples.MaxStates {
		t.Errorf("%d states, %d, problems %q", len(f.facts.States), got[999].State, f.Problems())
	}
}

func TestWholeNumbers(t *testing.T) {
	check := func(text string) {
		t.Helper()
		unsigned, err := strconv.ParseUint(strings.TrimPrefix(text, "-"), 10, 64)
		isNegative := strings.HasPrefix(text, "-")
		digits := strings.TrimLeft(text, "-")
		want := err == nil && strconv.FormatUint(unsigned, 10) == digits && (!isNegative || unsigned <= 1<<63)
		if isNegative {
			unsigned = -unsigned
		}
		for _, behind := range []string{"", ",", ".5", "}        "} {
			end, value, negative, ok := wholeNumber([]byte(text+behind), 0)
			if ok != want || ok && (value != unsigned || negative != isNegative || end != len(text)) {
				t.Errorf("%q before %q: %d up to %d, %v", text, behind, value, end, ok)
			}
		}
	}
	for _, text := range []string{"", "-", "0", "-0", "00", "01", "18446744073709551615", "18446744073709551616", "99999999999999999999", "-9223372036854775808", "-9223372036854775809", "0000000012345678"} {
		check(text)
	}
	for digits := 1; digits < 24; digits++ {
		check("12345678901234567890123456"[:digits])
		check("98765432109876543210987654"[:digits])
	}
}

// The shape of a record is all that stands between its values.
func TestShapesAreExact(t *testing.T) {
	s := (&File{}).newRecords(sampleFields, maxRecord)
	const record = `{"record":{"pc":{"code_object_id":2,"code_object_offset":16},"exec_mask":3,"snapshot":{"stall_reason":"A"}},"inst_index":-1}`
	if err := s.next((&File{data: []byte(record)}).reader(0)); err != nil || len(s.shapes) != 1 {
		t.Fatalf("%v, %d shapes", err, len(s.shapes))
	}
	for _, other := range []string{
		record[:len(record)-1], record[:20], strings.Replace(record, "3", "03", 1), strings.Replace(record, "3", "18446744073709551616", 1), strings.Replace(record, "3", "-9223372036854775809", 1),
		strings.Replace(record, "3", "3.0", 1), strings.Replace(record, "3", "3e1", 1), strings.Replace(record, "3", "-", 1), strings.Replace(record, "3", `"3"`, 1),
		strings.Replace(record, `"A"`, `"A\u0041"`, 1), strings.Replace(record, `"A"`, `"A`, 1), strings.Replace(record, `"A"`, "\"\x01\"", 1), strings.Replace(record, `"A"`, "\"\xff\"", 1),
		strings.Replace(record, `"A"`, `0`, 1), strings.Replace(record, `mask`, `mass`, 1),
	} {
		var v values
		if end, ok := s.shapes[0].read([]byte(other), 0, &v); ok {
			t.Errorf("%s has the shape, up to %d", other, end)
		}
	}
	var v values
	same := strings.NewReplacer("3", "18446744073709551615", "-1", "7", `"A"`, `""`).Replace(record)
	if end, ok := s.shapes[0].read([]byte(same), 0, &v); !ok || end != len(same) || v.numbers[sampleMask] != ^uint64(0) || v.numbers[sampleInstruction] != 7 || v.negative != 0 || len(v.text(sampleReason)) != 0 {
		t.Errorf("%v, %d, %+v", ok, end, v)
	}
}

// All of a record that is not read may have any value.
func TestEveryMemberOfASampleIsASlot(t *testing.T) {
	p := run()
	p.IsStochastic, p.Samples = true, 2
	s := (&File{}).newRecords(sampleFields, maxRecord)
	f := &File{path: "x", data: text(t, one(p))}
	at := bytes.Index(f.data, []byte(`{"record":`))
	if err := s.next(f.reader(at)); err != nil || len(s.shapes) != 1 {
		t.Fatal(err)
	}
	var numbers int
	var count func(v reflect.Value)
	count = func(v reflect.Value) {
		switch v := v.Interface().(type) {
		case map[string]any:
			for _, m := range v {
				count(reflect.ValueOf(m))
			}
		default:
			numbers++
		}
	}
	var record map[string]any
	if err := json.NewDecoder(bytes.NewReader(f.data[at:])).Decode(&record); err != nil {
		t.Fatal(err)
	}
	count(reflect.ValueOf(record))
	if len(s.shapes[0].parts) != numbers {
		t.Errorf("%d parts for %d values", len(s.shapes[0].parts), numbers)
	}
}
