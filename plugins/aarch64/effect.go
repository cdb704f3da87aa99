// SPDX-License-Identifier: Apache-2.0

package aarch64

import "math/bits"

// This file decodes the effects of instructions on frames by the bits of their words (Arm
// Architecture Reference Manual for A-profile, C4.1), in a table.

// Registers as instructions number them. 31 is sp or the zero register, depending on the
// instruction.
const (
	gprX29   = 29
	gprX30   = 30
	gprSP    = 31
	gprCount = 32
	gprNone  = 0xff
)

type effectKind uint8

const (
	effectUnread  effectKind = iota // not read yet
	effectNone                      // no instruction
	effectOther                     //
	effectMove                      // dst = src + imm
	effectSum                       // dst = src + sign*index
	effectSet                       // dst = imm
	effectInsert                    // dst's 16 bits at shift become imm
	effectAccess                    // loads or stores first and second at base
	effectSign                      // x30 is signed
	effectAuth                      // x30 is authenticated
	effectStrip                     // x30 loses its signature
	effectCompare                   // sp and index are compared
	effectCall                      // from here on, kinds may leave the straight line
	effectBranch                    // to target, or on
	effectJump                      // to target where direct
	effectReturn                    //
	effectStop                      // nothing is executed behind it
)

// effect is the effect of an instruction on a frame.
type effect struct {
	kind     effectKind
	dst, src uint8
	index    uint8
	sign     int8
	shift    uint8
	direct   bool
	signed   bool // the return or jump authenticates its target
	notEqual bool // the branch is taken where a comparison found a difference

	isLoad, isVector, isPair bool
	first, second            uint8
	size                     uint8 // of each register, bytes
	writeback                writeback

	imm      int32
	target   int32 // of direct branches, from the instruction, in bytes
	clobbers uint32
	vectors  uint32 // vector registers that are written
}

// writeback is when the offset is added to the base register.
type writeback uint8

const (
	offsetOnly writeback = iota
	postIndex
	preIndex
	noOffset // the address is not base plus a constant
)

// decoding reads the words w with w & mask == value.
type decoding struct {
	mask, value uint32
	read        func(w uint32, e *effect)
}

// decodings are tried in order; the first that fits counts.
var decodings = [...]decoding{
	{0xffff0000, 0x00000000, stops},         // UDF
	{0x7c000000, 0x14000000, branch},        // B, BL
	{0xff00001f, 0x54000001, branchNE},      // B.NE
	{0xff000000, 0x54000000, branch19},      // B.cond, BC.cond
	{0x7e000000, 0x34000000, branch19},      // CBZ, CBNZ
	{0x7e000000, 0x36000000, branch14},      // TBZ, TBNZ
	{0x7e000000, 0x74000000, branch9},       // CBcc
	{0xfe000000, 0xd6000000, indirect},      // BR, BLR, RET, ERET and the authenticated ones
	{0xfffff01f, 0xd503201f, hint},          // hints, among them PACIASP and AUTIASP
	{0xff200000, 0xd4200000, stops},         // BRK
	{0xffe00000, 0xd4400000, stops},         // HLT
	{0xffe0001f, 0xd4000001, systemCall},    // SVC
	{0xfff00000, 0xd5300000, general},       // MRS
	{0xfff80000, 0xd5280000, general},       // SYSL
	{0xff000000, 0xd5000000, nothing},       // the rest of the system instructions
	{0x1f800000, 0x11000000, addImmediate},  // ADD, SUB (immediate)
	{0x1f800000, 0x11800000, generalOrSP},   // ADDG, SUBG
	{0x1f800000, 0x12000000, logical},       // AND, ORR, EOR, ANDS (immediate)
	{0x1f800000, 0x12800000, moveWide},      // MOVN, MOVZ, MOVK
	{0x1c000000, 0x10000000, general},       // ADR, ADRP, bit fields, EXTR
	{0xffe0ffe0, 0xaa0003e0, moveRegister},  // MOV (register)
	{0xffe0f000, 0x8b206000, sumRegister},   // ADD (extended register), UXTX
	{0xffe0f000, 0xcb206000, sumRegister},   // SUB (extended register), UXTX
	{0xffe0ffff, 0xeb2063ff, compareSP},     // CMP (extended register) of sp, UXTX
	{0x7fe00000, 0x0b200000, sumExtended},   // ADD (extended register)
	{0x3fe00000, 0x0b200000, generalOrSP},   // SUB (extended register)
	{0xffe08000, 0x8b000000, sumShifted},    // ADD (shifted register)
	{0x1fe00000, 0x1a400000, nothing},       // CCMN, CCMP
	{0x0e000000, 0x0a000000, general},       // data processing (register)
	{0x3a000000, 0x28000000, pair},          // LDP, STP
	{0x3b000000, 0x39000000, singleScaled},  // LDR, STR (unsigned offset)
	{0x3b200c00, 0x38200800, singleIndexed}, // LDR, STR (register)
	{0x3b200c00, 0x38200000, atomic},        // atomic operations
	{0x3b200400, 0x38200400, atomic},        // LDRAA, LDRAB
	{0x3b200000, 0x38000000, singleOffset},  // LDUR, LDR (immediate), LDTR
	{0x3b000000, 0x18000000, literal},       // LDR (literal)
	{0xbf000000, 0x99000000, tagsOrCopies},  // tags, memory copies, LDAPUR
	{0x3f000000, 0x19000000, tagsOrCopies},  //
	{0x3f000000, 0x08000000, exclusive},     // LDXR, STXR, CAS
	{0xbe000000, 0x0c000000, structure},     // LD1 to ST4
	{0xffa0f800, 0x04205000, generalOrSP},   // ADDVL, ADDSVL, ADDPL, ADDSPL
	{0x1e000000, 0x04000000, vectorAndGeneral},
	{0x1e000000, 0x00000000, vectorAndGeneral}, // SME
	{0x0e000000, 0x0e000000, floating},
}

