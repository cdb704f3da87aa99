// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// view is the frame as a state shows it.
type view struct {
	cfa   cfi.CFARule
	rules []cfi.RegisterRule
	// found has the known ones of Mode.Saved, and last the return address.
	found [maxSaved + 1]bool
}

// row is the frame as a row.
func (v *view) row(m *Mode) cfi.Row {
	return cfi.Row{CFA: v.cfa, Rules: v.rules, ReturnAddress: uint64(m.PC)}
}

// maxSaved is the number of registers that the functions of any mode keep for their
// callers.
const maxSaved = 6

// GPROf is the general register with a DWARF number.
func (m *Mode) GPROf(register uint32) uint8 { return uint8(slices.Index(m.Numbers[:], register)) }

// view describes the frame of a function that began with the return address at the stack
// pointer: the CFA is a word above. atCall means that the row also holds while a call is in
// progress, when only preserved registers keep their values. Rules that are the convention's
// defaults are left out; registers that cannot be recovered are undefined. Registers are
// searched in order.
func (s *state) view(m *Mode, order []uint8, atCall bool) view {
	l := look{m, s, order, atCall}
	out := view{cfa: l.cfa()}
	if out.cfa.Kind == cfi.NoCFA {
		return out
	}
	for i, register := range m.Saved {
		r := m.saved[i]
		if s.gpr[r] == entryValue(r) {
			out.found[i] = true
			continue
		}
		var how cfi.Rule
		how, out.found[i] = l.rule(entryValue(r))
		out.rules = append(out.rules, cfi.RegisterRule{Column: uint64(register), Rule: how})
	}
	how, ok := l.rule(returnAddress)
	if !ok {
		return view{}
	}
	out.found[maxSaved] = true
	out.rules = append(out.rules, cfi.RegisterRule{Column: uint64(m.PC), Rule: how})
	return out
}

// look looks for values in a state; see view.
type look struct {
	mode   *Mode
	s      *state
	order  []uint8
	atCall bool
}

// isKept reports whether a register keeps its value for as long as the row holds.
func (l *look) isKept(register uint8) bool { return !l.atCall || l.mode.IsPreserved(register) }

// holder is a register that holds a value.
func (l *look) holder(want value) (register uint8, ok bool) {
	for _, r := range l.order {
		if l.s.gpr[r] == want && l.isKept(r) {
			return r, true
		}
	}
	return 0, false
}

// reach is the address of a slot as register plus offset.
func (l *look) reach(base uint8, off int32) (register uint8, offset int64, ok bool) {
	for _, r := range l.order {
		if v := l.s.gpr[r]; v.kind == address && v.base == base && l.isKept(r) {
			return r, int64(off) - int64(v.off), true
		}
	}
	return 0, 0, false
}

// cfa is the rule of the CFA: an address that a register holds, or else one that the
// stack holds.
func (l *look) cfa() cfi.CFARule {
	if r, offset, ok := l.reach(SP, int32(l.mode.Word)); ok {
		return cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(l.mode.Numbers[r]), Offset: offset}
	}
	for i := range l.s.slots {
		x := &l.s.slots[i]
		if x.v.kind != address || x.v.base != SP {
			continue
		}
		if r, offset, ok := l.reach(x.base, x.off); ok {
			return cfi.CFARule{Kind: cfi.CFAExpression, Expr: loaded(l.mode.Numbers[r], offset, int64(l.mode.Word)-int64(x.v.off))}
		}
	}
	return cfi.CFARule{}
}

// saved is the rule of a register that the stack holds. Of several places the
// one nearest to the CFA counts: that of the prologue. live leaves out what
// lies below the stack pointer.
func (l *look) saved(want value, live bool) (rule cfi.Rule, ok bool) {
	sp := l.s.gpr[SP]
	for i := len(l.s.slots) - 1; i >= 0; i-- {
		x := &l.s.slots[i]
		if x.v != want || int(x.size) != l.mode.Word {
			continue
		}
		if live && sp.kind == address && sp.base == x.base && x.off < sp.off {
			continue
		}
		if x.base == SP {
			return cfi.Rule{Kind: cfi.Offset, Offset: int64(x.off) - int64(l.mode.Word)}, true
		}
		if r, offset, found := l.reach(x.base, x.off); found {
			rule, ok = cfi.Rule{Kind: cfi.Expression, Expr: registerPlus(l.mode.Numbers[r], offset)}, true
		}
	}
	return rule, ok
}

// rule is where a value is: on the stack, in a register, or below the stack pointer.
func (l *look) rule(want value) (rule cfi.Rule, ok bool) {
	if rule, ok := l.saved(want, true); ok {
		return rule, true
	}
	if r, ok := l.holder(want); ok {
		return cfi.Rule{Kind: cfi.Register, Register: uint64(l.mode.Numbers[r])}, true
	}
	if rule, ok := l.saved(want, false); ok {
		return rule, true
	}
	return cfi.Rule{Kind: cfi.Undefined}, false
}

// returnAddress is the word that a call pushed.
var returnAddress = value{kind: contents, base: SP}

// entryState is the state at the first instruction of a function.
func (m *Mode) entryState() state {
	var s state
	for r := range s.gpr {
		s.gpr[r] = entryValue(uint8(r))
	}
	s.slots = []slot{{base: SP, size: uint8(m.Word), v: returnAddress}}
	return s
}
