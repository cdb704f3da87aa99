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
// such a row, and leaves every other frame to step.

// fastRow has the parts of such a row that a walk needs.
type fastRow struct {
	module *code.Module
	key    uint64 // the address in the module, and whether its instruction is about to execute
	row    *code.Row
	cfa    int32 // added to the register
	back   int32 // from the CFA to the return address
	sp     int32 // from the CFA to the caller's stack pointer, where hasSP
	same   uint16
	// register is the index of the column that the CFA counts from.
	register uint8
	hasSP    bool
}

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
	isUsable bool  // rows of this machine may qualify
	sp       uint8 // the index of the stack pointer in compiled rows
}

// setFast makes the walker's cache ready for its machine.
func (w *walker) setFast() {
	w.fast.isUsable = false
	if w.machine == nil || w.machine.Compiler == nil || w.machine.Behind > 0 {
		return // rules by the code behind a call are put in force by recover
	}
	sp, ok := w.machine.Compiler.Index(uint64(w.machine.Description.SP))
	if w.fast.sp, w.fast.isUsable = uint8(sp), ok; !ok {
		return
	}
	if w.fast.rows != nil {
		clear(w.fast.rows[:])
	}
}

// fastRow returns the row in force in a frame, where it qualifies and is known.
func (w *walker) fastRow(f *frame) *fastRow {
	key := f.offset << 1
	if f.exact {
		key++
	}
	slot := &w.fast.rows[(key+uint64(f.module.ID)<<40)*0x9e3779b97f4a7c15>>(64-fastSlotBits)]
	if slot.module == f.module && slot.key == key {
		return slot
	}
	if f.offset>>63 != 0 || f.module != w.recent.module && f.module.Arch != w.machine.Description.Name {
		return nil
	}
	row := f.module.KnownRow(f.offset, f.exact)
	if row == nil {
		return nil
	}
	if r, ok := w.newFastRow(row); ok {
		r.module, r.key = f.module, key
		*slot = r
		return slot
	}
	return nil
}

func (w *walker) newFastRow(row *code.Row) (r fastRow, ok bool) {
	compiled := &row.Fast
	columns := w.machine.Compiler.Columns()
	if !row.IsCompiled || row.By == trace.ByRules || row.By == trace.ByFunctionBody || row.Outermost != "" || row.Switches != "" || row.IsEntered || row.IsInjected || compiled.SignalFrame {
		return r, false
	}
	back := compiled.Rule(int(compiled.Return))
	if back.Kind() != cfi.Offset || columns[compiled.Return].Bits != 64 {
		return r, false
	}
	r = fastRow{row: row, cfa: compiled.Offset, back: int32(back.Value()), same: compiled.Same, register: compiled.Register}
	if sp := compiled.Rule(int(w.fast.sp)); sp.Kind() == cfi.ValOffset {
		r.sp, r.hasSP = int32(sp.Value()), true
	}
	return r, true
}

// walkFast walks from a frame on as long as rows qualify. It returns the frame that it could
// not go on from; nil where the walk has ended.
func (w *walker) walkFast(ctx context.Context, f *frame) *frame {
	if w.fast.rows == nil {
		w.fast.rows = new([fastSlots]fastRow)
	}
	stack, start := w.input.sample.Stack, w.input.sample.StackStart
	order, mask := w.machine.Order, w.thread.binding.ReturnAddressMask
	distance, addresses := uint64(w.machine.Description.CallDistance), w.machine.addresses
	var sp uint64 // of f, where it is known
	isSPKnown := false
	for f.module != nil && f.index+1 != w.segment.limit {
		r := w.fastRow(f)
		if r == nil {
			return f
		}
		w.walked = f.index + 1
		v := sp
		if !isSPKnown || r.register != w.fast.sp {
			var err error
			if v, err = f.compiledValue(ctx, int(r.register)); err != nil {
				return f
			}
		}
		cfa := (v + uint64(int64(r.cfa))) & addresses
		place, ok := displace(cfa, int64(r.back), ^uint64(0))
		from := place - start
		if !ok || from >= uint64(len(stack)) || uint64(len(stack))-from < 8 {
			return f
		}
		pc := integer(stack[from:from+8:from+8], order)
		if pc&mask != 0 {
			if !r.row.Rules.WindowSave {
				return f // the row does not mark it as signed
			}
			pc = stripped(pc, mask)
		}
		if pc == 0 {
			return f
		}
		f.source, f.cfa, f.cfaSpace, f.hasCFA, f.compiled, f.isPlain = r.row, cfa, locexpr.DefaultSpace, true, true, true
		f.settle(r.same)
		caller := w.nextFrame(f)
		caller.pc, caller.found, caller.restsOnGuess = pc, r.row.By, f.isGuess()
		if s := w.recent.segment; s != nil && pc-distance-s.Start < s.End-s.Start {
			caller.module, caller.lookup = s.Module, s.ObjectAddress(pc-distance)
			caller.offset = caller.lookup + distance
		} else {
			w.place(caller)
		}
		if w.repeats(f) {
			return nil
		}
		isSPKnown = false
		if r.hasSP {
			sp, isSPKnown = displace(cfa, int64(r.sp), addresses)
		}
		f = caller
		if f.index&63 == 0 && ctx.Err() != nil {
			return f
		}
	}
	return f
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
