// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/sdk"
	"golang.org/x/arch/x86/x86asm"
)

// This file has the memory accesses of instructions, and the ways in which they stop a
// thread. The address comes from ModRM and SIB themselves (Intel SDM volume 2, 2.1.3 to
// 2.2.1), for the disassembler does not know most of VEX and EVEX.

// kinds has the instructions that may stop a thread.
var kinds = map[x86asm.Op]sdk.InstructionKind{
	x86asm.INT: sdk.SystemCallInstruction, x86asm.ICEBP: sdk.BreakpointInstruction,
	x86asm.UD1: sdk.UndefinedInstruction, x86asm.UD2: sdk.UndefinedInstruction,
	x86asm.DIV: sdk.DivideInstruction, x86asm.IDIV: sdk.DivideInstruction,
	x86asm.CALL: sdk.CallInstruction, x86asm.LCALL: sdk.CallInstruction,
	x86asm.JMP: sdk.JumpInstruction, x86asm.LJMP: sdk.JumpInstruction,
	x86asm.RET: sdk.ReturnInstruction, x86asm.LRET: sdk.ReturnInstruction,
	x86asm.SYSCALL: sdk.SystemCallInstruction, x86asm.SYSENTER: sdk.SystemCallInstruction,

	x86asm.HLT: sdk.PrivilegedInstruction, x86asm.CLI: sdk.PrivilegedInstruction, x86asm.STI: sdk.PrivilegedInstruction,
	x86asm.IN: sdk.PrivilegedInstruction, x86asm.OUT: sdk.PrivilegedInstruction, x86asm.INSB: sdk.PrivilegedInstruction,
	x86asm.INSD: sdk.PrivilegedInstruction, x86asm.OUTSB: sdk.PrivilegedInstruction, x86asm.OUTSD: sdk.PrivilegedInstruction,
	x86asm.LGDT: sdk.PrivilegedInstruction, x86asm.LIDT: sdk.PrivilegedInstruction, x86asm.LLDT: sdk.PrivilegedInstruction,
	x86asm.LTR: sdk.PrivilegedInstruction, x86asm.LMSW: sdk.PrivilegedInstruction, x86asm.CLTS: sdk.PrivilegedInstruction,
	x86asm.INVD: sdk.PrivilegedInstruction, x86asm.WBINVD: sdk.PrivilegedInstruction, x86asm.INVLPG: sdk.PrivilegedInstruction,
	x86asm.RDMSR: sdk.PrivilegedInstruction, x86asm.WRMSR: sdk.PrivilegedInstruction, x86asm.SWAPGS: sdk.PrivilegedInstruction,
	x86asm.IRET: sdk.PrivilegedInstruction, x86asm.IRETD: sdk.PrivilegedInstruction, x86asm.IRETQ: sdk.PrivilegedInstruction,
	x86asm.SYSRET: sdk.PrivilegedInstruction, x86asm.SYSEXIT: sdk.PrivilegedInstruction,
}

// accessMode is how an operand in memory is accessed.
type accessMode uint8

const (
	accessReadWrite accessMode = iota
	accessRead
	accessWrite
	accessNone // only its address is used
)