// byTopByte has for each top byte of a word the bits of the decodings that may fit it.
var byTopByte = func() (table [256]uint64) {
	for top := range uint32(len(table)) {
		for i := range decodings {
			if d := &decodings[i]; (top<<24^d.value)&d.mask>>24 == 0 {
				table[top] |= 1 << i
			}
		}
	}
	return table
}()

// _ fails to compile unless each decoding has a bit.
const _ = uint(64 - len(decodings))

// readEffect decodes a word into e, which was zero. The kind is effectNone for a word
// that no table has.
func readEffect(w uint32, e *effect) {
	e.kind = effectNone
	for may := byTopByte[w>>24]; may != 0; may &= may - 1 {
		if d := &decodings[bits.TrailingZeros64(may)]; w&d.mask == d.value {
			e.kind = effectOther
			e.dst, e.src, e.index = gprNone, gprNone, gprNone
			e.first, e.second = gprNone, gprNone
			d.read(w, e)
			return
		}
	}
}

func nothing(uint32, *effect) {}

func stops(_ uint32, e *effect) { e.kind = effectStop }

func rd(w uint32) uint8  { return uint8(w & 31) }
func rn(w uint32) uint8  { return uint8(w >> 5 & 31) }
func rt2(w uint32) uint8 { return uint8(w >> 10 & 31) }
func rm(w uint32) uint8  { return uint8(w >> 16 & 31) }

// signed is the number in count bits of w from bit first on.
func signed(w uint32, first, count uint) int64 {
	return int64(int32(w<<(32-first-count)) >> (32 - count)) //nolint:gosec // its bits
}

// immediate is signed as an int32.
func immediate(w uint32, first, count uint) int32 { return int32(signed(w, first, count)) } //nolint:gosec // of at most 26 bits

// general writes register Rd, which is not sp.
func general(w uint32, e *effect) { e.writes(rd(w)) }

// writes records that a register becomes unknown; 31 is the zero register.
func (e *effect) writes(r uint8) {
	if r != gprSP {
		e.clobbers |= 1 << r
	}
}

// generalOrSP writes register Rd, which may be sp.
func generalOrSP(w uint32, e *effect) { e.clobbers |= 1 << rd(w) }

func branch(w uint32, e *effect) {
	e.kind, e.direct, e.target = effectJump, true, 4*immediate(w, 0, 26)
	if w>>31 != 0 {
		e.kind = effectCall
	}
}

func branchNE(w uint32, e *effect) {
	branch19(w, e)
	e.notEqual = true
}

func branch19(w uint32, e *effect) { e.branchTo(4 * immediate(w, 5, 19)) }
func branch14(w uint32, e *effect) { e.branchTo(4 * immediate(w, 5, 14)) }
func branch9(w uint32, e *effect)  { e.branchTo(4 * immediate(w, 5, 9)) }

func (e *effect) branchTo(target int32) {
	e.kind, e.direct, e.target = effectBranch, true, target
}

func indirect(w uint32, e *effect) {
	switch w >> 21 & 7 { // bit 24 says that a modifier is a register
	case 0:
		e.kind, e.dst, e.signed = effectJump, rn(w), w>>11&1 != 0
	case 1:
		e.kind, e.dst = effectCall, rn(w)
	case 2:
		e.kind, e.dst, e.signed = effectReturn, rn(w), w>>11&1 != 0
		if e.signed {
			e.dst = gprX30
		}
	default:
		e.kind = effectStop // ERET, DRPS
	}
}

