// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// The registers of the calling convention ("Non-Kernel Functions").
const (
	returnLow    isa.Reg = 30 // SGPR30 and 31 hold the return address,
	returnHigh   isa.Reg = 31
	stackPointer isa.Reg = 32
	framePointer isa.Reg = 33
	resource     isa.Reg = 0 // SGPR0 to 3 the resource of buffer instructions for private memory
)

// registerSet is a set of scalar registers, and two of vector registers: of those
// whose lanes change that are active when a function is called, and of those whose
// other lanes do.
type registerSet struct {
	scalars [3]uint64
	in, out [vectors / 64]uint64
}

func (r *registerSet) addScalar(i isa.Reg)      { r.scalars[i/64] |= 1 << (i % 64) }
func (r *registerSet) hasScalar(i isa.Reg) bool { return r.scalars[i/64]>>(i%64)&1 != 0 }
func (r *registerSet) addIn(i int)              { r.in[i/64] |= 1 << (i % 64) }
func (r *registerSet) addOut(i int)             { r.out[i/64] |= 1 << (i % 64) }
func (r *registerSet) hasIn(i int) bool         { return r.in[i/64]>>(i%64)&1 != 0 }
func (r *registerSet) hasOut(i int) bool        { return r.out[i/64]>>(i%64)&1 != 0 }

// add adds all of another set, and says whether that changed anything.
func (r *registerSet) add(o *registerSet) bool {
	was := *r
	for i := range r.scalars {
		r.scalars[i] |= o.scalars[i]
	}
	for i := range r.in {
		r.in[i] |= o.in[i]
		r.out[i] |= o.out[i]
	}
	return *r != was
}

// A machineMode is what the effects of instructions depend on.
type machineMode struct {
	target    isa.Target
	processor *processor
	lanes     uint32
	// isPerLane: stack pointers count the bytes of a lane, not of the wave.
	isPerLane bool
	// abi is what a function changes of which only the convention is known.
	abi registerSet
}

// A stepper applies instructions to states.
type stepper struct {
	*machineMode
	s       *codeState
	touched registerSet // whatever was written
	// Private memory was reached by a stack pointer as one that counts a lane's
	// bytes, or the wave's.
	isByLane, isByWave bool
	symbols            map[uint64]uint16 // of the instructions that align a pointer
}

// operand is the value of 32 bits of an operand: the register with index i of it.
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

// maskWidth is how many scalar registers a mask has.
func (x *stepper) maskWidth() uint8 { return uint8(x.lanes / 32) }

// canHoldMask says whether an operand is scalar registers, as many as a mask needs.
func (x *stepper) canHoldMask(o *isa.Operand) bool {
	return o.Kind == isa.Scalar && o.Width == x.maskWidth() && int(o.Reg)+int(o.Width) <= scalars && isa.Reg(o.Reg) != isa.Null
}

// mask is the column of an operand that is a mask. isMask is false where none is known;
// isOwn is false where the operand is a constant, which only stands for a mask beside
// one that is known to be one.
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

// combine makes the mask that an operation makes of two operands: every lane has the
// bit that t says, or the one that other says. ok is false where neither operand is
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

// setMask puts a mask, or what is not known, into the registers of an operand.
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
func (x *stepper) setResult(in *isa.Inst, values ...scalar) {
	if in.Dst.Kind != isa.Scalar {
		return
	}
	for i, v := range values {
		x.set(isa.Reg(in.Dst.Reg)+isa.Reg(i), v)
	}
}

// execOperands are EXEC as an operand of one and of two registers.
var execOperands = [...]isa.Operand{
	1: {Kind: isa.Scalar, Width: 1, Reg: uint16(isa.ExecLo)},
	2: {Kind: isa.Scalar, Width: 2, Reg: uint16(isa.ExecLo)},
}

// step makes of the state before an instruction that after it. Calls have their own
// (see call).
func (x *stepper) step(in *isa.Inst, pc uint64) {
	s := x.s
	s.limit()
	x.setBanks(in)
	if s.banks != 0 && in.Op != isa.VCmp && in.Op != isa.VCmpx {
		whole, isApplied := x.banked(in)
		if isApplied {
			return
		}
		in = &whole
	}
	if o := maskOperations[in.Op]; o.effect != notMasks {
		x.maskStep(in, o, pc)
		return
	}
	if s.mayIndex && in.Op >= isa.VReadlane && in.Writes.Vectors[0].Kind != isa.None {
		x.clobber(in)
		return
	}
	if x.scalarStep(in, pc) || x.vectorStep(in) {
		return
	}
	if mask, ok := x.carries(in); ok {
		x.condition(in, &mask)
		return
	}
	x.clobber(in)
}

