// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/rocprof/rocproftest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/examples/mixed/simt"
)

// The load address of the code object, and the IDs of the agent, the code object, the
// queue and the kernel.
const (
	loadBase = 0x7f5000000000
	agent    = 2
	codeID   = 1
	queue    = 1
	kernelID = 1
)

// recorded is a run as rocprofv3 would have recorded it.
type recorded struct {
	process rocproftest.Process
	samples []rocproftest.Sample
}

// newRecorded makes a run with a code object.
func newRecorded(o *object.Object) *recorded {
	var entry uint64
	_ = o.EachSymbol(func(s *object.Symbol) { // no error: it is complete, from the compiler
		if s.Name == "grade" {
			entry = s.Address
		}
	})
	return &recorded{process: rocproftest.Process{
		Command: []string{folder + "/host"},
		Agents:  []rocproftest.Agent{{Handle: 1, Name: "CPU"}, {Handle: agent, Name: processor, Node: 1, Lanes: lanes}},
		Objects: []rocproftest.Object{{
			ID: codeID, Agent: agent, URI: fmt.Sprintf("file://%s/grade.co#offset=0&size=%d", folder, len(o.Data())), Base: loadBase, Size: o.MemorySize(), Delta: loadBase,
		}},
		Kernels: []rocproftest.Kernel{{ID: kernelID, Object: codeID, Name: "grade", Entry: loadBase + entry}},
	}}
}

// launched adds a launch and its dispatch, which begins when the call has returned, and
// takes half a microsecond for each work-item.
func (r *recorded) launched(l *launch) {
	r.process.PID = l.PID
	id := uint64(l.ID)
	r.process.HIP = append(r.process.HIP, rocproftest.Call{Function: l.API, TID: l.TID, Correlation: id, Start: l.Time, End: l.End})
	r.process.Dispatches = append(r.process.Dispatches, rocproftest.Dispatch{
		ID: id, Kernel: kernelID, Agent: agent, Queue: queue, TID: l.TID, Correlation: id,
		Start: l.End, End: l.End + items*500, Group: [3]uint32{lanes, 1, 1}, Grid: [3]uint32{items, 1, 1},
	})
}

// sampled adds a sample of a wave.
func (r *recorded) sampled(w *simt.Wave, l *launch, first int, time uint64) {
	r.samples = append(r.samples, rocproftest.Sample{
		Object: codeID, Offset: w.PC, Mask: w.Exec, Time: time, Dispatch: uint64(l.ID), Correlation: uint64(l.ID),
		Group: [3]uint32{uint32(first / lanes)}, Instruction: -1,
	})
}

// write writes the file.
func (r *recorded) write(path string) error {
	p := &r.process
	p.Samples = len(r.samples)
	p.Sample = func(i int, s *rocproftest.Sample) { *s = r.samples[i] }
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := (&rocproftest.File{Processes: []rocproftest.Process{*p}}).Write(f); err != nil {
		return err
	}
	return f.Close()
}
