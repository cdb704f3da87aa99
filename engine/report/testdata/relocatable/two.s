# Two functions, with call frame information of either kind.
	.cfi_sections .eh_frame, .debug_frame
	.text
f:
	.cfi_startproc
	.cfi_def_cfa 15, 16
	.space 4
	.cfi_def_cfa_offset 64
	.cfi_offset 14, -8
	.space 8
	.cfi_endproc
g:
	.cfi_startproc
	.cfi_def_cfa 15, 32
	.space 8
	.cfi_endproc
