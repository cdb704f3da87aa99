// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// The registers of the calling convention ("Non-Kernel Functions").
const (
	returnLow    isa.Reg = 30 // SGPR30 and 31 have the return address,
	returnHigh   isa.Reg = 31
	stackPointer isa.Reg = 32
	framePointer isa.Reg = 33
	resource     isa.Reg = 0 // SGPR0 to 3 the resource of buffer instructions for private memory
)

// registerSet is a set of scalar registers and two sets of vector registers:
// active has those whose lanes change that are active when a function is called,
// inactive those whose other lanes change.
type registerSet struct {
	scalars          [3]uint64
	active, inactive [vectors / 64]uint64
}

func (r *registerSet) addScalar(i isa.Reg)      { r.scalars[i/64] |= 1 << (i % 64) }
func (r *registerSet) hasScalar(i isa.Reg) bool { return r.scalars[i/64]>>(i%64)&1 != 0 }
func (r *registerSet) addActive(i int)          { r.active[i/64] |= 1 << (i % 64) }
func (r *registerSet) addInactive(i int)        { r.inactive[i/64] |= 1 << (i % 64) }
func (r *registerSet) hasActive(i int) bool     { return r.active[i/64]>>(i%64)&1 != 0 }
func (r *registerSet) hasInactive(i int) bool   { return r.inactive[i/64]>>(i%64)&1 != 0 }

// add adds another set, and reports whether that changed anything.
func (r *registerSet) add(o *registerSet) bool {
	was := *r
	for i := range r.scalars {
		r.scalars[i] |= o.scalars[i]
	}
	for i := range r.active {
		r.active[i] |= o.active[i]
		r.inactive[i] |= o.inactive[i]
	}
	return *r != was
}

// machineMode has the properties of the machine on which the effects of
// instructions depend.
type machineMode struct {
	target    isa.Target
	processor *processor
	lanes     uint32
	// isPerLane: stack pointers count the bytes of a lane, not of the wave.
	isPerLane bool
	// abi has the registers that the convention lets a function change.
	abi registerSet
}

// stepper applies instructions to states.
type stepper struct {
	*machineMode
	s       *codeState
	touched registerSet // all registers that were written
	// Private memory was reached by a stack pointer as one that counts a lane's
	// bytes, or the wave's.
	isByLane, isByWave bool
	symbols            map[uint64]uint16 // of the instructions that align a pointer
}

// operand returns 32 bits of an operand: its register with index i.
func (x *stepper) operand(o *isa.Operand, i int) scalar {
	switch o.Kind {
	case isa.Scalar:
		r := int(o.Reg) + i
		switch {
		case isa.Reg(r) == isa.Null:
			return scalar{kind: constantScalar}
		case r < scalars:
			x.s.read(isa.Reg(r), x.lanes)
			if v := x.s.scalars[r]; v.kind != partScalar {
				return v
			}
		}
	case isa.Constant:
		return scalar{kind: constantScalar, add: uint32(o.Value >> (32 * i))} //nolint:gosec // 32 bits of it
	}
	return scalar{}
}

// set changes a scalar register.
func (x *stepper) set(r isa.Reg, v scalar) {
	if r == isa.Null || int(r) >= scalars {
		return
	}
	x.touched.addScalar(r)
	x.s.scalars[r] = v
}

// maskWidth returns how many scalar registers a mask has.
func (x *stepper) maskWidth() uint8 { return uint8(x.lanes / 32) }

// canHoldMask reports whether an operand is as many scalar registers as a mask needs.
func (x *stepper) canHoldMask(o *isa.Operand) bool {
	return o.Kind == isa.Scalar && o.Width == x.maskWidth() && int(o.Reg)+int(o.Width) <= scalars && isa.Reg(o.Reg) != isa.Null
}

