// SPDX-License-Identifier: Apache-2.0

package x86code

// Prefixes (Intel SDM volume 2, 2.1.1).
const (
	prefixES        = 0x26
	prefixCS        = 0x2e
	prefixSS        = 0x36
	prefixDS        = 0x3e
	prefixFS        = 0x64
	prefixGS        = 0x65
	prefixOperand16 = 0x66
	prefixAddress32 = 0x67
	prefixLock      = 0xf0
	prefixRepne     = 0xf2 // before a jump, BND
	prefixRep       = 0xf3
)

// REX (2.2.1). VEX, EVEX and XOP have its bits, inverted except W.
const (
	rexMask = 0xf0
	rexBase = 0x40
	rexW    = 8
	rexR    = 4
	rexX    = 2
	rexB    = 1
)

// Bytes that begin another map of opcodes than the one-byte map.
const (
	escape   = 0x0f
	escape38 = 0x38 // after escape
	escape3A = 0x3a // after escape
	vex2     = 0xc5 // VEX of two bytes
	vex3     = 0xc4 // VEX of three bytes
	evexByte = 0x62
	xopByte  = 0x8f // also pop, whose next byte has no map of XOP in it
)

// Maps of opcodes, as VEX, EVEX and XOP number them.
const (
	mapOneByte = 0
	map0F      = 1
	map0F38    = 2
	map0F3A    = 3
	mapEVEX5   = 5
	mapEVEX6   = 6
	mapXOP8    = 8
	mapXOP9    = 9
	mapXOPA    = 10
)

// Opcodes of one byte.
const (
	opMovAbsolute = 0xa0 // to 0xa3: mov of al and eax
	opMovALImm    = 0xb0 // mov $imm8,%al
	opMovEAXImm   = 0xb8 // mov $imm32,%eax
	opX87         = 0xd8 // to 0xdf
	opCall        = 0xe8 // call rel32
	opGroup5      = 0xff // inc, dec, call, jmp, push, by ModRM.reg

	group5Call = 2
)

// Opcodes after 0F.
const (
	opMovControl = 0x20 // to 0x23: mov of control and debug registers
	opCvttToInt  = 0x2c // cvttss2si and its like
	opCvtToInt   = 0x2d // cvtss2si and its like
	opMovmsk     = 0x50
	opEmms       = 0x77 // emms; with VEX vzeroupper, vzeroall
	opExtrq      = 0x78 // extrq, insertq; with EVEX vcvttss2usi
	opCvtToUint  = 0x79 // with EVEX vcvtss2usi
	opMovdFrom   = 0x7e // movd, movq from an xmm register
	opKmovFrom   = 0x93 // kmov to a general register
	opPextrw     = 0xc5
	opPmovmskb   = 0xd7
)

// Opcodes after 0F 38.
const (
	opGeneral38 = 0xe0 // from here on VEX opcodes use general registers
	opBls       = 0xf3 // blsr, blsmsk, blsi
	opMulx      = 0xf6
)

// Opcodes after 0F 3A.
const (
	opPextrb    = 0x14
	opPextrw3A  = 0x15
	opPextrd    = 0x16
	opExtractps = 0x17
	opRorx      = 0xf0
)

// Whole instructions that code is compared with.
const (
	bytesEndbr32    = "\xf3\x0f\x1e\xfb"
	bytesEndbr64    = "\xf3\x0f\x1e\xfa"
	bytesRdpkru     = "\x0f\x01\xee"
	bytesSyscall    = "\x0f\x05"
	bytesVzeroall   = "\xc5\xfc\x77"
	bytesVzeroupper = "\xc5\xf8\x77"
	bytesWrpkru     = "\x0f\x01\xef"
	bytesXorEAX     = "\x31\xc0" // xor %eax,%eax
	bytesXorEBP     = "\x31\xed" // xor %ebp,%ebp; after REX.W, %rbp

	bytesInt3   = "\xcc"
	bytesIntImm = "\xcd\x03"             // int $3
	bytesNop    = "\x90"                 // nop
	bytesNop2   = "\x66\x90"             // xchg %ax,%ax
	bytesNopw   = "\x66\x0f\x1f"         // nopw
	bytesNopl   = "\x0f\x1f"             // nopl
	bytesCsNopw = "\x66\x2e\x0f\x1f"     // cs nopw
	bytesDataCs = "\x66\x66\x2e\x0f\x1f" // data16 cs nopw
)
