// SPDX-License-Identifier: Apache-2.0

package jsonlines

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
)

// index goes once over the lines: it collects modules and launches, and the problems of
// all lines.
func (f *File) index() error {
	first := true
	var json jsontext.Reader
	var sample sampleLine
	err := f.eachLine(func(l *linetext.Line) error {
		if first {
			format, err := readFormat(&json, l)
			if err != nil {
				return fmt.Errorf("%s: %w: line %d: %w", f.Path(), gpusamples.ErrOtherForm, l.Number, err)
			}
			f.facts.Clock, first = format.clock, false
			return nil
		}
		if err := f.indexLine(&json, l, &sample); err != nil {
			f.Problem(l.Number, "%v: the line is left out", err)
		}
		return nil
	})
	if err == nil && first {
		err = fmt.Errorf("%s: %w: it has no lines", f.Path(), gpusamples.ErrOtherForm)
	}
	if err != nil {
		return err
	}
	for i, without := range f.without {
		if e := &f.facts.Events[i]; !e.Lanes && without < e.Samples {
			f.Problem(1, "%d of the %d samples of event %s have no exec_mask: active lanes are told of none", without, e.Samples, e.Name)
		}
	}
	return nil
}

func (f *File) indexLine(r *jsontext.Reader, line *linetext.Line, sample *sampleLine) error {
	kind, err := recordKind(r, line)
	if err != nil {
		return err
	}
	switch kind {
	case recordModule:
		return f.addModule(r)
	case recordLaunch:
		return f.addLaunch(r)
	case recordSample:
		if err := sample.read(r); err != nil {
			return err
		}
		return f.addSample(sample)
	}
	// Files may be concatenated.
	l, err := readFormat(r, line)
	if err == nil && l.clock != f.facts.Clock {
		err = fmt.Errorf("clock is %q, that of lines before it %q: times are of no clock that is known", l.clock, f.facts.Clock)
		f.facts.Clock = ""
	}
	return err
}

// full returns the error for a file that would need too much memory.
func (f *File) full() error {
	return fmt.Errorf("there are more than %d bytes of modules and launches", f.MaxKept)
}

func (f *File) addModule(r *jsontext.Reader) error {
	var l moduleLine
	if err := read(r, &l, moduleFields); err != nil {
		return err
	}
	switch {
	case len(l.id) == 0:
		return fmt.Errorf("has no id")
	case l.Path == "" && len(l.BuildID) == 0:
		return fmt.Errorf("neither path nor build_id say what its code object is")
	case l.Arch == "":
		return fmt.Errorf("has no arch")
	}
	l.ID, l.PID = string(l.id), -1
	if i, again := f.moduleIDs[l.ID]; again {
		if i != several && isSameModule(&f.facts.Modules[i], &l.Module) {
			return nil
		}
		f.moduleIDs[l.ID] = several
		return fmt.Errorf("module %s is described twice, and differently: neither is used", l.ID)
	}
	if !f.Keep(len(r.Data) + 256) {
		return f.full()
	}
	f.moduleIDs[l.ID] = int32(len(f.facts.Modules)) //nolint:gosec // bounded by keep
	f.facts.Modules = append(f.facts.Modules, l.Module)
	return nil
}

func isSameModule(a, b *gpusamples.Module) bool {
	return a.Path == b.Path && bytes.Equal(a.BuildID, b.BuildID) && a.Arch == b.Arch && a.Processor == b.Processor &&
		slices.Equal(a.Segments, b.Segments)
}

func (f *File) addLaunch(r *jsontext.Reader) error {
	var l launchLine
	if err := read(r, &l, launchFields); err != nil {
		return err
	}
	if len(l.id) == 0 {
		return fmt.Errorf("has no id")
	}
	if err := l.check(); err != nil {
		return err
	}
	launch := l.launch()
	if i, again := f.launchIDs[string(l.id)]; again {
		if i != several && isSameLaunch(&f.facts.Launches[i], &launch) {
			return nil
		}
		f.launchIDs[string(l.id)] = several
		return fmt.Errorf("launch %s is described twice, and differently: neither is used", l.id)
	}
	if !f.Keep(len(l.id) + len(l.comm) + len(l.api) + 200) {
		return f.full()
	}
	// Few places launch, and often.
	key := make([]byte, 0, 8*len(launch.Frames))
	for _, pc := range launch.Frames {
		key = binary.LittleEndian.AppendUint64(key, pc)
	}
	frames, known := f.stacks[string(key)]
	if !known {
		if !f.Keep(2*len(key) + 64) {
			return f.full()
		}
		frames = launch.Frames
		f.stacks[string(key)] = frames
	}
	launch.Frames, launch.Comm, launch.API = frames, f.text(launch.Comm), f.text(launch.API)
	if !f.addPID(launch.PID) {
		return f.full()
	}
	f.launchIDs[string(l.id)] = int32(len(f.facts.Launches)) //nolint:gosec // bounded by keep
	f.facts.Launches = append(f.facts.Launches, launch)
	return nil
}

