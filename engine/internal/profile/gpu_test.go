// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// fakeFile is a file of samples in memory.
type fakeFile struct {
	facts   gpusamples.Facts
	samples func(yield func(*gpusamples.Sample) error) error
}

func (f *fakeFile) Facts() *gpusamples.Facts { return &f.facts }
func (f *fakeFile) Problems() []string       { return nil }
func (f *fakeFile) Close() error             { return nil }
func (f *fakeFile) Samples(yield func(*gpusamples.Sample) error) error {
	return f.samples(yield)
}

// samplesOf yields samples of a list.
func samplesOf(list ...gpusamples.Sample) func(yield func(*gpusamples.Sample) error) error {
	return func(yield func(*gpusamples.Sample) error) error {
		for i := range list {
			if err := yield(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// newGPUMaker is a Maker of profiles of GPU samples, with names.
func newGPUMaker(tb testing.TB) *Maker {
	tb.Helper()
	plugins, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(plugins.Close)
	library := code.NewLibrary(plugins, 0)
	tb.Cleanup(library.Close)
	store := object.NewStore()
	return &Maker{
		Shared: walk.NewShared(library, walk.Options{MaxFrames: 4096}), Plugins: plugins,
		Finder: func(string) object.Finder { return object.Finder{Store: store} },
	}
}

// profileOfFake is the profile of a file of samples alone.
func profileOfFake(tb testing.TB, f gpusamples.File, o trace.ProfileOptions) *trace.Profile {
	tb.Helper()
	k := newGPUMaker(tb)
	r := k.newRecording(nil)
	defer r.close()
	b := newProfileBuilder(r)
	if err := b.addOthers(tb.Context(), nil, nil, []gpusamples.File{f}, &o); err != nil {
		tb.Fatal(err)
	}
	b.name(tb.Context(), 1, nil)
	return b.profile()
}

// stackTexts are the stacks of a profile's samples, outermost first, each function
// with its line.
func stackTexts(p *trace.Profile) (texts []string) {
	for i := range p.Samples {
		var names []string
		for _, at := range p.StackFrames(nil, p.Samples[i].Stack) {
			f := &p.Frames[at]
			for _, s := range f.Symbols {
				names = append(names, fmt.Sprintf("%s:%d", s.Function, s.Line))
			}
			if len(f.Symbols) == 0 {
				names = append(names, fmt.Sprintf("%#x", f.PC))
			}
		}
		slices.Reverse(names)
		texts = append(texts, strings.Join(names, ";"))
	}
	return texts
}

const grade = "../../../examples/gpu-profile/grade.co"

// told is a sample of which only what is given is told.
func told(s gpusamples.Sample) gpusamples.Sample {
	s.PID, s.State, s.LaunchIndex, s.Weight = -1, -1, -1, 1
	return s
}

// A wave stands on the kernel that was dispatched: where its code object is not
// there, and where it is in another function.
func TestWavesStandOnTheirKernel(t *testing.T) {
	path, err := filepath.Abs(grade)
	if err != nil {
		t.Fatal(err)
	}
	facts := gpusamples.Facts{
		Path: "x", Form: "rocprofv3", Events: []gpusamples.Event{{Name: gpusamples.DefaultEvent, Samples: 5}},
		Modules: []gpusamples.Module{
			{PID: -1, Path: path, Arch: "amdgpu", Segments: []trace.Segment{{Address: 0, Size: 0x4000, Start: 0x7f0000000000}}},
			{PID: -1, URI: "memory://1#offset=0x10&size=99", Size: 99, Arch: "amdgpu", Segments: []trace.Segment{{Address: 0, Size: 0x4000, Start: 0x7f0000100000}}},
		},
		Kernels: []gpusamples.Kernel{
			{Name: "grade", Module: 0, Entry: 0x1600, HasEntry: true}, {Name: "_Z4madePi", Module: 1, Entry: 0x1000, HasEntry: true},
			{Name: "nowhere", Module: -1}, {Name: "other", Module: 0, Entry: 0x1500, HasEntry: true},
		},
	}
	lines := []gpusamples.Line{{File: "/a/inner.h", Line: 7}, {File: "/a/k.cl", Line: 9}}
	f := &fakeFile{facts: facts, samples: samplesOf(
		told(gpusamples.Sample{Module: 0, Kernel: 0, Offset: 0x1604, HasOffset: true, Instruction: "s_nop 0"}),
		told(gpusamples.Sample{Module: 0, Kernel: 3, Offset: 0x1604, HasOffset: true}), // not in the kernel
		told(gpusamples.Sample{Module: 1, Kernel: 1, Offset: 0x1010, HasOffset: true, Instruction: "s_endpgm", Source: lines}),
		told(gpusamples.Sample{Module: 1, Kernel: 1, Offset: 0x1014, HasOffset: true, Instruction: "s_endpgm"}),
		told(gpusamples.Sample{Module: -1, Kernel: 2, Offset: 0x20, InKernel: true}),
		told(gpusamples.Sample{Module: -1, Kernel: 2, Offset: 1, HasOffset: true, Problem: "no line describes its module"}),
	)}
	p := profileOfFake(t, f, trace.ProfileOptions{})
	first := stackTexts(p)[0]
	if !strings.HasPrefix(first, "grade:") || strings.Contains(first, ";") {
		t.Errorf("in the kernel: %s", first)
	}
	want := []string{
		first, "other:0;" + first, "made(int*):0;k.cl:9 [rocprofv3]:9;inner.h:7 [rocprofv3]:7", "made(int*):0;s_endpgm [rocprofv3]:0", "nowhere:0", "nowhere:0",
	}
	if d := cmp.Diff(want, stackTexts(p)); d != "" {
		t.Errorf("stacks (-want +got):\n%s", d)
	}
	var kernels []string
	for _, k := range p.Kernels {
		kernels = append(kernels, k.Name)
	}
	if d := cmp.Diff([]string{"grade", "other", "made(int*)", "nowhere"}, kernels); d != "" {
		t.Errorf("kernels (-want +got):\n%s", d)
	}
	for i := range p.Frames {
		if f := &p.Frames[i]; !f.Device || f.Kernel {
			t.Errorf("frame %+v", f)
		}
	}
	if f := p.Frames[p.StackFrames(nil, p.Samples[0].Stack)[0]]; f.Instruction != "s_nop 0" || f.NamedBy != "" || f.Dispatched != 0 {
		t.Errorf("frame %+v", f)
	}
	if f := p.Frames[p.StackFrames(nil, p.Samples[2].Stack)[0]]; f.NamedBy != "rocprofv3" || f.Dispatched != -1 || p.Modules[f.Module].Path != "memory://1#offset=0x10&size=99" {
		t.Errorf("frame %+v", f)
	}
}

// Code objects that were in memory are found among those that are given, where they
// have the same size and the same kernels at the same places.
func TestObjectsThatAreGivenStandForThoseInMemory(t *testing.T) {
	o, err := object.Open(grade)
	if err != nil {
		t.Fatal(err)
	}
	size, entry := uint64(len(o.Data())), functionsOf(o)["grade"]
	o.Close()
	for _, tt := range []struct {
		name, problem string
		size, entry   uint64
		kernel        string
		isFound       bool
	}{
		{"the same", "", size, entry, "grade", true},
		{"of another size", "bytes, expected", size + 8, entry, "grade", false},
		{"of no size", "", 0, entry, "grade", true},
		{"without the kernel", "it has no kernel grade2", size, entry, "grade2", false},
		{"with the kernel elsewhere", "its kernel grade is at", size, entry + 4, "grade", false},
	} {
		f := &fakeFile{facts: gpusamples.Facts{
			Path: "x", Form: "rocprofv3", Events: []gpusamples.Event{{Name: gpusamples.DefaultEvent, Samples: 1}},
			Modules: []gpusamples.Module{{PID: -1, URI: "memory://1", Size: tt.size, Arch: "amdgpu", Segments: []trace.Segment{{Size: 0x4000, Start: 0x7f0000000000}}}},
			Kernels: []gpusamples.Kernel{{Name: tt.kernel, Module: 0, Entry: tt.entry, HasEntry: true}},
		}, samples: samplesOf(told(gpusamples.Sample{Module: 0, Kernel: 0, Offset: entry + 4, HasOffset: true}))}
		p := profileOfFake(t, f, trace.ProfileOptions{Objects: []string{grade}})
		if text := stackTexts(p)[0]; strings.Contains(text, ";") == tt.isFound {
			t.Errorf("%s: %s", tt.name, text)
		}
		problem := p.Modules[0].Problem
		if !strings.Contains(problem, tt.problem) || tt.isFound != (len(p.Problems) == 0) {
			t.Errorf("%s: the module's problem is %q, the profile's %q", tt.name, problem, p.Problems)
		}
	}
}

// bundle is an offload bundle with one code object (Clang Offload Bundler, "Bundled
// Binary File Layout").
func bundle(code []byte) []byte {
	const name, start = "hipv4-amdgcn-amd-amdhsa--gfx90a", 4096
	b := binary.LittleEndian.AppendUint64([]byte("__CLANG_OFFLOAD_BUNDLE__"), 1)
	b = binary.LittleEndian.AppendUint64(b, start)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(code)))
	b = append(binary.LittleEndian.AppendUint64(b, uint64(len(name))), name...)
	return append(append(b, make([]byte, start-len(b))...), code...)
}

// A code object may be a part of a file, by its offset or among what is inside.
func TestCodeObjectsInsideOfFiles(t *testing.T) {
	code, err := os.ReadFile(grade)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inside := write("program", append(make([]byte, 12288), append(code, "and more"...)...))
	bundled, text := write("fat.hipfb", bundle(code)), write("text", []byte("no code"))
	size := uint64(len(code))
	for _, tt := range []struct {
		name    string
		module  gpusamples.Module
		objects []string
		problem string
	}{
		{"a part of a file", gpusamples.Module{Path: inside, Offset: 12288, Size: size, URI: "file://x#offset=12288"}, nil, ""},
		{"a part that is something else", gpusamples.Module{Path: inside, Offset: 12280, Size: size, URI: "file://x#offset=12280"}, nil, "was not used: "},
		{"a part beyond the file's end", gpusamples.Module{Path: inside, Offset: 12288, Size: size + 9, URI: "file://x"}, nil, "before the code object of"},
		{"a part at the end of all numbers", gpusamples.Module{Path: inside, Offset: ^uint64(0), Size: 2, URI: "file://x"}, nil, "before the code object of"},
		{"a file that is gone, found in what was given", gpusamples.Module{Path: dir + "/gone", Offset: 12288, Size: size, URI: "file://gone"}, []string{bundled}, ""},
		{"memory, found in a bundle", gpusamples.Module{URI: "memory://1", Size: size}, []string{bundled}, ""},
	} {
		tt.module.PID, tt.module.Arch = -1, "amdgpu"
		tt.module.Segments = []trace.Segment{{Size: 0x4000, Start: 0x7f0000000000}}
		f := &fakeFile{facts: gpusamples.Facts{
			Path: "x", Form: "rocprofv3", Events: []gpusamples.Event{{Name: gpusamples.DefaultEvent, Samples: 1}},
			Modules: []gpusamples.Module{tt.module}, Kernels: []gpusamples.Kernel{{Name: "grade", Module: 0, Entry: 0x1600, HasEntry: true}},
		}, samples: samplesOf(told(gpusamples.Sample{Module: 0, Kernel: 0, Offset: 0x1604, HasOffset: true}))}
		p := profileOfFake(t, f, trace.ProfileOptions{Objects: tt.objects})
		if text := stackTexts(p)[0]; strings.Contains(text, ";") != (tt.problem != "") || !strings.HasPrefix(text, "grade:") {
			t.Errorf("%s: %s; %s", tt.name, text, p.Modules[0].Problem)
		}
		if problem := p.Modules[0].Problem; tt.problem != "" && !strings.Contains(problem, tt.problem) {
			t.Errorf("%s: the module's problem is %q", tt.name, problem)
		}
	}
	k := newGPUMaker(t)
	r := k.newRecording(nil)
	defer r.close()
	if _, err := newProfileBuilder(r).openProvided([]string{text}); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("an object that is text: %v", err)
	}
	if self, err := os.Executable(); err != nil {
		t.Error(err)
	} else if _, err := newProfileBuilder(r).openProvided([]string{self}); err == nil || !strings.Contains(err.Error(), "there is no code of an accelerator in it") {
		t.Errorf("an object of the CPU: %v", err)
	}
}

// Dispatches are samples of an event of their own, as long as they ran.
func TestDispatchesAreSamplesOfTheirTime(t *testing.T) {
	f := &fakeFile{facts: gpusamples.Facts{
		Path: "x", Form: "rocprofv3", Processes: []gpusamples.Process{{PID: 5, Name: "host"}}, Kernels: []gpusamples.Kernel{{Name: "k", Module: -1}},
		Dispatches: []gpusamples.Dispatch{
			{ID: "1", PID: 5, Kernel: 0, Start: 100, End: 150, HasTime: true, Launch: 0}, {ID: "2", PID: 5, Kernel: 0, Launch: -1},
			{ID: "3", PID: 5, Kernel: 0, Start: 150, End: 140, HasTime: true, Launch: -1}, {ID: "4", PID: 5, Kernel: -1, Start: 1, End: 2, HasTime: true, Launch: -1},
			{ID: "5", PID: 5, Kernel: 0, Start: 200, End: 207, HasTime: true, Launch: -1},
		},
		Launches: []gpusamples.Launch{{PID: 5, TID: 6, Names: []string{"inner", "main"}}},
	}, samples: samplesOf()}
	p := profileOfFake(t, f, trace.ProfileOptions{})
	if d := cmp.Diff([]trace.ProfileEvent{{Name: trace.KernelTimeEvent, Unit: "nanoseconds", Device: true}}, p.Events); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]trace.ProfileKernel{{Name: "k", Module: -1, Dispatches: 4, Time: 57, HasTime: true}}, p.Kernels); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"main:0;inner:0;k:0", "k:0"}, stackTexts(p)); d != "" {
		t.Error(d)
	}
	if s := p.Samples[0]; s.Weight != 50 || s.Time != 100 || p.Threads[s.Thread] != (trace.ProfileThread{PID: 5, TID: 6, Comm: "host"}) || s.Launch != trace.EvidenceRecorded {
		t.Errorf("%+v of %+v", s, p.Threads[s.Thread])
	}
	if s := p.Samples[1]; s.Weight != 7 || p.Threads[s.Thread] != (trace.ProfileThread{PID: 5, TID: -1, Comm: "host"}) || s.Launch != trace.EvidenceUnknown {
		t.Errorf("%+v of %+v", s, p.Threads[s.Thread])
	}
}

