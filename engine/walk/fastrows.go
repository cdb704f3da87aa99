// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file has the fast path for nearly every frame of a sample: from a row that is a register
// and an offset to a return address in the bytes of the stack. It has the effect of step for
// such a row, and leaves every other frame to step. It writes no frames as long as none is
// needed: what it goes over is remembered in fewer words, of which they can be made.

// fastRow has the parts of such a row that a walk needs. The stack pointer of the caller is the
// CFA.
type fastRow struct {
	module *code.Module
	key    uint64 // the address in the module, and whether its instruction is about to execute
	row    *code.Row
	cfa    int32 // added to the register
	back   int32 // from the CFA to the return address
	fp     int32 // from the CFA to the caller's frame pointer, or to where it is
	flags  fastFlags
}

// fastFlags are properties of a fastRow.
type fastFlags uint8

const (
	fastByFP     fastFlags = 1 << iota // the CFA counts from the frame pointer, not from the stack pointer
	fastEnds                           // there is no return address: the frame is outermost
	fastKeepsFP                        // the frame pointer is the caller's
	fastSavesFP                        // the caller's frame pointer is in memory
	fastOffsetFP                       // the caller's frame pointer is an offset from the CFA
)

// fastSlots is the size of a walker's cache of rows, 160 KiB: it stays in a core's second
// cache, unlike the rows themselves, which are ten times as large. Rows that it misses are
// looked for in the cache that walks share.
const (
	fastSlotBits = 12
	fastSlots    = 1 << fastSlotBits
)

// fastState is a walker's state for the fast path.
type fastState struct {
	rows     *[fastSlots]fastRow
	isUsable bool // rows of this machine may qualify
	sp, fp   int  // the indexes of the stack pointer and the frame pointer in compiled rows
	first    *frame

	retracing retracing
}

// fastRegister is the value of a register, or where it is.
type fastRegister struct {
	bits uint64
	kind fastRegisterKind
}

type fastRegisterKind uint8

const (
	fastUnknown fastRegisterKind = iota
	fastValue                    // bits is the value
	fastMemory                   // it is in the stack at bits
	fastFirst                    // it is the one of the first frame of walkFast
)

// fastPlace is the frame that walkFast has come to.
type fastPlace struct {
	module *code.Module
	step   Step
	sp     uint64
	fp     fastRegister
}

// setFast makes the walker's cache ready for its machine.
func (w *walker) setFast() {
	w.fast.isUsable = false
	if w.machine == nil || w.machine.Compiler == nil || w.machine.Behind > 0 {
		return // rules by the code behind a call are put in force by recover
	}
	columns := w.machine.Compiler.Columns()
	var hasSP, hasFP bool
	w.fast.sp, hasSP = w.machine.Compiler.Index(uint64(w.machine.Description.SP))
	w.fast.fp, hasFP = w.machine.Compiler.Index(uint64(w.machine.Description.FP))
	w.fast.isUsable = hasSP && hasFP && columns[w.fast.sp].Bits == 64 && columns[w.fast.fp].Bits == 64
	if w.fast.rows != nil {
		clear(w.fast.rows[:])
	}
}

// fastRow returns the row in force at a place, where it qualifies and is known.
func (w *walker) fastRow(a *fastPlace) *fastRow {
	key := a.step.Offset << 1
	if a.step.Exact {
		key++
	}
	slot := &w.fast.rows[(key+uint64(a.module.ID)<<40)*0x9e3779b97f4a7c15>>(64-fastSlotBits)]
	if slot.module == a.module && slot.key == key {
		return slot
	}
	if a.step.Offset>>63 != 0 || a.module.Arch != w.machine.Description.Name {
		return nil
	}
	row := a.module.KnownRow(a.step.Offset, a.step.Exact)
	if row == nil {
		return nil
	}
	if r, ok := w.newFastRow(row); ok {
		r.module, r.key = a.module, key
		*slot = r
		return slot
	}
	return nil
}

