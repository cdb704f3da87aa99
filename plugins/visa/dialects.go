// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// dialect is that of Intel's graphics compiler, in all its versions: those that
// no longer write an operation write no other in its place.
const dialect = "intel"

// operations are the compiler's own.
var operations = [...]sdk.DialectOperation{
	{Opcode: 0xeb, Name: "DW_OP_INTEL_regs"},
	{Opcode: 0xec, Name: "DW_OP_INTEL_push_bit_piece_stack"},
	{Opcode: 0xed, Name: "DW_OP_INTEL_push_simd_lane"},
	{Opcode: 0xee, Name: "DW_OP_INTEL_piece_stack"},
	{Opcode: 0xef, Name: "DW_OP_INTEL_bit_piece_stack"},
	{Opcode: 0xfe, Name: "DW_OP_INTEL_regval_bits"},
}

func dialects() []sdk.Dialect {
	return []sdk.Dialect{{Name: dialect, Operations: slices.Clone(operations[:])}}
}
