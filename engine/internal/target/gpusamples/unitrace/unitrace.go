// SPDX-License-Identifier: Apache-2.0

// Package unitrace reads the stall tables of unitrace (Intel, intel/pti-gpu
// tools/unitrace), which it writes for --stall-sampling: how often the threads of
// each kernel were found at each instruction, and why they waited. A file has one
// table for each device. All counts are sums over the whole run: there are no times,
// no processes, and no launches.
//
// A line of a table that is wrong is a problem, and only it is left out.
package unitrace

import (
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
	"github.com/unwindd/unwindd/engine/object"
)

// Form is the name of the format.
const Form = "unitrace"

// File is a file of stall tables, a gpusamples.File. It may be used concurrently,
// except for Close.
type File struct {
	*linetext.File
	facts   gpusamples.Facts
	kernels map[string]int32 // indices of facts.Kernels by name
	states  map[string]int   // indices of facts.States by name of the column
}

// Open maps a file and reads its kernels. The error for a file that is not of unitrace
// wraps gpusamples.ErrOtherForm. For a file of unitrace without stalls it does not, and says
// what to record.
func Open(path string) (*File, error) { return linetext.Open(path, gpusamples.ErrOtherForm, open) }

// open reads everything except the samples.
func open(lines *linetext.File) (*File, error) {
	f := &File{
		File: lines, facts: gpusamples.Facts{Path: lines.Path(), Form: Form},
		kernels: map[string]int32{}, states: map[string]int{},
	}
	p := pass{file: f, isFirst: true}
	samples := 0
	err := lines.EachLine(func(l *linetext.Line) error {
		if err := p.see(l); err != nil {
			return err
		}
		for i := range p.counts {
			if p.counts[i] > 0 {
				samples++
			}
		}
		return nil
	})
	if err == nil && !p.hasTable {
		err = fmt.Errorf("%w: it has no table of stalls", gpusamples.ErrOtherForm)
	}
	if errors.Is(err, object.ErrFileShrank) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lines.Path(), err)
	}
	if samples > 0 {
		f.facts.Events = []gpusamples.Event{{Name: gpusamples.StallEvent, Samples: samples}}
	}
	return f, nil
}

// Facts returns the kernels and the states.
func (f *File) Facts() *gpusamples.Facts { return &f.facts }

// Samples delivers a sample for each count that is not zero, in the order of the file.
func (f *File) Samples(yield func(*gpusamples.Sample) error) error {
	p := pass{file: f}
	var s gpusamples.Sample
	return f.EachLine(func(l *linetext.Line) error {
		if err := p.see(l); err != nil {
			return err
		}
		for i, n := range p.counts {
			if n == 0 {
				continue
			}
			s = gpusamples.Sample{
				PID: -1, Module: -1, Kernel: p.kernel, State: p.columns[i].state,
				Offset: p.offset, HasOffset: true, InKernel: true, Weight: n, LaunchIndex: -1,
			}
			if err := yield(&s); err != nil {
				return err
			}
		}
		return nil
	})
}
