// SPDX-License-Identifier: Apache-2.0

package x86_64

import "golang.org/x/arch/x86/x86asm"

// operation is the effect of the instructions of a name.
type operation struct {
	writes uint16 // general registers that are written without being named
	flags  operationFlags
	role   operandRole
}

// operandRole is how the effect depends on the operands.
type operandRole uint8

const (
	rolePlain operandRole = iota // not at all
	roleCall
	roleJump
	roleReturn
	rolePush
	rolePop
	roleLeave
	roleEnter
	roleInterrupt
	roleNop
	roleMove
	roleExtend
	roleExtendAX
	roleAddress
	roleAdd
	roleIncrement
	roleAnd
	roleExchange
	roleMultiply
)

type operationFlags uint8

const (
	readsFirst   operationFlags = 1 << iota // the first operand is only read
	writesSecond                            // the second operand is written too
	writesByCX                              // registers have the size of the memory that is written
	endsFlow                                // nothing follows
)

const (
	writesAX = 1 << gprAX
	writesCX = 1 << gprCX
	writesDX = 1 << gprDX
	writesBX = 1 << gprBX
	writesSI = 1 << gprSI
	writesDI = 1 << gprDI
)

// operationGroups has each operation once; an operation that is absent writes its first
// operand, and nothing else. Intel SDM volume 2, chapters 3 to 6.
var operationGroups = []struct {
	operation
	ops []x86asm.Op
}{
	// Frames and control flow.
	{operation{role: roleCall}, []x86asm.Op{x86asm.CALL}},
	{operation{role: roleJump}, []x86asm.Op{x86asm.JMP}},
	{operation{role: roleReturn}, []x86asm.Op{x86asm.RET}},
	{operation{role: rolePush}, []x86asm.Op{x86asm.PUSH, x86asm.PUSHF, x86asm.PUSHFQ, x86asm.PUSHFD}},
	{operation{role: rolePop}, []x86asm.Op{x86asm.POP, x86asm.POPF, x86asm.POPFQ, x86asm.POPFD}},
	{operation{role: roleLeave}, []x86asm.Op{x86asm.LEAVE}},
	{operation{role: roleEnter}, []x86asm.Op{x86asm.ENTER}},
	{operation{flags: endsFlow}, []x86asm.Op{
		x86asm.HLT, x86asm.UD1, x86asm.UD2, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.SYSRET, x86asm.SYSEXIT,
		x86asm.LRET, x86asm.LJMP, x86asm.LCALL, x86asm.RSM,
	}},
	{operation{writes: writesCX}, []x86asm.Op{x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE}},
	{operation{writes: writesAX}, []x86asm.Op{x86asm.XBEGIN}},
	{operation{writes: writesAX, role: roleInterrupt}, []x86asm.Op{x86asm.INT}},
	{operation{writes: writesAX | writesCX | 1<<gprR11}, []x86asm.Op{x86asm.SYSCALL}},
	{operation{writes: preserved ^ 0xffff}, []x86asm.Op{x86asm.SYSENTER}},
	{operation{role: roleNop}, []x86asm.Op{x86asm.NOP, x86asm.FNOP}},

	// Moves and computed addresses.
	{operation{role: roleMove}, []x86asm.Op{x86asm.MOV}},
	{operation{role: roleExtend}, []x86asm.Op{x86asm.MOVSXD}},
	{operation{role: roleExtendAX}, []x86asm.Op{x86asm.CDQE}},
	{operation{role: roleAddress}, []x86asm.Op{x86asm.LEA}},
	{operation{role: roleAdd}, []x86asm.Op{x86asm.ADD, x86asm.SUB}},
	{operation{role: roleIncrement}, []x86asm.Op{x86asm.INC, x86asm.DEC}},
	{operation{role: roleAnd}, []x86asm.Op{x86asm.AND}},
	{operation{role: roleExchange}, []x86asm.Op{x86asm.XCHG}},
	{operation{flags: writesSecond}, []x86asm.Op{x86asm.XADD, x86asm.MULX}},

	// Operands that are only read.
	{operation{flags: readsFirst}, []x86asm.Op{
		x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.UCOMISS, x86asm.UCOMISD, x86asm.COMISS, x86asm.COMISD,
		x86asm.OUT, x86asm.VERR, x86asm.VERW, x86asm.LLDT, x86asm.LTR, x86asm.LMSW, x86asm.WRFSBASE, x86asm.WRGSBASE,
		x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHW,
		x86asm.LDMXCSR, x86asm.FXRSTOR, x86asm.FXRSTOR64, x86asm.FLDCW, x86asm.FLDENV,
	}},
	{operation{flags: readsFirst, writes: writesAX | writesDX}, []x86asm.Op{x86asm.MUL, x86asm.DIV, x86asm.IDIV}},

	// Writes of registers that are not named.
	{operation{writes: writesAX | writesDX, role: roleMultiply}, []x86asm.Op{x86asm.IMUL}},
	{operation{writes: writesAX}, []x86asm.Op{x86asm.CBW, x86asm.CWDE, x86asm.LAHF, x86asm.XLATB, x86asm.CMPXCHG}},
	{operation{writes: writesDX}, []x86asm.Op{x86asm.CWD, x86asm.CDQ, x86asm.CQO}},
	{operation{writes: writesCX}, []x86asm.Op{x86asm.PCMPESTRI, x86asm.PCMPISTRI}},
	{operation{writes: writesAX | writesDX}, []x86asm.Op{
		x86asm.CMPXCHG8B, x86asm.CMPXCHG16B, x86asm.RDTSC, x86asm.RDPMC, x86asm.RDMSR, x86asm.XGETBV,
	}},
	{operation{writes: writesAX | writesCX | writesDX}, []x86asm.Op{x86asm.RDTSCP}},
	{operation{writes: writesAX | writesBX | writesCX | writesDX}, []x86asm.Op{x86asm.CPUID}},

	// String instructions: memory at rsi and rdi, rcx times.
	{operation{writes: writesAX | writesSI}, []x86asm.Op{x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ}},
	{operation{writes: writesSI | writesDI | writesCX, flags: writesByCX}, []x86asm.Op{
		x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ,
		x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ,
		x86asm.INSB, x86asm.INSW, x86asm.INSD, x86asm.OUTSB, x86asm.OUTSW, x86asm.OUTSD,
	}},
}

