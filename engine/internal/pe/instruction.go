// SPDX-License-Identifier: Apache-2.0

package pe

import "golang.org/x/arch/x86/x86asm"

// instruction decodes the instruction at the start of code. Op is 0 where only the length is known,
// which no epilogue has; ok is false where even that is not.
//
// The decoder knows no instruction with VEX or EVEX, and takes endbr64 and some others
// behind 0F for shorter than they are: their length is found here (Intel SDM volume 2,
// chapter 2).
func instruction(code []byte) (inst x86asm.Inst, ok bool) {
	if n := unknownLength(code); n != 0 {
		return x86asm.Inst{Len: n}, n <= len(code)
	}
	inst, err := x86asm.Decode(code, 64)
	if err == nil {
		return inst, true
	}
	n := escapedLength(code)
	return x86asm.Inst{Len: n}, n != 0 && n <= len(code)
}

// unknownLength returns the length of an instruction that the decoder does not know; 0 for others.
func unknownLength(code []byte) int {
	const most = 15 // bytes of an instruction
	if len(code) < most {
		code = append(make([]byte, 0, most), code...)[:most] // a length beyond the end is told from one before it
	}
	switch {
	case code[0] == 0xc5: // VEX, two bytes
		return vectorLength(code, 2, 1)
	case code[0] == 0xc4:
		return vectorLength(code, 3, code[1]&31)
	case code[0] == 0x62: // EVEX
		return vectorLength(code, 4, code[1]&7)
	}
	if op := escape(code); op < len(code)-1 && code[op] >= 0x18 && code[op] <= 0x1f {
		return escapedLength(code) // hints: prefetch, nop, endbr64, rdssp
	}
	return 0
}

// vectorLength returns the length of an instruction whose opcode, of an opcode map, lies
// behind a number of bytes.
func vectorLength(code []byte, opcode int, opcodeMap byte) int {
	op := code[opcode]
	const vzeroupper = 0x77
	if opcodeMap == 1 && op == vzeroupper && code[0] != 0x62 {
		return opcode + 1
	}
	n := opcode + 1 + modRMLength(code[opcode+1:])
	if opcodeMap == 3 || opcodeMap == 1 && (op >= 0x70 && op <= 0x73 || op == 0xc2 || op >= 0xc4 && op <= 0xc6) {
		n++ // an immediate
	}
	return n
}

// escape returns the offset of the opcode behind 0F; where there is none, the length of code.
func escape(code []byte) int {
	for i, b := range code[:min(len(code), 8)] {
		switch {
		case b == 0x0f:
			return i + 1
		case b == 0x66 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x3e || b == 0x64 || b == 0x65 || b == 0xf0 || b&0xf0 == 0x40:
		default:
			return len(code)
		}
	}
	return len(code)
}

// escapedLength returns the length of an instruction behind 0F that has a ModRM byte, as all have that
// the decoder does not know; 0 for others.
func escapedLength(code []byte) int {
	offset := escape(code)
	if offset >= len(code) {
		return 0
	}
	immediate := 0
	switch code[offset] {
	case 0x38:
		offset++
	case 0x3a:
		offset, immediate = offset+1, 1
	}
	if offset+1 >= len(code) {
		return 0
	}
	return offset + 1 + modRMLength(code[offset+1:]) + immediate
}

// modRMLength returns the length of a ModRM byte with its SIB and displacement.
func modRMLength(b []byte) int {
	if len(b) == 0 {
		return 1
	}
	mod, rm, n := b[0]>>6, b[0]&7, 1
	if mod == 3 {
		return n
	}
	if rm == 4 {
		n++
		if mod == 0 && len(b) > 1 && b[1]&7 == 5 {
			return n + 4
		}
	}
	switch {
	case mod == 1:
		return n + 1
	case mod == 2, mod == 0 && rm == 5:
		return n + 4
	}
	return n
}