// hint reads CRm:op2.
func hint(w uint32, e *effect) {
	switch w >> 5 & 0x7f {
	case 24, 25, 26, 27: // PACIAZ, PACIASP, PACIBZ, PACIBSP
		e.kind = effectSign
	case 28, 29, 30, 31: // AUTIAZ, AUTIASP, AUTIBZ, AUTIBSP
		e.kind = effectAuth
	case 7: // XPACLRI
		e.kind = effectStrip
	case 8, 10, 12, 14: // PACIA1716 and others
		e.writes(17)
	}
}

func systemCall(_ uint32, e *effect) { e.writes(0) }

func addImmediate(w uint32, e *effect) {
	if w>>31 == 0 || w>>29&1 != 0 { // of 32 bits, or one that sets flags
		if w>>29&1 != 0 {
			e.writes(rd(w))
		} else {
			generalOrSP(w, e)
		}
		return
	}
	e.kind, e.dst, e.src = effectMove, rd(w), rn(w)
	e.imm = int32(w >> 10 & 0xfff << (12 * (w >> 22 & 1))) //nolint:gosec // of 24 bits
	if w>>30&1 != 0 {
		e.imm = -e.imm
	}
}

func logical(w uint32, e *effect) {
	if w>>29&3 == 3 {
		e.writes(rd(w))
		return
	}
	generalOrSP(w, e)
}

// moveWide reads moves of constants. Constants that are no size of a frame are not kept.
func moveWide(w uint32, e *effect) {
	opc, shift := w>>29&3, 16*(w>>21&3)
	imm := int64(w>>5&0xffff) << shift
	if rd(w) == gprSP {
		return
	}
	e.dst, e.shift = rd(w), uint8(shift) //nolint:gosec // at most 48
	switch {
	case opc == 0 && w>>31 != 0:
		imm = ^imm
	case opc == 0:
		imm = int64(uint32(^imm)) //nolint:gosec // the lower 32 bits
	}
	switch {
	case opc == 1 || imm != int64(int32(imm)): //nolint:gosec // compared
		e.writes(rd(w))
	case opc == 3:
		e.kind, e.imm = effectInsert, int32(imm) //nolint:gosec // was compared
	default:
		e.kind, e.imm = effectSet, int32(imm) //nolint:gosec // was compared
	}
}

func moveRegister(w uint32, e *effect) {
	switch {
	case rd(w) == gprSP:
	case rm(w) == gprSP: // the zero register
		e.kind, e.dst = effectSet, rd(w)
	default:
		e.kind, e.dst, e.src = effectMove, rd(w), rm(w)
	}
}

func sumRegister(w uint32, e *effect) {
	if rm(w) == gprSP || w>>10&7 > 4 {
		generalOrSP(w, e)
		return
	}
	e.kind, e.dst, e.src, e.index, e.sign, e.shift = effectSum, rd(w), rn(w), rm(w), 1, uint8(w>>10&7)
	if w>>30&1 != 0 {
		e.sign = -1
	}
}

// sumExtended adds part of a register, which is unknown: compilers compute the targets of
// jumps so.
func sumExtended(w uint32, e *effect) {
	if rd(w) == gprSP || rn(w) == gprSP || w>>31 == 0 {
		generalOrSP(w, e)
		return
	}
	e.kind, e.dst, e.src, e.index, e.sign = effectSum, rd(w), rn(w), gprNone, 1
}

// sumShifted adds a register; 31 is the zero register.
func sumShifted(w uint32, e *effect) {
	if rd(w) == gprSP || rn(w) == gprSP || rm(w) == gprSP {
		e.writes(rd(w))
		return
	}
	e.kind, e.dst, e.src, e.index, e.sign, e.shift = effectSum, rd(w), rn(w), rm(w), 1, uint8(w>>10&0x3f)
}

func compareSP(w uint32, e *effect) { e.kind, e.index = effectCompare, rm(w) }

func pair(w uint32, e *effect) {
	opc, isVector, isLoad := w>>30, w>>26&1 != 0, w>>22&1 != 0
	size := uint8(4 << (opc >> 1))
	switch {
	case isVector:
		size = uint8(4 << opc)
	case opc == 1 && !isLoad: // STGP: two registers of 8 bytes, the offset counts 16
		size = 8
	}
	scale := int32(size)
	if !isVector && opc == 1 && !isLoad {
		scale = 16
	}
	e.access(isLoad, isVector, size, w)
	e.isPair, e.second, e.imm = true, rt2(w), immediate(w, 15, 7)*scale
	e.writeback = [...]writeback{offsetOnly, postIndex, offsetOnly, preIndex}[w>>23&3]
	if isLoad && !isVector && size != 8 {
		e.writes(rt2(w))
	}
	if isLoad && isVector {
		e.vectors |= 1 << rt2(w)
	}
}

