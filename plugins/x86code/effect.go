// SPDX-License-Identifier: Apache-2.0

package x86code

import "golang.org/x/arch/x86/x86asm"

// General registers in the order of their encoding, which the analysis uses.
const (
	AX = iota
	CX
	DX
	BX
	SP
	BP
	SI
	DI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	GPRCount
	None = 0xff
)

// Kind is the kind of change that an instruction makes to the frame.
type Kind uint8

// The kinds of effects.
const (
	Other   Kind = iota // writes the registers of clobbers, and mem
	Push                // pushes src, or an unknown value
	Pop                 // pops into dst, into mem, or nowhere
	Move                // dst = src
	Load                // dst = word at mem
	Store               // word at mem = src
	Address             // dst = address of mem
	Add                 // dst += imm
	Align               // dst becomes an address that only the machine knows
	Swap                // dst, src = src, dst
	Table               // dst = the word at mem, maybe an entry of a table
	Extend              // dst = the low half of src, extended
	Sum                 // dst += src
	Leave               // rsp = rbp; pop rbp
	Enter               // push rbp; rbp = rsp; rsp -= imm
	Call                // to target, where direct
	Return              // pops the return address
	Jump                // to target, where direct
	Branch              // to target, or on
	Stop                // nothing follows
)

// Memory is an operand in memory.
type Memory struct {
	Base       uint8 // gprNone: absolute, or relative to rip
	Index      uint8 // gprNone: none
	IsOpaque   bool  // the address is not base+offset: an index, a segment, 32 bits
	IsTable    bool  // indexed by 4 or 8 bytes
	IsRelative bool
	Offset     int64
}

// Effect is an instruction as the analysis sees it.
type Effect struct {
	Kind     Kind
	Length   uint8
	Dst, Src uint8 // general registers, or gprNone
	Size     uint8 // bytes of the operand in memory, or pushed and popped
	IsDirect bool  // a call or jump with a target
	HasMem   bool
	IsEndbr  bool // an indirect branch may come here
	IsFiller bool // a nop: no work of the function
	Clobbers uint16
	Target   int64 // relative to the instruction's start
	Imm      int64
	Mem      Memory
}

// ReadEffect reads the instruction at the start of code. ok is false where no known one
// is there.
func (m *Mode) ReadEffect(code []byte) (e Effect, ok bool) {
	at, ok := m.layout(code)
	if !ok {
		return Effect{}, false
	}
	e = Effect{Length: uint8(at.length), Dst: None, Src: None}
	if isEndbr(code) {
		e.IsEndbr, e.IsFiller = true, true
		return e, true
	}
	inst, err := m.Decode(code[:at.length])
	if err != nil || inst.Len != at.length {
		return opaqueEffect(e, &at), true
	}
	e.read(m, &inst)
	if at.kind == legacy && at.opcodeMap == mapOneByte && at.opcode&^7 == opX87 && e.HasMem {
		e.Size = x87Stores[at.opcode&7][at.modRMReg()]
		e.HasMem = e.Size > 0
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
func opaqueEffect(e Effect, layout *encoding) Effect {
	switch {
	case layout.kind != legacy:
		e.Clobbers = layout.writes()
	case layout.hasModRM:
		e.Clobbers = 1<<layout.reg() | 1<<AX | 1<<CX | 1<<DX | 1<<BX
		if r, ok := layout.rm(); ok {
			e.Clobbers |= 1 << r
		}
	default:
		e.Clobbers = 1<<GPRCount - 1
	}
	return e
}

// isEndbr reports whether code starts with endbr64 or endbr32.
func isEndbr(code []byte) bool {
	return HasPrefix(code, bytesEndbr64) || HasPrefix(code, bytesEndbr32)
}

// HasPrefix reports whether code begins with the bytes of an instruction.
func HasPrefix(code []byte, instruction string) bool {
	return len(code) >= len(instruction) && string(code[:len(instruction)]) == instruction
}

// General is an operand's general register, and the number of its bytes that are named;
// ok is false for another operand.
func General(a x86asm.Arg) (register uint8, size int, ok bool) {
	r, isReg := a.(x86asm.Reg)
	switch {
	case !isReg:
		return None, 0, false
	case r >= x86asm.AL && r <= x86asm.BL:
		return uint8(r - x86asm.AL), 1, true
	case r >= x86asm.AH && r <= x86asm.BH:
		return uint8(r - x86asm.AH), 1, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return uint8(r-x86asm.SPB) + SP, 1, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return uint8(r - x86asm.AX), 2, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return uint8(r - x86asm.EAX), 4, true
	case r >= x86asm.RAX && r <= x86asm.R15:
		return uint8(r - x86asm.RAX), 8, true
	}
	return None, 0, false
}

// Full is the general register that an operand names whole.
func (m *Mode) Full(a x86asm.Arg) (register uint8, ok bool) {
	r, size, ok := General(a)
	return r, ok && size == m.Word
}

// readMemory reads an operand in memory; ok is false for another operand.
func (m *Mode) readMemory(inst *x86asm.Inst, a x86asm.Arg) (operand Memory, ok bool) {
	x, ok := a.(x86asm.Mem)
	if !ok {
		return operand, false
	}
	operand = Memory{Base: None, Index: None, Offset: x.Disp}
	base, size, isGeneral := General(x.Base)
	switch {
	case x.Base == x86asm.RIP:
		operand.IsRelative = true
	case isGeneral && size == m.Word:
		operand.Base = base
	case x.Base != 0:
		operand.IsOpaque = true
	}
	if x.Index != 0 {
		operand.IsOpaque = true
		operand.IsTable = x.Scale == 4 || x.Scale == 8
		operand.Index, _, _ = General(x.Index)
	}
	if x.Segment == x86asm.FS || x.Segment == x86asm.GS || inst.AddrSize != 8*m.Word {
		operand.IsOpaque = true
	}
	return operand, true
}

// write records that the instruction writes its operand in memory.
func (e *Effect) write(inst *x86asm.Inst, m Memory) {
	e.HasMem, e.Mem = true, m
	e.Size = 64
	if inst.MemBytes > 0 && inst.MemBytes < 64 {
		e.Size = uint8(inst.MemBytes)
	}
}
