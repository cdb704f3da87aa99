package x86_64

// An encoding is the layout of one instruction: where its parts are, without
// what it does. It is found by tables of its own, not by the disassembler,
// which takes some instructions for shorter or longer ones (endbr64,
// vzeroupper) and does not know all. Intel SDM volume 2, chapter 2 and
// appendix A; AMD APM volume 3 for XOP.
type encoding struct {
	length    int
	kind      encodingKind
	opcodeMap byte // 0: one byte, 1: 0F, 2: 0F 38, 3: 0F 3A, above: of VEX, EVEX and XOP
	opcode    byte
	rex       byte // 0 without; of VEX, EVEX and XOP the same bits
	vector    byte // the register of VEX.vvvv
	simd      byte // 0, 66, F3 or F2: the mandatory prefix
	operand16 bool // 66
	address32 bool // 67
	hasModRM  bool
	modRM     byte
	immediate int // bytes, at the end
}

type encodingKind byte

const (
	legacy encodingKind = iota
	vex
	evex
	xop
)

// Classes of opcodes, by what follows them.
const (
	bad  = 0 // no instruction in 64-bit mode
	none = 1 << iota
	modrm
	imm8
	imm16
	immZ   // 4 bytes; 2 with prefix 66
	immV   // 8 bytes with REX.W, else as immZ
	rel32  // 4 bytes; processors disagree on what prefix 66 does
	moffs  // an address: 8 bytes; 4 with prefix 67
	group3 // immediate of the class's size for /0 and /1 only
)

// oneByte classes the opcodes without an escape.
var oneByte = func() (t [256]uint16) {
	for op := range 0x40 { // arithmetic
		t[op] = [8]uint16{modrm, modrm, modrm, modrm, imm8, immZ, bad, bad}[op&7]
	}
	for op := 0x50; op < 0x60; op++ {
		t[op] = none // push, pop
	}
	for op := 0x70; op < 0x80; op++ {
		t[op] = imm8 // jcc rel8
	}
	for op := 0x84; op < 0x90; op++ {
		t[op] = modrm
	}
	for op := 0x90; op < 0xa0; op++ {
		t[op] = none
	}
	for op := 0xa0; op < 0xa4; op++ {
		t[op] = moffs
	}
	for op := 0xa4; op < 0xb0; op++ {
		t[op] = none // string operations
	}
	for op := 0xb0; op < 0xb8; op++ {
		t[op] = imm8
	}
	for op := 0xb8; op < 0xc0; op++ {
		t[op] = immV
	}
	for op := 0xd0; op < 0xe0; op++ {
		t[op] = modrm // shifts, x87
	}
	for op := 0xe0; op < 0xe8; op++ {
		t[op] = imm8 // loops, in, out
	}
	for op := 0xec; op < 0x100; op++ {
		t[op] = none
	}
	for op, class := range map[byte]uint16{
		0x63: modrm, 0x68: immZ, 0x69: modrm | immZ, 0x6a: imm8, 0x6b: modrm | imm8,
		0x6c: none, 0x6d: none, 0x6e: none, 0x6f: none,
		0x80: modrm | imm8, 0x81: modrm | immZ, 0x82: bad, 0x83: modrm | imm8, 0x9a: bad,
		0xa8: imm8, 0xa9: immZ,
		0xc0: modrm | imm8, 0xc1: modrm | imm8, 0xc2: imm16, 0xc3: none,
		0xc6: modrm | imm8, 0xc7: modrm | immZ, 0xc8: imm16 | imm8, 0xc9: none,
		0xca: imm16, 0xcb: none, 0xcc: none, 0xcd: imm8, 0xce: bad, 0xcf: none,
		0xd4: bad, 0xd5: bad, 0xd6: bad, 0xd7: none,
		0xe8: rel32, 0xe9: rel32, 0xea: bad, 0xeb: imm8,
		0xf6: modrm | imm8 | group3, 0xf7: modrm | immZ | group3,
		0xfe: modrm, 0xff: modrm,
	} {
		t[op] = class
	}
	return t
}()

// escaped classes the opcodes after 0F; VEX and EVEX map 1 have the same
// immediates.
var escaped = func() (t [256]uint16) {
	for op := range t {
		t[op] = modrm
	}
	set := func(class uint16, ops ...byte) {
		for _, op := range ops {
			t[op] = class
		}
	}
	set(bad, 0x04, 0x0a, 0x0c, 0x24, 0x25, 0x26, 0x27, 0x36, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f)
	set(none, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0e, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x37, 0x77,
		0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa)
	set(modrm|imm8, 0x0f, 0x70, 0x71, 0x72, 0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6)
	for op := 0x80; op < 0x90; op++ {
		t[op] = rel32
	}
	for op := 0xc8; op < 0xd0; op++ {
		t[op] = none // bswap
	}
	return t
}()

