// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// This file makes threads of what runtimes schedule: goroutines, tasks, virtual threads.

// MayHaveThreads reports whether a module of the process has a runtime that schedules threads of a
// kind; "": of any. Only data of the modules' files is looked at.
func (x *Process) MayHaveThreads(kind string) bool {
	return len(x.recognised(func(d *sdk.RuntimeDescription) bool {
		return d.ThreadKind != "" && (kind == "" || d.ThreadKind == kind)
	})) > 0
}

// ReadThreads reads the threads that runtimes schedule and that may have no native stack, for the
// memory in which they are. Runtimes with threads alone, of which there may be a million, are left
// out: their threads have native stacks.
func (x *Process) ReadThreads(ctx context.Context, state target.Target) {
	var all []*instance
	for _, i := range x.all(ctx) {
		if i.schedules("") {
			all = append(all, i)
		}
	}
	if len(all) > 0 {
		x.threadsOf(ctx, all, state)
	}
}

func (i *instance) schedules(kind string) bool {
	return i.answer.HasThreads && (kind == "" || i.about.ThreadKind == kind)
}

// Threads returns a target with the threads of a kind, or of all for "", that runtimes schedule,
// behind the threads of state, which is of the same process. Such threads name the thread that executes
// them, and threads of the operating system the one that they execute. Parts that cannot be read
// are among the problems of the result's Info.
func (x *Process) Threads(ctx context.Context, kind string, state target.Target) target.Target {
	return x.threadsOf(ctx, x.withThreads(ctx, kind), state)
}

// threadsOf is Threads for some runtimes.
func (x *Process) threadsOf(ctx context.Context, all []*instance, state target.Target) target.Target {
	threads := slices.Clone(state.Threads())
	byID := make(map[string]*trace.Thread, len(threads))
	for _, th := range threads {
		byID[th.ID] = th
	}
	k := &threadMaker{
		process: x, ctx: ctx, carriers: byID, executes: map[string]*trace.Thread{},
		states: map[trace.GoroutineState]*trace.GoroutineState{}, origins: map[originKey]*trace.GoroutineOrigin{},
		places: map[placeKey]*trace.CodePlace{},
	}
	for _, i := range all {
		k.instance, k.suffix = i, suffixOf(i, all)
		if k.scheduler = nil; i.kind() != goroutine {
			k.scheduler = &trace.Scheduler{Runtime: i.about.Name, Kind: i.kind()}
		}
		for _, th := range k.all() {
			th.Handle = uint64(len(threads))
			threads = append(threads, th)
		}
	}
	for n, th := range threads {
		if g := k.executes[th.ID]; g != nil && th.Goroutine == nil {
			executing := *th
			executing.Executes = g
			threads[n] = &executing
		}
	}
	info := state.Info()
	info.Problems = append(slices.Clone(info.Problems), k.problems...)
	return target.WithThreads(state, threads, info)
}

// goroutine is the word for threads that the runtime of Go schedules.
const goroutine = "goroutine"

// kind returns the word for the threads that the runtime schedules.
func (i *instance) kind() string { return cmp.Or(i.about.ThreadKind, i.about.Name+" thread") }

// suffixOf returns text behind the IDs of a runtime's threads that tells them from the threads of other
// runtimes with the same word: each counts from 1.
func suffixOf(i *instance, all []*instance) string {
	isAlone, isUnique := true, true
	name := path.Base(i.module.Path)
	for _, other := range all {
		if other != i && other.kind() == i.kind() {
			isAlone = false
			isUnique = isUnique && path.Base(other.module.Path) != name
		}
	}
	switch {
	case isAlone:
		return ""
	case isUnique || len(i.module.Segments) == 0:
		return " of " + name
	}
	return fmt.Sprintf(" of %s at %#x", name, i.module.Segments[0].Start)
}