// mask returns the column of an operand that is a mask. isMask is false where none is
// known; isOwn is false where the operand is a constant, which only stands for a mask
// beside one that is known to be one.
func (x *stepper) mask(o *isa.Operand) (column uint8, isMask, isOwn bool) {
	switch {
	case x.canHoldMask(o):
		x.s.read(isa.Reg(o.Reg), x.lanes)
		column, isMask = x.s.mask(isa.Reg(o.Reg), x.lanes)
		return column, isMask, isMask && x.s.scalars[o.Reg].kind == maskScalar
	case o.Kind == isa.Constant:
		v := o.Value
		if x.lanes == wave32 {
			v = int64(int32(v)) //nolint:gosec // the 32 bits that count
		}
		switch v {
		case 0:
			return x.s.masks.constant(truthZero), true, false
		case -1:
			return x.s.masks.constant(truthOnes), true, false
		}
	}
	return 0, false, false
}

// combine adds the mask that an operation computes from two operands: every lane has
// the bit of truth table t, or that of other. ok is false where neither operand is
// known to be a mask. Where only one is, the other is a mask that may have any lanes.
func (x *stepper) combine(a, b *isa.Operand, t, other truth) (column uint8, ok bool) {
	ca, okA, isOwnA := x.mask(a)
	cb, okB, isOwnB := x.mask(b)
	m := &x.s.masks
	switch {
	case !isOwnA && !isOwnB:
		return 0, false
	case !okA:
		ca = m.any()
	case !okB:
		cb = m.any()
	}
	return m.add(ca, cb, t, other), true
}

// setMask puts a mask, or with ok false an unknown value, into the registers
// of an operand.
func (x *stepper) setMask(o *isa.Operand, column uint8, ok bool) {
	if o.Kind != isa.Scalar {
		return
	}
	for i := range o.Width {
		x.set(isa.Reg(o.Reg)+isa.Reg(i), scalar{})
	}
	if ok && x.canHoldMask(o) {
		x.s.setMask(isa.Reg(o.Reg), column, x.lanes)
	}
}

// setResult puts values into the registers of the result.
func (x *stepper) setResult(inst *isa.Inst, values ...scalar) {
	if inst.Dst.Kind != isa.Scalar {
		return
	}
	for i, v := range values {
		x.set(isa.Reg(inst.Dst.Reg)+isa.Reg(i), v)
	}
}

// execOperands are EXEC as an operand of one and of two registers.
var execOperands = [...]isa.Operand{
	1: {Kind: isa.Scalar, Width: 1, Reg: uint16(isa.ExecLo)},
	2: {Kind: isa.Scalar, Width: 2, Reg: uint16(isa.ExecLo)},
}

// step turns the state before an instruction into the state after it. Calls have a
// method of their own (call).
func (x *stepper) step(inst *isa.Inst, pc uint64) {
	s := x.s
	s.limit()
	x.setBanks(inst)
	if s.banks != 0 && inst.Op != isa.VCmp && inst.Op != isa.VCmpx {
		whole, isApplied := x.banked(inst)
		if isApplied {
			return
		}
		inst = &whole
	}
	if o := maskOperations[inst.Op]; o.effect != notMasks {
		x.maskStep(inst, o, pc)
		return
	}
	if s.mayIndex && inst.Op >= isa.VReadlane && inst.Writes.Vectors[0].Kind != isa.None {
		x.clobber(inst)
		return
	}
	if x.scalarStep(inst, pc) || x.vectorStep(inst) {
		return
	}
	if mask, ok := x.carries(inst); ok {
		x.condition(inst, &mask)
		return
	}
	x.clobber(inst)
}