func (w *walker) newFastRow(row *code.Row) (r fastRow, ok bool) {
	compiled := &row.Fast
	if !row.IsCompiled || row.By == trace.ByRules || row.Outermost != "" || row.Switches != "" || row.IsEntered || row.IsInjected || compiled.SignalFrame {
		return r, false
	}
	r = fastRow{row: row, cfa: compiled.Offset}
	switch int(compiled.Register) {
	case w.fast.sp:
	case w.fast.fp:
		r.flags |= fastByFP
	default:
		return r, false
	}
	switch back := compiled.Rule(int(compiled.Return)); {
	case w.machine.Compiler.Columns()[compiled.Return].Bits != 64:
		return r, false
	case back.Kind() == cfi.Offset:
		r.back = int32(back.Value())
	case back.Kind() == cfi.Undefined && !w.machine.hasLink && row.Otherwise == nil:
		r.flags |= fastEnds
	default:
		return r, false
	}
	if sp := compiled.Rule(w.fast.sp); sp.Kind() != cfi.ValOffset || sp.Value() != 0 {
		return r, false
	}
	fp := compiled.Rule(w.fast.fp)
	switch fp.Kind() {
	case cfi.Offset:
		r.flags |= fastSavesFP
		r.fp = int32(fp.Value())
	case cfi.ValOffset:
		r.flags |= fastOffsetFP
		r.fp = int32(fp.Value())
	case cfi.Register:
		r.flags |= fastKeepsFP
		return r, fp.Value() == int64(w.fast.fp)
	}
	return r, true
}

// walkFast walks from a frame on as long as rows qualify. It returns the frame that it could
// not go on from; nil where the walk has ended.
func (w *walker) walkFast(ctx context.Context, f *frame) *frame {
	t := &w.fast.retracing
	a, ok := w.enterFast(ctx, f)
	if !ok {
		return f
	}
	current := &t.current
	for a.module != nil && f.index+len(current.frames)+1 < w.segment.limit {
		if len(current.frames) > 0 && w.retrace(ctx, &a, w.segment.limit-f.index-len(current.frames)-1) {
			w.endFast(f)
			return nil
		}
		r := w.fastRow(&a)
		if r == nil {
			break
		}
		p := pastFrame{module: a.module, row: r.row, sp: a.sp, fp: a.fp, offset: r.cfa, back: r.back, flags: r.flags}
		pc, ok := w.stepFast(ctx, &a, &p)
		if !ok {
			break
		}
		t.rise(p.cfa)
		current.add(&p, a.step)
		if p.how != pastReturn {
			w.endFast(f)
			return nil
		}
		w.leaveFast(&a, r, &p, pc)
		if len(current.frames)&63 == 0 && ctx.Err() != nil {
			break
		}
	}
	f, _ = w.writeFrames(f, &a)
	return f
}

// enterFast prepares walkFast for a stretch of frames from f on.
func (w *walker) enterFast(ctx context.Context, f *frame) (a fastPlace, ok bool) {
	if f.module == nil {
		return a, false
	}
	if w.fast.rows == nil {
		w.fast.rows = new([fastSlots]fastRow)
	}
	sp, err := f.compiledValue(ctx, w.fast.sp)
	if err != nil {
		return a, false
	}
	w.fast.first = f
	w.fast.retracing.enter(w, f)
	step := Step{PC: f.pc, Offset: f.offset, Owner: uint32(f.module.ID), Found: code.IndexOf(f.found), Exact: f.exact, Back: uint8(f.offset - f.lookup)}
	return fastPlace{module: f.module, step: step, sp: sp, fp: fastRegister{kind: fastFirst}}, true
}

// stepFast computes the CFA of a frame and finds its return address. It returns false where the
// row alone does not lead on.
func (w *walker) stepFast(ctx context.Context, a *fastPlace, p *pastFrame) (pc uint64, ok bool) {
	base := a.sp
	if p.flags&fastByFP != 0 {
		if base, ok = w.fastValue(ctx, &a.fp); !ok {
			return 0, false
		}
	}
	p.cfa = (base + uint64(int64(p.offset))) & w.machine.addresses
	if p.flags&fastEnds != 0 {
		p.how = pastEnd
		return 0, true
	}
	place, ok := displace(p.cfa, int64(p.back), ^uint64(0))
	if !ok {
		return 0, false
	}
	if p.word, ok = w.stackWord(place); !ok {
		p.how = pastCut
		return 0, w.isCut(p.row, place)
	}
	pc = p.word
	if mask := w.thread.binding.ReturnAddressMask; pc&mask != 0 {
		if !p.row.Rules.WindowSave {
			return 0, false // the row does not mark it as signed
		}
		pc &^= mask
	}
	return pc, pc != 0
}

// leaveFast goes to the caller of a frame, which has a row.
func (w *walker) leaveFast(a *fastPlace, r *fastRow, p *pastFrame, pc uint64) {
	module, offset, lookup := w.placed(pc, uint64(w.machine.Description.CallDistance))
	a.module, a.sp = module, p.cfa
	a.step = Step{PC: pc, Offset: offset, Found: code.IndexOf(r.row.By), Back: uint8(offset - lookup)}
	if module != nil {
		a.step.Owner = uint32(module.ID)
	}
	if r.flags&fastKeepsFP != 0 {
		return
	}
	a.fp = fastRegister{}
	if bits, ok := displace(p.cfa, int64(r.fp), w.machine.addresses); ok && r.flags&(fastSavesFP|fastOffsetFP) != 0 {
		a.fp = fastRegister{bits, fastValue}
		if r.flags&fastSavesFP != 0 {
			a.fp.kind = fastMemory
		}
	}
}