// threadMaker makes threads of one runtime after the other.
type threadMaker struct {
	*instance
	process   *Process
	ctx       context.Context
	scheduler *trace.Scheduler
	suffix    string                   // of IDs
	carriers  map[string]*trace.Thread // threads of the operating system, by ID
	// executes are the threads that have the registers of a carrier, by its ID.
	executes map[string]*trace.Thread
	problems []string

	// There may be a million threads: those that are alike share these.
	states  map[trace.GoroutineState]*trace.GoroutineState
	origins map[originKey]*trace.GoroutineOrigin
	places  map[placeKey]*trace.CodePlace
	shapes  []sdk.Registers // which registers a thread has: Numbers and Offsets
	slab    []threadMemory
}

// threadMemory is a thread and what it stands for. They are allocated by the thousand.
type threadMemory struct {
	thread    trace.Thread
	goroutine trace.Goroutine
}

// slabSize is how many threads are allocated together, where there are so many.
const slabSize = 1 << 10

// originKey has the parts of an origin.
type originKey struct {
	created, started uint64
	isSystem         bool
}

// placeKey is a place in the code: a function's start, or a return address.
type placeKey struct {
	pc       uint64
	isReturn bool
}

func (k *threadMaker) problem(format string, args ...any) {
	k.problems = append(k.problems, k.module.Path+": "+fmt.Sprintf(format, args...))
}

// all asks for the threads, and makes them.
func (k *threadMaker) all() (list []*trace.Thread) {
	req := &sdk.ManagedThreadsRequest{Runtime: k.request.Runtime, Frames: true}
	answer, err := call(k.ctx, k.instance, "ManagedThreads", func() (*sdk.ManagedThreadsAnswer, error) {
		return k.runtime.ManagedThreads(k.ctx, k.process.engine, req)
	})
	if err == nil {
		err = answer.ValidateRegisters(k.machine.Description)
	}
	if err != nil {
		k.problem("its threads are not listed: %v", err)
		return nil
	}
	for _, p := range answer.Problems {
		k.problem("%s", p)
	}
	list = make([]*trace.Thread, len(answer.Threads))
	for n := range answer.Threads {
		list[n] = k.thread(&answer.Threads[n], len(answer.Threads)-n)
	}
	return list
}

// next returns memory for the next thread. left is how many are still to come.
func (k *threadMaker) next(left int) (*trace.Thread, *trace.Goroutine) {
	if len(k.slab) == 0 {
		k.slab = make([]threadMemory, min(left, slabSize))
	}
	m := &k.slab[0]
	k.slab = k.slab[1:]
	return &m.thread, &m.goroutine
}

// thread makes a thread. left is how many are still to come.
func (k *threadMaker) thread(m *sdk.ManagedThread, left int) *trace.Thread {
	th, g := k.next(left)
	g.ID, g.Scheduler = m.Number, k.scheduler
	g.GoroutineState = shared(k.states, trace.GoroutineState{State: m.State, WaitReason: m.Reason, IsScanned: m.IsScanned, IsLocked: m.IsPinned})
	g.GoroutineOrigin = k.origin(originKey{m.CreatedAt, m.StartedAt, m.IsSystem})
	g.Parent, g.WaitsFor, g.WaitSince, g.WaitAtLeast, g.Thread = m.Parent, m.WaitsFor, m.WaitSince, m.WaitAtLeast, m.Carrier
	th.ID, th.Arch, th.Goroutine = k.kind()+" "+strconv.FormatUint(m.Number, 10)+k.suffix, k.module.Arch, g
	if th.Name = m.Name; th.Name == "" && g.StartedAt != nil {
		th.Name = g.StartedAt.Function
	}
	k.findState(th, m)
	return th
}

// shared returns one pointer for all equal values.
func shared[K comparable](all map[K]*K, value K) *K {
	one := all[value]
	if one == nil {
		one = &value
		all[value] = one
	}
	return one
}

// origin returns the code that created and began threads.
func (k *threadMaker) origin(from originKey) *trace.GoroutineOrigin {
	o := k.origins[from]
	if o != nil {
		return o
	}
	o = &trace.GoroutineOrigin{IsSystem: from.isSystem}
	if from.created != 0 {
		o.CreatedBy = k.place(from.created, true)
	}
	if from.started != 0 {
		o.StartedAt = k.place(from.started, false)
	}
	k.origins[from] = o
	return o
}