// modes has the instructions that do not change a first operand in memory, and how they
// access it. Other operands are read.
var modes = map[x86asm.Op]accessMode{
	x86asm.MOV: accessWrite, x86asm.MOVNTI: accessWrite, x86asm.MOVBE: accessWrite, x86asm.POP: accessWrite,
	x86asm.MOVAPS: accessWrite, x86asm.MOVAPD: accessWrite, x86asm.MOVUPS: accessWrite, x86asm.MOVUPD: accessWrite,
	x86asm.MOVDQA: accessWrite, x86asm.MOVDQU: accessWrite, x86asm.MOVD: accessWrite, x86asm.MOVQ: accessWrite,
	x86asm.MOVSS: accessWrite, x86asm.MOVSD_XMM: accessWrite, x86asm.MOVLPS: accessWrite, x86asm.MOVLPD: accessWrite,
	x86asm.MOVHPS: accessWrite, x86asm.MOVHPD: accessWrite, x86asm.MOVNTDQ: accessWrite, x86asm.MOVNTPS: accessWrite,
	x86asm.MOVNTPD: accessWrite, x86asm.MOVNTQ: accessWrite, x86asm.FST: accessWrite, x86asm.FSTP: accessWrite,
	x86asm.FIST: accessWrite, x86asm.FISTP: accessWrite, x86asm.FISTTP: accessWrite, x86asm.FBSTP: accessWrite,
	x86asm.FNSTCW: accessWrite, x86asm.FNSTSW: accessWrite, x86asm.FNSTENV: accessWrite, x86asm.FNSAVE: accessWrite,
	x86asm.FXSAVE: accessWrite, x86asm.FXSAVE64: accessWrite, x86asm.XSAVE: accessWrite, x86asm.XSAVE64: accessWrite,
	x86asm.XSAVEOPT: accessWrite, x86asm.XSAVEOPT64: accessWrite, x86asm.STMXCSR: accessWrite, x86asm.PEXTRB: accessWrite,
	x86asm.PEXTRW: accessWrite, x86asm.PEXTRD: accessWrite, x86asm.PEXTRQ: accessWrite, x86asm.EXTRACTPS: accessWrite,
	x86asm.SETA: accessWrite, x86asm.SETAE: accessWrite, x86asm.SETB: accessWrite, x86asm.SETBE: accessWrite,
	x86asm.SETE: accessWrite, x86asm.SETG: accessWrite, x86asm.SETGE: accessWrite, x86asm.SETL: accessWrite,
	x86asm.SETLE: accessWrite, x86asm.SETNE: accessWrite, x86asm.SETNO: accessWrite, x86asm.SETNP: accessWrite,
	x86asm.SETNS: accessWrite, x86asm.SETO: accessWrite, x86asm.SETP: accessWrite, x86asm.SETS: accessWrite,
	x86asm.STOSB: accessWrite, x86asm.STOSW: accessWrite, x86asm.STOSD: accessWrite, x86asm.STOSQ: accessWrite,
	x86asm.MOVSB: accessWrite, x86asm.MOVSW: accessWrite, x86asm.MOVSD: accessWrite, x86asm.MOVSQ: accessWrite,
	x86asm.INSB: accessWrite, x86asm.INSW: accessWrite, x86asm.INSD: accessWrite,

	x86asm.CMP: accessRead, x86asm.TEST: accessRead, x86asm.PUSH: accessRead, x86asm.CALL: accessRead, x86asm.JMP: accessRead,
	x86asm.LCALL: accessRead, x86asm.LJMP: accessRead, x86asm.MUL: accessRead, x86asm.IMUL: accessRead, x86asm.DIV: accessRead,
	x86asm.IDIV: accessRead, x86asm.BT: accessRead, x86asm.LDMXCSR: accessRead, x86asm.FXRSTOR: accessRead,
	x86asm.FXRSTOR64: accessRead, x86asm.XRSTOR: accessRead, x86asm.XRSTOR64: accessRead, x86asm.FLDCW: accessRead,
	x86asm.FLDENV: accessRead, x86asm.FRSTOR: accessRead, x86asm.FLD: accessRead, x86asm.FILD: accessRead, x86asm.FBLD: accessRead,
	x86asm.FADD: accessRead, x86asm.FSUB: accessRead, x86asm.FSUBR: accessRead, x86asm.FMUL: accessRead, x86asm.FDIV: accessRead,
	x86asm.FDIVR: accessRead, x86asm.FCOM: accessRead, x86asm.FCOMP: accessRead, x86asm.FIADD: accessRead, x86asm.FISUB: accessRead,
	x86asm.FISUBR: accessRead, x86asm.FIMUL: accessRead, x86asm.FIDIV: accessRead, x86asm.FIDIVR: accessRead,
	x86asm.FICOM: accessRead, x86asm.FICOMP: accessRead, x86asm.CMPSB: accessRead, x86asm.CMPSW: accessRead,
	x86asm.CMPSD: accessRead, x86asm.CMPSQ: accessRead, x86asm.SCASB: accessRead, x86asm.SCASW: accessRead,
	x86asm.SCASD: accessRead, x86asm.SCASQ: accessRead,

	x86asm.NOP: accessNone, x86asm.PREFETCHNTA: accessNone, x86asm.PREFETCHT0: accessNone, x86asm.PREFETCHT1: accessNone,
	x86asm.PREFETCHT2: accessNone, x86asm.PREFETCHW: accessNone, x86asm.INVLPG: accessNone, x86asm.CLFLUSH: accessRead,
}

