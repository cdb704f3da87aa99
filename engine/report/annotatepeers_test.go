// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/recorded"
	"github.com/unwindd/unwindd/internal/schema"
)

// TestMain lets the test binary be what confines disassemblers.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" && os.Args[2] == "exec" {
		fmt.Fprintln(os.Stderr, confine.ExecMain(os.Args[3:]))
		os.Exit(1)
	}
	status := m.Run()
	recorded.Clean()
	os.Exit(status)
}

// annotationsJSON is the part of the JSON of --annotate that tests read.
type annotationsJSON struct {
	Annotations []struct {
		Function, Module string
		Problems         []string
		Recorded         bool
		InlinedInto      []string `json:"inlined_into"`
		Events           []struct {
			Name            string
			Samples, Weight uint64
		}
		Lines []struct {
			File   string
			Line   int
			Text   *string
			Counts []annotationCounts
		}
		Instructions []struct {
			Offset        string `json:"module_offset"`
			Bytes, Text   string
			File, Inlined string
			Line          int
			Counts        []annotationCounts
		}
	}
}

type annotationCounts struct {
	Event                    string
	Samples, Weight, Inlined uint64
	ActiveLanes              uint64 `json:"active_lanes"`
	States                   map[string]uint64
}

// annotated are the annotations of functions in a profile, as JSON has them.
func annotated(t testing.TB, e *engine.Engine, path string, o trace.ProfileOptions, events ...string) (out annotationsJSON) {
	t.Helper()
	text := formOf(t, recordedProfile(t, e, path, o, events...).WriteAnnotationsJSON)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// codePlace is an instruction of a file.
type codePlace struct {
	file   string
	offset uint64
}

// perfAnnotate counts by perf the samples of each instruction, in all functions that an event
// has samples in.
func perfAnnotate(t testing.TB, recording, event string, args ...string) map[codePlace]uint64 {
	t.Helper()
	oracle.Tools(t, "perf", "objdump")
	cmd := exec.Command("perf", append([]string{"annotate", "--stdio", "--stdio-color", "never", "--force", "-n", "--no-source", "-i", recording}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("perf annotate: %v\n%s", err, &stderr)
	}
	title := regexp.MustCompile(`Disassembly of (\S+) for (\S+) \(`)
	line := regexp.MustCompile(`^\s*(\d+)\s*:\s+([0-9a-f]+):\s`)
	counts := map[codePlace]uint64{}
	file := ""
	in := bufio.NewScanner(bytes.NewReader(out))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if m := title.FindStringSubmatch(in.Text()); m != nil {
			if file = ""; m[2] == event {
				file = filepath.Base(m[1])
			}
			continue
		}
		if m := line.FindStringSubmatch(in.Text()); m != nil && file != "" {
			n, _ := strconv.ParseUint(m[1], 10, 64)
			at, _ := strconv.ParseUint(m[2], 16, 64)
			counts[codePlace{file, at}] += n
		}
	}
	return counts
}

// sampledFunctions are the physical functions of files that the samples of a profile are in. The
// code of the kernel is in no file that perf annotate finds.
func sampledFunctions(p *readProfile) (names []string) {
	for _, s := range p.Samples {
		if len(s.Frames) == 0 {
			continue
		}
		at := s.Frames[0]
		for p.Frames[at].Inlined {
			at++
		}
		if f := &p.Frames[at]; !f.Kernel && f.Function != "" && f.Offset != "" && !slices.Contains(names, f.Function) {
			names = append(names, f.Function)
		}
	}
	return names
}

// TestInstructionsHaveTheSamplesThatPerfCounts compares every instruction of every function
// that was sampled.
func TestInstructionsHaveTheSamplesThatPerfCounts(t *testing.T) {
	symfs := filepath.Join(t.TempDir(), "srv", "example")
	if err := os.MkdirAll(symfs, 0o755); err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile(wordsExe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(symfs, "words"), words, 0o700); err != nil { //nolint:gosec // perf wants it executable
		t.Fatal(err)
	}
	t.Run("words", func(t *testing.T) {
		comparePerf(t, wordsRecording, "cpu-clock", 3, "--symfs", filepath.Dir(filepath.Dir(symfs)))
	})
	for _, name := range []string{"deepcpp", "rustwork"} {
		t.Run(name, func(t *testing.T) {
			if name != "deepcpp" {
				proof.Only(t)
			}
			comparePerf(t, recorded.Recording(t, name, recorded.Samples()), "cpu-clock", 3)
		})
	}
}

func comparePerf(t *testing.T, recording, event string, least int, perfArgs ...string) {
	want := perfAnnotate(t, recording, event, perfArgs...)
	e := recordedEngine(t, engine.Options{})
	names := sampledFunctions(readBack(t, recordedProfile(t, e, recording, trace.ProfileOptions{}, event)))
	functions, instructions, samples := 0, 0, uint64(0)
	missing := maps.Clone(want)
	var wrong []string
	for _, a := range annotated(t, e, recording, trace.ProfileOptions{Annotate: names}, event).Annotations {
		if len(a.Instructions) == 0 || len(a.Events) == 0 {
			continue
		}
		functions++
		for _, in := range a.Instructions {
			at, err := strconv.ParseUint(in.Offset, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			var got uint64
			for _, c := range in.Counts {
				got += c.Samples
			}
			place := codePlace{filepath.Base(a.Module), at}
			n, isKnown := want[place]
			if n != got || got > 0 && !isKnown {
				wrong = append(wrong, fmt.Sprintf("%s %s: %d samples, perf has %d", a.Function, in.Offset, got, n))
			}
			if isKnown {
				instructions++
				samples += got
				delete(missing, place)
			}
		}
	}
	var all uint64
	for _, n := range want {
		all += n
	}
	for place, n := range missing {
		if n > 0 {
			t.Logf("not annotated: %s %#x: %d samples", place.file, place.offset, n)
		}
	}
	t.Logf("%d functions, %d instructions, %d of perf's %d samples", functions, instructions, samples, all)
	if len(wrong) > 0 {
		t.Errorf("%d instructions differ:\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
	if functions < least || samples == 0 {
		t.Errorf("%d functions with %d samples were compared, expected at least %d", functions, samples, least)
	}
}

// TestInstructionsOfWavesAreThoseOfLLVM: each instruction of a kernel is at the address, has
// the bytes and, with a disassembler, the text that llvm-objdump gives it, and the samples
// of the file.
func TestInstructionsOfWavesAreThoseOfLLVM(t *testing.T) {
	oracle.Tools(t, "llvm-objdump-22")
	path, err := exec.LookPath("llvm-objdump-22")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "-d", "--disassemble-symbols=grade", filepath.Join(filepath.Dir(gpuSamples), "grade.co")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	line := regexp.MustCompile(`^\t(.*?)\s*// 0*([0-9A-F]+): ([0-9A-F ]+?)(?: <.*)?$`)
	for text := range strings.Lines(string(out)) {
		if m := line.FindStringSubmatch(strings.TrimRight(text, "\n")); m != nil {
			want = append(want, fmt.Sprintf("0x%s %s %s", strings.ToLower(m[2]), bytesOfWords(m[3]), m[1]))
		}
	}
	// llvm-objdump goes on with the bytes between the function and the end of the section.
	for len(want) > 0 && strings.HasSuffix(want[len(want)-1], " s_nop 0") {
		want = want[:len(want)-1]
	}
	samples := samplesByOffset(t)
	all := annotated(t, recordedEngine(t, engine.Options{Disassembler: path}), gpuRecording,
		trace.ProfileOptions{GPU: []string{gpuSamples}, Annotate: []string{"grade"}}).Annotations
	if len(all) != 1 {
		t.Fatalf("%d functions", len(all))
	}
	var got []string
	for _, in := range all[0].Instructions {
		got = append(got, fmt.Sprintf("%s %s %s", in.Offset, in.Bytes, in.Text))
		var counted uint64
		for _, c := range in.Counts {
			counted += c.Samples
		}
		if counted != samples[in.Offset] {
			t.Errorf("%s: %d samples, the file has %d", in.Offset, counted, samples[in.Offset])
		}
		delete(samples, in.Offset)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 40 {
		t.Errorf("%d instructions of llvm-objdump (-want +got):\n%s", len(want), diff)
	}
	for offset, n := range samples {
		t.Errorf("%d samples at %s are at no instruction", n, offset)
	}
}

// bytesOfWords are the bytes of words, which are little-endian.
func bytesOfWords(text string) string {
	var b strings.Builder
	for _, word := range strings.Fields(text) {
		for i := len(word); i > 0; i -= 2 {
			b.WriteString(strings.ToLower(word[i-2 : i]))
		}
	}
	return b.String()
}

// samplesByOffset are the samples of the example's file.
func samplesByOffset(t *testing.T) map[string]uint64 {
	t.Helper()
	text, err := os.ReadFile(gpuSamples)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var line struct {
			Record string
			Offset string `json:"module_offset"`
		}
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Record == "sample" {
			counts[line.Offset]++
		}
	}
	return counts
}

// TestAnnotationsAreAsTheirSchemaHasThem reads the JSON by docs/annotations.schema.json.
func TestAnnotationsAreAsTheirSchemaHasThem(t *testing.T) {
	closed := schema.Docs(t, "annotations.schema.json")
	gpu := []string{gpuSamples}
	for _, c := range []struct {
		path   string
		o      trace.ProfileOptions
		events []string
	}{
		{wordsRecording, trace.ProfileOptions{Annotate: []string{"insert", "swap"}}, []string{"cpu-clock", "page-faults"}},
		{gpuRecording, trace.ProfileOptions{GPU: gpu, Annotate: []string{"grade"}}, nil},
		{gpuRecording, trace.ProfileOptions{GPU: gpu, Annotate: []string{"main"}}, nil},
	} {
		var out any
		text := formOf(t, recordedProfile(t, recordedEngine(t, engine.Options{}), c.path, c.o, c.events...).WriteAnnotationsJSON)
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range closed.Check("annotations", out) {
			t.Error(wrong)
		}
	}
}

// TestSourcesOfAnnotationsAreFound: lines have their text where the file is there, and
// inlined functions have lines wherever they are inlined.
func TestSourcesOfAnnotationsAreFound(t *testing.T) {
	root := t.TempDir()
	source, err := os.ReadFile(filepath.Join(filepath.Dir(wordsRecording), "words.cc"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "example"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "example", "words.cc"), source, 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	out := annotated(t, recordedEngine(t, engine.Options{Sysroot: root}), wordsRecording, trace.ProfileOptions{Annotate: []string{"sort", "swap"}}, "cpu-clock")
	if len(out.Annotations) != 2 {
		t.Fatalf("%d functions", len(out.Annotations))
	}
	for _, a := range out.Annotations {
		var samples uint64
		for _, l := range a.Lines {
			if l.Text == nil || *l.Text != lines[l.Line-1] {
				t.Errorf("%s: line %d is %v", a.Function, l.Line, l.Text)
			}
			for _, c := range l.Counts {
				samples += c.Samples
			}
		}
		if samples != a.Events[0].Samples || samples == 0 {
			t.Errorf("%s: %d samples in lines, %d in all", a.Function, samples, a.Events[0].Samples)
		}
	}
	if a := out.Annotations[1]; len(a.Instructions) > 0 || len(a.InlinedInto) != 1 || !strings.HasPrefix(a.InlinedInto[0], "void sort<") {
		t.Errorf("%s: %d instructions, inlined into %q", a.Function, len(a.Instructions), a.InlinedInto)
	}
}
