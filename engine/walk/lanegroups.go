// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// laneAnswer is yes, no, or not known.
type laneAnswer uint8

const (
	laneUnsaid laneAnswer = iota
	laneNo
	laneYes
	laneAbsent // no, nor was it on entry to the function
)

// placeKind is the kind of a lane's place in the debugging information.
type placeKind uint8

const (
	undescribed placeKind = iota // nothing
	absent                       // the lane was not active on entry: the undefined location
	placed                       // a program location
)

// lanePlace is the place of a lane by DW_AT_LLVM_lane_pc.
type lanePlace struct {
	kind placeKind
	pc   uint64
}

// laneGroups returns the groups of a frame's lanes. below are the groups of the frame that it
// called.
func (f *frame) laneGroups(ctx context.Context, below []trace.LaneGroup) []trace.LaneGroup {
	b := f.walker.thread.binding
	if b == nil || b.Lanes <= 1 {
		return nil
	}
	mask := make([]laneAnswer, b.Lanes)
	switch {
	case f.callee != nil:
		called(mask, below)
		if entry, ok := f.callee.entryMask(ctx, b.Lanes); ok {
			calling(mask, entry)
		}
	case !b.ActiveUnknown:
		for lane := range mask {
			mask[lane] = laneNo
			if b.ActiveLanes == nil || lane/8 < len(b.ActiveLanes) && b.ActiveLanes[lane/8]>>(lane%8)&1 != 0 {
				mask[lane] = laneYes
			}
		}
	}
	var places []lanePlace // nil: none is described
	told := false
	if d := f.attributes(); d != nil {
		told = f.evaluateActive(ctx, d, mask)
		if len(d.Scopes) > 0 {
			places = f.places(ctx, d, b.Lanes)
		}
	}
	if entry, ok := f.entryMask(ctx, b.Lanes); ok {
		within(mask, entry, told)
	}
	groups := f.group(mask, places, told)
	if f.walker.hasOwnLanes() {
		groups = f.walker.ownGroups(groups)
	}
	return groups
}

// entryMask returns the lanes that were active when the frame's function was called: the
// caller's execution mask, where the row in force has its place. Where call frame information
// leaves it unchanged nothing is known: compilers do not describe the effect of divergent code
// on it. Rows from the code itself do.
func (f *frame) entryMask(ctx context.Context, lanes uint32) (trace.LaneSet, bool) {
	if f.source == nil || f.source.Rules == nil || f.isGuessed() {
		return nil, false
	}
	reg, ok := f.walker.machine.executionMask(lanes)
	if !ok {
		return nil, false
	}
	switch r, _ := f.source.Rules.Rule(reg); r.Kind {
	case cfi.Undefined:
		return nil, false
	case cfi.Unspecified, cfi.SameValue:
		if !f.source.IsComplete {
			return nil, false
		}
	}
	i, indexed := f.walker.index(reg)
	s, err := f.findSaved(ctx, reg, i, indexed)
	if err != nil {
		return nil, false
	}
	v, err := f.read(ctx, &s, reg, lanes)
	return trace.LaneSet{v}, err == nil
}

// called sets what follows for the lanes of a frame from the groups of the frame that it
// called: a lane of that frame, executing or waiting, was active at the call.
func called(mask []laneAnswer, below []trace.LaneGroup) {
	for i := range below {
		g := &below[i]
		var a laneAnswer
		switch {
		case g.State == trace.LaneActive, g.State == trace.LaneInactive && g.HasPC:
			a = laneYes
		case g.State == trace.LaneNotOnEntry:
			a = laneNo
		}
		for lane := range mask {
			if g.Lanes.Has(uint32(lane)) {
				mask[lane] = a
			}
		}
	}
}

// calling sets the lanes that are not known yet by the caller's execution mask.
func calling(mask []laneAnswer, entry trace.LaneSet) {
	for lane := range mask {
		switch {
		case mask[lane] != laneUnsaid:
		case entry.Has(uint32(lane)):
			mask[lane] = laneYes
		default:
			mask[lane] = laneNo
		}
	}
}

// within leaves out the lanes that were not active on entry. Where such a lane executes, the
// function has made more lanes active than called it, for an operation of the whole wave, and
// which of them execute for themselves is known only from DW_AT_LLVM_active_lane.
func within(mask []laneAnswer, entry trace.LaneSet, told bool) {
	whole := false
	for lane, a := range mask {
		whole = whole || a == laneYes && !entry.Has(uint32(lane))
	}
	for lane, a := range mask {
		entered := entry.Has(uint32(lane))
		switch {
		case a == laneYes && entered:
			if whole && !told {
				mask[lane] = laneUnsaid
			}
		case a == laneYes && told: // a contradiction
			mask[lane] = laneUnsaid
		case !entered:
			mask[lane] = laneAbsent
		}
	}
}

