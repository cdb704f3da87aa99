// SPDX-License-Identifier: Apache-2.0

// Package iaprof reads the text of iaprof (Intel, intel/iaprof), a profiler of stalls
// on GPUs of the Xe2 generation: for each interval, how often the threads of each
// kernel were found at each instruction and why they waited, and the names of the
// functions of the CPU that launched the kernel last.
//
// The text has these lines, whose fields are separated by tabs (src/profile.cpp):
//
//	string    ID, text
//	interval  number, its end in seconds of CLOCK_MONOTONIC
//	kernel    GPU address, comm, process, stack of the CPU, source file, symbol
//	eustall   offset in the kernel, instruction, a count for each state
//	metric    name, number
//
// A text is written as the ID of a string; 0: none. Counts are the numbers of records that
// iaprof kept, one of a hundred without --eu-stall-subsample; the share is not in the text.
//
// A line that is wrong is a problem, and only it is left out.
package iaprof

import (
	"errors"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
	"github.com/unwindd/unwindd/engine/trace"
)

// Form is the name of the format.
const Form = "iaprof"

// clock is the clock of intervals (src/profile.cpp, Profile::output_interval).
const clock = "CLOCK_MONOTONIC"

// states are the states of the counts of an eustall line, in their order.
var states = []string{"active", "control", "pipestall", "send", "dist_acc", "sbid", "sync", "inst_fetch", "other", "tdr"}

// File is a text of iaprof, a gpusamples.File. It may be used concurrently, except for
// Close.
type File struct {
	*linetext.File
	facts    gpusamples.Facts
	texts    map[uint64]text // the strings that lines refer to, by ID
	kernels  map[kernelKey]int32
	launches map[launchKey]int32
	end      int // the first line of another run; 0: none
}

// text is a string that a line refers to.
type text struct {
	value string
	line  int // the first one that refers to it
	state textState
}

type textState uint8

const (
	isNamed textState = iota
	isDescribed
	isAmbiguous // two lines describe it differently
)

// kernelKey identifies a kernel by IDs of strings.
type kernelKey struct{ symbol, file uint64 }

// launchKey identifies a launch. comm and stack are IDs of strings.
type launchKey struct{ comm, stack, pid uint64 }

// none is the index of an unknown kernel or launch.
const none = -1

// Open maps a file and reads its kernels and launches. The error for a file that does not
// begin like a text of iaprof wraps gpusamples.ErrOtherForm; for the text of an older iaprof
// it does not.
func Open(path string) (*File, error) { return linetext.Open(path, gpusamples.ErrOtherForm, open) }

// open reads everything except the samples.
func open(lines *linetext.File) (*File, error) {
	f := &File{
		File: lines, facts: gpusamples.Facts{Path: lines.Path(), Form: Form, Clock: clock},
		texts: map[uint64]text{}, kernels: map[kernelKey]int32{}, launches: map[launchKey]int32{},
	}
	for _, name := range states {
		f.facts.States = append(f.facts.States, trace.WaveState{Name: name, Stalled: name != "active"})
	}
	if err := f.index(); err != nil {
		return nil, err
	}
	return f, nil
}

// Facts returns the kernels, the launches and the states.
func (f *File) Facts() *gpusamples.Facts { return &f.facts }

// Samples delivers a sample for each count that is not zero, in the order of the file.
func (f *File) Samples(yield func(*gpusamples.Sample) error) error {
	p := pass{file: f}
	var s, one gpusamples.Sample
	err := f.EachLine(func(l *linetext.Line) error {
		if l.Number == f.end {
			return errEnd
		}
		_ = p.see(l) // its errors were found when the file was opened
		if !p.isStall {
			return nil
		}
		p.sample(&s)
		for i, n := range p.counts {
			if n == 0 {
				continue
			}
			one = s // yield may change a sample
			one.State, one.Weight = i, n
			if err := yield(&one); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// errEnd ends a pass over the lines.
var errEnd = errors.New("the end of the run")
