// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// A term is a value that is computed from registers and memory, as far as it can be
// written as a DWARF expression. nil is a value that is not known.
type term struct {
	op   termOp
	reg  uint32 // termRegister: its DWARF number
	n    int64  // termPlus, termAnd
	a, b *term
	size int
}

type termOp uint8

const (
	termRegister termOp = iota // what a register holds at the beginning
	termPlus                   // a + n
	termAnd                    // a & n
	termMinus                  // a - b
	termLoad                   // the word in memory at a
)

// maxTermSize is how many parts terms have, counting one that is used twice twice. What
// switches stacks follows four pointers.
const maxTermSize = 64

func registerTerm(register uint32) *term { return &term{op: termRegister, reg: register, size: 1} }

func (t *term) plus(n int64) *term {
	switch {
	case t == nil, n == 0:
		return t
	case t.op == termPlus:
		return t.a.plus(t.n + n)
	}
	return bounded(&term{op: termPlus, a: t, n: n})
}

func (t *term) and(n int64) *term {
	if t == nil {
		return nil
	}
	return bounded(&term{op: termAnd, a: t, n: n})
}

func (t *term) minus(o *term) *term {
	if t == nil || o == nil {
		return nil
	}
	return bounded(&term{op: termMinus, a: t, b: o})
}

func (t *term) load() *term {
	if t == nil {
		return nil
	}
	return bounded(&term{op: termLoad, a: t})
}

// bounded is t, or nil where it is too large.
func bounded(t *term) *term {
	for _, part := range [...]*term{t.a, t.b} {
		if part != nil {
			t.size += part.size
		}
	}
	if t.size++; t.size > maxTermSize {
		return nil
	}
	return t
}

func (t *term) equal(o *term) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.op == o.op && t.reg == o.reg && t.n == o.n && t.a.equal(o.a) && t.b.equal(o.b)
}

// hasPart says whether a term depends on a part.
func (t *term) hasPart(part *term) bool {
	return t != nil && (t.equal(part) || t.a.hasPart(part) || t.b.hasPart(part))
}

// with is t with every part that is old replaced.
func (t *term) with(old, by *term) *term {
	switch {
	case t == nil:
		return nil
	case t.equal(old):
		return by
	case t.op == termRegister:
		return t
	case t.op == termPlus:
		return t.a.with(old, by).plus(t.n)
	}
	a, b := t.a.with(old, by), t.b.with(old, by)
	if a == nil || t.b != nil && b == nil {
		return nil
	}
	return bounded(&term{op: t.op, n: t.n, a: a, b: b})
}

// text is the text of the expression that computes t.
func (t *term) text() string {
	switch t.op {
	case termRegister:
		return registerText(t.reg, 0)
	case termPlus:
		return t.a.text() + addText(t.n)
	case termAnd:
		return fmt.Sprintf("%s; consts %d; and", t.a.text(), t.n)
	case termMinus:
		return t.a.text() + "; " + t.b.text() + "; minus"
	}
	return t.a.text() + "; deref"
}

// An executor executes instructions on terms.
type executor struct {
	gpr    [gprCount]*term
	memory []cell // what was stored, in order
}

// A cell is a word that was stored.
type cell struct{ at, v *term }

func newExecutor() *executor {
	m := &executor{}
	for r := range m.gpr {
		m.gpr[r] = registerTerm(dwarfNumber[r])
	}
	return m
}

func (m *executor) clone() *executor {
	c := *m
	c.memory = append([]cell(nil), m.memory...)
	return &c
}

func (m *executor) read(at *term) *term {
	if at == nil {
		return nil
	}
	for i := len(m.memory) - 1; i >= 0; i-- {
		if m.memory[i].at.equal(at) {
			return m.memory[i].v
		}
	}
	return at.load()
}

func (m *executor) write(at, v *term) {
	if at != nil {
		m.memory = append(m.memory, cell{at, v})
	}
}

// address is that of an operand in memory. The thread's own memory begins at the
// base of fs.
func (m *executor) address(a x86asm.Mem) *term {
	if a.Index != 0 || a.Base == x86asm.RIP || a.Segment != 0 && a.Segment != x86asm.FS {
		return nil
	}
	var t *term
	switch r, size, ok := general(a.Base); {
	case ok && size == 8 && a.Segment == 0:
		t = m.gpr[r]
	case a.Base == 0 && a.Segment == x86asm.FS:
		t = registerTerm(fsBase)
	default:
		return nil
	}
	disp := a.Disp
	if a.Base == 0 {
		disp = int64(int32(disp)) // a displacement of 32 bits is extended
	}
	return t.plus(disp)
}

// execute applies an instruction that neither branches nor returns. What it does
// not know leaves the registers that it may write unknown.
func (m *executor) execute(inst *x86asm.Inst, e *effect) {
	dst, dstWide := full(inst.Args[0])
	src, srcWide := full(inst.Args[1])
	mem, toMemory := inst.Args[0].(x86asm.Mem)
	sp := &m.gpr[gprSP]
	var v *term
	switch {
	case inst.Op == x86asm.PUSH:
		if dstWide {
			v = m.gpr[dst]
		}
		*sp = (*sp).plus(-8)
		m.write(*sp, v)
	case inst.Op == x86asm.POP:
		v = m.read(*sp)
		*sp = (*sp).plus(8)
		if dstWide {
			m.gpr[dst] = v
		}
	case inst.Op == x86asm.CALL:
		for r := range m.gpr {
			if preserved>>r&1 == 0 {
				m.gpr[r] = nil
			}
		}
	case toMemory && e.hasMem:
		if srcWide && inst.Op == x86asm.MOV {
			v = m.gpr[src]
		}
		m.write(m.address(mem), v)
	case dstWide:
		if v, known := m.result(inst, dst); known {
			m.gpr[dst] = v
			return
		}
		m.clobber(e)
	default:
		m.clobber(e)
	}
}

// result is what an instruction that is known makes of its first operand, the whole register dst.
func (m *executor) result(inst *x86asm.Inst, dst uint8) (v *term, ok bool) {
	imm, isImm := inst.Args[1].(x86asm.Imm)
	from, fromMemory := inst.Args[1].(x86asm.Mem)
	switch {
	case inst.Op == x86asm.MOV:
		return m.operand(inst.Args[1]), true
	case inst.Op == x86asm.LEA && fromMemory:
		return m.address(from), true
	case inst.Op == x86asm.ADD && isImm:
		return m.gpr[dst].plus(int64(imm)), true
	case inst.Op == x86asm.SUB && isImm:
		return m.gpr[dst].plus(-int64(imm)), true
	case inst.Op == x86asm.SUB:
		return m.gpr[dst].minus(m.operand(inst.Args[1])), true
	case inst.Op == x86asm.AND && isImm:
		return m.gpr[dst].and(int64(imm)), true
	}
	return nil, false
}

// operand is the value of a register or of a word in memory.
func (m *executor) operand(a x86asm.Arg) *term {
	if r, ok := full(a); ok {
		return m.gpr[r]
	}
	if at, ok := a.(x86asm.Mem); ok {
		return m.read(m.address(at))
	}
	return nil
}

// clobber forgets the registers that an instruction may write.
func (m *executor) clobber(e *effect) {
	written := e.clobbers
	for _, r := range [...]uint8{e.dst, e.src} {
		if r != gprNone && (e.kind != effectStore && e.kind != effectPush) {
			written |= 1 << r
		}
	}
	for r := range m.gpr {
		if written>>r&1 != 0 {
			m.gpr[r] = nil
		}
	}
}
