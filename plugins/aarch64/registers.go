// SPDX-License-Identifier: Apache-2.0

package aarch64

import "github.com/unwindd/unwindd/sdk"

// DWARF register numbers of AADWARF64, 4.1.
const (
	x0          uint32 = 0 // to x30, 30
	x8          uint32 = 8
	x16         uint32 = 16
	x17         uint32 = 17
	x19         uint32 = 19
	x28         uint32 = 28
	x29         uint32 = 29 // the frame pointer
	x30         uint32 = 30 // the link register
	sp          uint32 = 31
	pc          uint32 = 32
	elrMode     uint32 = 33
	raSignState uint32 = 34
	tpidrroEL0  uint32 = 35
	tpidrEL0    uint32 = 36 // to tpidr_el3, 39
	vg          uint32 = 46 // the vector length in units of 64 bits
	ffr         uint32 = 47
	p0          uint32 = 48 // to p15, 63
	v0          uint32 = 64 // to v31, 95
	v8          uint32 = 72
	z0          uint32 = 96 // to z31, 127
)

// Registers of cores, samples and minidumps that AADWARF64 gives no numbers. These
// numbers are the project's own, and begin far above AADWARF64's.
const (
	cpsr        uint32 = 0x1000 + iota // PSTATE as the kernel and debuggers show it
	fpsr                               // floating-point status
	fpcr                               // floating-point control
	pauthDmask                         // signature bits of a data address
	pauthCmask                         // signature bits of a code address
	tpidr2                             // TPIDR2_EL0, of SME
	sveLength                          // bytes of a vector of SVE, from NT_ARM_SVE
	ssveLength                         // bytes of a vector of SME's streaming mode
	zaLength                           // bytes of a row of SME's ZA array
	zt0                                // SME2's lookup table
	fpmr                               // mode of 8-bit floating point
	gcspr                              // GCSPR_EL0, the pointer of the guarded control stack
	syscallCode                        // the number of the system call that the thread is in
)

// vectorBits is the longest vector of SVE. BindThreads returns the length of a thread's.
const vectorBits = 2048

// registerRanges lists every register.
func registerRanges() []sdk.RegisterRange {
	return []sdk.RegisterRange{
		{First: x0, Count: 29, Bits: 64, Class: sdk.General, Names: []string{"x%d"}, Aliases: []string{"w%d"}},
		{First: x29, Count: 2, Bits: 64, Class: sdk.General, Names: []string{"x29", "x30"}, Aliases: []string{"fp", "lr"}},
		{First: sp, Count: 1, Bits: 64, Class: sdk.General, Names: []string{"sp"}, Aliases: []string{"wsp"}},
		{First: pc, Count: 1, Bits: 64, Class: sdk.ProgramCounter, Names: []string{"pc"}},
		{First: elrMode, Count: 1, Bits: 64, Class: sdk.Control, Names: []string{"elr_mode"}},
		{First: raSignState, Count: 1, Bits: 64, Class: sdk.Control, Names: []string{"ra_sign_state"}},
		{First: tpidrroEL0, Count: 5, Bits: 64, Class: sdk.Control,
			Names: []string{"tpidrro_el0", "tpidr_el0", "tpidr_el1", "tpidr_el2", "tpidr_el3"}},
		{First: vg, Count: 1, Bits: 64, Class: sdk.Control, Names: []string{"vg"}},
		{First: ffr, Count: 1, Bits: vectorBits / 8, Class: sdk.Vector, Names: []string{"ffr"}},
		{First: p0, Count: 16, Bits: vectorBits / 8, Class: sdk.Vector, Names: []string{"p%d"}},
		{First: v0, Count: 32, Bits: 128, Class: sdk.Vector, Names: []string{"v%d"}, Aliases: []string{"q%d"}},
		{First: z0, Count: 32, Bits: vectorBits, Class: sdk.Vector, Names: []string{"z%d"}},
		{First: cpsr, Count: 1, Bits: 64, Class: sdk.Flags, Names: []string{"cpsr"}, Aliases: []string{"pstate"}},
		{First: fpsr, Count: 2, Bits: 32, Class: sdk.Control, Names: []string{"fpsr", "fpcr"}},
		{First: pauthDmask, Count: 2, Bits: 64, Class: sdk.Control, Names: []string{"pauth_dmask", "pauth_cmask"}},
		{First: tpidr2, Count: 1, Bits: 64, Class: sdk.Control, Names: []string{"tpidr2_el0"}},
		{First: sveLength, Count: 3, Bits: 16, Class: sdk.Control, Names: []string{"sve_vl", "ssve_vl", "za_vl"}},
		{First: zt0, Count: 1, Bits: 512, Class: sdk.Vector, Names: []string{"zt0"}},
		{First: fpmr, Count: 2, Bits: 64, Class: sdk.Control, Names: []string{"fpmr", "gcspr_el0"}},
		{First: syscallCode, Count: 1, Bits: 32, Class: sdk.Control, Names: []string{"syscall"}},
	}
}
