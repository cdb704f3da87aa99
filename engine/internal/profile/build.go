// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/trie"
)

// maxStops bounds the different reasons that are kept with their details.
const maxStops = 1 << 12

const (
	// maxReserved bounds the samples for which memory is reserved before they are walked.
	maxReserved = 1 << 20
	// usualStacks is how many samples there are for each stack, most of which share their
	// callers: 3 to 20 in recordings of compilers, interpreters and parsers.
	usualStacks = 20
)

// profileBuilder puts walked batches together. Batches come in their order, so the profile does
// not depend on which goroutine walked them.
type profileBuilder struct {
	recording *recording
	out       trace.Profile
	threads   map[trace.ProfileThread]uint32
	last      trace.ProfileThread // of the sample before
	lastIndex uint32
	stops     map[trace.Stopped]uint16
	modules   map[placement]int32
	met       chan framePlace // modules whose names will be needed; nil: none will
	frames    map[walk.Step]uint32
	trails    [trailCount]trail
	recent    [1 << recentBits]recentFrame
	places    []framePlace
	tree      *trie.Trie      // of out.Stacks
	kernel    *perfdata.Space // its mappings, and functions that it generated, at the end
	generated *perfdata.Space
	// For accelerators: kernels, frames with a name only, frames of kernels at unknown places,
	// and the names of places in files of samples.
	kernels        map[kernelKey]int32
	namedFrames    map[namedFrame]uint32
	entries        map[uint32]bool
	recordedPlaces map[uint32]recordedPlace
	memory         map[memoryKey]*memoryCount
	progress       *progress
	waits          waits
	runtimes       perfdata.RuntimeReader // the frames of language runtimes in the recording
	brokenRuntimes int                    // samples whose frames of language runtimes are damaged
	damaged        int                    // samples that could not be read as a whole
	damage         string
	failures       []string // of plugins as they walked parts
	hasKernelNames bool     // they were provided
	preparesKernel bool     // see prepareKernel
	offCPU         *offCPU  // nil: the recording does not say when threads stop
}

// framePlace is the place that a frame is named by.
type framePlace struct {
	module  *code.Module
	lookup  uint64
	offset  uint64 // of its PC
	isNamed bool   // by itself
	// recorded are the functions by the recording, which stay where the module knows no better.
	recorded   []trace.Symbol
	mayBeEqual bool // its code may be that of several functions
}

// placement is a module at a place.
type placement struct {
	module *code.Module
	bias   uint64
	kernel *perfdata.Mapping
	guest  perfdata.Context
}

func newProfileBuilder(r *recording) *profileBuilder {
	b := &profileBuilder{
		recording: r,
		threads:   map[trace.ProfileThread]uint32{}, stops: map[trace.Stopped]uint16{}, modules: map[placement]int32{},
		frames: map[walk.Step]uint32{}, kernels: map[kernelKey]int32{}, namedFrames: map[namedFrame]uint32{},
		entries: map[uint32]bool{}, recordedPlaces: map[uint32]recordedPlace{},
	}
	size := 0
	if r.file != nil {
		samples := int(min(r.file.Samples(), maxReserved))
		b.out.Samples = make([]trace.ProfileSample, 0, samples)
		size = samples * usualStacks
		b.out.Path = r.file.Path()
		attrs := r.file.Attrs()
		for i := range attrs {
			b.out.Events = append(b.out.Events, profileEvent(&attrs[i], i))
		}
	}
	b.tree = trie.New(size)
	b.out.Stacks = make([]trace.ProfileStack, 1, 1+min(size, trie.MaxCapacity))
	b.offCPU = newOffCPU(b)
	return b
}

// The software events whose unit is nanoseconds (enum perf_sw_ids).
const (
	typeSoftware  = 1
	softwareClock = 0 // cpu-clock
	softwareTask  = 1 // task-clock
)

func profileEvent(a *perfdata.Attr, index int) trace.ProfileEvent {
	e := trace.ProfileEvent{Name: a.Name, Unit: "count", Meaning: a.Meaning()}
	if pmu := a.PMU(); pmu > 0 {
		e.PMU = strconv.FormatUint(uint64(pmu), 10)
	}
	if e.Name == "" {
		e.Name = fmt.Sprintf("event %d", index)
	}
	if a.Type == typeSoftware && (a.Config == softwareClock || a.Config == softwareTask) || a.IsOffCPUTime() {
		e.Unit = "nanoseconds"
	}
	return e
}