// fastValue returns the value of a register.
func (w *walker) fastValue(ctx context.Context, r *fastRegister) (uint64, bool) {
	switch r.kind {
	case fastMemory:
		return w.stackWord(r.bits)
	case fastFirst:
		v, err := w.fast.first.compiledValue(ctx, w.fast.fp)
		if err != nil {
			return 0, false
		}
		*r = fastRegister{v, fastValue}
	}
	return r.bits, r.kind == fastValue
}

// stackWord returns the 8 bytes at an address of a sample's stack.
func (w *walker) stackWord(address uint64) (v uint64, ok bool) {
	s := w.input.sample
	from := address - s.StackStart
	if from >= uint64(len(s.Stack)) || uint64(len(s.Stack))-from < 8 {
		return 0, false
	}
	return integer(s.Stack[from:from+8:from+8], w.machine.Order), true
}

// endFast ends a walk with the frames that walkFast went over from f on.
func (w *walker) endFast(f *frame) {
	t := &w.fast.retracing
	how := t.current.frames[len(t.current.frames)-1].how
	if t.isHigh {
		w.walked, t.tail, t.current.isWhole = f.index, t.current.steps, true
	} else if _, isRepeated := w.writeFrames(f, nil); isRepeated { // as no other walk finds
		return
	}
	w.stack.Stopped = stopCut
	if how == pastEnd {
		w.stack.Stopped = stopUndefined
	}
}

// writeFrames makes the frames that walkFast went over from f on, and the one that it came to,
// which it returns; a is nil where the walk has ended. isRepeated: it goes in a cycle.
func (w *walker) writeFrames(f *frame, a *fastPlace) (next *frame, isRepeated bool) {
	t := &w.fast.retracing
	frames, steps := t.current.frames, t.current.steps
	for i := range frames {
		p := &frames[i]
		f.source, f.cfa, f.cfaSpace, f.hasCFA, f.compiled, f.isPlain = p.row, p.cfa, locexpr.DefaultSpace, true, true, true
		f.settle(p.row.Fast.Same)
		w.walked = f.index + 1
		if p.how != pastReturn {
			return nil, false
		}
		caller := w.nextFrame(f)
		caller.found, caller.restsOnGuess = p.row.By, f.isGuess()
		var module *code.Module
		var step *Step
		if i+1 < len(frames) {
			module, step = frames[i+1].module, &steps[i+1]
		} else {
			module, step = a.module, &a.step
		}
		caller.module, caller.pc, caller.offset, caller.lookup = module, step.PC, step.Offset, step.Named()
		if w.repeats(f) {
			return nil, true
		}
		f = caller
	}
	t.checked = f.index
	return f, false
}

// compiledValue returns the value of the register with an index in compiled rows.
func (f *frame) compiledValue(ctx context.Context, i int) (uint64, error) {
	column := &f.walker.machine.Compiler.Columns()[i]
	s, ok := f.placed(column.Number)
	if !ok {
		var err error
		if f.base != nil {
			s, err = f.base.find(f.walker, column.Number)
		} else {
			s, err = f.callee.findSaved(ctx, column.Number, i, true)
		}
		if err != nil {
			return 0, err
		}
	}
	return f.read(ctx, &s, column.Number, column.Bits)
}

// nextFrame returns the memory of the frame that called f, with only its callee set. It is
// frame for the many frames of samples: to write a whole frame takes a tenth of the walk.
func (w *walker) nextFrame(f *frame) *frame {
	if f.index+1 == len(w.frames) {
		w.frame(f.index + 1)
	}
	n := w.frames[f.index+1]
	n.callee, n.exact, n.passed, n.module, n.offset, n.lookup = f, false, 0, nil, 0, 0
	n.source, n.cfa, n.cfaSpace, n.hasCFA, n.compiled, n.settled, n.isPlain, n.same = nil, 0, locexpr.DefaultSpace, false, false, false, false, 0
	n.callSite, n.memo, n.entering = n.callSite[:0], n.memo[:0], n.entering[:0]
	if n.listed != nil || n.called != nil || n.place != nil || n.base != nil || n.equal != nil || n.generated != nil {
		n.listed, n.called, n.place, n.base, n.equal, n.generated = nil, nil, nil, nil, nil, nil
	}
	return n
}
