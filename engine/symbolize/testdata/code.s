# Code of assembly: with and without a size, and code that no symbol has.
	.text
	.globl sized
	.type sized, @function
sized:
	.cfi_startproc
	nop
	ret
	.cfi_endproc
	.size sized, .-sized
	.skip 100, 0x90
	.globl unsized
	.type unsized, @function
unsized:
	nop
	ret
