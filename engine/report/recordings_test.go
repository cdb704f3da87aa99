// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/schema"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const (
	// wordsRecording is a recording by perf of a program of two processes; its executable
	// lies beside it.
	wordsRecording = "../../examples/profile/perf.data"
	wordsExe       = "../../examples/profile/words"
	gpuRecording   = "../../examples/gpu-profile/cpu.data"
	gpuSamples     = "../../examples/gpu-profile/gpu.jsonl"
)

// recordedEngine is an engine that walks in this process.
func recordedEngine(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Plugins = plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}, Self: self}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// recordedProfile is the profile of a recording; of all its events where none is named.
func recordedProfile(t testing.TB, e *engine.Engine, path string, o trace.ProfileOptions, events ...string) *Profile {
	t.Helper()
	p, err := e.Profile(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewProfile(p, events...)
	if err != nil {
		t.Fatal(err)
	}
	r.Jobs = o.Jobs
	return r
}

// wordsProfile is the profile of wordsRecording.
func wordsProfile(t testing.TB, events ...string) *Profile {
	t.Helper()
	return recordedProfile(t, recordedEngine(t, engine.Options{}), wordsRecording, trace.ProfileOptions{}, events...)
}

// gpuProfile is the profile of gpuRecording with gpuSamples.
func gpuProfile(t testing.TB, events ...string) *Profile {
	t.Helper()
	return recordedProfile(t, recordedEngine(t, engine.Options{}), gpuRecording, trace.ProfileOptions{GPU: []string{gpuSamples}}, events...)
}

// formOf is a profile in a form.
func formOf(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// foldedOf are the stacks of an event, folded.
func foldedOf(t testing.TB, r *Profile, event string) string {
	t.Helper()
	return formOf(t, func(w io.Writer) error { return r.WriteFolded(w, event) })
}

// summaryOf is the summary of a profile.
func summaryOf(t testing.TB, r *Profile, o SummaryOptions) string {
	t.Helper()
	return formOf(t, func(w io.Writer) error { return r.WriteSummary(w, o) })
}

// readProfile is the part of the profile's JSON that tests read.
type readProfile struct {
	Target struct {
		Lost     uint64
		Problems []string
	}
	Samples []readSample
	Frames  []struct {
		PC, Function, File string
		Offset             string `json:"module_offset"`
		Inlined            bool
		Kernel             bool
	}
}

type readSample struct {
	Event, Comm, Stopped string
	PID, TID             int
	Time, Weight         uint64
	Frames               []int
}

// readBack reads the JSON of a profile.
func readBack(t testing.TB, r *Profile) *readProfile {
	t.Helper()
	p := &readProfile{}
	if err := json.Unmarshal([]byte(formOf(t, r.WriteJSON)), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// stacks are the sums of weights by stack of functions, outermost first; flat and
// cum those by function.
func (p *readProfile) stacks(event string) (stacks, flat, cum map[string]uint64) {
	stacks, flat, cum = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for _, s := range p.Samples {
		if s.Event != event {
			continue
		}
		var names []string
		for _, f := range s.Frames {
			names = append(names, p.Frames[f].Function)
		}
		flat[names[0]] += s.Weight
		for i, name := range names {
			if !slices.Contains(names[:i], name) {
				cum[name] += s.Weight
			}
		}
		slices.Reverse(names)
		stacks[s.Comm+";"+strings.Join(names, ";")] += s.Weight
	}
	return stacks, flat, cum
}

func TestProfileHasEverySampleOfTheRecording(t *testing.T) {
	p := readBack(t, wordsProfile(t))
	script := oracle.Run(t, "perf", "script", "-i", wordsRecording, "--no-inline", "-F", "comm,pid,tid,time,period,event")
	line := regexp.MustCompile(`(?m)^ *(\S+) +(\d+)/(\d+) +(\d+)\.(\d{6}): +(\d+) +(\S+):`)
	var want, got []string
	for _, m := range line.FindAllStringSubmatch(script, -1) {
		want = append(want, strings.Join(m[1:], " "))
	}
	for _, s := range p.Samples {
		got = append(got, fmt.Sprintf("%s %d %d %d %06d %d %s", s.Comm, s.PID, s.TID, s.Time/1e9, s.Time%1e9/1e3, s.Weight, s.Event))
	}
	if len(want) < 80 {
		t.Fatalf("perf script has %d samples", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-perf script +profile):\n%s", diff)
	}
}

// TestProfileIsOneInAllFormats compares what the forms say, each as its own reader
// reads it, with the JSON.
func TestProfileIsOneInAllFormats(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	r := wordsProfile(t)
	p := readBack(t, r)
	binary := filepath.Join(t.TempDir(), "words.pb.gz")
	if err := os.WriteFile(binary, []byte(formOf(t, r.WritePprof)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"cpu-clock", "page-faults"} {
		stacks, flat, cum := p.stacks(event)
		if diff := cmp.Diff(stacks, parseFolded(t, foldedOf(t, wordsProfile(t, event), event))); diff != "" {
			t.Errorf("%s: folded (-json +folded):\n%s", event, diff)
		}
		gotFlat, gotCum := pprofTop(t, binary, event)
		for name := range cum {
			if flat[name] == 0 {
				flat[name] = 0 // as -top has it
			}
		}
		if diff := cmp.Diff(flat, gotFlat); diff != "" {
			t.Errorf("%s: pprof -top, flat (-json +pprof):\n%s", event, diff)
		}
		if diff := cmp.Diff(cum, gotCum); diff != "" {
			t.Errorf("%s: pprof -top, cum (-json +pprof):\n%s", event, diff)
		}
		traces := pprofTraces(t, binary, event)
		if diff := cmp.Diff(stacks, traces); diff != "" {
			t.Errorf("%s: pprof -traces (-json +pprof):\n%s", event, diff)
		}
	}
}

func parseFolded(t testing.TB, text string) map[string]uint64 {
	t.Helper()
	got := map[string]uint64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		blank := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseUint(line[blank+1:], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		got[line[:blank]] += n
	}
	return got
}

// goPprof runs `go tool pprof`; nothing is left out.
func goPprof(t testing.TB, args ...string) string {
	t.Helper()
	return oracle.Run(t, "go", append([]string{"tool", "pprof", "-symbolize=none", "-nodefraction=0", "-edgefraction=0", "-nodecount=10000"}, args...)...)
}

var topLine = regexp.MustCompile(`(?m)^ *(\d+)(?:ns)? +\S+% +\S+% +(\d+)(?:ns)? +\S+% +(.*?)(?: \((?:partial-)?inline\))?$`)

func pprofTop(t testing.TB, path, event string) (flat, cum map[string]uint64) {
	t.Helper()
	flat, cum = map[string]uint64{}, map[string]uint64{}
	for _, m := range topLine.FindAllStringSubmatch(goPprof(t, "-top", "-unit=ns", "-sample_index="+event, path), -1) {
		a, _ := strconv.ParseUint(m[1], 10, 64)
		b, _ := strconv.ParseUint(m[2], 10, 64)
		flat[m[3]], cum[m[3]] = a, b
	}
	return flat, cum
}

// pprofTraces are the stacks that `pprof -traces` prints, innermost first.
func pprofTraces(t testing.TB, path, event string) map[string]uint64 {
	t.Helper()
	got := map[string]uint64{}
	for _, block := range strings.Split(goPprof(t, "-traces", "-unit=ns", "-sample_index="+event, path), "-----------+")[1:] {
		var names []string
		var weight uint64
		comm := ""
		for line := range strings.Lines(block[strings.IndexByte(block, '\n')+1:]) {
			line = strings.TrimSuffix(line, "\n")
			if label, ok := strings.CutPrefix(strings.TrimSpace(line), "comm:"); ok {
				comm = strings.TrimSpace(label)
				continue
			}
			if len(line) < 12 || strings.Contains(line, ":  ") || strings.TrimSpace(line) == "" {
				continue
			}
			if value := strings.TrimSpace(line[:11]); value != "" {
				n, err := strconv.ParseUint(strings.TrimSuffix(value, "ns"), 10, 64)
				if err != nil {
					continue // another label
				}
				weight = n
			}
			name := strings.TrimSuffix(strings.TrimSpace(line[11:]), " (inline)")
			names = append(names, name)
		}
		if weight == 0 || len(names) == 0 {
			continue
		}
		slices.Reverse(names)
		got[comm+";"+strings.Join(names, ";")] += weight
	}
	return got
}

func TestPprofOfARecordingHasBuildIDsInlinedCallsAndLabels(t *testing.T) {
	oracle.Tools(t, "readelf")
	p, err := profile.ParseData([]byte(formOf(t, wordsProfile(t).WritePprof)))
	if err != nil {
		t.Fatal(err)
	}
	notes := oracle.Run(t, "readelf", "-n", wordsExe)
	m := p.Mapping[0]
	if filepath.Base(m.File) != "words" || m.BuildID == "" || !strings.Contains(notes, "Build ID: "+m.BuildID) {
		t.Errorf("mapping %+v, expected that of words, with its build ID in\n%s", m, notes)
	}
	if !m.HasFunctions || !m.HasFilenames || !m.HasLineNumbers || !m.HasInlineFrames {
		t.Errorf("mapping %+v, expected all of its information", m)
	}
	inlined, starts := 0, 0
	for _, l := range p.Location {
		if l.Address < m.Start || l.Address >= m.Limit {
			t.Errorf("location %#x is outside of %#x to %#x", l.Address, m.Start, m.Limit)
		}
		if len(l.Line) > 1 {
			inlined++
		}
		for _, line := range l.Line {
			if line.Function.StartLine > 0 {
				starts++
			}
		}
	}
	if inlined == 0 || starts == 0 {
		t.Errorf("%d locations have inlined calls, %d lines the beginning of their function", inlined, starts)
	}
	processes := map[int64]string{}
	for _, s := range p.Sample {
		if len(s.NumLabel["pid"]) != 1 || len(s.NumLabel["tid"]) != 1 || len(s.Label["comm"]) != 1 {
			t.Fatalf("labels %v %v", s.NumLabel, s.Label)
		}
		processes[s.NumLabel["pid"][0]] += s.Label["comm"][0] + " "
	}
	if len(processes) != 2 {
		t.Errorf("processes %v, expected two", processes)
	}
}

func TestProfileWithoutSymbolsHasAddresses(t *testing.T) {
	bare := recordedProfile(t, recordedEngine(t, engine.Options{NoSymbols: true}), wordsRecording, trace.ProfileOptions{})
	with, without := readBack(t, wordsProfile(t)), readBack(t, bare)
	for i, f := range without.Frames {
		if f.Function != "" || f.File != "" || f.Inlined || f.PC == "" || f.Offset == "" {
			t.Errorf("frame %d is %+v", i, f)
		}
	}
	pcs := func(p *readProfile) (list [][]string) {
		for _, s := range p.Samples {
			var one []string
			for _, f := range s.Frames {
				if !p.Frames[f].Inlined {
					one = append(one, p.Frames[f].PC)
				}
			}
			list = append(list, one)
		}
		return list
	}
	if diff := cmp.Diff(pcs(with), pcs(without)); diff != "" {
		t.Error(diff)
	}
	bare.NoSymbols = true
	if said := summaryOf(t, bare, SummaryOptions{}); strings.Contains(said, "without a function") {
		t.Errorf("the summary misses symbols that were not asked for:\n%s", said)
	}
	if folded := foldedOf(t, bare, "cpu-clock"); !regexp.MustCompile(`(?m)^words(;\[words\]\+0x[0-9a-f]+)+ \d+$`).MatchString(folded) {
		t.Errorf("folded:\n%s", folded)
	}
}

// TestProfileIsAsItsSchemaHasIt reads the JSON by docs/profile.schema.json, which has every
// member that is written.
func TestProfileIsAsItsSchemaHasIt(t *testing.T) {
	described := schema.Docs(t, "profile.schema.json")
	for _, o := range []engine.Options{{}, {NoSymbols: true}, {MaxFrames: 2}} {
		r := recordedProfile(t, recordedEngine(t, o), wordsRecording, trace.ProfileOptions{})
		var p any
		if err := json.Unmarshal([]byte(formOf(t, r.WriteJSON)), &p); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range described.Check("profile", p) {
			t.Error(wrong)
		}
	}
}

func TestProfileCutsStacksAtTheirLimit(t *testing.T) {
	cut := 0
	r := recordedProfile(t, recordedEngine(t, engine.Options{MaxFrames: 3, NoSymbols: true}), wordsRecording, trace.ProfileOptions{})
	for _, s := range readBack(t, r).Samples {
		if len(s.Frames) > 3 {
			t.Errorf("%d frames", len(s.Frames))
		}
		if s.Stopped == "frame-limit" {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no stack was cut")
	}
}

func TestProfileDoesNotDependOnTheNumberOfGoroutines(t *testing.T) {
	profiled := func(jobs int) string {
		r := recordedProfile(t, recordedEngine(t, engine.Options{}), wordsRecording, trace.ProfileOptions{Jobs: jobs})
		return formOf(t, r.WriteJSON)
	}
	one := profiled(1)
	for _, jobs := range []int{2, 7} {
		if profiled(jobs) != one {
			t.Errorf("%d goroutines: other bytes than one", jobs)
		}
	}
}

func TestProfileOfACutRecordingHasWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	for name, from := range map[string]string{"perf.data": wordsRecording, "words": wordsExe} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if name == "perf.data" {
			b = b[:100_000]
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o700); err != nil { //nolint:gosec // an executable among them
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "perf.data")
	r := recordedProfile(t, recordedEngine(t, engine.Options{}), path, trace.ProfileOptions{})
	p := readBack(t, r)
	if len(p.Samples) < 20 || len(p.Target.Problems) == 0 {
		t.Errorf("%d samples, problems %q", len(p.Samples), p.Target.Problems)
	}
	if said := summaryOf(t, r, SummaryOptions{}); !strings.Contains(said, "problem: "+path) {
		t.Errorf("the summary does not tell the problem:\n%s", said)
	}
}
