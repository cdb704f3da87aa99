// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// This file joins samples of accelerators to the profile of a recording: the frame of a wave's
// PC, above it the kernel that was dispatched where that is another function, and above these
// the stack of the thread that launched it.

// gpuFile is a file of samples that joins a profile.
type gpuFile struct {
	gpusamples.File
	*gpusamples.Facts
	events []int16 // of the profile, by index in the file
	time   int16   // the event of dispatches; -1: none
	states []uint8 // of the profile, by index in the file
}

// addGPU adds the samples of accelerators after the CPU's.
func (b *profileBuilder) addGPU(ctx context.Context, files []gpusamples.File, provided *providedObjects, o *trace.ProfileOptions) error {
	if len(files) == 0 {
		return nil
	}
	list := make([]*gpuFile, len(files))
	samples := 0
	for i, f := range files {
		list[i] = b.addGPUEvents(f)
		for _, e := range list[i].Events {
			samples += e.Samples
		}
		samples += len(list[i].Dispatches)
	}
	if !o.JoinDevice {
		// Reserved at once: growing step by step would need memory for twice the samples.
		b.out.Samples = slices.Grow(b.out.Samples, min(samples, maxGPUReserved))
	}
	for _, f := range list {
		j, err := b.newGPUJoin(f, provided, o)
		if err != nil {
			return err
		}
		if o.JoinDevice {
			j.same = newSameSamples(&b.out)
		}
		if err := j.addAll(ctx); err != nil {
			return err
		}
		b.recording.addProblems(f.Problems())
	}
	return nil
}

// maxGPUReserved bounds the samples for which memory is reserved before they are read: a file
// may lie about their number.
const maxGPUReserved = 1 << 25

// addGPUEvents adds the events and the states of a file.
func (b *profileBuilder) addGPUEvents(f gpusamples.File) *gpuFile {
	file := &gpuFile{File: f, Facts: f.Facts(), time: -1}
	for i := range file.Events {
		e := &file.Events[i]
		index := b.gpuEvent(trace.ProfileEvent{Name: e.Name, Unit: "count", Lanes: true, Device: true})
		out := &b.out.Events[index]
		out.Lanes = out.Lanes && e.Lanes
		out.States = out.States || len(file.States) > 0
		file.events = append(file.events, index)
	}
	if slices.ContainsFunc(file.Dispatches, func(d gpusamples.Dispatch) bool { return d.HasTime }) {
		file.time = b.gpuEvent(trace.ProfileEvent{Name: trace.KernelTimeEvent, Unit: "nanoseconds", Device: true})
	}
	if len(b.out.States) == 0 {
		b.out.States = make([]trace.WaveState, 1)
	}
	for _, s := range file.States {
		file.states = append(file.states, b.state(s))
	}
	return file
}

// state returns the index of a state of waves; 0 where there are more than can be told apart.
func (b *profileBuilder) state(s trace.WaveState) uint8 {
	if len(b.out.States) == 0 {
		b.out.States = make([]trace.WaveState, 1)
	}
	index := slices.Index(b.out.States[1:], s) + 1
	if index == 0 {
		if index = len(b.out.States); index > math.MaxUint8 {
			return 0
		}
		b.out.States = append(b.out.States, s)
	}
	return uint8(index) //nolint:gosec // checked
}

// gpuEvent returns the index of an event of accelerators.
func (b *profileBuilder) gpuEvent(e trace.ProfileEvent) int16 {
	index := slices.IndexFunc(b.out.Events, func(o trace.ProfileEvent) bool { return o.Name == e.Name && o.Device })
	if index < 0 {
		index = len(b.out.Events)
		b.out.Events = append(b.out.Events, e)
	}
	return int16(index) //nolint:gosec // perfdata and gpusamples bound them
}

