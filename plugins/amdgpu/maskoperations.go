// SPDX-License-Identifier: Apache-2.0

package amdgpu

import "github.com/unwindd/unwindd/plugins/amdgpu/isa"

// maskOperation is the effect of a scalar instruction on masks: t is the truth
// table of its operands' bits, effect tells which the operands are and where
// the result goes.
type maskOperation struct {
	t      truth
	effect maskEffect
}

type maskEffect uint8

const (
	notMasks    maskEffect = iota
	combines               // D = A t B
	inverts                // D = t A
	saves                  // D = EXEC, EXEC = A t EXEC
	writes                 // D = EXEC = A t EXEC
	maskEffects            // how many there are
)

// isIntoExec reports whether EXEC gets the result.
func (e maskEffect) isIntoExec() bool { return e == saves || e == writes }

// maskTable has a row for each truth table, with the operations that compute it,
// by their effect. The decoder (isa) knows their numbers and widths.
var maskTable = [...]struct {
	t   truth
	ops [maskEffects][]isa.Op
}{
	{truthAnd, [maskEffects][]isa.Op{combines: {isa.SAndB32, isa.SAndB64}, saves: {isa.SAndSaveexec}}},
	{truthOr, [maskEffects][]isa.Op{combines: {isa.SOrB32, isa.SOrB64}, saves: {isa.SOrSaveexec}}},
	{truthXor, [maskEffects][]isa.Op{combines: {isa.SXorB32, isa.SXorB64}, saves: {isa.SXorSaveexec}}},
	{truthNand, [maskEffects][]isa.Op{combines: {isa.SNandB32, isa.SNandB64}, saves: {isa.SNandSaveexec}}},
	{truthNor, [maskEffects][]isa.Op{combines: {isa.SNorB32, isa.SNorB64}, saves: {isa.SNorSaveexec}}},
	{truthXnor, [maskEffects][]isa.Op{combines: {isa.SXnorB32, isa.SXnorB64}, saves: {isa.SXnorSaveexec}}},
	{truthAndn1, [maskEffects][]isa.Op{saves: {isa.SAndn1Saveexec}, writes: {isa.SAndn1Wrexec}}},
	{truthAndn2, [maskEffects][]isa.Op{combines: {isa.SAndn2B32, isa.SAndn2B64}, saves: {isa.SAndn2Saveexec}, writes: {isa.SAndn2Wrexec}}},
	{truthOrn1, [maskEffects][]isa.Op{saves: {isa.SOrn1Saveexec}}},
	{truthOrn2, [maskEffects][]isa.Op{combines: {isa.SOrn2B32, isa.SOrn2B64}, saves: {isa.SOrn2Saveexec}}},
	{truthNotA, [maskEffects][]isa.Op{inverts: {isa.SNotB32, isa.SNotB64}}},
}

// maskOperations is maskTable by operation.
var maskOperations = func() (all [256]maskOperation) {
	for _, row := range maskTable {
		for effect, ops := range row.ops {
			for _, op := range ops {
				all[op] = maskOperation{row.t, maskEffect(effect)} //nolint:gosec // below maskEffects
			}
		}
	}
	return all
}()
