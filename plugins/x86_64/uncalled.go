// SPDX-License-Identifier: Apache-2.0

package x86_64

import "github.com/unwindd/unwindd/sdk"

// maxUncalled is how many instructions are followed to see how code goes on.
const maxUncalled = 256

// isUncalled says whether the code at an offset leads to a jump through memory at rbp,
// or through the word at rbx. A function in the calling convention of the psABI
// (3.2.1) has given these registers back before it jumps to another in the place of a
// return, so that they do not hold an address of its own. Code of Haskell's compiler
// goes on so: to what lies on top of a stack of its own, at rbp, or to where the
// object in rbx says. The stack at rsp is the one of the C function that entered it,
// at some distance.
func isUncalled(r *sdk.CodeRange, at int) bool {
	if !r.Exact {
		if at = resumeAfter(r.Code, at); at < 0 {
			return false
		}
	}
	return mayLeadTo(r.Code, at, maxUncalled, func(code []byte) bool {
		e, ok := readEffect(code)
		return ok && e.kind == effectJump && !e.direct && e.hasMem && !e.mem.opaque &&
			(e.mem.base == gprBP || e.mem.base == gprBX && e.mem.offset == 0)
	})
}
