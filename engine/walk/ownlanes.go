// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// The lanes of a thread may have registers and memory of their own. The thread's stack is
// its lead's; another lane's is walked by that lane's state, with the same rows.

// ofLane returns a thread as one of its lanes has it.
func (s *thread) ofLane(lane uint32) (*thread, error) {
	own := target.OfLane(s.Thread, lane)
	switch {
	case own == nil:
		return nil, fmt.Errorf("the target has no state of lane %d of thread %s", lane, s.ID)
	case own == s.Thread:
		return s, nil
	}
	return &thread{Thread: own, arch: s.arch, binding: s.binding, failure: s.failure, noPC: s.noPC, counted: true}, nil
}

// hasOwnLanes reports whether lanes of the thread have states of their own.
func (w *walker) hasOwnLanes() bool { return len(w.thread.LaneStates) > 0 }

// ownGroups returns groups without the lanes that are not the thread's. Those are at other places, and
// other threads.
func (w *walker) ownGroups(groups []trace.LaneGroup) []trace.LaneGroup {
	var kept []trace.LaneGroup
	for _, g := range groups {
		lanes := make(trace.LaneSet, len(g.Lanes))
		for i := range w.thread.LaneStates {
			if lane := w.thread.LaneStates[i].Lane; g.Lanes.Has(lane) {
				lanes.Add(lane)
			}
		}
		if lanes.Len() > 0 {
			g.Lanes = lanes
			kept = append(kept, g)
		}
	}
	return kept
}

// ofLane returns the frame as one of the thread's lanes has it: the frame with the same index of
// the lane's own stack, which must be at the same place.
func (f *frame) ofLane(ctx context.Context, lane uint32) (*frame, error) {
	w := f.walker
	if !w.hasOwnLanes() || lane == w.thread.Lead {
		return f, nil
	}
	own := w.lanes[lane]
	if own == nil {
		th, err := w.thread.ofLane(lane)
		if err != nil {
			return nil, err
		}
		own = &walker{isBare: true}
		own.startThread(w.process, th, &trace.Stack{Thread: th.Thread})
		own.walk(ctx)
		if w.lanes == nil {
			w.lanes = map[uint32]*walker{}
		}
		w.lanes[lane] = own
	}
	if f.index >= own.walked {
		return nil, fmt.Errorf("the stack of lane %d has %d frames: %s", lane, own.walked, own.stack.Stopped.Detail)
	}
	if g := own.frames[f.index]; g.pc == f.pc {
		return g, nil
	}
	return nil, fmt.Errorf("frame %d of lane %d is at another place, %#x", f.index, lane, own.frames[f.index].pc)
}

// ownLaneReader reads variables as a lane with a state of its own has them.
type ownLaneReader struct {
	lane   uint32
	reader *localsReader
	err    error // why the lane's state cannot be read
}

// ownLaneLocals is laneLocals for lanes with states of their own.
func (f *frame) ownLaneLocals(ctx context.Context, list [][]trace.FrameVariable, scope *code.Variables, limits trace.ValueLimits, lanes trace.LaneSet) {
	readers := make([]ownLaneReader, 0, lanes.Len())
	for lane := range lanes.All() {
		r := ownLaneReader{lane: lane}
		own, err := f.ofLane(ctx, lane)
		if r.err = err; err != nil {
			own = f
		}
		r.reader = own.newReader(scope, limits, &lane)
		readers = append(readers, r)
	}
	for i := range scope.List {
		level := min(scope.List[i].Level, len(list)-1)
		list[level] = appendOwn(ctx, list[level], readers, &scope.List[i], lanes)
	}
}

// appendOwn appends the values of a variable, one for each group of lanes that have the same.
func appendOwn(ctx context.Context, list []trace.FrameVariable, readers []ownLaneReader, s *code.ScopedVariable, lanes trace.LaneSet) []trace.FrameVariable {
	first := len(list)
	var known laneBytes
	for i := range readers {
		r := &readers[i]
		var l locexpr.Location
		err := r.err
		if err == nil {
			l, err = r.reader.locate(ctx, s)
		}
		if same, isKnown := known.find(ctx, r.reader, s, l, err); isKnown {
			list[first+same].Lanes.Add(r.lane)
			continue
		}
		before := len(list)
		var v trace.Variable
		r.reader.readAt(ctx, &v, s, l, err)
		if list = addLaneValue(list, first, v, r.lane, lanes); len(list) > before {
			known.add(before - first)
		}
	}
	return list
}

// addLaneValue adds a lane's value of a variable, whose values are those from first on, to an equal
// one or to the list.
func addLaneValue(list []trace.FrameVariable, first int, v trace.Variable, lane uint32, lanes trace.LaneSet) []trace.FrameVariable {
	for last := max(first, len(list)-maxLaneValues); last < len(list); last++ {
		if list[last].Equal(&v.Value) {
			list[last].Lanes.Add(lane)
			return list
		}
	}
	own := make(trace.LaneSet, len(lanes))
	own.Add(lane)
	return append(list, trace.FrameVariable{Variable: v, Lanes: own})
}
