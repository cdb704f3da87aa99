package profile

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/gpusamples"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/engine/walk"
)

// This file joins samples of accelerators to the profile of a recording: the
// frame of a wave's PC, and on it the stack of the thread that launched the wave.

// noProcess is the owner of an address of no module that is not known to be of a
// process.
const noProcess = ^uint32(0)

// Why the stack of a wave ends.
var (
	stopLaunch        = walk.Stopped{Reason: walk.StopEndOfStack, Detail: "the recorded stack of the launch ends here"}
	stopNoLaunch      = walk.Stopped{Reason: walk.StopNoRow, Detail: "a wave: its PC is all that is known of it, and not who launched it"}
	stopNoLaunchStack = walk.Stopped{Reason: walk.StopEndOfStack, Detail: "the stack of the launch was not kept"}
)

// maxLaunchPCs bounds the return addresses that are remembered with where they
// are.
const maxLaunchPCs = 1 << 20

// addGPUEvents adds the events of all files, and says which each file has.
func (b *profileBuilder) addGPUEvents(files []gpusamples.File) [][]int16 {
	first := len(b.out.Events)
	indices := make([][]int16, len(files))
	for i, f := range files {
		for _, e := range f.Facts().Events {
			at := slices.IndexFunc(b.out.Events[first:], func(o Event) bool { return o.Name == e.Name })
			if at < 0 {
				at = len(b.out.Events) - first
				b.out.Events = append(b.out.Events, Event{Name: e.Name, Unit: "count", Lanes: true})
			}
			at += first
			b.out.Events[at].Lanes = b.out.Events[at].Lanes && e.Lanes
			indices[i] = append(indices[i], int16(at)) //nolint:gosec // there are few
		}
	}
	return indices
}

// addGPUSamples adds the samples of accelerators behind those of the CPU.
func (b *profileBuilder) addGPUSamples(ctx context.Context, files []gpusamples.File) error {
	events := b.addGPUEvents(files)
	for i, f := range files {
		j, err := b.newGPUJoin(f)
		if err != nil {
			return err
		}
		if err := j.addAll(ctx, events[i]); err != nil {
			return err
		}
		b.recording.problems = append(b.recording.problems, f.Problems()...)
	}
	return nil
}

// A gpuJoin adds the samples of one file.
type gpuJoin struct {
	b       *profileBuilder
	file    gpusamples.File
	finder  object.Finder
	history *perfdata.History // nil without a recording
	timed   bool              // the file's times are those of the recording
	modules []*gpuModule      // by index in the file; nil until one is needed
	stacks  []uint32          // of the file's launches; 0 until one is needed
	spaces  map[int][]*codeSpace
	pcs     map[launchPC]*codeSpace
	sampler *sampler
	batch   walkedBatch
}

// launchPC is a return address of a launch whose time is not known.
type launchPC struct {
	pid int
	pc  uint64
}

// gpuModule is a code object of an accelerator.
type gpuModule struct {
	*code.Module
	anywhere bool // nobody knows what addresses it has
}

func (b *profileBuilder) newGPUJoin(f gpusamples.File) (*gpuJoin, error) {
	j := &gpuJoin{
		b: b, file: f, finder: b.recording.maker.Finder(f.Facts().Path),
		modules: make([]*gpuModule, len(f.Facts().Modules)), stacks: make([]uint32, len(f.Facts().Launches)),
		spaces: map[int][]*codeSpace{}, pcs: map[launchPC]*codeSpace{}, sampler: b.recording.sampler(),
	}
	recorded := b.recording.file
	if recorded == nil {
		return j, nil
	}
	clock := clockOf(recorded)
	if j.timed = f.Facts().Clock == "" || f.Facts().Clock == clock; !j.timed {
		b.recording.problem("%s: its times are by %s, those of %s by %s: they are not compared", f.Facts().Path, f.Facts().Clock, recorded.Path(), clock)
	}
	var err error
	if j.history, err = recorded.History(pids(f)); errors.Is(err, object.ErrFileShrank) {
		b.recording.problem("%v: launches are not placed", err)
		return j, nil
	}
	return j, err
}

