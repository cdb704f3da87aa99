// SPDX-License-Identifier: Apache-2.0

// Package rocprof reads the output of rocprofv3, the profiler of ROCm, with --output-format
// json: samples of program counters by host trap or stochastic, code objects, kernels,
// dispatches, and the calls that launched them. The file has one object for each process:
//
//	{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1, ...}, "agents": [...],
//	  "strings": {...}, "code_objects": [...], "kernel_symbols": [...],
//	  "buffer_records": {"kernel_dispatch": [...], "hip_api": [...],
//	    "pc_sample_host_trap": [...], "pc_sample_stochastic": [...]}}]}
//
// IDs are unique within a process. Members may be in any order.
//
// A record that is wrong is a problem, and only it is left out; a truncated file is read
// up to its end. The memory in use does not grow with the samples.
package rocprof

import (
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/problems"
)

// Form is the name of the format.
const Form = "rocprofv3"

// clock is the clock of all times; times of the GPU are translated to it.
const clock = "CLOCK_BOOTTIME"

const (
	maxRecord = 1 << 20 // bytes
	// maxAgent bounds an agent, which has a list of hundreds of caches.
	maxAgent = 16 << 20
	// maxKept bounds the bytes of memory of everything except samples.
	maxKept     = 384 << 20
	maxProblems = 100
	// maxWrong is the number of wrong elements after which an array is not read on.
	maxWrong = 1 << 20
	// maxMapped is how much of the file is read before its pages are released.
	maxMapped = 32 << 20
)

// File is a file of rocprofv3, a gpusamples.File. It may be used concurrently, except for
// Close.
type File struct {
	path      string
	mapping   *object.Mapping // nil for bytes in memory
	data      []byte
	facts     gpusamples.Facts
	processes []*process
	states    map[string]int16 // by stall reason
	masks     int              // samples that have one
	// noShapes reads every record member by member.
	noShapes bool

	kept, maxKept int
	maxMapped     int
	releasedTo    int // the pages before it were released
	problems      problems.List[string]
	abandoned     int // arrays
}

// Open maps a file and reads all except its samples. The error for a file that is no JSON of
// rocprofv3 wraps gpusamples.ErrOtherForm; for other files of rocprofv3 it names what to
// record instead.
func Open(path string) (*File, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w: the file is empty", path, gpusamples.ErrOtherForm)
	}
	if err != nil {
		return nil, err
	}
	f := &File{path: path, mapping: m, data: m.Data(), maxKept: maxKept, maxMapped: maxMapped}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return f, nil
}

// open reads everything except the samples.
func (f *File) open() error {
	f.states = map[string]int16{}
	f.facts = gpusamples.Facts{Path: f.path, Form: Form, Clock: clock}
	err := object.Guard(func() error {
		if err := recognise(f.data); err != nil {
			return err
		}
		f.read()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.finish()
	return nil
}

// finish adds the facts that all processes have in common.
func (f *File) finish() {
	samples := 0
	for _, p := range f.processes {
		f.facts.Processes = append(f.facts.Processes, gpusamples.Process{PID: p.pid, Name: p.name})
		for i := range p.chunks {
			samples += p.chunks[i].samples
		}
	}
	if samples > 0 {
		f.facts.Events = []gpusamples.Event{{Name: gpusamples.DefaultEvent, Samples: samples, Lanes: f.masks == samples}}
	}
	if f.masks > 0 && f.masks < samples {
		f.problem("%d of the %d samples have no exec_mask: active lanes are told of none", samples-f.masks, samples)
	}
}

// Close unmaps the file.
func (f *File) Close() error { return f.mapping.Close() }

// Facts returns everything in the file except its samples.
func (f *File) Facts() *gpusamples.Facts { return &f.facts }

// Problems returns the problems of the file, each a sentence that names the file, the
// offset in it, the member, and the expectation.
func (f *File) Problems() []string {
	list := f.problems.Kept()
	if n := f.problems.Dropped(); n > 0 {
		list = append(list, fmt.Sprintf("%s: %d more problems", f.path, n))
	}
	if f.abandoned > 0 {
		list = append(list, fmt.Sprintf("%s: %d arrays have %d wrong records each: what stands behind those is not read", f.path, f.abandoned, maxWrong))
	}
	return list
}

func (f *File) problem(format string, args ...any) {
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(f.path + ": " + fmt.Sprintf(format, args...))
	}
}

// account counts bytes of memory in use.
func (f *File) account(n int) error {
	if n > f.maxKept-f.kept {
		return fmt.Errorf("there are more than %d bytes of all but samples", f.maxKept)
	}
	f.kept += n
	return nil
}

// passed releases pages that were read.
func (f *File) passed(offset int) {
	if offset-f.releasedTo >= f.maxMapped || offset < f.releasedTo {
		f.mapping.ReleasePages(uint64(f.releasedTo), uint64(offset)) //nolint:gosec // offsets in the file
		f.releasedTo = offset
	}
}

// reader reads the file from an offset on.
func (f *File) reader(offset int) *jsontext.Reader {
	return &jsontext.Reader{Data: f.data, At: offset, Passed: f.passed}
}