// layout finds the layout of the instruction at the start of code. ok is false
// where there is none, or code ends inside it.
func layout(code []byte) (e encoding, ok bool) {
	if len(code) > maxInstruction {
		code = code[:maxInstruction]
	}
	i := 0
	next := func() (b byte) {
		if i < len(code) {
			b = code[i]
		}
		i++
		return b
	}
	var op byte
prefixes:
	for {
		if i >= len(code) {
			return e, false
		}
		op = next()
		switch op {
		case 0x66:
			e.operand16 = true
			if e.simd == 0 {
				e.simd = op
			}
		case 0x67:
			e.address32 = true
		case 0xf2, 0xf3:
			e.simd = op
		case 0xf0, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65:
		default:
			break prefixes
		}
	}
	if op&0xf0 == 0x40 { // REX counts only right before the opcode
		e.rex = op
		op = next()
		if op&0xf0 == 0x40 || op == 0x66 || op == 0x67 || op == 0xf0 || op == 0xf2 || op == 0xf3 ||
			op == 0x2e || op == 0x36 || op == 0x3e || op == 0x26 || op == 0x64 || op == 0x65 {
			return e, false
		}
	}
	var class uint16
	plain := e.rex == 0 && e.simd == 0
	switch {
	case op == 0xc5 && plain:
		p := next()
		e.kind, e.opcodeMap = vex, 1
		e.rex = 0x40 | ^p>>5&4
		e.vector = ^p >> 3 & 15
		e.simd = vexPrefix[p&3]
		e.opcode = next()
	case op == 0xc4 && plain:
		p, q := next(), next()
		e.kind, e.opcodeMap = vex, p&31
		e.rex = 0x40 | ^p>>5&7 | q>>4&8
		e.vector = ^q >> 3 & 15
		e.simd = vexPrefix[q&3]
		e.opcode = next()
	case op == 0x62 && plain:
		p, q, _ := next(), next(), next()
		if p&8 != 0 || q&4 == 0 {
			return e, false // APX's forms of EVEX are not read
		}
		e.kind, e.opcodeMap = evex, p&7
		e.rex = 0x40 | ^p>>5&7 | q>>4&8
		e.vector = ^q >> 3 & 15
		e.simd = vexPrefix[q&3]
		e.opcode = next()
	case op == 0x8f && plain && i < len(code) && code[i]&31 >= 8:
		p, q := next(), next()
		e.kind, e.opcodeMap = xop, p&31
		e.rex = 0x40 | ^p>>5&7 | q>>4&8
		e.vector = ^q >> 3 & 15
		e.opcode = next()
	case op == 0x0f:
		op = next()
		e.opcodeMap = 1
		switch op {
		case 0x38:
			e.opcodeMap, class = 2, modrm
			op = next()
		case 0x3a:
			e.opcodeMap, class = 3, modrm|imm8
			op = next()
		default:
			class = escaped[op]
			if op == 0x78 && e.simd != 0 {
				class = modrm | imm16 // extrq, insertq: two immediates of a byte
			}
		}
		e.opcode = op
	default:
		e.opcode, class = op, oneByte[op]
	}
	if e.kind != legacy {
		class = vectorClass(&e)
	}
	if class == bad {
		return e, false
	}
	if class&modrm != 0 {
		e.hasModRM = true
		e.modRM = next()
		i += e.displacement(code, i)
	}
	if class&group3 != 0 && e.modRM>>3&7 > 1 {
		class &^= imm8 | immZ
	}
	wide := e.rex&8 != 0
	if class&imm8 != 0 {
		e.immediate++
	}
	if class&imm16 != 0 {
		e.immediate += 2
	}
	switch {
	case class&immV != 0 && wide:
		e.immediate += 8
	case class&(immZ|immV) != 0 && e.operand16 && !wide:
		e.immediate += 2
	case class&(immZ|immV) != 0:
		e.immediate += 4
	case class&rel32 != 0:
		if e.operand16 && !wide {
			return e, false
		}
		e.immediate += 4
	case class&moffs != 0 && e.address32:
		e.immediate += 4
	case class&moffs != 0:
		e.immediate += 8
	}
	e.length = i + e.immediate
	return e, e.length <= len(code)
}

var vexPrefix = [4]byte{0, 0x66, 0xf3, 0xf2}

// vectorClass classes the opcodes of VEX, EVEX and XOP.
func vectorClass(e *encoding) uint16 {
	switch {
	case e.kind == xop:
		switch e.opcodeMap {
		case 8:
			return modrm | imm8
		case 9:
			return modrm
		case 10:
			return modrm | immZ
		}
	case e.opcodeMap == 1 && e.opcode == 0x77 && e.kind == vex:
		return none // vzeroupper, vzeroall
	case e.opcodeMap == 1:
		return escaped[e.opcode] & (modrm | imm8)
	case e.opcodeMap == 2:
		return modrm
	case e.opcodeMap == 3:
		return modrm | imm8
	case (e.opcodeMap == 5 || e.opcodeMap == 6) && e.kind == evex:
		return modrm
	}
	return bad
}

// displacement returns how many bytes the SIB byte and the displacement take,
// which begin at code[i].
func (e *encoding) displacement(code []byte, i int) int {
	mod, rm := e.modRM>>6, e.modRM&7
	n := 0
	if mod == 3 || e.opcodeMap == 1 && e.opcode&^3 == 0x20 && e.kind == legacy {
		return 0 // moves of control and debug registers take mod for 3
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

// reg and rm are the registers that ModRM names; rm only where it is no memory.
func (e *encoding) reg() uint8 { return e.modRM>>3&7 | e.rex<<1&8 }
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
	case 1:
		switch e.opcode {
		case 0x2c, 0x2d, 0x50, 0x78, 0x79, 0x93, 0xc5, 0xd7: // conversions, masks and words to a general register
			return reg
		case 0x7e:
			return rm // vmovd
		}
	case 2:
		switch {
		case e.opcode == 0xf3:
			return vector // blsr, blsmsk, blsi
		case e.opcode == 0xf6:
			return reg | vector // mulx
		case e.opcode >= 0xe0:
			return reg | vector | rm
		}
	case 3:
		switch e.opcode {
		case 0x14, 0x15, 0x16, 0x17:
			return rm // vpextr, vextractps
		case 0xf0:
			return reg // rorx
		}
	case 5, 9, 10:
		return reg | vector | rm
	}
	return 0
}