// clockNames are those of clockid_t (linux/time.h).
var clockNames = map[int32]string{
	0: "CLOCK_REALTIME", 1: "CLOCK_MONOTONIC", 4: "CLOCK_MONOTONIC_RAW", 7: "CLOCK_BOOTTIME", 11: "CLOCK_TAI",
}

// clockOf is the clock of a recording.
func clockOf(f *perfdata.File) string {
	name := "the clock of perf"
	for i := range f.Attrs() {
		a := &f.Attrs()[i]
		if a.Flags&perfdata.FlagUseClockID == 0 {
			return "the clock of perf"
		}
		if name = clockNames[a.ClockID]; name == "" {
			name = fmt.Sprintf("clock %d", a.ClockID)
		}
	}
	return name
}

func (j *gpuJoin) addAll(ctx context.Context, events []int16) error {
	n := 0
	err := j.file.Samples(func(s *gpusamples.Sample) error {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		j.add(s, events)
		return nil
	})
	if errors.Is(err, object.ErrFileShrank) {
		j.b.recording.problem("%v: what follows is lost", err)
		return nil
	}
	return err
}

// pids are the processes that launch.
func pids(f gpusamples.File) (list []int) {
	for _, p := range f.Facts().Processes {
		list = append(list, p.PID)
	}
	return list
}

// add adds a sample.
func (j *gpuJoin) add(s *gpusamples.Sample, events []int16) {
	out := Sample{Event: events[s.Event], Time: s.Time, Weight: s.Weight}
	if j.b.out.Events[out.Event].Lanes {
		out.ActiveLanes = uint16(min(s.ActiveLanes, math.MaxUint16)) //nolint:gosec // bounded
	}
	thread := walkedSample{pid: -1, tid: -1}
	if l := s.Launch; l != nil {
		thread.pid, thread.tid, thread.comm = l.PID, l.TID, l.Comm
		if thread.comm == "" {
			thread.comm = j.comm(l)
		}
	}
	out.Thread = j.b.thread(&thread)
	frame, problem := j.wave(s)
	if problem != "" {
		out.Stop = j.b.stop(walk.Stopped{Reason: walk.StopNoModule, Detail: problem})
	} else {
		caller, stop := j.launch(s)
		out.Stack = j.push(caller, &frame, nil)
		out.Stop = j.b.stop(stop)
	}
	j.b.out.Samples = append(j.b.out.Samples, out)
}

// comm is the name that the recording has for a thread that launches.
func (j *gpuJoin) comm(l *gpusamples.Launch) string {
	switch {
	case j.history == nil:
		return ""
	case j.timed && l.HasTime:
		return j.history.Comm(l.PID, l.TID, l.Time)
	}
	return j.history.Comm(l.PID, l.TID, ^uint64(0))
}

// wave is the frame of a wave: where its PC is. Where that is not known, problem
// says why.
func (j *gpuJoin) wave(s *gpusamples.Sample) (f walk.Step, problem string) {
	f = walk.Step{PC: s.PC, Offset: s.PC, Owner: noProcess, Kind: walk.ProcessCode, Found: code.ByContext.Index(), Exact: true}
	if s.Module < 0 {
		if s.HasOffset {
			return f, s.Problem
		}
		return f, ""
	}
	m := j.module(s.Module)
	var in *target.Segment
	switch {
	case m.anywhere:
		f.PC, f.Offset = s.Offset, s.Offset
	case s.HasOffset:
		if in, problem = m.segmentOf(s.Offset); in == nil {
			return f, problem
		}
		f.PC = in.Start + s.Offset - m.Code.Offset(in.Address)
	default:
		i := slices.IndexFunc(m.Placed, func(seg target.Segment) bool { return seg.Executable && s.PC-seg.Start < seg.Size })
		if i < 0 {
			return f, ""
		}
		in = &m.Placed[i]
	}
	if in != nil {
		f.Offset = f.PC - in.Start + in.Address
	}
	f.Owner, f.Kind = uint32(m.ID), walk.ModuleCode
	j.b.placeGPUModule(m.Module, &f, in)
	return f, ""
}

