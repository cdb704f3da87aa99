// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"math"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// value is a symbolic value of a register or a word of the stack. It refers to registers
// at the start of the flow.
type value struct {
	kind valueKind
	reg  uint8
	n    int32
}

type valueKind uint8

const (
	unknown       valueKind = iota
	address                 // the initial value of general register reg, plus n
	entryVector             // the lower 64 bits of vector register reg
	signedEntry             // x30, signed by this code
	constant                // n
	contents                // the initial word at register reg plus n
	authContents            // the same, authenticated by this code
	authEntry               // x30, authenticated by this code
	computedValue           // an unknown sum, as of an address in code
)

// entryValue is the initial value of a general register.
func entryValue(r uint8) value { return value{kind: address, reg: r} }

// fits reports whether n may be a distance in a frame.
func fits(n int64) bool { return n <= math.MaxInt32 && n >= math.MinInt32 }

// plus adds n to v.
func (v value) plus(n int64) value {
	sum := int64(v.n) + n
	if v.kind != address && v.kind != constant || !fits(sum) {
		return value{}
	}
	v.n = int32(sum)
	return v
}

// isWorthKeeping reports whether a frame may be recovered by v.
func (v value) isWorthKeeping() bool {
	switch v.kind {
	case address:
		return v.reg >= 19 || v.reg == gprSP
	case entryVector, signedEntry, contents, authContents, authEntry:
		return true
	}
	return false
}

// slot is a word of the stack whose contents are known.
type slot struct {
	offset int32 // from the initial value of base
	base   uint8
	v      value
}

// firstVector is the first of the eight vector registers whose lower halves are
// preserved.
const firstVector = 8

// maxSlots bounds the slots of a state.
const maxSlots = 64

// state has the known values before an instruction. At the first instruction of a
// function sp is the CFA, so that addresses count from there.
type state struct {
	gpr     [gprCount]value
	vectors [8]value // the lower halves of v8 to v15
	slots   []slot   // by base and place; never changed, only replaced
	isFull  bool     // there were more slots: other words are unknown
	links   uint32   // registers below 19 that the function returns by, see linksOf
}

// entryState is the state in which every register has its own value.
func entryState() state {
	var s state
	for r := range s.gpr {
		s.gpr[r] = entryValue(uint8(r)) //nolint:gosec // below 32
	}
	for i := range s.vectors {
		s.vectors[i] = value{kind: entryVector, reg: uint8(firstVector + i)} //nolint:gosec // below 16
	}
	return s
}

func (s *state) equal(o *state) bool {
	return s.gpr == o.gpr && s.vectors == o.vectors && s.isFull == o.isFull && slices.Equal(s.slots, o.slots)
}

// join returns the values that two states have in common. Where initial memory counts, a
// slot of one state alone becomes unknown.
func join(a, b *state, isInitial bool) state {
	out := *a
	out.isFull = a.isFull || b.isFull
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
	if isInitial {
		out.addUnknown(a.slots)
		out.addUnknown(b.slots)
	}
	return out
}

// addUnknown adds the slots that s does not have, with unknown values.
func (s *state) addUnknown(slots []slot) {
	for _, x := range slots {
		if !slices.ContainsFunc(s.slots, func(y slot) bool { return y.base == x.base && y.offset == x.offset }) {
			s.insert(slot{x.offset, x.base, value{}})
		}
	}
}

// insert adds a slot, in its order.
func (s *state) insert(x slot) {
	if len(s.slots) >= maxSlots {
		s.isFull = true
		return
	}
	i := 0
	for i < len(s.slots) && (s.slots[i].base < x.base || s.slots[i].base == x.base && s.slots[i].offset < x.offset) {
		i++
	}
	s.slots = slices.Insert(s.slots, i, x)
}

// overlaps reports whether size bytes at an address share a byte with the slot.
func (x *slot) overlaps(place value, size uint8) bool {
	return x.base == place.reg && int64(x.offset) < int64(place.n)+int64(size) && int64(place.n) < int64(x.offset)+8
}

// load is the word at an address. isInitial means that initial memory counts, as far as
// it is found by sp or x29.
func (s *state) load(place value, isInitial bool) value {
	if place.kind != address {
		return value{}
	}
	for i := range s.slots {
		if x := &s.slots[i]; x.overlaps(place, 8) {
			if x.offset == place.n {
				return x.v
			}
			return value{}
		}
	}
	if isInitial && !s.isFull && (place.reg == gprSP || place.reg == gprX29) {
		return value{kind: contents, reg: place.reg, n: place.n}
	}
	return value{}
}

// store puts size bytes at an address. An unknown address is assumed not to be where
// registers are saved: no compiler writes there. Where initial memory counts, a slot
// without a value marks memory that was written.
func (s *state) store(place value, size uint8, v value, isInitial bool) {
	if place.kind != address || place.reg != gprSP && (!isInitial || place.reg != gprX29) {
		return
	}
	keep := size == 8 && v.isWorthKeeping()
	if size != 8 || !keep {
		v = value{}
	}
	overlaps := func(x slot) bool { return x.overlaps(place, size) }
	if !keep && !isInitial && !slices.ContainsFunc(s.slots, overlaps) {
		return
	}
	s.slots = slices.DeleteFunc(slices.Clone(s.slots), overlaps)
	if keep || isInitial {
		s.insert(slot{place.n, place.reg, v})
	}
}

