// SPDX-License-Identifier: Apache-2.0

package amdgpu

import "github.com/unwindd/unwindd/sdk"

// The dialects. Both are in circulation, and the byte 0xe9 stands for another
// thing in each, so which one is in force is said of a code object.
const (
	// userDialect has the extension's operations as numbers after
	// DW_OP_LLVM_user (heterogeneous extension, A.7.7.1).
	userDialect = "llvm-user"
	// legacyDialect has a byte for each, as ROCm's compilers write them, and
	// LLVM's main branch in call frame information.
	legacyDialect = "llvm-legacy"
)

// operations are those of the heterogeneous extension that have a published
// encoding; a zero stands for none.
var operations = [...]struct {
	name   string
	user   uint64
	legacy byte
}{
	{"DW_OP_LLVM_nop", 0x01, 0},
	{"DW_OP_LLVM_form_aspace_address", 0x02, 0xe1},
	{"DW_OP_LLVM_push_lane", 0x03, 0xe2},
	{"DW_OP_LLVM_offset", 0x04, 0xe3},
	{"DW_OP_LLVM_offset_uconst", 0x05, 0xe4},
	{"DW_OP_LLVM_bit_offset", 0x06, 0xe5},
	{"DW_OP_LLVM_call_frame_entry_reg", 0x07, 0xe6},
	{"DW_OP_LLVM_undefined", 0x08, 0xe7},
	{"DW_OP_LLVM_aspace_bregx", 0x09, 0xe8},
	{"DW_OP_LLVM_piece_end", 0x0a, 0xea},
	{"DW_OP_LLVM_extend", 0x0b, 0xeb},
	{"DW_OP_LLVM_select_bit_piece", 0x0c, 0xec},
	{"DW_OP_LLVM_aspace_implicit_pointer", 0, 0xe9},
}

// dialects are the tables of both.
func dialects() []sdk.Dialect {
	const user = 0xe9 // DW_OP_LLVM_user
	byUser, byOpcode := sdk.Dialect{Name: userDialect}, sdk.Dialect{Name: legacyDialect}
	for _, o := range operations {
		if o.user != 0 {
			byUser.Operations = append(byUser.Operations, sdk.DialectOperation{Opcode: user, User: o.user, Name: o.name})
		}
		if o.legacy != 0 {
			byOpcode.Operations = append(byOpcode.Operations, sdk.DialectOperation{Opcode: o.legacy, Name: o.name})
		}
	}
	return []sdk.Dialect{byUser, byOpcode}
}
