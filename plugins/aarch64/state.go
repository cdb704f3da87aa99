// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"math"
	"slices"
)

// A value is what is known of a register or a word of the stack.
type value struct {
	kind valueKind
	reg  uint8 // entry, entryVector: the register
	n    int64 // address: from the CFA; constant: the number
}

type valueKind uint8

const (
	unknown     valueKind = iota
	entry                 // what a general register held at the function's start
	entryVector           // the lower 64 bits of a vector register at the start
	signedEntry           // x30's, signed
	address               // CFA + n
	constant
)

// plus adds n to v.
func (v value) plus(n int64) value {
	sum := v.n + n
	if v.kind != address && v.kind != constant || (sum > v.n) != (n > 0) && n != 0 || v.kind == address && (sum > math.MaxInt32 || sum < math.MinInt32) {
		return value{}
	}
	v.n = sum
	return v
}

// isWorthKeeping says whether a frame may be recovered by v.
func (v value) isWorthKeeping() bool {
	switch v.kind {
	case entry:
		return v.reg >= 19 && v.reg <= gprX30
	case entryVector, signedEntry, address:
		return true
	}
	return false
}

// A slot is a word of the stack whose contents are known.
type slot struct {
	at int64 // from the CFA
	v  value
}

// firstVector is the first of the eight vector registers whose lower halves are
// preserved.
const firstVector = 8

// maxSlots bounds the slots of a state.
const maxSlots = 64

// A state is what is known before an instruction.
type state struct {
	gpr     [gprCount]value
	vectors [8]value // the lower halves of v8 to v15
	slots   []slot   // by place; never changed, only replaced
}

// entryState is the state at the first instruction of a function: the CFA is sp.
func entryState() state {
	var s state
	for r := range s.gpr {
		s.gpr[r] = value{kind: entry, reg: uint8(r)} //nolint:gosec // below 32
	}
	s.gpr[gprSP] = value{kind: address}
	for i := range s.vectors {
		s.vectors[i] = value{kind: entryVector, reg: uint8(firstVector + i)} //nolint:gosec // below 16
	}
	return s
}

func (s *state) equal(o *state) bool {
	return s.gpr == o.gpr && s.vectors == o.vectors && slices.Equal(s.slots, o.slots)
}

// join returns what holds in both states.
func join(a, b *state) state {
	out := *a
	for i := range out.gpr {
		if a.gpr[i] != b.gpr[i] {
			out.gpr[i] = value{}
		}
	}
	for i := range out.vectors {
		if a.vectors[i] != b.vectors[i] {
			out.vectors[i] = value{}
		}
	}
	if slices.Equal(a.slots, b.slots) {
		return out
	}
	out.slots = nil
	for _, x := range a.slots {
		if slices.Contains(b.slots, x) {
			out.slots = append(out.slots, x)
		}
	}
	return out
}

// load is the word at a place.
func (s *state) load(at value) value {
	if at.kind == address {
		for _, x := range s.slots {
			if x.at == at.n {
				return x.v
			}
		}
	}
	return value{}
}

// store puts size bytes at a place. What lies at a place that is not known is assumed
// not to be where registers are saved: no compiler writes there.
func (s *state) store(at value, size uint8, v value) {
	if at.kind != address {
		return
	}
	keep := size == 8 && v.isWorthKeeping()
	overlaps := func(x slot) bool { return x.at < at.n+int64(size) && at.n < x.at+8 }
	if !keep && !slices.ContainsFunc(s.slots, overlaps) {
		return
	}
	slots := slices.DeleteFunc(slices.Clone(s.slots), overlaps)
	if keep && len(slots) < maxSlots {
		i := 0
		for i < len(slots) && slots[i].at < at.n {
			i++
		}
		slots = slices.Insert(slots, i, slot{at.n, v})
	}
	s.slots = slots
}