// scalarStep applies an operation on scalar registers. It returns false where it does
// not know the operation, which it then has not applied.
func (x *stepper) scalarStep(inst *isa.Inst, pc uint64) (isApplied bool) {
	switch inst.Op {
	case isa.SSetGPRIdx, isa.SGPRIdxOff:
		x.clobber(inst)
		x.s.mayIndex = inst.Op == isa.SSetGPRIdx
	case isa.SMovB32, isa.SSextI16:
		v := x.operand(&inst.Src[0], 0)
		if inst.Op == isa.SSextI16 && v.kind != codeHigh {
			v = scalar{}
		}
		x.clobber(inst)
		x.setResult(inst, v)
	case isa.SMovB64:
		low, high := x.operand(&inst.Src[0], 0), x.operand(&inst.Src[0], 1)
		x.clobber(inst)
		x.setResult(inst, low, high)
	case isa.SCmovB32, isa.SCmovB64:
		x.choose(inst, &inst.Src[0], &inst.Dst)
	case isa.SCselectB32, isa.SCselectB64:
		x.choose(inst, &inst.Src[0], &inst.Src[1])
	case isa.SAddU32, isa.SAddI32, isa.SAddcU32, isa.SSubU32, isa.SSubI32:
		v := x.sum(inst)
		x.clobber(inst)
		x.setResult(inst, v)
	case isa.SAddU64:
		low, high := x.operand(&inst.Src[0], 0), x.operand(&inst.Src[0], 1)
		n, m := x.operand(&inst.Src[1], 0), x.operand(&inst.Src[1], 1)
		x.clobber(inst)
		if low.kind == codeLow && n.kind == constantScalar && m.kind == constantScalar {
			x.setResult(inst, low.plus(n.add), high.plus(m.add))
		}
	case isa.SGetpc:
		x.clobber(inst)
		next := pc + uint64(inst.Size)
		x.setResult(inst, scalar{kind: codeLow, address: next}, scalar{kind: codeHigh, address: next})
	default:
		return false
	}
	return true
}

// vectorStep does the same with an operation on vector registers or private memory.
func (x *stepper) vectorStep(inst *isa.Inst) (isApplied bool) {
	switch inst.Op {
	case isa.VCmp:
		x.condition(inst, &inst.Dst)
	case isa.VCmpx:
		column := x.s.masks.some(x.s.exec(x.lanes))
		x.clobber(inst)
		x.setMask(&inst.Dst, column, true)
		x.setMask(&execOperands[x.maskWidth()], column, true)
	case isa.VWritelane:
		x.writelane(inst)
	case isa.VReadlane, isa.VReadfirst:
		v := x.readlane(inst)
		x.clobber(inst)
		x.setResult(inst, v)
	case isa.VMovB32, isa.VMovB64:
		x.move(inst)
	case isa.BufferStore, isa.ScratchStore:
		x.store(inst)
	case isa.BufferLoad, isa.ScratchLoad:
		x.load(inst)
	default:
		return false
	}
	return true
}

// readlane returns the value of the lane that an instruction reads.
func (x *stepper) readlane(inst *isa.Inst) scalar {
	p, ok := registerPlace(inst.Src[0].Kind, inst.Src[0].Reg)
	if !ok {
		return scalar{}
	}
	held := x.s.at(p)
	switch {
	case inst.Op == isa.VReadfirst:
		return x.first(&held)
	case inst.Src[1].Kind == isa.Constant:
		return held.read(uint8(uint64(inst.Src[1].Value) % uint64(x.lanes)))
	}
	return scalar{}
}

// condition applies an instruction that puts some of the active lanes into a mask.
func (x *stepper) condition(inst *isa.Inst, mask *isa.Operand) {
	e := x.s.exec(x.lanes)
	x.clobber(inst)
	if x.canHoldMask(mask) {
		x.s.setColumn(partScalar, isa.Reg(mask.Reg), e, x.lanes)
	}
}

// carries returns the mask of carries that a vector instruction writes beside
// its result; inactive lanes have none.
func (x *stepper) carries(inst *isa.Inst) (mask isa.Operand, ok bool) {
	w := &inst.Writes
	if w.Vectors[0].Kind == isa.None || w.HasUnknownScalars {
		return mask, false
	}
	w.EachScalar(func(r isa.Reg) {
		if mask.Width == 0 {
			mask = isa.Operand{Kind: isa.Scalar, Reg: uint16(r)}
		}
		mask.Width++
	})
	return mask, mask.Width == x.maskWidth() && w.HasScalar(isa.Reg(mask.Reg)+isa.Reg(mask.Width)-1)
}

