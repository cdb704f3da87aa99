// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// The compiler's numbers, and a standard operation that stays.
func TestDialectHasTheCompilersNumbers(t *testing.T) {
	d := Description().Dialects[0]
	table, err := d.Table()
	if err != nil {
		t.Fatal(err)
	}
	for name, opcode := range map[string]byte{
		"DW_OP_INTEL_regs":                 0xeb,
		"DW_OP_INTEL_push_bit_piece_stack": 0xec,
		"DW_OP_INTEL_push_simd_lane":       0xed,
		"DW_OP_INTEL_piece_stack":          0xee,
		"DW_OP_INTEL_bit_piece_stack":      0xef,
		"DW_OP_INTEL_regval_bits":          0xfe,
		"DW_OP_GNU_push_tls_address":       0xe0,
	} {
		if _, e, ok := table.Lookup(name); !ok || e != (locexpr.Encoding{Opcode: opcode, Name: name}) {
			t.Errorf("%s is %+v %v, want %#x", name, e, ok, opcode)
		}
	}
}
