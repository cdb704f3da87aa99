// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/schema"
)

// TestWhatIsKnownOfWavesIsInTheSchema writes a profile that has every member about waves.
func TestWhatIsKnownOfWavesIsInTheSchema(t *testing.T) {
	p := &trace.Profile{
		Path:    "gpu.json",
		Events:  []trace.ProfileEvent{{Name: "gpu-pc-sampling", Unit: "count", Lanes: true, States: true, Device: true}},
		Threads: []trace.ProfileThread{{PID: 1, TID: 2, Comm: "host"}},
		Frames: []trace.ProfileFrame{{
			PC: 0x1000, Exact: true, FoundBy: trace.ByContext, Device: true, NamedBy: "rocprofv3", Instruction: "s_nop 0",
			Symbols: []trace.Symbol{{Function: "grade"}},
		}},
		Modules: []trace.ProfileModule{{Module: &trace.Module{Path: "grade.co"}}},
		Kernels: []trace.ProfileKernel{{Name: "_Z5gradePi", Dispatches: 1, Time: 5, HasTime: true, Lanes: 64}},
		Stacks:  []trace.ProfileStack{{}, {}},
		States:  []trace.WaveState{{}, {Name: "waitcnt", Stalled: true}},
		Stops:   []trace.Stopped{{Reason: trace.StopOutermost}},
	}
	for launch := trace.EvidenceUnknown; launch <= trace.EvidenceRecorded; launch++ {
		p.Samples = append(p.Samples, trace.ProfileSample{Weight: 1, Stack: 1, ActiveLanes: 3, State: 1, Launch: launch})
	}
	r, err := NewProfile(p)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range schema.Docs(t, "profile.schema.json").Check("profile", out) {
		t.Error(wrong)
	}
	members := func(list string, index int, names ...string) {
		for _, name := range names {
			if _, ok := out[list].([]any)[index].(map[string]any)[name]; !ok {
				t.Errorf("%s have no %s", list, name)
			}
		}
	}
	members("events", 0, "states", "device")
	members("samples", 3, "state", "active_lanes", "launched_by")
	members("frames", 0, "device", "dispatched", "named_by", "instruction")
	members("kernels", 0, "id", "name", "function", "module", "dispatches", "time", "samples", "lanes")
}
