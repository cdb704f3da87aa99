// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"bytes"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/rocprof/rocproftest"
)

func BenchmarkRead(b *testing.B) {
	for _, form := range []struct {
		name         string
		isStochastic bool
		isIndented   bool
	}{{"host_trap", false, false}, {"stochastic", true, false}, {"stochastic,indented", true, true}} {
		p := run()
		p.IsStochastic, p.Samples = form.isStochastic, 1<<15
		data := text(b, rocproftest.File{Processes: []rocproftest.Process{p}, IsIndented: form.isIndented})
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				f := &File{path: "bench", data: data, maxKept: maxKept}
				if err := f.open(); err != nil {
					b.Fatal(err)
				}
				if err := f.Samples(func(*gpusamples.Sample) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(p.Samples), "ns/sample")
		})
	}
}

// text is a file as it is written.
func text(t testing.TB, f rocproftest.File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// run is a process that dispatched two kernels, one of them twice.
func run() rocproftest.Process {
	return rocproftest.Process{
		PID: 4711, Command: []string{"/usr/bin/app", "-n", "3"},
		Agents: []rocproftest.Agent{
			{Handle: 32600, Name: "AMD EPYC 9654 96-Core Processor"},
			{Handle: 32602, Name: "gfx942:sramecc+:xnack-", Node: 2, Lanes: 64},
		},
		Objects: []rocproftest.Object{
			{
				ID: 1, Agent: 32602, URI: "memory://4711#offset=0x563c46cf5a40&size=32968", Base: 0x7bb600418000, Size: 36864, Delta: 0x7bb600418000,
				MemoryBase: 0x563c46cf5a40, InMemory: 32968,
			},
			{ID: 2, Agent: 32602, URI: "file:///app/my%20tests/vcopy#offset=12288&size=8064", Base: 0x7bb600400000, Size: 17649, Delta: 0x7bb600400000},
		},
		Kernels: []rocproftest.Kernel{
			{ID: 1, Object: 1, Name: "__amd_rocclr_copyBuffer", Descriptor: 0x7bb60041b6c0, Entry: 0x7bb60041d200},
			{ID: 2, Object: 2, Name: "_Z7vecCopyPdS_S_ii", Descriptor: 0x7bb600400ec0, Entry: 0x7bb600401f40},
		},
		Dispatches: []rocproftest.Dispatch{
			{
				ID: 1, Kernel: 2, Agent: 32602, Queue: 2, TID: 4711, Correlation: 1, Start: 1986623975868304, End: 1986623975876596,
				Group: [3]uint32{256, 1, 1}, Grid: [3]uint32{1048576, 1, 1},
			},
			{
				ID: 2, Kernel: 2, Agent: 32602, Queue: 2, TID: 4713, Correlation: 4, Start: 1986623975909003, End: 1986623975914531,
				Group: [3]uint32{256, 1, 1}, Grid: [3]uint32{1048576, 1, 1},
			},
			{
				ID: 3, Kernel: 1, Agent: 32602, Queue: 3, TID: 4711, Correlation: 7, Start: 1986623975930955, End: 1986623975936443,
				Group: [3]uint32{64, 2, 1}, Grid: [3]uint32{128, 2, 1},
			},
		},
		HIP: []rocproftest.Call{
			{Function: "hipMalloc", TID: 4711, Correlation: 100, Start: 1986623975000001, End: 1986623975000009, Arguments: []string{"0x10"}},
			{Function: "hipLaunchKernel", TID: 4711, Correlation: 1, Start: 1986623975860000, End: 1986623975861000, Arguments: []string{"0x7b", "256"}},
			{Function: "hipExtModuleLaunchKernel", TID: 4713, Correlation: 3, Start: 1986623975900000, End: 1986623975901000, Arguments: []string{"0x7b"}},
		},
		HSA: []rocproftest.Call{
			{Function: "hsa_signal_store_screlease", TID: 4713, Correlation: 4, Ancestor: 3, Start: 1986623975900400, End: 1986623975900500},
		},
		Markers:      []rocproftest.Call{{Function: "roctxMarkA", TID: 4711, Correlation: 101, Start: 1, End: 2}},
		Instructions: []string{"s_load_dword s7, s[4:5], 0x24", "s_waitcnt lgkmcnt(0)", "s_load_dword s7, s[4:5], 0x24"},
		Comments:     []string{"/app/a.h:7 -> /app/vcopy.cpp:30", "", "/app/vcopy.cpp:31"},
		Samples:      8, Sample: sampleOf,
	}
}

// sampleOf is a sample of run. The numbers mean nothing.
func sampleOf(i int, s *rocproftest.Sample) {
	*s = rocproftest.Sample{
		Object: 2, Offset: 0x1f40 + 8*uint64(i%64), Mask: ^uint64(0) >> (i % 3), Time: 1986623975869000 + 130*uint64(i), //nolint:gosec // small
		Dispatch: uint64(i%3) + 1, Correlation: []uint64{1, 4, 7}[i%3], Group: [3]uint32{uint32(i), 0, 0}, WaveInGroup: i % 4, Instruction: i % 3, //nolint:gosec // small
		IsIssued: i%4 == 0, Type: "NO_INST", Reason: []string{"WAITCNT", "ALU_DEPENDENCY", "NONE"}[i%3], WaveCount: 24,
	}
	if s.IsIssued {
		s.Type, s.Reason = "VALU", "NONE"
	}
	switch i {
	case 5: // in no code object that is known
		s.Object, s.Offset, s.Instruction = 0, 0x7bb600418010, -1
	case 6:
		s.Object, s.Offset, s.Instruction = 0, 0x1000, -1
	}
}
