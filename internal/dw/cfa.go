// SPDX-License-Identifier: Apache-2.0

package dw

// The call frame instructions DW_CFA_* that have an operand in the low six bits of the
// opcode. In every other opcode the high two bits are zero.
const (
	CFAHighBits   = 0xc0
	CFALowBits    = 0x3f
	CFAAdvanceLoc = 0x40
	CFAOffset     = 0x80
	CFARestore    = 0xc0
)

// The other call frame instructions: DWARF 5, table 7.29; the heterogeneous extension, A.7.24; the GNU,
// SGI and LSB ones (LSB 5.0, 10.5.2); that of AArch64 (DWARF for the Arm 64-bit Architecture, 4.1).
const (
	CFANop                        = 0x00
	CFASetLoc                     = 0x01
	CFAAdvanceLoc1                = 0x02
	CFAAdvanceLoc2                = 0x03
	CFAAdvanceLoc4                = 0x04
	CFAOffsetExtended             = 0x05
	CFARestoreExtended            = 0x06
	CFAUndefined                  = 0x07
	CFASameValue                  = 0x08
	CFARegister                   = 0x09
	CFARememberState              = 0x0a
	CFARestoreState               = 0x0b
	CFADefCFA                     = 0x0c
	CFADefCFARegister             = 0x0d
	CFADefCFAOffset               = 0x0e
	CFADefCFAExpression           = 0x0f
	CFAExpression                 = 0x10
	CFAOffsetExtendedSF           = 0x11
	CFADefCFASF                   = 0x12
	CFADefCFAOffsetSF             = 0x13
	CFAValOffset                  = 0x14
	CFAValOffsetSF                = 0x15
	CFAValExpression              = 0x16
	CFAMIPSAdvanceLoc8            = 0x1d
	CFAAARCH64NegateRAStateWithPC = 0x2c
	CFAGNUWindowSave              = 0x2d
	CFAGNUArgsSize                = 0x2e
	CFAGNUNegativeOffsetExtended  = 0x2f
	CFALLVMDefAspaceCFA           = 0x30
	CFALLVMDefAspaceCFASF         = 0x31
)

// CFAName returns the name of a call frame instruction by its first byte; "" where it is none.
func CFAName(code byte) string {
	if high := code & CFAHighBits; high != 0 {
		code = high
	}
	return cfaNames[code]
}

var cfaNames = [256]string{
	CFAAdvanceLoc:                 "DW_CFA_advance_loc",
	CFAOffset:                     "DW_CFA_offset",
	CFARestore:                    "DW_CFA_restore",
	CFANop:                        "DW_CFA_nop",
	CFASetLoc:                     "DW_CFA_set_loc",
	CFAAdvanceLoc1:                "DW_CFA_advance_loc1",
	CFAAdvanceLoc2:                "DW_CFA_advance_loc2",
	CFAAdvanceLoc4:                "DW_CFA_advance_loc4",
	CFAOffsetExtended:             "DW_CFA_offset_extended",
	CFARestoreExtended:            "DW_CFA_restore_extended",
	CFAUndefined:                  "DW_CFA_undefined",
	CFASameValue:                  "DW_CFA_same_value",
	CFARegister:                   "DW_CFA_register",
	CFARememberState:              "DW_CFA_remember_state",
	CFARestoreState:               "DW_CFA_restore_state",
	CFADefCFA:                     "DW_CFA_def_cfa",
	CFADefCFARegister:             "DW_CFA_def_cfa_register",
	CFADefCFAOffset:               "DW_CFA_def_cfa_offset",
	CFADefCFAExpression:           "DW_CFA_def_cfa_expression",
	CFAExpression:                 "DW_CFA_expression",
	CFAOffsetExtendedSF:           "DW_CFA_offset_extended_sf",
	CFADefCFASF:                   "DW_CFA_def_cfa_sf",
	CFADefCFAOffsetSF:             "DW_CFA_def_cfa_offset_sf",
	CFAValOffset:                  "DW_CFA_val_offset",
	CFAValOffsetSF:                "DW_CFA_val_offset_sf",
	CFAValExpression:              "DW_CFA_val_expression",
	CFAMIPSAdvanceLoc8:            "DW_CFA_MIPS_advance_loc8",
	CFAAARCH64NegateRAStateWithPC: "DW_CFA_AARCH64_negate_ra_state_with_pc",
	CFAGNUWindowSave:              "DW_CFA_GNU_window_save",
	CFAGNUArgsSize:                "DW_CFA_GNU_args_size",
	CFAGNUNegativeOffsetExtended:  "DW_CFA_GNU_negative_offset_extended",
	CFALLVMDefAspaceCFA:           "DW_CFA_LLVM_def_aspace_cfa",
	CFALLVMDefAspaceCFASF:         "DW_CFA_LLVM_def_aspace_cfa_sf"}