// clobber makes the registers unknown that an instruction writes.
func (x *stepper) clobber(inst *isa.Inst) {
	w := &inst.Writes
	if w.HasUnknownScalars {
		for r := range isa.TTMP0 {
			x.set(r, scalar{})
		}
	}
	w.EachScalar(func(r isa.Reg) { x.set(r, scalar{}) })
	if !w.HasUnknownVectors && w.Vectors[0].Kind == isa.None {
		return
	}
	r := x.written(w.IsOfAllLanes)
	if w.HasUnknownVectors && w.Vectors[0].Kind == isa.None {
		for p := range place(vectors) {
			x.write(p, vector{}, r)
		}
		return
	}
	for _, span := range &w.Vectors {
		if span.Kind != isa.None && (w.HasUnknownVectors || x.s.mayIndex) {
			x.indexed(span, r)
			continue
		}
		for i := range uint16(span.Count) {
			if p, ok := registerPlace(span.Kind, span.First+i); ok {
				x.write(p, vector{}, r)
			}
		}
	}
}

// indexed makes the registers unknown that an instruction may write which adds an
// index to the vector registers of span: the elements of an array of the source.
// They lie side by side, and no compiler lets an index leave them.
func (x *stepper) indexed(span isa.Span, r extent) {
	saves := x.s.hasSavedVectors(x.machineMode)
	first, last := int(span.First), int(span.First)+int(span.Count)-1
	element := func(i int) bool {
		p, ok := registerPlace(span.Kind, uint16(max(i, 0))) //nolint:gosec // not negative, and small
		return ok && i >= 0 && !x.s.isNoElement(p, saves, x.machineMode)
	}
	for n := 0; n < indexReach && element(first-1); n++ {
		first--
	}
	for n := 0; n < indexReach && element(last+1); n++ {
		last++
	}
	for i := first; i <= last; i++ {
		if p, ok := registerPlace(span.Kind, uint16(i)); ok { //nolint:gosec // not negative, and small
			x.write(p, vector{}, r)
		}
	}
}

// hasSavedVectors reports whether the function has saved a vector register that the
// convention preserves. Compilers save either all of these that a function uses or, where
// they know all callers, none. A register that is saved in its inactive lanes only, or in
// all lanes, proves nothing: any function may do that.
func (s *codeState) hasSavedVectors(m *machineMode) bool {
	return slices.ContainsFunc(s.places, func(p stored) bool {
		return p.place.isPrivate() && p.v.active.kind == entryPart && p.v.active != p.v.inactive && m.isPreservedVector(place(p.v.active.id))
	})
}

// isNoElement reports whether a vector register is certain to be no element of an array.
// It is none where one of its lanes has the only copy of a value that the function must
// restore. It is none either where the convention preserves it and the function, which
// saves such registers (saves), has not saved it.
func (s *codeState) isNoElement(p place, saves bool, m *machineMode) bool {
	v := s.at(p)
	elsewhere := func(has func(o *vector) bool) bool {
		return slices.ContainsFunc(s.places, func(o stored) bool { return o.place != p && has(&o.v) })
	}
	if saves && m.isPreservedVector(p) && v.active == p.untouched().active && !elsewhere(func(o *vector) bool { return o.active == v.active }) {
		return true
	}
	return slices.ContainsFunc(v.lanes, func(l laneValue) bool {
		u := l.value()
		return u.kind == entryScalar && u.add == 0 && m.isRestored(isa.Reg(u.id)) && !elsewhere(func(o *vector) bool {
			return o.active == l.active || slices.ContainsFunc(o.lanes, func(other laneValue) bool { return other.active == l.active })
		})
	})
}

// isRestored reports whether a scalar register has its value on entry at the end of every
// function, or has on entry a value that the function needs to return.
func (m *machineMode) isRestored(r isa.Reg) bool {
	return r == returnLow || r == returnHigh || r == framePointer || !m.abi.hasScalar(r)
}

func (m *machineMode) isPreservedVector(p place) bool {
	return !p.isPrivate() && !m.abi.hasActive(int(p))
}

// indexReach is the largest distance between the vector register that an
// instruction names and the one that it writes, where it adds an index. Elements
// of an array of the source are in as many registers at most; no compiler lets
// an index leave them.
const indexReach = 31

// written returns the lanes that an instruction writes.
func (x *stepper) written(all bool) extent {
	if all {
		return extent{mayActive: true, mayInactive: true}
	}
	if bits, ok := x.s.constantExec(x.lanes); ok {
		return extent{mayActive: true, mayInactive: true, isConstant: true, bits: bits}
	}
	return x.s.masks.extent(x.s.exec(x.lanes))
}

