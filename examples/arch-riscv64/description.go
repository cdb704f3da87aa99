// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// machine is EM_RISCV, of RV32 too: only the class of an ELF file tells them apart.
const machine = 243

// DWARF register numbers (psABI, "DWARF Register Numbers"). Number 64 is the "alternate
// frame return column": a function that a signal interrupted may still have its own
// return address in ra. It is the PC.
const (
	zero uint32 = 0
	ra   uint32 = 1
	sp   uint32 = 2
	gp   uint32 = 3
	tp   uint32 = 4
	t0   uint32 = 5
	fp   uint32 = 8 // s0
	a7   uint32 = 17
	f0   uint32 = 32 // ft0
	pc   uint32 = 64
	fcsr uint32 = 4096 + 3 // control and status registers begin at 4096
)

func describe() *sdk.Description {
	return &sdk.Description{
		Name:           "riscv64",
		Version:        "1.0",
		Recognises:     []sdk.Recogniser{{ELFMachine: machine, OSABI: -1}},
		ByteOrder:      sdk.LittleEndian,
		AddressBits:    64,
		Registers:      registerRanges(),
		RegisterSets:   registerSets(),
		PC:             pc,
		SP:             sp,
		FP:             fp,
		ReturnAddress:  ra,
		AddressSpaces:  []sdk.AddressSpace{{Number: locexpr.DefaultSpace, Name: "global", Bits: 64, Scope: sdk.ProcessScope}},
		DefaultRules:   defaultRules(),
		FramePointer:   frameRecord(),
		Entry:          entry(),
		ThreadLocal:    &sdk.ThreadLocal{Pointer: tp, Variant: sdk.ThreadLocalVariantI, TCBBelow: 16},
		FloatFormats:   []sdk.FloatFormat{{Bits: 128, Format: locexpr.FloatBinary128}},
		SignalFrame:    &sdk.SignalFrame{PC: savedPC}, // it begins with the siginfo_t
		CallDistance:   1,
		MaxInstruction: 4,
		StackAlign:     8,
		Symbols:        functionKinds.Symbols(),
		Relocations:    relocations(),
		NoEngine:       true,
	}
}

// registerRanges lists the registers by the names of the calling convention. The
// names of the hardware, x0 to x31 and f0 to f31, are understood too.
func registerRanges() []sdk.RegisterRange {
	return []sdk.RegisterRange{
		{First: zero, Count: 32, Bits: 64, Class: sdk.General, Names: integerNames[:], Aliases: []string{"x%d"}},
		{First: f0, Count: 32, Bits: 64, Class: sdk.Float, Names: floatNames[:], Aliases: []string{"f%d"}},
		{First: pc, Count: 1, Bits: 64, Class: sdk.ProgramCounter, Names: []string{"pc"}},
		{First: fcsr, Count: 1, Bits: 32, Class: sdk.Control, Names: []string{"fcsr"}},
	}
}

var integerNames = [32]string{
	"zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5",
	"a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
}

var floatNames = [32]string{
	"ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5",
	"fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
}

// isPreserved reports whether a function keeps a register for its caller (psABI,
// "Integer Register Convention" and "Floating-point Register Convention"): s0 to s11,
// fs0 to fs11, and zero, gp and tp, which are the same in all of a thread.
func isPreserved(register uint32) bool {
	n := register % 32
	return register < pc && (n == 8 || n == 9 || n >= 18 && n <= 27) || register == zero || register == gp || register == tp
}

// defaultRules are the rules of registers that a row leaves out. The caller's stack
// pointer is the CFA. The return address is in ra, where the call puts it.
func defaultRules() []cfi.RegisterRule {
	var rules []cfi.RegisterRule
	for r := zero; r < pc; r++ {
		rule := cfi.Rule{Kind: cfi.Undefined}
		switch {
		case r == sp:
			rule.Kind = cfi.ValOffset
		case r == ra, isPreserved(r):
			rule.Kind = cfi.SameValue
		}
		rules = append(rules, cfi.RegisterRule{Column: uint64(r), Rule: rule})
	}
	return rules
}

// frameRecord is the row of a function with a frame pointer (psABI, "Frame Pointer
// Convention"): the CFA is in the frame pointer, and below it are the return address and
// the caller's frame pointer. Which other registers were saved is not known, so they are
// undefined rather than unchanged.
func frameRecord() *cfi.Row {
	row := &cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(fp)}, ReturnAddress: uint64(ra)}
	for r := range pc {
		switch {
		case r == ra:
			row.Rules = append(row.Rules, saved(ra, -8))
		case r == fp:
			row.Rules = append(row.Rules, saved(fp, -16))
		case isPreserved(r) && r != zero && r != gp && r != tp:
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: cfi.Undefined}})
		}
	}
	return row
}

// entry is the row of a function's first instruction: the call has put the return address
// into ra, and nothing onto the stack (psABI, "Integer Register Convention").
func entry() *cfi.Row {
	return &cfi.Row{
		CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(sp)},
		Rules:         []cfi.RegisterRule{{Column: uint64(ra), Rule: cfi.Rule{Kind: cfi.SameValue}}},
		ReturnAddress: uint64(ra),
	}
}

// saved is the rule of a register in memory, at an offset from the CFA.
func saved(register uint32, offset int64) cfi.RegisterRule {
	return cfi.RegisterRule{Column: uint64(register), Rule: cfi.Rule{Kind: cfi.Offset, Offset: offset}}
}
