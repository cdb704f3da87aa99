	.cfi_sections .eh_frame, .sframe
	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	.cfi_undefined %r14
	brasl %r14, leaf
	j _start
	.cfi_endproc
	.size _start, .-_start
	.type leaf, @function
leaf:
	.cfi_startproc
	ldgr %f0, %r11
	.cfi_register %r11, %f0
	ldgr %f2, %r14
	.cfi_register %r14, %f2
	lgr %r11, %r15
	.cfi_def_cfa_register %r11
	lay %r15, -168(%r15)
	.cfi_def_cfa_offset 328
	la %r15, 168(%r15)
	.cfi_def_cfa_offset 160
	lgdr %r14, %f2
	.cfi_restore %r14
	lgdr %r11, %f0
	.cfi_restore %r11
	.cfi_def_cfa_register %r15
	br %r14
	.cfi_endproc
	.size leaf, .-leaf
	.type fponly, @function
fponly:
	.cfi_startproc
	stg %r11, 88(%r15)
	.cfi_offset %r11, -72
	lay %r15, -168(%r15)
	.cfi_def_cfa_offset 328
	lgr %r11, %r15
	.cfi_def_cfa_register %r11
	lg %r11, 256(%r15)
	.cfi_restore %r11
	la %r15, 168(%r15)
	.cfi_def_cfa %r15, 160
	br %r14
	.cfi_endproc
	.size fponly, .-fponly
	.type restore, @function
restore:
	.cfi_startproc
	.cfi_signal_frame
	svc 173
	.cfi_endproc
	.size restore, .-restore