// group puts together the lanes that are in one state at one place. told is true where mask
// comes from DW_AT_LLVM_active_lane, which a place does not overrule.
func (f *frame) group(mask []laneAnswer, places []lanePlace, told bool) []trace.LaneGroup {
	var groups []trace.LaneGroup
	for lane := range mask {
		var place lanePlace
		if places != nil {
			place = places[lane]
		}
		state, pc, hasPC := f.laneState(mask[lane], &place, told)
		i := 0
		for ; i < len(groups); i++ {
			if g := &groups[i]; g.State == state && g.HasPC == hasPC && g.PC == pc {
				break
			}
		}
		if i == len(groups) {
			groups = append(groups, trace.LaneGroup{Lanes: trace.NewLaneSet(uint32(len(mask))), State: state, PC: pc, HasPC: hasPC})
		}
		groups[i].Lanes.Add(uint32(lane))
	}
	for i := range groups {
		f.nameGroup(&groups[i])
	}
	return groups
}

// laneState combines the facts about a lane. Where DW_AT_LLVM_active_lane, DW_AT_LLVM_lane_pc
// and call frame information contradict each other the state is not known; the execution mask,
// which code may change for its own ends, counts less than all of them.
func (f *frame) laneState(active laneAnswer, place *lanePlace, told bool) (state trace.LaneState, pc uint64, hasPC bool) {
	switch {
	case place.kind == undescribed && active == laneYes:
		return trace.LaneActive, f.pc, true
	case place.kind == undescribed && active == laneNo:
		return trace.LaneInactive, 0, false
	case place.kind == undescribed && active == laneAbsent:
		return trace.LaneNotOnEntry, 0, false
	case place.kind == undescribed:
		return trace.LaneUnknown, 0, false
	case place.kind == placed && place.pc == f.pc && active != laneNo && active != laneAbsent:
		return trace.LaneActive, f.pc, true
	case told && active == laneYes, place.kind == placed && active == laneAbsent:
		return trace.LaneUnknown, 0, false
	case place.kind == absent:
		return trace.LaneNotOnEntry, 0, false
	}
	return trace.LaneInactive, place.pc, true
}

// nameGroup finds the functions at a group's place. The lanes that execute are at the frame's
// place, inside its call if it has called something; a lane that waits is about to go on at its
// place.
func (f *frame) nameGroup(g *trace.LaneGroup) {
	if !g.HasPC {
		return
	}
	if g.State == trace.LaneActive {
		out := &f.walker.stack.Frames[f.index]
		g.ModuleOffset, g.Symbols = out.ModuleOffset, out.Symbols
		return
	}
	s := f.walker.input.memory.Segment(g.PC)
	if s == nil {
		return
	}
	address := s.ObjectAddress(g.PC)
	g.ModuleOffset = s.Module.Code.Offset(address)
	if !f.walker.process.shared.options.NoSymbols {
		g.Symbols = f.walker.process.names(s.Module, address)
	}
}

// countOf returns how many of a thread's lanes a scope's attributes cover.
func countOf(s *code.LaneScope, lanes int) int {
	if s.Lanes > 0 && s.Lanes < uint64(lanes) {
		return int(s.Lanes)
	}
	return lanes
}

// evaluateActive puts DW_AT_LLVM_active_lane into mask. ok is false, and mask unchanged, where
// there is none for the PC, or where it cannot be evaluated.
func (f *frame) evaluateActive(ctx context.Context, d *code.LaneAttributes, mask []laneAnswer) (ok bool) {
	if d.Active == nil {
		return false
	}
	n := countOf(d.Holder, len(mask))
	bytes := make([]byte, (n+7)/8)
	found, err := f.evaluateLane(ctx, d.Holder, d.Active, nil, func(l locexpr.Location, c locexpr.Context) error {
		return l.Read(ctx, c, bytes, uint64(n))
	})
	if err != nil {
		f.laneProblem(d.Holder, "DW_AT_LLVM_active_lane", err)
	}
	if !found || err != nil {
		return false
	}
	for lane := range mask {
		switch {
		case lane >= n:
			mask[lane] = laneUnsaid
		case bytes[lane/8]>>(lane%8)&1 != 0:
			mask[lane] = laneYes
		default:
			mask[lane] = laneNo
		}
	}
	return true
}

