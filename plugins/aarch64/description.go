// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

const (
	machine         = 183 // EM_AARCH64
	instructionSize = 4
)

// Description returns the constant facts of AArch64. The caller may change it.
func Description() *sdk.Description {
	return &sdk.Description{
		Name:           "aarch64",
		Version:        "1.0",
		Recognises:     []sdk.Recogniser{{ELFMachine: machine, OSABI: -1}},
		ByteOrder:      sdk.LittleEndian,
		AddressBits:    64,
		Registers:      registerRanges(),
		RegisterSets:   registerSets(),
		PC:             pc,
		SP:             sp,
		FP:             x29,
		ReturnAddress:  x30,
		AddressSpaces:  []sdk.AddressSpace{{Number: locexpr.DefaultSpace, Name: "global", Bits: 64, Scope: sdk.ProcessScope}},
		DefaultRules:   defaultRules(true),
		FramePointer:   framePointerRow(),
		Entry:          entryRow(),
		SignState:      raSignState,
		TagBits:        8,
		EntryPushed:    16, // PLT[0] pushes x16 and x30 before _dl_runtime_resolve is entered
		FloatFormats:   []sdk.FloatFormat{{Bits: 128, Format: locexpr.FloatBinary128}},
		ThreadLocal:    &sdk.ThreadLocal{Pointer: tpidrEL0, Variant: sdk.ThreadLocalVariantI, TCBAbove: 16},
		SignalFrame:    signalFrame(),
		CallDistance:   1,
		MaxInstruction: instructionSize,
		StackAlign:     8,
		Relocations:    relocations(),
		Symbols:        functionKinds.Symbols(),
		NoEngine:       true,
	}
}

// defaultRules are the rules of columns that a row does not mention. AAPCS64 (6.1.1 and
// 6.1.2) has x19 to x29 and the lower halves of v8 to v15 preserved by every function;
// Go's ABI has none. The caller's sp is the CFA by its definition (AADWARF64 4.2).
//
// The link register keeps its value by default: a function that calls no other need not
// save it.
func defaultRules(preserved bool) []cfi.RegisterRule {
	kept := make(map[uint32]bool)
	if preserved {
		for _, r := range calleeSaved {
			kept[r] = true
		}
	}
	for r := tpidrroEL0; r < tpidrEL0+4; r++ {
		kept[r] = true // the same in a whole thread
	}
	for _, r := range [...]uint32{x30, vg, fpcr, pauthDmask, pauthCmask, sveLength, ssveLength} {
		kept[r] = true
	}
	var rules []cfi.RegisterRule
	for _, registers := range registerRanges() {
		for r := registers.First; r < registers.First+registers.Count; r++ {
			rule := cfi.Rule{Kind: cfi.Undefined}
			switch {
			case r == pc, r == elrMode, r == raSignState:
				continue
			case r == sp:
				rule = cfi.Rule{Kind: cfi.ValOffset}
			case kept[r]:
				rule = cfi.Rule{Kind: cfi.SameValue}
			}
			rules = append(rules, cfi.RegisterRule{Column: uint64(r), Rule: rule})
		}
	}
	return rules
}

// calleeSaved are the registers that a function of AAPCS64 keeps for its caller, in
// the order of their numbers. sp, which every return restores, is not among them.
var calleeSaved = func() []uint32 {
	var list []uint32
	for r := x19; r <= x29; r++ {
		list = append(list, r)
	}
	for r := v8; r < v8+8; r++ {
		list = append(list, r)
	}
	return list
}()

// entryRow is the row of a function's first instruction: the call left its return address
// in the link register.
func entryRow() *cfi.Row {
	return &cfi.Row{
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(sp)},
		Rules: []cfi.RegisterRule{
			{Column: uint64(x30), Rule: cfi.Rule{Kind: cfi.SameValue}},
			{Column: uint64(sp), Rule: cfi.Rule{Kind: cfi.ValOffset}},
		},
		ReturnAddress: uint64(x30),
	}
}

// framePointerRow is the row of a function that made a frame record, the two words at x29
// (AAPCS64 6.4.6): the caller's x29 and the return address. The record lies anywhere in
// its frame, so the caller's sp is unknown, and the other saved registers are too.
func framePointerRow() *cfi.Row {
	row := &cfi.Row{
		CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(x29), Offset: 16},
		ReturnAddress: uint64(x30),
	}
	for r := x19; r < x29; r++ {
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: cfi.Undefined}})
	}
	row.Rules = append(row.Rules,
		cfi.RegisterRule{Column: uint64(x29), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}},
		cfi.RegisterRule{Column: uint64(x30), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
		cfi.RegisterRule{Column: uint64(sp), Rule: cfi.Rule{Kind: cfi.Undefined}})
	for r := v8; r < v8+8; r++ {
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: cfi.Undefined}})
	}
	return row
}

// relocations are the types that sections of CFI and debugging information have (AAELF64,
// 5.7.5 and 5.7.12). TLS_DTPREL is a symbol's offset in its thread-local block, which
// equals the symbol's value.
func relocations() []sdk.Relocation {
	const absolute, relative = sdk.RelocationAbsolute, sdk.RelocationRelative
	return []sdk.Relocation{
		{Type: 0, Kind: sdk.RelocationNone},   // R_AARCH64_NONE
		{Type: 256, Kind: sdk.RelocationNone}, // R_AARCH64_NONE, withdrawn
		{Type: 257, Size: 8, Kind: absolute},  // R_AARCH64_ABS64
		{Type: 258, Size: 4, Kind: absolute},  // R_AARCH64_ABS32
		{Type: 259, Size: 2, Kind: absolute},  // R_AARCH64_ABS16
		{Type: 260, Size: 8, Kind: relative},  // R_AARCH64_PREL64
		{Type: 261, Size: 4, Kind: relative},  // R_AARCH64_PREL32
		{Type: 262, Size: 2, Kind: relative},  // R_AARCH64_PREL16
		{Type: 314, Size: 4, Kind: relative},  // R_AARCH64_PLT32: of a function that needs no PLT entry, PREL32
		{Type: 1029, Size: 8, Kind: absolute}, // R_AARCH64_TLS_DTPREL
	}
}
