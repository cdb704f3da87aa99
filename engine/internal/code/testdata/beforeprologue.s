// SPDX-License-Identifier: Apache-2.0

// A function whose row of its frame begins before its prologue, as LLVM 14 has it, and the part
// of another one that a jump enters with a frame.

	.text
local:
	ret

	.globl early
	.type early, %function
early:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	.cfi_offset w30, -16
	adr x8, .
	mov x3, x1
	stp x30, x8, [sp, #-16]!
	bl local
	ldr x30, [sp], #16
	ret
	.cfi_endproc
	.size early, . - early

	.globl part
	.type part, %function
part:
	.cfi_startproc
	.cfi_def_cfa_offset 32
	.cfi_offset w30, -32
	.cfi_offset w29, -24
	mov x0, x1
	bl local
	mov x0, x2
	b part+4
	.cfi_endproc
	.size part, . - part