// operations are operationGroups by operation.
var operations = func() []operation {
	last := x86asm.Op(0)
	for i := range operationGroups {
		for _, op := range operationGroups[i].ops {
			last = max(last, op)
		}
	}
	list := make([]operation, last+1)
	for i := range operationGroups {
		for _, op := range operationGroups[i].ops {
			list[op] = operationGroups[i].operation
		}
	}
	return list
}()

// operationOf is the operation of the instructions of a name.
func operationOf(op x86asm.Op) *operation {
	if int(op) < len(operations) {
		return &operations[op]
	}
	return &operations[0]
}

// operands has the operands of an instruction.
type operands struct {
	inst          *x86asm.Inst
	first, second x86asm.Arg

	rel   x86asm.Rel // the first one, where it is a distance
	isRel bool

	dst     uint8 // the first one, where it is a general register
	dstSize int
	isDst   bool
	isWide  bool // dst is named whole
}

// to and from are the first and the second operand where they are in memory.
func (o *operands) to() (memory, bool)   { return readMemory(o.inst, o.first) }
func (o *operands) from() (memory, bool) { return readMemory(o.inst, o.second) }

// src is the second operand where it is a general register that is named whole.
func (o *operands) src() (register uint8, ok bool) { return full(o.second) }

// is16 reports whether the operands have 16 bits.
func (o *operands) is16() bool { return o.inst.DataSize == 16 }

// target is where the instruction goes, from its beginning.
func (o *operands) target() int64 { return int64(o.rel) + int64(o.inst.Len) }