// text returns a text that many launches have, stored once.
func (f *File) text(s string) string {
	if kept, ok := f.texts[s]; ok {
		return kept
	}
	f.texts[s] = s
	return s
}

func isSameLaunch(a, b *gpusamples.Launch) bool {
	return a.PID == b.PID && a.TID == b.TID && a.Comm == b.Comm && a.Time == b.Time && a.HasTime == b.HasTime && a.End == b.End && a.HasEnd == b.HasEnd && a.API == b.API && slices.Equal(a.Frames, b.Frames)
}

// addPID adds the ID of a process that launches.
func (f *File) addPID(pid int) bool {
	if !f.pids[pid] && !f.Keep(64) {
		return false
	}
	f.pids[pid] = true
	return true
}

// addSample counts a sample.
func (f *File) addSample(l *sampleLine) error {
	if l.launch.pid.isPresent && !f.addPID(int(l.launch.pid.value)) { //nolint:gosec // of 31 bits
		return f.full()
	}
	i := f.eventOf(l)
	if i < 0 {
		if len(f.facts.Events) >= maxEvents {
			return fmt.Errorf("event %q is one of more than %d", l.event, maxEvents)
		}
		name := gpusamples.DefaultEvent
		if len(l.event) > 0 {
			name = string(l.event)
		}
		i = len(f.facts.Events)
		f.facts.Events = append(f.facts.Events, gpusamples.Event{Name: name, Lanes: true})
		f.without = append(f.without, 0)
	}
	if err := f.addKernel(l); err != nil {
		return err
	}
	e := &f.facts.Events[i]
	e.Samples++
	if !l.mask.isPresent {
		e.Lanes = false
		f.without[i]++
	}
	return nil
}

// eventOf returns the index of a sample's event; -1 where it is not known yet.
func (f *File) eventOf(l *sampleLine) int {
	for i := range f.facts.Events {
		if name := f.facts.Events[i].Name; len(l.event) > 0 && name == string(l.event) || len(l.event) == 0 && name == gpusamples.DefaultEvent {
			return i
		}
	}
	return -1
}

// kernelOf returns the index of a line's kernel; -1 where it has none.
func (f *File) kernelOf(l *sampleLine) int {
	if l.wave.Kernel != "" {
		if i, ok := f.kernels[kernelKey{l.wave.Kernel, string(l.module)}]; ok {
			return int(i)
		}
	}
	return -1
}

// addKernel adds the kernel of a sample, and counts the dispatch.
func (f *File) addKernel(l *sampleLine) error {
	if l.wave.Kernel == "" {
		return nil
	}
	i := f.kernelOf(l)
	if i < 0 {
		key := kernelKey{l.wave.Kernel, string(l.module)}
		if !f.Keep(len(key.name) + len(key.module) + 160) {
			return f.full()
		}
		i = len(f.facts.Kernels)
		f.kernels[key] = int32(i) //nolint:gosec // bounded by keep
		f.facts.Kernels = append(f.facts.Kernels, gpusamples.Kernel{Name: key.name, Module: -1})
	}
	if l.wave.Dispatch == "" {
		return nil
	}
	// Dispatches are identified by 64 bits: there may be as many as samples.
	id := maphash.Comparable(f.seed, dispatchKey{
		pid: l.launch.pid.value, agent: l.wave.Agent, queue: l.wave.Queue, dispatch: l.wave.Dispatch, kernel: i,
	})
	if _, known := f.dispatches[id]; known {
		return nil
	}
	if !f.Keep(40) {
		return f.full()
	}
	f.dispatches[id] = struct{}{}
	f.facts.Kernels[i].Dispatches++
	return nil
}

// place builds the index of addresses.
func (f *File) place() {
	var ranges []gpusamples.Range
	for i := range f.facts.Modules {
		if f.moduleIDs[f.facts.Modules[i].ID] == several {
			continue
		}
		for _, s := range f.facts.Modules[i].Segments {
			ranges = append(ranges, gpusamples.Range{Start: s.Start, Size: s.Size, Index: i})
		}
	}
	f.places = gpusamples.NewPlaces(ranges)
}