// segmentOf is the one placed segment of code that has an ELF virtual address;
// problem says why there is none.
func (m *gpuModule) segmentOf(offset uint64) (in *target.Segment, problem string) {
	for i := range m.Placed {
		seg := &m.Placed[i]
		if !seg.Executable || offset-m.Code.Offset(seg.Address) >= seg.Size {
			continue
		}
		if in != nil {
			return nil, "several places of its module have that offset"
		}
		in = seg
	}
	if in == nil {
		return nil, "no code of its module has that offset"
	}
	return in, ""
}

// placeGPUModule adds the place of a module to the profile.
func (b *profileBuilder) placeGPUModule(m *code.Module, f *walk.Step, in *target.Segment) {
	key := placement{module: m, bias: f.PC - f.Offset}
	if _, ok := b.modules[key]; ok {
		return
	}
	own := *m.Module
	own.ID = len(b.out.Modules)
	out := Module{Module: &own}
	if in != nil {
		out.Start, out.End = in.Start, in.Start+in.Size
		out.Offset = fileOffset(m, in)
	}
	b.modules[key] = int32(own.ID)
	b.out.Modules = append(b.out.Modules, out)
}

// fileOffset is where a placed segment begins in the file of its module; 0 where
// that is not known.
func fileOffset(m *code.Module, in *target.Segment) uint64 {
	if m.Object == nil {
		return 0
	}
	if m.Object.Type() == elf.ET_REL {
		for _, s := range m.Code.Sections() {
			if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 && in.Address-s.Address < s.Size {
				return s.Offset + in.Address - s.Address
			}
		}
		return 0
	}
	for _, s := range m.Object.Segments() {
		if in.Address-s.Address < s.FileSize {
			return s.Offset + in.Address - s.Address
		}
	}
	return 0
}

// module is a module of the file.
func (j *gpuJoin) module(index int) *gpuModule {
	if m := j.modules[index]; m != nil {
		return m
	}
	of := &j.file.Facts().Modules[index]
	t := &target.Module{Path: of.Path, BuildID: of.BuildID, Arch: of.Arch, Processor: of.Processor, Segments: slices.Clone(of.Segments)}
	r := j.b.recording
	arch, err := r.maker.Plugins.Find(of.Arch)
	if err != nil {
		t.Problem = err.Error()
	}
	found := j.finder.Find(of.Path, of.BuildID, false)
	if o := found.Object; o != nil && arch != nil {
		machine, head := o.Machine(), o.Data()
		if !o.IsELF() {
			machine = 0
		}
		is, err := r.maker.Plugins.ForObject(machine, o.OSABI(), o.Flags(), head[:min(len(head), object.MaxMagic)])
		if err != nil || is != arch {
			o.Close()
			found = object.Found{Problem: fmt.Sprintf("%s was not used: it is not of architecture %s", found.Path, of.Arch)}
		}
	}
	if found.Problem != "" {
		t.Problem = found.Problem
	}
	m := &gpuModule{}
	if t.Object = found.Object; t.Object != nil {
		r.opened = append(r.opened, t.Object)
		t.File = found.Path
		if t.BuildID == nil {
			t.BuildID = t.Object.BuildID()
		}
		if len(t.Segments) == 0 {
			t.Segments = ownSegments(t.Object)
		}
	} else {
		m.anywhere = len(t.Segments) == 0
	}
	for i := range t.Segments {
		t.Segments[i].Executable = t.Segments[i].HoldsCode(t.Object)
	}
	m.Module = r.process.AddModule(t, nil)
	j.modules[index] = m
	return m
}