// gpuJoin adds the samples of one file.
type gpuJoin struct {
	b        *profileBuilder
	file     *gpuFile
	finder   object.Finder
	provided *providedObjects
	history  *perfdata.History // nil without a recording
	timed    bool              // the file's times are the recording's, except for ahead
	ahead    uint64            // of the file's clock, nanoseconds
	modules  []*gpuModule      // by index in the file; nil until one is needed
	kernels  []*gpuKernel      // by index in the file; nil until one is needed
	launches []launched        // by index in the file
	calls    *callStacks       // the CPU's samples of launching threads; nil without a recording
	spaces   map[int][]*codeSpace
	pcs      map[launchPC]*codeSpace
	names    map[int]string // of processes
	sampler  *sampler
	batch    walkedBatch
	same     *sameSamples // nil: each sample is kept
}

func (b *profileBuilder) newGPUJoin(f *gpuFile, provided *providedObjects, o *trace.ProfileOptions) (*gpuJoin, error) {
	j := &gpuJoin{
		b: b, file: f, provided: provided, finder: b.recording.maker.Finder(f.Path),
		modules: make([]*gpuModule, len(f.Modules)), kernels: make([]*gpuKernel, len(f.Kernels)), launches: make([]launched, len(f.Launches)),
		spaces: map[int][]*codeSpace{}, pcs: map[launchPC]*codeSpace{}, names: map[int]string{}, sampler: b.recording.sampler(),
	}
	var pids []int
	for _, p := range f.Processes {
		pids = append(pids, p.PID)
		j.names[p.PID] = p.Name
	}
	recorded := b.recording.file
	if recorded == nil {
		return j, nil
	}
	if err := j.compareClocks(recorded, o); err != nil {
		return nil, err
	}
	if !j.timed {
		b.setOtherClock(f)
	}
	var err error
	if j.history, err = recorded.History(pids); errors.Is(err, object.ErrFileShrank) {
		b.recording.problem("%v: launches are not placed", err)
		return j, nil
	}
	return j, err
}

// setOtherClock marks the events of a file whose times are not by the recording's clock.
func (b *profileBuilder) setOtherClock(f *gpuFile) {
	for _, e := range f.events {
		b.out.Events[e].OtherClock = true
	}
	if f.time >= 0 {
		b.out.Events[f.time].OtherClock = true
	}
}

// addAll adds the dispatches and the samples of the file.
func (j *gpuJoin) addAll(ctx context.Context) error {
	for i := range j.file.Dispatches {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		j.addDispatch(ctx, &j.file.Dispatches[i])
	}
	j.b.progress.add(len(j.file.Dispatches))
	n := 0
	err := j.file.Samples(func(s *gpusamples.Sample) error {
		if n++; n%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			j.b.progress.add(4096)
		}
		j.add(ctx, s)
		return nil
	})
	j.b.progress.add(n % 4096)
	if j.same != nil {
		j.same.end()
	}
	if errors.Is(err, object.ErrFileShrank) {
		j.b.recording.problem("%v: what follows is lost", err)
		err = nil
	}
	j.calls.report(j.file.Path, j.b.recording)
	return err
}

// add adds a sample.
func (j *gpuJoin) add(ctx context.Context, s *gpusamples.Sample) {
	out := trace.ProfileSample{Event: j.file.events[s.Event], Time: j.time(s.Time), Weight: s.Weight}
	if j.b.out.Events[out.Event].Lanes {
		out.ActiveLanes = uint16(min(s.ActiveLanes, math.MaxUint16)) //nolint:gosec // bounded
	}
	if s.State >= 0 {
		out.State = j.file.states[s.State]
	}
	l := j.launchedBy(ctx, s.Launch, s.LaunchIndex, s.PID)
	out.Thread = l.thread
	frame, kernel, problem := j.wave(s)
	if kernel != nil && s.HasLanes {
		kernel.out(j).Lanes = max(kernel.out(j).Lanes, s.Lanes)
	}
	if problem != "" && kernel == nil {
		out.Stop = j.b.stop(trace.Stopped{Reason: trace.StopNoModule, Detail: problem})
		j.keep(out)
		return
	}
	out.Launch, out.Stop = l.evidence, l.stop
	out.Stack = l.stack
	if kernel != nil && (problem != "" || !j.isIn(kernel, frame)) {
		out.Stack = j.b.push(trace.ProfileStack{Caller: out.Stack, Frame: j.kernelFrame(kernel)})
	}
	if problem == "" {
		out.Stack = j.b.push(trace.ProfileStack{Caller: out.Stack, Frame: frame})
	}
	j.keep(out)
}