// pushes and pops have the instructions that access the stack beside their operands, each
// with a word.
var (
	pushes = map[x86asm.Op]bool{x86asm.PUSH: true, x86asm.CALL: true, x86asm.PUSHFQ: true, x86asm.ENTER: true}
	pops   = map[x86asm.Op]bool{x86asm.POP: true, x86asm.RET: true, x86asm.POPFQ: true}
)

// explain returns the kind and the memory accesses of the instruction with an encoding.
// isKnown means that the disassembler knows it as inst.
func (m *Mode) explain(e *encoding, code []byte, inst *x86asm.Inst, isKnown bool, pc uint64) (kind sdk.InstructionKind, list []sdk.Access) {
	switch {
	case code[0] == 0xcc:
		return sdk.BreakpointInstruction, nil
	case e.kind != legacy || !isKnown:
		if a, ok := m.memoryAccess(e, code, pc); ok {
			if e.kind != legacy {
				e.setVector(code, &a)
			}
			list = append(list, a)
		}
		return sdk.OtherInstruction, list
	}
	kind = kinds[inst.Op]
	if inst.Op == x86asm.LEA {
		return kind, nil
	}
	for i, arg := range inst.Args {
		operand, ok := arg.(x86asm.Mem)
		if !ok {
			continue
		}
		a, ok := m.memoryAccess(e, code, pc)
		if !ok { // a string instruction, or mov with an absolute address
			a, ok = m.implicitAccess(&operand)
		}
		mode := accessRead
		switch {
		case i == 0:
			mode = modes[inst.Op]
		case inst.Op == x86asm.XCHG:
			mode = accessReadWrite
		}
		if !ok || mode == accessNone {
			continue
		}
		a.IsRead, a.IsWrite = mode != accessWrite, mode != accessRead
		a.Size = operandSize(inst)
		list = append(list, a)
	}
	return kind, append(list, m.stackAccesses(inst.Op)...)
}

// operandRegister is the register by which a division divides, or to which a call or
// jump goes.
func (m *Mode) operandRegister(inst *x86asm.Inst, kind sdk.InstructionKind) (register, bits uint32) {
	switch kind {
	case sdk.DivideInstruction, sdk.CallInstruction, sdk.JumpInstruction:
	default:
		return 0, 0
	}
	r, size, ok := General(inst.Args[0])
	if arg, _ := inst.Args[0].(x86asm.Reg); !ok || arg >= x86asm.AH && arg <= x86asm.BH {
		return 0, 0 // the second byte of a register is not among its low bits
	}
	return m.Numbers[r], uint32(8 * size) //nolint:gosec // at most 64
}

// operandSize is the number of bytes of an operand in memory. The disassembler returns 1
// for instructions of x87 state, whose size depends on the processor.
func operandSize(inst *x86asm.Inst) uint32 {
	switch inst.Op {
	case x86asm.FXSAVE, x86asm.FXSAVE64, x86asm.FXRSTOR, x86asm.FXRSTOR64:
		return 512
	case x86asm.XSAVE, x86asm.XSAVE64, x86asm.XSAVEOPT, x86asm.XSAVEOPT64, x86asm.XRSTOR, x86asm.XRSTOR64:
		return 0
	}
	return uint32(max(inst.MemBytes, 0)) //nolint:gosec // at most 512
}

