// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file takes the outer part of a sample's stack from the sample of the thread before. Two
// walks that come to the same frame, by PC and stack pointer, go on alike as long as the words
// that the first one read are the same in the second. To compare these words takes no rows, and
// they are compared one independently of the other, where a walk waits for each word to know
// where the next one is.

// pastCount is how many stacks are remembered: enough for the threads that run at a time.
const pastCount = 16

// pastFrame is a frame that walkFast went on from, with what it read for that.
type pastFrame struct {
	module *code.Module
	row    *code.Row
	sp     uint64 // of the frame
	cfa    uint64
	word   uint64 // the return address as it is stored
	fp     fastRegister
	offset int32 // from the register to the CFA
	back   int32 // from the CFA to the return address
	flags  fastFlags
	how    pastKind
}

// pastKind is how a walk went on from a frame.
type pastKind uint8

const (
	pastReturn pastKind = iota // to its return address
	pastEnd                    // the frame is outermost
	pastCut                    // the bytes of the stack ended below its return address
)

// pastStack is the outer part of a stack, from a frame on where walkFast began.
type pastStack struct {
	code    uint64 // Sample.CodeVersion; 0: it may not be used for other samples
	machine *machine
	mask    uint64 // of bits of return addresses that are no address
	// isWhole is true where the walk ended with the last frame.
	isWhole bool
	frames  []pastFrame
	steps   []Step // of the frames
}

func (p *pastStack) clear() { p.frames, p.steps, p.isWhole = p.frames[:0], p.steps[:0], false }

// add adds a frame.
func (p *pastStack) add(f *pastFrame, s Step) {
	p.frames, p.steps = append(p.frames, *f), append(p.steps, s)
}

// retracing is a walker's state for stacks before.
type retracing struct {
	past    [pastCount]pastStack
	current pastStack // of the walk in progress
	before  *pastStack
	next    int    // the frame of before that may be met next
	tail    []Step // the frames of the walk for which there are no others
	shared  int    // how many of these, and of the frames outside them, are the ones of before up to its end
	highest uint64 // the last CFA
	checked int    // how many frames are known to have rising CFAs
	isHigh  bool   // all up to now have
}

// begin prepares for a sample.
func (t *retracing) begin(s *Sample) {
	t.current.clear()
	t.current.code = s.CodeVersion
	t.before = &t.past[s.Task%pastCount]
	t.tail, t.shared, t.next, t.highest, t.checked, t.isHigh = nil, 0, 0, 0, 0, true
}

// remember keeps the stack of the sample.
func (t *retracing) remember() { *t.before, t.current = t.current, *t.before }

// enter makes the state ready for a stretch of frames that walkFast goes over, from a frame on.
func (t *retracing) enter(w *walker, f *frame) {
	t.current.clear()
	for ; t.checked < f.index; t.checked++ {
		g := w.frames[t.checked]
		t.isHigh = t.isHigh && g.hasCFA && g.cfaSpace == locexpr.DefaultSpace
		t.rise(g.cfa)
	}
	c := &t.current
	c.machine, c.mask = w.machine, w.thread.binding.ReturnAddressMask
	if b := t.before; b.code != c.code || b.machine != c.machine || b.mask != c.mask || b.code == 0 {
		b.clear()
	}
}

// rise notes a CFA. As long as each is above the one before, no frame is there twice. A stack
// with others is not used for other samples.
func (t *retracing) rise(cfa uint64) {
	if cfa <= t.highest {
		t.isHigh, t.current.code = false, 0
	}
	t.highest = cfa
}

// meets returns the frame of the stack before that a walk has come to, by its index; -1: none.
func (t *retracing) meets(a *fastPlace) int {
	list := t.before.frames
	for t.next < len(list) && list[t.next].sp < a.sp {
		t.next++
	}
	if t.next == len(list) || list[t.next].sp != a.sp || !t.isHigh {
		return -1
	}
	i := t.next
	step := &t.before.steps[i]
	t.next++
	if step.PC != a.step.PC || step.Found != a.step.Found || step.Exact || list[i].module != a.module || list[i].cfa <= t.highest {
		return -1
	}
	return i
}

// retrace goes along the stack before as far as the walk's is the same, which is at most room
// frames. isEnd: the walk ends there.
func (w *walker) retrace(ctx context.Context, a *fastPlace, room int) (isEnd bool) {
	t := &w.fast.retracing
	first := t.meets(a)
	if first < 0 || len(t.before.frames)-first > room {
		return false
	}
	past, current := t.before, &t.current
	last, isChanged, isEnd := w.follow(ctx, a, first)
	end := last
	if isEnd {
		end++
	}
	if first == end {
		return false
	}
	count := len(current.frames)
	current.frames = append(current.frames, past.frames[first:end]...)
	current.steps = append(current.steps, past.steps[first:end]...)
	for i := count; i < len(current.frames); i++ {
		p := &current.frames[i]
		if p.fp = a.fp; p.flags&fastKeepsFP == 0 {
			break
		}
	}
	t.highest, t.next = past.frames[end-1].cfa, end+1
	if !isEnd {
		p := &past.frames[last]
		a.module, a.step, a.sp = p.module, past.steps[last], p.sp
		if isChanged {
			a.fp = p.fp
		}
		return false
	}
	if p := &current.frames[len(current.frames)-1]; p.flags&fastEnds == 0 {
		p.how = pastCut
	}
	if past.isWhole && end == len(past.frames) {
		t.shared = end - first
	}
	return true
}

// follow compares what was read from the frame with index first on, which the walk has come to.
// It returns the index of the last frame that is known to be there, and whether the frame pointer
// is another one than in the first. isEnd: the walk ends with it.
func (w *walker) follow(ctx context.Context, a *fastPlace, first int) (last int, isChanged, isEnd bool) {
	list, addresses := w.fast.retracing.before.frames, w.machine.addresses
	for i := first; ; i++ {
		p := &list[i]
		if p.flags&fastByFP != 0 {
			fp := &a.fp
			if isChanged {
				fp = &p.fp
			}
			if v, ok := w.fastValue(ctx, fp); !ok || (v+uint64(int64(p.offset)))&addresses != p.cfa {
				return i, isChanged, false
			}
		}
		if p.flags&fastEnds != 0 {
			return i, isChanged, true
		}
		place := p.cfa + uint64(int64(p.back))
		word, ok := w.stackWord(place)
		if !ok {
			return i, isChanged, w.isCut(p.row, place)
		}
		if i+1 == len(list) || word != p.word {
			return i, isChanged, false
		}
		isChanged = isChanged || p.flags&fastKeepsFP == 0
	}
}

// The reasons why the walks of samples end that walkFast ends.
var (
	stopUndefined = trace.Stopped{Reason: trace.StopOutermost, Detail: undefinedReturn}
	stopCut       = sampleStop(target.ErrEndOfStack)
)

// isCut reports whether a walk ends because the bytes of the sample end below a return address,
// which are not at its place.
func (w *walker) isCut(row *code.Row, place uint64) bool {
	s := w.input.sample
	return s.Code != nil && row.Otherwise == nil && s.isAboveStack(place)
}
