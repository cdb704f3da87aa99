// SPDX-License-Identifier: Apache-2.0

package x86code

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
	writesAX = 1 << AX
	writesCX = 1 << CX
	writesDX = 1 << DX
	writesBX = 1 << BX
	writesSI = 1 << SI
	writesDI = 1 << DI
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
	{operation{writes: writesAX | writesCX | 1<<R11}, []x86asm.Op{x86asm.SYSCALL}},
	{operation{writes: ^uint16(1<<BX | 1<<SP | 1<<BP | 1<<R12 | 1<<R13 | 1<<R14 | 1<<R15)}, []x86asm.Op{x86asm.SYSENTER}},
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
	mode          *Mode
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
func (o *operands) to() (Memory, bool)   { return o.mode.readMemory(o.inst, o.first) }
func (o *operands) from() (Memory, bool) { return o.mode.readMemory(o.inst, o.second) }

// src is the second operand where it is a general register that is named whole.
func (o *operands) src() (register uint8, ok bool) { return o.mode.Full(o.second) }

// is16 reports whether the operands have 16 bits.
func (o *operands) is16() bool { return o.inst.DataSize == 16 }

// target is where the instruction goes, from its beginning.
func (o *operands) target() int64 { return int64(o.rel) + int64(o.inst.Len) }

// read fills e from a decoded instruction.
func (e *Effect) read(m *Mode, inst *x86asm.Inst) {
	op := operationOf(inst.Op)
	o := operands{mode: m, inst: inst, first: inst.Args[0], second: inst.Args[1]}
	o.rel, o.isRel = o.first.(x86asm.Rel)
	o.dst, o.dstSize, o.isDst = General(o.first)
	o.isWide = o.isDst && o.dstSize == m.Word
	e.Clobbers, e.Size = op.writes, uint8(m.Word) //nolint:gosec // 8 or 4
	if e.readOperands(op.role, &o) {
		return
	}
	switch {
	case op.flags&endsFlow != 0:
		e.Kind = Stop
		return
	case o.isRel: // jcc, loop, jrcxz, xbegin
		e.Kind, e.IsDirect, e.Target = Branch, true, o.target()
		return
	}
	if op.flags&readsFirst == 0 {
		if o.isDst {
			e.Clobbers |= 1 << o.dst
		}
		if to, ok := o.to(); ok && op.flags&writesByCX == 0 {
			e.write(inst, to)
		}
	}
	if op.flags&writesSecond != 0 {
		if r, _, ok := General(o.second); ok {
			e.Clobbers |= 1 << r
		}
	}
}