// add adds the samples of a batch.
func (b *profileBuilder) add(w *walkedBatch) {
	b.kernel, b.generated = w.kernel, w.generated
	b.progress.add(len(w.samples))
	for i := range w.samples {
		s := &w.samples[i]
		if s.runtimes != nil && !b.runtimes.Read(s.runtimes) {
			b.brokenRuntimes++
		}
		stack := b.stack(w, s)
		b.out.Samples = append(b.out.Samples, trace.ProfileSample{
			Event: int16(s.event), Thread: b.thread(s), Stack: stack, Stop: b.stop(s.stopped), Time: s.time, Weight: s.weight,
			CPU: uint32(max(s.cpu, 0)), HasCPU: s.cpu >= 0, //nolint:gosec // a number of 32 bits
		})
		if s.wait != nil {
			b.waits.add(b, s.wait)
		}
		b.addMemory(s)
		if s.problem != "" {
			b.damaged++
			if b.damage == "" {
				b.damage = s.problem
			}
		}
	}
	b.offCPU.add(w)
}

func (b *profileBuilder) thread(s *walkedSample) uint32 {
	t := trace.ProfileThread{PID: s.pid, TID: s.tid, Comm: s.comm}
	if len(b.out.Threads) > 0 && t == b.last {
		return b.lastIndex
	}
	index, ok := b.threads[t]
	if !ok {
		index = uint32(len(b.out.Threads))
		b.threads[t] = index
		b.out.Threads = append(b.out.Threads, t)
	}
	b.last, b.lastIndex = t, index
	return index
}

func (b *profileBuilder) stop(s trace.Stopped) uint16 {
	index, ok := b.stops[s]
	if ok {
		return index
	}
	if len(b.out.Stops) >= maxStops {
		s.Detail = ""
		if index, ok = b.stops[s]; ok {
			return index
		}
	}
	index = uint16(len(b.out.Stops)) //nolint:gosec // at most maxStops with details, and one of each reason without
	b.stops[s] = index
	b.out.Stops = append(b.out.Stops, s)
	return index
}

// trail is a stack from its outermost frame on. Most of it is in the next sample of the thread
// again.
type trail struct {
	frames []walk.Step
	stacks []uint32
}

// trailCount is how many trails are kept: enough for the threads that run at a time.
const trailCount = 16

// stack returns the index of the stack of a sample.
func (b *profileBuilder) stack(w *walkedBatch, s *walkedSample) (stack uint32) {
	frames := w.frames[s.first : s.first+s.frames]
	p := &b.trails[uint(s.tid)%trailCount]
	depth := 0
	for last := len(frames) - 1; depth < len(p.frames) && depth <= last && p.frames[depth] == frames[last-depth]; {
		stack = p.stacks[depth]
		depth++
	}
	p.frames, p.stacks = p.frames[:depth], p.stacks[:depth]
	for i := len(frames) - 1 - depth; i >= 0; i-- {
		f := &frames[i]
		stack = b.push(trace.ProfileStack{Caller: stack, Frame: b.frame(f, s, w)})
		p.frames, p.stacks = append(p.frames, *f), append(p.stacks, stack)
	}
	return stack
}

// push returns the index of a stack, adding it if needed.
func (b *profileBuilder) push(s trace.ProfileStack) uint32 {
	stack, isNew := b.tree.Child(s.Caller, s.Frame)
	if isNew {
		b.out.Stacks = append(trie.Grown(b.out.Stacks), s)
	}
	return stack
}

// frame returns the index of a frame, adding it if needed.
func (b *profileBuilder) frame(f *walk.Step, s *walkedSample, w *walkedBatch) uint32 {
	recent := &b.recent[f.PC*0x9e3779b97f4a7c15>>(64-recentBits)]
	if recent.frame == *f && recent.known {
		return recent.index
	}
	index, ok := b.frames[*f]
	if !ok {
		index = b.addFrame(f, s, w)
	}
	*recent = recentFrame{*f, index, true}
	return index
}

// recentFrame is a frame that was added: most occur again soon.
type recentFrame struct {
	frame walk.Step
	index uint32
	known bool
}

const recentBits = 11

func (b *profileBuilder) addFrame(f *walk.Step, s *walkedSample, w *walkedBatch) uint32 {
	index := uint32(len(b.out.Frames))
	b.frames[*f] = index
	place := framePlace{lookup: f.Named(), offset: f.Offset}
	out := trace.ProfileFrame{PC: f.PC, Exact: f.Exact, FoundBy: f.Found.FoundBy(), Module: -1, ModuleOffset: f.Offset, Dispatched: -1}
	switch f.Kind {
	case walk.ModuleCode:
		place.module = b.recording.process.Module(uint64(f.Owner))
		out.ModuleOffset = place.module.Code.Offset(f.Offset)
		out.Module = b.module(placement{module: place.module, bias: f.PC - f.Offset}, s.space, f)
	case walk.KernelCode:
		out.Kernel = true
		b.prepareKernel()
		out.Module = b.kernelModule(f, w)
	case walk.GuestCode:
		out.Module = b.guestModule(perfdata.Context(f.Owner))
	case walk.ManagedCode:
		b.managedFrame(uint32(f.PC), &out) //nolint:gosec // it was one
		place.isNamed = true
	default:
		out.PID = int(int32(f.Owner))
	}
	b.places = append(b.places, place)
	b.out.Frames = append(b.out.Frames, out)
	return index
}