// read fills e from a decoded instruction.
func (e *effect) read(inst *x86asm.Inst) {
	op := operationOf(inst.Op)
	o := operands{inst: inst, first: inst.Args[0], second: inst.Args[1]}
	o.rel, o.isRel = o.first.(x86asm.Rel)
	o.dst, o.dstSize, o.isDst = general(o.first)
	o.isWide = o.isDst && o.dstSize == 8
	e.clobbers, e.size = op.writes, 8
	if e.readOperands(op.role, &o) {
		return
	}
	switch {
	case op.flags&endsFlow != 0:
		e.kind = effectStop
		return
	case o.isRel: // jcc, loop, jrcxz, xbegin
		e.kind, e.direct, e.target = effectBranch, true, o.target()
		return
	}
	if op.flags&readsFirst == 0 {
		if o.isDst {
			e.clobbers |= 1 << o.dst
		}
		if to, ok := o.to(); ok && op.flags&writesByCX == 0 {
			e.write(inst, to)
		}
	}
	if op.flags&writesSecond != 0 {
		if r, _, ok := general(o.second); ok {
			e.clobbers |= 1 << r
		}
	}
}

// readOperands fills e by a role of the operands. It returns true where that is all that
// the instruction does; otherwise the instruction writes its first operand, as flags say.
// (A table of functions would have every operand allocated.)
func (e *effect) readOperands(role operandRole, o *operands) (done bool) {
	switch role {
	case roleCall:
		return readCall(e, o)
	case roleJump:
		return readJump(e, o)
	case roleReturn:
		return readReturn(e, o)
	case rolePush:
		return readPush(e, o)
	case rolePop:
		return readPop(e, o)
	case roleLeave:
		return readLeave(e, o)
	case roleEnter:
		return readEnter(e, o)
	case roleInterrupt:
		return readInterrupt(e, o)
	case roleNop:
		return readNop(e, o)
	case roleMove:
		return readMove(e, o)
	case roleExtend:
		return readExtend(e, o)
	case roleExtendAX:
		return readExtendAX(e, o)
	case roleAddress:
		return readAddress(e, o)
	case roleAdd:
		return readAdd(e, o)
	case roleIncrement:
		return readIncrement(e, o)
	case roleAnd:
		return readAnd(e, o)
	case roleExchange:
		return readExchange(e, o)
	case roleMultiply:
		return readMultiply(e, o)
	}
	return false
}

func readCall(e *effect, o *operands) bool {
	e.kind, e.direct, e.target = effectCall, o.isRel, o.target()
	return true
}

func readJump(e *effect, o *operands) bool {
	e.kind, e.direct, e.target = effectJump, o.isRel, o.target()
	e.dst = o.dst
	e.mem, e.hasMem = o.to()
	return true
}

func readReturn(e *effect, _ *operands) bool {
	e.kind = effectReturn
	return true
}

func readPush(e *effect, o *operands) bool {
	e.kind = effectPush
	if o.isWide {
		e.src = o.dst
	}
	e.mem, e.hasMem = o.to()
	if o.is16() {
		e.size, e.src, e.hasMem = 2, gprNone, false
	}
	return true
}

func readPop(e *effect, o *operands) bool {
	e.kind = effectPop
	if o.isWide {
		e.dst = o.dst
	} else if o.isDst {
		e.clobbers |= 1 << o.dst
	}
	e.mem, e.hasMem = o.to()
	if o.is16() {
		e.size = 2
	}
	return true
}

func readLeave(e *effect, o *operands) bool {
	e.kind = effectLeave
	if o.is16() {
		e.kind, e.clobbers = effectOther, 1<<gprSP|1<<gprBP
	}
	return true
}

func readEnter(e *effect, o *operands) bool {
	size, _ := o.first.(x86asm.Imm)
	level, _ := o.second.(x86asm.Imm)
	e.kind, e.imm = effectEnter, int64(size)&0xffff
	if level != 0 || o.is16() {
		e.kind, e.clobbers = effectOther, 1<<gprSP|1<<gprBP
	}
	return true
}

