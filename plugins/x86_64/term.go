// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"fmt"

	"github.com/unwindd/unwindd/plugins/x86code"
	"golang.org/x/arch/x86/x86asm"
)

// term is a value that is computed from registers and memory, and can be written as a
// DWARF expression. nil is an unknown value.
type term struct {
	op   termOp
	reg  uint32 // termRegister: its DWARF number
	n    int64  // termPlus, termAnd
	a, b *term
	size int
}

type termOp uint8

const (
	termRegister termOp = iota // the value of a register at the beginning
	termPlus                   // a + n
	termAnd                    // a & n
	termMinus                  // a - b
	termLoad                   // the word in memory at a
)

// maxTermSize bounds the number of parts of a term, one that is used twice counted twice.
// Stack switches follow four pointers.
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

// hasPart reports whether a term depends on a part.
func (t *term) hasPart(part *term) bool {
	return t != nil && (t.equal(part) || t.a.hasPart(part) || t.b.hasPart(part))
}

// with is t with every part that is old replaced.
func (t *term) with(old, replacement *term) *term {
	switch {
	case t == nil:
		return nil
	case t.equal(old):
		return replacement
	case t.op == termRegister:
		return t
	case t.op == termPlus:
		return t.a.with(old, replacement).plus(t.n)
	}
	a, b := t.a.with(old, replacement), t.b.with(old, replacement)
	if a == nil || t.b != nil && b == nil {
		return nil
	}
	return bounded(&term{op: t.op, n: t.n, a: a, b: b})
}

// text is the text of the expression that computes t.
func (t *term) text() string {
	switch t.op {
	case termRegister:
		return x86code.RegisterText(t.reg, 0)
	case termPlus:
		return t.a.text() + x86code.AddText(t.n)
	case termAnd:
		return fmt.Sprintf("%s; consts %d; and", t.a.text(), t.n)
	case termMinus:
		return t.a.text() + "; " + t.b.text() + "; minus"
	}
	return t.a.text() + "; deref"
}

// executor executes instructions on terms.
type executor struct {
	gpr    [x86code.GPRCount]*term
	memory []cell // stored words, in order
}

// cell is a word that was stored.
type cell struct{ address, v *term }

func newExecutor() *executor {
	m := &executor{}
	for r := range m.gpr {
		m.gpr[r] = registerTerm(mode.Numbers[r])
	}
	return m
}

func (m *executor) clone() *executor {
	c := *m
	c.memory = append([]cell(nil), m.memory...)
	return &c
}

func (m *executor) read(address *term) *term {
	if address == nil {
		return nil
	}
	for i := len(m.memory) - 1; i >= 0; i-- {
		if m.memory[i].address.equal(address) {
			return m.memory[i].v
		}
	}
	return address.load()
}

func (m *executor) write(address, v *term) {
	if address != nil {
		m.memory = append(m.memory, cell{address, v})
	}
}

// address is the address of an operand in memory. The thread's own memory begins at the
// base of fs.
func (m *executor) address(a x86asm.Mem) *term {
	if a.Index != 0 || a.Base == x86asm.RIP || a.Segment != 0 && a.Segment != x86asm.FS {
		return nil
	}
	var t *term
	switch r, size, ok := x86code.General(a.Base); {
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

// execute applies an instruction that neither branches nor returns. An unknown
// instruction makes the registers that it may write unknown.
func (m *executor) execute(inst *x86asm.Inst, e *x86code.Effect) {
	dst, dstWide := mode.Full(inst.Args[0])
	src, srcWide := mode.Full(inst.Args[1])
	mem, toMemory := inst.Args[0].(x86asm.Mem)
	sp := &m.gpr[x86code.SP]
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
			if !mode.IsPreserved(uint8(r)) {
				m.gpr[r] = nil
			}
		}
	case toMemory && e.HasMem:
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

// result is the value that a known instruction gives its first operand, the whole
// register dst.
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
	if r, ok := mode.Full(a); ok {
		return m.gpr[r]
	}
	if at, ok := a.(x86asm.Mem); ok {
		return m.read(m.address(at))
	}
	return nil
}

// clobber forgets the registers that an instruction may write.
func (m *executor) clobber(e *x86code.Effect) {
	written := e.Clobbers
	for _, r := range [...]uint8{e.Dst, e.Src} {
		if r != x86code.None && (e.Kind != x86code.Store && e.Kind != x86code.Push) {
			written |= 1 << r
		}
	}
	for r := range m.gpr {
		if written>>r&1 != 0 {
			m.gpr[r] = nil
		}
	}
}
