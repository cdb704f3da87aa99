// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// value is a symbolic value of a register: a register's value when the function began,
// plus an offset, or a number.
type value struct {
	kind valueKind
	base uint32 // of atEntry and inFrame: the register
	off  int64
}

type valueKind uint8

const (
	unknown valueKind = iota
	atEntry
	constant
	inFrame // read ahead: the word in memory at the base plus the offset
)

// plus adds n to a value. Frames are smaller than maxOffset.
func (v value) plus(n int64) value {
	const maxOffset = 1 << 40
	if v.off += n; v.kind == unknown || v.kind == inFrame || v.off > maxOffset || v.off < -maxOffset {
		return value{}
	}
	return v
}

// slot is 8 bytes of the function's frame, off from the stack pointer that it began with.
type slot struct {
	off int64
	v   value
}

// maxSlots bounds the slots of a state: there are 25 registers to save.
const maxSlots = 64

// state has the known values before an instruction.
type state struct {
	registers [64]value
	slots     []slot // sorted; never changed, only replaced
	isAhead   bool   // the code begins at the PC, and memory was written before
}

func entryState() (s state) {
	for r := range s.registers {
		s.registers[r] = value{kind: atEntry, base: uint32(r)}
	}
	s.registers[zero] = value{kind: constant}
	return s
}

func (s *state) isEqual(o *state) bool {
	return s.registers == o.registers && slices.Equal(s.slots, o.slots)
}

// join keeps the values that both states have.
func (s *state) join(o *state) (both state) {
	both = *s
	for r := range both.registers {
		if s.registers[r] != o.registers[r] {
			both.registers[r] = value{}
		}
	}
	both.slots = nil
	for _, x := range s.slots {
		switch {
		case slices.Contains(o.slots, x):
			both.slots = append(both.slots, x)
		case s.isAhead: // written on one path: no longer the initial word
			both.slots = append(both.slots, slot{off: x.off})
		}
	}
	if !s.isAhead {
		return both
	}
	for _, x := range o.slots {
		if !slices.ContainsFunc(both.slots, func(y slot) bool { return x.off == y.off }) && len(both.slots) < maxSlots {
			both.slots = append(both.slots, slot{off: x.off})
		}
	}
	slices.SortFunc(both.slots, func(a, b slot) int { return int(a.off - b.off) })
	return both
}

// place is the offset of rs1 + imm in the frame.
func (s *state) place(i *instruction) (off int64, ok bool) {
	v := s.registers[i.rs1].plus(i.imm)
	return v.off, v.kind == atEntry && v.base == sp
}

// step changes a state by an instruction. A store to an unknown address is assumed not to
// change saved registers.
func (s *state) step(i *instruction) {
	var v value
	switch i.effect {
	case store:
		s.store(i)
		return
	case branch, jump, jumpTo, stop:
		return
	case call:
		for r := range uint32(len(s.registers)) {
			if !isPreserved(r) && r != sp {
				s.registers[r] = value{}
			}
		}
		return
	case add:
		a, b := s.registers[i.rs1], s.registers[i.rs2]
		if a.kind == constant {
			a, b = b, a
		}
		if b.kind == constant {
			v = a.plus(b.off)
		}
	case subtract:
		if b := s.registers[i.rs2]; b.kind == constant {
			v = s.registers[i.rs1].plus(-b.off)
		}
	case addImm:
		v = s.registers[i.rs1].plus(i.imm)
	case addNumber:
		if a := s.registers[i.rs1]; a.kind == constant {
			v = a.plus(i.imm)
		}
	case number:
		v = value{kind: constant, off: i.imm}
	case load:
		v = s.load(i)
	}
	if i.rd != zero {
		s.registers[i.rd] = v
	}
	if i.rd == sp {
		s.expire()
	}
}

// load is the value that a load of 8 bytes yields.
func (s *state) load(i *instruction) value {
	off, ok := s.place(i)
	switch base := s.registers[i.rs1]; {
	case ok && slices.ContainsFunc(s.slots, func(x slot) bool { return x.off == off }):
		return s.slot(off)
	case len(s.slots) == maxSlots, ok && off < 0: // the word there is unknown, or maybe not written
	case s.isAhead && base.kind == atEntry && (base.base == sp || base.base == fp):
		return value{kind: inFrame, base: base.base, off: base.off + i.imm}
	}
	return value{}
}

func (s *state) slot(off int64) value {
	for _, x := range s.slots {
		if x.off == off {
			return x.v
		}
	}
	return value{}
}

func (s *state) store(i *instruction) {
	off, ok := s.place(i)
	if !ok {
		return
	}
	kept := make([]slot, 0, len(s.slots)+1)
	for _, x := range s.slots {
		if x.off+8 <= off || off+int64(i.size) <= x.off {
			kept = append(kept, x)
		}
	}
	if v := s.registers[i.rs2]; (i.size == 8 && v.kind == atEntry && v.off == 0 || s.isAhead) && len(kept) < maxSlots {
		if i.size != 8 {
			off, v = off&^7, value{}
		}
		kept = append(kept, slot{off, v})
		slices.SortFunc(kept, func(a, b slot) int { return int(a.off - b.off) })
	}
	s.slots = kept
}

// expire forgets the slots below the stack pointer: a signal handler may write there.
func (s *state) expire() {
	low := s.registers[sp]
	if low.kind != atEntry || low.base != sp {
		return
	}
	s.slots = slices.DeleteFunc(slices.Clone(s.slots), func(x slot) bool { return x.off < low.off })
}

// cfa is the rule of the CFA, the stack pointer that the function began with; ok is false where
// no register has it.
func (s *state) cfa() (rule cfi.CFARule, ok bool) {
	for _, r := range [...]uint32{fp, sp, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27} {
		if v := s.registers[r]; v.kind == atEntry && v.base == sp {
			return cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(r), Offset: -v.off}, true
		}
	}
	return rule, false
}

// row is the row of a state; ok is false where the CFA or the return address is not
// known.
func (s *state) row() (row cfi.Row, ok bool) {
	if row.CFA, ok = s.cfa(); !ok {
		return row, false
	}
	row.ReturnAddress = uint64(ra)
	for r := range uint32(len(s.registers)) {
		if r != ra && (!isPreserved(r) || r == zero || r == gp || r == tp) {
			continue
		}
		want := value{kind: atEntry, base: r}
		if s.registers[r] == want && r != ra { // a callee has ra
			continue
		}
		i := slices.IndexFunc(s.slots, func(x slot) bool { return x.v == want })
		switch {
		case i >= 0:
			row.Rules = append(row.Rules, saved(r, s.slots[i].off))
		case s.registers[r] == want:
		case r == ra:
			return row, false
		default:
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: cfi.Undefined}})
		}
	}
	return row, true
}