// readOperands fills e by a role of the operands. It returns true where that is all that
// the instruction does; otherwise the instruction writes its first operand, as flags say.
// (A table of functions would have every operand allocated.)
func (e *Effect) readOperands(role operandRole, o *operands) (done bool) {
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

func readCall(e *Effect, o *operands) bool {
	e.Kind, e.IsDirect, e.Target = Call, o.isRel, o.target()
	return true
}

func readJump(e *Effect, o *operands) bool {
	e.Kind, e.IsDirect, e.Target = Jump, o.isRel, o.target()
	e.Dst = o.dst
	e.Mem, e.HasMem = o.to()
	return true
}

func readReturn(e *Effect, _ *operands) bool {
	e.Kind = Return
	return true
}

func readPush(e *Effect, o *operands) bool {
	e.Kind = Push
	if o.isWide {
		e.Src = o.dst
	}
	e.Mem, e.HasMem = o.to()
	if o.is16() {
		e.Size, e.Src, e.HasMem = 2, None, false
	}
	return true
}

func readPop(e *Effect, o *operands) bool {
	e.Kind = Pop
	if o.isWide {
		e.Dst = o.dst
	} else if o.isDst {
		e.Clobbers |= 1 << o.dst
	}
	e.Mem, e.HasMem = o.to()
	if o.is16() {
		e.Size = 2
	}
	return true
}

func readLeave(e *Effect, o *operands) bool {
	e.Kind = Leave
	if o.is16() {
		e.Kind, e.Clobbers = Other, 1<<SP|1<<BP
	}
	return true
}

func readEnter(e *Effect, o *operands) bool {
	size, _ := o.first.(x86asm.Imm)
	level, _ := o.second.(x86asm.Imm)
	e.Kind, e.Imm = Enter, int64(size)&0xffff
	if level != 0 || o.is16() {
		e.Kind, e.Clobbers = Other, 1<<SP|1<<BP
	}
	return true
}

// readInterrupt takes a breakpoint for the end of the code.
func readInterrupt(e *Effect, o *operands) bool {
	const breakpoint = 3
	if v, ok := o.first.(x86asm.Imm); ok && v == breakpoint {
		e.Kind = Stop
	}
	return true
}

func readNop(e *Effect, _ *operands) bool {
	e.IsFiller = true
	return true
}

func readMove(e *Effect, o *operands) bool {
	if src, ok := o.src(); ok {
		to, isTo := o.to()
		switch {
		case o.isWide:
			e.Kind, e.Dst, e.Src = Move, o.dst, src
		case isTo:
			e.Kind, e.Src, e.HasMem, e.Mem = Store, src, true, to
		}
		return o.isWide || isTo
	}
	from, isFrom := o.from()
	switch hasIndex := from.Index != None; {
	case isFrom && hasIndex && o.isDst && o.dstSize >= 4:
		e.Kind = Table
	case isFrom && o.isWide:
		e.Kind = Load
	default:
		return false
	}
	e.Dst, e.HasMem, e.Mem = o.dst, true, from
	return true
}

func readExtend(e *Effect, o *operands) bool {
	if !o.isWide {
		return false
	}
	from, isFrom := o.from()
	half, size, isHalf := General(o.second)
	switch {
	case isFrom && from.Index != None:
		e.Kind, e.Dst, e.HasMem, e.Mem = Table, o.dst, true, from
	case isHalf && size == 4:
		e.Kind, e.Dst, e.Src = Extend, o.dst, half
	default:
		return false
	}
	return true
}

func readExtendAX(e *Effect, _ *operands) bool {
	e.Kind, e.Dst, e.Src = Extend, AX, AX
	return true
}

func readAddress(e *Effect, o *operands) bool {
	from, ok := o.from()
	if !o.isWide || !ok {
		return false
	}
	if from.Base == o.dst && from.Offset == 0 && !from.IsOpaque { // padding of 32-bit code
		e.IsFiller = true
		return true
	}
	e.Kind, e.Dst, e.HasMem, e.Mem = Address, o.dst, true, from
	return true
}

func readAdd(e *Effect, o *operands) bool {
	if !o.isWide {
		return false
	}
	isSub := o.inst.Op == x86asm.SUB
	imm, isImm := o.second.(x86asm.Imm)
	src, isSrc := o.src()
	switch {
	case isImm && isSub:
		e.Kind, e.Imm = Add, -int64(imm)
	case isImm:
		e.Kind, e.Imm = Add, int64(imm)
	case o.dst == SP:
		e.Kind = Align
	case isSrc && !isSub:
		e.Kind, e.Src = Sum, src
	default:
		return false
	}
	e.Dst = o.dst
	return true
}

func readIncrement(e *Effect, o *operands) bool {
	if !o.isWide {
		return false
	}
	e.Kind, e.Dst, e.Imm = Add, o.dst, 1
	if o.inst.Op == x86asm.DEC {
		e.Imm = -1
	}
	return true
}

func readAnd(e *Effect, o *operands) bool {
	if !o.isWide || o.dst != SP {
		return false
	}
	e.Kind, e.Dst = Align, o.dst
	return true
}

// readExchange takes an exchange of a register with itself for a filler, except the
// 32-bit exchange, which clears the upper bits.
func readExchange(e *Effect, o *operands) bool {
	if r, size, ok := General(o.second); ok && o.isDst && r == o.dst && size == o.dstSize && (size != 4 || o.mode.Word == 4) {
		e.IsFiller = true
		return true
	}
	if src, ok := o.src(); ok && o.isWide {
		e.Kind, e.Dst, e.Src = Swap, o.dst, src
		return true
	}
	for _, a := range [...]x86asm.Arg{o.first, o.second} {
		if r, _, ok := General(a); ok {
			e.Clobbers |= 1 << r
		}
		if mem, ok := o.mode.readMemory(o.inst, a); ok {
			e.write(o.inst, mem)
		}
	}
	return true
}

// readMultiply tells the variant with one operand, which writes rdx:rax, from the others.
func readMultiply(e *Effect, o *operands) bool {
	if o.second != nil {
		e.Clobbers = 0
	}
	return false
}
