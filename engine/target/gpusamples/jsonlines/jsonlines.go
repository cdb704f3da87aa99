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
	"fmt"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target/gpusamples"
	"github.com/unwindd/unwindd/engine/target/jsontext"
	"github.com/unwindd/unwindd/internal/problems"
)

// Form is the name of the format.
const Form = "lines of JSON"

const (
	maxLine     = 1 << 20 // bytes
	maxText     = 1 << 12 // bytes of a name or path
	maxFrames   = 1 << 16 // of a launch
	maxSegments = 1 << 12 // of a module
	maxEvents   = 64
	// maxKept bounds the memory of modules and launches.
	maxKept     = 256 << 20
	maxProblems = 100
)

// File is a file of samples, a gpusamples.File. It may be used concurrently, except
// for Close.
type File struct {
	path    string
	mapping *object.Mapping // nil for bytes in memory
	data    []byte
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
	kept, maxKept        int
	problems             problems.List[string]
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
func Open(path string) (*File, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w: the file is empty", path, gpusamples.ErrOtherForm)
	}
	if err != nil {
		return nil, err
	}
	f := &File{path: path, mapping: m, data: m.Data(), maxKept: maxKept}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return f, nil
}

// open reads everything except the samples.
func (f *File) open() error {
	f.stacks, f.texts, f.pids = map[string][]uint64{}, map[string]string{}, map[int]bool{}
	f.moduleIDs, f.launchIDs = map[string]int32{}, map[string]int32{}
	f.kernels, f.dispatches = map[kernelKey]int32{}, map[uint64]struct{}{}
	f.seed = maphash.MakeSeed()
	f.facts = gpusamples.Facts{Path: f.path, Form: Form}
	if err := object.Guard(f.index); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	for _, pid := range slices.Sorted(maps.Keys(f.pids)) {
		f.facts.Processes = append(f.facts.Processes, gpusamples.Process{PID: pid})
	}
	f.resolve()
	f.place()
	return nil
}

// resolve finds modules and launches that come behind the lines that refer to them.
func (f *File) resolve() {
	for key, i := range f.kernels {
		if m, ok := f.moduleIDs[key.module]; ok && m != several {
			f.facts.Kernels[i].Module = int(m)
		}
	}
}

// Close unmaps the file.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Facts returns everything in the lines that describe no sample.
func (f *File) Facts() *gpusamples.Facts { return &f.facts }

// Problems returns the problems of the file, each a sentence that names the file,
// the line, the member, and the expectation.
func (f *File) Problems() []string {
	list := f.problems.Kept()
	if n := f.problems.Dropped(); n > 0 {
		list = append(list, fmt.Sprintf("%s: %d more problems", f.path, n))
	}
	return list
}

func (f *File) problem(line int, format string, args ...any) {
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(fmt.Sprintf("%s:%d: ", f.path, line) + fmt.Sprintf(format, args...))
	}
}

// account counts bytes of memory in use.
func (f *File) account(n int) bool {
	if n > f.maxKept-f.kept {
		return false
	}
	f.kept += n
	return true
}

// Samples delivers the samples in the order of the file.
func (f *File) Samples(yield func(*gpusamples.Sample) error) error {
	r := reader{file: f, lines: scanner{data: f.data}}
	err := object.Guard(func() error {
		for r.next() {
			if err := yield(&r.sample); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, object.ErrFileShrank) {
		return fmt.Errorf("%s:%d: %w", f.path, r.lines.number, err)
	}
	return err
}

// reader reads the samples of a File in its order.
type reader struct {
	file   *File
	lines  scanner
	line   sampleLine
	sample gpusamples.Sample
	inline gpusamples.Launch
}

// next reads the next sample; false where there is none.
func (r *reader) next() bool {
	for r.lines.next() {
		r.file.releasePages(&r.lines)
		if kind, err := recordKind(r.lines.json()); err != nil || kind != recordSample {
			continue
		}
		// Its errors were found when the file was opened.
		if r.line.read(r.lines.json()) == nil && r.take() {
			return true
		}
	}
	return false
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

// scanner goes over the lines that are not empty.
type scanner struct {
	data     []byte // not read yet
	text     []byte // the line, without its end
	number   int    // the line's, from 1
	released int    // bytes of the file whose pages were released
	reader   jsontext.Reader
}

// window is how much of the file is mapped at a time: mapped pages count as the process's
// memory.
const window = 16 << 20

// releasePages releases the pages that a scanner is done with.
func (f *File) releasePages(s *scanner) {
	done := len(f.data) - len(s.data) - len(s.text) - 1
	if f.mapping != nil && done-s.released >= window {
		f.mapping.ReleasePages(uint64(s.released), uint64(done)) //nolint:gosec // not negative
		s.released = done
	}
}

// json returns the reader of the line, which all lines share.
func (s *scanner) json() *jsontext.Reader {
	s.reader = jsontext.Reader{Data: s.text}
	return &s.reader
}

func (s *scanner) next() bool {
	for len(s.data) > 0 {
		s.text, s.data, _ = bytes.Cut(s.data, []byte("\n"))
		s.number++
		if len(s.text) > maxLine || len(bytes.TrimSpace(s.text)) > 0 {
			return true
		}
	}
	return false
}
