// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// maker makes threads of the goroutines of one runtime.
type maker struct {
	*runtime
	ctx     context.Context
	threads map[string]*trace.Thread // of the operating system, by ID
	// executes are the goroutines whose registers are the ones of a thread in threads, by its
	// ID.
	executes map[string]*trace.Thread
	suffix   string // of names
	states   map[trace.GoroutineState]*trace.GoroutineState
	origins  map[[2]uint64]*trace.GoroutineOrigin // by the addresses of creator and start
	places   map[placeKey]*trace.CodePlace
	starts   map[uint64]bool // whether a function begins at an address

	// parked has the registers of a goroutine that waits, and away the registers of one that
	// left for a system call or C.
	parked, away registerSet

	stackless int // elements of the list
	slab      []goroutineThread
}

// goroutineThread is a goroutine with its thread. They are allocated by the thousand.
type goroutineThread struct {
	thread    trace.Thread
	goroutine trace.Goroutine
}

// slabSize is how many goroutines are allocated together, where there are so many.
const slabSize = 1 << 10

// placeKey is a place in the code: a function's start, or a return address.
type placeKey struct {
	pc       uint64
	isReturn bool
}

func newMaker(ctx context.Context, r *runtime, threads, executes map[string]*trace.Thread) *maker {
	return &maker{
		runtime: r, ctx: ctx, threads: threads, executes: executes,
		states: map[trace.GoroutineState]*trace.GoroutineState{}, origins: map[[2]uint64]*trace.GoroutineOrigin{},
		places: map[placeKey]*trace.CodePlace{}, starts: map[uint64]bool{},
		parked: newRegisterSet(r.description, r.g.pc, r.g.sp, r.g.fp, r.g.lr),
		away:   newRegisterSet(r.description, r.g.syscallPC, r.g.syscallSP, r.g.syscallFP, field{}),
	}
}

// all makes a thread of each goroutine that has not ended.
func (k *maker) all() (list []*trace.Thread) {
	addresses := k.addresses()
	paged, _ := k.state.(target.Paged)
	buf := make([]byte, k.g.size)
	missing := 0
	for i, address := range addresses {
		if _, err := k.read(address, buf); err != nil {
			if missing++; missing == 1 {
				k.problem("goroutine at %#x: %v", address, err)
			}
			continue
		}
		if th := k.thread(address, buf, len(addresses)-i); th != nil {
			list = append(list, th)
		}
		if paged != nil && i%releaseEvery == releaseEvery-1 {
			paged.ReleasePages()
		}
	}
	if missing > 1 {
		k.problem("%d goroutines in all are not in the target", missing)
	}
	k.setWaits(list)
	if k.stackless > 0 {
		k.problem("%d elements of runtime.allgs are no goroutines: they have no stack", k.stackless)
	}
	return list
}

// setWaits sets how long goroutines have waited at least: until the latest time that the
// runtime recorded anywhere. A core does not have its own time.
func (k *maker) setWaits(list []*trace.Thread) {
	latest := k.latestTime()
	for _, th := range list {
		latest = max(latest, th.Goroutine.WaitSince)
	}
	for _, th := range list {
		if g := th.Goroutine; g.WaitSince != 0 {
			g.WaitAtLeast = latest - g.WaitSince
		}
	}
}

// releaseEvery is the number of goroutines after which their pages are released.
const releaseEvery = 1 << 14

// hasEnded reports whether a state belongs to a goroutine that has ended, or has not begun: the
// runtime keeps its memory for the next one.
func hasEnded(state string) bool { return strings.HasPrefix(state, "dead") }

// thread makes a thread of a goroutine. left is how many are still to come. It returns nil
// where the goroutine has ended, or is none: the runtime lists a goroutine once it has a stack.
func (k *maker) thread(address uint64, b []byte, left int) *trace.Thread {
	status := k.get(b, k.g.status)
	state := k.stateName(status &^ k.scan)
	if hasEnded(state) {
		return nil
	}
	if k.get(b, k.g.stackLow) >= k.get(b, k.g.stackHigh) {
		k.stackless++
		return nil
	}
	th, g := k.next(left)
	doing := trace.GoroutineState{State: state, IsScanned: status&k.scan != 0, IsLocked: k.get(b, k.g.lockedTo) != 0}
	if state == "waiting" {
		doing.WaitReason = k.reason(k.get(b, k.g.waitReason))
	}
	g.ID, g.GoroutineState = k.get(b, k.g.id), shared(k.states, doing)
	from := [2]uint64{k.get(b, k.g.creator), k.get(b, k.g.start)}
	if g.ID == 1 {
		from[0] = 0 // assembly made the first one
	}
	g.GoroutineOrigin = k.origin(from)
	if g.Parent = k.get(b, k.g.parent); state == "waiting" || state == "syscall" {
		g.WaitSince = k.get(b, k.g.waitSince) // in other states it is from the time before
	}
	th.ID, th.Arch, th.Goroutine = "goroutine "+strconv.FormatUint(g.ID, 10)+k.suffix, k.module.Arch, g
	if g.StartedAt != nil {
		th.Name = g.StartedAt.Function
	}
	k.findState(th, address, b)
	return th
}

// shared returns one pointer for all equal values.
func shared[T comparable](all map[T]*T, value T) *T {
	one := all[value]
	if one == nil {
		one = &value
		all[value] = one
	}
	return one
}

