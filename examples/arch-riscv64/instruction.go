// SPDX-License-Identifier: Apache-2.0

package riscv64

import "encoding/binary"

// effect is the effect of an instruction on a frame.
type effect uint8

const (
	other     effect = iota // changes rd, and nothing else that counts
	add                     // rd = rs1 + rs2
	subtract                // rd = rs1 - rs2
	addImm                  // rd = rs1 + imm
	addNumber               // the same, where rs1 has a number: addiw
	number                  // rd = imm
	load                    // rd = 8 bytes at rs1 + imm
	store                   // rs2 to the size bytes at rs1 + imm
	branch                  // to imm from here, or on
	jump                    // to imm from here
	jumpTo                  // to the address in rs1
	call                    // and on, when the callee returns
	stop                    // nothing follows
)

// instruction is a decoded instruction. Registers have their DWARF numbers.
type instruction struct {
	effect       effect
	length       int
	size         int // of the stored value, in bytes
	rd, rs1, rs2 uint32
	imm          int64
}

// decode decodes the first instruction of code; ok is false where there is none.
func decode(code []byte) (decoded instruction, ok bool) {
	if len(code) < 2 {
		return decoded, false
	}
	short := binary.LittleEndian.Uint16(code)
	if short&3 != 3 {
		word, ok := expand(uint32(short))
		if !ok {
			return instruction{effect: stop, length: 2}, true
		}
		decoded = decodeWord(word)
		decoded.length = 2
		return decoded, true
	}
	if short&0x1f == 0x1f || len(code) < 4 { // longer than 4 bytes
		return decoded, false
	}
	decoded = decodeWord(binary.LittleEndian.Uint32(code))
	decoded.length = 4
	return decoded, true
}

// Major opcodes (ISA manual, "RISC-V base opcode map").
const (
	opLoad      = 0x03
	opLoadFP    = 0x07
	opImm       = 0x13
	opImm32     = 0x1b
	opStore     = 0x23
	opStoreFP   = 0x27
	opOp        = 0x33
	opLUI       = 0x37
	opMADD      = 0x43
	opMSUB      = 0x47
	opNMSUB     = 0x4b
	opNMADD     = 0x4f
	opFP        = 0x53
	opVector    = 0x57
	opBranch    = 0x63
	opSystem    = 0x73
	funct3      = 7 << 12
	doubleWidth = 3 << 12 // the funct3 of loads and stores of 8 bytes
	wordECALL   = 0x73

	// The funct5 of opFP whose results are integers.
	fpCompare       = 0x14
	fpToInteger     = 0x18
	fpMoveToInteger = 0x1c
)

// decodeWord decodes an instruction of 4 bytes.
func decodeWord(w uint32) instruction {
	in := instruction{rd: rd(w), rs1: rs1(w), rs2: w >> 20 & 31}
	switch w & 0x7f {
	case opLUI:
		in.effect, in.imm = number, immediateU(w)
	case opImm, opImm32:
		in.imm = immediateI(w)
		switch {
		case w&funct3 != 0:
		case w&0x7f == opImm:
			in.effect = addImm
		default:
			in.effect = addNumber
		}
	case opOp:
		switch w>>25<<3&0x3f8 | w>>12&7 {
		case 0:
			in.effect = add
		case 0x20 << 3:
			in.effect = subtract
		}
	case opLoad, opLoadFP:
		if w&0x7f == opLoadFP {
			in.rd += f0
		}
		if w&funct3 == doubleWidth {
			in.effect, in.imm = load, immediateI(w)
		}
	case opStore, opStoreFP:
		in.store(w)
	case opBranch:
		in.effect, in.imm, in.rd = branch, immediateB(w), zero
	case opJAL:
		in.effect, in.imm = jump, immediateJ(w)
		in.link()
	case opJALR:
		in.effect, in.imm = jumpTo, immediateI(w)
		in.link()
	case opSystem:
		if w != wordECALL && w&funct3 == 0 {
			in.effect = stop // ebreak, and instructions of operating systems
		}
	case opFP:
		if f := w >> 27; f != fpCompare && f != fpToInteger && f != fpMoveToInteger {
			in.rd += f0
		}
	case opMADD, opMSUB, opNMSUB, opNMADD:
		in.rd += f0
	case opVector:
		switch f := w >> 12 & 7; {
		case f == 1: // vfmv.f.s among others
			in.rd += f0
		case f != 2 && f != 7: // except vmv.x.s and vsetvl
			in.rd = zero
		}
	}
	return in
}

