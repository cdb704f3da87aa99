# Every call frame instruction that LLVM and readelf know, for x86-64.
	.text
f:
	.cfi_startproc
	.cfi_escape 0x02, 0             # advance_loc1 by nothing
	.space 1
	.cfi_escape 0x12, 7, 0x7e       # def_cfa_sf rsp, 16
	.space 1
	.cfi_escape 0x13, 0x7d          # def_cfa_offset_sf 24
	.cfi_escape 0x2e, 0x10          # GNU_args_size 16
	.space 1
	.cfi_escape 0x05, 3, 2          # offset_extended rbx, cfa-16
	.cfi_escape 0x11, 6, 0x7d       # offset_extended_sf rbp, cfa+24
	.cfi_escape 0x05, 15, 0         # offset_extended r15, cfa+0
	.space 64
	.cfi_escape 0x14, 12, 3         # val_offset r12, cfa-24
	.cfi_escape 0x15, 13, 0x7c      # val_offset_sf r13, cfa+32
	.cfi_escape 0x09, 14, 15        # register r14, r15
	.space 300
	.cfi_escape 0x0a                # remember_state
	.cfi_escape 0x07, 16            # undefined rip
	.cfi_escape 0x08, 3             # same_value rbx
	.space 0x11000
	.cfi_escape 0x10, 12, 4, 0x77, 0x08, 0x06, 0x06        # expression r12
	.cfi_escape 0x16, 13, 3, 0x92, 0x06, 0x70              # val_expression r13
	.cfi_escape 0x16, 14, 11, 0x0b, 0xfe, 0xff, 0x0a, 0xfe, 0xff, 0x11, 0x7f, 0x22, 0x22, 0x19
	.space 2
	.cfi_escape 0x06, 16            # restore_extended rip
	.space 2
	.cfi_escape 0x0b                # restore_state
	.cfi_escape 0xc3                # restore rbx
	.space 1
	.cfi_escape 0x0f, 5, 0x77, 0x10, 0x94, 0x04, 0x96      # def_cfa_expression
	.space 1
	.cfi_escape 0x0c, 6, 32         # def_cfa rbp, 32
	.cfi_escape 0x0d, 3             # def_cfa_register rbx
	.cfi_escape 0x0e, 40            # def_cfa_offset 40
	.space 1
	.cfi_endproc
	.cfi_sections .eh_frame, .debug_frame
