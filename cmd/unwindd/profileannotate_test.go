package main

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

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
)

// annotationsJSON is what the tests read of the JSON of --annotate.
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

func annotations(t testing.TB, args ...string) (out annotationsJSON) {
	t.Helper()
	text, _ := runProfile(t, append(args, "--format", "json")...)
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

// perfAnnotate is what perf says of all functions that an event has samples in: how many
// each instruction has.
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

// sampledFunctions are the physical functions of files that the samples of a recording are
// in.
func sampledFunctions(t testing.TB, args ...string) (names []string) {
	t.Helper()
	text, _ := runProfile(t, append(args, "--format", "json")...)
	var p profileJSON
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Samples {
		if len(s.Frames) == 0 {
			continue
		}
		at := s.Frames[0]
		for p.Frames[at].Inlined {
			at++
		}
		if f := &p.Frames[at]; f.Function != "" && f.Offset != "" && !slices.Contains(names, f.Function) {
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
	words, err := os.ReadFile(filepath.Join(filepath.Dir(wordsRecording), "words"))
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
		if name != "deepcpp" && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			comparePerf(t, recorded.Recording(t, name, recorded.Samples()), "cpu-clock", 3)
		})
	}
}

func comparePerf(t *testing.T, recording, event string, least int, perfArgs ...string) {
	want := perfAnnotate(t, recording, event, perfArgs...)
	args := []string{recording, "--event", event}
	names := sampledFunctions(t, args...)
	for _, name := range names {
		args = append(args, "--annotate", name)
	}
	functions, instructions, samples := 0, 0, uint64(0)
	missing := maps.Clone(want)
	var wrong []string
	for _, a := range annotations(t, args...).Annotations {
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
