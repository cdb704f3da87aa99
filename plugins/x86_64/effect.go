// SPDX-License-Identifier: Apache-2.0

package x86_64

import "golang.org/x/arch/x86/x86asm"

// General registers in the order of their encoding, which the analysis uses.
const (
	gprAX = iota
	gprCX
	gprDX
	gprBX
	gprSP
	gprBP
	gprSI
	gprDI
	gprR8
	gprR9
	gprR10
	gprR11
	gprR12
	gprR13
	gprR14
	gprR15
	gprCount
	gprNone = 0xff
)

// dwarfNumber maps general registers in the order of their encoding to their
// DWARF numbers.
var dwarfNumber = [gprCount]uint32{rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15}

// preserved are the registers that a call keeps, as bits of the encoding's
// order.
const preserved = 1<<gprBX | 1<<gprSP | 1<<gprBP | 1<<gprR12 | 1<<gprR13 | 1<<gprR14 | 1<<gprR15

// effectKind is the kind of change that an instruction makes to the frame.
type effectKind uint8

const (
	effectOther   effectKind = iota // writes the registers of clobbers, and mem
	effectPush                      // pushes src, or an unknown value
	effectPop                       // pops into dst, into mem, or nowhere
	effectMove                      // dst = src
	effectLoad                      // dst = 8 bytes at mem
	effectStore                     // 8 bytes at mem = src
	effectAddress                   // dst = address of mem
	effectAdd                       // dst += imm
	effectAlign                     // dst becomes an address that only the machine knows
	effectSwap                      // dst, src = src, dst
	effectTable                     // dst = the word at mem, maybe an entry of a table
	effectExtend                    // dst = the low half of src, extended
	effectSum                       // dst += src
	effectLeave                     // rsp = rbp; pop rbp
	effectEnter                     // push rbp; rbp = rsp; rsp -= imm
	effectCall                      // to target, where direct
	effectReturn                    // pops the return address
	effectJump                      // to target, where direct
	effectBranch                    // to target, or on
	effectStop                      // nothing follows
)

// memory is an operand in memory.
type memory struct {
	base   uint8 // gprNone: absolute, or relative to rip
	index  uint8 // gprNone: none
	opaque bool  // the address is not base+offset: an index, a segment, 32 bits
	table  bool  // indexed by 4 or 8 bytes
	rip    bool
	offset int64
}

// effect is an instruction as the analysis sees it.
type effect struct {
	kind     effectKind
	length   uint8
	dst, src uint8 // general registers, or gprNone
	size     uint8 // bytes of the operand in memory, or pushed and popped
	direct   bool  // a call or jump with a target
	hasMem   bool
	endbr    bool // an indirect branch may come here
	filler   bool // a nop: no work of the function
	clobbers uint16
	target   int64 // relative to the instruction's start
	imm      int64
	mem      memory
}

// readEffect reads the instruction at the start of code. ok is false where no known one
// is there.
func readEffect(code []byte) (e effect, ok bool) {
	at, ok := layout(code)
	if !ok {
		return effect{}, false
	}
	e = effect{length: uint8(at.length), dst: gprNone, src: gprNone}
	if isEndbr(code) {
		e.endbr, e.filler = true, true
		return e, true
	}
	inst, err := decodeInst(code[:at.length])
	if err != nil || inst.Len != at.length {
		return opaqueEffect(e, &at), true
	}
	e.read(&inst)
	if at.kind == legacy && at.opcodeMap == mapOneByte && at.opcode&^7 == opX87 && e.hasMem {
		e.size = x87Stores[at.opcode&7][at.modRMReg()]
		e.hasMem = e.size > 0
	}
	return e, true
}

// x87Stores are the bytes that opcodes D8 to DF write to memory, by opcode and
// ModRM.reg. Intel SDM volume 2, appendix A.5.
var x87Stores = [8][8]uint8{
	1: {2: 4, 3: 4, 6: 28, 7: 2},
	3: {1: 4, 2: 4, 3: 4, 7: 10},
	5: {1: 8, 2: 8, 3: 8, 6: 108, 7: 2},
	7: {1: 2, 2: 2, 3: 2, 6: 10, 7: 8},
}

// opaqueEffect is the effect of an instruction that the disassembler does not know: it
// may write all that its encoding names.
func opaqueEffect(e effect, layout *encoding) effect {
	switch {
	case layout.kind != legacy:
		e.clobbers = layout.writes()
	case layout.hasModRM:
		e.clobbers = 1<<layout.reg() | 1<<gprAX | 1<<gprCX | 1<<gprDX | 1<<gprBX
		if r, ok := layout.rm(); ok {
			e.clobbers |= 1 << r
		}
	default:
		e.clobbers = 1<<gprCount - 1
	}
	return e
}

// isEndbr reports whether code starts with endbr64 or endbr32.
func isEndbr(code []byte) bool {
	return hasPrefix(code, bytesEndbr64) || hasPrefix(code, bytesEndbr32)
}

// hasPrefix reports whether code begins with the bytes of an instruction.
func hasPrefix(code []byte, instruction string) bool {
	return len(code) >= len(instruction) && string(code[:len(instruction)]) == instruction
}

// general is an operand's general register, and the number of its bytes that are named;
// ok is false for another operand.
func general(a x86asm.Arg) (register uint8, size int, ok bool) {
	r, isReg := a.(x86asm.Reg)
	switch {
	case !isReg:
		return gprNone, 0, false
	case r >= x86asm.AL && r <= x86asm.BL:
		return uint8(r - x86asm.AL), 1, true
	case r >= x86asm.AH && r <= x86asm.BH:
		return uint8(r - x86asm.AH), 1, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return uint8(r-x86asm.SPB) + gprSP, 1, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return uint8(r - x86asm.AX), 2, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return uint8(r - x86asm.EAX), 4, true
	case r >= x86asm.RAX && r <= x86asm.R15:
		return uint8(r - x86asm.RAX), 8, true
	}
	return gprNone, 0, false
}

// full is the general register that an operand names whole.
func full(a x86asm.Arg) (register uint8, ok bool) {
	r, size, ok := general(a)
	return r, ok && size == 8
}

// readMemory reads an operand in memory; ok is false for another operand.
func readMemory(inst *x86asm.Inst, a x86asm.Arg) (m memory, ok bool) {
	x, ok := a.(x86asm.Mem)
	if !ok {
		return m, false
	}
	m = memory{base: gprNone, index: gprNone, offset: x.Disp}
	base, size, isGeneral := general(x.Base)
	switch {
	case x.Base == x86asm.RIP:
		m.rip = true
	case isGeneral && size == 8:
		m.base = base
	case x.Base != 0:
		m.opaque = true
	}
	if x.Index != 0 {
		m.opaque = true
		m.table = x.Scale == 4 || x.Scale == 8
		m.index, _, _ = general(x.Index)
	}
	if x.Segment == x86asm.FS || x.Segment == x86asm.GS || inst.AddrSize != 64 {
		m.opaque = true
	}
	return m, true
}

// write records that the instruction writes its operand in memory.
func (e *effect) write(inst *x86asm.Inst, m memory) {
	e.hasMem, e.mem = true, m
	e.size = 64
	if inst.MemBytes > 0 && inst.MemBytes < 64 {
		e.size = uint8(inst.MemBytes)
	}
}
