// SPDX-License-Identifier: Apache-2.0

package dw

// The numbers of vendors' operations after OpLLVMUser in the canonical dialect. Numbers below 0x40
// are published (heterogeneous extension, A.7.7.1); from there on they are this project's own, and
// never change.
const (
	UserNop                   = 0x01
	UserFormAspaceAddress     = 0x02
	UserPushLane              = 0x03
	UserOffset                = 0x04
	UserOffsetUconst          = 0x05
	UserBitOffset             = 0x06
	UserCallFrameEntryReg     = 0x07
	UserUndefined             = 0x08
	UserAspaceBregx           = 0x09
	UserPieceEnd              = 0x0a
	UserExtend                = 0x0b
	UserSelectBitPiece        = 0x0c
	UserAspaceImplicitPointer = 0x40
	UserPushIteration         = 0x41
	UserOverlay               = 0x42
	UserBitOverlay            = 0x43
	UserComposite             = 0x44
	UserIntelRegs             = 0x50
	UserIntelPushBitPiece     = 0x51
	UserIntelPushSIMDLane     = 0x52
	UserIntelPiece            = 0x53
	UserIntelBitPiece         = 0x54
	UserIntelRegvalBits       = 0x55
)

// VendorOp is an operation that no standard has, with its encodings. The encoding 0 stands for
// none.
type VendorOp struct {
	Name      string
	Canonical uint64 // after OpLLVMUser, in the canonical dialect
	Legacy    byte   // LLVM's opcode before there was OpLLVMUser, and still in call frame information
	Intel     byte   // opcode of Intel's graphics compiler
}

// VendorOps are the operations of the heterogeneous extension and of Intel, and the one that DWARF 6 adds.
var VendorOps = [...]VendorOp{
	{"DW_OP_LLVM_nop", UserNop, 0, 0},
	{"DW_OP_LLVM_form_aspace_address", UserFormAspaceAddress, 0xe1, 0},
	{"DW_OP_LLVM_push_lane", UserPushLane, 0xe2, 0},
	{"DW_OP_LLVM_offset", UserOffset, 0xe3, 0},
	{"DW_OP_LLVM_offset_uconst", UserOffsetUconst, 0xe4, 0},
	{"DW_OP_LLVM_bit_offset", UserBitOffset, 0xe5, 0},
	{"DW_OP_LLVM_call_frame_entry_reg", UserCallFrameEntryReg, 0xe6, 0},
	{"DW_OP_LLVM_undefined", UserUndefined, 0xe7, 0},
	{"DW_OP_LLVM_aspace_bregx", UserAspaceBregx, 0xe8, 0},
	{"DW_OP_LLVM_piece_end", UserPieceEnd, 0xea, 0},
	{"DW_OP_LLVM_extend", UserExtend, 0xeb, 0},
	{"DW_OP_LLVM_select_bit_piece", UserSelectBitPiece, 0xec, 0},
	{"DW_OP_LLVM_aspace_implicit_pointer", UserAspaceImplicitPointer, 0xe9, 0},
	{"DW_OP_LLVM_push_iteration", UserPushIteration, 0, 0},
	{"DW_OP_LLVM_overlay", UserOverlay, 0, 0},
	{"DW_OP_LLVM_bit_overlay", UserBitOverlay, 0, 0},
	{"DW_OP_composite", UserComposite, 0, 0},
	{"DW_OP_INTEL_regs", UserIntelRegs, 0, 0xeb},
	{"DW_OP_INTEL_push_bit_piece_stack", UserIntelPushBitPiece, 0, 0xec},
	{"DW_OP_INTEL_push_simd_lane", UserIntelPushSIMDLane, 0, 0xed},
	{"DW_OP_INTEL_piece_stack", UserIntelPiece, 0, 0xee},
	{"DW_OP_INTEL_bit_piece_stack", UserIntelBitPiece, 0, 0xef},
	{"DW_OP_INTEL_regval_bits", UserIntelRegvalBits, 0, 0xfe},
}

// Published returns the number after OpLLVMUser that compilers write; 0 where none is published.
func (o *VendorOp) Published() uint64 {
	if o.Canonical < UserAspaceImplicitPointer {
		return o.Canonical
	}
	return 0
}

// VendorOpName returns the name of an operation by its number in the canonical dialect; "" where it is none.
func VendorOpName(canonical uint64) string {
	for i := range VendorOps {
		if VendorOps[i].Canonical == canonical {
			return VendorOps[i].Name
		}
	}
	return ""
}
