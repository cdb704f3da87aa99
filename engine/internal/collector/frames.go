// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// keepWalked reads the bytes of the frames of a stack that was walked.
func (c *collector) keepWalked(ctx context.Context, s *trace.Stack) {
	if view, ok := c.walked.View(ctx, s.Thread); ok {
		c.keepFrames(ctx, s, view)
	}
}

// keepLanes keeps what the stacks of lanes need that have states of their own. Where there are
// too many, crashed threads alone keep theirs.
func (c *collector) keepLanes(ctx context.Context, th *trace.Thread) {
	for i := range th.LaneStates {
		l := &th.LaneStates[i]
		if l.Lane == th.Lead || c.kept > keptStacks/2 && !th.Crashed {
			continue
		}
		s, view, ok := c.walked.LaneView(ctx, th, l.Lane)
		if !ok {
			continue
		}
		c.keepFrames(ctx, s, view)
		for _, m := range l.Memory {
			if th.Crashed {
				touch(ctx, view, m.Space, m.Start, m.Start+min(m.Size, keptOfLane))
			}
		}
	}
}

// keepFrames reads the bytes of a stack's frames. From one frame's CFA to the next it is
// the frame's; a stack that continues elsewhere, after a signal on a stack of its own, is
// kept around its CFA.
func (c *collector) keepFrames(ctx context.Context, s *trace.Stack, view *walk.ThreadView) {
	left := keptStack
	if lanesTogether(s) > 1 {
		left = keptWave
	}
	left = min(left, keptStacks-c.kept)
	keep := func(space locexpr.AddressSpace, from, to, beyond uint64) {
		if from > to {
			from, to = to, from
		}
		from, to = from-min(from, beyond), to+min(^uint64(0)-to, beyond)
		if n := to - from; n > uint64(left) {
			to = from + uint64(left)
		}
		left -= int(to - from)
		c.kept += touch(ctx, view, space, from, to)
	}
	space := locexpr.DefaultSpace
	last, known := top(view, s)
	if known {
		keep(space, last, last, keptBeyond)
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		if !f.HasCFA || left <= 0 {
			continue
		}
		if known && f.CFASpace == space && max(f.CFA, last)-min(f.CFA, last) <= uint64(left) {
			keep(space, last, f.CFA, keptBeyond)
		} else {
			keep(f.CFASpace, f.CFA, f.CFA, keptBeyond)
		}
		space, last, known = f.CFASpace, f.CFA, true
	}
	c.keepEnds(s, keep)
}

// top is the end of a thread's stack in the default address space, if that is known: the
// stack pointer of an architecture with several spaces is in the space of its CFAs.
func top(view *walk.ThreadView, s *trace.Stack) (address uint64, known bool) {
	if len(s.Frames) > 0 && s.Frames[0].HasCFA && s.Frames[0].CFASpace != locexpr.DefaultSpace {
		return 0, false
	}
	sp, err := view.StackPointer()
	known = err == nil && (len(s.Frames) > 0 && s.Frames[0].HasCFA || len(view.Machine().Description.AddressSpaces) <= 1)
	return sp, known
}

// keepEnds keeps the bytes beyond the CFAs of a stack in a space of its own. A wave's
// stack grows up: its top frame is above the first CFA, and the kernel's frame, which has
// no CFA, is at the beginning of the memory. Where there are too many waves to keep all
// their frames, it does nothing.
func (c *collector) keepEnds(s *trace.Stack, keep func(space locexpr.AddressSpace, from, to, beyond uint64)) {
	n := len(s.Frames)
	if n == 0 || c.kept > keptStacks/2 {
		return
	}
	var first, last *trace.Frame
	for i := range s.Frames {
		if f := &s.Frames[i]; f.HasCFA && f.CFASpace != locexpr.DefaultSpace {
			if first == nil {
				first = f
			}
			last = f
		}
	}
	ofLane := keptOfLane * lanesTogether(s)
	if first != nil {
		keep(first.CFASpace, first.CFA, first.CFA+min(ofLane, ^uint64(0)-first.CFA), 0)
	}
	for _, m := range s.Thread.Memory {
		switch {
		case s.Frames[n-1].HasCFA:
		case last != nil && m.Space == last.CFASpace:
			keep(m.Space, m.Start, min(last.CFA, m.Start+m.Size), 0)
		case last == nil && c.isOfWaves(m.Space):
			keep(m.Space, m.Start, m.Start+min(m.Size, ofLane), 0)
		}
	}
}

// lanesTogether is the number of lanes whose bytes are side by side in a stack's frames: 1 where each has
// memory of its own.
func lanesTogether(s *trace.Stack) uint64 {
	if len(s.Thread.LaneStates) > 0 {
		return 1
	}
	return uint64(max(s.Lanes, 1))
}

// isOfWaves reports whether each wave has an instance of an address space.
func (c *collector) isOfWaves(space locexpr.AddressSpace) bool {
	if c.description == nil {
		return false
	}
	i := slices.IndexFunc(c.description.AddressSpaces, func(s sdk.AddressSpace) bool { return s.Number == space })
	return i >= 0 && c.description.AddressSpaces[i].Scope == sdk.WaveScope
}

// touch reads the memory of a thread that is there, and returns its size.
func touch(ctx context.Context, view *walk.ThreadView, space locexpr.AddressSpace, from, to uint64) (n int) {
	var buf [keptBeyond]byte
	for from < to {
		size := min(to-from, uint64(len(buf))-from%uint64(len(buf)))
		if view.Read(ctx, space, from, buf[:size]) == nil {
			n += int(size) //nolint:gosec // at most keptBeyond
		} else {
			n += touchWords(ctx, view, space, from, from+size)
		}
		from += size
	}
	return n
}

// touchWords is touch for bytes of which some are missing: the memory of minidumps begins
// at the stack pointer. Memory that cannot be read was missing for the walk too.
func touchWords(ctx context.Context, view *walk.ThreadView, space locexpr.AddressSpace, from, to uint64) (n int) {
	var buf [8]byte
	for from < to {
		size := min(to-from, uint64(len(buf))-from%uint64(len(buf)))
		if view.Read(ctx, space, from, buf[:size]) == nil {
			n += int(size) //nolint:gosec // at most 8
		}
		from += size
	}
	return n
}

// keepOwn keeps the private memory of a crashed thread.
func (c *collector) keepOwn(ctx context.Context, th *trace.Thread) {
	view, ok := c.walked.View(ctx, th)
	if !ok || !th.Crashed {
		return
	}
	for _, m := range th.Memory {
		touch(ctx, view, m.Space, m.Start, m.Start+min(m.Size, keptStack))
	}
}
