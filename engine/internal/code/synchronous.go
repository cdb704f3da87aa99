// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file is about synchronous call frame information, which is right at calls alone. LLVM
// before version 15 writes no other for AArch64, so that programs and libraries of Rust from
// that time have it: the rows of a prologue begin when all of it is executed, or before any of
// it is, and an epilogue has no rows.

// betweenCalls returns the row of an instruction that is about to execute, read from the code,
// where the call frame information of its function is synchronous; else nil. The row counts if
// it finds the return address where the call frame information has it at calls. This tells a
// function from a part of one that is jumped into, whose frame another part has set up.
func (o *Object) betweenCalls(ctx context.Context, l *Lookup, fde *cfi.FDE, found *cfi.Row) *Row {
	entry, symbols := o.machine.Description.Entry, o.debug.resolver
	if !l.IsExact || l.isInjected || fde.CIE.SignalFrame || entry == nil || entry.ReturnAddress != found.ReturnAddress || symbols != nil && symbols.HasGo() {
		return nil
	}
	if entered, _ := entry.Rule(entry.ReturnAddress); entered.Kind == cfi.Offset {
		return nil // functions change the stack pointer by pushes, which tables follow
	}
	atCalls, ok := lastingFrame(fde)
	if !ok {
		return nil
	}
	rules, err := o.code.rules(ctx, l.codeRequest(fdeBounds(fde)))
	if err != nil {
		return nil
	}
	row := rowIn(rules.Rows, l.Address)
	if row == nil || !hasFrame(rules.Rows, &atCalls) {
		return nil
	}
	return &Row{Rules: row, By: trace.ByRules, IsComplete: rules.Complete}
}

// lastingFrame returns the first row of a function that has the return address in the frame. ok:
// every row behind it has, too, so that no row describes an epilogue.
func lastingFrame(fde *cfi.FDE) (first cfi.Row, ok bool) {
	isWhole := true
	err := fde.Rows(func(r *cfi.Row) bool {
		back, _ := r.Rule(r.ReturnAddress)
		switch isSaved := back.Kind == cfi.Offset && back.Offset < 0; {
		case isSaved && !ok:
			first, ok = *r.Clone(), true
		case !isSaved && ok:
			isWhole = false
		}
		return isWhole
	})
	return first, ok && isWhole && err == nil
}

// hasFrame reports whether one of the rows has the return address where a row of the frame has
// it.
func hasFrame(rows []cfi.Row, frame *cfi.Row) bool {
	want, _ := frame.Rule(frame.ReturnAddress)
	for i := range rows {
		r := &rows[i]
		back, _ := r.Rule(frame.ReturnAddress)
		isElsewhere := r.CFA.Kind == frame.CFA.Kind && r.CFA.Register == frame.CFA.Register && r.CFA.Offset != frame.CFA.Offset
		if back.Kind == cfi.Offset && back.Offset == want.Offset && !isElsewhere {
			return true
		}
	}
	return false
}
