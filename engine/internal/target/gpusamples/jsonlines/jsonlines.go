// SPDX-License-Identifier: Apache-2.0

// Package jsonlines reads samples of accelerators' program counters, which a
// profiler writes as lines of JSON: the loaded code, the launches, and the places of
// waves. docs/gpu-samples.md describes the lines. Modules and launches may come before
// or behind the samples that refer to them.
//
// A line that is wrong is a problem, and only it is left out. Problems name the
// file, the line, and the member. The memory in use does not grow with the
// samples.
package jsonlines

import (
	"bytes"
	"errors"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
)

// Form is the name of the format.
const Form = "lines of JSON"

const (
	maxText     = 1 << 12 // bytes of a name or path
	maxFrames   = 1 << 16 // of a launch
	maxSegments = 1 << 12 // of a module
	maxEvents   = 64
)

// File is a file of samples, a gpusamples.File. It may be used concurrently, except
// for Close.
type File struct {
	*linetext.File
	facts   gpusamples.Facts
	without []int               // samples of each event that have no mask
	stacks  map[string][]uint64 // the frames of launches, each once
	texts   map[string]string   // the names of launches
	// Indices by ID; several where lines of one ID differ.
	moduleIDs, launchIDs map[string]int32
	kernels              map[kernelKey]int32
	dispatches           map[uint64]struct{} // hashes
	seed                 maphash.Seed
	places               gpusamples.Places
	pids                 map[int]bool
}

// several is the index of an ID that two lines use differently.
const several = -1

// kernelKey identifies a kernel.
type kernelKey struct{ name, module string }

// dispatchKey identifies a dispatch.
type dispatchKey struct {
	pid                    uint64
	agent, queue, dispatch string
	kernel                 int
}

// Open maps a file and reads its modules and launches. The error for a file that
// does not begin with a line of format 1 wraps gpusamples.ErrOtherForm.
func Open(path string) (*File, error) { return linetext.Open(path, gpusamples.ErrOtherForm, open) }

// open reads everything except the samples.
func open(lines *linetext.File) (*File, error) {
	f := &File{
		File: lines, facts: gpusamples.Facts{Path: lines.Path(), Form: Form},
		stacks: map[string][]uint64{}, texts: map[string]string{}, pids: map[int]bool{},
		moduleIDs: map[string]int32{}, launchIDs: map[string]int32{},
		kernels: map[kernelKey]int32{}, dispatches: map[uint64]struct{}{}, seed: maphash.MakeSeed(),
	}
	if err := f.index(); err != nil {
		return nil, err
	}
	for _, pid := range slices.Sorted(maps.Keys(f.pids)) {
		f.facts.Processes = append(f.facts.Processes, gpusamples.Process{PID: pid})
	}
	f.resolve()
	f.place()
	return f, nil
}

// resolve finds modules and launches that come behind the lines that refer to them.
func (f *File) resolve() {
	for key, i := range f.kernels {
		if m, ok := f.moduleIDs[key.module]; ok && m != several {
			f.facts.Kernels[i].Module = int(m)
		}
	}
}

// Facts returns everything in the lines that describe no sample.
func (f *File) Facts() *gpusamples.Facts { return &f.facts }

// eachLine calls see for the lines that are not blank. An end inside the last line is none of JSON.
func (f *File) eachLine(see func(*linetext.Line) error) error {
	return f.EachLine(func(l *linetext.Line) error {
		if errors.Is(l.Err, linetext.ErrCut) {
			if l.Err = nil; len(bytes.TrimSpace(l.Text)) == 0 {
				return nil
			}
		}
		return see(l)
	})
}

// Samples delivers the samples in the order of the file.
func (f *File) Samples(yield func(*gpusamples.Sample) error) error {
	r := reader{file: f}
	return f.eachLine(func(l *linetext.Line) error {
		// The errors of lines were found when the file was opened.
		kind, err := recordKind(&r.json, l)
		if err == nil && kind == recordSample && r.line.read(&r.json) == nil && r.take() {
			return yield(&r.sample)
		}
		return nil
	})
}

// reader reads the samples of a File in its order.
type reader struct {
	file   *File
	json   jsontext.Reader
	line   sampleLine
	sample gpusamples.Sample
	inline gpusamples.Launch
}

// take sets the sample from the line that was read; false where there are too many
// events.
func (r *reader) take() bool {
	f, l, s := r.file, &r.line, &r.sample
	event := f.eventOf(l)
	if event < 0 {
		return false
	}
	*s = gpusamples.Sample{
		Event: event, PID: -1, Module: -1, Kernel: -1, State: -1,
		Time: l.time.value, HasTime: l.time.isPresent, Weight: 1,
	}
	if l.weight.isPresent {
		s.Weight = l.weight.value
	}
	if l.mask.isPresent {
		mask := l.mask.value
		if l.lanes.isPresent && l.lanes.value < 64 {
			mask &= 1<<l.lanes.value - 1
		}
		s.ActiveLanes, s.HasLanes = uint32(bits.OnesCount64(mask)), true //nolint:gosec // at most 64
		s.Lanes = uint32(l.lanes.value)                                  //nolint:gosec // at most maxLanes
	}
	if l.pc.isPresent {
		s.PC = l.pc.value
		s.Module, s.Problem = f.places.At(s.PC)
	} else {
		s.Offset, s.HasOffset = l.offset.value, true
		s.Module, s.Problem = find(f.moduleIDs, l.module, "module")
	}
	s.Launch, s.LaunchIndex = r.launch(&l.launch)
	if s.Launch != nil {
		s.PID = s.Launch.PID
	}
	s.Kernel = f.kernelOf(l)
	return true
}

// launch returns the launch of a wave.
func (r *reader) launch(l *launchLine) (launch *gpusamples.Launch, index int) {
	if len(l.id) > 0 {
		if i, ok := r.file.launchIDs[string(l.id)]; ok && i != several {
			return &r.file.facts.Launches[i], int(i)
		}
		return nil, -1
	}
	if !l.pid.isPresent {
		return nil, -1
	}
	frames := append(r.inline.Frames[:0], l.frames...)
	r.inline = l.launch()
	r.inline.Frames = frames
	return &r.inline, -1
}

// find looks an ID up. It returns a problem where no line describes the ID, or several
// do differently.
func find(ids map[string]int32, id []byte, what string) (index int, problem string) {
	switch i, ok := ids[string(id)]; {
	case !ok:
		return -1, "no line describes its " + what
	case i == several:
		return -1, "several lines describe its " + what + ", not all alike"
	default:
		return int(i), ""
	}
}
