// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/kallsyms"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file adds the stacks of files of other profilers to a profile. Names in the file are
// kept; where it has addresses only, stackplaces.go finds the code.

// stackJoin adds the stacks of one file.
type stackJoin struct {
	b       *profileBuilder
	file    *stacktree.File
	finder  object.Finder
	kernel  *kallsyms.Table // nil: the kernel's code is not named
	events  []int16         // of the profile, by index in the file; so are the others
	threads []uint32
	kernels []int32
	frames  []uint32
	stacks  []uint32
	stops   []uint16
	states  []uint8
	cubins  *cubinJoin
	modules map[string]int32        // of the profile, by objectOf
	objects map[string]*stackObject // with frames whose names are looked up, by objectOf
	// mappings are the ones in the text of objects, by path.
	mappings map[string][]stacktree.Mapping
	moved    uint64 // of the kernel's code from the addresses of kernel, if isPlaced
	// isPlaced is true where the file's names of the kernel tell where it was.
	isPlaced bool
}

// addStacks adds the stacks of files: the CPU's by time, then the ones of accelerators.
func (b *profileBuilder) addStacks(ctx context.Context, files []*stacktree.File, kernel *kallsyms.Table, provided *providedObjects) error {
	first := len(b.out.Samples)
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		j := &stackJoin{b: b, file: f, finder: b.recording.maker.Finder(f.Path), kernel: kernel, cubins: newCubinJoin(provided), modules: map[string]int32{}, objects: map[string]*stackObject{}}
		j.addAll()
		b.recording.addProblems(f.Problems)
	}
	slices.SortStableFunc(b.out.Samples[first:], func(x, y trace.ProfileSample) int {
		return cmp.Or(compareBool(b.out.Events[x.Event].Device, b.out.Events[y.Event].Device), cmp.Compare(x.Time, y.Time))
	})
	return nil
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// addAll adds everything of the file.
func (j *stackJoin) addAll() {
	b := j.b
	for _, e := range j.file.Events {
		e.OtherClock = b.recording.file != nil
		j.events = append(j.events, b.stackEvent(e))
	}
	for i := range j.file.Threads {
		t := &j.file.Threads[i]
		j.threads = append(j.threads, b.thread(&walkedSample{pid: t.PID, tid: t.TID, comm: t.Comm}))
	}
	for i := range j.file.Kernels {
		j.kernels = append(j.kernels, b.stackKernel(&j.file.Kernels[i]))
	}
	for _, s := range j.file.States {
		j.states = append(j.states, b.state(s))
	}
	for _, s := range j.file.Stops {
		j.stops = append(j.stops, b.stop(s))
	}
	j.findPlaces()
	j.frames = make([]uint32, len(j.file.Frames))
	for i := range j.file.Frames {
		j.frames[i] = j.frame(&j.file.Frames[i])
	}
	j.stacks = make([]uint32, len(j.file.Stacks))
	for i, s := range j.file.Stacks[1:] {
		j.stacks[i+1] = b.push(trace.ProfileStack{Caller: j.stacks[s.Caller], Frame: j.frames[s.Frame]})
	}
	b.out.Samples = slices.Grow(b.out.Samples, len(j.file.Samples))
	for _, s := range j.file.Samples {
		s.Event, s.Thread, s.Stack, s.Stop = j.events[s.Event], j.threads[s.Thread], j.stacks[s.Stack], j.stops[s.Stop]
		if s.State > 0 {
			s.State = j.states[s.State-1]
		}
		b.out.Samples = append(b.out.Samples, s)
	}
	if len(b.out.States) == 0 {
		b.out.States = make([]trace.WaveState, 1)
	}
	j.reportPlaces()
	j.reportCubins()
}

// stackEvent returns the index of an event.
func (b *profileBuilder) stackEvent(e trace.ProfileEvent) int16 {
	index := slices.IndexFunc(b.out.Events, func(o trace.ProfileEvent) bool { return o.Name == e.Name && o.Device == e.Device && o.Unit == e.Unit })
	if index < 0 {
		index = len(b.out.Events)
		b.out.Events = append(b.out.Events, e)
	}
	b.out.Events[index].OtherClock = b.out.Events[index].OtherClock || e.OtherClock
	return int16(index) //nolint:gosec // the readers bound them
}

// stackKernel adds a kernel of an accelerator, and its time.
func (b *profileBuilder) stackKernel(k *trace.ProfileKernel) int32 {
	key := kernelKey{name: k.Name}
	index, ok := b.kernels[key]
	if !ok {
		index = int32(len(b.out.Kernels)) //nolint:gosec // the files bound them
		b.kernels[key] = index
		b.out.Kernels = append(b.out.Kernels, trace.ProfileKernel{Name: symbol.Demangle(k.Name), Module: -1})
	}
	out := &b.out.Kernels[index]
	out.Dispatches += k.Dispatches
	out.Time, out.HasTime = addUp(out.Time, k.Time), out.HasTime || k.HasTime
	return index
}

// frame returns the index of a frame of the file in the profile.
func (j *stackJoin) frame(f *stacktree.Frame) uint32 {
	b := j.b
	switch {
	case f.HasObjectID:
		return j.cubinFrame(f)
	case f.Dispatched >= 0:
		return b.spanFrame(namedFrame{name: j.file.Kernels[f.Dispatched].Name, module: -1, kernel: j.kernels[f.Dispatched], isDevice: true})
	case f.Object == "" && !f.HasAddress && len(f.Symbols) == 1 && f.Symbols[0].File == "" && !f.Kernel:
		return b.spanFrame(namedFrame{name: f.Symbols[0].Function, module: -1, kernel: -1, isDevice: f.Device})
	}
	out := trace.ProfileFrame{
		PC: f.Address, ModuleOffset: f.Address, Exact: f.Exact, Kernel: f.Kernel, Device: f.Device, Dispatched: -1, FoundBy: trace.ByProfiler,
		Module: -1, PID: f.PID, Symbols: f.Symbols,
	}
	for i := range out.Symbols {
		s := &out.Symbols[i]
		if name := symbol.Demangle(s.Function); name != s.Function {
			s.Function, s.LinkageName = name, s.Function
		}
	}
	place := framePlace{isNamed: true}
	if !j.place(f, &out, &place) && f.Object != "" {
		out.Module = j.module(f)
	}
	b.places = append(b.places, place)
	b.out.Frames = append(b.out.Frames, out)
	return uint32(len(b.out.Frames) - 1) //nolint:gosec // as in addFrame
}

// spanFrame returns the index of a frame that has only a name.
func (b *profileBuilder) spanFrame(n namedFrame) uint32 {
	index := b.named(n)
	b.out.Frames[index].FoundBy = trace.ByProfiler
	return index
}

// module returns the index of a code object that is known by its name only.
func (j *stackJoin) module(f *stacktree.Frame) int32 {
	key := objectOf(f)
	index, ok := j.modules[key]
	if !ok {
		index = int32(len(j.b.out.Modules)) //nolint:gosec // as in addModule
		j.modules[key] = index
		j.b.out.Modules = append(j.b.out.Modules, trace.ProfileModule{
			Module: &trace.Module{ID: int(index), Path: f.Object, BuildID: f.BuildID, Arch: j.file.Arch, IsMachO: f.Place == stacktree.PlaceImage}, Kernel: f.Kernel,
		})
	}
	return index
}