// stackAccesses are an instruction's accesses of the stack beside its operands.
func (m *Mode) stackAccesses(op x86asm.Op) []sdk.Access {
	a := sdk.Access{Size: uint32(m.Word), Base: m.Numbers[SP], Index: sdk.NoRegister, Segment: sdk.NoRegister, AddressBits: uint32(8 * m.Word)} //nolint:gosec // 4 or 8
	switch {
	case pushes[op]:
		a.IsWrite, a.Displacement = true, -int64(m.Word)
	case pops[op]:
		a.IsRead = true
	case op == x86asm.LEAVE:
		a.IsRead, a.Base = true, m.Numbers[BP]
	default:
		return nil
	}
	return []sdk.Access{a}
}

// implicitAccess is the access of an operand that ModRM does not name.
func (m *Mode) implicitAccess(operand *x86asm.Mem) (a sdk.Access, ok bool) {
	a = sdk.Access{Base: sdk.NoRegister, Index: sdk.NoRegister, Segment: sdk.NoRegister, Displacement: operand.Disp, AddressBits: uint32(8 * m.Word)} //nolint:gosec // 32 or 64
	if operand.Base != 0 {
		r, size, ok := General(operand.Base)
		if !ok || size < 4 {
			return a, false
		}
		a.Base, a.AddressBits = m.Numbers[r], uint32(8*size) //nolint:gosec // 32 or 64
	}
	switch operand.Segment {
	case x86asm.FS:
		a.Segment = m.FSBase
	case x86asm.GS:
		a.Segment = m.GSBase
	}
	return a, operand.Index == 0
}

// memoryAccess is the access of the operand that ModRM names; ok is false where it is a
// register, where a vector has the indices, and where the unit of the displacement is not
// known.
func (m *Mode) memoryAccess(e *encoding, code []byte, pc uint64) (a sdk.Access, ok bool) {
	if !e.hasModRM || e.modRM>>6 == 3 || e.isGather() || e.isControlMove() || e.address == 16 || len(code) < int(e.behind)+e.addressBytes(code) {
		return a, false
	}
	a = sdk.Access{Base: sdk.NoRegister, Index: sdk.NoRegister, Segment: m.segmentRegister(code), AddressBits: uint32(e.address)}
	mod, rm := e.modRM>>6, e.modRM&7
	tail := code[e.behind:]
	hasBase := mod != 0 || rm != 5
	if rm == 4 {
		sib := tail[0]
		tail = tail[1:]
		rm = sib & 7
		hasBase = mod != 0 || rm != 5
		if index := sib>>3&7 | e.rex<<2&8; index != SP {
			a.Index, a.Scale = m.Numbers[index], 1<<(sib>>6)
		}
	} else if !hasBase && m.Word == 8 {
		a.Displacement = int64(pc) + int64(len(code)) //nolint:gosec // an address
	}
	if hasBase {
		a.Base = m.Numbers[rm|e.rex<<3&8]
	}
	switch {
	case mod == 1:
		scale := int64(1)
		if e.kind == evex {
			if scale = e.vectorBytes(code); scale == 0 && tail[0] != 0 {
				return a, false
			}
		}
		a.Displacement += int64(int8(tail[0])) * scale //nolint:gosec // its bits
	case mod == 2, !hasBase:
		a.Displacement += int64(int32(binary.LittleEndian.Uint32(tail))) //nolint:gosec // its bits
	}
	return a, true
}

// isControlMove reports whether the instruction moves a control or debug register, whose
// ModRM names registers in every mode.
func (e *encoding) isControlMove() bool {
	return e.kind == legacy && e.opcodeMap == map0F && e.opcode&^3 == opMovControl
}

