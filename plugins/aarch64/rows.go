// SPDX-License-Identifier: Apache-2.0

package aarch64

import "github.com/unwindd/unwindd/cfi"

// cfaOrder is the order in which registers are searched for the CFA: first the ones that
// a call preserves.
var cfaOrder = [...]uint8{gprSP, gprX29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
	9, 10, 11, 12, 13, 14, 15, 16, 17, 8, 7, 6, 5, 4, 3, 2, 1, 0}

// preservedCFA is the number of cfaOrder's registers that keep their values in a call.
const preservedCFA = 12

// cfa is the rule of the CFA by a register. atCall means that a call preserves it.
func (s *state) cfa(atCall bool) (rule cfi.CFARule, ok bool) {
	order := cfaOrder[:]
	if atCall {
		order = cfaOrder[:preservedCFA]
	}
	for _, r := range order {
		if v := s.gpr[r]; v.kind == address && v.reg == gprSP {
			return cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(r), Offset: -int64(v.n)}, true
		}
	}
	return rule, false
}

// saved is the rule of a value on the stack.
func (s *state) saved(want value) (rule cfi.Rule, ok bool) {
	for i := len(s.slots) - 1; i >= 0; i-- {
		if x := &s.slots[i]; x.v == want && x.base == gprSP {
			return cfi.Rule{Kind: cfi.Offset, Offset: int64(x.offset)}, true
		}
	}
	return cfi.Rule{Kind: cfi.Undefined}, false
}

// row describes the frame of a function that began with the CFA in sp. atCall means that
// the row also holds while a call is in progress, when x30 is no longer the caller's. ok
// is false where the CFA or the return address is unknown.
func (s *state) row(atCall bool) (row cfi.Row, ok bool) {
	row.ReturnAddress = uint64(x30)
	if row.CFA, ok = s.cfa(atCall); !ok {
		return row, false
	}
	for r := uint8(19); r <= gprX29; r++ {
		if s.gpr[r] != entryValue(r) {
			rule, _ := s.saved(entryValue(r))
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: rule})
		}
	}
	link, isSigned, ok := s.returnAddress(atCall)
	if !ok {
		return row, false
	}
	row.WindowSave = isSigned
	if link.Kind != cfi.SameValue {
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(x30), Rule: link})
	}
	for i, v := range &s.vectors {
		if v != entryVectors[i] {
			rule, _ := s.saved(entryVectors[i])
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(v8) + uint64(i), Rule: rule}) //nolint:gosec // below 8
		}
	}
	return row, true
}

// returnAddress is the rule of the return address: in the link register, on the stack, or
// in another register, preferably one that a call preserves.
func (s *state) returnAddress(atCall bool) (rule cfi.Rule, isSigned, ok bool) {
	plain, signed := entryValue(gprX30), value{kind: signedEntry}
	if link := s.gpr[gprX30]; !atCall && (link == plain || link == signed) {
		return cfi.Rule{Kind: cfi.SameValue}, link == signed, true
	}
	for _, want := range [...]value{plain, signed} {
		if rule, ok := s.saved(want); ok {
			return rule, want == signed, true
		}
		if r, ok := s.holder(want, atCall); ok {
			return cfi.Rule{Kind: cfi.Register, Register: uint64(r)}, want == signed, true
		}
	}
	return rule, false, false
}

// holder is a register other than the link register that has a value, preferably one that
// calls preserve. LLVM keeps the return address in another one where it calls outlined
// code, which does not change it, and returns through it.
func (s *state) holder(want value, atCall bool) (register uint8, ok bool) {
	for n := range uint8(gprX29) {
		if r := (n + 19) % gprX29; s.gpr[r] == want && (!atCall || r >= 19 || s.links>>r&1 != 0) {
			return r, true
		}
	}
	return 0, false
}

// knowsFrame is the bit of knows for the CFA and the return address.
const knowsFrame = 1

// knows returns the known parts of a state's frame, a bit each: the CFA with the return
// address, and the caller's preserved registers.
func (f *flow) knows(s *state) (bits uint32) {
	if _, ok := s.cfa(false); !ok {
		return 0
	}
	if _, _, ok := s.returnAddress(false); !ok {
		return 0
	}
	bits = knowsFrame
	if f.isGo {
		return bits
	}
	for r := uint8(19); r <= gprX29; r++ {
		if s.gpr[r] == entryValue(r) || s.hasSaved(entryValue(r)) {
			bits |= 1 << (r - 18)
		}
	}
	for i, v := range &s.vectors {
		if v == entryVectors[i] || s.hasSaved(entryVectors[i]) {
			bits |= 1 << (12 + i)
		}
	}
	return bits
}

func (s *state) hasSaved(want value) bool {
	_, ok := s.saved(want)
	return ok
}

// knowsAtCall reports whether the frame is known while a call is in progress.
func (f *flow) knowsAtCall(s *state) bool {
	if _, ok := s.cfa(true); !ok {
		return false
	}
	_, _, ok := s.returnAddress(true)
	return ok
}
