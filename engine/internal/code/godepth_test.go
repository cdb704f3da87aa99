// SPDX-License-Identifier: Apache-2.0

package code

import (
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

// TestRowsOfGoByTheRuleOfAnEntry has a machine whose calls push, and one with a link
// register, which functions of Go store at the stack pointer.
func TestRowsOfGoByTheRuleOfAnEntry(t *testing.T) {
	entry := func(offset int64, column uint64, back cfi.Rule) *cfi.Row {
		return &cfi.Row{
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: 7, Offset: offset},
			Rules:         []cfi.RegisterRule{{Column: column, Rule: back}},
			ReturnAddress: column,
		}
	}
	push := entry(8, 16, cfi.Rule{Kind: cfi.Offset, Offset: -8})
	link := entry(0, 30, cfi.Rule{Kind: cfi.SameValue})
	for _, c := range []struct {
		entry *cfi.Row
		depth int64
		cfa   int64
		back  cfi.Rule
	}{
		{push, 0, 8, cfi.Rule{Kind: cfi.Offset, Offset: -8}},
		{push, 40, 48, cfi.Rule{Kind: cfi.Offset, Offset: -8}},
		{link, 0, 0, cfi.Rule{Kind: cfi.SameValue}},
		{link, 48, 48, cfi.Rule{Kind: cfi.Offset, Offset: -48}},
	} {
		row := goRow(c.entry, 1, 2, c.depth)
		back, _ := row.Rule(c.entry.ReturnAddress)
		if row.CFA.Offset != c.cfa || back.Kind != c.back.Kind || back.Offset != c.back.Offset {
			t.Errorf("depth %d: CFA at %+d, return address %+v, expected %+d and %+v", c.depth, row.CFA.Offset, back, c.cfa, c.back)
		}
	}
}
