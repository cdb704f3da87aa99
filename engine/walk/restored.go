// SPDX-License-Identifier: Apache-2.0

package walk

import "context"

// isRestored reports whether a register that a row places below the stack pointer, where
// nothing is kept, is back in the register. Samples have the bytes of the stack from its
// pointer on. In an epilogue the popped values are missing there, but rows still have them
// where they were saved: without this a sample that was taken at a return would lose every
// caller that is found by its frame pointer.
//
// The plugin reads the code for that. Below the stack pointer a function without calls may keep
// saved registers, and have something else in the register.
func (w *walker) isRestored(ctx context.Context, address, reg uint64) bool {
	top := w.frames[0]
	if top.module == nil || !top.exact || !top.hasCFA || w.input.isMapped {
		return false
	}
	sp, err := w.liveRegister(uint64(w.machine.Description.SP))
	if err != nil || address >= sp {
		return false
	}
	i, indexed := w.index(reg)
	saved, err := top.findSaved(ctx, reg, i, indexed)
	if err != nil || saved.kind != slotMemory || saved.bits != address {
		return false
	}
	return top.module.HasPreserved(ctx, top.offset, reg)
}
