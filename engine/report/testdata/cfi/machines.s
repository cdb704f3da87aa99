// Rules that every machine has registers for. The .space stands for code.
	.text
	.globl f
f:
	.cfi_startproc
	.cfi_def_cfa 15, 160
	.space 4
	.cfi_adjust_cfa_offset 64
	.cfi_offset 14, -48
	.space 4
	.cfi_def_cfa_register 11
	.cfi_register 12, 5
	.space 256
	.cfi_remember_state
	.cfi_undefined 13
	.cfi_same_value 10
	.cfi_val_offset 6, -24
	.space 0x12000
	.cfi_escape 0x10, 9, 2, 0x30, 0x9f
	.cfi_escape 0x16, 8, 1, 0x31
	.space 8
	.cfi_restore_state
	.cfi_restore 12
	.space 4
	.cfi_endproc
g:
	.cfi_startproc
	.cfi_escape 0x0f, 3, 0x08, 0x7f, 0x06
	.space 12
	.cfi_endproc
	.cfi_sections .eh_frame, .debug_frame
