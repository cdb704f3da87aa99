// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/otlpcheck"
)

// parseOTLP reads a message, and holds it against the rules.
func parseOTLP(t testing.TB, b []byte) *profiles.ProfilesData {
	t.Helper()
	d := &profiles.ProfilesData{}
	if err := proto.Unmarshal(b, d); err != nil {
		t.Fatal(err)
	}
	if wrong := otlpcheck.Check(d); len(wrong) > 0 {
		t.Errorf("%d problems: %q", len(wrong), wrong[:min(len(wrong), 10)])
	}
	if len(d.ProtoReflect().GetUnknown()) > 0 {
		t.Error("the message has unknown fields")
	}
	return d
}

// wholeOTLP is the profile as one message.
func wholeOTLP(t testing.TB, p *Profile) *profiles.ProfilesData {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteOTLP(&b); err != nil {
		t.Fatal(err)
	}
	return parseOTLP(t, b.Bytes())
}

// pprofSamples are the samples of pprof's form. They are not read back: the library
// joins mappings that adjoin each other.
func pprofSamples(p *Profile) otlpcheck.Samples {
	s := otlpcheck.Samples{}
	s.Pprof(otlpcheck.Full, p.pprof())
	return s
}

func otlpSamples(messages ...*profiles.ProfilesData) otlpcheck.Samples {
	s := otlpcheck.Samples{}
	for _, m := range messages {
		s.OTLP(otlpcheck.Full, m)
	}
	return s
}

// anyRecording is a recording of anything: code objects twice, in no place, without
// names; functions without lines; frames of the kernel, of accelerators and nowhere.
func anyRecording(random *rand.Rand) *recording {
	r := newRecording(
		trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"}, trace.ProfileEvent{Name: "cpu-clock", Unit: "count"},
		trace.ProfileEvent{Name: "gpu-pc-sampling", Unit: "count", Lanes: true, States: true, Device: true})
	texts := []string{"", "a", "b\xff", "c.c", "/x/d.go", "e.rs", "\n", strings.Repeat("long", 50)}
	text := func() string { return texts[random.IntN(len(texts))] }
	r.States = []trace.WaveState{{}, {Name: "waitcnt", Stalled: true}, {Name: "issued"}, {Name: "a\nb"}, {Name: "a\rb"}}
	for range 5 {
		m := r.module(text(), random.Uint64N(3)<<12, random.Uint64N(3)<<12)
		r.Modules[m].Arch = []string{"x86_64", "amdgpu", "visa", ""}[random.IntN(4)]
		r.Modules[m].BuildID = []byte(text())
	}
	for range 20 {
		f := trace.ProfileFrame{
			PC: random.Uint64N(4) * (math.MaxUint64 / 3), Module: int32(random.IntN(len(r.Modules)+1)) - 1,
			Exact: random.IntN(2) == 0, Kernel: random.IntN(4) == 0, Device: random.IntN(4) == 0,
			FoundBy: []trace.FoundBy{trace.ByCFI, trace.ByScan, trace.ByFramePointer, trace.ByContext}[random.IntN(4)],
		}
		for range random.IntN(3) {
			f.Symbols = append(f.Symbols, trace.Symbol{
				Function: text(), LinkageName: text(), File: text(), Line: random.IntN(3), Column: random.IntN(2),
				StartFile: text(), StartLine: random.IntN(3),
			})
		}
		r.frame(f)
	}
	for i := range 4 {
		r.thread(random.IntN(4)-1, i-1, text())
	}
	r.stop(trace.StopOutermost, "")
	for range random.IntN(200) {
		stack := make([]uint32, random.IntN(6))
		for i := range stack {
			stack[i] = uint32(random.IntN(len(r.Frames)))
		}
		r.sample(trace.ProfileSample{
			Event: int16(random.IntN(4)) - 1, Thread: uint32(random.IntN(len(r.Threads))), Stack: r.stack(stack...),
			Weight: []uint64{0, 1, 7, math.MaxUint64}[random.IntN(4)], ActiveLanes: uint16(random.IntN(65)),
			State: uint8(random.IntN(len(r.States))), Launch: trace.LaunchEvidence(random.IntN(4)),
		})
	}
	return r
}

