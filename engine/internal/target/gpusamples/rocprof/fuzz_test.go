// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
)

// FuzzResults reads arbitrary bytes as a file, by shapes and member by member.
func FuzzResults(f *testing.F) {
	f.Add(text(f, one(run())))
	f.Add([]byte(`{"rocprofiler-sdk-tool":[{"metadata":{"pid":1,"command":["/a"]},"agents":[{"id":{"handle":2},"type":2,"name":"gfx90a","wave_front_size":64}],
		"code_objects":[{"code_object_id":1,"agent_id":{"handle":2},"uri":"file:///a#offset=1&size=2","load_base":16,"load_size":32,"load_delta":-1}],
		"kernel_symbols":[{"kernel_id":1,"code_object_id":1,"kernel_name":"k.kd","kernel_address":{"handle":17}}],
		"strings":{"pc_sample_instructions":["s_nop"],"pc_sample_comments":["a:1 -> b:2"],"buffer_records":[{"operations":["launch"]}]},
		"buffer_records":{"kernel_dispatch":[{"thread_id":5,"correlation_id":{"internal":1},"start_timestamp":1,"end_timestamp":2,"dispatch_info":{"kernel_id":1,"dispatch_id":1}}],
		"hip_api":[{"kind":0,"operation":0,"thread_id":5,"correlation_id":{"internal":1,"ancestor":0},"start_timestamp":1,"end_timestamp":2}],
		"pc_sample_stochastic":[{"record":{"pc":{"code_object_id":1,"code_object_offset":1},"exec_mask":3,"timestamp":1,"dispatch_id":1,"wave_issued":0,"snapshot":{"stall_reason":"A"}},"inst_index":0},
		{"record":{"pc":{"code_object_id":1,"code_object_offset":1},"exec_mask":3,"timestamp":1,"dispatch_id":1,"wave_issued":0,"snapshot":{"stall_reason":"B"}},"inst_index":-1}]}}]}`))
	f.Add([]byte(`{"rocprofiler-sdk-tool":[{"buffer_records":{"pc_sample_host_trap":[{"record":{"pc":{"code_object_id":0,"code_object_offset":16},"dispatch_id":3}}]}}]}`))
	f.Add([]byte(`{"x":0,"rocprofiler-sdk-tool":[{"buffer_records":{"hip_api":[{"correlation_id":{"internal":1,"ancestor":1}}],"kernel_dispatch":[{"correlation_id":{"internal":1},"dispatch_info":{"dispatch_id":1}}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		exercise(t, data)
		exercise(t, append([]byte(`{"rocprofiler-sdk-tool":[{"buffer_records":{"pc_sample_stochastic":[`), data...))
	})
}

func exercise(t *testing.T, data []byte) {
	read := func(noShapes bool) (*File, []gpusamples.Sample) {
		f := &File{path: "fuzz", data: data, maxKept: 1 << 20, noShapes: noShapes}
		if f.open() != nil {
			return nil, nil
		}
		return f, collect(t, f)
	}
	f, samples := read(false)
	slow, slowly := read(true)
	if (f == nil) != (slow == nil) {
		t.Fatal("shapes decide whether a file is read")
	}
	if f == nil {
		return
	}
	if d := cmp.Diff(slow.facts, f.facts); d != "" {
		t.Errorf("facts (-members +shapes):\n%s", d)
	}
	if d := cmp.Diff(slowly, samples); d != "" {
		t.Errorf("samples (-members +shapes):\n%s", d)
	}
	if d := cmp.Diff(slow.Problems(), f.Problems()); d != "" || len(f.Problems()) > maxProblems+1 {
		t.Errorf("problems (-members +shapes):\n%s", d)
	}
	checkFacts(t, &f.facts)
	for i := range samples {
		checkSample(t, &f.facts, &samples[i])
	}
	if n := bytes.Count(data, []byte("{")); len(samples) > n || len(f.facts.Events) > 0 && f.facts.Events[0].Samples != len(samples) {
		t.Errorf("%d samples of %d objects, %+v", len(samples), n, f.facts.Events)
	}
}

func checkFacts(t *testing.T, f *gpusamples.Facts) {
	for _, d := range f.Dispatches {
		if d.Kernel >= len(f.Kernels) || d.Launch >= len(f.Launches) || d.End < d.Start {
			t.Errorf("dispatch %+v", d)
		}
	}
	for _, k := range f.Kernels {
		if k.Module >= len(f.Modules) || k.HasEntry && k.Module < 0 {
			t.Errorf("kernel %+v", k)
		}
	}
	for _, m := range f.Modules {
		for _, s := range m.Segments {
			if s.Start+s.Size < s.Start {
				t.Errorf("module %+v", m)
			}
		}
	}
	for _, l := range f.Launches {
		if l.HasEnd && l.End < l.Time {
			t.Errorf("launch %+v", l)
		}
	}
}

func checkSample(t *testing.T, f *gpusamples.Facts, s *gpusamples.Sample) {
	if s.Module >= len(f.Modules) || s.Kernel >= len(f.Kernels) || s.State >= len(f.States) || s.LaunchIndex >= len(f.Launches) {
		t.Errorf("sample %+v", s)
	}
	if s.Module >= 0 && s.Problem != "" || s.ActiveLanes > maxLanes || s.Lanes > 0 && s.ActiveLanes > s.Lanes || s.Event != 0 || s.Weight != 1 {
		t.Errorf("sample %+v", s)
	}
	if (s.Launch == nil) != (s.LaunchIndex < 0) {
		t.Errorf("sample %+v", s)
	}
}