// ownSegments are where an object says that it lies: the one section of code of a
// relocatable one.
func ownSegments(o *object.Object) (list []target.Segment) {
	if o.Type() != elf.ET_REL {
		for _, s := range o.Segments() {
			if s.Executable() {
				list = append(list, target.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address})
			}
		}
		return list
	}
	for _, s := range o.Sections() {
		if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 {
			list = append(list, target.Segment{Section: s.Name, Size: s.Size})
		}
	}
	return list
}

// launch is the stack of the thread that launched a wave, and why it ends.
func (j *gpuJoin) launch(s *gpusamples.Sample) (stack uint32, stop walk.Stopped) {
	l := s.Launch
	most := j.b.recording.maker.Shared.Options().MaxFrames - 1
	switch {
	case l == nil:
		return 0, stopNoLaunch
	case len(l.Frames) == 0:
		return 0, stopNoLaunchStack
	case len(l.Frames) > most:
		stop = walk.Stopped{Reason: walk.StopFrameLimit, Detail: fmt.Sprintf("%d frames", most+1)}
	default:
		stop = stopLaunch
	}
	if s.LaunchIndex < 0 {
		return j.pushLaunch(l, most), stop
	}
	if j.stacks[s.LaunchIndex] == 0 {
		j.stacks[s.LaunchIndex] = j.pushLaunch(l, most)
	}
	return j.stacks[s.LaunchIndex], stop
}

// pushLaunch adds the stack of a launch, of which the innermost frames are kept.
func (j *gpuJoin) pushLaunch(l *gpusamples.Launch, most int) (stack uint32) {
	frames := l.Frames[:min(len(l.Frames), most)]
	for i := len(frames) - 1; i >= 0; i-- {
		space := j.space(l, frames[i])
		j.sampler.code.at(space, l.Time)
		if !j.timed || !l.HasTime {
			j.sampler.code.made.dump = nil
		}
		j.batch.frames = j.batch.frames[:0]
		j.sampler.placeFrame(&perfdata.Sample{PID: l.PID}, space, frames[i], code.ByLaunch, &j.batch)
		stack = j.push(stack, &j.batch.frames[0], space)
	}
	return stack
}

// push is the stack of a frame, which is of the code of a process, on its
// caller's stack.
func (j *gpuJoin) push(caller uint32, f *walk.Step, space *codeSpace) uint32 {
	return j.b.push(Stack{Caller: caller, Frame: j.b.frame(f, &walkedSample{space: space}, &j.batch)})
}

// space is the code of the launching process that a return address is in. Where
// the time is not known, that is only told if the process never had other code
// there.
func (j *gpuJoin) space(l *gpusamples.Launch, pc uint64) *codeSpace {
	if j.history == nil {
		return nil
	}
	r := j.b.recording
	if j.timed && l.HasTime {
		return r.space(j.history.Space(l.PID, l.Time))
	}
	key := launchPC{l.PID, pc}
	if space, ok := j.pcs[key]; ok {
		return space
	}
	spaces, ok := j.spaces[l.PID]
	if !ok {
		for _, v := range j.history.Spaces(l.PID) {
			spaces = append(spaces, r.space(v))
		}
		j.spaces[l.PID] = spaces
	}
	space := onlySpace(spaces, pc-1)
	if len(j.pcs) < maxLaunchPCs {
		j.pcs[key] = space
	}
	return space
}

// onlySpace is one in which an address is code; nil where there is none, and
// where the address is other code in another one.
func onlySpace(spaces []*codeSpace, address uint64) (found *codeSpace) {
	var in *code.Segment
	for _, s := range spaces {
		switch at := s.code.Find(address); {
		case at == nil && s.anonymousAt(address) == nil:
		case at == nil, in != nil && (at.Module != in.Module || at.ObjectAddress(address) != in.ObjectAddress(address)):
			return nil
		default:
			found, in = s, at
		}
	}
	return found
}
