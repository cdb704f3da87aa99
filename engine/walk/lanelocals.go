// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file reads the variables of waves, for each lane.

// laneLocals are variables lane by lane, in list by the function that has them: one for
// each group of lanes that have the same value. A value that does not depend on the lane
// is read once.
func (f *frame) laneLocals(ctx context.Context, list [][]trace.FrameVariable, scope *code.Variables, limits trace.ValueLimits, lanes trace.LaneSet) {
	if f.walker.hasOwnLanes() {
		f.ownLaneLocals(ctx, list, scope, limits, lanes)
		return
	}
	var lane uint32
	r := f.newReader(scope, limits, &lane)
	for i := range scope.List {
		s := &scope.List[i]
		level := min(s.Level, len(list)-1)
		list[level] = f.laneVariable(ctx, list[level], r, s, lanes, &lane)
	}
}

// maxLaneValues is how many values of other lanes a lane's is compared with. No hardware has
// threads with as many lanes; a plugin may claim it.
const maxLaneValues = 256

// laneVariable appends the values of a variable. r reads the current lane's.
func (f *frame) laneVariable(ctx context.Context, list []trace.FrameVariable, r *localsReader, s *code.ScopedVariable, lanes trace.LaneSet, lane *uint32) []trace.FrameVariable {
	values := f.walker.laneValues[:0]
	locate, isOfRegister := r.laneLocator(ctx, s)
	var known laneBytes
next:
	for n := range lanes.All() {
		*lane = n
		r.u.forgetLane()
		f.walker.input.laneUsed = false
		l, err := locate()
		same, isKnown := known.find(ctx, r, s, l, err)
		if isKnown {
			values[same].Lanes.Add(n)
			continue
		}
		last := len(values)
		values = append(values, trace.FrameVariable{})
		v := &values[last]
		r.readAt(ctx, &v.Variable, s, l, err)
		if last == 0 && (!f.walker.input.laneUsed || isOfRegister && r.u.isLost(l)) {
			v.Lanes = slices.Clone(lanes)
			break
		}
		for i := max(0, last-maxLaneValues); i < last; i++ {
			if values[i].Equal(&v.Value) {
				values[i].Lanes.Add(n)
				values = values[:last]
				continue next
			}
		}
		known.add(last)
		v.Lanes = r.newLaneSet(len(lanes))
		v.Lanes.Add(n)
	}
	f.walker.laneValues = values
	return append(list, values...)
}

// isLost reports whether a location is in a register that the target does not have.
func (u *unitContext) isLost(l locexpr.Location) bool {
	if p := l.Place(0); l.NumPlaces() == 1 && p.Storage == locexpr.Register {
		_, ok := u.frame.walker.topRegister(p.Register)
		return !ok
	}
	return false
}

// newLaneSet returns an empty set of so many words.
func (r *localsReader) newLaneSet(words int) trace.LaneSet {
	const together = 16
	if len(r.sets) < words {
		r.sets = make([]uint64, together*words)
	}
	set := r.sets[:words:words]
	r.sets = r.sets[words:]
	return set
}

// laneLocator returns a function that finds the place of a variable in the current lane;
// isOfRegister is true where that is the lane's part of one register.
func (r *localsReader) laneLocator(ctx context.Context, s *code.ScopedVariable) (locate func() (locexpr.Location, error), isOfRegister bool) {
	if err := s.Problem; err != nil {
		return func() (locexpr.Location, error) { return locexpr.Location{}, err }, false
	}
	r.u.isSameThere = r.u.isAlikeAt(s.Location)
	if s.Here != nil {
		v, plan, ok, err := r.u.planHere(ctx, s)
		switch {
		case err != nil:
			return func() (locexpr.Location, error) { return locexpr.Location{}, err }, false
		case ok:
			return func() (locexpr.Location, error) { return plan.place(&v) }, !plan.isComposite && plan.parts[0].stride > 0
		}
	}
	return func() (locexpr.Location, error) { return r.u.locateHere(ctx, s) }, false
}

// laneBytes are the values of a variable that is a number or an address, by their bytes: a
// value that many lanes have is read, and written as text, once.
type laneBytes struct {
	now    uint64
	isRead bool // now is the value that was looked up
	space  locexpr.AddressSpace
	where  uint64 // its address in memory, of space
	list   []knownBytes
}

type knownBytes struct {
	bytes, where uint64
	space        locexpr.AddressSpace
	index        int
}