// addressBytes is the number of bytes of the address behind ModRM.
func (e *encoding) addressBytes(code []byte) (n int) {
	mod, rm := e.modRM>>6, e.modRM&7
	if rm == 4 {
		if n++; int(e.behind) < len(code) {
			rm = code[e.behind] & 7
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

// isGather reports whether the index is a vector: VGATHER and VPGATHER (VEX and EVEX 0F 38
// 90 to 93), the scatters of EVEX (A0 to A3), and the prefetches of both (C6, C7).
func (e *encoding) isGather() bool {
	return e.kind != legacy && e.opcodeMap == map0F38 && (e.opcode&^3 == 0x90 || e.opcode&^3 == 0xa0 || e.opcode&^1 == 0xc6)
}

// vectorOpcode is an instruction of VEX and EVEX.
type vectorOpcode struct{ opcodeMap, opcode byte }

// wholeVectors are instructions whose operand in memory is as long as their vectors:
// moves, comparisons, minima and logic, as the string functions of C libraries have them.
var wholeVectors = map[vectorOpcode]bool{
	{map0F, 0x28}: true, {map0F, 0x29}: true, {map0F, 0x2b}: true, {map0F, 0x6f}: true, {map0F, 0x7f}: true, {map0F, 0xe7}: true,
	{map0F, 0x64}: true, {map0F, 0x65}: true, {map0F, 0x66}: true, {map0F, 0x74}: true, {map0F, 0x75}: true, {map0F, 0x76}: true,
	{map0F, 0xda}: true, {map0F, 0xdb}: true, {map0F, 0xde}: true, {map0F, 0xdf}: true, {map0F, 0xea}: true, {map0F, 0xeb}: true,
	{map0F, 0xee}: true, {map0F, 0xef}: true, {map0F, 0xf8}: true, {map0F, 0xfc}: true,
	{map0F3A, 0x25}: true, {map0F3A, 0x3e}: true, {map0F3A, 0x3f}: true, {map0F38, 0x26}: true, {map0F38, 0x2a}: true, {map0F38, 0x3a}: true,
}

// vectorStores are the instructions of VEX and EVEX that write their operand in memory.
var vectorStores = map[vectorOpcode]bool{
	{map0F, 0x11}: true, {map0F, 0x13}: true, {map0F, 0x17}: true, {map0F, 0x29}: true, {map0F, 0x2b}: true, {map0F, 0x7f}: true,
	{map0F, 0xd6}: true, {map0F, 0xe7}: true, {map0F38, 0x2e}: true, {map0F38, 0x2f}: true, {map0F38, 0x8e}: true,
	{map0F3A, 0x14}: true, {map0F3A, 0x15}: true, {map0F3A, 0x16}: true, {map0F3A, 0x17}: true, {map0F3A, 0x19}: true,
	{map0F3A, 0x1b}: true, {map0F3A, 0x1d}: true, {map0F3A, 0x39}: true, {map0F3A, 0x3b}: true,
}

// vectorBytes is the size of the operand in memory of an instruction of VEX or EVEX, 0
// where it depends on more than is read here. vmovups and vmovupd (0F 10 and 11) have
// whole vectors, the scalar moves of the same opcodes do not.
func (e *encoding) vectorBytes(code []byte) int64 {
	isMove := e.opcodeMap == map0F && e.opcode&^1 == 0x10 && (e.simd == 0 || e.simd == prefixOperand16)
	if !isMove && !wholeVectors[vectorOpcode{e.opcodeMap, e.opcode}] {
		return 0
	}
	length := code[max(int(e.behind)-3, 0)] // the last byte of the prefix, before opcode and ModRM
	switch {
	case e.kind == vex:
		return 16 << (length >> 2 & 1)
	case e.kind == evex && length&0x10 == 0 && length>>5&3 < 3: // no broadcast (2.7.5)
		return 16 << (length >> 5 & 3)
	}
	return 0
}

// setVector sets size and mode of an operand of VEX, EVEX and XOP.
func (e *encoding) setVector(code []byte, a *sdk.Access) {
	isStore := vectorStores[vectorOpcode{e.opcodeMap, e.opcode}]
	if e.opcodeMap == map0F && e.opcode == opMovdFrom {
		isStore = e.simd == prefixOperand16 // with F3 it is a load
	}
	a.IsRead, a.IsWrite = !isStore, isStore
	a.Size = uint32(e.vectorBytes(code)) //nolint:gosec // at most 64
}

// segmentRegister is the base of the segment that a prefix names.
func (m *Mode) segmentRegister(code []byte) uint32 {
	for _, b := range code {
		switch {
		case !isPrefix[b]:
			return sdk.NoRegister
		case b == prefixFS:
			return m.FSBase
		case b == prefixGS:
			return m.GSBase
		}
	}
	return sdk.NoRegister
}
