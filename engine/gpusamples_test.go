// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/jsonlines"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const gpuExample = "../examples/gpu-profile/"

// profileOf makes a profile of a recording, where there is one, and of files of
// GPU samples.
func profileOf(t testing.TB, o Options, recording string, gpu ...string) *trace.Profile {
	t.Helper()
	return profileBy(t, gpuEngine(t, o), recording, gpu...)
}

func gpuEngine(t testing.TB, o Options) *Engine {
	t.Helper()
	o.Plugins = plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New(), visa.New()}}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func profileBy(t testing.TB, e *Engine, recording string, gpu ...string) *trace.Profile {
	t.Helper()
	p, err := e.Profile(t.Context(), recording, trace.ProfileOptions{Jobs: 1, GPU: gpu})
	if err != nil {
		t.Fatal(err)
	}
	if recording != "" {
		checkParts(t, e, recording, trace.ProfileOptions{Jobs: 1, GPU: gpu}, p)
	}
	return p
}

// gpuFile writes a file of GPU samples in a folder.
func gpuFile(t testing.TB, dir, clock string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, "gpu.jsonl")
	text := fmt.Sprintf(`{"record":"format","format_version":1,"clock":"%s"}`, clock) + "\n" + strings.Join(lines, "\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sampleText is a sample in short: of each frame, innermost first, its functions
// and lines, or else its address and module, and how it was found; then why the
// stack ends.
func sampleText(p *trace.Profile, s *trace.ProfileSample) string {
	var out []string
	for _, i := range p.StackFrames(nil, s.Stack) {
		f := &p.Frames[i]
		text := ""
		for _, y := range f.Symbols {
			text += fmt.Sprintf("%s:%d ", y.Function, y.Line)
		}
		if text == "" {
			text = fmt.Sprintf("%#x ", f.PC)
			if f.Module >= 0 {
				text += fmt.Sprintf("%s+%#x ", p.Modules[f.Module].Path, f.ModuleOffset)
			}
		}
		out = append(out, text+string(f.FoundBy))
	}
	return strings.Join(append(out, string(p.Stops[s.Stop].Reason)), "; ")
}

// gpuTexts are the samples of a profile that has no others.
func gpuTexts(p *trace.Profile) (texts []string) {
	for i := range p.Samples {
		texts = append(texts, sampleText(p, &p.Samples[i]))
	}
	return texts
}

// The example's file is read once more here, by other means.
func TestSamplesOfAWaveStandOnTheStackOfTheirLaunch(t *testing.T) {
	alone := profileOf(t, Options{}, gpuExample+"cpu.data")
	p := profileOf(t, Options{}, gpuExample+"cpu.data", gpuExample+"gpu.jsonl")
	if len(p.Problems) > 0 {
		t.Errorf("problems %q", p.Problems)
	}
	events := []trace.ProfileEvent{
		{Name: "cpu-clock", Unit: "nanoseconds", Meaning: "cpu-clock"}, {Name: "probe_host:hipLaunchKernel", Unit: "count"},
		{Name: gpusamples.DefaultEvent, Unit: "count", Lanes: true, Device: true},
	}
	if d := cmp.Diff(events, p.Events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	// The CPU's samples are unchanged.
	n := len(alone.Samples)
	if d := cmp.Diff(gpuTexts(alone), gpuTexts(p)[:n]); d != "" || n == 0 {
		t.Errorf("%d samples of the CPU (-alone +joined):\n%s", n, d)
	}
	text, err := os.ReadFile(gpuExample + "gpu.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Record string   `json:"record"`
		ID     int      `json:"id"`
		PID    int      `json:"pid"`
		Time   uint64   `json:"time"`
		Offset string   `json:"module_offset"`
		Mask   string   `json:"exec_mask"`
		Frames []string `json:"frames"`
		By     struct {
			Launch int `json:"launch"`
		} `json:"launched_by"`
	}
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	launches := map[int]line{}
	places := map[string]int{}
	at := n
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Record == "launch" {
			launches[l.ID] = l
		}
		if l.Record != "sample" {
			continue
		}
		if at == len(p.Samples) {
			t.Fatalf("%d samples of waves, and one at least is missing", at-n)
		}
		s := &p.Samples[at]
		at++
		launch := launches[l.By.Launch]
		if th := p.Threads[s.Thread]; th.PID != launch.PID || th.TID != launch.PID || th.Comm != "host" {
			t.Errorf("sample %d is of %+v", at, th)
		}
		if s.Event != 2 || s.Launch != trace.EvidenceRecorded || s.Time != l.Time || s.Weight != 1 || int(s.ActiveLanes) != bits.OnesCount64(number(l.Mask)) {
			t.Errorf("sample %d is %+v of %+v", at, s, l)
		}
		frames := p.StackFrames(nil, s.Stack)
		top := &p.Frames[frames[0]]
		if len(frames) != 1+len(launch.Frames) || top.ModuleOffset != number(l.Offset) || !top.Exact || top.FoundBy != trace.ByContext || p.Modules[top.Module].Path != "/example/grade.co" ||
			top.Symbols[len(top.Symbols)-1].Function != "grade" {
			t.Errorf("sample %d: %s", at, sampleText(p, s))
		}
		for i, pc := range launch.Frames {
			if f := &p.Frames[frames[i+1]]; f.PC != number(pc) || f.FoundBy != trace.ByLaunch || f.Exact || p.Modules[f.Module].Path != "/example/host" {
				t.Errorf("sample %d: %s, expected a frame at %s", at, sampleText(p, s), pc)
			}
		}
		text := sampleText(p, s)
		_, launchers, _ := strings.Cut(text, " context; ")
		places[launchers]++
	}
	if at != len(p.Samples) {
		t.Errorf("%d samples of waves, %d in the file", len(p.Samples)-n, at-n)
	}
	want := []string{
		"hipLaunchKernel:70 launch; launch:78 launch; grade_all:105 launch; main:117 launch; _start:0 launch; end-of-stack",
		"hipLaunchKernel:70 launch; launch:78 launch; grade_again:111 launch; main:119 launch; _start:0 launch; end-of-stack",
	}
	for _, w := range want {
		if places[w] == 0 {
			t.Errorf("no stack ends in %s: %v", w, places)
		}
	}
	if len(places) != len(want) {
		t.Errorf("stacks %v", places)
	}
}

// functionsOf are the functions of a sample's stack, innermost first.
func functionsOf(p *trace.Profile, s *trace.ProfileSample) string {
	var names []string
	for _, i := range p.StackFrames(nil, s.Stack) {
		for _, y := range p.Frames[i].Symbols {
			names = append(names, y.Function)
		}
	}
	return strings.Join(names, "; ")
}

// without is the example's file of samples after a change of its lines.
func without(t *testing.T, change func(line string) string) string {
	t.Helper()
	text, err := os.ReadFile(gpuExample + "gpu.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	grade, err := filepath.Abs(gpuExample + "grade.co")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.ReplaceAll(string(text), "/example/grade.co", grade), "\n")
	for i, l := range lines {
		lines[i] = change(l)
	}
	path := filepath.Join(t.TempDir(), "gpu.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var framesOfLaunch = regexp.MustCompile(`"frames":\[[^]]*\]`)

// A profiler that takes no stacks says when its launches were. Those that a probe
// sampled are the same ones as a profiler that takes them has.
func TestLaunchesWithoutStacksStandOnTheProbesOfTheirCalls(t *testing.T) {
	recorded := profileOf(t, Options{}, gpuExample+"cpu.data", gpuExample+"gpu.jsonl")
	noFrames := func(line string) string { return framesOfLaunch.ReplaceAllString(line, `"frames":[]`) }
	p := profileOf(t, Options{}, gpuExample+"cpu.data", without(t, noFrames))
	if len(p.Problems) > 0 || len(p.Samples) != len(recorded.Samples) {
		t.Fatalf("%d samples of %d, problems %q", len(p.Samples), len(recorded.Samples), p.Problems)
	}
	joined := 0
	for i := range p.Samples {
		s, r := &p.Samples[i], &recorded.Samples[i]
		if !p.Events[s.Event].Device {
			continue
		}
		joined++
		if got, want := functionsOf(p, s), functionsOf(recorded, r); got != want || s.Launch != trace.EvidenceProbe || p.Stops[s.Stop].Reason != trace.StopOutermost || s.Time != r.Time {
			t.Errorf("sample %d: %v %s\nexpected %s", i, s.Launch, got, want)
		}
	}
	if joined != 150 {
		t.Errorf("%d samples of waves", joined)
	}

	// As if the machine had slept for an hour: its clock is found again.
	const slept = 3600_000_000_000
	times := regexp.MustCompile(`"(time|end)":([0-9]+)`)
	later := func(line string) string {
		return times.ReplaceAllStringFunc(noFrames(line), func(m string) string {
			name, digits, _ := strings.Cut(m, ":")
			n, err := strconv.ParseUint(digits, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s:%d", name, n+slept)
		})
	}
	woken := profileOf(t, Options{}, gpuExample+"cpu.data", without(t, later))
	for i := range woken.Samples {
		s := &woken.Samples[i]
		if d := int64(s.Time - p.Samples[i].Time); s.Launch != p.Samples[i].Launch || functionsOf(woken, s) != functionsOf(p, &p.Samples[i]) || d > 1e6 || d < -1e6 {
			t.Fatalf("sample %d after sleep: %v %s, %d ns later", i, s.Launch, functionsOf(woken, s), d)
		}
	}

	// Another clock is refused with what to record.
	other := func(line string) string {
		return strings.ReplaceAll(noFrames(line), "CLOCK_BOOTTIME", "CLOCK_REALTIME")
	}
	e := gpuEngine(t, Options{})
	_, err := e.Profile(t.Context(), gpuExample+"cpu.data", trace.ProfileOptions{GPU: []string{without(t, other)}})
	if err == nil || !strings.Contains(err.Error(), "by CLOCK_REALTIME, those of "+gpuExample+"cpu.data by CLOCK_MONOTONIC: launches cannot be joined to stacks: record those with `perf record -k CLOCK_REALTIME`") {
		t.Errorf("another clock: %v", err)
	}
}

// What rocprofv3 would have written of the example's run gives the profile that its
// lines of JSON give, but that the lines have no times of dispatches, and the stacks of
// launches themselves.
func TestOneRunIsOneProfileInAllForms(t *testing.T) {
	lines := profileOf(t, Options{}, gpuExample+"cpu.data", gpuExample+"gpu.jsonl")
	p := profileOf(t, Options{}, gpuExample+"cpu.data", gpuExample+"gpu_results.json")
	if len(p.Problems) > 0 {
		t.Errorf("problems %q", p.Problems)
	}
	type sample struct {
		Event, Stack  string
		Time, Weight  uint64
		Lanes         uint16
		Thread        trace.ProfileThread
		Kernel, Width string
	}
	kernelOf := func(p *trace.Profile, s *trace.ProfileSample) (name, width string) {
		for _, i := range p.StackFrames(nil, s.Stack) {
			if k := p.Frames[i].Dispatched; k >= 0 {
				return p.Kernels[k].Name, fmt.Sprint(p.Kernels[k].Lanes)
			}
		}
		return "", ""
	}
	texts := func(p *trace.Profile, evidence trace.LaunchEvidence) (all []sample, dispatches int) {
		for i := range p.Samples {
			s := &p.Samples[i]
			if e := &p.Events[s.Event]; e.Device && s.Launch != evidence {
				t.Errorf("sample %d of %s: %v", i, e.Name, s.Launch)
			}
			if p.Events[s.Event].Name == trace.KernelTimeEvent {
				dispatches++
				if stack := functionsOf(p, s); s.Weight != 228*500 || !strings.HasPrefix(stack, "grade; hipLaunchKernel; launch; grade_") {
					t.Errorf("dispatch of %d ns: %s", s.Weight, stack)
				}
				continue
			}
			kernel, width := kernelOf(p, s)
			all = append(all, sample{p.Events[s.Event].Name, functionsOf(p, s), s.Time, s.Weight, s.ActiveLanes, p.Threads[s.Thread], kernel, width})
		}
		return all, dispatches
	}
	want, none := texts(lines, trace.EvidenceRecorded)
	got, dispatches := texts(p, trace.EvidenceProbe)
	if d := cmp.Diff(want, got); d != "" || none != 0 || dispatches != 10 {
		t.Errorf("%d and %d dispatches (-lines +rocprofv3):\n%s", none, dispatches, d)
	}
	if k := p.Kernels[0]; k.Dispatches != 10 || k.Time != 10*228*500 || lines.Kernels[0].Dispatches != 10 || lines.Kernels[0].HasTime {
		t.Errorf("kernels %+v and %+v", k, lines.Kernels[0])
	}
	// Without the recording of the CPU the same waves stand on their kernel.
	alone := profileOf(t, Options{}, "", gpuExample+"gpu_results.json")
	for i := range alone.Samples {
		if s := &alone.Samples[i]; !strings.HasSuffix(functionsOf(alone, s), "grade") || s.Launch != trace.EvidenceUnknown || alone.Threads[s.Thread].Comm != "host" {
			t.Errorf("alone, sample %d: %s of %+v", i, functionsOf(alone, s), alone.Threads[s.Thread])
		}
	}
}

// Where no probe was at a launch, the thread's nearest sample stands for it, and a
// frame says that it does.
func TestLaunchesWithoutProbesStandOnTheNearestSample(t *testing.T) {
	recording := gpuExample + "cpu.data"
	late := regexp.MustCompile(`"(time|end)":([0-9]+)`)
	// 200 µs behind their calls launches are between samples.
	change := func(line string) string {
		line = framesOfLaunch.ReplaceAllString(strings.ReplaceAll(line, "CLOCK_BOOTTIME", "CLOCK_MONOTONIC"), `"frames":[]`)
		return late.ReplaceAllStringFunc(line, func(m string) string {
			name, digits, _ := strings.Cut(m, ":")
			n, _ := strconv.ParseUint(digits, 10, 64)
			return fmt.Sprintf("%s:%d", name, n+200_000)
		})
	}
	file := without(t, change)
	e := gpuEngine(t, Options{})
	for window, want := range map[time.Duration]trace.LaunchEvidence{0: trace.EvidenceUnknown, time.Microsecond: trace.EvidenceUnknown, 10 * time.Millisecond: trace.EvidenceNear} {
		p, err := e.Profile(t.Context(), recording, trace.ProfileOptions{Jobs: 1, GPU: []string{file}, JoinWindow: window})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Samples {
			s := &p.Samples[i]
			if !p.Events[s.Event].Device {
				continue
			}
			names := functionsOf(p, s)
			isNear := strings.Contains(names, "grade; [launched near]; ") && strings.HasSuffix(names, "; main; _start")
			if s.Launch != want || isNear != (want == trace.EvidenceNear) {
				t.Fatalf("within %v sample %d: %v %s", window, i, s.Launch, names)
			}
		}
		if text := strings.Join(p.Problems, "\n"); !strings.Contains(text, "of 10 launches 0 have the stack that a probe sampled, ") {
			t.Errorf("problems %q", p.Problems)
		}
	}
}

// Samples without a recording of the CPU have the launchers' addresses, and
// nothing that a process would tell.
func TestSamplesOfWavesNeedNoRecording(t *testing.T) {
	p := profileOf(t, Options{}, "", gpuExample+"gpu.jsonl")
	if len(p.Problems) > 0 || p.Path != gpuExample+"gpu.jsonl" || len(p.Events) != 1 {
		t.Errorf("path %q, events %v, problems %q", p.Path, p.Events, p.Problems)
	}
	if got := sampleText(p, &p.Samples[0]); got != "grade:21 context; 0x401217 launch; 0x40125c launch; 0x4012d1 launch; 0x401307 launch; 0x401007 launch; end-of-stack" {
		t.Error(got)
	}
	if th := p.Threads[p.Samples[0].Thread]; th.PID <= 0 || th.Comm != "" {
		t.Errorf("thread %+v", th)
	}
	for _, names := range []Options{{NoSymbols: true}, {NoInlines: true}} {
		p := profileOf(t, names, "", gpuExample+"gpu.jsonl")
		for i := range p.Frames {
			if n := len(p.Frames[i].Symbols); n > 1 || n > 0 == names.NoSymbols && p.Frames[i].Module >= 0 {
				t.Errorf("%+v: frame %+v", names, p.Frames[i])
			}
		}
	}
}

// An unknown fact costs its frames, and no sample.
func TestEverySampleOfAWaveIsKept(t *testing.T) {
	grade, err := filepath.Abs(gpuExample + "grade.co")
	if err != nil {
		t.Fatal(err)
	}
	host, err := filepath.Abs(gpuExample + "host")
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{
		`{"record":"module","id":1,"path":"` + grade + `","arch":"amdgpu"}`,
		`{"record":"module","id":2,"path":"/none/grade.co","arch":"amdgpu"}`,
		`{"record":"module","id":3,"path":"` + host + `","arch":"amdgpu"}`,
		`{"record":"module","id":4,"path":"` + grade + `","arch":"moon"}`,
		`{"record":"module","id":5,"path":"` + grade + `","arch":"amdgpu","segments":[{"address":"0x0","size":"0x580","start":"0x7f0000000000"},{"address":"0x1600","size":"0x500","start":"0x7f0000001600"}]}`,
		`{"record":"module","id":6,"path":"/none/other.co","arch":"amdgpu","segments":[{"address":"0x0","size":"0x2000","start":"0x7e0000000000"}]}`,
		`{"record":"launch","id":1,"pid":7,"tid":8,"comm":"host","frames":["0x401274","0x4012aa"]}`,
		`{"record":"launch","id":2,"pid":7,"tid":8,"frames":[]}`,
	}
	launched := `; 0x401274 launch; 0x4012aa launch; end-of-stack`
	var want []string
	weight := uint64(0)
	for i, tt := range []struct{ line, want string }{
		{`"module":1,"module_offset":"0x16c4","launched_by":{"launch":1}`, `repair:0 grade:23 context` + launched},
		{`"module":1,"module_offset":"0x16c4","launched_by":{"pid":7,"tid":8,"comm":"host","frames":["0x401274","0x4012aa"]}`, `repair:0 grade:23 context` + launched},
		{`"module":1,"module_offset":"0x16c4","launched_by":{"launch":2}`, `repair:0 grade:23 context; end-of-stack`},
		{`"module":1,"module_offset":"0x16c4","launched_by":{"launch":99}`, `repair:0 grade:23 context; no-row`},
		{`"module":1,"module_offset":"0x16c4"`, `repair:0 grade:23 context; no-row`},
		{`"module":1,"module_offset":"0x0","launched_by":{"launch":1}`, `no-module`}, // not code
		{`"module":1,"module_offset":"0x99999","launched_by":{"launch":1}`, `no-module`},
		{`"module":2,"module_offset":"0x16c4","launched_by":{"launch":1}`, `0x16c4 /none/grade.co+0x16c4 context` + launched},
		{`"module":3,"module_offset":"0x16c4"`, `0x16c4 ` + host + `+0x16c4 context; no-row`}, // another machine
		{`"module":4,"module_offset":"0x16c4"`, `repair:0 grade:23 context; no-row`},
		{`"module":99,"module_offset":"0x16c4","launched_by":{"launch":1}`, `no-module`},
		{`"pc":"0x7f00000016c4","launched_by":{"launch":1}`, `repair:0 grade:23 context` + launched},
		{`"module":5,"module_offset":"0x16c4"`, `repair:0 grade:23 context; no-row`},
		{`"module":5,"module_offset":"0x10"`, `no-module`},          // not code
		{`"pc":"0x7f0000000010"`, `0x7f0000000010 context; no-row`}, // not code
		{`"pc":"0x7f0000001b00"`, `0x7f0000001b00 context; no-row`}, // behind it
		{`"pc":"0x7e0000000123"`, `0x7e0000000123 /none/other.co+0x123 context; no-row`},
		{`"module":6,"module_offset":"0x123"`, `0x7e0000000123 /none/other.co+0x123 context; no-row`},
		{`"pc":"0x1","launched_by":{"launch":1}`, `0x1 context` + launched},
	} {
		lines = append(lines, fmt.Sprintf(`{"record":"sample","weight":%d,%s}`, 1<<i, tt.line))
		want = append(want, tt.want)
		weight += 1 << i
	}
	// Code that a runtime made is named in its own process only.
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "tmp", "perf--1.map"), []byte("0 ffff nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{grade, host} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := profileOf(t, Options{Sysroot: root}, "", gpuFile(t, t.TempDir(), "", lines...))
	if d := cmp.Diff(want, gpuTexts(p)); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
	got := uint64(0)
	for _, s := range p.Samples {
		got += s.Weight
	}
	if got != weight || len(p.Problems) > 0 {
		t.Errorf("weights are %#x together, expected %#x; problems %q", got, weight, p.Problems)
	}
	for i, detail := range map[int]string{
		0: "the recorded stack of the launch ends here", 2: "the stack of the launch was not kept", 4: "not who launched it",
		5: "no code of its module has that offset", 10: "no line describes its module",
	} {
		if got := p.Stops[p.Samples[i].Stop].Detail; !strings.Contains(got, detail) {
			t.Errorf("sample %d stops with %q, expected %q", i, got, detail)
		}
	}
	if th := p.Threads[p.Samples[4].Thread]; th != (trace.ProfileThread{PID: -1, TID: -1}) {
		t.Errorf("a wave of nobody is of %+v", th)
	}
	// PCs and where they were loaded.
	for i, pc := range map[int]uint64{0: 0x16c4, 11: 0x7f00000016c4, 12: 0x7f00000016c4} {
		f := &p.Frames[p.Stacks[p.Samples[i].Stack].Frame]
		m := &p.Modules[f.Module]
		if f.PC != pc || f.ModuleOffset != 0x16c4 || m.Start != pc-0xc4 || m.End != m.Start+0x500 || m.Offset != 0x600 || m.ID != int(f.Module) {
			t.Errorf("sample %d: frame %+v of module %+v", i, f, m)
		}
	}
	problems := map[string]string{}
	for i := range p.Modules {
		problems[p.Modules[i].Arch+" "+p.Modules[i].Path] = p.Modules[i].Problem
	}
	for module, want := range map[string]string{
		"amdgpu /none/grade.co": "/none/grade.co: no file", "amdgpu " + host: "host was not used: it is not of architecture amdgpu",
		"moon " + grade: `its build ID could not be checked`,
	} {
		if !strings.Contains(problems[module], want) {
			t.Errorf("%s: problem %q, expected %q", module, problems[module], want)
		}
	}
}

func TestLaunchesHaveAsManyFramesAsWereAskedFor(t *testing.T) {
	path := gpuFile(t, t.TempDir(), "",
		`{"record":"sample","pc":"0x1","launched_by":{"pid":7,"tid":8,"frames":["0x401274","0x4012aa"]}}`,
		`{"record":"sample","pc":"0x1","launched_by":{"pid":7,"tid":8,"frames":["0x401274"]}}`)
	want := []string{"0x1 context; 0x401274 launch; frame-limit", "0x1 context; 0x401274 launch; end-of-stack"}
	if d := cmp.Diff(want, gpuTexts(profileOf(t, Options{MaxFrames: 2}, "", path))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Two files may have an event in common. It has lanes if all its samples do.
func TestEventsOfSeveralFilesAreOne(t *testing.T) {
	one := gpuFile(t, t.TempDir(), "", `{"record":"sample","pc":"0x1","exec_mask":"0x3","event":"a"}`, `{"record":"sample","pc":"0x1","exec_mask":"0x3"}`,
		`{"record":"sample","pc":"0x1","event":"b"}`)
	two := gpuFile(t, t.TempDir(), "", `{"record":"sample","pc":"0x2","exec_mask":"0x7"}`, `{"record":"sample","pc":"0x2","event":"a"}`,
		`{"record":"sample","pc":"0x2","exec_mask":"0xf","event":"b"}`)
	p := profileOf(t, Options{}, "", one, two)
	if d := cmp.Diff([]trace.ProfileEvent{{Name: "a", Unit: "count", Device: true}, {Name: gpusamples.DefaultEvent, Unit: "count", Device: true, Lanes: true}, {Name: "b", Unit: "count", Device: true}}, p.Events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	var got []string
	for _, s := range p.Samples {
		got = append(got, fmt.Sprint(s.Event, s.ActiveLanes))
	}
	if d := cmp.Diff([]string{"0 0", "1 2", "2 0", "1 3", "0 0", "2 0"}, got); d != "" {
		t.Errorf("event and lanes (-want +got):\n%s", d)
	}
}

// The sections of a relocatable object all begin at 0: only where they were
// loaded tells them apart.
func TestSamplesInSectionsOfARelocatableObject(t *testing.T) {
	path := compileSections(t)
	segments := ""
	for _, name := range []string{"first", "second", "inner"} {
		segments += fmt.Sprintf(`,{"section":".text.%s","address":"0x0","size":"0x1000","start":"%#x"}`, name, sectionPlaces[name])
	}
	p := profileOf(t, Options{}, "", gpuFile(t, filepath.Dir(path), "",
		`{"record":"module","id":1,"path":"`+path+`","arch":"x86_64","segments":[`+segments[1:]+`]}`,
		`{"record":"module","id":2,"path":"`+path+`","arch":"x86_64"}`,
		fmt.Sprintf(`{"record":"sample","pc":"%#x"}`, sectionPlaces["second"]),
		fmt.Sprintf(`{"record":"sample","pc":"%#x"}`, sectionPlaces["first"]+1),
		`{"record":"sample","module":1,"module_offset":"0x1"}`,
		`{"record":"sample","module":2,"module_offset":"0x1"}`,
	))
	if d := cmp.Diff([]string{"second:6 context; no-row", "first:2 context; no-row", "no-module", "no-module"}, gpuTexts(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i, start := range []uint64{sectionPlaces["second"], sectionPlaces["first"]} {
		f := &p.Frames[p.Stacks[p.Samples[i].Stack].Frame]
		o, err := object.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		section := o.Section(".text." + []string{"second", "first"}[i])
		if m := &p.Modules[f.Module]; f.PC != start+uint64(i) || f.ModuleOffset != uint64(i) || m.Start != start || m.End != start+section.Size || m.Offset != section.Offset {
			t.Errorf("frame %+v of module %#x to %#x at %#x, section %+v", f, m.Start, m.End, m.Offset, section)
		}
		o.Close()
	}
}

// A perfStream writes what perf record writes to a pipe.
type perfStream struct{ bytes.Buffer }

func (b *perfStream) put(values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			b.WriteString(s)
			b.Write(make([]byte, 8-len(s)%8))
			continue
		}
		_ = binary.Write(b, binary.LittleEndian, v) // a Buffer takes all
	}
}

func (b *perfStream) record(kind uint32, misc uint16, values ...any) {
	var body perfStream
	body.put(values...)
	b.put(kind, misc, uint16(8+body.Len()))
	b.Write(body.Bytes())
}

// newPerfStream begins a recording of cpu-clock, by CLOCK_MONOTONIC or perf's own
// clock.
func newPerfStream(monotonic bool) *perfStream {
	b := &perfStream{}
	b.put([]byte("PERFILE2"), uint64(16))
	const idAll, mmap2, commExec, useClock = 1 << 18, 1 << 23, 1 << 24, 1 << 25
	flags, clock := uint64(idAll|mmap2|commExec), int32(0)
	if monotonic {
		flags, clock = flags|useClock, 1
	}
	b.record(64, 0, uint32(1), uint32(112), uint64(0), uint64(1), uint64(1|2|4), uint64(0), flags, // to flags
		uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint32(0), clock, uint64(0), uint64(0), uint64(0)) // to the IDs
	b.record(80, 0, uint64(6), uint32(8), []byte("x86_64\x00\x00"), uint32(0)) // HEADER_ARCH
	return b
}

func (b *perfStream) mmap(pid uint32, time, start, size, offset uint64, path string) {
	b.record(10, 2, pid, pid, start, size, offset, uint64(0), uint64(0), uint64(0), uint32(5), uint32(2), path, pid, pid, time)
}

func (b *perfStream) comm(pid uint32, time uint64, misc uint16, name string) {
	b.record(3, misc, pid, pid, name, pid, pid, time)
}

// launchRecording is of a process that loaded one library, then another at the
// same address.
func launchRecording(t testing.TB, dir string, monotonic bool) string {
	t.Helper()
	b := newPerfStream(monotonic)
	b.comm(7, 100, 0, "starting")
	b.mmap(7, 100, 0x401000, 0x1000, 0x1000, "/x/program")
	b.mmap(7, 200, 0x501000, 0x1000, 0x1000, "/x/one")
	b.comm(7, 250, 0, "working")
	b.mmap(7, 300, 0x501000, 0x1000, 0x1000, "/x/two")
	b.mmap(7, 350, 0x601000, 0x1000, 0, "//anon")
	b.mmap(7, 400, 0x601000, 0x1000, 0x1000, "/x/three")
	b.mmap(7, 400, 0x701000, 0x1000, 0x1000, "/x/three")
	b.mmap(7, 410, 0x701000, 0x1000, 0x2000, "/x/three")
	b.mmap(7, 420, 0xa01000, 0x1000, 0, "/x/jit-7.dump")
	path := filepath.Join(dir, "perf.data")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := os.ReadFile(gpuExample + "host")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"program", "one", "two", "three"} {
		if err := os.WriteFile(filepath.Join(dir, name), host, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// writeJITDump writes a dump with a function that a runtime made.
func writeJITDump(t testing.TB, root string) {
	t.Helper()
	b := &perfStream{}
	b.put(uint32(0x4a695444), uint32(1), uint32(40), uint32(62), uint32(0), uint32(7), uint64(0), uint64(0))
	b.put(uint32(0), uint32(16+40+16+16), uint64(430)) // JIT_CODE_LOAD
	b.put(uint32(7), uint32(7), uint64(0x801000), uint64(0x801000), uint64(16), uint64(1), "compiled", make([]byte, 16))
	if err := os.MkdirAll(filepath.Join(root, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "x", "jit-7.dump"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLaunchersAreFoundInWhatWasMappedThen(t *testing.T) {
	const program, library, made = "0x401275", "0x501275", "0x601275"
	launched := func(time string, more ...string) string {
		frames := strings.Join(append([]string{library, made, program}, more...), `","`)
		return fmt.Sprintf(`{"record":"sample","pc":"0x1","launched_by":{"pid":7,"tid":7,%s"frames":["%s"]}}`, time, frames)
	}
	at := func(module string, frames ...string) string {
		pc := map[string]string{"one": library, "two": library, "three": made, "program": program}[module]
		return pc + " /x/" + module + "+0x401275 launch; "
	}
	nowhere := func(pc string) string { return pc + " launch; " }
	lines := []string{
		launched(`"time":99,`), launched(`"time":150,`), launched(`"time":250,`), launched(`"time":320,`), launched(`"time":500,`), launched(""),
		strings.Replace(launched(`"time":500,`), `"pid":7`, `"pid":9`, 1),
		// Behind the last byte of a mapping, which is that of the call; in other code of
		// one file; in code that a runtime made.
		launched("", "0x402000", "0x701275", "0x801005"), launched(`"time":500,`, "0x402000", "0x701275", "0x801005"),
	}
	root := t.TempDir()
	writeJITDump(t, root)
	dir := t.TempDir()
	untimed := "0x1 context; " + nowhere(library) + nowhere(made) + at("program") + "end-of-stack"
	last := "0x402000 /x/program+0x402000 launch; "
	more := strings.TrimSuffix(untimed, "end-of-stack") + last + "0x701275 launch; 0x801005 launch; end-of-stack"
	for _, tt := range []struct {
		name, clock string
		monotonic   bool
		want, comms []string
		problem     string
	}{
		{
			name: "by one clock", clock: "CLOCK_MONOTONIC", monotonic: true,
			want: []string{
				"0x1 context; " + nowhere(library) + nowhere(made) + nowhere(program) + "end-of-stack",
				"0x1 context; " + nowhere(library) + nowhere(made) + at("program") + "end-of-stack",
				"0x1 context; " + at("one") + nowhere(made) + at("program") + "end-of-stack",
				"0x1 context; " + at("two") + nowhere(made) + at("program") + "end-of-stack",
				"0x1 context; " + at("two") + at("three") + at("program") + "end-of-stack",
				untimed,
				"0x1 context; " + nowhere(library) + nowhere(made) + nowhere(program) + "end-of-stack",
				more,
				"0x1 context; " + at("two") + at("three") + at("program") + last + "0x701275 /x/three+0x402275 launch; 0x801005 compiled+0x801005 launch; end-of-stack",
			},
			comms: []string{"", "starting", "working", "working", "working", "working", "", "working", "working"},
		},
		{
			name: "by two clocks", clock: "CLOCK_BOOTTIME", monotonic: true,
			want: []string{
				untimed, untimed, untimed, untimed, untimed, untimed,
				"0x1 context; " + nowhere(library) + nowhere(made) + nowhere(program) + "end-of-stack",
				more, more,
			},
			comms:   []string{"working", "working", "working", "working", "working", "working", "", "working", "working"},
			problem: "gpu.jsonl: its times are by CLOCK_BOOTTIME, those of " + dir + "/perf.data by CLOCK_MONOTONIC: they are not compared",
		},
		{
			name: "by perf's clock", clock: "CLOCK_MONOTONIC",
			want: []string{
				untimed, untimed, untimed, untimed, untimed, untimed,
				"0x1 context; " + nowhere(library) + nowhere(made) + nowhere(program) + "end-of-stack",
				more, more,
			},
			comms:   []string{"working", "working", "working", "working", "working", "working", "", "working", "working"},
			problem: "its times are by CLOCK_MONOTONIC, those of " + dir + "/perf.data by the clock of perf: they are not compared",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			recording := launchRecording(t, dir, tt.monotonic)
			p := profileOf(t, Options{NoSymbols: true, Sysroot: root}, recording, gpuFile(t, dir, tt.clock, lines...))
			if d := cmp.Diff(tt.want, gpuTexts(p)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			var comms []string
			for _, s := range p.Samples {
				comms = append(comms, p.Threads[s.Thread].Comm)
			}
			if d := cmp.Diff(tt.comms, comms); d != "" {
				t.Errorf("names of threads (-want +got):\n%s", d)
			}
			if text := strings.Join(withoutUnchecked(p.Problems), "\n"); !strings.Contains(text, tt.problem) || tt.problem == "" && text != "" {
				t.Errorf("problems %q, expected %q", text, tt.problem)
			}
			last := len(p.Events) - 1
			if p.Events[last].OtherClock != strings.Contains(tt.problem, "not compared") || p.Events[0].OtherClock {
				t.Errorf("events %+v", p.Events)
			}
		})
	}
}

func TestFilesThatAreNotOfGPUSamplesEndTheProfile(t *testing.T) {
	e := gpuEngine(t, Options{})
	if _, err := e.Profile(t.Context(), gpuExample+"cpu.data", trace.ProfileOptions{GPU: []string{gpuExample + "gpu.jsonl", gpuExample + "host.c"}}); !errors.Is(err, gpusamples.ErrOtherForm) {
		t.Errorf("%v", err)
	}
	if _, err := e.Profile(t.Context(), "", trace.ProfileOptions{}); err == nil {
		t.Error("a profile of nothing is no error")
	}
}

// FuzzGPUSamples joins arbitrary lines to a recording.
func FuzzGPUSamples(f *testing.F) {
	grade, err := filepath.Abs(gpuExample + "grade.co")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"record":"module","id":1,"path":"` + grade + `","arch":"amdgpu"}
{"record":"launch","id":1,"pid":7,"tid":7,"time":320,"frames":["0x401275","0x501275"]}
{"record":"sample","module":1,"module_offset":"0x16c4","exec_mask":"0xf","launched_by":{"launch":1}}
{"record":"sample","pc":"0x7f00000016c4","weight":9,"launched_by":{"pid":7,"tid":7,"frames":["0x401275","0x601275"]}}`)
	f.Add(`{"record":"module","id":1,"path":"grade.co","arch":"amdgpu","segments":[{"address":"0x1600","size":"0xffffffffffff0000","start":"0x10"},{"section":"a","address":"0x0","size":"0x20","start":"0x0"}]}
{"record":"sample","pc":"0xffffffff00000000"}
{"record":"sample","module":1,"module_offset":"0xffffffffffff0000"}`)
	dir := f.TempDir()
	recording := launchRecording(f, dir, true)
	e := gpuEngine(f, Options{Sysroot: dir, MaxFrames: 100})
	f.Fuzz(func(t *testing.T, lines string) {
		path := gpuFile(t, t.TempDir(), "", lines)
		file, err := jsonlines.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for _, rec := range []string{"", recording} {
			p := profileBy(t, e, rec, path)
			n := 0
			for _, e := range file.Facts().Events {
				n += e.Samples
			}
			if n != len(p.Samples) {
				t.Errorf("%d samples of %d", len(p.Samples), n)
			}
			for i := range p.Samples {
				s := &p.Samples[i]
				frames := p.StackFrames(nil, s.Stack)
				if len(frames) > 100 || len(frames) == 0 != (p.Stops[s.Stop].Reason == trace.StopNoModule) || p.Events[s.Event].Name == "" || s.ActiveLanes > 64 {
					t.Errorf("sample %+v of %d frames", s, len(frames))
				}
				for j, at := range frames {
					if f := &p.Frames[at]; f.Kernel || int(f.Module) >= len(p.Modules) || j == 0 != (f.FoundBy == trace.ByContext) || j > 0 != (f.FoundBy == trace.ByLaunch) {
						t.Errorf("frame %+v", f)
					}
				}
			}
		}
	})
}