// find looks for the value at a location among the known ones.
func (b *laneBytes) find(ctx context.Context, r *localsReader, s *code.ScopedVariable, l locexpr.Location, err error) (index int, ok bool) {
	b.isRead = false
	if err != nil || s.Type == nil || !s.Type.IsSized || s.Type.Size == 0 || s.Type.Size > 8 {
		return 0, false
	}
	plain, err := s.Type.Plain()
	if err != nil || plain.Kind != dwarf.KindBase && plain.Kind != dwarf.KindEnumeration {
		return 0, false
	}
	var buf [8]byte
	c := r.u.context(s.Unit())
	if l.Object(8*plain.Size, c.ByteOrder()).Read(ctx, c, buf[:plain.Size], 8*plain.Size) != nil {
		return 0, false
	}
	b.now, b.isRead = binary.LittleEndian.Uint64(buf[:]), true
	b.space, b.where, _ = l.MemoryAddress()
	for i := len(b.list) - 1; i >= max(0, len(b.list)-maxLaneValues); i-- {
		if k := &b.list[i]; k.bytes == b.now && k.where == b.where && k.space == b.space {
			return k.index, true
		}
	}
	return 0, false
}

// add gives the value that was looked up last an index.
func (b *laneBytes) add(index int) {
	if b.isRead {
		b.list = append(b.list, knownBytes{b.now, b.where, b.space, index})
	}
}

// forgetLane removes results for the lane before.
func (u *unitContext) forgetLane() {
	u.base = nil
	if u.call != nil && u.call.caller != nil {
		u.call.caller.forgetLane()
	}
}

// readWaiting reads the variables of lanes that wait at places of their own. The program
// location of an evaluation with a current lane is the lane's (heterogeneous extension,
// A.2.5.1).
func (f *frame) readWaiting(ctx context.Context, limits trace.ValueLimits) {
	groups := f.walker.stack.Frames[f.index].Lanes()
	for i := range groups {
		g := &groups[i]
		if g.State != trace.LaneInactive || !g.HasPC {
			continue
		}
		waiting, ok := f.waitingAt(g.PC)
		if !ok {
			continue
		}
		err := object.Guard(func() error { g.Locals = waiting.localsOf(ctx, limits, g.Lanes); return nil })
		if err != nil {
			f.module.StateProblem("variables of lanes at %#x: %v", g.ModuleOffset, err)
		}
	}
}

// waitingAt returns the frame as lanes see it that wait at a place in it.
func (f *frame) waitingAt(pc uint64) (*frame, bool) {
	s := f.walker.input.memory.Segment(pc)
	if s == nil || f.module == nil || s.Module != f.module {
		return nil, false
	}
	address := s.ObjectAddress(pc)
	waiting := *f
	waiting.pc, waiting.offset, waiting.lookup, waiting.exact, waiting.place = pc, address, address, true, f
	waiting.memo = waiting.memo[:len(waiting.memo):len(waiting.memo)]
	return &waiting, true
}

// laneFrame returns a frame at the place of a lane in it.
func laneFrame(ctx context.Context, frames []Activation, index int, lane uint32) (*frame, error) {
	var groups []trace.LaneGroup
	for i := range index + 1 {
		groups = frames[i].frame.laneGroups(ctx, groups)
	}
	f := frames[index].frame
	g := trace.LaneGroupOf(groups, lane)
	switch {
	case groups == nil || g != nil && g.State == trace.LaneActive:
		return f.ofLane(ctx, lane)
	case g == nil:
		return nil, fmt.Errorf("lane %d of a thread with %d", lane, f.walker.thread.lanes())
	case g.State == trace.LaneNotOnEntry:
		return nil, fmt.Errorf("lane %d did not call the function of frame %d", lane, index)
	case g.HasPC:
		if waiting, ok := f.waitingAt(g.PC); ok {
			return waiting, nil
		}
	}
	return nil, fmt.Errorf("where lane %d is in frame %d is not known", lane, index)
}

// errNotKept is the error where a register may not have its content for waiting lanes, which
// they will have again when they go on.
var errNotKept = errors.New("the lanes that execute may have changed it")

// isKept returns an error unless a register that is common to all lanes has the content that
// waiting lanes expect there. Other lanes execute meanwhile, and compute in such registers too.
// The stack pointer and the frame pointer are the same for all of the function, and so is a
// location that a variable has at the places of both the waiting and the other lanes.
func (u *unitContext) isKept(reg uint64) error {
	f := u.frame
	d := f.walker.machine.Description
	if f.place == nil || u.isSameThere || reg == uint64(d.SP) || reg == uint64(d.FP) {
		return nil
	}
	if v, ok := u.laneView(); ok && v.laneBits(reg) != 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", f.walker.registerName(reg), errNotKept)
}

// isAlikeAt reports whether a variable has the same description at the places of waiting and of
// other lanes.
func (u *unitContext) isAlikeAt(l *dwarf.Location) bool {
	f := u.frame
	if f.place == nil || l == nil {
		return false
	}
	if l.Lists == nil {
		return true
	}
	here, err := l.At(f.lookup)
	if err != nil {
		return false
	}
	there, err := l.At(f.place.lookup)
	return err == nil && len(here) == 1 && len(there) == 1 && bytes.Equal(here[0], there[0])
}