// place names a place, once.
func (k *threadMaker) place(pc uint64, isReturn bool) *trace.CodePlace {
	key := placeKey{pc, isReturn}
	place := k.places[key]
	if place != nil {
		return place
	}
	place = &trace.CodePlace{PC: pc}
	k.places[key] = place
	lookup := pc
	if isReturn {
		lookup -= uint64(k.machine.Description.CallDistance)
	}
	frames := k.process.Symbols(k.ctx, lookup)
	if s := k.process.process.Segment(lookup); s != nil && len(frames) == 0 {
		_ = object.Guard(func() error { // names of a file that is cut are not known
			frames = s.Module.AllNames(k.ctx, s.ObjectAddress(lookup), false)
			return nil
		})
	}
	if len(frames) > 0 {
		place.Function, place.File, place.Line = frames[0].Function, frames[0].File, frames[0].Line
	}
	return place
}

// findState finds where a thread is: with its carrier if that executes it, or else where the
// runtime keeps its registers or frames.
func (k *threadMaker) findState(th *trace.Thread, m *sdk.ManagedThread) {
	carrier := k.carriers[m.Carrier]
	switch {
	case carrier != nil && (m.IsMounted || k.isExecuted(carrier, m)):
		th.Registers, th.Crashed, th.Signal, th.Stop = carrier.Registers, carrier.Crashed, carrier.Signal, carrier.Stop
		th.Problem, th.Unread, th.PC, th.HasPC = carrier.Problem, carrier.Unread, carrier.PC, carrier.HasPC
		k.executes[carrier.ID] = th
	case m.IsMounted:
		th.Problem = fmt.Sprintf("thread %s, which executes it, is not in the target", cmp.Or(m.Carrier, "?"))
	case m.Problem != "" && len(m.Frames) == 0:
		th.Problem = m.Problem
	case len(m.Registers.Numbers) > 0:
		th.IsInCall, th.Registers = m.IsInCall, k.registers(m.Registers)
	case len(m.Frames) > 0:
		e := &extended{thread: th}
		most := min(len(m.Frames), max(k.process.options.MaxFrames, 1))
		if left := len(m.Frames) - most; left > 0 {
			k.problem("%s: %d frames outside its %d innermost are left out", th.ID, left, most)
		}
		th.ManagedFrames = k.framesOf(e, &run{}, m.Frames[:most])
		if m.Problem != "" {
			k.problem("%s: %s", th.ID, m.Problem)
		}
	default:
		th.Problem = "the runtime has neither its registers nor its frames"
	}
}

// registers returns registers whose list of numbers is shared with other threads.
func (k *threadMaker) registers(r sdk.Registers) sdk.Registers {
	const maxShapes = 8
	for _, s := range k.shapes {
		if slices.Equal(s.Numbers, r.Numbers) && slices.Equal(s.Offsets, r.Offsets) {
			r.Numbers, r.Offsets = s.Numbers, s.Offsets
			return r
		}
	}
	if len(k.shapes) < maxShapes {
		k.shapes = append(k.shapes, sdk.Registers{Numbers: r.Numbers, Offsets: r.Offsets})
	}
	return r
}

// isExecuted reports whether the stack of a carrier leads into the stack of a thread. It does not
// while the carrier is about to continue it; frames that may be guesses do not tell.
func (k *threadMaker) isExecuted(carrier *trace.Thread, m *sdk.ManagedThread) bool {
	isIn := func(address uint64) bool { return address > m.StackLow && address <= m.StackHigh }
	d := k.machine.Description
	if sp, ok := carrier.Registers.Uint64(d.SP, d.ByteOrder); ok && isIn(sp) {
		return true
	}
	for _, f := range k.process.process.Walk(k.ctx, carrier).Frames {
		if f.RestsOnGuess || f.FoundBy.IsGuess() {
			return false
		}
		if f.HasCFA && isIn(f.CFA) {
			return true
		}
	}
	return false
}
