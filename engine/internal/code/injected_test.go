// SPDX-License-Identifier: Apache-2.0

package code

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// TestRowsOfInjectedFunctions: what a handler made a function of a machine with a link register
// call has the interrupted PC in its own column, whether the link register was saved or not;
// a machine whose calls push keeps its row.
func TestRowsOfInjectedFunctions(t *testing.T) {
	const link, sp, pc = 30, 31, 32
	rule := func(column uint64, kind cfi.RuleKind, register uint64, offset int64) cfi.RegisterRule {
		return cfi.RegisterRule{Column: column, Rule: cfi.Rule{Kind: kind, Register: register, Offset: offset}}
	}
	d := &sdk.Description{PC: pc, SP: sp}
	for name, c := range map[string]struct {
		from, want []cfi.RegisterRule
		column     uint64
	}{
		"saved":     {[]cfi.RegisterRule{rule(29, cfi.Offset, 0, -8), rule(link, cfi.Offset, 0, -64), rule(sp, cfi.ValOffset, 0, 0)}, []cfi.RegisterRule{rule(29, cfi.Offset, 0, -8), rule(pc, cfi.Offset, 0, -64)}, link},
		"not saved": {nil, []cfi.RegisterRule{rule(pc, cfi.Register, link, 0)}, link},
		"the same":  {[]cfi.RegisterRule{rule(link, cfi.SameValue, 0, 0)}, []cfi.RegisterRule{rule(pc, cfi.Register, link, 0)}, link},
		"pushed":    {[]cfi.RegisterRule{rule(pc, cfi.Offset, 0, -8)}, []cfi.RegisterRule{rule(pc, cfi.Offset, 0, -8)}, pc},
	} {
		got := injectedRow(&cfi.Row{Rules: c.from, ReturnAddress: c.column}, d)
		if diff := cmp.Diff(c.want, got.Rules); diff != "" || got.ReturnAddress != pc {
			t.Errorf("%s: return address in column %d (-want +got)\n%s", name, got.ReturnAddress, diff)
		}
	}
}