// cpuSamples are samples of one thread: of a clock (event 0) and of probes.
func cpuSamples(at map[uint64]int16) *callStacks {
	b := &profileBuilder{}
	b.out.Events = make([]trace.ProfileEvent, 4)
	b.out.Threads = []trace.ProfileThread{{PID: 1, TID: 2}}
	c := &callStacks{builder: b, probes: []string{"", "hipLaunchKernel", "hsa_signal_store", "hipLaunchKernel__return"}, samples: map[threadID][]int{}}
	times := make([]uint64, 0, len(at))
	for t := range at {
		times = append(times, t)
	}
	slices.Sort(times)
	for i, t := range times {
		b.out.Samples = append(b.out.Samples, trace.ProfileSample{Time: t, Event: at[t], Stack: 1})
		c.samples[threadID{1, 2}] = append(c.samples[threadID{1, 2}], i)
	}
	return c
}

func TestALaunchIsFoundAmongTheSamplesOfItsThread(t *testing.T) {
	for _, tt := range []struct {
		name     string
		at       map[uint64]int16
		window   uint64
		tid      int
		api      string
		want     uint64
		evidence trace.LaunchEvidence
	}{
		{"the probe of the call", map[uint64]int16{1000: 1}, 0, 2, "hipLaunchKernel", 1000, trace.EvidenceProbe},
		{"at its end", map[uint64]int16{1100: 1}, 0, 2, "hipLaunchKernel", 1100, trace.EvidenceProbe},
		{"as it returns", map[uint64]int16{1050: 3}, 0, 2, "hipLaunchKernel", 1050, trace.EvidenceProbe},
		{"after the runtime's own", map[uint64]int16{1020: 2, 1050: 1}, 0, 2, "hipLaunchKernel", 1050, trace.EvidenceProbe},
		{"the runtime's own alone", map[uint64]int16{1020: 2}, 0, 2, "hipLaunchKernel", 1020, trace.EvidenceProbe},
		{"a probe before", map[uint64]int16{999: 1}, 0, 2, "hipLaunchKernel", 0, trace.EvidenceUnknown},
		{"a probe behind", map[uint64]int16{1101: 1}, 0, 2, "hipLaunchKernel", 0, trace.EvidenceUnknown},
		{"a clock", map[uint64]int16{1050: 0}, 0, 2, "hipLaunchKernel", 0, trace.EvidenceUnknown},
		{"a clock in the window", map[uint64]int16{1050: 0}, 10, 2, "hipLaunchKernel", 1050, trace.EvidenceNear},
		{"the nearest before", map[uint64]int16{900: 0, 995: 0, 1110: 0}, 10, 2, "x", 995, trace.EvidenceNear},
		{"the nearest behind", map[uint64]int16{991: 0, 1108: 0}, 10, 2, "x", 1108, trace.EvidenceNear},
		{"at the window's end", map[uint64]int16{990: 0}, 10, 2, "x", 990, trace.EvidenceNear},
		{"out of the window", map[uint64]int16{989: 0, 1111: 0}, 10, 2, "x", 0, trace.EvidenceUnknown},
		{"another thread's", map[uint64]int16{1050: 1}, 10, 3, "hipLaunchKernel", 0, trace.EvidenceUnknown},
	} {
		c := cpuSamples(tt.at)
		c.window = tt.window
		at, evidence := c.find(&gpusamples.Launch{PID: 1, TID: tt.tid, API: tt.api, Time: 1000, End: 1100, HasTime: true, HasEnd: true})
		if evidence != tt.evidence || evidence != trace.EvidenceUnknown && c.time(at) != tt.want {
			t.Errorf("%s: sample %d, %v; expected %d, %v", tt.name, at, evidence, tt.want, tt.evidence)
		}
	}
}