// module returns the index of a module where a process had it.
func (b *profileBuilder) module(p placement, space *codeSpace, f *walk.Step) int32 {
	index, ok := b.modules[p]
	if ok {
		return index
	}
	select {
	case b.met <- framePlace{module: p.module, lookup: f.Named()}:
	default: // they are opened when they are needed
	}
	out := trace.ProfileModule{Module: &p.module.Module.Module}
	if segment := space.code.Find(f.PC - uint64(f.Back)); segment != nil && segment.Module == p.module {
		if m := space.mapped[segment.Start]; m != nil {
			out.Start, out.End, out.Offset = m.Start, m.End, m.Offset
		}
	} else if len(p.module.Segments) == 1 { // of JIT code
		s := &p.module.Segments[0]
		out.Start, out.End = s.Start, s.Start+s.Size
	}
	return b.addModule(p, out)
}

func (b *profileBuilder) addModule(p placement, m trace.ProfileModule) int32 {
	index := int32(len(b.out.Modules))
	b.modules[p] = index
	// The module's own segments are placed where a process had it.
	own := *m.Module
	own.ID = int(index)
	own.Segments = slices.Clone(own.Segments)
	if !m.Kernel {
		for i := range own.Segments {
			own.Segments[i].Start += p.bias
		}
	}
	m.Module = &own
	b.out.Modules = append(b.out.Modules, m)
	return index
}

// kernelModule returns the index of the kernel's mapping with a frame; -1 where it is not
// known.
func (b *profileBuilder) kernelModule(f *walk.Step, w *walkedBatch) int32 {
	m := w.kernel.Find(f.Named())
	if m == nil {
		return -1
	}
	key := placement{kernel: m}
	if index, ok := b.modules[key]; ok {
		return index
	}
	// perf writes the name of a symbol after the kernel's.
	name, _, _ := strings.Cut(m.Path, "]")
	if name != m.Path {
		name += "]"
	}
	return b.addModule(key, trace.ProfileModule{
		Module: &trace.Module{Path: name, BuildID: m.BuildID, Arch: b.recording.arch},
		Start:  m.Start, End: m.End, Offset: m.Offset, Kernel: true,
	})
}

// guestNames are the names of modules for code of virtual machines: their files are not
// recorded.
var guestNames = map[perfdata.Context]string{
	perfdata.ContextGuest:       "[guest]",
	perfdata.ContextGuestKernel: "[guest.kernel.kallsyms]", // as perf calls it
	perfdata.ContextGuestUser:   "[guest.user]",
}

// guestModule returns the index of the module for a kind of code of virtual machines.
func (b *profileBuilder) guestModule(context perfdata.Context) int32 {
	key := placement{guest: context}
	if index, ok := b.modules[key]; ok {
		return index
	}
	return b.addModule(key, trace.ProfileModule{Module: &trace.Module{Path: guestNames[context], Arch: b.recording.arch}})
}

// profile returns the finished profile.
func (b *profileBuilder) profile() *trace.Profile {
	r := b.recording
	p := &b.out
	if r.file != nil {
		p.Problems = append(p.Problems, r.file.Problems()...)
		_, p.Lost = r.file.Lost()
		p.WallOffset, p.HasWallOffset = wallOffset(r.file)
		p.Memory = b.memoryAccesses()
		r.reportBranches()
	}
	if exe := r.finder.Exe; exe != "" && !r.exeUsed {
		r.problem("%s was not used: no file that was mapped has its name or build ID", exe)
	}
	r.addProblems(object.UnusedModules(r.finder.Provided, func(is func(name string) bool) bool {
		for key := range r.objects {
			if is(key.path) {
				return true
			}
		}
		return false
	}))
	used := map[*code.Module]bool{}
	for placed := range b.modules {
		used[placed.module] = placed.module != nil
	}
	p.Runtimes = b.missingRuntimes(used)
	if text := r.uncheckedFiles(used); text != "" {
		r.problem("%s", text)
	}
	slices.Sort(r.problems)
	p.Problems = append(p.Problems, r.problems...)
	if b.damaged > 0 {
		p.Problems = append(p.Problems, fmt.Sprintf("%s: %d samples are damaged, the first: %s", p.Path, b.damaged, b.damage))
	}
	if b.brokenRuntimes > 0 {
		p.Problems = append(p.Problems, fmt.Sprintf("%s: the frames of language runtimes of %d samples are damaged, and have no names", p.Path, b.brokenRuntimes))
	}
	p.Problems = append(p.Problems, r.pluginProblems()...)
	for _, text := range b.failures {
		if !slices.Contains(p.Problems, text) {
			p.Problems = append(p.Problems, text)
		}
	}
	for placed, index := range b.modules {
		if placed.module != nil {
			p.Modules[index].ModuleInfo = placed.module.Info()
		}
	}
	return p
}
