// SPDX-License-Identifier: Apache-2.0

package x86code

// Classes of opcodes, by the bytes that follow them.
const (
	bad  = 0 // no instruction in the mode
	none = 1 << iota
	modrm
	imm8
	imm16
	immZ   // 4 bytes; 2 with the prefix for 16-bit operands
	immV   // 8 bytes with REX.W, else as immZ
	rel32  // 4 bytes; processors disagree on what the prefix for 16-bit operands does
	moffs  // an address: 8 bytes; 4 with the prefix for 32-bit addresses
	group3 // immediate of the class's size for /0 and /1 only

	modrm8 = modrm | imm8
	modrmZ = modrm | immZ
)

// oneByte classes the opcodes without an escape (Intel SDM volume 2, table A-2).
var oneByte = [256]uint16{
	/* 00 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // add
	/* 08 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // or; 0F is an escape
	/* 10 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // adc
	/* 18 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // sbb
	/* 20 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // and
	/* 28 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // sub
	/* 30 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // xor
	/* 38 */ modrm, modrm, modrm, modrm, imm8, immZ, bad, bad, // cmp
	/* 40 */ bad, bad, bad, bad, bad, bad, bad, bad, // REX
	/* 48 */ bad, bad, bad, bad, bad, bad, bad, bad, // REX.W
	/* 50 */ none, none, none, none, none, none, none, none, // push
	/* 58 */ none, none, none, none, none, none, none, none, // pop
	/* 60 */ bad, bad, bad, modrm, bad, bad, bad, bad, // 62 is EVEX; movsxd
	/* 68 */ immZ, modrmZ, imm8, modrm8, none, none, none, none, // push, imul, ins, outs
	/* 70 */ imm8, imm8, imm8, imm8, imm8, imm8, imm8, imm8, // jcc
	/* 78 */ imm8, imm8, imm8, imm8, imm8, imm8, imm8, imm8, // jcc
	/* 80 */ modrm8, modrmZ, bad, modrm8, modrm, modrm, modrm, modrm, // group 1, test, xchg
	/* 88 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // mov, lea, pop
	/* 90 */ none, none, none, none, none, none, none, none, // nop, xchg
	/* 98 */ none, none, bad, none, none, none, none, none, // cbw, cwd, fwait, pushf, popf, sahf, lahf
	/* a0 */ moffs, moffs, moffs, moffs, none, none, none, none, // mov, movs, cmps
	/* a8 */ imm8, immZ, none, none, none, none, none, none, // test, stos, lods, scas
	/* b0 */ imm8, imm8, imm8, imm8, imm8, imm8, imm8, imm8, // mov
	/* b8 */ immV, immV, immV, immV, immV, immV, immV, immV, // mov
	/* c0 */ modrm8, modrm8, imm16, none, bad, bad, modrm8, modrmZ, // shifts, ret, VEX, mov
	/* c8 */ imm8 | imm16, none, imm16, none, none, imm8, bad, none, // enter, leave, lret, int3, int, iret
	/* d0 */ modrm, modrm, modrm, modrm, bad, bad, bad, none, // shifts, xlat
	/* d8 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // x87
	/* e0 */ imm8, imm8, imm8, imm8, imm8, imm8, imm8, imm8, // loops, in, out
	/* e8 */ rel32, rel32, bad, imm8, none, none, none, none, // call, jmp, in, out
	/* f0 */ none, none, none, none, none, none, modrm8 | group3, modrmZ | group3, // int1, hlt, cmc, group 3
	/* f8 */ none, none, none, none, none, none, modrm, modrm, // flags, groups 4 and 5
}

// escaped classes the opcodes after 0F (table A-3); VEX and EVEX map 1 have the
// same immediates.
var escaped = [256]uint16{
	/* 00 */ modrm, modrm, modrm, modrm, bad, none, none, none, // groups 6 and 7, lar, lsl, syscall, clts, sysret
	/* 08 */ none, none, bad, none, bad, modrm, none, modrm8, // invd, wbinvd, ud2, prefetchw, femms, 3DNow!
	/* 10 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // movups
	/* 18 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // prefetch, nop
	/* 20 */ modrm, modrm, modrm, modrm, bad, bad, bad, bad, // mov of control and debug registers
	/* 28 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // movaps, conversions, comiss
	/* 30 */ none, none, none, none, none, none, bad, none, // wrmsr, rdtsc, rdmsr, rdpmc, sysenter, sysexit, getsec
	/* 38 */ bad, bad, bad, bad, bad, bad, bad, bad, // 38 and 3A are escapes
	/* 40 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // cmovcc
	/* 48 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // cmovcc
	/* 50 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // movmskps, sqrtps, andps
	/* 58 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // addps, divps
	/* 60 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // punpckl
	/* 68 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // punpckh, movd
	/* 70 */ modrm8, modrm8, modrm8, modrm8, modrm, modrm, modrm, none, // pshuf, groups 12 to 14, emms
	/* 78 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // vmread, extrq, haddps, movd
	/* 80 */ rel32, rel32, rel32, rel32, rel32, rel32, rel32, rel32, // jcc
	/* 88 */ rel32, rel32, rel32, rel32, rel32, rel32, rel32, rel32, // jcc
	/* 90 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // setcc
	/* 98 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // setcc
	/* a0 */ none, none, none, modrm, modrm8, modrm, modrm, modrm, // push fs, pop fs, cpuid, bt, shld
	/* a8 */ none, none, none, modrm, modrm8, modrm, modrm, modrm, // push gs, pop gs, rsm, bts, shrd, imul
	/* b0 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // cmpxchg, movzx
	/* b8 */ modrm, modrm, modrm8, modrm, modrm, modrm, modrm, modrm, // popcnt, group 8, bsf, movsx
	/* c0 */ modrm, modrm, modrm8, modrm, modrm8, modrm8, modrm8, modrm, // xadd, cmpps, pinsrw, shufps, group 9
	/* c8 */ none, none, none, none, none, none, none, none, // bswap
	/* d0 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // psrlw
	/* d8 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // psubus
	/* e0 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // pavg
	/* e8 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // psubs
	/* f0 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // psll
	/* f8 */ modrm, modrm, modrm, modrm, modrm, modrm, modrm, modrm, // psub
}

// oneByte32 is oneByte in 32-bit mode.
var oneByte32 = func() [256]uint16 {
	table := oneByte
	for class, ops := range map[uint16][]byte{
		none: {0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0xce, 0xd6, // push, pop of segments, adjustments, pusha, popa, into, salc
			0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f}, // inc, dec
		modrm:        {0x62, 0xc4, 0xc5}, // bound, les, lds, where they are no prefixes
		modrm8:       {0x82},
		imm8:         {0xd4, 0xd5}, // aam, aad
		imm16 | immZ: {0x9a, 0xea}, // lcall, ljmp
	} {
		for _, op := range ops {
			table[op] = class
		}
	}
	return table
}()
