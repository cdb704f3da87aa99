// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file walks deep stacks, which overflowed: only the reported parts of each frame are
// kept, and of frames beyond Options.MaxFrames only their number. A walk needs the frames
// further in to find registers. So it goes by segments, each of which begins with the places of
// the registers in its first frame, and the memory of the one before last is used again.

const (
	// segmentFrames is how many frames of a stack are walked in one segment.
	segmentFrames = 4096
	// outermostFrames is how many frames beyond Options.MaxFrames are kept at most, at the
	// outer end.
	outermostFrames = 64
)

// segmentState is the part of a stack that a walker walks: all of it, or a segment.
type segmentState struct {
	limit      int             // the most frames
	next       *frame          // the frame after limit frames; nil: there is none
	before     int             // frames of the segments further in
	isCounting bool            // the frames of the segment are not kept
	cycle      *deepCycleCheck // nil: the stack is not walked by segments
}

// base is where the registers of the first frame of a segment are, by their index in compiled
// rows.
type base struct {
	slots []slot
	errs  []error
	// before is how many frames of the stack lie further in.
	before int
}

// find returns where a register of the frame is. Only registers in compiled rows were followed.
func (b *base) find(w *walker, reg uint64) (slot, error) {
	if i, ok := w.index(reg); ok && i < len(b.slots) {
		return b.slots[i], b.errs[i]
	}
	return slot{}, fmt.Errorf("%s was not followed outside frame %d, %w", w.registerName(reg), b.before-1, code.ErrUndefined)
}

// canWalkDeep reports whether a walk can go on from the places of registers in compiled rows:
// not the walk of a wave, whose registers have lanes.
func (w *walker) canWalkDeep() bool {
	return w.compiles && w.input.sample == nil && w.thread.lanes() <= 1
}

// continueFrom makes the walker ready for the segment after another one.
func (w *walker) continueFrom(ctx context.Context, inner *walker) {
	next := inner.segment.next
	w.startThread(inner.process, inner.thread, &trace.Stack{Thread: inner.stack.Thread, Lanes: inner.stack.Lanes, Frames: w.results[:0]})
	w.segment.before, w.segment.cycle = inner.segment.before+inner.walked, inner.segment.cycle
	columns := w.machine.Compiler.Columns()
	b := &base{slots: make([]slot, len(columns)), errs: make([]error, len(columns)), before: w.segment.before}
	for i := range columns {
		b.slots[i], b.errs[i] = next.find(ctx, columns[i].Number)
	}
	// Only the callee's place and how it was found are needed.
	callee := &frame{
		walker: w, index: -1, pc: next.callee.pc, exact: next.callee.exact, found: next.callee.found, restsOnGuess: next.callee.restsOnGuess,
		module: next.callee.module, offset: next.callee.offset, lookup: next.callee.lookup,
		cfa: next.callee.cfa, cfaSpace: next.callee.cfaSpace, hasCFA: next.callee.hasCFA,
	}
	if next.isGuessed() {
		callee.found = trace.ByScan
	}
	f := w.frame(0)
	f.pc, f.exact, f.found, f.restsOnGuess = next.pc, next.exact, next.found, next.restsOnGuess
	f.module, f.offset, f.lookup = next.module, next.offset, next.lookup
	f.callee, f.base = callee, b
}

// walkDeep continues a stack with as many frames as a segment has, or as are kept: up to the
// number of kept frames, and then to its end.
func (w *walker) walkDeep(ctx context.Context, kept int) {
	k := &deepWalk{stack: w.stack, kept: kept, segments: [][]trace.Frame{w.stack.Frames}, count: w.walked}
	w.segment.cycle = w.cycle.continueDeep()
	p, inner := w.process, w
	var spare *walker
	for inner.segment.next != nil && ctx.Err() == nil {
		outer := spare
		if outer == nil {
			outer = p.shared.walkers.Get().(*walker)
		}
		outer.continueFrom(ctx, inner)
		if outer.segment.limit = k.segmentLimit(p.bounds); outer.segment.limit == 0 {
			spare = outer
			break
		}
		outer.segment.isCounting = k.count >= kept
		outer.guardedFrom(ctx, outer.frames[0])
		k.add(ctx, inner, outer)
		if spare = inner; inner == w {
			spare = nil // its owner has it
		}
		inner = outer
	}
	k.end(ctx, inner, spare, w)
	for _, used := range []*walker{inner, spare} {
		if used != nil && used != w {
			used.returnToPool(p)
		}
	}
}

