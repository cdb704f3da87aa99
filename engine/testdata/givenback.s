# SPDX-License-Identifier: Apache-2.0
# gcc -nostdlib -static -o givenback givenback.s
# Functions whose rows name a slot below the stack pointer: at the labels returns and uses.
	.text
	.globl	_start
	.type	_start, @function
_start:
	.cfi_startproc
	.cfi_undefined rip
	call	middle
after_start:
	hlt
	.cfi_endproc
	.size	_start, .-_start

	.type	middle, @function
middle:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	sub	$64, %rsp
	call	popping
after_popping:
	call	keeping
after_keeping:
	leave
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size	middle, .-middle

# As compilers do: rbp is said to be where it was pushed until the end.
	.type	popping, @function
popping:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	mov	$7, %ebp
	pop	%rbp
	.cfi_def_cfa_offset 8
returns:
	ret
	.cfi_endproc
	.size	popping, .-popping

# As the red zone permits: rbp is there, and nowhere else.
	.type	keeping, @function
keeping:
	.cfi_startproc
	mov	%rbp, -8(%rsp)
	.cfi_offset rbp, -16
	mov	$7, %ebp
uses:
	add	%ebp, %eax
	mov	-8(%rsp), %rbp
	ret
	.cfi_endproc
	.size	keeping, .-keeping
	.section	.note.GNU-stack,"",@progbits
