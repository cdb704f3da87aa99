// SPDX-License-Identifier: Apache-2.0

package x86code

// encoding is the layout of one instruction: the places of its parts, not its meaning. It
// is found by tables of its own, not by the disassembler, which takes some instructions
// for shorter or longer ones (endbr64, vzeroupper) and does not know all. Intel SDM
// volume 2, chapter 2 and appendix A; AMD APM volume 3 for XOP.
type encoding struct {
	length    int
	kind      encodingKind
	opcodeMap byte // mapOneByte and so on
	opcode    byte
	rex       byte  // 0 without; of VEX, EVEX and XOP the same bits
	vector    byte  // the register of VEX.vvvv
	simd      byte  // the mandatory prefix: 0, prefixOperand16, prefixRep or prefixRepne
	operand16 bool  // the prefix for 16-bit operands
	address   uint8 // bits of an address: 64, 32 or 16
	hasModRM  bool
	modRM     byte
	behind    uint8 // the offset of the bytes behind ModRM: SIB, displacement
	immediate int   // bytes, at the end
}

type encodingKind byte

const (
	legacy encodingKind = iota
	vex
	evex
	xop
)

// layout finds the layout of the instruction at the start of code. ok is false
// where there is none, or code ends inside it.
func (m *Mode) layout(code []byte) (e encoding, ok bool) {
	r := layoutReader{code: code[:min(len(code), MaxInstruction)], mode: m}
	e.address = uint8(8 * m.Word) //nolint:gosec // 64 or 32
	op, ok := r.prefixes(&e)
	if !ok {
		return e, false
	}
	class, ok := r.opcode(&e, op)
	if !ok || class == bad {
		return e, false
	}
	if class&modrm != 0 {
		e.hasModRM = true
		e.modRM = r.next()
		e.behind = uint8(r.offset) //nolint:gosec // at most maxInstruction and some
		r.offset += e.displacement(r.code, r.offset)
	}
	if class&rel32 != 0 && e.operand16 && m.Word == 8 && !e.isWide() {
		return e, false
	}
	e.immediate = e.immediateSize(class)
	e.length = r.offset + e.immediate
	return e, e.length <= len(r.code)
}

// layoutReader reads the bytes of an instruction. Behind the end of the code it reads
// zeros: the length then shows that the instruction does not end in the code.
type layoutReader struct {
	mode   *Mode
	code   []byte
	offset int
}

// registerForm is the lowest ModRM that names a register. In 32-bit mode VEX and EVEX are
// told by it from the instructions les, lds and bound, which address memory.
const registerForm = 0xc0

// peek is the byte that next returns.
func (r *layoutReader) peek() (b byte) {
	if r.offset < len(r.code) {
		b = r.code[r.offset]
	}
	return b
}

// narrow removes the bits that extend registers, which do not count in 32-bit mode.
func (r *layoutReader) narrow(e *encoding) {
	if r.mode.Word == 4 {
		e.rex, e.vector = 0, e.vector&7
	}
}

func (r *layoutReader) next() (b byte) {
	b = r.peek()
	r.offset++
	return b
}

// isPrefix has the bytes that are prefixes, without REX.
var isPrefix = [256]bool{
	prefixES: true, prefixCS: true, prefixSS: true, prefixDS: true, prefixFS: true, prefixGS: true,
	prefixOperand16: true, prefixAddress32: true, prefixLock: true, prefixRepne: true, prefixRep: true,
}

// prefixes reads the prefixes, and returns the byte behind them.
func (r *layoutReader) prefixes(e *encoding) (op byte, ok bool) {
	for {
		if r.offset >= len(r.code) {
			return 0, false
		}
		if op = r.next(); !isPrefix[op] {
			break
		}
		switch op {
		case prefixOperand16:
			e.operand16 = true
			if e.simd == 0 {
				e.simd = op
			}
		case prefixAddress32:
			e.address = uint8(4 * r.mode.Word) //nolint:gosec // 32 or 16
		case prefixRepne, prefixRep:
			e.simd = op
		}
	}
	if op&rexMask == rexBase && r.mode.Word == 8 { // REX counts only right before the opcode
		e.rex = op
		op = r.next()
		if op&rexMask == rexBase || isPrefix[op] {
			return 0, false
		}
	}
	return op, true
}

// opcode reads the opcode that begins with op, and returns its class.
func (r *layoutReader) opcode(e *encoding, op byte) (class uint16, ok bool) {
	plain := e.rex == 0 && e.simd == 0 && (r.mode.Word == 8 || op == xopByte || r.peek() >= registerForm)
	switch {
	case op == escape:
		return r.escapedOpcode(e), true
	case op == vex2 && plain:
		p := r.next()
		e.kind, e.opcodeMap = vex, map0F
		e.rex = rexBase | ^p>>5&rexR
		e.vector = ^p >> 3 & 15
		e.simd = vexPrefix[p&3]
		r.narrow(e)
	case op == vex3 && plain:
		p, _ := r.vectorBytes(e)
		e.kind, e.opcodeMap = vex, p&31
	case op == evexByte && plain:
		p, q := r.vectorBytes(e)
		r.next()
		if p&8 != 0 || q&4 == 0 {
			return bad, false // APX's variants of EVEX are not read
		}
		e.kind, e.opcodeMap = evex, p&7
	case op == xopByte && plain && r.offset < len(r.code) && r.code[r.offset]&31 >= mapXOP8:
		p, _ := r.vectorBytes(e)
		e.kind, e.opcodeMap, e.simd = xop, p&31, 0
	default:
		e.opcode = op
		return r.mode.oneByte[op], true
	}
	e.opcode = r.next()
	return vectorClass(e), true
}