func TestOTLPKeepsItsRulesAndHasWhatPprofHas(t *testing.T) {
	p := workday().view(t)
	if list := otlpSamples(wholeOTLP(t, p)).Differences(pprofSamples(p)); len(list) > 0 {
		t.Errorf("workday: %s", strings.Join(list, "\n"))
	}
	for seed := range uint64(300) {
		p := anyRecording(rand.New(rand.NewPCG(seed, 1))).view(t)
		if list := otlpSamples(wholeOTLP(t, p)).Differences(pprofSamples(p)); len(list) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(list, "\n"))
		}
		if t.Failed() {
			break
		}
	}
}

func TestOTLPRequestsHaveAllSamplesAndKeepTheirLimit(t *testing.T) {
	several := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		p := anyRecording(random).view(t)
		whole := wholeOTLP(t, p)
		limit := 800 + random.IntN(2000)
		var parts []*profiles.ProfilesData
		for request, err := range p.OTLPRequests(limit) {
			if err != nil {
				t.Fatal(err)
			}
			d := parseOTLP(t, request)
			if n := otlpSampleCount(d); len(request) > limit && n > 1 {
				t.Errorf("seed %d: a request of %d samples has %d bytes, expected at most %d", seed, n, len(request), limit)
			}
			parts = append(parts, d)
		}
		if len(parts) > 1 {
			several++
		}
		if diff := cmp.Diff(otlpSamples(whole), otlpSamples(parts...)); diff != "" {
			t.Errorf("seed %d, limit %d: (-whole +requests)\n%s", seed, limit, diff)
		}
		if t.Failed() {
			break
		}
	}
	if several < 20 {
		t.Errorf("%d of 100 profiles have several requests, expected more", several)
	}
}

func otlpSampleCount(d *profiles.ProfilesData) (n int) {
	for _, r := range d.ResourceProfiles {
		for _, s := range r.ScopeProfiles {
			for _, p := range s.Profiles {
				n += len(p.Samples)
			}
		}
	}
	return n
}

// A request is as full as it may be: what comes next would not fit.
func TestOTLPRequestsAreFewAndFull(t *testing.T) {
	p := manyStacks(3000).view(t)
	const limit = 32 << 10
	total, requests := 0, 0
	for request, err := range p.OTLPRequests(limit) {
		if err != nil {
			t.Fatal(err)
		}
		parseOTLP(t, request)
		total += len(request)
		requests++
	}
	if most := total/(limit-2048) + 1; requests < 3 || requests > most {
		t.Errorf("%d requests of %d bytes in all, expected 3 to %d", requests, total, most)
	}
}

