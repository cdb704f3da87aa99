// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"errors"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// This file finds the frame of code with an unknown beginning by the code ahead of the
// PC.

var (
	errNoReturn  = errors.New("the code ahead leads to no return that shows the frame")
	errDisagrees = errors.New("returns that the code ahead leads to show different frames")
)

// maxAhead is the number of bytes of code that are read ahead.
const maxAhead = 1 << 12

// aheadRow is the row of the instruction at an offset of code: a return that is reached
// from it shows the caller's stack pointer, and the places that its registers are loaded
// from.
func aheadRow(code []byte, offset int) (row cfi.Row, err error) {
	if code = code[:min(len(code), offset+maxAhead)]; offset >= len(code) {
		return row, errNoReturn
	}
	f := newFlow(codeflow.OnePiece(0, code))
	f.IsAhead = true
	start := entryState()
	start.isAhead = true
	if err := f.follow(uint64(offset), start); err != nil {
		return row, err
	}
	var found *state
	for _, p := range f.Found() {
		st := &p.State
		if in, _ := decode(code[p.Address:]); !in.isReturn() || in.rd != zero || !st.showsFrame() {
			continue
		}
		switch {
		case found == nil:
			found = st
		case found.registers[sp] != st.registers[sp] || found.registers[ra] != st.registers[ra]:
			return row, errDisagrees
		default:
			both := found.join(st)
			found = &both
		}
	}
	if found == nil {
		return row, errNoReturn
	}
	return found.returnRow(), nil
}

// showsFrame reports whether the state of a return has the caller's stack pointer and the
// return address, in terms of memory and of registers at the PC.
func (s *state) showsFrame() bool {
	low, back := s.registers[sp], s.registers[ra]
	if low.kind != atEntry || low.base != sp && low.base != fp || low.base == sp && low.off < 0 {
		return false
	}
	return back == value{kind: atEntry, base: ra} || back.kind == inFrame && back.base == low.base && back.off < low.off
}

// returnRow is the row whose CFA is the stack pointer of a return.
func (s *state) returnRow() cfi.Row {
	low := s.registers[sp]
	row := cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(low.base), Offset: low.off}, ReturnAddress: uint64(ra)}
	for r := range uint32(len(s.registers)) {
		if r != ra && (!isPreserved(r) || r == zero || r == gp || r == tp) {
			continue
		}
		switch v := s.registers[r]; {
		case v == value{kind: atEntry, base: r}:
		case v.kind == inFrame && v.base == low.base && v.off < low.off && !s.mayStoreLate(r):
			row.Rules = append(row.Rules, saved(r, v.off-low.off))
		default:
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: cfi.Undefined}})
		}
	}
	return row
}

// mayStoreLate reports whether a register was stored relative to the stack pointer, in a
// function whose stack pointer is restored from another register: the prologue may have
// stored it.
func (s *state) mayStoreLate(r uint32) bool {
	return s.registers[sp].base != sp && slices.ContainsFunc(s.slots, func(x slot) bool { return x.v == value{kind: atEntry, base: r} })
}
