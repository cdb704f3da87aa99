// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// What leads back to itself is looked for in every answer, and told by a check of its
// own: the engine cuts such a walk, and what is behind it is lost.

// maxCircles is how many circles are told.
const maxCircles = 4

// cycles tells what was found while other checks were made.
func (v *verifier) cycles() { v.findings = append(v.findings, v.circles...) }

func (v *verifier) circle(fix, format string, args ...any) {
	if len(v.circles) < maxCircles {
		v.circles = append(v.circles, Finding{Check: "cycles", Severity: Error, Detail: fmt.Sprintf(format, args...), Fix: fix})
	}
}

// rowsInCircles looks for rows whose caller is the frame itself. at is which rows.
func (v *verifier) rowsInCircles(at string, rows []cfi.Row) {
	for i := range rows {
		if v.leadsToItself(&rows[i]) {
			v.circle("Say where the caller's PC and stack pointer are. Of a frame that has no caller the return address is Undefined.",
				"%s[%d]: in [%#x, %#x) the caller has the PC and the stack pointer of the frame itself", at, i, rows[i].Start, rows[i].End)
		}
	}
}

// leadsToItself says whether a row changes neither the PC nor the stack pointer.
func (v *verifier) leadsToItself(row *cfi.Row) bool {
	sp, pc := uint64(v.desc.SP), uint64(v.desc.PC)
	if v.desc.SP == sdk.NoRegister || row.ReturnAddress != pc || !v.isKept(row, pc) {
		return false
	}
	if v.isKept(row, sp) {
		return true
	}
	rule := v.ruleOf(row, sp)
	return rule.Kind == cfi.ValOffset && row.CFA.Kind == cfi.CFARegister && row.CFA.Register == sp && row.CFA.Offset+rule.Offset == 0
}

// isKept says whether a caller's register is that of the frame.
func (v *verifier) isKept(row *cfi.Row, column uint64) bool {
	rule := v.ruleOf(row, column)
	return rule.Kind == cfi.SameValue || rule.Kind == cfi.Register && rule.Register == column
}

// ruleOf is the rule of a row for a column, or else the description's.
func (v *verifier) ruleOf(row *cfi.Row, column uint64) cfi.Rule {
	for _, rules := range [][]cfi.RegisterRule{row.Rules, v.desc.DefaultRules} {
		for i := range rules {
			if rules[i].Column == column {
				return rules[i].Rule
			}
		}
	}
	return cfi.Rule{}
}

// mapsInCircles follows the first address of every range of a thread's maps until it
// comes to memory.
func (v *verifier) mapsInCircles(at string, b *sdk.ThreadBinding) {
	maps := map[locexpr.AddressSpace][]sdk.MapRange{}
	steps := 0
	for i := range b.Maps {
		maps[b.Maps[i].Space] = b.Maps[i].Ranges
		steps += len(b.Maps[i].Ranges)
	}
	for i := range b.Maps {
		for j := range b.Maps[i].Ranges {
			space, address := b.Maps[i].Space, b.Maps[i].Ranges[j].Start
			if reaches(maps, space, address, steps) {
				continue
			}
			v.circle("Let each space map into one that is nearer to memory.",
				"%s.Maps[%d].Ranges[%d]: the maps lead from address %#x of space %d round in a circle", at, i, j, address, space)
			return
		}
	}
}

// reaches says whether an address is mapped to memory or a register within so many
// steps.
func reaches(maps map[locexpr.AddressSpace][]sdk.MapRange, space locexpr.AddressSpace, address uint64, steps int) bool {
	for ; steps >= 0; steps-- {
		var in *sdk.MapRange
		for i := range maps[space] {
			if r := &maps[space][i]; address-r.Start < r.Size {
				in = r
				break
			}
		}
		if in == nil || in.Kind == sdk.RegisterMap || in.Kind == sdk.OpaqueMap {
			return true
		}
		offset := address - in.Start
		if in.Kind == sdk.InterleavedMap {
			element := uint64(in.Element)
			offset = offset/element*in.Stride + offset%element
		}
		space, address = in.Into, in.Base+offset
	}
	return false
}
