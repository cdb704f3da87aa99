// SPDX-License-Identifier: Apache-2.0

package x86

import "github.com/unwindd/unwindd/sdk"

// DWARF register numbers of the System V psABI, i386 supplement 1.1, table 2.14 ("DWARF
// Register Number Mapping").
const (
	eax uint32 = iota
	ecx
	edx
	ebx
	esp
	ebp
	esi
	edi
	eip // the return address column; as a register of the top frame, the PC
	eflags
)

// The other registers.
const (
	st0    uint32 = 11 // to st7, 18
	xmm0   uint32 = 21 // to xmm7, 28
	mm0    uint32 = 29 // to mm7, 36
	fcw    uint32 = 37
	fsw    uint32 = 38
	mxcsr  uint32 = 39
	es     uint32 = 40
	cs     uint32 = 41
	ss     uint32 = 42
	ds     uint32 = 43
	fs     uint32 = 44
	gs     uint32 = 45
	tr     uint32 = 48
	ldtr   uint32 = 49
	fsBase uint32 = 93
	gsBase uint32 = 94
)

// registerRanges lists every register. A vector register is one register of
// 512 bits; xmm and ymm are its low pieces, which have one number.
func registerRanges() []sdk.RegisterRange {
	return []sdk.RegisterRange{
		{First: eax, Count: 8, Bits: 32, Class: sdk.General, Names: []string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"}},
		{First: eip, Count: 1, Bits: 32, Class: sdk.ProgramCounter, Names: []string{"eip"}},
		{First: eflags, Count: 1, Bits: 32, Class: sdk.Flags, Names: []string{"eflags"}},
		{First: st0, Count: 8, Bits: 80, Class: sdk.Float, Names: []string{"st%d"}, Narrow: sdk.NarrowConverted},
		{First: xmm0, Count: 8, Bits: 512, Class: sdk.Vector, Names: []string{"xmm%d"}},
		{First: mm0, Count: 8, Bits: 64, Class: sdk.Vector, Names: []string{"mm%d"}},
		{First: fcw, Count: 2, Bits: 16, Class: sdk.Control, Names: []string{"fcw", "fsw"}},
		{First: mxcsr, Count: 1, Bits: 32, Class: sdk.Control, Names: []string{"mxcsr"}},
		{First: es, Count: 6, Bits: 16, Class: sdk.Segment, Names: []string{"es", "cs", "ss", "ds", "fs", "gs"}},
		{First: tr, Count: 2, Bits: 16, Class: sdk.Segment, Names: []string{"tr", "ldtr"}},
		{First: fsBase, Count: 2, Bits: 32, Class: sdk.Control, Names: []string{"fs.base", "gs.base"}},
	}
}

// calleeSaved are the registers that a function keeps for its caller (psABI 2.2.1), in the
// order of their numbers; esp, which every return restores, is not among them.
var calleeSaved = [...]uint32{ebx, ebp, esi, edi}
