// SPDX-License-Identifier: Apache-2.0

package code

import (
	"testing"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// TestAddressesOfRowsArePlaced has expressions of a plugin about a section that begins at 0x1000:
// only operands of DW_OP_addr move.
func TestAddressesOfRowsArePlaced(t *testing.T) {
	for _, c := range []struct {
		order          locexpr.ByteOrder
		bits           uint32
		expr, expected string
	}{
		{locexpr.LittleEndian, 64, "DW_OP_addr 0x10; DW_OP_bregx 3 0; DW_OP_plus", "DW_OP_addr 0x1010; DW_OP_bregx 3 0; DW_OP_plus"},
		{locexpr.BigEndian, 64, "DW_OP_addr 0x10; DW_OP_addr 0xff0; DW_OP_plus", "DW_OP_addr 0x1010; DW_OP_addr 0x1ff0; DW_OP_plus"},
		{locexpr.LittleEndian, 32, "DW_OP_lit3; DW_OP_addr 0x0; DW_OP_plus", "DW_OP_lit3; DW_OP_addr 0x1000; DW_OP_plus"},
		{locexpr.LittleEndian, 64, "DW_OP_const1u 3; DW_OP_lit1; DW_OP_plus", "DW_OP_const1u 3; DW_OP_lit1; DW_OP_plus"},
	} {
		m := &Machine{Description: &sdk.Description{AddressBits: c.bits}, Order: c.order}
		o := locexpr.TextOptions{Dialect: locexpr.Canonical, AddressSize: int(c.bits / 8), Order: c.order}
		expr, err := locexpr.Parse(c.expr, o)
		if err != nil {
			t.Fatal(err)
		}
		before := string(expr)
		if got := locexpr.FormatText(m.placeExpression(expr, 0x1000), o); got != c.expected {
			t.Errorf("%s: %s, expected %s", c.expr, got, c.expected)
		}
		if string(expr) != before {
			t.Errorf("%s: the plugin's own expression was changed", c.expr)
		}
	}
}
