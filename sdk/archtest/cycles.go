// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Rows and maps that lead back to themselves are searched for in every answer, and
// reported by a check of their own: the engine cuts such a walk, and loses the rest of
// the stack.

// cycles reports the cycles that were found during other checks.
func (v *verifier) cycles() { v.report() }

// rowCycles looks for rows whose caller is the frame itself. subject names the rows.
func (v *verifier) rowCycles(subject string, rows []cfi.Row) {
	for i := range rows {
		if v.leadsToItself(&rows[i]) {
			v.findLater("cycles", "Say where the caller's PC and stack pointer are. Of a frame that has no caller the return address is Undefined.",
				"%s[%d]: in [%#x, %#x) the caller has the PC and the stack pointer of the frame itself", subject, i, rows[i].Start, rows[i].End)
		}
	}
}

// leadsToItself reports whether a row changes neither the PC nor the stack pointer.
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

// isKept reports whether a caller's register is the same as the frame's.
func (v *verifier) isKept(row *cfi.Row, column uint64) bool {
	rule := v.ruleOf(row, column)
	return rule.Kind == cfi.SameValue || rule.Kind == cfi.Register && rule.Register == column
}

// ruleOf returns the rule of a row for a column, or else the description's.
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

// mapCycles follows the first address of every range of a thread's maps until it
// comes to memory.
func (v *verifier) mapCycles(subject string, b *sdk.ThreadBinding) {
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
			v.findLater("cycles", "Let each space map into one that is nearer to memory.",
				"%s.Maps[%d].Ranges[%d]: the maps lead from address %#x of space %d round in a circle", subject, i, j, address, space)
			return
		}
	}
}

// reaches reports whether an address is mapped to memory or a register within so many
// steps.
func reaches(maps map[locexpr.AddressSpace][]sdk.MapRange, space locexpr.AddressSpace, address uint64, steps int) bool {
	for ; steps >= 0; steps-- {
		var mapped *sdk.MapRange
		for i := range maps[space] {
			if r := &maps[space][i]; address-r.Start < r.Size {
				mapped = r
				break
			}
		}
		if mapped == nil || mapped.Kind == sdk.RegisterMap || mapped.Kind == sdk.OpaqueMap {
			return true
		}
		offset := address - mapped.Start
		if mapped.Kind == sdk.InterleavedMap {
			element := uint64(mapped.Element)
			offset = offset/element*mapped.Stride + offset%element
		}
		space, address = mapped.Into, mapped.Base+offset
	}
	return false
}