// scalarStep applies an operation on scalar registers. It answers false where it does
// not know the operation, and has not applied it.
func (x *stepper) scalarStep(in *isa.Inst, pc uint64) (isApplied bool) {
	switch in.Op {
	case isa.SSetGPRIdx, isa.SGPRIdxOff:
		x.clobber(in)
		x.s.mayIndex = in.Op == isa.SSetGPRIdx
	case isa.SMovB32, isa.SSextI16:
		v := x.operand(&in.Src[0], 0)
		if in.Op == isa.SSextI16 && v.kind != codeHigh {
			v = scalar{}
		}
		x.clobber(in)
		x.setResult(in, v)
	case isa.SMovB64:
		low, high := x.operand(&in.Src[0], 0), x.operand(&in.Src[0], 1)
		x.clobber(in)
		x.setResult(in, low, high)
	case isa.SCmovB32, isa.SCmovB64:
		x.choose(in, &in.Src[0], &in.Dst)
	case isa.SCselectB32, isa.SCselectB64:
		x.choose(in, &in.Src[0], &in.Src[1])
	case isa.SAddU32, isa.SAddI32, isa.SAddcU32, isa.SSubU32, isa.SSubI32:
		v := x.sum(in)
		x.clobber(in)
		x.setResult(in, v)
	case isa.SAddU64:
		low, high := x.operand(&in.Src[0], 0), x.operand(&in.Src[0], 1)
		n, m := x.operand(&in.Src[1], 0), x.operand(&in.Src[1], 1)
		x.clobber(in)
		if low.kind == codeLow && n.kind == constantScalar && m.kind == constantScalar {
			x.setResult(in, low.plus(n.add), high.plus(m.add))
		}
	case isa.SGetpc:
		x.clobber(in)
		next := pc + uint64(in.Size)
		x.setResult(in, scalar{kind: codeLow, at: next}, scalar{kind: codeHigh, at: next})
	default:
		return false
	}
	return true
}

// vectorStep does the same with an operation on vector registers or private memory.
func (x *stepper) vectorStep(in *isa.Inst) (isApplied bool) {
	switch in.Op {
	case isa.VCmp:
		x.condition(in, &in.Dst)
	case isa.VCmpx:
		column := x.s.masks.some(x.s.exec(x.lanes))
		x.clobber(in)
		x.setMask(&in.Dst, column, true)
		x.setMask(&execOperands[x.maskWidth()], column, true)
	case isa.VWritelane:
		x.writelane(in)
	case isa.VReadlane, isa.VReadfirst:
		v := x.readlane(in)
		x.clobber(in)
		x.setResult(in, v)
	case isa.VMovB32, isa.VMovB64:
		x.move(in)
	case isa.BufferStore, isa.ScratchStore:
		x.store(in)
	case isa.BufferLoad, isa.ScratchLoad:
		x.load(in)
	default:
		return false
	}
	return true
}

// readlane is what the lane holds that an instruction reads.
func (x *stepper) readlane(in *isa.Inst) scalar {
	p, ok := registerPlace(in.Src[0].Kind, in.Src[0].Reg)
	if !ok {
		return scalar{}
	}
	held := x.s.at(p)
	switch {
	case in.Op == isa.VReadfirst:
		return x.first(&held)
	case in.Src[1].Kind == isa.Constant:
		return held.read(uint8(uint64(in.Src[1].Value) % uint64(x.lanes)))
	}
	return scalar{}
}

// condition applies an instruction that says of each lane that executes whether it
// is in a mask.
func (x *stepper) condition(in *isa.Inst, mask *isa.Operand) {
	e := x.s.exec(x.lanes)
	x.clobber(in)
	if x.canHoldMask(mask) {
		x.s.setColumn(partScalar, isa.Reg(mask.Reg), e, x.lanes)
	}
}

