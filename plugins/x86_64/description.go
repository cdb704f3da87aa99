// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

const machine = 62 // EM_X86_64

// Description returns the constant facts of x86-64. The caller may change it.
func Description() *sdk.Description {
	return &sdk.Description{
		Name:           "x86_64",
		Version:        "1.0",
		Recognises:     []sdk.Recogniser{{ELFMachine: machine, OSABI: -1}},
		ByteOrder:      sdk.LittleEndian,
		AddressBits:    64,
		Registers:      registerRanges(),
		RegisterSets:   registerSets(),
		PC:             rip,
		SP:             rsp,
		FP:             rbp,
		ReturnAddress:  rip,
		AddressSpaces:  []sdk.AddressSpace{{Number: locexpr.DefaultSpace, Name: "global", Bits: 64, Scope: sdk.ProcessScope}},
		DefaultRules:   defaultRules(true),
		FramePointer:   framePointerRow(),
		Entry:          entryRow(),
		CallDistance:   1,
		MaxInstruction: x86code.MaxInstruction,
		StackAlign:     8,
		CanonicalBits:  48,
		FloatFormats:   floatFormats(),
		ThreadLocal:    &sdk.ThreadLocal{Pointer: fsBase, Variant: sdk.ThreadLocalVariantII},
		SignalFrame:    signalFrame(),
		Symbols:        functionKinds.Symbols(),
		Relocations:    relocations(),
		NoEngine:       true,
	}
}

// floatFormats are the formats of floating point types of 16 bytes: x87's of long double
// (psABI 3.1.2), of D's real and Ada's Long_Long_Float, whatever their names, and the
// others by the names that compilers give them.
func floatFormats() []sdk.FloatFormat {
	list := []sdk.FloatFormat{{Bits: 128, Format: locexpr.FloatExtended}}
	for _, name := range []string{"__float128", "_Float128", "f128", "real(kind=16)", "complex(kind=16)", "quad complex"} {
		list = append(list, sdk.FloatFormat{Bits: 128, Name: name, Format: locexpr.FloatBinary128})
	}
	return list
}

// defaultRules are the rules of columns that a row does not mention. The psABI (3.2.1)
// has six registers preserved by every function; Go's ABI has none. The caller's rsp is
// the CFA by its definition (psABI 3.7).
//
// The return address has no default: every row of this architecture tells where it is,
// because a call always pushes it.
func defaultRules(preserved bool) []cfi.RegisterRule {
	kind := make(map[uint32]cfi.RuleKind)
	if preserved {
		for _, r := range calleeSaved {
			kind[r] = cfi.SameValue
		}
	}
	var rules []cfi.RegisterRule
	add := func(first, count uint32) {
		for r := first; r < first+count; r++ {
			rule := cfi.Rule{Kind: cfi.Undefined}
			if k, ok := kind[r]; ok {
				rule.Kind = k
			}
			if r == rsp {
				rule = cfi.Rule{Kind: cfi.ValOffset}
			}
			rules = append(rules, cfi.RegisterRule{Column: uint64(r), Rule: rule})
		}
	}
	add(rax, 16)
	add(xmm0, 16)
	add(st0, 8)
	add(mm0, 8)
	add(rflags, 1)
	// A thread's segments and their bases do not change from frame to frame.
	for r := es; r <= gs; r++ {
		kind[r] = cfi.SameValue
	}
	for _, r := range [...]uint32{fsBase, gsBase, tr, ldtr} {
		kind[r] = cfi.SameValue
	}
	add(es, 6)
	add(fsBase, 2)
	add(tr, 2)
	// The status bits of mxcsr are the callee's to change; so is the x87 status
	// word. The x87 control word is preserved (3.2.1).
	kind[fcw] = cfi.SameValue
	add(mxcsr, 1)
	add(fcw, 1)
	add(fsw, 1)
	add(xmm16, 16)
	add(k0, 8)
	add(r16, 16)
	return rules
}

// framePointerRow is the row of a function that begins with push %rbp; mov %rsp,%rbp.
// Which other registers it saved is not known, so they are undefined rather than
// unchanged.
func framePointerRow() *cfi.Row {
	row := &cfi.Row{
		CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(rbp), Offset: 16},
		ReturnAddress: uint64(rip),
	}
	for _, r := range [...]struct {
		column uint32
		rule   cfi.Rule
	}{
		{rbx, cfi.Rule{Kind: cfi.Undefined}},
		{rbp, cfi.Rule{Kind: cfi.Offset, Offset: -16}},
		{rsp, cfi.Rule{Kind: cfi.ValOffset}},
		{r12, cfi.Rule{Kind: cfi.Undefined}},
		{r13, cfi.Rule{Kind: cfi.Undefined}},
		{r14, cfi.Rule{Kind: cfi.Undefined}},
		{r15, cfi.Rule{Kind: cfi.Undefined}},
		{rip, cfi.Rule{Kind: cfi.Offset, Offset: -8}},
	} {
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r.column), Rule: r.rule})
	}
	return row
}

// entryRow is the row of a function's first instruction: the call pushed its return
// address (psABI 3.2.2).
func entryRow() *cfi.Row {
	return &cfi.Row{
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(rsp), Offset: 8},
		Rules: []cfi.RegisterRule{
			{Column: uint64(rsp), Rule: cfi.Rule{Kind: cfi.ValOffset}},
			{Column: uint64(rip), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
		},
		ReturnAddress: uint64(rip),
	}
}

// relocations are the types that sections of CFI and debugging information have (psABI
// 4.4, table 4.9). DTPOFF is a symbol's offset in its thread-local block, which equals
// the symbol's value.
func relocations() []sdk.Relocation {
	const absolute, relative = sdk.RelocationAbsolute, sdk.RelocationRelative
	return []sdk.Relocation{
		{Type: 0, Kind: sdk.RelocationNone}, // R_X86_64_NONE
		{Type: 1, Size: 8, Kind: absolute},  // R_X86_64_64
		{Type: 2, Size: 4, Kind: relative},  // R_X86_64_PC32
		{Type: 4, Size: 4, Kind: relative},  // R_X86_64_PLT32: of a function that needs no PLT entry, PC32
		{Type: 10, Size: 4, Kind: absolute}, // R_X86_64_32
		{Type: 11, Size: 4, Kind: absolute}, // R_X86_64_32S
		{Type: 12, Size: 2, Kind: absolute}, // R_X86_64_16
		{Type: 13, Size: 2, Kind: relative}, // R_X86_64_PC16
		{Type: 14, Size: 1, Kind: absolute}, // R_X86_64_8
		{Type: 15, Size: 1, Kind: relative}, // R_X86_64_PC8
		{Type: 17, Size: 8, Kind: absolute}, // R_X86_64_DTPOFF64
		{Type: 21, Size: 4, Kind: absolute}, // R_X86_64_DTPOFF32
		{Type: 24, Size: 8, Kind: relative}, // R_X86_64_PC64
	}
}