// deepWalk is a walk by segments.
type deepWalk struct {
	stack    *trace.Stack
	kept     int             // how many frames are kept
	segments [][]trace.Frame // the kept ones
	count    int             // frames of all segments
	gap      trace.Gap       // of the frames of finished segments
}

// segmentLimit returns how many frames the next segment may have; 0: there were enough.
func (k *deepWalk) segmentLimit(b *bounds) int {
	if k.count < k.kept {
		return min(segmentFrames, k.kept-k.count)
	}
	return b.countable(segmentFrames)
}

// add takes the frames of a segment whose last frames are still needed.
func (k *deepWalk) add(ctx context.Context, inner, outer *walker) {
	k.count += outer.walked
	k.stack.Stopped, k.stack.EndAssumed = outer.stack.Stopped, outer.stack.EndAssumed
	switch {
	case !outer.segment.isCounting:
		outer.describe(ctx)
		k.segments = append(k.segments, slices.Clone(outer.stack.Frames))
	case inner.segment.isCounting:
		k.gap.LeaveOut(inner.stack.Frames)
	}
}

// end puts the kept frames together. The last segment may be short: some of the outermost
// frames are in the one before.
func (k *deepWalk) end(ctx context.Context, last, before, first *walker) {
	k.stack.Frames = slices.Concat(k.segments...)
	if first.segment.cycle.period > 0 {
		k.endCycle(first.segment.cycle)
		return
	}
	if last.segment.next != nil && ctx.Err() == nil {
		k.stack.Stopped = trace.Stopped{Reason: trace.StopFrameLimit, Detail: fmt.Sprintf("%d frames", k.count)}
	}
	if !last.segment.isCounting {
		return
	}
	last.describe(ctx)
	most := min(outermostFrames, k.kept)
	outermost := last.stack.Frames
	if before != nil && before.segment.isCounting && len(outermost) < most {
		// They were counted as left out.
		before.describe(ctx)
		frames := before.stack.Frames
		n := max(len(frames)+len(outermost)-most, 0)
		k.gap.TakeBack(frames[n:])
		outermost = slices.Concat(frames[n:], outermost)
	}
	n := max(len(outermost)-most, 0)
	k.gap.LeaveOut(outermost[:n])
	k.gap.Outermost = slices.Clone(outermost[n:])
	if k.gap.LeftOut == 0 {
		k.stack.Frames, k.gap.Outermost = append(k.stack.Frames, k.gap.Outermost...), nil
	}
	k.stack.Gap = k.gap
}

// endCycle ends a stack that goes in a cycle. The repeated frames are removed again.
func (k *deepWalk) endCycle(c *deepCycleCheck) {
	frames := k.stack.Frames
	for first := 0; first+c.period < len(frames); first++ {
		a, b := &frames[first], &frames[first+c.period]
		if a.PC == b.PC && a.CFA == b.CFA && a.CFASpace == b.CFASpace && a.HasCFA && b.HasCFA {
			k.stack.Frames = slices.Clip(frames[:first+c.period])
			k.stack.Stopped = trace.Stopped{Reason: trace.StopNoProgress, Detail: fmt.Sprintf("frame %d would be frame %d again", first+c.period, first)}
			return
		}
	}
	k.stack.Stopped = trace.Stopped{Reason: trace.StopNoProgress, Detail: fmt.Sprintf("outside frame %d, %d frames follow each other again and again", len(frames)-1, c.period)}
}

// returnToPool returns a walker of segments to the pool.
func (w *walker) returnToPool(p *Process) {
	w.results = w.stack.Frames
	clear(w.results)
	w.release()
	p.shared.walkers.Put(w)
}