func TestProbesAreKnownByTheirNames(t *testing.T) {
	for _, tt := range []struct {
		probe, function string
		want            bool
	}{
		{"hipLaunchKernel", "hipLaunchKernel", true}, {"hipLaunchKernel_1", "hipLaunchKernel", true}, {"hipLaunchKernel__return", "hipLaunchKernel", true},
		{"hipLaunchKernelExC", "hipLaunchKernel", false}, {"hipLaunch", "hipLaunchKernel", false}, {"hipLaunchKernel", "", false}, {"", "", false},
	} {
		if got := isOf(tt.probe, tt.function); got != tt.want {
			t.Errorf("%s of %s: %v", tt.probe, tt.function, got)
		}
	}
}

// How long a machine slept is found from probes that lie in launches, also where
// some of both are missing, and not where they prove nothing.
func TestTheDifferenceOfClocksIsFoundFromProbes(t *testing.T) {
	const slept = uint64(7 * time.Hour)
	starts := []uint64{1000, 5000, 9100, 20_000, 21_000, 33_000, 41_000, 57_000}
	launches := func(ahead uint64, without ...int) (list []gpusamples.Launch) {
		for i, s := range starts {
			if !slices.Contains(without, i) {
				list = append(list, gpusamples.Launch{PID: 1, TID: 2, API: "hipLaunchKernel", Time: s + ahead, End: s + 40 + ahead, HasTime: true, HasEnd: true})
			}
		}
		return list
	}
	probes := func(without ...int) map[uint64]int16 {
		at := map[uint64]int16{500: 0, 1500: 2, 30_000: 0}
		for i, s := range starts {
			if !slices.Contains(without, i) {
				at[s+3] = 1
			}
		}
		return at
	}
	for _, tt := range []struct {
		name     string
		at       map[uint64]int16
		launches []gpusamples.Launch
		ahead    uint64
		ok       bool
	}{
		{"never slept", probes(), launches(0), 0, true},
		{"never slept, one probe", probes(1, 2, 3, 4, 5, 6, 7), launches(0), 0, true},
		{"slept", probes(), launches(slept), slept, true},
		{"slept, the first probes missing", probes(0, 1), launches(slept), slept, true},
		{"slept, the first launches missing", probes(), launches(slept, 0, 1, 2), slept, true},
		{"slept, a probe missing among them", probes(5), launches(slept), slept, true},
		{"slept, few probes", probes(3, 4, 5, 6, 7), launches(slept), 0, false},
		{"no probes", map[uint64]int16{1000: 0, 5000: 0}, launches(0), 0, false},
		{"no launches", probes(), nil, 0, false},
		{"awake before it was started", probes(), launches(^uint64(399)), 0, false},
	} {
		c := cpuSamples(tt.at)
		ahead, ok := c.clockAhead(tt.launches)
		if ok != tt.ok || ahead > tt.ahead+40 || ahead+40 < tt.ahead {
			t.Errorf("%s: ahead by %d, %v; expected %d, %v", tt.name, ahead, ok, tt.ahead, tt.ok)
		}
	}
	// Launches like clockwork lie on probes in several ways.
	var regular []gpusamples.Launch
	at := map[uint64]int16{}
	for i := range uint64(20) {
		at[1000*i+3] = 1
		regular = append(regular, gpusamples.Launch{PID: 1, TID: 2, API: "hipLaunchKernel", Time: 1000*i + slept, End: 1000*i + 40 + slept, HasTime: true, HasEnd: true})
	}
	if ahead, ok := cpuSamples(at).clockAhead(regular); ok {
		t.Errorf("clockwork: ahead by %d", ahead)
	}
}

