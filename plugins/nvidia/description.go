// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

const (
	machine        = 190 // EM_CUDA
	maxInstruction = 16  // bytes; before sm_70 one has 8
)

// Description returns the constant description of NVIDIA's processors. The caller may
// change it.
//
// StackAlign is 0, because return addresses are not on the stack: they are in registers,
// where the rows of a function say so.
func Description() *sdk.Description {
	return &sdk.Description{
		Name:           "nvidia",
		Version:        "1.0",
		Recognises:     []sdk.Recogniser{{ELFMachine: machine, OSABI: -1}},
		ByteOrder:      sdk.LittleEndian,
		AddressBits:    64,
		Registers:      registerRanges(),
		PC:             pc,
		SP:             r1,
		FP:             sdk.NoRegister,
		ReturnAddress:  pc,
		AddressSpaces:  addressSpaces(),
		AddressClasses: addressClasses(),
		DefaultRules:   defaultRules(),
		CallDistance:   1,
		MaxInstruction: maxInstruction,
		Relocations:    relocations(),
		Processors:     laneCounts(),
	}
}

// defaultRules are the rules of columns that a row does not mention. Compilers write a rule
// for each register that a function saves, so those that it must preserve have their value
// where there is none. All others are the function's own. The caller's stack pointer is
// the CFA.
func defaultRules() []cfi.RegisterRule {
	var rules []cfi.RegisterRule
	for _, r := range registerRanges() {
		for n := r.First; n-r.First < r.Count; n++ {
			if n != pc {
				rules = append(rules, cfi.RegisterRule{Column: uint64(n), Rule: defaultRule(n)})
			}
		}
	}
	slices.SortFunc(rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
	return rules
}

// defaultRule is the rule of one register.
func defaultRule(number uint32) cfi.Rule {
	switch {
	case number == r1:
		return cfi.Rule{Kind: cfi.ValOffset}
	case number == rz || number == urz:
		return cfi.Rule{Kind: cfi.ValExpression, Expr: []byte{dw.OpLit0}}
	case number == active || number > r0 && number < rz && isPreserved(number-r0):
		return cfi.Rule{Kind: cfi.SameValue}
	}
	return cfi.Rule{Kind: cfi.Undefined}
}

// relocations returns the types that sections of debug information have.
func relocations() []sdk.Relocation {
	return []sdk.Relocation{
		{Type: 0, Kind: sdk.RelocationNone},              // R_CUDA_NONE
		{Type: 1, Size: 4, Kind: sdk.RelocationAbsolute}, // R_CUDA_32
		{Type: 2, Size: 8, Kind: sdk.RelocationAbsolute}, // R_CUDA_64
		{Type: 3, Size: 4, Kind: sdk.RelocationAbsolute}, // R_CUDA_G32: of generic addresses
		{Type: 4, Size: 8, Kind: sdk.RelocationAbsolute}, // R_CUDA_G64
	}
}