// link makes a jump that keeps the return address a call. One that keeps it in another
// register than ra calls a helper that changes the frame: the state after it is unknown.
func (i *instruction) link() {
	switch i.rd {
	case zero:
	case ra:
		i.effect = call
	default:
		i.effect = stop
	}
}

func immediateS(w uint32) int64 { return int64(int32(w)>>25<<5) | int64(w>>7&31) }
func immediateB(w uint32) int64 {
	return int64(int32(w&0x80000000)>>19) | int64(w<<4&0x800|w>>20&0x7e0|w>>7&0x1e)
}

// bits moves the bits high to low of a compressed instruction to the bit shift.
func bits(c uint32, high, low, shift uint) uint32 { return c >> low & (1<<(high-low+1) - 1) << shift }

// signed extends the sign of a number of width bits.
func signed(n uint32, width uint) uint32 { return uint32(int32(n<<(32-width)) >> (32 - width)) }

func wordI(op, f3, rd, rs1, imm uint32) uint32 { return op | rd<<7 | f3<<12 | rs1<<15 | imm<<20 }
func wordS(op, f3, rs1, rs2, imm uint32) uint32 {
	return op | imm&31<<7 | f3<<12 | rs1<<15 | rs2<<20 | imm>>5<<25
}
func wordR(f7, rd, rs1, rs2 uint32) uint32 { return opOp | rd<<7 | rs1<<15 | rs2<<20 | f7<<25 }
func wordB(f3, rs1, imm uint32) uint32 {
	return opBranch | imm>>11&1<<7 | imm>>1&15<<8 | f3<<12 | rs1<<15 | imm>>5&63<<25 | imm>>12&1<<31
}
func wordJ(rd, imm uint32) uint32 {
	return opJAL | rd<<7 | imm>>12&255<<12 | imm>>11&1<<20 | imm>>1&1023<<21 | imm>>20&1<<31
}

// store decodes a store.
func (i *instruction) store(w uint32) {
	i.effect, i.imm, i.size, i.rd = store, immediateS(w), 1<<(w>>12&3), zero
	if w&0x7f == opStoreFP {
		i.rs2 += f0
		if w>>14&1 != 0 { // a vector, whose size is not known
			i.effect = other
		}
	}
}