// access begins a load or store of Rt at Rn.
func (e *effect) access(isLoad, isVector bool, size uint8, w uint32) {
	e.kind, e.isLoad, e.isVector, e.size = effectAccess, isLoad, isVector, size
	e.first, e.src = rd(w), rn(w)
	if isLoad && !isVector && size != 8 {
		e.writes(rd(w))
	}
	if isLoad && isVector {
		e.vectors |= 1 << rd(w)
	}
}

// single reads size, V and opc of an access of one register; ok is false for a
// prefetch.
func single(w uint32, e *effect) (ok bool) {
	size, opc := w>>30, w>>22&3
	if w>>26&1 != 0 {
		e.access(opc&1 != 0, true, uint8(1<<(size|opc>>1<<2)), w)
		return true
	}
	if size == 3 && opc == 2 {
		return false
	}
	e.access(opc != 0, false, uint8(1<<size), w)
	if opc > 1 && size != 3 { // a load that extends a sign
		e.writes(rd(w))
	}
	return true
}

func singleScaled(w uint32, e *effect) {
	if single(w, e) {
		e.imm = int32(w>>10&0xfff) * int32(e.size) //nolint:gosec // of 12 bits
	}
}

func singleOffset(w uint32, e *effect) {
	if single(w, e) {
		e.imm = immediate(w, 12, 9)
		e.writeback = [...]writeback{offsetOnly, postIndex, offsetOnly, preIndex}[w>>10&3]
	}
}

func singleIndexed(w uint32, e *effect) {
	if single(w, e) {
		e.writeback = noOffset
	}
}

// atomic operations load Rt; LDRAA may change Rn.
func atomic(w uint32, e *effect) {
	if w>>26&1 != 0 {
		e.vectors |= 1 << rd(w)
		return
	}
	e.writes(rd(w))
	e.writes(rm(w)) // of LDRAA, bits of an offset
	if w>>10&3 == 3 {
		e.clobbers |= 1 << rn(w)
	}
}

func literal(w uint32, e *effect) {
	if w>>26&1 != 0 {
		e.vectors |= 1 << rd(w)
		return
	}
	e.writes(rd(w))
}

// tagsOrCopies may change Rn, Rt and Rm.
func tagsOrCopies(w uint32, e *effect) {
	e.writes(rd(w))
	e.vectors |= 1 << rd(w)
	if w>>10&3 != 0 && !(w>>24 == 0xd9 && w>>10&3 == 2) {
		e.clobbers |= 1 << rn(w)
		e.writes(rm(w))
	}
}

func exclusive(w uint32, e *effect) {
	e.writes(rd(w))
	e.writes(rt2(w))
	e.writes(rm(w))
	if rm(w) < 30 {
		e.writes(rm(w) + 1) // of pairs
	}
	if rd(w) < 30 {
		e.writes(rd(w) + 1)
	}
}

// structure accesses up to four vector registers.
func structure(w uint32, e *effect) {
	if w>>22&1 != 0 {
		for i := range uint8(structureCount(w)) { //nolint:gosec // at most 4
			e.vectors |= 1 << ((rd(w) + i) & 31)
		}
	}
	if w>>23&1 != 0 {
		e.clobbers |= 1 << rn(w)
	}
}

// structureCount is how many vector registers an instruction of LD1 to ST4 names: of one element of each the opcode says
// it by two bits.
func structureCount(w uint32) uint32 {
	if field(w, 24, 1) == 1 {
		return (field(w, 13, 1)<<1 | field(w, 21, 1)) + 1
	}
	if n := structureVectors[field(w, 12, 4)]; n > 0 {
		return n
	}
	return 4
}

// vectorAndGeneral may write a vector or general register; SVE and SME have both.
func vectorAndGeneral(w uint32, e *effect) {
	e.writes(rd(w))
	for i := range uint8(4) {
		e.vectors |= 1 << ((rd(w) + i) & 31)
	}
}

// floating reads floating-point instructions: they write a vector register, except
// comparisons, conversions to integers and moves of elements.
func floating(w uint32, e *effect) {
	switch {
	case w&0xff20fc07 == 0x1e202000, w&0xff200c00 == 0x1e200400: // FCMP, FCCMP
		return
	case w&0x5f20fc00 == 0x1e200000 && w>>16&7&^1 != 2 && w>>16&7 != 7: // FCVT* and FMOV to a general register
		e.writes(rd(w))
		return
	case w&0x5f200000 == 0x1e000000, // fixed point
		w&0xbfe0fc00 == 0x0e003c00, w&0xbfe0fc00 == 0x0e002c00, // UMOV, SMOV
		w&0x9fe0e400 == 0x0e002400: // the same of other elements
		e.writes(rd(w))
	}
	e.vectors |= 1 << rd(w)
}
