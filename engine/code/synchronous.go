// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
)

// This file is about call frame information that is right at calls alone. LLVM before
// version 15 has no other for AArch64, and so have programs and libraries of Rust from that
// time: the rows of a prologue begin when all of it is executed, or before any of it is, and
// there are none of an epilogue.

// betweenCalls is the row of an instruction that is about to execute, read from the code,
// where the call frame information of its function is of that kind; else nil. What is read
// counts if it finds the return address where the call frame information has it at calls. This
// tells a function from a part of one that is jumped into, whose frame another part has made.
func (o *Object) betweenCalls(ctx context.Context, at *Lookup, fde *cfi.FDE, found *cfi.Row) *Row {
	entry := o.machine.Description.Entry
	if !at.IsExact || at.isInjected || fde.CIE.SignalFrame || entry == nil || entry.ReturnAddress != found.ReturnAddress || o.symbols != nil && o.symbols.HasGo() {
		return nil
	}
	if entered, _ := entry.Rule(entry.ReturnAddress); entered.Kind == cfi.Offset {
		return nil // functions change the stack pointer by pushes, which tables follow
	}
	atCalls, ok := lastingFrame(fde)
	if !ok {
		return nil
	}
	rules, err := o.readFunction(ctx, at.PC, at.Address, true, Bounds{Start: fde.Start, End: fde.End, IsKnown: true})
	if err != nil {
		return nil
	}
	row := rowIn(rules.Rows, at.Address)
	if row == nil || !hasFrame(rules.Rows, &atCalls) {
		return nil
	}
	return &Row{Rules: row, By: ByRules, IsComplete: rules.Complete}
}

// lastingFrame is the first row of a function that has the return address in the frame. ok says
// that every row behind it has, too: there is none of an epilogue.
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

// hasFrame says whether one of the rows has the return address where another row has it.
func hasFrame(rows []cfi.Row, as *cfi.Row) bool {
	want, _ := as.Rule(as.ReturnAddress)
	for i := range rows {
		r := &rows[i]
		back, _ := r.Rule(as.ReturnAddress)
		isElsewhere := r.CFA.Kind == as.CFA.Kind && r.CFA.Register == as.CFA.Register && r.CFA.Offset != as.CFA.Offset
		if back.Kind == cfi.Offset && back.Offset == want.Offset && !isElsewhere {
			return true
		}
	}
	return false
}