// expire drops the slots below the stack pointer, which a signal or a call may
// overwrite: AAPCS64 (6.4.5.1) has no red zone.
func (s *state) expire() {
	top := s.gpr[gprSP]
	if top.kind != address {
		return
	}
	dead := func(x slot) bool { return x.at < top.n }
	if slices.ContainsFunc(s.slots, dead) {
		s.slots = slices.DeleteFunc(slices.Clone(s.slots), dead)
	}
}

// apply makes s the state after e.
func (s *state) apply(e *effect) {
	switch e.kind {
	case effectMove:
		s.gpr[e.dst] = s.moved(s.gpr[e.src], e.imm)
	case effectSum:
		by := s.gpr[e.index]
		v := value{}
		if by.kind == constant && by.n >= 0 && by.n <= math.MaxInt32 {
			v = s.gpr[e.src].plus(int64(e.sign) * by.n << e.shift)
		}
		s.gpr[e.dst] = v
	case effectSet:
		s.gpr[e.dst] = value{kind: constant, n: e.imm}
	case effectInsert:
		v := s.gpr[e.dst]
		if v.kind == constant {
			v.n = v.n&^(0xffff<<e.shift) | e.imm
		} else {
			v = value{}
		}
		s.gpr[e.dst] = v
	case effectAccess:
		s.applyAccess(e)
	case effectSign, effectAuth:
		s.gpr[gprX30] = resigned(s.gpr[gprX30], e.kind == effectSign)
	case effectCall:
		for r := range 19 {
			s.gpr[r] = value{}
		}
		s.gpr[gprX30] = value{}
	}
	for r := range s.gpr {
		if e.clobbers>>r&1 != 0 {
			s.gpr[r] = value{}
		}
	}
	s.clobberVectors(e)
	s.expire()
}

// moved is a register that was copied, or changed by imm.
func (s *state) moved(v value, imm int64) value {
	if imm == 0 {
		return v
	}
	return v.plus(imm)
}

// resigned is x30 after it was signed or authenticated.
func resigned(v value, isSigning bool) value {
	switch {
	case isSigning && v == (value{kind: entry, reg: gprX30}):
		return value{kind: signedEntry}
	case !isSigning && v.kind == signedEntry:
		return value{kind: entry, reg: gprX30}
	case !isSigning && v == (value{kind: entry, reg: gprX30}):
		return v // XPACLRI of an address that is not signed
	}
	return value{}
}

func (s *state) clobberVectors(e *effect) {
	for i := range s.vectors {
		if e.kind != effectAccess && e.vectors>>(firstVector+i)&1 != 0 {
			s.vectors[i] = value{}
		}
	}
}

// applyAccess applies a load or store of one register or two.
func (s *state) applyAccess(e *effect) {
	base := s.gpr[e.src]
	at := base
	if e.writeback == offsetOnly || e.writeback == preIndex {
		at = base.plus(e.imm)
	}
	if e.writeback == noOffset {
		at = value{}
	}
	if !e.isLoad && e.writeback == preIndex {
		s.gpr[e.src] = at // the words are above sp then
	}
	if e.isLoad {
		second := s.load(at.plus(int64(e.size)))
		s.set(e, e.first, s.load(at))
		if e.isPair {
			s.set(e, e.second, second)
		}
	} else {
		first, second := s.get(e, e.first), s.get(e, e.second)
		s.store(at, e.size, first)
		if e.isPair {
			s.store(at.plus(int64(e.size)), e.size, second)
		}
	}
	if e.writeback == preIndex || e.writeback == postIndex {
		s.gpr[e.src] = base.plus(e.imm)
	}
}

// set is what a load makes of a register.
func (s *state) set(e *effect, r uint8, v value) {
	if e.size != 8 {
		v = value{}
	}
	switch {
	case e.isVector && r >= firstVector && r < firstVector+8:
		s.vectors[r-firstVector] = v
	case !e.isVector && r != gprSP:
		s.gpr[r] = v
	}
}

// get is what a store writes of a register.
func (s *state) get(e *effect, r uint8) value {
	switch {
	case e.isVector && r >= firstVector && r < firstVector+8:
		return s.vectors[r-firstVector]
	case e.isVector || r >= gprSP:
		return value{}
	}
	return s.gpr[r]
}