// write changes a vector register, or private memory.
func (x *stepper) write(p place, v vector, r extent) {
	if !p.isPrivate() {
		if r.mayActive {
			x.touched.addActive(int(p))
		}
		if r.mayInactive {
			x.touched.addInactive(int(p))
		}
	}
	x.s.put(p, x.s.at(p).over(v, r))
}

// maskStep applies an operation on masks.
func (x *stepper) maskStep(inst *isa.Inst, o maskOperation, pc uint64) {
	s := x.s
	exec := &execOperands[1]
	if inst.Dst.Width == 2 {
		exec = &execOperands[2]
	}
	if o.effect.isIntoExec() || inst.Src[0].Reg == uint16(isa.ExecLo) || inst.Src[1].Reg == uint16(isa.ExecLo) {
		s.exec(x.lanes)
	}
	switch o.effect {
	case combines:
		column, ok := x.combine(&inst.Src[0], &inst.Src[1], o.t, o.t)
		aligned := x.aligned(inst, pc)
		x.clobber(inst)
		if x.setMask(&inst.Dst, column, ok); !ok {
			x.setResult(inst, aligned)
		}
	case inverts:
		column, ok := x.combine(&inst.Src[0], &inst.Src[0], o.t, o.t)
		x.clobber(inst)
		x.setMask(&inst.Dst, column, ok)
	case saves, writes:
		before, known, _ := x.mask(exec)
		after, ok := x.combine(&inst.Src[0], exec, o.t, o.t)
		x.clobber(inst)
		if o.effect == writes {
			before, known = after, ok
		}
		x.setMask(&inst.Dst, before, known)
		x.setMask(exec, after, ok)
	}
}

// aligned returns the result of an operation that aligns a stack pointer. The distance
// is not known, so the result gets a symbol of its own, one for each instruction.
func (x *stepper) aligned(inst *isa.Inst, pc uint64) scalar {
	if inst.Op != isa.SAndB32 {
		return scalar{}
	}
	a, b := x.operand(&inst.Src[0], 0), x.operand(&inst.Src[1], 0)
	if a.kind == constantScalar {
		a, b = b, a
	}
	// Ones, and zeros below them.
	mask := b.kind == constantScalar && bits.OnesCount32(b.add)+bits.TrailingZeros32(b.add) == 32
	if !mask || a.kind != alignedScalar && (a.kind != entryScalar || isa.Reg(a.id) != stackPointer) {
		return scalar{}
	}
	symbol := x.symbols[pc]
	if symbol == 0 {
		if len(x.symbols) >= maxSymbols {
			return scalar{}
		}
		symbol = uint16(len(x.symbols) + 1)
		x.symbols[pc] = symbol
	}
	// A value with the symbol from an earlier round of a loop is another
	// address.
	x.s.eachScalar(func(v scalar) scalar {
		if v.kind == alignedScalar && v.id == symbol {
			return scalar{}
		}
		return v
	})
	x.s.mend()
	x.s.places = slices.DeleteFunc(x.s.places, func(p stored) bool { return p.place.isPrivate() && p.place.base() == symbol })
	return scalar{kind: alignedScalar, id: symbol}
}

// maxSymbols bounds the instructions of a function that align its stack
// pointer.
const maxSymbols = 64

// choose applies an instruction whose result is one of two operands.
func (x *stepper) choose(inst *isa.Inst, a, b *isa.Operand) {
	column, ok := x.combine(a, b, truthA, truthB)
	var values [2]scalar
	for i := range values {
		if v := x.operand(a, i); v == x.operand(b, i) {
			values[i] = v
		}
	}
	x.clobber(inst)
	if x.setMask(&inst.Dst, column, ok); !ok {
		x.setResult(inst, values[:min(max(inst.Dst.Width, 1), 2)]...)
	}
}

// sum returns the result of an addition or subtraction of 32 bits. A carry is
// taken for the carry of the sum of the low halves: compilers write nothing
// else.
func (x *stepper) sum(inst *isa.Inst) scalar {
	a, b := x.operand(&inst.Src[0], 0), x.operand(&inst.Src[1], 0)
	switch inst.Op {
	case isa.SSubU32, isa.SSubI32:
		if b.kind != constantScalar {
			return scalar{}
		}
		b.add = -b.add
	default:
		if a.kind == constantScalar {
			a, b = b, a
		}
	}
	if b.kind != constantScalar || (a.kind == codeHigh) != (inst.Op == isa.SAddcU32) {
		return scalar{}
	}
	return a.plus(b.add)
}