// origin returns the go statement and the first function of goroutines.
func (k *maker) origin(from [2]uint64) *trace.GoroutineOrigin {
	o := k.origins[from]
	if o != nil {
		return o
	}
	o = &trace.GoroutineOrigin{}
	if from[0] != 0 {
		o.CreatedBy = k.place(from[0], true)
	}
	if from[1] != 0 {
		o.StartedAt = k.place(from[1], false)
		o.IsSystem = isSystem(o.StartedAt.Function)
	}
	k.origins[from] = o
	return o
}

// next returns memory for the next goroutine.
func (k *maker) next(left int) (*trace.Thread, *trace.Goroutine) {
	if len(k.slab) == 0 {
		k.slab = make([]goroutineThread, min(left, slabSize))
	}
	m := &k.slab[0]
	k.slab = k.slab[1:]
	return &m.thread, &m.goroutine
}

// isSystem reports whether the runtime made a goroutine for itself, by the function that it
// began with: all of the runtime's except those that execute the program's functions
// (isSystemGoroutine in src/runtime/traceback.go).
func isSystem(function string) bool {
	switch function {
	case "runtime.main", "runtime.corostart", "runtime.handleAsyncEvent":
		return false
	}
	return strings.HasPrefix(function, "runtime.")
}

// place names a place, once.
func (k *maker) place(pc uint64, isReturn bool) *trace.CodePlace {
	key := placeKey{pc, isReturn}
	place := k.places[key]
	if place == nil {
		lookup := pc
		if isReturn {
			lookup -= uint64(k.description.CallDistance)
		}
		place = k.names(k.ctx, pc, lookup)
		k.places[key] = place
	}
	return place
}

// isStart reports whether a function begins at an address, which is then no return address: a
// goroutine that was created and not executed yet is there.
func (k *maker) isStart(pc uint64) bool {
	is, ok := k.starts[pc]
	if !ok {
		if s := k.process.Segment(pc); s != nil {
			address := s.ObjectAddress(pc)
			frames := s.Module.AllNames(k.ctx, address, true)
			is = len(frames) > 0 && frames[0].HasStart && frames[0].Start == address
		}
		k.starts[pc] = is
	}
	return is
}

// findState finds where a goroutine is: with its thread if one executes it, or else where it
// was parked.
func (k *maker) findState(th *trace.Thread, address uint64, b []byte) {
	g := th.Goroutine
	m := k.machineAt(k.get(b, k.g.machine))
	var thread *trace.Thread
	if m.using == address {
		g.Thread = m.thread
		thread = k.threads[m.thread]
	}
	isAway := k.get(b, k.g.syscallSP) != 0
	switch {
	case thread != nil && (g.State == "running" && !isAway || k.isExecuted(thread, b)):
		th.Registers, th.Crashed, th.Signal, th.Stop = thread.Registers, thread.Crashed, thread.Signal, thread.Stop
		th.Problem, th.Unread, th.PC, th.HasPC = thread.Problem, thread.Unread, thread.PC, thread.HasPC
		k.executes[thread.ID] = th
	case isAway:
		// (*unwinder).initAt of src/runtime/traceback.go has this order.
		k.setRegisters(th, b, &k.away)
	case g.State == "running":
		th.Problem = fmt.Sprintf("thread %s, which executes it, is not in the target", cmp.Or(g.Thread, "?"))
	default:
		k.setRegisters(th, b, &k.parked)
	}
}

// isExecuted reports whether the stack of a thread leads to the goroutine that it executes. It
// does not while the thread is about to continue it; in C, whose callers are not known, its
// frames may be guesses.
func (k *maker) isExecuted(thread *trace.Thread, b []byte) bool {
	low, high := k.get(b, k.g.stackLow), k.get(b, k.g.stackHigh)
	if sp, ok := thread.Registers.Uint64(k.description.SP, k.description.ByteOrder); ok && sp > low && sp <= high {
		return true
	}
	for _, f := range k.process.Walk(k.ctx, thread).Frames {
		if f.RestsOnGuess || f.FoundBy.IsGuess() {
			return false
		}
		if f.HasCFA && f.CFA > low && f.CFA <= high {
			return true
		}
	}
	return false
}

// registerSet is where a parked goroutine has its registers, in the order of their numbers.
type registerSet struct {
	pc               field
	from             []field
	numbers, offsets []uint32 // as sdk.Registers has them
}

// newRegisterSet makes a set without the registers that the version of Go does not keep.
func newRegisterSet(d *sdk.Description, pc, sp, fp, lr field) (s registerSet) {
	if d.ReturnAddress == d.PC {
		lr = field{}
	}
	type place struct {
		register uint32
		from     field
	}
	places := []place{{d.PC, pc}, {d.SP, sp}, {d.FP, fp}, {d.ReturnAddress, lr}}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.register, b.register) })
	s.pc, s.offsets = pc, []uint32{0}
	for i, p := range places {
		if p.from.size == 0 || p.register == sdk.NoRegister {
			continue
		}
		s.from, s.numbers = append(s.from, p.from), append(s.numbers, p.register)
		s.offsets = append(s.offsets, s.offsets[len(s.offsets)-1]+uint32(places[i].from.size)) //nolint:gosec // at most 8
	}
	return s
}

// setRegisters gives a thread the registers of a parked goroutine.
func (k *maker) setRegisters(th *trace.Thread, b []byte, set *registerSet) {
	pc := k.get(b, set.pc)
	if pc == 0 {
		th.Problem = "where the goroutine goes on is not known: its PC is 0"
		return
	}
	th.IsInCall = !k.isStart(pc)
	data := make([]byte, 0, set.offsets[len(set.numbers)])
	for _, f := range set.from {
		data = append(data, b[f.offset:f.offset+f.size]...)
	}
	th.Registers = sdk.Registers{Numbers: set.numbers, Offsets: set.offsets, Data: data}
}
