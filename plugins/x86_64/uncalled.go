// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

// maxUncalled is the number of instructions that are followed to see how code goes on.
const maxUncalled = 256

// isUncalled reports whether the code at an offset leads to a jump through memory at rbp,
// or through the word at rbx. A function in the calling convention of the psABI (3.2.1)
// has restored these registers before a tail call, so they hold no address of its own.
// Code of Haskell's compiler continues so: at the address on top of a stack of its own,
// at rbp, or at the entry of the object in rbx. The stack at rsp belongs to the C
// function that entered it, at some distance.
func isUncalled(r *sdk.CodeRange, offset int) bool {
	if !r.Exact {
		if offset = mode.ResumeAfter(r.Code, offset); offset < 0 {
			return false
		}
	}
	return mayLeadTo(r.Code, offset, maxUncalled, func(code []byte) bool {
		e, ok := mode.ReadEffect(code)
		return ok && e.Kind == x86code.Jump && !e.IsDirect && e.HasMem && !e.Mem.IsOpaque &&
			(e.Mem.Base == x86code.BP || e.Mem.Base == x86code.BX && e.Mem.Offset == 0)
	})
}
