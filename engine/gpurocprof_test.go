// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/rocprof/rocproftest"
	"github.com/unwindd/unwindd/engine/trace"
)

// gradeBase is where the example's code object was loaded, as far as rocprofv3 is
// concerned.
const gradeBase = 0x7f4400000000

// exampleOfRocprof writes the run of the example as rocprofv3 would have.
func exampleOfRocprof(t *testing.T, isStochastic bool) string {
	t.Helper()
	grade, err := filepath.Abs(gpuExample + "grade.co")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(gpuExample + "gpu.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	p := rocproftest.Process{
		Command: []string{"/example/host"}, IsStochastic: isStochastic,
		Agents:  []rocproftest.Agent{{Handle: 7, Name: "gfx90a:sramecc+:xnack-", Node: 1, Lanes: 64}},
		Objects: []rocproftest.Object{{ID: 1, Agent: 7, URI: "file://" + grade, Base: gradeBase, Size: 0x4000, Delta: gradeBase}},
		Kernels: []rocproftest.Kernel{{ID: 1, Object: 1, Name: "grade", Descriptor: gradeBase + 0x500, Entry: gradeBase + 0x1600}},
	}
	type line struct {
		Record string `json:"record"`
		ID     uint64 `json:"id"`
		PID    int    `json:"pid"`
		TID    int    `json:"tid"`
		API    string `json:"api"`
		Time   uint64 `json:"time"`
		End    uint64 `json:"end"`
		Offset string `json:"module_offset"`
		Mask   string `json:"exec_mask"`
		By     struct {
			Launch uint64 `json:"launch"`
		} `json:"launched_by"`
	}
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var samples []line
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		switch l.Record {
		case "launch":
			p.PID = l.PID
			p.HIP = append(p.HIP, rocproftest.Call{Function: l.API, TID: l.TID, Correlation: 10 * l.ID, Start: l.Time, End: l.End, Arguments: []string{"0x7f"}})
			p.Dispatches = append(p.Dispatches, rocproftest.Dispatch{
				ID: l.ID, Kernel: 1, Agent: 7, Queue: 2, TID: l.TID, Correlation: 10 * l.ID, Start: l.End + 1000, End: l.End + 4000,
				Group: [3]uint32{64, 1, 1}, Grid: [3]uint32{256, 1, 1},
			})
		case "sample":
			samples = append(samples, l)
		}
	}
	p.Samples, p.Sample = len(samples), func(i int, s *rocproftest.Sample) {
		l := &samples[i]
		*s = rocproftest.Sample{
			Object: 1, Offset: number(l.Offset), Mask: number(l.Mask), Time: l.Time, Dispatch: l.By.Launch, Correlation: 10 * l.By.Launch, Instruction: -1,
			IsIssued: i%2 == 0, Type: "NO_INST", Reason: "WAITCNT",
		}
	}
	path := filepath.Join(t.TempDir(), "gpu_results.json")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	written := rocproftest.File{Processes: []rocproftest.Process{p}}
	if err := written.Write(file); err != nil {
		t.Fatal(err)
	}
	return path
}

// One run as lines of JSON and as rocprofv3 writes it is one profile, but for what a form
// lacks: rocprofv3 takes no stacks.
func TestFormsOfAMDAreOneProfile(t *testing.T) {
	lines := profileOf(t, Options{}, gpuExample+"cpu.data", without(t, func(line string) string { return framesOfLaunch.ReplaceAllString(line, `"frames":[]`) }))
	want := waves(t, lines)
	for _, isStochastic := range []bool{false, true} {
		path := exampleOfRocprof(t, isStochastic)
		p := profileOf(t, Options{}, gpuExample+"cpu.data", path)
		if len(p.Problems) > 0 {
			t.Errorf("problems %q", p.Problems)
		}
		got := waves(t, p)
		if d := cmp.Diff(want, got); d != "" || len(got) != 150 {
			t.Errorf("%d samples of waves (-lines +rocprofv3):\n%s", len(got), d)
		}
		if len(p.Kernels) != 1 || p.Kernels[0].Name != "grade" {
			t.Errorf("kernels %+v", p.Kernels)
		}
		var states []string
		for _, s := range p.States[1:] { // behind that of what has none
			states = append(states, fmt.Sprint(s.Name, s.Stalled))
		}
		if want := []string{"issuedfalse", "waitcnttrue"}; isStochastic && !slices.Equal(states, want) || !isStochastic && len(states) > 0 {
			t.Errorf("states %q", states)
		}
		// Without the CPU's samples the kernels are what there is.
		for _, w := range waves(t, profileOf(t, Options{}, "", path)) {
			if w.Functions[0] != "grade" && w.Functions[len(w.Functions)-1] != "grade" {
				t.Fatalf("%+v", w)
			}
		}
	}
}

// A wave is a sample of one in short.
type wave struct {
	Functions []string
	Offset    uint64
	Module    string
	Time      uint64
	Lanes     uint32
	TID       int
	Launch    string
}

// waves are the samples of program counters of accelerators.
func waves(t *testing.T, p *trace.Profile) (list []wave) {
	t.Helper()
	for i := range p.Samples {
		s := &p.Samples[i]
		if p.Events[s.Event].Name != gpusamples.DefaultEvent {
			continue
		}
		frames := p.StackFrames(nil, s.Stack)
		top := &p.Frames[frames[0]]
		w := wave{Offset: top.ModuleOffset, Time: s.Time, Lanes: uint32(s.ActiveLanes), TID: p.Threads[s.Thread].TID, Launch: s.Launch.String()}
		if top.Module >= 0 {
			w.Module = p.Modules[top.Module].Path
		}
		for _, f := range frames {
			for _, y := range p.Frames[f].Symbols {
				w.Functions = append(w.Functions, y.Function)
			}
		}
		list = append(list, w)
	}
	return list
}
