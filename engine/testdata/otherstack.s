# SPDX-License-Identifier: Apache-2.0
#
# A program that waits on a stack of its own. Its call frame information is in .debug_frame
# alone: without it nothing says where the stack of the callers is.
	.cfi_sections .debug_frame

	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	.cfi_undefined rip
	call outer
	hlt
	.cfi_endproc
	.size _start, . - _start

	.type outer, @function
outer:
	.cfi_startproc
	mov %rsp, saved(%rip)
	mov saved(%rip), %r12
	.cfi_def_cfa r12, 8
	lea top(%rip), %rsp
	call waits
	mov %r12, %rsp
	ret
	.cfi_endproc
	.size outer, . - outer

	.type waits, @function
waits:
	.cfi_startproc
	mov $34, %eax # pause
	syscall
	jmp waits
	.cfi_endproc
	.size waits, . - waits

	.bss
	.balign 16
saved:	.skip 16
	.skip 4096
top:
	.section .note.GNU-stack, "", @progbits