// expire drops the slots below the stack pointer, which a signal or a call may overwrite:
// AAPCS64 (6.4.5.1) has no red zone. Go saves x29 in the word below; its functions do not
// change that word of their callers, and its signals have a stack of their own.
func (s *state) expire() {
	top := s.gpr[gprSP]
	if top.kind != address || len(s.slots) == 0 {
		return
	}
	dead := func(x slot) bool {
		return x.base == top.reg && x.offset < top.n && (x.offset != top.n-8 || x.v != entryValue(gprX29))
	}
	if slices.ContainsFunc(s.slots, dead) {
		s.slots = slices.DeleteFunc(slices.Clone(s.slots), dead)
	}
}

// hasGoFrame reports whether x29 was saved below the stack pointer, as only Go does.
func (s *state) hasGoFrame() bool {
	top := s.gpr[gprSP]
	return top.kind == address && slices.Contains(s.slots, slot{top.n - 8, top.reg, entryValue(gprX29)})
}

// apply makes s the state after e.
func (s *state) apply(e *effect, isInitial bool) {
	switch e.kind {
	case effectMove:
		s.gpr[e.dst] = s.moved(s.gpr[e.src], int64(e.imm))
	case effectSum:
		s.gpr[e.dst] = s.sum(e)
	case effectSet:
		s.gpr[e.dst] = value{kind: constant, n: e.imm}
	case effectInsert:
		v := s.gpr[e.dst]
		if n := int64(v.n)&^(0xffff<<e.shift) | int64(e.imm); v.kind == constant && fits(n) {
			v.n = int32(n)
		} else {
			v = value{}
		}
		s.gpr[e.dst] = v
	case effectAccess:
		s.applyAccess(e, isInitial)
	case effectSign, effectAuth:
		s.gpr[gprX30] = resigned(s.gpr[gprX30], e.kind == effectSign, isInitial)
	case effectStrip:
		if v := s.gpr[gprX30]; v.kind == signedEntry {
			s.gpr[gprX30] = entryValue(gprX30)
		}
	case effectCall:
		kept := s.onlyLink(isInitial)
		for r := range uint8(19) {
			if r != kept {
				s.gpr[r] = value{}
			}
		}
		s.gpr[gprX30] = value{}
	}
	if e.clobbers != 0 {
		for r := range s.gpr {
			if e.clobbers>>r&1 != 0 {
				s.gpr[r] = value{}
			}
		}
	}
	s.clobberVectors(e)
	if !isInitial {
		s.expire()
	}
}

// onlyLink is the register that a call must preserve since nothing else has the return
// address; gprNone where there is none.
func (s *state) onlyLink(isInitial bool) uint8 {
	if rule, _, ok := s.returnAddress(true); !isInitial && ok && rule.Kind == cfi.Register && rule.Register < 19 {
		return uint8(rule.Register)
	}
	return gprNone
}

// sum is the value of a register after adding another.
func (s *state) sum(e *effect) value {
	if e.index == gprNone {
		return value{kind: computedValue}
	}
	if by := s.gpr[e.index]; by.kind == constant && e.shift < 32 {
		return s.gpr[e.src].plus(int64(e.sign) * int64(by.n) << e.shift)
	}
	if e.dst == gprSP {
		return value{}
	}
	return value{kind: computedValue}
}

// moved is a register that was copied, or changed by imm.
func (s *state) moved(v value, imm int64) value {
	if imm == 0 {
		return v
	}
	return v.plus(imm)
}

// resigned is x30 after it was signed or authenticated. Where memory at the start counts,
// an address that was not signed here was signed before.
func resigned(v value, isSigning, isInitial bool) value {
	switch {
	case isSigning && v == entryValue(gprX30):
		return value{kind: signedEntry}
	case isSigning:
		return value{}
	case v.kind == signedEntry:
		return entryValue(gprX30)
	case isInitial && v == entryValue(gprX30):
		return value{kind: authEntry}
	case isInitial && v.kind == contents:
		v.kind = authContents
		return v
	}
	return value{}
}

func (s *state) clobberVectors(e *effect) {
	if e.kind == effectAccess || e.vectors == 0 {
		return
	}
	for i := range s.vectors {
		if e.vectors>>(firstVector+i)&1 != 0 {
			s.vectors[i] = value{}
		}
	}
}

// applyAccess applies a load or store of one register or two.
func (s *state) applyAccess(e *effect, isInitial bool) {
	base := s.gpr[e.src]
	at := base
	if e.writeback == offsetOnly || e.writeback == preIndex {
		at = base.plus(int64(e.imm))
	}
	if e.writeback == noOffset {
		at = value{}
	}
	if !e.isLoad && e.writeback == preIndex {
		s.gpr[e.src] = at // the words are above sp then
	}
	if e.isLoad {
		second := s.load(at.plus(int64(e.size)), isInitial)
		s.set(e, e.first, s.load(at, isInitial))
		if e.isPair {
			s.set(e, e.second, second)
		}
	} else {
		first, second := s.get(e, e.first), s.get(e, e.second)
		s.store(at, e.size, first, isInitial)
		if e.isPair {
			s.store(at.plus(int64(e.size)), e.size, second, isInitial)
		}
	}
	if e.writeback == preIndex || e.writeback == postIndex {
		s.gpr[e.src] = base.plus(int64(e.imm))
	}
}

// set sets a register to a loaded value.
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

// get returns the value that a store writes.
func (s *state) get(e *effect, r uint8) value {
	switch {
	case e.isVector && r >= firstVector && r < firstVector+8:
		return s.vectors[r-firstVector]
	case e.isVector || r >= gprSP:
		return value{}
	}
	return s.gpr[r]
}