// vectorBytes reads the two bytes that VEX of three bytes, EVEX and XOP have in common.
func (r *layoutReader) vectorBytes(e *encoding) (p, q byte) {
	p, q = r.next(), r.next()
	e.rex = rexBase | ^p>>5&(rexR|rexX|rexB) | q>>4&rexW
	e.vector = ^q >> 3 & 15
	e.simd = vexPrefix[q&3]
	r.narrow(e)
	return p, q
}

// escapedOpcode reads the opcode behind 0F.
func (r *layoutReader) escapedOpcode(e *encoding) (class uint16) {
	op := r.next()
	switch op {
	case escape38:
		e.opcodeMap, class = map0F38, modrm
		op = r.next()
	case escape3A:
		e.opcodeMap, class = map0F3A, modrm8
		op = r.next()
	default:
		e.opcodeMap, class = map0F, escaped[op]
		if op == opExtrq && e.simd != 0 {
			class = modrm | imm16 // two immediates of a byte
		}
	}
	e.opcode = op
	return class
}

// isWide reports whether the operands have 64 bits by REX.W.
func (e *encoding) isWide() bool { return e.rex&rexW != 0 }

// immediateSize is the number of bytes behind the displacement in an instruction of a
// class.
func (e *encoding) immediateSize(class uint16) (size int) {
	if class&group3 != 0 && e.modRMReg() > 1 {
		class &^= imm8 | immZ
	}
	if class&imm8 != 0 {
		size++
	}
	if class&imm16 != 0 {
		size += 2
	}
	switch {
	case class&immV != 0 && e.isWide():
		size += 8
	case class&(immZ|immV|rel32) != 0 && e.operand16 && !e.isWide(), class&moffs != 0 && e.address == 16:
		size += 2
	case class&(immZ|immV|rel32) != 0, class&moffs != 0 && e.address == 32:
		size += 4
	case class&moffs != 0:
		size += 8
	}
	return size
}

// vexPrefix has the mandatory prefixes as VEX, EVEX and XOP number them.
var vexPrefix = [4]byte{0, prefixOperand16, prefixRep, prefixRepne}

// vectorClass classes the opcodes of VEX, EVEX and XOP.
func vectorClass(e *encoding) uint16 {
	switch {
	case e.kind == xop:
		switch e.opcodeMap {
		case mapXOP8:
			return modrm8
		case mapXOP9:
			return modrm
		case mapXOPA:
			return modrmZ
		}
	case e.opcodeMap == map0F && e.opcode == opEmms && e.kind == vex:
		return none // vzeroupper, vzeroall
	case e.opcodeMap == map0F:
		return escaped[e.opcode] & modrm8
	case e.opcodeMap == map0F38:
		return modrm
	case e.opcodeMap == map0F3A:
		return modrm8
	case (e.opcodeMap == mapEVEX5 || e.opcodeMap == mapEVEX6) && e.kind == evex:
		return modrm
	}
	return bad
}

// displacement returns the number of bytes of the SIB byte and the displacement, which
// begin at code[i].
func (e *encoding) displacement(code []byte, i int) int {
	mod, rm := e.modRM>>6, e.modRM&7
	n := 0
	if mod == 3 || e.opcodeMap == map0F && e.opcode&^3 == opMovControl && e.kind == legacy {
		return 0 // moves of control and debug registers take mod for 3
	}
	if e.address == 16 {
		return displacement16(mod, rm)
	}
	if rm == 4 {
		n = 1
		if mod == 0 && i < len(code) && code[i]&7 == 5 {
			return 5
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	return n
}

// displacement16 is the number of bytes of a displacement of an address of 16 bits (table
// 2-1), which has no SIB byte.
func displacement16(mod, rm uint8) int {
	switch {
	case mod == 1:
		return 1
	case mod == 2, mod == 0 && rm == 6:
		return 2
	}
	return 0
}

// modRMReg is the field of ModRM that names a register or extends the opcode.
func (e *encoding) modRMReg() uint8 { return e.modRM >> 3 & 7 }

// reg and rm are the registers that ModRM names; rm only where it is not memory.
func (e *encoding) reg() uint8 { return e.modRMReg() | e.rex<<1&8 }
func (e *encoding) rm() (register uint8, ok bool) {
	return e.modRM&7 | e.rex<<3&8, e.modRM>>6 == 3
}

// writes returns the general registers, a bit each in the order of their
// encoding, that a VEX, EVEX or XOP instruction may write.
func (e *encoding) writes() uint16 {
	reg := uint16(1) << e.reg()
	vector := uint16(1) << e.vector
	var rm uint16
	if r, ok := e.rm(); ok {
		rm = 1 << r
	}
	switch e.opcodeMap {
	case map0F:
		switch e.opcode {
		case opCvttToInt, opCvtToInt, opMovmsk, opExtrq, opCvtToUint, opKmovFrom, opPextrw, opPmovmskb:
			return reg
		case opMovdFrom:
			return rm
		}
	case map0F38:
		switch {
		case e.opcode == opBls:
			return vector
		case e.opcode == opMulx:
			return reg | vector
		case e.opcode >= opGeneral38:
			return reg | vector | rm
		}
	case map0F3A:
		switch e.opcode {
		case opPextrb, opPextrw3A, opPextrd, opExtractps:
			return rm
		case opRorx:
			return reg
		}
	case mapEVEX5, mapXOP9, mapXOPA:
		return reg | vector | rm
	}
	return 0
}
