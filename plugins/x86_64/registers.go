// SPDX-License-Identifier: Apache-2.0

package x86_64

import "github.com/unwindd/unwindd/sdk"

// DWARF register numbers of the System V psABI, AMD64 supplement 1.0, figure
// 3.36 ("DWARF Register Number Mapping").
const (
	rax uint32 = iota
	rdx
	rcx
	rbx
	rsi
	rdi
	rbp
	rsp
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15
	rip // the return address column; as a register of the top frame, the PC
)

// The other registers.
const (
	xmm0   uint32 = 17 // to xmm15, 32
	st0    uint32 = 33 // to st7, 40
	mm0    uint32 = 41 // to mm7, 48
	rflags uint32 = 49
	es     uint32 = 50
	cs     uint32 = 51
	ss     uint32 = 52
	ds     uint32 = 53
	fs     uint32 = 54
	gs     uint32 = 55
	fsBase uint32 = 58
	gsBase uint32 = 59
	tr     uint32 = 62
	ldtr   uint32 = 63
	mxcsr  uint32 = 64
	fcw    uint32 = 65
	fsw    uint32 = 66
	xmm16  uint32 = 67  // to xmm31, 82
	k0     uint32 = 118 // to k7, 125
	r16    uint32 = 130 // to r31, 145
)

// registerRanges lists every register. A vector register is one register of
// 512 bits; xmm and ymm are its low pieces, as in the psABI, where all three
// have one number.
func registerRanges() []sdk.RegisterRange {
	return []sdk.RegisterRange{
		{First: rax, Count: 16, Bits: 64, Class: sdk.General, Names: []string{
			"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
			"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}},
		{First: rip, Count: 1, Bits: 64, Class: sdk.ProgramCounter, Names: []string{"rip"}},
		{First: xmm0, Count: 16, Bits: 512, Class: sdk.Vector, Names: []string{"xmm%d"}},
		{First: st0, Count: 8, Bits: 80, Class: sdk.Float, Names: []string{"st%d"}, Narrow: sdk.NarrowConverted},
		{First: mm0, Count: 8, Bits: 64, Class: sdk.Vector, Names: []string{"mm%d"}},
		{First: rflags, Count: 1, Bits: 64, Class: sdk.Flags, Names: []string{"rflags"}},
		{First: es, Count: 6, Bits: 16, Class: sdk.Segment, Names: []string{"es", "cs", "ss", "ds", "fs", "gs"}},
		{First: fsBase, Count: 2, Bits: 64, Class: sdk.Control, Names: []string{"fs.base", "gs.base"}},
		{First: tr, Count: 2, Bits: 16, Class: sdk.Segment, Names: []string{"tr", "ldtr"}},
		{First: mxcsr, Count: 1, Bits: 32, Class: sdk.Control, Names: []string{"mxcsr"}},
		{First: fcw, Count: 2, Bits: 16, Class: sdk.Control, Names: []string{"fcw", "fsw"}},
		{First: xmm16, Count: 16, Bits: 512, Class: sdk.Vector, Names: []string{
			"xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",
			"xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"}},
		{First: k0, Count: 8, Bits: 64, Class: sdk.Mask, Names: []string{"k%d"}},
		{First: r16, Count: 16, Bits: 64, Class: sdk.General, Names: []string{
			"r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23",
			"r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"}},
	}
}

// calleeSaved are the registers that a function of the psABI keeps for its
// caller (3.2.1), in the order of their numbers; rsp, which every return
// restores, is not among them.
var calleeSaved = [...]uint32{rbx, rbp, r12, r13, r14, r15}