// places returns the places of lanes: by a plan where there is one.
func (f *frame) places(ctx context.Context, d *code.LaneAttributes, lanes uint32) []lanePlace {
	places := make([]lanePlace, lanes)
	if f.isTop() {
		if plan := f.walker.process.plans.of(f, d, lanes); plan != nil && plan.assign(f, places) {
			return places
		}
		clear(places)
	}
	f.evaluatePlaces(ctx, d, places)
	return places
}

// evaluatePlaces finds the places of lanes by DW_AT_LLVM_lane_pc. A lane that was not active
// when an inlined call began has its place in the function around it.
func (f *frame) evaluatePlaces(ctx context.Context, d *code.LaneAttributes, places []lanePlace) {
	for i := range d.Scopes {
		s := &d.Scopes[i]
		if err := f.evaluateScope(ctx, s, places); err != nil {
			f.laneProblem(s, "DW_AT_LLVM_lane_pc", err)
			// A lane may be in this call, where the function around it has another place.
			return
		}
	}
}

// evaluateScope evaluates DW_AT_LLVM_lane_pc of one scope, for the lanes that
// are not placed yet.
func (f *frame) evaluateScope(ctx context.Context, s *code.LaneScope, places []lanePlace) error {
	n := countOf(s, len(places))
	got := make([]lanePlace, len(places))
	read := func(lane int) func(locexpr.Location, locexpr.Context) error {
		return func(l locexpr.Location, c locexpr.Context) (err error) {
			got[lane], err = f.readLanePlace(ctx, l, c, lane)
			return err
		}
	}
	found, err := f.evaluateLane(ctx, s, s.PC, nil, func(l locexpr.Location, c locexpr.Context) error {
		for lane := range n {
			if err := read(lane)(l, c); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, locexpr.ErrNoContext) {
		// The expression depends on the lane: it has one result for each.
		for lane := range n {
			number := uint32(lane)
			if found, err = f.evaluateLane(ctx, s, s.PC, &number, read(lane)); err != nil || !found {
				break
			}
		}
	}
	if err != nil || !found {
		return err
	}
	for lane := range n {
		if places[lane].kind != placed {
			places[lane] = got[lane]
		}
	}
	return nil
}

// readLanePlace reads the element of a lane: a value of the generic type, or the
// undefined location.
func (f *frame) readLanePlace(ctx context.Context, l locexpr.Location, c locexpr.Context, lane int) (lanePlace, error) {
	size := f.walker.machine.Description.AddressBits
	if l.IsUndefined() {
		return lanePlace{kind: absent}, nil
	}
	element, err := l.Offset(int64(lane) * int64(size))
	if err != nil {
		return lanePlace{}, fmt.Errorf("lane %d: %w", lane, err)
	}
	var b [8]byte
	switch err := element.Read(ctx, c, b[:(size+7)/8], uint64(size)); {
	case errors.Is(err, locexpr.ErrUndefined):
		return lanePlace{kind: absent}, nil
	case err != nil:
		return lanePlace{}, fmt.Errorf("lane %d: %w", lane, err)
	}
	return lanePlace{placed, integer(b[:(size+7)/8], c.ByteOrder())}, nil
}

// errPlaces is the error for a location with more or fewer places than one.
var errPlaces = errors.New("expected one single location description")

// evaluateLane evaluates an attribute of a scope in the frame. found is false where its
// location list has nothing for the frame's PC.
func (f *frame) evaluateLane(ctx context.Context, s *code.LaneScope, attribute *dwarf.Location, lane *uint32,
	use func(locexpr.Location, locexpr.Context) error) (found bool, err error) {
	exprs, err := attribute.At(f.lookup)
	if err != nil || len(exprs) == 0 {
		return false, err
	}
	if len(exprs) > 1 {
		return false, fmt.Errorf("%d expressions for %#x: %w", len(exprs), f.lookup, errPlaces)
	}
	u := f.unitContext(s.Function, lane)
	l, err := u.evaluate(ctx, attribute.Unit, exprs[0])
	if err != nil {
		return true, err
	}
	if l.NumPlaces() != 1 {
		return true, fmt.Errorf("%d places: %w", l.NumPlaces(), errPlaces)
	}
	return true, use(l, u.context(attribute.Unit))
}

// laneProblem reports that an attribute cannot be evaluated.
func (f *frame) laneProblem(s *code.LaneScope, attribute string, err error) {
	f.module.StateProblem("%s of %s %s: %s", attribute, s.Entry.Name(), s.Entry, err)
}
