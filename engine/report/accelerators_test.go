// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
)

// lanesOfFile is the number of samples in a file, and of bits in their masks.
func lanesOfFile(t testing.TB, path string) (samples int, lanes int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var line struct {
			Record string `json:"record"`
			Mask   string `json:"exec_mask"`
		}
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Record != "sample" {
			continue
		}
		mask, err := strconv.ParseUint(line.Mask, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		samples++
		lanes += int64(bits.OnesCount64(mask))
	}
	return samples, lanes
}

// Whatever form a profile has, the wave's function stands on those that launched
// it, and the active lanes are a value.
func TestSamplesOfAcceleratorsAreInEveryForm(t *testing.T) {
	samples, lanes := lanesOfFile(t, gpuSamples)
	r := gpuProfile(t)
	stack := []string{"_start", "main", "grade_all", "launch", "hipLaunchKernel", "grade", "repair"}

	p, err := profile.ParseData([]byte(formOf(t, r.WritePprof)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	var types []string
	for _, s := range p.SampleType {
		types = append(types, s.Type)
	}
	if got := strings.Join(types, " "); got != "cpu-clock probe_host:hipLaunchKernel gpu-pc-sampling gpu-pc-sampling:active-lanes" {
		t.Fatalf("sample types %s", got)
	}
	var sums [4]int64
	found := false
	for _, s := range p.Sample {
		for i, v := range s.Value {
			sums[i] += v
		}
		var names []string
		for i := len(s.Location) - 1; i >= 0; i-- {
			for j := len(s.Location[i].Line) - 1; j >= 0; j-- {
				names = append(names, s.Location[i].Line[j].Function.Name)
			}
		}
		found = found || strings.Join(names, ";") == strings.Join(stack, ";") && s.Value[0] == 0 && s.Value[2] > 0 && s.Value[3] > 0
	}
	if sums[2] != int64(samples) || sums[3] != lanes || sums[0] == 0 || !found {
		t.Errorf("sums %v, expected %d and %d; the stack %s is found: %v", sums, samples, lanes, stack, found)
	}

	want := "host;_start;main;grade_all;launch;hipLaunchKernel;grade_[G];repair_[G] "
	if out := foldedOf(t, gpuProfile(t, "gpu-pc-sampling"), "gpu-pc-sampling"); !strings.Contains(out, want) {
		t.Errorf("no line begins with %q:\n%s", want, out)
	}

	var j struct {
		Samples []struct {
			Event       string `json:"event"`
			ActiveLanes *int64 `json:"active_lanes"`
			Frames      []int  `json:"frames"`
		} `json:"samples"`
		Frames []struct {
			FoundBy string `json:"found_by"`
			Module  int    `json:"module"`
		} `json:"frames"`
		Modules []struct {
			Arch string `json:"arch"`
		} `json:"modules"`
	}
	if err := json.Unmarshal([]byte(formOf(t, r.WriteJSON)), &j); err != nil {
		t.Fatal(err)
	}
	n, sum := 0, int64(0)
	for _, s := range j.Samples {
		if (s.Event == "gpu-pc-sampling") != (s.ActiveLanes != nil) {
			t.Fatalf("a sample of %s has lanes %v", s.Event, s.ActiveLanes)
		}
		if s.ActiveLanes == nil {
			continue
		}
		n++
		sum += *s.ActiveLanes
		for _, i := range s.Frames {
			f := &j.Frames[i]
			if arch := j.Modules[f.Module].Arch; (f.FoundBy != "context" || arch != "amdgpu") && (f.FoundBy != "launch" || arch != "x86_64") {
				t.Errorf("a frame of %s, found by %s", arch, f.FoundBy)
			}
		}
	}
	if n != samples || sum != lanes {
		t.Errorf("%d samples with %d lanes, expected %d and %d", n, sum, samples, lanes)
	}
}

func TestProfileOfAcceleratorsAlone(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	text := `{"record":"format","format_version":1}
{"record":"sample","pc":"0x10","weight":3}
{"record":"sample","pc":16}
`
	if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := recordedProfile(t, recordedEngine(t, engine.Options{}), "", trace.ProfileOptions{GPU: []string{bad, gpuSamples}})
	out, summary := formOf(t, r.WriteJSON), summaryOf(t, r, SummaryOptions{})
	for _, want := range []string{`"weight":3,"frames":[0],"stopped":"no-row"`, `"function":"grade"`, `bad.jsonl:3: offset 0x18, pc: found a number, expected a string: the line is left out`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %s in\n%s", want, out)
		}
	}
	if !strings.Contains(summary, "bad.jsonl:3: ") || !strings.Contains(summary, "151 of gpu-pc-sampling") {
		t.Errorf("the summary is\n%s", summary)
	}
}
