// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
)

// withoutSignature returns a return address without the signature that pointer authentication
// left in the bits of the thread's mask. Where a row marks the address as not signed and there
// is code at it unchanged, it keeps all its bits: addresses of 52 bits reach into a mask that
// was assumed. Elsewhere the bits are removed, because much assembly signs without a mark in
// its rows.
func (w *walker) withoutSignature(ctx context.Context, f *frame, source *code.Row, pc uint64) uint64 {
	mask := w.thread.binding.ReturnAddressMask
	if pc&mask == 0 {
		return pc
	}
	if w.saysUnsigned(ctx, f, source) && w.isCode(pc) {
		return pc
	}
	return stripped(pc, mask)
}

// stripped returns an address without a signature in the bits of a mask. The bit above the lowest ones of the mask
// selects the half of the address space: they all become as it is.
func stripped(address, mask uint64) uint64 {
	half := (mask + mask&-mask) &^ mask
	if address&half != 0 {
		return address | mask
	}
	return address &^ mask
}

// saysUnsigned reports whether the row of f comes from a source that marks signed return
// addresses, and f's is not marked.
func (w *walker) saysUnsigned(ctx context.Context, f *frame, source *code.Row) bool {
	column := uint64(w.machine.Description.SignState)
	if column == 0 || source.By != trace.ByCFI && source.By != trace.ByObject && source.By != trace.ByRules {
		return false
	}
	rules := source.Rules
	if _, ok := rules.Rule(column); !ok {
		return !rules.WindowSave
	}
	// Cranelift marks it by an expression of the pseudo-register.
	s, err := f.findSaved(ctx, column, 0, false)
	if err != nil || s.kind == slotUndefined {
		return false
	}
	state, err := f.read(ctx, &s, column, 64)
	return err == nil && state&1 == 0
}