// keep adds a sample to the profile, where they are joined to the others of its kind.
func (j *gpuJoin) keep(s trace.ProfileSample) {
	if j.same == nil || !j.same.add(&s) {
		j.b.out.Samples = append(j.b.out.Samples, s)
	}
}

// addDispatch adds a dispatch: to its kernel's totals, and as a sample where its duration is
// known.
func (j *gpuJoin) addDispatch(ctx context.Context, d *gpusamples.Dispatch) {
	if d.Kernel < 0 {
		return
	}
	kernel := j.kernel(d.Kernel)
	sum := kernel.out(j)
	sum.Dispatches++
	if !d.HasTime || d.End < d.Start {
		return
	}
	sum.HasTime = true
	sum.Time = addUp(sum.Time, d.End-d.Start)
	l := j.launchedBy(ctx, nil, d.Launch, d.PID)
	j.b.out.Samples = append(j.b.out.Samples, trace.ProfileSample{
		Event: j.file.time, Time: j.time(d.Start), Weight: d.End - d.Start, Thread: l.thread, Launch: l.evidence, Stop: l.stop,
		Stack: j.b.push(trace.ProfileStack{Caller: l.stack, Frame: j.kernelFrame(kernel)}),
	})
}

// time converts a time of the file to the recording's clock.
func (j *gpuJoin) time(t uint64) uint64 { return t - min(t, j.ahead) }

// addUp adds without wrapping around.
func addUp(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// wave returns the frame of a wave at its PC, with the kernel that it runs, nil where that is
// not known. Where the PC is not known, problem has the reason.
func (j *gpuJoin) wave(s *gpusamples.Sample) (frame uint32, kernel *gpuKernel, problem string) {
	if s.Kernel >= 0 {
		kernel = j.kernel(s.Kernel)
	}
	if s.InKernel {
		if kernel == nil {
			return 0, nil, "the kernel is not told that its offset is in"
		}
		return j.inKernel(s, kernel), kernel, ""
	}
	f := walk.Step{PC: s.PC, Offset: s.PC, Owner: noProcess, Kind: walk.ProcessCode, Found: code.IndexOf(trace.ByContext), Exact: true}
	if s.Module < 0 {
		if s.HasOffset {
			return 0, kernel, s.Problem
		}
		return j.deviceFrame(&f, s), kernel, ""
	}
	m := j.module(s.Module)
	if !s.HasOffset {
		m.placeAt(&f)
	} else if problem = m.placeOffset(&f, s.Offset); problem != "" {
		return 0, kernel, problem
	}
	j.b.placeGPUModule(m, &f)
	frame = j.deviceFrame(&f, s)
	if kernel != nil {
		j.markIn(kernel, &f, frame)
	}
	return frame, kernel, ""
}

// noProcess is the owner of an address of no module and no known process.
const noProcess = ^uint32(0)

// deviceFrame returns the index of a frame of an accelerator, with the file's names for its
// place.
func (j *gpuJoin) deviceFrame(f *walk.Step, s *gpusamples.Sample) uint32 {
	index := j.b.frame(f, &walkedSample{}, &j.batch)
	if out := &j.b.out.Frames[index]; !out.Device {
		out.Device = true
		j.b.note(index, s, j.file.Form)
	}
	return index
}
