// SPDX-License-Identifier: Apache-2.0

// Package rocproftest writes files as rocprofv3 does with --output-format json, for tests:
// with its members in its order (generateJSON.cpp and serialization/save.hpp of
// rocprofiler-sdk), and with its placeholder elements.
package rocproftest

import "io"

// File is the output of one run of rocprofv3.
type File struct {
	Processes []Process
	// IsIndented writes a line for every value, as programs that rewrite the file do.
	// rocprofv3 itself writes one line.
	IsIndented bool
}

// Process is a process that was profiled.
type Process struct {
	PID        int
	Command    []string
	Agents     []Agent
	Objects    []Object
	Kernels    []Kernel
	Dispatches []Dispatch
	// HIP, HSA and Markers are calls of these APIs.
	HIP, HSA, Markers []Call
	// Instructions and Comments are the texts of the instructions of samples.
	Instructions, Comments []string
	// IsStochastic is true where samples are stochastic; else they are by host_trap.
	IsStochastic bool
	// Samples is their number, and Sample sets one of them.
	Samples int
	Sample  func(i int, s *Sample)
}

// Agent is a GPU, or, without lanes, a CPU.
type Agent struct {
	Handle uint64
	Name   string // "gfx942"
	Node   int
	Lanes  int // of a wave
}

// Object is a code object that was loaded.
type Object struct {
	ID, Agent            uint64
	URI                  string
	Base, Size           uint64
	Delta                int64
	MemoryBase, InMemory uint64 // InMemory 0: it was in a file
}

// Kernel is a function that is dispatched. Descriptor and Entry are addresses.
type Kernel struct {
	ID, Object        uint64
	Name              string // without .kd
	Descriptor, Entry uint64
}

// Dispatch is one run of a kernel.
type Dispatch struct {
	ID, Kernel, Agent, Queue uint64
	TID                      int
	Correlation              uint64
	Start, End               uint64
	Group, Grid              [3]uint32
}

// Call is a call of an API's function.
type Call struct {
	Function              string
	TID                   int
	Correlation, Ancestor uint64
	Start, End            uint64
	Arguments             []string // their values
}

// Sample is the place of a wave. With Object 0 Offset is an address.
type Sample struct {
	Object, Offset        uint64
	Mask, Time            uint64
	Dispatch, Correlation uint64
	Group                 [3]uint32
	WaveInGroup           int
	Instruction           int // index; -1: none
	// The members of stochastic samples. Type and Reason are the names without the
	// prefixes of their enumerations.
	IsIssued     bool
	Type, Reason string
	WaveCount    int
}

// Write writes a file.
func (f *File) Write(w io.Writer) error {
	o := newOutput(w, f.IsIndented)
	o.object("", func() {
		o.array("rocprofiler-sdk-tool", func() {
			for i := range f.Processes {
				o.object("", func() { o.process(&f.Processes[i]) })
			}
		})
	})
	return o.end()
}

func (o *output) process(p *Process) {
	o.metadata(p)
	o.array("agents", func() {
		for i := range p.Agents {
			o.object("", func() { o.agent(&p.Agents[i]) })
		}
	})
	o.array("counters", func() {})
	names := operations(p)
	o.strings(p, names)
	o.array("code_objects", func() {
		o.object("", func() { o.codeObject(&Object{}) })
		for i := range p.Objects {
			o.object("", func() { o.codeObject(&p.Objects[i]) })
		}
	})
	o.array("kernel_symbols", func() {
		o.object("", func() { o.kernel(&Kernel{}) })
		for i := range p.Kernels {
			o.object("", func() { o.kernel(&p.Kernels[i]) })
		}
	})
	o.array("host_functions", func() {})
	o.array("summary", func() {})
	o.object("callback_records", func() {
		o.array("counter_collection", func() {})
		o.array("spm_counter_collection", func() {})
	})
	o.object("buffer_records", func() { o.records(p, names) })
}

// The kinds of records (rocprofiler_buffer_tracing_kind_t).
const (
	kindHSA      = 1
	kindMarker   = 7
	kindDispatch = 11
	kindHIP      = 21 // HIP_RUNTIME_API_EXT: with arguments
	kinds        = 30
)

// operations are the functions that are called, by kind.
func operations(p *Process) map[int][]string {
	names := map[int][]string{kindDispatch: {"KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"}}
	for kind, calls := range map[int][]Call{kindHSA: p.HSA, kindMarker: p.Markers, kindHIP: p.HIP} {
		for _, c := range calls {
			if operation(names[kind], c.Function) < 0 {
				names[kind] = append(names[kind], c.Function)
			}
		}
	}
	return names
}

func operation(names []string, name string) int {
	for i := range names {
		if names[i] == name {
			return i
		}
	}
	return -1
}

func (o *output) records(p *Process, names map[int][]string) {
	o.array("kernel_dispatch", func() {
		for i := range p.Dispatches {
			o.object("", func() { o.dispatch(&p.Dispatches[i]) })
		}
	})
	o.calls("hip_api", p.HIP, kindHIP, names[kindHIP])
	o.calls("hsa_api", p.HSA, kindHSA, names[kindHSA])
	o.calls("marker_api", p.Markers, kindMarker, names[kindMarker])
	for _, name := range []string{"rccl_api", "memory_copy", "memory_allocation", "scratch_memory", "kfd", "rocdecode_api", "rocjpeg_api"} {
		o.array(name, func() {})
	}
	samples := func() {
		var s Sample
		for i := range p.Samples {
			s = Sample{}
			p.Sample(i, &s)
			o.object("", func() { o.sample(&s, p.IsStochastic) })
		}
	}
	trapped, stochastic := samples, func() {}
	if p.IsStochastic {
		trapped, stochastic = stochastic, trapped
	}
	o.array("pc_sample_host_trap", trapped)
	o.array("pc_sample_stochastic", stochastic)
	o.array("hip_graph", func() {})
}