// first returns the value of the first active lane of a vector. Compilers
// read it where a lane is active.
func (x *stepper) first(v *vector) scalar {
	r := x.written(false)
	if r.isConstant {
		return v.read(uint8(bits.TrailingZeros64(r.bits)) & 63) //nolint:gosec // at most 64
	}
	content := v.active
	if !r.mayActive {
		content = v.inactive
	}
	if content.kind != uniformPart || !r.mayActive && !r.mayInactive || r.mayActive && r.mayInactive && v.active != v.inactive ||
		slices.ContainsFunc(v.lanes, func(l laneValue) bool {
			return r.mayActive && l.active != content || r.mayInactive && l.inactive != content
		}) {
		return scalar{}
	}
	return content.u
}

func (x *stepper) writelane(inst *isa.Inst) {
	p, ok := registerPlace(inst.Dst.Kind, inst.Dst.Reg)
	if !ok {
		x.clobber(inst)
		return
	}
	x.touched.addActive(int(p))
	x.touched.addInactive(int(p))
	if inst.Src[1].Kind != isa.Constant {
		x.s.put(p, vector{}) // any lane
		return
	}
	x.s.put(p, x.s.at(p).withLane(uint8(uint64(inst.Src[1].Value)%uint64(x.lanes)), x.operand(&inst.Src[0], 0)))
}

// content returns the value of register i of an operand, lane by lane.
func (x *stepper) content(o *isa.Operand, i uint16) vector {
	if p, ok := registerPlace(o.Kind, o.Reg+i); ok {
		return x.s.at(p)
	}
	if v := x.operand(o, int(i)); v.kind != unknownScalar {
		return vector{active: part{kind: uniformPart, u: v}, inactive: part{kind: uniformPart, u: v}}
	}
	return vector{}
}

func (x *stepper) move(inst *isa.Inst) {
	if inst.Dst.Kind == isa.Scalar {
		x.clobber(inst)
		return
	}
	var values [2]vector
	width := min(max(uint16(inst.Dst.Width), 1), 2)
	for i := range width {
		values[i] = x.content(&inst.Src[0], i)
	}
	r := x.written(false)
	for i := range width {
		if p, ok := registerPlace(inst.Dst.Kind, inst.Dst.Reg+i); ok {
			x.write(p, values[i], r)
		}
	}
}

// address returns the place in private memory that an instruction reaches by
// a stack pointer.
func (x *stepper) address(inst *isa.Inst) (base uint16, offset int32, ok bool) {
	register := &inst.SOffset
	wave := inst.Op == isa.BufferStore || inst.Op == isa.BufferLoad
	if !wave {
		register = &inst.Base
	}
	if inst.VAddr.Kind != isa.None || inst.IsIndexed || register.Kind != isa.Scalar {
		return 0, 0, false
	}
	v := x.operand(register, 0)
	switch {
	case v.kind == entryScalar && isa.Reg(v.id) == stackPointer:
	case v.kind == alignedScalar:
		base = v.id
	default:
		return 0, 0, false
	}
	offset = int32(v.add) //nolint:gosec // stack pointers are moved by less than 2^31 bytes
	if wave {
		if inst.Base.Kind != isa.Scalar || isa.Reg(inst.Base.Reg) != resource {
			return 0, 0, false
		}
		for r := range isa.Reg(4) {
			if x.s.scalars[resource+r] != entryOf(resource+r) {
				return 0, 0, false
			}
		}
	}
	if wave {
		x.isByWave = true
	} else {
		x.isByLane = true
	}
	if wave == x.isPerLane {
		return 0, 0, false
	}
	if wave {
		if offset%int32(x.lanes) != 0 { //nolint:gosec // 32 or 64
			return 0, 0, false
		}
		offset /= int32(x.lanes) //nolint:gosec // 32 or 64
	}
	sum := int64(offset) + int64(inst.Offset)
	return base, int32(sum), sum == int64(int32(sum)) //nolint:gosec // checked
}

