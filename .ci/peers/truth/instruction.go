// SPDX-License-Identifier: Apache-2.0

package main

// action is the effect of an instruction of x86-64 on the stack, as far as the registers
// before and after it do not show it.
type action uint8

const (
	ordinary action = iota
	call            // pushes the address behind itself
	leave           // returns, or jumps by a return
	takes           // pops a register
	loads           // loads rsp from memory
	moves           // moves another register to rsp
	syscalls
)

// readAction reads the first bytes of an instruction (Intel SDM, volume 2, appendix A). It is
// written apart from the decoders that the engine has.
func readAction(code []byte) action {
	i := 0
	var rex byte
	for ; i < len(code) && i < 14; i++ {
		switch b := code[i]; {
		case b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65:
			rex = 0
			continue
		case b&0xf0 == 0x40:
			rex = b
			continue
		}
		break
	}
	if i+1 >= len(code) {
		return ordinary
	}
	modrm := code[i+1]
	reg, rm := modrm>>3&7, modrm&7
	const rsp = 4
	switch op := code[i]; op {
	case 0xe8:
		return call
	case 0xff:
		if reg == 2 || reg == 3 {
			return call
		}
	case 0xc2, 0xc3:
		return leave
	case 0x58, 0x59, 0x5a, 0x5b, 0x5d, 0x5e, 0x5f, 0x8f:
		return takes
	case 0x5c:
		if rex&1 == 0 {
			return loads
		}
		return takes
	case 0x89: // mov r/m, r
		if modrm>>6 == 3 && rm == rsp && rex&1 == 0 {
			return moves
		}
	case 0x8b, 0x87: // mov r, r/m; xchg
		if reg == rsp && rex&4 == 0 {
			if modrm>>6 == 3 {
				return moves
			}
			return loads
		}
		if op == 0x87 && modrm>>6 == 3 && rm == rsp && rex&1 == 0 {
			return moves
		}
	case 0x8d: // lea
		if reg == rsp && rex&4 == 0 {
			return moves
		}
	case 0x94: // xchg rax
		if rex&1 == 0 {
			return moves
		}
	case 0x0f:
		if modrm == 0x05 {
			return syscalls
		}
	}
	return ordinary
}