// carries is the mask that an instruction of vector registers writes beside its
// result: carries, of which lanes that do not execute have none.
func (x *stepper) carries(in *isa.Inst) (mask isa.Operand, ok bool) {
	w := &in.Writes
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

// clobber makes unknown what an instruction writes.
func (x *stepper) clobber(in *isa.Inst) {
	w := &in.Writes
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

// indexed makes unknown what an instruction may write that adds an index to the
// vector registers of span: the elements of an array of the source, which lie side
// by side, and which no compiler lets an index leave.
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

// hasSavedVectors says whether the function has saved a vector register that the
// convention preserves. Compilers save either all of these that a function uses or, where
// they know all callers, none. A register that is saved in its inactive lanes only, or
// in all lanes, tells nothing: any function may do that.
func (s *codeState) hasSavedVectors(m *machineMode) bool {
	return slices.ContainsFunc(s.places, func(p stored) bool {
		return p.at.isPrivate() && p.v.in.kind == entryPart && p.v.in != p.v.out && m.isPreservedVector(place(p.v.in.id))
	})
}

// isNoElement says whether a vector register is certain to be no element of an array.
// It is none where one of its lanes holds the only copy of a value that the function
// must give back. It is none either where the convention preserves it and the function,
// which saves such registers (saves), has not saved it.
func (s *codeState) isNoElement(p place, saves bool, m *machineMode) bool {
	v := s.at(p)
	elsewhere := func(has func(o *vector) bool) bool {
		return slices.ContainsFunc(s.places, func(o stored) bool { return o.at != p && has(&o.v) })
	}
	if saves && m.isPreservedVector(p) && v.in == p.untouched().in && !elsewhere(func(o *vector) bool { return o.in == v.in }) {
		return true
	}
	return slices.ContainsFunc(v.lanes, func(l laneValue) bool {
		u := l.value()
		return u.kind == entryScalar && u.add == 0 && m.isGivenBack(isa.Reg(u.id)) && !elsewhere(func(o *vector) bool {
			return o.in == l.in || slices.ContainsFunc(o.lanes, func(other laneValue) bool { return other.in == l.in })
		})
	})
}

// isGivenBack says whether a scalar register holds at the end of every function what it
// held on entry, or holds on entry what the function needs to return.
func (m *machineMode) isGivenBack(r isa.Reg) bool {
	return r == returnLow || r == returnHigh || r == framePointer || !m.abi.hasScalar(r)
}

func (m *machineMode) isPreservedVector(p place) bool { return !p.isPrivate() && !m.abi.hasIn(int(p)) }

// indexReach is how far from the vector register that an instruction names the
// one may be that it writes, where it adds an index. Elements of an array of the
// source are in as many registers at most; no compiler lets an index leave them.
const indexReach = 31

// written is which lanes an instruction writes.
func (x *stepper) written(all bool) extent {
	if all {
		return extent{mayIn: true, mayOut: true}
	}
	if bits, ok := x.s.constantExec(x.lanes); ok {
		return extent{mayIn: true, mayOut: true, isConstant: true, bits: bits}
	}
	return x.s.masks.extent(x.s.exec(x.lanes))
}

// write changes a vector register, or private memory.
func (x *stepper) write(p place, v vector, r extent) {
	if !p.isPrivate() {
		if r.mayIn {
			x.touched.addIn(int(p))
		}
		if r.mayOut {
			x.touched.addOut(int(p))
		}
	}
	x.s.put(p, x.s.at(p).over(v, r))
}

// maskStep applies an operation on masks.
func (x *stepper) maskStep(in *isa.Inst, o maskOperation, pc uint64) {
	s := x.s
	exec := &execOperands[1]
	if in.Dst.Width == 2 {
		exec = &execOperands[2]
	}
	if o.effect.isIntoExec() || in.Src[0].Reg == uint16(isa.ExecLo) || in.Src[1].Reg == uint16(isa.ExecLo) {
		s.exec(x.lanes)
	}
	switch o.effect {
	case combines:
		column, ok := x.combine(&in.Src[0], &in.Src[1], o.t, o.t)
		aligned := x.aligned(in, pc)
		x.clobber(in)
		if x.setMask(&in.Dst, column, ok); !ok {
			x.setResult(in, aligned)
		}
	case inverts:
		column, ok := x.combine(&in.Src[0], &in.Src[0], o.t, o.t)
		x.clobber(in)
		x.setMask(&in.Dst, column, ok)
	case saves, writes:
		before, known, _ := x.mask(exec)
		after, ok := x.combine(&in.Src[0], exec, o.t, o.t)
		x.clobber(in)
		if o.effect == writes {
			before, known = after, ok
		}
		x.setMask(&in.Dst, before, known)
		x.setMask(exec, after, ok)
	}
}

// aligned is the result of an operation that aligns a stack pointer. How far that moves
// it is not known, so the result gets a symbol of its own, one for each instruction.
func (x *stepper) aligned(in *isa.Inst, pc uint64) scalar {
	if in.Op != isa.SAndB32 {
		return scalar{}
	}
	a, b := x.operand(&in.Src[0], 0), x.operand(&in.Src[1], 0)
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
	// What has the symbol from an earlier round of a loop is another address.
	x.s.eachScalar(func(v scalar) scalar {
		if v.kind == alignedScalar && v.id == symbol {
			return scalar{}
		}
		return v
	})
	x.s.mend()
	x.s.places = slices.DeleteFunc(x.s.places, func(p stored) bool { return p.at.isPrivate() && p.at.base() == symbol })
	return scalar{kind: alignedScalar, id: symbol}
}

// maxSymbols is how many instructions of a function align its stack pointer.
const maxSymbols = 64

// choose applies an instruction whose result is one of two operands.
func (x *stepper) choose(in *isa.Inst, a, b *isa.Operand) {
	column, ok := x.combine(a, b, truthA, truthB)
	var values [2]scalar
	for i := range values {
		if v := x.operand(a, i); v == x.operand(b, i) {
			values[i] = v
		}
	}
	x.clobber(in)
	if x.setMask(&in.Dst, column, ok); !ok {
		x.setResult(in, values[:min(max(in.Dst.Width, 1), 2)]...)
	}
}

// sum is the result of an addition or subtraction of 32 bits. A carry is that of
// the sum of the low halves: no compiler writes anything else.
func (x *stepper) sum(in *isa.Inst) scalar {
	a, b := x.operand(&in.Src[0], 0), x.operand(&in.Src[1], 0)
	switch in.Op {
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
	if b.kind != constantScalar || (a.kind == codeHigh) != (in.Op == isa.SAddcU32) {
		return scalar{}
	}
	return a.plus(b.add)
}

// first is what the first active lane of a vector holds. Compilers ask for it
// where one is active.
func (x *stepper) first(v *vector) scalar {
	r := x.written(false)
	if r.isConstant {
		return v.read(uint8(bits.TrailingZeros64(r.bits)) & 63) //nolint:gosec // at most 64
	}
	of := v.in
	if !r.mayIn {
		of = v.out
	}
	if of.kind != uniformPart || !r.mayIn && !r.mayOut || r.mayIn && r.mayOut && v.in != v.out ||
		slices.ContainsFunc(v.lanes, func(l laneValue) bool { return r.mayIn && l.in != of || r.mayOut && l.out != of }) {
		return scalar{}
	}
	return of.u
}

func (x *stepper) writelane(in *isa.Inst) {
	p, ok := registerPlace(in.Dst.Kind, in.Dst.Reg)
	if !ok {
		x.clobber(in)
		return
	}
	x.touched.addIn(int(p))
	x.touched.addOut(int(p))
	if in.Src[1].Kind != isa.Constant {
		x.s.put(p, vector{}) // any lane
		return
	}
	x.s.put(p, x.s.at(p).withLane(uint8(uint64(in.Src[1].Value)%uint64(x.lanes)), x.operand(&in.Src[0], 0)))
}

// content is what register i of an operand holds, lane by lane.
func (x *stepper) content(o *isa.Operand, i uint16) vector {
	if p, ok := registerPlace(o.Kind, o.Reg+i); ok {
		return x.s.at(p)
	}
	if v := x.operand(o, int(i)); v.kind != unknownScalar {
		return vector{in: part{kind: uniformPart, u: v}, out: part{kind: uniformPart, u: v}}
	}
	return vector{}
}

func (x *stepper) move(in *isa.Inst) {
	if in.Dst.Kind == isa.Scalar {
		x.clobber(in)
		return
	}
	var values [2]vector
	width := min(max(uint16(in.Dst.Width), 1), 2)
	for i := range width {
		values[i] = x.content(&in.Src[0], i)
	}
	r := x.written(false)
	for i := range width {
		if p, ok := registerPlace(in.Dst.Kind, in.Dst.Reg+i); ok {
			x.write(p, values[i], r)
		}
	}
}

// address is where an instruction reaches private memory by a stack pointer.
func (x *stepper) address(in *isa.Inst) (base uint16, offset int32, ok bool) {
	register := &in.SOffset
	wave := in.Op == isa.BufferStore || in.Op == isa.BufferLoad
	if !wave {
		register = &in.Base
	}
	if in.VAddr.Kind != isa.None || in.IsIndexed || register.Kind != isa.Scalar {
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
		if in.Base.Kind != isa.Scalar || isa.Reg(in.Base.Reg) != resource {
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
	sum := int64(offset) + int64(in.Offset)
	return base, int32(sum), sum == int64(int32(sum)) //nolint:gosec // checked
}

// store applies a store to private memory. What is stored at addresses that are
// not known, through pointers, is assumed not to lie where registers are saved:
// no object of the source does.
func (x *stepper) store(in *isa.Inst) {
	base, offset, ok := x.address(in)
	if !ok {
		x.clobber(in)
		return
	}
	r := x.written(false)
	first, last := offset&^3, (offset+int32(in.Bytes)-1)&^3
	for at, i := first, uint16(0); at <= last && at >= first; at, i = at+4, i+1 {
		var v vector
		if offset%4 == 0 && in.Bytes%4 == 0 {
			v = x.content(&in.Src[0], i)
		}
		x.write(private(base, at), v, r)
	}
	x.clobber(in)
}

func (x *stepper) load(in *isa.Inst) {
	base, offset, ok := x.address(in)
	if !ok || offset%4 != 0 || in.Bytes%4 != 0 || in.Dst.Kind == isa.None {
		x.clobber(in)
		return
	}
	r := x.written(false)
	for i := range uint16(in.Bytes / 4) {
		if p, ok := registerPlace(in.Dst.Kind, in.Dst.Reg+i); ok {
			x.write(p, x.s.at(private(base, offset+4*int32(i))), r)
		}
	}
}

// release forgets, after an instruction that moved lanes, the masks in those lanes that
// nothing reads any more.
func (x *stepper) release(in *isa.Inst, n needed) {
	s := x.s
	release := func(o *isa.Operand, lanes uint64) {
		if p, ok := registerPlace(o.Kind, o.Reg); ok {
			s.release(p, lanes)
		}
	}
	memory := func(lanes uint64) {
		if base, offset, ok := x.address(in); ok && offset%4 == 0 {
			s.release(private(base, offset), lanes)
		}
	}
	switch in.Op {
	case isa.BufferStore, isa.ScratchStore:
		memory(n.dst)
		release(&in.Src[0], n.src)
	case isa.BufferLoad, isa.ScratchLoad:
		release(&in.Dst, n.dst)
		memory(n.src)
	default:
		release(&in.Dst, n.dst)
		release(&in.Src[0], n.src)
	}
}

// call makes of the state before a call that after it, where the function changes what
// effect says and returns. The convention makes every function return with EXEC,
// the stack and frame pointers and the resource of private memory as they were,
// and private memory above the stack pointer is the function's to use.
func (x *stepper) call(in *isa.Inst, effect *registerSet) {
	s := x.s
	s.limit()
	s.banks = 0
	sp := s.scalars[stackPointer]
	r := x.written(false)
	x.clobber(in)
	for i := range s.scalars {
		if n := isa.Reg(i); effect.hasScalar(n) && !isKeptByAll(n) {
			x.set(n, scalar{})
		}
	}
	if in.Dst.Kind == isa.Scalar {
		x.setResult(in, scalar{}, scalar{})
	}
	for i := range vectors {
		lanes := extent{}
		if effect.hasIn(i) {
			lanes = extent{mayIn: r.mayIn, mayOut: r.mayOut}
		}
		if effect.hasOut(i) {
			lanes.mayIn, lanes.mayOut = true, true
		}
		if lanes.mayIn || lanes.mayOut {
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
		return p.at.isPrivate() && p.at.base() == base && int64(p.at.offset()) >= top
	})
}

// isKeptByAll says whether a scalar register holds after any call what it held before.
func isKeptByAll(r isa.Reg) bool {
	return r == stackPointer || r == framePointer || r == isa.ExecLo || r == isa.ExecHi
}