// store applies a store to private memory. Stores through pointers, at unknown
// addresses, are assumed not to hit saved registers: no object of the source
// lies there.
func (x *stepper) store(inst *isa.Inst) {
	base, offset, ok := x.address(inst)
	if !ok {
		x.clobber(inst)
		return
	}
	r := x.written(false)
	first, last := offset&^3, (offset+int32(inst.Bytes)-1)&^3
	for word, i := first, uint16(0); word <= last && word >= first; word, i = word+4, i+1 {
		var v vector
		if offset%4 == 0 && inst.Bytes%4 == 0 {
			v = x.content(&inst.Src[0], i)
		}
		x.write(private(base, word), v, r)
	}
	x.clobber(inst)
}

func (x *stepper) load(inst *isa.Inst) {
	base, offset, ok := x.address(inst)
	if !ok || offset%4 != 0 || inst.Bytes%4 != 0 || inst.Dst.Kind == isa.None {
		x.clobber(inst)
		return
	}
	r := x.written(false)
	for i := range uint16(inst.Bytes / 4) {
		if p, ok := registerPlace(inst.Dst.Kind, inst.Dst.Reg+i); ok {
			x.write(p, x.s.at(private(base, offset+4*int32(i))), r)
		}
	}
}

// release forgets, after an instruction that moved lanes, the masks in lanes that no
// instruction reads any more.
func (x *stepper) release(inst *isa.Inst, n needed) {
	s := x.s
	release := func(o *isa.Operand, lanes uint64) {
		if p, ok := registerPlace(o.Kind, o.Reg); ok {
			s.release(p, lanes)
		}
	}
	memory := func(lanes uint64) {
		if base, offset, ok := x.address(inst); ok && offset%4 == 0 {
			s.release(private(base, offset), lanes)
		}
	}
	switch inst.Op {
	case isa.BufferStore, isa.ScratchStore:
		memory(n.dst)
		release(&inst.Src[0], n.src)
	case isa.BufferLoad, isa.ScratchLoad:
		release(&inst.Dst, n.dst)
		memory(n.src)
	default:
		release(&inst.Dst, n.dst)
		release(&inst.Src[0], n.src)
	}
}

// call turns the state before a call into the state after it, where the function
// changes the registers of effect and returns. The convention makes every function
// return with EXEC, the stack and frame pointers and the resource of private memory as
// they were, and private memory above the stack pointer is the function's to use.
func (x *stepper) call(inst *isa.Inst, effect *registerSet) {
	s := x.s
	s.limit()
	s.banks = 0
	sp := s.scalars[stackPointer]
	r := x.written(false)
	x.clobber(inst)
	for i := range s.scalars {
		if n := isa.Reg(i); effect.hasScalar(n) && !isKeptByAll(n) {
			x.set(n, scalar{})
		}
	}
	if inst.Dst.Kind == isa.Scalar {
		x.setResult(inst, scalar{}, scalar{})
	}
	for i := range vectors {
		lanes := extent{}
		if effect.hasActive(i) {
			lanes = extent{mayActive: r.mayActive, mayInactive: r.mayInactive}
		}
		if effect.hasInactive(i) {
			lanes.mayActive, lanes.mayInactive = true, true
		}
		if lanes.mayActive || lanes.mayInactive {
			x.write(place(i), vector{}, lanes)
		}
	}
	var base uint16
	switch {
	case sp.kind == entryScalar && isa.Reg(sp.id) == stackPointer:
	case sp.kind == alignedScalar:
		base = sp.id
	default:
		return
	}
	top := int64(int32(sp.add)) //nolint:gosec // see address
	if !x.isPerLane {
		top /= int64(x.lanes)
	}
	s.places = slices.DeleteFunc(s.places, func(p stored) bool {
		return p.place.isPrivate() && p.place.base() == base && int64(p.place.offset()) >= top
	})
}

// isKeptByAll reports whether every function keeps a scalar register.
func isKeptByAll(r isa.Reg) bool {
	return r == stackPointer || r == framePointer || r == isa.ExecLo || r == isa.ExecHi
}
