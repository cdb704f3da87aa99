// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// maxCode is the size of the largest function that is read.
const maxCode = 1 << 18

// flow is a function, whose code codeflow follows over all its branches. Addresses are offsets.
type flow struct {
	*codeflow.Function[state]
	code    []byte
	isExact bool // rows need not hold while a callee runs
}

func newFlow(code *codeflow.Pieces) *flow {
	const maxCalls = 8
	f := &flow{code: code.Code}
	f.Function = codeflow.NewFunction(f, code, 1, codeflow.Limits{Steps: 1<<12 + 64*len(f.code), Calls: maxCalls})
	return f
}

// readFunction follows a function from its first instruction.
func readFunction(code *codeflow.Pieces) (*flow, error) {
	f := newFlow(code)
	if err := f.follow(0, entryState()); err != nil {
		return nil, err
	}
	// Code that nothing leads to is reached by a table of addresses.
	tables := f.tables()
	for offset := 0; offset < len(f.code) && tables != nil; {
		in, ok := decode(f.code[offset:])
		if !ok {
			break
		}
		if f.Point(uint64(offset)) == nil {
			a := codeflow.Arrival[state]{Address: uint64(offset), Source: codeflow.None, State: *tables}
			if t := f.Examine(&a, 0); !t.IsContradicted {
				if err := f.follow(a.Address, a.State); err != nil {
					return nil, err
				}
			}
		}
		offset += in.length
	}
	return f, nil
}

// follow follows all code that is reached from an instruction.
func (f *flow) follow(offset uint64, st state) error {
	if err := f.Follow(&codeflow.Arrival[state]{Address: offset, Source: codeflow.None, State: st}); err != nil {
		return err
	}
	return f.Resume(f)
}

// flowKinds has the effects that do not lead to the next instruction alone.
var flowKinds = [...]codeflow.Kind{branch: codeflow.Branch, jump: codeflow.Jump, jumpTo: codeflow.Jump, call: codeflow.Call, stop: codeflow.Stop}

// Instruction reads the instruction at an offset.
func (f *flow) Instruction(offset uint64) (out codeflow.Instruction, ok bool) {
	in, ok := decode(f.code[offset:])
	if !ok {
		return out, false
	}
	out = codeflow.Instruction{Kind: flowKinds[in.effect], Length: uint8(in.length), Distance: in.imm,
		IsDirect: in.effect == branch || in.effect == jump}
	if in.isReturn() {
		out.Kind = codeflow.Return
	}
	return out, true
}

func (i *instruction) isReturn() bool { return i.effect == jumpTo && i.rs1 == ra }

// Apply makes a state the one after an instruction.
func (f *flow) Apply(offset uint64, st *state) {
	in, _ := decode(f.code[offset:])
	st.step(&in)
}

// Leave judges a region by how it leaves the function: the stack pointer must be the
// initial one, unless it jumps through a table.
func (f *flow) Leave(offset uint64, st *state) {
	t, low := f.Trial(), st.registers[sp]
	in, ok := decode(f.code[offset:])
	switch {
	case t == nil, f.IsAhead, !ok, in.effect == stop:
	case low == value{kind: atEntry, base: sp}:
		t.IsConfirmed = true
	case in.isReturn() && low.kind == atEntry:
		t.IsContradicted = true
	}
}

// Equal compares two states.
func (f *flow) Equal(a, b *state) bool { return a.isEqual(b) }

// Merge keeps what two states have in common. Their frames differ if no register has the CFA in both.
func (f *flow) Merge(a, b *state) (both state, isA, hasLost bool) {
	both = a.join(b)
	isA = both.isEqual(a)
	if f.IsAhead {
		return both, isA, a.registers[sp] != b.registers[sp]
	}
	_, isInA := a.cfa()
	_, isInB := b.cfa()
	_, isInBoth := both.cfa()
	return both, isA, (isInA || isInB) && !isInBoth
}

// tables is the state in which the function jumps through tables; nil where it does not.
// Where the function has no frame, a jump to the address in a register is a tail call.
func (f *flow) tables() (frame *state) {
	for _, p := range f.Found() {
		in, ok := decode(f.code[p.Address:])
		low := p.State.registers[sp]
		switch {
		case !ok, in.effect != jumpTo, in.rs1 == ra, low.kind != atEntry, low.base != sp, low.off == 0:
		case frame == nil:
			frame = &p.State
		default:
			both := frame.join(&p.State)
			frame = &both
		}
	}
	return frame
}

// IsWrongReturn reports whether a return has another stack pointer than the function began with.
func (f *flow) IsWrongReturn(p *codeflow.Point[state]) bool {
	in, _ := decode(f.code[p.Address:])
	low := p.State.registers[sp]
	return in.isReturn() && low.kind != unknown && low != (value{kind: atEntry, base: sp})
}

// Row is the row of an instruction. The row of a call also holds while the callee runs,
// which has ra then.
func (f *flow) Row(p *codeflow.Point[state]) (row cfi.Row, ok bool) {
	in, _ := decode(f.code[p.Address:])
	row, ok = p.State.row()
	_, isSaved := row.Rule(uint64(ra))
	return row, ok && (in.effect != call || f.isExact || isSaved)
}

// functionRows returns the rows of a function whose first instruction begins the code.
func functionRows(code *codeflow.Pieces, isExact bool) ([]cfi.Row, error) {
	f, err := readFunction(code)
	if err != nil {
		return nil, err
	}
	f.isExact = isExact
	return f.Rows(), nil
}
