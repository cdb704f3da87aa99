package walk

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/value"
)

// This file reads the variables of waves, as each lane has them.

// laneLocals are variables lane by lane, in list by the function that has them: one for
// each group of lanes that have the same value. A value that does not depend on the lane
// is read once.
func (f *frame) laneLocals(list [][]Variable, scope *code.Variables, limits value.Limits, lanes LaneSet) {
	var lane uint32
	r := f.newReader(scope, limits, &lane)
	for i := range scope.List {
		s := &scope.List[i]
		level := min(s.Level, len(list)-1)
		list[level] = f.laneVariable(list[level], r, s, lanes, &lane)
	}
}

// laneVariable appends the values of a variable. r reads those of lane.
func (f *frame) laneVariable(list []Variable, r *localsReader, s *code.ScopedVariable, lanes LaneSet, lane *uint32) []Variable {
	from, last := len(list), len(list)
next:
	for at := range lanes.All() {
		*lane = at
		r.u.forgetLane()
		f.walker.laneUsed = false
		v := r.read(s)
		if !f.walker.laneUsed && len(list) == from {
			return append(list, Variable{v, lanes.clone()})
		}
		if last < len(list) && list[last].Equal(&v.Value) { // that of the lane before, mostly
			list[last].Lanes.add(at)
			continue
		}
		for last = from; last < len(list); last++ {
			if list[last].Equal(&v.Value) {
				list[last].Lanes.add(at)
				continue next
			}
		}
		of := make(LaneSet, len(lanes))
		of.add(at)
		list = append(list, Variable{v, of})
	}
	return list
}

// forgetLane takes back what was found for the lane before.
func (u *unitContext) forgetLane() {
	u.base = nil
	if u.call != nil && u.call.caller != nil {
		u.call.caller.forgetLane()
	}
}

// readWaiting reads the variables of lanes that wait at places of their own. The program
// location of an evaluation with a current lane is that lane's (heterogeneous extension,
// A.2.5.1).
func (f *frame) readWaiting(limits value.Limits) {
	groups := f.walker.stack.Frames[f.index].Lanes()
	for i := range groups {
		g := &groups[i]
		if g.State != LaneInactive || !g.HasPC {
			continue
		}
		waiting, ok := f.waitingAt(g.PC)
		if !ok {
			continue
		}
		err := object.Guard(func() error { g.Locals = waiting.localsOf(limits, g.Lanes); return nil })
		if err != nil {
			f.module.StateProblem("variables of lanes at %#x: %v", g.ModuleOffset, err)
		}
	}
}

// waitingAt is the frame as lanes see it that wait at a place in it.
func (f *frame) waitingAt(pc uint64) (*frame, bool) {
	s := f.walker.memory.Segment(pc)
	if s == nil || f.module == nil || s.Module != f.module {
		return nil, false
	}
	at := s.ObjectAddress(pc)
	waiting := *f
	waiting.pc, waiting.offset, waiting.lookup, waiting.exact, waiting.place = pc, at, at, true, f
	waiting.memo = waiting.memo[:len(waiting.memo):len(waiting.memo)]
	return &waiting, true
}

// errNotKept says that nothing tells whether a register has what it had for lanes that
// wait, and will have when they go on.
var errNotKept = errors.New("the lanes that execute may have changed it")

// isKept says of a register that is one for all lanes whether it has what lanes that wait
// expect there. Other lanes execute meanwhile, and what they compute is in such registers
// too. The stack pointer and the frame pointer are the same for all of the function, and
// so is a location that a variable has both where the lanes wait and where the others are.
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

// isAlikeAt says whether a variable is described alike where lanes wait and where the
// others are.
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