// BenchmarkGPUSamples adds samples of 1,000 places, 1,000 dispatches and 10 kernels:
// an operation is a sample.
func BenchmarkGPUSamples(b *testing.B) {
	path, err := filepath.Abs(grade)
	if err != nil {
		b.Fatal(err)
	}
	facts := gpusamples.Facts{
		Path: "x", Form: "rocprofv3", Clock: "CLOCK_BOOTTIME", Events: []gpusamples.Event{{Name: gpusamples.DefaultEvent, Samples: b.N, Lanes: true}},
		Modules: []gpusamples.Module{{PID: -1, Path: path, Arch: "amdgpu", Segments: []trace.Segment{{Size: 0x4000, Start: 0x7f0000000000}}}},
	}
	for i := range 10 {
		facts.Kernels = append(facts.Kernels, gpusamples.Kernel{Name: fmt.Sprint("k", i), Module: 0, Entry: 0x1600 + uint64(i)*16, HasEntry: true})
	}
	for i := range 1000 {
		facts.Dispatches = append(facts.Dispatches, gpusamples.Dispatch{PID: 1, Kernel: i % 10, Start: 1, End: 2, HasTime: true, Launch: i})
		facts.Launches = append(facts.Launches, gpusamples.Launch{PID: 1, TID: i % 4, Time: uint64(i), HasTime: true})
	}
	f := &fakeFile{facts: facts, samples: func(yield func(*gpusamples.Sample) error) error {
		s := told(gpusamples.Sample{Module: 0, HasOffset: true, HasLanes: true, Lanes: 64, HasTime: true})
		for i := range b.N {
			at := i * 7 % 1000
			s.LaunchIndex, s.Kernel, s.Offset = at, at%10, 0x1600+uint64(i*31%64)*4
			s.Launch = &facts.Launches[at]
			if err := yield(&s); err != nil {
				return err
			}
		}
		return nil
	}}
	b.ReportAllocs()
	b.ResetTimer()
	profileOfFake(b, f, trace.ProfileOptions{})
}