// readInterrupt takes a breakpoint for the end of the code.
func readInterrupt(e *effect, o *operands) bool {
	const breakpoint = 3
	if v, ok := o.first.(x86asm.Imm); ok && v == breakpoint {
		e.kind = effectStop
	}
	return true
}

func readNop(e *effect, _ *operands) bool {
	e.filler = true
	return true
}

func readMove(e *effect, o *operands) bool {
	if src, ok := o.src(); ok {
		to, isTo := o.to()
		switch {
		case o.isWide:
			e.kind, e.dst, e.src = effectMove, o.dst, src
		case isTo:
			e.kind, e.src, e.hasMem, e.mem = effectStore, src, true, to
		}
		return o.isWide || isTo
	}
	from, isFrom := o.from()
	switch hasIndex := from.index != gprNone; {
	case isFrom && hasIndex && o.isDst && o.dstSize >= 4:
		e.kind = effectTable
	case isFrom && o.isWide:
		e.kind = effectLoad
	default:
		return false
	}
	e.dst, e.hasMem, e.mem = o.dst, true, from
	return true
}

func readExtend(e *effect, o *operands) bool {
	if !o.isWide {
		return false
	}
	from, isFrom := o.from()
	half, size, isHalf := general(o.second)
	switch {
	case isFrom && from.index != gprNone:
		e.kind, e.dst, e.hasMem, e.mem = effectTable, o.dst, true, from
	case isHalf && size == 4:
		e.kind, e.dst, e.src = effectExtend, o.dst, half
	default:
		return false
	}
	return true
}

func readExtendAX(e *effect, _ *operands) bool {
	e.kind, e.dst, e.src = effectExtend, gprAX, gprAX
	return true
}

func readAddress(e *effect, o *operands) bool {
	from, ok := o.from()
	if !o.isWide || !ok {
		return false
	}
	e.kind, e.dst, e.hasMem, e.mem = effectAddress, o.dst, true, from
	return true
}

func readAdd(e *effect, o *operands) bool {
	if !o.isWide {
		return false
	}
	isSub := o.inst.Op == x86asm.SUB
	imm, isImm := o.second.(x86asm.Imm)
	src, isSrc := o.src()
	switch {
	case isImm && isSub:
		e.kind, e.imm = effectAdd, -int64(imm)
	case isImm:
		e.kind, e.imm = effectAdd, int64(imm)
	case o.dst == gprSP:
		e.kind = effectAlign
	case isSrc && !isSub:
		e.kind, e.src = effectSum, src
	default:
		return false
	}
	e.dst = o.dst
	return true
}

func readIncrement(e *effect, o *operands) bool {
	if !o.isWide {
		return false
	}
	e.kind, e.dst, e.imm = effectAdd, o.dst, 1
	if o.inst.Op == x86asm.DEC {
		e.imm = -1
	}
	return true
}

func readAnd(e *effect, o *operands) bool {
	if !o.isWide || o.dst != gprSP {
		return false
	}
	e.kind, e.dst = effectAlign, o.dst
	return true
}

// readExchange takes an exchange of a register with itself for a filler, except the
// 32-bit exchange, which clears the upper bits.
func readExchange(e *effect, o *operands) bool {
	if r, size, ok := general(o.second); ok && o.isDst && r == o.dst && size == o.dstSize && size != 4 {
		e.filler = true
		return true
	}
	if src, ok := o.src(); ok && o.isWide {
		e.kind, e.dst, e.src = effectSwap, o.dst, src
		return true
	}
	for _, a := range [...]x86asm.Arg{o.first, o.second} {
		if r, _, ok := general(a); ok {
			e.clobbers |= 1 << r
		}
		if mem, ok := readMemory(o.inst, a); ok {
			e.write(o.inst, mem)
		}
	}
	return true
}

// readMultiply tells the variant with one operand, which writes rdx:rax, from the others.
func readMultiply(e *effect, o *operands) bool {
	if o.second != nil {
		e.clobbers = 0
	}
	return false
}
