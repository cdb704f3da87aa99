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

// An effectKind is what an instruction does, as far as frames go.
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
	effectTable                     // dst = what is at mem, maybe an entry of a table
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

// A memory is an operand in memory.
type memory struct {
	base   uint8 // gprNone: absolute, or relative to rip
	index  uint8 // gprNone: none
	opaque bool  // the address is not base+offset: an index, a segment, 32 bits
	table  bool  // indexed by 4 or 8 bytes
	rip    bool
	offset int64
}

// An effect is an instruction as the analysis sees it.
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

// readEffect reads the instruction at the start of code. ok is false where there
// is none that is known.
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
	if at.kind == legacy && at.opcodeMap == 0 && at.opcode&^7 == 0xd8 && e.hasMem {
		e.size = x87Stores[at.opcode&7][at.modRM>>3&7]
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

// opaqueEffect is the effect of an instruction that the disassembler does not
// know: what its encoding says that it may write.
func opaqueEffect(e effect, at *encoding) effect {
	switch {
	case at.kind != legacy:
		e.clobbers = at.writes()
	case at.hasModRM:
		e.clobbers = 1<<at.reg() | 1<<gprAX | 1<<gprCX | 1<<gprDX | 1<<gprBX
		if r, ok := at.rm(); ok {
			e.clobbers |= 1 << r
		}
	default:
		e.clobbers = 1<<gprCount - 1
	}
	return e
}

// isEndbr says whether code starts with endbr64 or endbr32.
func isEndbr(code []byte) bool {
	return len(code) >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && (code[3] == 0xfa || code[3] == 0xfb)
}

// An operand's general register, and the bytes of it that are named.
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

// full is a general register named whole.
func full(a x86asm.Arg) (register uint8, ok bool) {
	r, size, ok := general(a)
	return r, ok && size == 8
}

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

// Operations by what they do beside writing their first operand.
type operation uint8

const (
	readsFirst   operation = 1 << iota // the first operand is only read
	writesSecond                       // the second operand is written too
	endsFlow                           // nothing follows
)

var operations = map[x86asm.Op]operation{
	x86asm.CMP: readsFirst, x86asm.TEST: readsFirst, x86asm.BT: readsFirst, x86asm.NOP: readsFirst,
	x86asm.OUT: readsFirst, x86asm.VERR: readsFirst, x86asm.VERW: readsFirst, x86asm.LLDT: readsFirst,
	x86asm.LTR: readsFirst, x86asm.LMSW: readsFirst, x86asm.WRFSBASE: readsFirst, x86asm.WRGSBASE: readsFirst,
	x86asm.MUL: readsFirst, x86asm.DIV: readsFirst, x86asm.IDIV: readsFirst,
	x86asm.PREFETCHNTA: readsFirst, x86asm.PREFETCHT0: readsFirst, x86asm.PREFETCHT1: readsFirst,
	x86asm.PREFETCHT2: readsFirst, x86asm.PREFETCHW: readsFirst, x86asm.LDMXCSR: readsFirst,
	x86asm.FXRSTOR: readsFirst, x86asm.FXRSTOR64: readsFirst, x86asm.FLDCW: readsFirst, x86asm.FLDENV: readsFirst,
	x86asm.UCOMISS: readsFirst, x86asm.UCOMISD: readsFirst, x86asm.COMISS: readsFirst, x86asm.COMISD: readsFirst,

	x86asm.XADD: writesSecond,

	x86asm.HLT: endsFlow, x86asm.UD1: endsFlow, x86asm.UD2: endsFlow, x86asm.IRET: endsFlow, x86asm.IRETD: endsFlow,
	x86asm.IRETQ: endsFlow, x86asm.SYSRET: endsFlow, x86asm.SYSEXIT: endsFlow, x86asm.LRET: endsFlow,
	x86asm.LJMP: endsFlow, x86asm.LCALL: endsFlow, x86asm.RSM: endsFlow,
}

// implicit are the general registers that an operation writes without naming
// them.
var implicit = map[x86asm.Op]uint16{
	x86asm.CPUID: 1<<gprAX | 1<<gprBX | 1<<gprCX | 1<<gprDX,
	x86asm.MUL:   1<<gprAX | 1<<gprDX, x86asm.IMUL: 1<<gprAX | 1<<gprDX,
	x86asm.DIV: 1<<gprAX | 1<<gprDX, x86asm.IDIV: 1<<gprAX | 1<<gprDX,
	x86asm.CBW: 1 << gprAX, x86asm.CWDE: 1 << gprAX, x86asm.CDQE: 1 << gprAX,
	x86asm.CWD: 1 << gprDX, x86asm.CDQ: 1 << gprDX, x86asm.CQO: 1 << gprDX,
	x86asm.CMPXCHG: 1 << gprAX, x86asm.CMPXCHG8B: 1<<gprAX | 1<<gprDX, x86asm.CMPXCHG16B: 1<<gprAX | 1<<gprDX,
	x86asm.RDTSC: 1<<gprAX | 1<<gprDX, x86asm.RDTSCP: 1<<gprAX | 1<<gprCX | 1<<gprDX,
	x86asm.RDPMC: 1<<gprAX | 1<<gprDX, x86asm.RDMSR: 1<<gprAX | 1<<gprDX, x86asm.XGETBV: 1<<gprAX | 1<<gprDX,
	x86asm.LAHF: 1 << gprAX, x86asm.XLATB: 1 << gprAX, x86asm.XBEGIN: 1 << gprAX,
	x86asm.SYSCALL: 1<<gprAX | 1<<gprCX | 1<<gprR11, x86asm.SYSENTER: preserved ^ 0xffff, x86asm.INT: 1 << gprAX,
	x86asm.LODSB: 1<<gprAX | 1<<gprSI, x86asm.LODSW: 1<<gprAX | 1<<gprSI,
	x86asm.LODSD: 1<<gprAX | 1<<gprSI, x86asm.LODSQ: 1<<gprAX | 1<<gprSI,
	x86asm.MOVSB: stringRegisters, x86asm.MOVSW: stringRegisters, x86asm.MOVSD: stringRegisters, x86asm.MOVSQ: stringRegisters,
	x86asm.CMPSB: stringRegisters, x86asm.CMPSW: stringRegisters, x86asm.CMPSD: stringRegisters, x86asm.CMPSQ: stringRegisters,
	x86asm.STOSB: stringRegisters, x86asm.STOSW: stringRegisters, x86asm.STOSD: stringRegisters, x86asm.STOSQ: stringRegisters,
	x86asm.SCASB: stringRegisters, x86asm.SCASW: stringRegisters, x86asm.SCASD: stringRegisters, x86asm.SCASQ: stringRegisters,
	x86asm.INSB: stringRegisters, x86asm.INSW: stringRegisters, x86asm.INSD: stringRegisters,
	x86asm.OUTSB: stringRegisters, x86asm.OUTSW: stringRegisters, x86asm.OUTSD: stringRegisters,
	x86asm.PCMPESTRI: 1 << gprCX, x86asm.PCMPISTRI: 1 << gprCX,
}

const stringRegisters = 1<<gprSI | 1<<gprDI | 1<<gprCX

// read fills e from a decoded instruction.
func (e *effect) read(inst *x86asm.Inst) {
	first, second := inst.Args[0], inst.Args[1]
	rel, isRel := first.(x86asm.Rel)
	dst, dstSize, dstOK := general(first)
	wide := dstOK && dstSize == 8
	src, srcOK := full(second)
	imm, immOK := second.(x86asm.Imm)
	m, memFirst := readMemory(inst, first)
	m2, memSecond := readMemory(inst, second)

	e.clobbers = implicit[inst.Op]
	e.size = 8
	switch inst.Op {
	case x86asm.CALL:
		e.kind = effectCall
		e.direct, e.target = isRel, int64(rel)+int64(inst.Len)
		return
	case x86asm.JMP:
		e.kind = effectJump
		e.direct, e.target = isRel, int64(rel)+int64(inst.Len)
		e.dst, e.hasMem, e.mem = dst, memFirst, m
		return
	case x86asm.RET:
		e.kind = effectReturn
		return
	case x86asm.PUSH:
		e.kind = effectPush
		if wide {
			e.src = dst
		}
		e.hasMem, e.mem = memFirst, m
		if inst.DataSize == 16 {
			e.size, e.src, e.hasMem = 2, gprNone, false
		}
		return
	case x86asm.POP:
		e.kind = effectPop
		if wide {
			e.dst = dst
		} else if dstOK {
			e.clobbers |= 1 << dst
		}
		e.hasMem, e.mem = memFirst, m
		if inst.DataSize == 16 {
			e.size = 2
		}
		return
	case x86asm.PUSHF, x86asm.PUSHFQ, x86asm.PUSHFD:
		e.kind = effectPush
		if inst.DataSize == 16 {
			e.size = 2
		}
		return
	case x86asm.POPF, x86asm.POPFQ, x86asm.POPFD:
		e.kind = effectPop
		if inst.DataSize == 16 {
			e.size = 2
		}
		return
	case x86asm.LEAVE:
		e.kind = effectLeave
		if inst.DataSize == 16 {
			e.kind, e.clobbers = effectOther, 1<<gprSP|1<<gprBP
		}
		return
	case x86asm.ENTER:
		size, _ := first.(x86asm.Imm)
		level, _ := second.(x86asm.Imm)
		e.kind, e.imm = effectEnter, int64(size)&0xffff
		if level != 0 || inst.DataSize == 16 {
			e.kind, e.clobbers = effectOther, 1<<gprSP|1<<gprBP
		}
		return
	case x86asm.INT:
		if v, ok := first.(x86asm.Imm); ok && v == 3 {
			e.kind = effectStop
		}
		return
	case x86asm.NOP, x86asm.FNOP:
		e.filler = true
		return
	case x86asm.MOV:
		switch {
		case wide && srcOK:
			e.kind, e.dst, e.src = effectMove, dst, src
			return
		case wide && memSecond:
			e.kind, e.dst, e.hasMem, e.mem = effectLoad, dst, true, m2
			if m2.index != gprNone {
				e.kind = effectTable
			}
			return
		case memFirst && srcOK:
			e.kind, e.src, e.hasMem, e.mem = effectStore, src, true, m
			return
		case dstOK && dstSize == 4 && memSecond && m2.index != gprNone:
			e.kind, e.dst, e.hasMem, e.mem = effectTable, dst, true, m2
			return
		}
	case x86asm.MOVSXD:
		if wide && memSecond && m2.index != gprNone {
			e.kind, e.dst, e.hasMem, e.mem = effectTable, dst, true, m2
			return
		}
		if half, size, ok := general(second); wide && ok && size == 4 {
			e.kind, e.dst, e.src = effectExtend, dst, half
			return
		}
	case x86asm.CDQE:
		e.kind, e.dst, e.src, e.clobbers = effectExtend, gprAX, gprAX, 0
		return
	case x86asm.LEA:
		if wide && memSecond {
			e.kind, e.dst, e.hasMem, e.mem = effectAddress, dst, true, m2
			return
		}
	case x86asm.ADD, x86asm.SUB:
		switch {
		case wide && immOK:
			e.kind, e.dst, e.imm = effectAdd, dst, int64(imm)
			if inst.Op == x86asm.SUB {
				e.imm = -e.imm
			}
			return
		case wide && dst == gprSP:
			e.kind, e.dst = effectAlign, dst
			return
		case wide && srcOK && inst.Op == x86asm.ADD:
			e.kind, e.dst, e.src = effectSum, dst, src
			return
		}
	case x86asm.INC, x86asm.DEC:
		if wide {
			e.kind, e.dst, e.imm = effectAdd, dst, 1
			if inst.Op == x86asm.DEC {
				e.imm = -1
			}
			return
		}
	case x86asm.AND:
		if wide && dst == gprSP {
			e.kind, e.dst = effectAlign, dst
			return
		}
	case x86asm.XCHG:
		if r, size, ok := general(second); ok && dstOK && r == dst && size == dstSize && size != 4 {
			e.filler = true // xchg %ax,%ax
			return
		}
		if wide && srcOK {
			e.kind, e.dst, e.src = effectSwap, dst, src
			return
		}
		for _, a := range inst.Args[:2] {
			if r, _, ok := general(a); ok {
				e.clobbers |= 1 << r
			}
			if mem, ok := readMemory(inst, a); ok {
				e.write(inst, mem)
			}
		}
		return
	}
	op := operations[inst.Op]
	switch {
	case op&endsFlow != 0:
		e.kind = effectStop
		return
	case isRel: // jcc, loop, jrcxz, xbegin
		e.kind, e.direct, e.target = effectBranch, true, int64(rel)+int64(inst.Len)
		if inst.Op == x86asm.LOOP || inst.Op == x86asm.LOOPE || inst.Op == x86asm.LOOPNE {
			e.clobbers |= 1 << gprCX
		}
		return
	}
	if inst.Op == x86asm.IMUL && second != nil {
		e.clobbers = 0
	}
	if op&readsFirst == 0 {
		if dstOK {
			e.clobbers |= 1 << dst
		}
		if memFirst && implicit[inst.Op] != stringRegisters { // of those the registers say how much they write
			e.write(inst, m)
		}
	}
	if second != nil && (op&writesSecond != 0 || inst.Op == x86asm.MULX) {
		if r, _, ok := general(second); ok {
			e.clobbers |= 1 << r
		}
	}
}

// write notes that the instruction writes its operand in memory.
func (e *effect) write(inst *x86asm.Inst, m memory) {
	e.hasMem, e.mem = true, m
	e.size = 64
	if inst.MemBytes > 0 && inst.MemBytes < 64 {
		e.size = uint8(inst.MemBytes)
	}
}
