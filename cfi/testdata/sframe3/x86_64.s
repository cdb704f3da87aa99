	.cfi_sections .eh_frame, .sframe
	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	.cfi_undefined rip
	xor %ebp, %ebp
	call plain
	hlt
	.cfi_endproc
	.size _start, .-_start
	.type plain, @function
plain:
	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register rbp
	call drap
	pop %rbp
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size plain, .-plain
	.type drap, @function
drap:
	.cfi_startproc
	lea 8(%rsp), %r10
	.cfi_def_cfa r10, 0
	and $-32, %rsp
	push -8(%r10)
	push %rbp
	mov %rsp, %rbp
	.cfi_escape 0x10,6,2,0x76,0
	push %r10
	.cfi_escape 0xf,3,0x76,0x78,6
	sub $0x1000, %rsp
	call save
	add $0x1000, %rsp
	pop %r10
	.cfi_def_cfa r10, 0
	pop %rbp
	lea -8(%r10), %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size drap, .-drap
	.type save, @function
save:
	.cfi_startproc
	mov %rbp, %rax
	.cfi_register rbp, rax
	xor %ebp, %ebp
	sub $0x12345678, %rsp
	.cfi_def_cfa_offset 0x12345680
	nop
	add $0x12345678, %rsp
	.cfi_def_cfa_offset 8
	mov %rax, %rbp
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size save, .-save
	.type outer, @function
outer:
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	nop
	.cfi_undefined rip
	nop
	.cfi_endproc
	.size outer, .-outer
	.type restore, @function
restore:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa rsp, 8
	mov $15, %eax
	syscall
	.cfi_endproc
	.size restore, .-restore
	.section .text.far, "ax"
	.p2align 4
	.type far, @function
far:
	.cfi_startproc
	sub $0x100, %rsp
	.cfi_def_cfa_offset 0x108
	.rept 300
	nop
	.endr
	add $0x100, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size far, .-far