// expand returns the instruction of 4 bytes that a compressed one stands for (ISA manual,
// "C" extension, "RVC Instruction Set Listings"). ok is false for instructions that are
// undefined, that trap, or that other extensions define.
func expand(c uint32) (word uint32, ok bool) {
	rd, rs2 := c>>7&31, c>>2&31
	rdShort, rs1Short := 8+(c>>2&7), 8+(c>>7&7)
	imm6 := signed(bits(c, 12, 12, 5)|bits(c, 6, 2, 0), 6)
	scaled8 := bits(c, 12, 10, 3) | bits(c, 6, 5, 6)
	scaled4 := bits(c, 12, 10, 3) | bits(c, 6, 6, 2) | bits(c, 5, 5, 6)
	loadSP8 := bits(c, 12, 12, 5) | bits(c, 6, 5, 3) | bits(c, 4, 2, 6)
	storeSP8 := bits(c, 12, 10, 3) | bits(c, 9, 7, 6)
	switch c>>13<<2 | c&3 {
	case 0<<2 | 0: // c.addi4spn
		imm := bits(c, 12, 11, 4) | bits(c, 10, 7, 6) | bits(c, 6, 6, 2) | bits(c, 5, 5, 3)
		return wordI(opImm, 0, rdShort, sp, imm), imm != 0
	case 1<<2 | 0:
		return wordI(opLoadFP, 3, rdShort, rs1Short, scaled8), true
	case 2<<2 | 0:
		return wordI(opLoad, 2, rdShort, rs1Short, scaled4), true
	case 3<<2 | 0:
		return wordI(opLoad, 3, rdShort, rs1Short, scaled8), true
	case 5<<2 | 0:
		return wordS(opStoreFP, 3, rs1Short, rdShort, scaled8), true
	case 6<<2 | 0:
		return wordS(opStore, 2, rs1Short, rdShort, scaled4), true
	case 7<<2 | 0:
		return wordS(opStore, 3, rs1Short, rdShort, scaled8), true
	case 0<<2 | 1:
		return wordI(opImm, 0, rd, rd, imm6), true
	case 1<<2 | 1: // c.addiw
		return wordI(opImm32, 0, rd, rd, imm6), rd != 0
	case 2<<2 | 1:
		return wordI(opImm, 0, rd, zero, imm6), true
	case 3<<2 | 1:
		if rd == sp { // c.addi16sp
			imm := signed(bits(c, 12, 12, 9)|bits(c, 6, 6, 4)|bits(c, 5, 5, 6)|bits(c, 4, 3, 7)|bits(c, 2, 2, 5), 10)
			return wordI(opImm, 0, sp, sp, imm), imm != 0
		}
		return opLUI | rd<<7 | imm6<<12, imm6 != 0
	case 4<<2 | 1: // arithmetic, which does not affect frames
		return wordI(opImm, 7, rs1Short, rs1Short, 0), true
	case 5<<2 | 1:
		return wordJ(zero, signed(bits(c, 12, 12, 11)|bits(c, 11, 11, 4)|bits(c, 10, 9, 8)|bits(c, 8, 8, 10)|
			bits(c, 7, 7, 6)|bits(c, 6, 6, 7)|bits(c, 5, 3, 1)|bits(c, 2, 2, 5), 12)), true
	case 6<<2 | 1, 7<<2 | 1:
		return wordB(c>>13&1, rs1Short, signed(bits(c, 12, 12, 8)|bits(c, 11, 10, 3)|bits(c, 6, 5, 6)|bits(c, 4, 3, 1)|bits(c, 2, 2, 5), 9)), true
	case 0<<2 | 2: // c.slli
		return wordI(opImm, 1, rd, rd, bits(c, 12, 12, 5)|rs2), true
	case 1<<2 | 2:
		return wordI(opLoadFP, 3, rd, sp, loadSP8), true
	case 2<<2 | 2:
		return wordI(opLoad, 2, rd, sp, bits(c, 12, 12, 5)|bits(c, 6, 4, 2)|bits(c, 3, 2, 6)), rd != 0
	case 3<<2 | 2:
		return wordI(opLoad, 3, rd, sp, loadSP8), rd != 0
	case 4<<2 | 2:
		return expandMove(c>>12&1, rd, rs2)
	case 5<<2 | 2:
		return wordS(opStoreFP, 3, sp, rs2, storeSP8), true
	case 6<<2 | 2:
		return wordS(opStore, 2, sp, rs2, bits(c, 12, 9, 2)|bits(c, 8, 7, 6)), true
	case 7<<2 | 2:
		return wordS(opStore, 3, sp, rs2, storeSP8), true
	}
	return 0, false
}

// expandMove expands c.jr, c.mv, c.jalr and c.add; c.ebreak is a case of these.
func expandMove(isSecond, rd, rs2 uint32) (word uint32, ok bool) {
	switch {
	case rs2 == 0:
		return wordI(opJALR, 0, isSecond*ra, rd, 0), rd != 0
	case isSecond == 0:
		return wordR(0, rd, zero, rs2), true
	}
	return wordR(0, rd, rd, rs2), true
}
