// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"iter"

	"github.com/unwindd/unwindd/internal/dw"
)

// Entry is an entry of a section: a CIE, an FDE, or a terminator, which is a length of zero
// and has neither.
type Entry struct {
	Offset  uint64 // in the section
	Length  uint64 // bytes behind the length field
	DWARF64 bool   // the entry is in the 64-bit DWARF format
	CIE     *CIE
	FDE     *FDE
}

// Entries lists the entries of the section, in its order. With an error CIE and FDE
// are nil; the list goes on behind the entry unless its length is the problem.
// The cost of the rows of its FDEs is bounded as with FDEs.
func (t *Table) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		work := t.listWork()
		data := t.section.Data
		for offset := 0; offset < len(data); {
			if rest := data[offset:]; len(rest) < 4 && isAllZero(rest) {
				return // alignment
			}
			e, err := t.entryAt(uint64(offset))
			if t.section.Open && err != nil {
				return // behind the section
			}
			out := Entry{Offset: e.offset}
			if e.end != 0 {
				header := 4
				r := t.reader(offset, len(data))
				if out.DWARF64 = r.u32() == 0xffffffff; out.DWARF64 {
					header = 12
				}
				out.Length = uint64(e.end - offset - header)
			}
			switch {
			case err != nil || e.terminator:
			case e.cie:
				out.CIE, err = t.cie(e.offset)
			default:
				f := new(FDE)
				if err = t.parseFDE(e, f); err == nil {
					f.listing = &work
					out.FDE = f
				}
			}
			if !yield(out, err) || e.end == 0 || t.section.Open && e.terminator {
				return
			}
			offset = e.end
		}
	}
}

// OperandKind is the meaning of an operand of a call frame instruction.
type OperandKind uint8

// The kinds of operands.
const (
	AdvanceOperand    OperandKind = iota // bytes of code
	AddressOperand                       // a virtual address
	RegisterOperand                      // a DWARF register number
	OffsetOperand                        // signed, bytes
	SpaceOperand                         // an address space
	SizeOperand                          // bytes
	ExpressionOperand                    // an expression
)

var operandKinds = [...]OperandKind{
	lowDelta: AdvanceOperand, delta1: AdvanceOperand, delta2: AdvanceOperand, delta4: AdvanceOperand, delta8: AdvanceOperand,
	address: AddressOperand, lowRegister: RegisterOperand, register: RegisterOperand,
	offset: OffsetOperand, factored: OffsetOperand, signedFactored: OffsetOperand,
	space: SpaceOperand, size: SizeOperand, block: ExpressionOperand,
}

// Operand is an operand of a call frame instruction, multiplied by its alignment factor.
type Operand struct {
	Kind  OperandKind
	Value uint64 // OffsetOperand: an int64 reinterpreted
	Expr  []byte // ExpressionOperand: aliases the section
}

// Instruction is a call frame instruction with its operands.
type Instruction struct {
	Offset   uint64 // in the section
	Name     string // "DW_CFA_offset"
	Operands []Operand
	Location uint64 // of an FDE: the location after the instruction, a virtual address

	end int // of the instruction in the section
}

// Instructions lists the initial instructions, padding included. It ends with the first one
// that cannot be decoded; Operands are reused.
func (c *CIE) Instructions() iter.Seq2[Instruction, error] {
	return func(yield func(Instruction, error) bool) { c.instructions(c.pos, c.end, 0, yield) }
}

// Instructions lists the instructions, padding included. It ends with the first one that
// cannot be decoded; Operands are reused.
func (f *FDE) Instructions() iter.Seq2[Instruction, error] {
	return func(yield func(Instruction, error) bool) { f.CIE.instructions(f.pos, f.end, f.Start, yield) }
}

func (c *CIE) instructions(pos, end int, start uint64, yield func(Instruction, error) bool) {
	t := c.table
	if c.unexpected {
		yield(Instruction{}, t.errorf(c.Offset, ErrAugmentation, "%q", c.Augmentation))
		return
	}
	m := machines.Get().(*machine)
	defer m.free()
	m.prepare(c, pos, end)
	m.fn = start
	location := start
	var list [3]Operand
	for m.r.pos < end {
		begin := m.r.pos
		code := m.r.data[begin]
		m.r.pos++
		op := &opcodes[code]
		instruction := Instruction{Offset: uint64(begin), Name: dw.CFAName(code)}
		if op.apply == nil {
			yield(instruction, t.errorf(instruction.Offset, ErrInstruction, "%#02x", code))
			return
		}
		var o operands
		if err := m.decode(code, op, &o); err != nil {
			yield(instruction, t.errorf(instruction.Offset, err, "%s", instruction.Name))
			return
		}
		instruction.Operands = list[:0]
		for i, kind := range op.operands {
			if kind == noOperand {
				break
			}
			operand := Operand{Kind: operandKinds[kind], Value: o.value[i]}
			switch operand.Kind {
			case ExpressionOperand:
				operand.Value, operand.Expr = 0, o.expr
			case AdvanceOperand:
				location = (location + operand.Value) & m.mask
			case AddressOperand:
				location = operand.Value
			}
			instruction.Operands = append(instruction.Operands, operand)
		}
		instruction.Location, instruction.end = location, m.r.pos
		if !yield(instruction, nil) {
			return
		}
	}
}

// isAdvance reports whether the instruction completes a row.
func (instruction *Instruction) isAdvance() bool {
	return len(instruction.Operands) > 0 && instruction.Operands[0].Kind <= AddressOperand
}

// Advances calls yield with every row that the instructions define: one for each instruction
// that sets or advances the location and one for the end, until yield returns false. Unlike
// Rows it yields rows that the next one replaces because it begins at the same address, rows
// at or behind End, and the rows of an FDE of no code. The row is reused as with Rows. An
// error is about the first instruction that cannot be executed, and comes behind the rows
// before it.
func (f *FDE) Advances(yield func(*Row) bool) error {
	m := machines.Get().(*machine)
	m.row, m.listing = &m.own, f.listing
	defer m.free()
	if err := m.start(f); err != nil {
		return err
	}
	row := m.row
	whole := m.r.data
	// next executes the instructions before an offset and yields the row.
	next := func(end int, last bool) (more bool, err error) {
		m.r.data = whole[:end]
		if _, err := m.run(); err != nil {
			return false, err
		}
		if m.listing != nil && m.listed(1+len(row.Rules)) != nil {
			return false, f.errListing()
		}
		row.End = m.location
		if last {
			row.End = f.End
		}
		return yield(row), nil
	}
	for instruction, err := range f.Instructions() {
		if err != nil {
			break // the machine gives the error
		}
		if !instruction.isAdvance() {
			continue
		}
		if more, err := next(instruction.end, false); !more {
			return err
		}
		row.Start = m.location
	}
	_, err := next(len(whole), true)
	return err
}
