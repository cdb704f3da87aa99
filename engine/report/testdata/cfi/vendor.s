// The instructions of the heterogeneous extension, for AMDGPU.
	.text
	.cfi_sections .debug_frame
f:
	.cfi_startproc
	// LLVM_def_aspace_cfa SGPR32, 8, private_wave
	.cfi_escape 0x30, 0x40, 0x08, 0x06
	.space 4
	// LLVM_def_aspace_cfa_sf SGPR32, -8, private_lane
	.cfi_escape 0x31, 0x40, 0x7e, 0x05
	.space 4
	// def_cfa_register SGPR33; LLVM_def_aspace_cfa SGPR33, 16, global
	.cfi_escape 0x0d, 0x41
	.cfi_escape 0x30, 0x41, 0x10, 0x00
	.space 4
	.cfi_endproc
