// SPDX-License-Identifier: Apache-2.0

package x86

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

const machine = 3 // EM_386

// Description returns the constant facts of i386. The caller may change it.
func Description() *sdk.Description {
	return &sdk.Description{
		Name:           "i386",
		Version:        "1.0",
		Recognises:     []sdk.Recogniser{{ELFMachine: machine, OSABI: -1}},
		ByteOrder:      sdk.LittleEndian,
		AddressBits:    32,
		Registers:      registerRanges(),
		RegisterSets:   registerSets(),
		PC:             eip,
		SP:             esp,
		FP:             ebp,
		ReturnAddress:  eip,
		AddressSpaces:  []sdk.AddressSpace{{Number: locexpr.DefaultSpace, Name: "global", Bits: 32, Scope: sdk.ProcessScope}},
		DefaultRules:   defaultRules(),
		FramePointer:   framePointerRow(),
		Entry:          entryRow(),
		CallDistance:   1,
		MaxInstruction: x86code.MaxInstruction,
		StackAlign:     4,
		FloatFormats:   floatFormats(),
		ThreadLocal:    &sdk.ThreadLocal{Pointer: gsBase, Variant: sdk.ThreadLocalVariantII},
		SignalFrame:    signalFrame(),
		Symbols:        functionKinds.Symbols(),
		Relocations:    relocations(),
		NoEngine:       true,
	}
}

// floatFormats are the formats of floating point types of 16 bytes. x87's of long double has
// 12 bytes, but 16 where compilers are told so (-m128bit-long-double, and on macOS).
func floatFormats() []sdk.FloatFormat {
	return []sdk.FloatFormat{
		{Bits: 128, Format: locexpr.FloatBinary128},
		{Bits: 128, Name: "long double", Format: locexpr.FloatExtended},
	}
}

// defaultRules are the rules of columns that a row does not mention. The psABI (2.2.1) has
// four registers preserved by every function. The caller's esp is the CFA by its definition.
//
// The return address has no default: every row of this architecture tells where it is,
// because a call always pushes it.
func defaultRules() []cfi.RegisterRule {
	kind := map[uint32]cfi.RuleKind{esp: cfi.ValOffset, fcw: cfi.SameValue}
	for _, r := range calleeSaved {
		kind[r] = cfi.SameValue
	}
	// A thread's segments and their bases do not change from frame to frame.
	for _, r := range [...]uint32{es, cs, ss, ds, fs, gs, tr, ldtr, fsBase, gsBase} {
		kind[r] = cfi.SameValue
	}
	var rules []cfi.RegisterRule
	for _, x := range registerRanges() {
		for r := x.First; r < x.First+x.Count; r++ {
			k, ok := kind[r]
			switch {
			case r == eip:
				continue
			case !ok:
				k = cfi.Undefined
			}
			rules = append(rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: k}})
		}
	}
	return rules
}

// framePointerRow is the row of a function that begins with push %ebp; mov %esp,%ebp.
// Which other registers it saved is not known, so they are undefined rather than
// unchanged.
func framePointerRow() *cfi.Row {
	return &cfi.Row{
		CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(ebp), Offset: 8},
		ReturnAddress: uint64(eip),
		Rules: []cfi.RegisterRule{
			{Column: uint64(ebx), Rule: cfi.Rule{Kind: cfi.Undefined}},
			{Column: uint64(esp), Rule: cfi.Rule{Kind: cfi.ValOffset}},
			{Column: uint64(ebp), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
			{Column: uint64(esi), Rule: cfi.Rule{Kind: cfi.Undefined}},
			{Column: uint64(edi), Rule: cfi.Rule{Kind: cfi.Undefined}},
			{Column: uint64(eip), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -4}},
		},
	}
}

// entryRow is the row of a function's first instruction: the call pushed its return
// address (psABI 2.2.2).
func entryRow() *cfi.Row {
	return &cfi.Row{
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(esp), Offset: 4},
		Rules: []cfi.RegisterRule{
			{Column: uint64(esp), Rule: cfi.Rule{Kind: cfi.ValOffset}},
			{Column: uint64(eip), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -4}},
		},
		ReturnAddress: uint64(eip),
	}
}

// relocations are the types that sections of CFI and debugging information have (psABI
// 4.4). LDO is a symbol's offset in its thread-local block, which equals the symbol's value.
func relocations() []sdk.Relocation {
	const absolute, relative = sdk.RelocationAbsolute, sdk.RelocationRelative
	return []sdk.Relocation{
		{Type: 0, Kind: sdk.RelocationNone}, // R_386_NONE
		{Type: 1, Size: 4, Kind: absolute},  // R_386_32
		{Type: 2, Size: 4, Kind: relative},  // R_386_PC32
		{Type: 4, Size: 4, Kind: relative},  // R_386_PLT32: of a function that needs no PLT entry, PC32
		{Type: 20, Size: 2, Kind: absolute}, // R_386_16
		{Type: 21, Size: 2, Kind: relative}, // R_386_PC16
		{Type: 22, Size: 1, Kind: absolute}, // R_386_8
		{Type: 23, Size: 1, Kind: relative}, // R_386_PC8
		{Type: 32, Size: 4, Kind: absolute}, // R_386_TLS_LDO_32
	}
}