// manyStacks is a recording of as many stacks.
func manyStacks(n int) *recording {
	r := newRecording(trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"})
	m := r.module("/opt/work", 0x400000, 0x500000)
	for i := range 1000 {
		r.frame(trace.ProfileFrame{PC: 0x400000 + uint64(i)*16, Module: m, ModuleOffset: uint64(i) * 16,
			Symbols: []trace.Symbol{{Function: fmt.Sprintf("function_%d", i), File: "/src/work.cc", Line: i}}})
	}
	r.thread(1, 1, "work")
	r.stop(trace.StopOutermost, "")
	for i := range n {
		frames := make([]uint32, 20)
		for j := range frames {
			frames[j] = uint32((i / max(1, 1<<(2*(19-j)))) * 7 % 1000)
		}
		r.sample(trace.ProfileSample{Stack: r.stack(frames...), Weight: 1e6})
	}
	return r
}

// attributesOf are attributes as texts.
func attributesOf(d *profiles.ProfilesDictionary, indices []int32) string {
	var list []string
	for _, i := range indices {
		a := d.AttributeTable[i]
		value := a.Value.GetStringValue()
		if value == "" {
			value = fmt.Sprint(a.Value.GetIntValue())
		}
		list = append(list, d.StringTable[a.KeyStrindex]+"="+value)
	}
	return strings.Join(list, " ")
}

func TestOTLPLocationsSayWhatTheyAreOf(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"})
	work, gcn := r.module("work", 0x1000, 0x2000), r.module("grade.co", 0x3000, 0x4000)
	kernel, xe, odd := r.module("[kernel.kallsyms]", 1<<63, 1<<63+4096), r.module("xe", 0x5000, 0x6000), r.module("odd", 0x7000, 0x8000)
	r.Modules[gcn].Arch, r.Modules[xe].Arch, r.Modules[odd].Arch = "amdgpu", "visa", "other"
	r.Modules[work].BuildID = []byte{0xab}
	in := func(file string) []trace.Symbol {
		return []trace.Symbol{{Function: "inlined", File: "a.h", Inlined: true}, {Function: "f", File: file}}
	}
	want := map[uint64]string{}
	var frames []uint32
	for i, c := range []struct {
		frame trace.ProfileFrame
		want  string
	}{
		{trace.ProfileFrame{Module: work}, "profile.frame.type=native"},
		{trace.ProfileFrame{Module: work, Symbols: in("/src/a.go")}, "profile.frame.type=go"},
		{trace.ProfileFrame{Module: work, Symbols: in("lib.rs")}, "profile.frame.type=rust"},
		{trace.ProfileFrame{Module: work, Symbols: in("/src.go/a")}, "profile.frame.type=native"},
		{trace.ProfileFrame{Module: work, FoundBy: trace.ByScan}, "profile.frame.type=native unwindd.frame.guess=scan"},
		{trace.ProfileFrame{Module: kernel, Kernel: true, Symbols: in("a.rs")}, "profile.frame.type=kernel"},
		{trace.ProfileFrame{Module: gcn, Device: true}, "profile.frame.type=amdgpu"},
		{trace.ProfileFrame{Module: xe, Device: true}, "profile.frame.type=intelgpu"},
		{trace.ProfileFrame{Module: odd, Device: true}, "profile.frame.type=gpu"},
		{trace.ProfileFrame{Module: -1, Device: true}, "profile.frame.type=gpu"},
		{trace.ProfileFrame{Module: -1}, "profile.frame.type=native"},
	} {
		c.frame.PC, c.frame.Exact = uint64(i+1), true
		want[c.frame.PC] = c.want
		frames = append(frames, r.frame(c.frame))
	}
	// Of a name alone nothing else is known.
	want[0] = ""
	frames = append(frames, r.frame(trace.ProfileFrame{Module: -1, Exact: true, Symbols: in("")}))
	r.thread(1, 1, "")
	r.stop(trace.StopOutermost, "")
	r.sample(trace.ProfileSample{Stack: r.stack(frames...), Weight: 1})
	d := wholeOTLP(t, r.view(t)).Dictionary
	got := map[uint64]string{}
	for _, l := range d.LocationTable[1:] {
		got[l.Address] = attributesOf(d, l.AttributeIndices)
		if n := len(l.Lines); n == 2 && d.StringTable[d.FunctionTable[l.Lines[0].FunctionIndex].NameStrindex] != "inlined" {
			t.Errorf("%#x: the inlined function is not the first", l.Address)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	mappings := map[string]string{}
	for _, m := range d.MappingTable[1:] {
		mappings[d.StringTable[m.FilenameStrindex]] = attributesOf(d, m.AttributeIndices)
	}
	if got := mappings["work"]; got != "process.executable.build_id.gnu=ab" || mappings["xe"] != "" {
		t.Errorf("the mapping of work has %q, that of xe %q", got, mappings["xe"])
	}
}

func TestOTLPSamplesSayWhatIsKnownOfWaves(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "gpu", Unit: "count", Lanes: true, Device: true, States: true})
	r.States = []trace.WaveState{{}, {Name: "waitcnt", Stalled: true}}
	r.thread(5, 6, "work")
	r.thread(-1, -1, "")
	r.stop(trace.StopOutermost, "")
	r.sample(trace.ProfileSample{Weight: 1, ActiveLanes: 3, State: 1, Launch: trace.EvidenceProbe})
	r.sample(trace.ProfileSample{Weight: 1, ActiveLanes: 4, State: 1, Launch: trace.EvidenceProbe})
	r.sample(trace.ProfileSample{Weight: 1, Launch: trace.EvidenceNear})
	r.sample(trace.ProfileSample{Weight: 1, Thread: 1})
	d := wholeOTLP(t, r.view(t))
	got := map[string]int64{}
	for _, of := range d.ResourceProfiles {
		for _, p := range of.ScopeProfiles[0].Profiles {
			name := d.Dictionary.StringTable[p.SampleType.TypeStrindex]
			if p.TimeUnixNano != 0 {
				t.Errorf("%s begins at %d, expected no time", name, p.TimeUnixNano)
			}
			for _, s := range p.Samples {
				got[fmt.Sprintf("%d %s %s", len(of.Resource.Attributes), name, attributesOf(d.Dictionary, s.AttributeIndices))] += s.Values[0]
			}
		}
	}
	for key, n := range map[string]int64{
		"1 gpu thread.id=6 thread.name=work unwindd.wave.state=waitcnt unwindd.launch=probe":              2,
		"1 gpu:active-lanes thread.id=6 thread.name=work unwindd.wave.state=waitcnt unwindd.launch=probe": 7,
		"1 gpu thread.id=6 thread.name=work unwindd.launch=near":                                          1,
		"0 gpu ": 1,
	} {
		if got[key] != n {
			t.Errorf("%q: %d, expected %d of %q", key, got[key], n, slices.Sorted(maps.Keys(got)))
		}
	}
}

func TestOTLPTimesAreThoseOfTheDayWhereTheyAreKnown(t *testing.T) {
	r := workday()
	r.Events[2].Device, r.Events[2].OtherClock = true, true
	first := func() (list []string) {
		d := wholeOTLP(t, r.view(t))
		for _, of := range d.ResourceProfiles {
			for _, p := range of.ScopeProfiles[0].Profiles {
				list = append(list, fmt.Sprintf("%s %d+%d every %d", d.Dictionary.StringTable[p.SampleType.TypeStrindex], p.TimeUnixNano, p.DurationNano, p.Period))
			}
		}
		return list
	}
	// The samples of a recording are a millisecond apart, waves the 12th and 13th.
	want := []string{
		"cpu-clock 0+13000000 every 1000000", "page-faults 0+13000000 every 0", "gpu-pc-sampling 0+1000000 every 1",
		"gpu-pc-sampling:active-lanes 0+1000000 every 1", "unknown 0+13000000 every 1", "cpu-clock 0+13000000 every 1000000",
		"gpu-pc-sampling 0+1000000 every 1", "gpu-pc-sampling:active-lanes 0+1000000 every 1",
	}
	if diff := cmp.Diff(want, first()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.WallOffset, r.HasWallOffset = 1790000000e9, true
	for i := range want {
		if !strings.HasPrefix(want[i], "gpu") {
			want[i] = strings.Replace(want[i], " 0+", " 1790000001000000000+", 1)
		}
	}
	if diff := cmp.Diff(want, first()); diff != "" {
		t.Errorf("with the time of the day (-want +got)\n%s", diff)
	}
	r.Events[2].OtherClock = false
	for _, line := range first() {
		if strings.HasPrefix(line, "gpu") && !strings.Contains(line, " 1790000001011000000+1000000 ") {
			t.Errorf("of waves by the recording's clock: %s", line)
		}
	}
	r.Events[2].OtherClock = true
	r.Samples[11].Time = 0 // of the first wave: it is not known
	if got := first(); got[2] != "gpu-pc-sampling 0+0 every 1" {
		t.Errorf("where the time of a wave is not known: %s", got[2])
	}
	if d := r.view(t, "gpu-pc-sampling").pprof().DurationNanos; d != 0 {
		t.Errorf("where the time of a wave is not known: %d ns as pprof's form", d)
	}
	r.WallOffset = -2e9 // before 1970
	if got := first(); !strings.Contains(got[0], " 0+") {
		t.Errorf("before 1970: %s", got[0])
	}
}

func TestOTLPOfNoSamplesHasAProfileOfEachValue(t *testing.T) {
	r := newRecording(trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"}, trace.ProfileEvent{Name: "x", Unit: "count", Lanes: true})
	d := wholeOTLP(t, r.view(t))
	if n := len(d.ResourceProfiles[0].ScopeProfiles[0].Profiles); n != 3 {
		t.Errorf("%d profiles, expected 3", n)
	}
}
