// A return address that is signed, for AArch64.
	.text
f:
	.cfi_startproc
	.space 4
	.cfi_negate_ra_state
	.space 4
	.cfi_negate_ra_state
	.space 4
	.cfi_endproc
