// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// This file reads locations of variables as compilers write them that do not know the
// heterogeneous extension: as if each lane were a thread. LLVM does so for AMDGPU.
//
//   - A vector register stands for the lane's part of it.
//   - The frame base is a register that counts bytes of the wave's private memory, or of
//     a lane's; offsets from it count bytes of a lane's.
//   - DW_OP_constu SPACE, DW_OP_swap, DW_OP_xderef at the end names the address space that the
//     variable was declared in. Clang writes it for a variable that optimizers have put
//     into a register, and for its constant value, too, where it means nothing.
//
// Read to the letter, DW_OP_xderef would take the variable's content for its address. Expressions
// with an operation of the extension are read to the letter.

// laneView is a frame as its lanes see it.
type laneView struct {
	*unitContext
	lanes uint32
	stack locexpr.AddressSpace // of a lane's private memory
	wave  locexpr.AddressSpace // of the wave's private memory, which includes it
	ratio uint64               // how many times larger the wave's is
}

// laneView returns the view of the frame's lanes; false where threads of the architecture have
// no lanes, or no memory of a lane's own.
func (u *unitContext) laneView() (v laneView, ok bool) {
	b := u.frame.walker.thread.binding
	if b == nil || b.Lanes <= 1 {
		return v, false
	}
	for i := range b.Maps {
		for _, r := range b.Maps[i].Ranges {
			if r.Kind == sdk.InterleavedMap && r.Element > 0 && r.Stride >= uint64(r.Element) {
				return laneView{u, b.Lanes, b.Maps[i].Space, r.Into, r.Stride / uint64(r.Element)}, true
			}
		}
	}
	return v, false
}

// laneOp is an operation, with its kind: "DW_OP_lit" for DW_OP_lit5.
type laneOp struct {
	locexpr.Instruction
	kind     string
	register uint64 // or the N of DW_OP_litN
	bytes    []byte
}

// add returns the number that a DW_OP_breg* adds to the register's contents.
func (o *laneOp) add() int64 {
	if o.Op.Operands[1] != locexpr.NoOperand {
		return int64(o.Operands[1])
	}
	return int64(o.Operands[0])
}

// constant returns the number that an operation pushes.
func (o *laneOp) constant() (uint64, bool) {
	switch o.kind {
	case "DW_OP_lit":
		return o.register, true
	case "DW_OP_constu", "DW_OP_const1u", "DW_OP_const2u", "DW_OP_const4u", "DW_OP_const8u":
		return o.Operands[0], true
	}
	return 0, false
}

// maxPieceBits bounds the size of a piece. Compilers do not write larger ones.
const maxPieceBits = 1 << 32

// maxLaneOps bounds the operations of an expression that is read as lanes see it.
const maxLaneOps = 512

// laneOps returns the operations of an expression; false where one is of an extension, or
// jumps, or cannot be decoded.
func (u *unitContext) laneOps(unit dwarf.Unit, expr []byte) (ops []laneOp, ok bool) {
	dialect := u.code.UnitDialect(unit)
	for instruction, err := range locexpr.Decode(expr, dialect, unit.AddressSize(), u.frame.walker.machine.Order) {
		if err != nil || instruction.Op == nil || len(ops) == maxLaneOps || instruction.Op.Operands[0] == locexpr.Branch ||
			strings.HasPrefix(instruction.Op.Name, "DW_OP_LLVM_") || strings.HasPrefix(instruction.Op.Name, "DW_OP_INTEL_") {
			return nil, false
		}
		kind, register := operationKind(instruction)
		ops = append(ops, laneOp{instruction, kind, register, expr[instruction.Offset:][:instruction.Size]})
	}
	return ops, true
}

// lanePiece is a piece of a variable: its operations without the ones that give the kind of
// location.
type lanePiece struct {
	ops      []laneOp
	bits     uint64 // 0: not known
	space    locexpr.AddressSpace
	hasSpace bool // DW_OP_xderef names space
	isValue  bool // DW_OP_stack_value
}

// lanePieces divides an expression into pieces. bits is the size of the variable; 0: not known.
func lanePieces(ops []laneOp, bits uint64) (pieces []lanePiece) {
	from := 0
	for i := range ops {
		if ops[i].kind == "DW_OP_piece" || ops[i].kind == "DW_OP_bit_piece" {
			size := min(ops[i].Operands[0], maxPieceBits)
			if ops[i].kind == "DW_OP_piece" {
				size = min(8*size, maxPieceBits)
			}
			pieces = append(pieces, newLanePiece(ops[from:i], size))
			from = i + 1
		}
	}
	if from == 0 {
		return []lanePiece{newLanePiece(ops, bits)}
	}
	return pieces
}

func newLanePiece(ops []laneOp, bits uint64) lanePiece {
	p := lanePiece{bits: bits}
	if n := len(ops); n > 0 && ops[n-1].kind == "DW_OP_stack_value" {
		p.isValue, ops = true, ops[:n-1]
	}
	if n := len(ops); n >= 3 && ops[n-1].kind == "DW_OP_xderef" && ops[n-2].kind == "DW_OP_swap" {
		if space, ok := ops[n-3].constant(); ok {
			p.space, p.hasSpace, ops = locexpr.AddressSpace(space), true, ops[:n-3]
		}
	}
	p.ops = ops
	return p
}

// isPlain reports whether a piece is the same for lanes as to the letter.
func (v *laneView) isPlain(p *lanePiece) bool {
	if p.hasSpace {
		return false
	}
	for i := range p.ops {
		switch p.ops[i].kind {
		case "DW_OP_reg", "DW_OP_breg", "DW_OP_fbreg":
			return false
		}
	}
	return true
}

// errLaneView is the error for an expression whose meaning is not known.
var errLaneView = errors.New("the compiler does not say where this is")

// lanePlan is where a variable is, for each lane: pieces, or one that is the whole.
type lanePlan struct {
	parts       []lanePart
	isComposite bool
}

// lanePart is where a piece of a variable is.
type lanePart struct {
	bits   uint64
	place  locexpr.Location // lane 0's, or all lanes'
	stride uint64           // bits from one lane's to the next one's
	find   func() (locexpr.Location, error)
}

// laneReading is an expression that is read as lanes see it: pieces, or one that is the whole.
type laneReading struct {
	pieces      []lanePiece
	isComposite bool
	isLetter    bool                 // it is to be read to the letter
	isPointer   bool                 // the variable is a pointer or a reference
	areOwn      bool                 // spaces are numbered in the compiler's style
	stack       locexpr.AddressSpace // of a lane's private memory
}

// reading reads the expression of a variable; nil: it has operations that are read to the letter
// only.
func (v *laneView) reading(variable dwarf.Entry, unit dwarf.Unit, expr []byte) *laneReading {
	ops, ok := v.laneOps(unit, expr)
	if !ok || len(ops) == 0 {
		return nil
	}
	r := &laneReading{areOwn: v.areSpacesOwn(unit, ops), stack: v.stack}
	v.hasOwnSpaces = r.areOwn
	bits, isPointer := v.sizeOf(variable)
	r.isPointer = isPointer
	last := ops[len(ops)-1].kind
	r.isComposite = last == "DW_OP_piece" || last == "DW_OP_bit_piece"
	r.pieces = lanePieces(ops, bits)
	r.isLetter = !r.isComposite && (len(r.pieces) > 1 || v.isPlain(&r.pieces[0]))
	return r
}

// plan returns where a variable is; ok is false for one that is to be read to the letter.
func (v *laneView) plan(ctx context.Context, unit dwarf.Unit, r *laneReading) (plan lanePlan, ok bool, err error) {
	if r == nil {
		return plan, false, nil
	}
	v.hasOwnSpaces = r.areOwn
	if r.isLetter {
		return plan, false, nil
	}
	plan.isComposite = r.isComposite
	plan.parts = make([]lanePart, len(r.pieces))
	for i := range r.pieces {
		p := &r.pieces[i]
		if len(p.ops) > 0 {
			if plan.parts[i], err = v.piece(ctx, unit, p, r.isPointer && !plan.isComposite); err != nil {
				return plan, true, err
			}
		}
		plan.parts[i].bits = p.bits
	}
	return plan, true, nil
}

// areSpacesOwn reports whether a unit numbers address spaces in its own style: its variables
// are in private memory, by the language, and in another space, by an expression. LLVM did so
// for AMDGPU before version 22. The space of a pointer of such a unit, and so its size, is not
// known.
func (v *laneView) areSpacesOwn(unit dwarf.Unit, ops []laneOp) bool {
	if unit.Language() != dw.LangOpenCL {
		return false
	}
	for i, p := range lanePieces(ops, 0) {
		if i == 0 && len(p.ops) == 1 && (p.ops[0].kind == "DW_OP_addr" || p.ops[0].kind == "DW_OP_addrx") {
			return false // no variable of a lane
		}
		if p.hasSpace {
			return p.space != v.stack
		}
	}
	return false
}

// place returns where the current lane has the variable.
func (p *lanePlan) place(v *laneView) (locexpr.Location, error) {
	if !p.isComposite {
		return p.parts[0].location(v)
	}
	parts := make([]locexpr.Part, len(p.parts))
	for i := range p.parts {
		l, err := p.parts[i].location(v)
		if err != nil {
			return l, err
		}
		parts[i] = locexpr.Part{Bits: p.parts[i].bits, Location: l}
	}
	return locexpr.CompositeLocation(parts), nil
}

func (p *lanePart) location(v *laneView) (locexpr.Location, error) {
	switch {
	case p.find != nil:
		return p.find()
	case p.stride > 0:
		lane, _, err := v.laneNumber()
		if err != nil || p.place.IsUndefined() {
			return p.place, err
		}
		return p.place.Offset(int64(p.stride * lane))
	case p.place.Place(0).Storage == locexpr.Memory:
		return p.place.WithScope(v.scope()), nil
	}
	return p.place, nil
}

// scope returns the scope of the current lane.
func (v *laneView) scope() locexpr.Scope {
	c := surrounded{frameContext{frame: v.frame}, &v.around}
	return c.Scope()
}

// piece returns where a piece of a variable is.
func (v *laneView) piece(ctx context.Context, unit dwarf.Unit, p *lanePiece, isPointer bool) (lanePart, error) {
	first := &p.ops[0]
	switch {
	case p.isValue:
		return lanePart{find: func() (locexpr.Location, error) { return v.value(ctx, unit, p) }}, nil
	case len(p.ops) == 1 && first.kind == "DW_OP_reg":
		return v.register(ctx, unit, first.register)
	case len(p.ops) == 1 && (first.kind == "DW_OP_addr" || first.kind == "DW_OP_addrx"):
		return v.static(ctx, unit, p)
	case first.kind == "DW_OP_fbreg" || first.kind == "DW_OP_breg" && v.isFrameBase(first.register):
		return v.onStack(ctx, p, isPointer)
	case len(p.ops) == 1 && first.kind == "DW_OP_breg" && p.hasSpace:
		return v.inRegister(ctx, unit, p, first)
	}
	return lanePart{}, fmt.Errorf("%w: %s", errLaneView, p)
}

// String lists the operations of the piece, without operands.
func (p *lanePiece) String() string {
	var names []string
	for i := range p.ops {
		names = append(names, p.ops[i].Op.Name)
	}
	return strings.Join(names, ", ")
}

// laneBits returns the size of a lane's part of a register; 0: it has no lanes.
func (v *laneView) laneBits(reg uint64) uint64 {
	info, ok := v.frame.walker.machine.Description.Register(uint32(reg))
	if !ok || reg > uint64(^uint32(0)) || info.Class != sdk.Vector {
		return 0
	}
	bits := v.frame.walker.threadBits(uint32(reg), info.Bits)
	if bits%v.lanes != 0 {
		return 0
	}
	return uint64(bits / v.lanes)
}

// register returns where a register of the frame is: for one with lanes, the lane's part.
func (v *laneView) register(ctx context.Context, unit dwarf.Unit, reg uint64) (part lanePart, err error) {
	if part.stride = v.laneBits(reg); part.stride == 0 {
		part.place, err = v.context(unit).Register(ctx, reg)
		return part, err
	}
	part.place, err = v.frame.location(ctx, reg)
	return part, err
}

// laneNumber returns the current lane.
func (v *laneView) laneNumber() (lane, lanes uint64, err error) {
	return surrounded{frameContext{frame: v.frame}, &v.around}.Lane()
}

// static returns where a variable is at an address that the linker gave it.
func (v *laneView) static(ctx context.Context, unit dwarf.Unit, p *lanePiece) (part lanePart, err error) {
	if !p.hasSpace {
		part.place, err = v.evaluate(ctx, unit, p.ops[0].bytes)
		return part, err
	}
	// An address of another space is not moved with the code object.
	first := &p.ops[0]
	address := first.Operands[0]
	if first.kind == "DW_OP_addrx" {
		if address, err = unit.Addrx(address); err != nil {
			return part, err
		}
	}
	part.place = locexpr.MemoryLocation(p.space, address)
	return part, nil
}

// inRegister returns where a variable is in a register, or at the address in it: a variable
// that is larger than the register, or at a distance from the address, is in memory.
func (v *laneView) inRegister(ctx context.Context, unit dwarf.Unit, p *lanePiece, o *laneOp) (part lanePart, err error) {
	bits := v.laneBits(o.register)
	isVector := bits != 0
	if !isVector {
		n, _ := v.frame.walker.machine.RegisterBits(o.register)
		bits = uint64(n)
	}
	if o.add() == 0 && p.bits > 0 && p.bits <= bits {
		return v.register(ctx, unit, o.register)
	}
	if !isVector || p.bits == 0 || bits > 32 {
		// It is not known whether such an address counts bytes of the wave's memory.
		return part, fmt.Errorf("%w: an address in %s", errLaneView, v.frame.walker.registerName(o.register))
	}
	part.find = func() (locexpr.Location, error) {
		address, err := v.contents(ctx, unit, o.register, false)
		return v.memory(v.stack, (address+uint64(o.add()))&(1<<bits-1)), err
	}
	return part, nil
}

// memory returns a location in memory of the current lane.
func (v *laneView) memory(space locexpr.AddressSpace, address uint64) locexpr.Location {
	return locexpr.MemoryLocation(space, address).WithScope(v.scope())
}

// read reads an integer of at most 64 bits at a location.
func (v *laneView) read(ctx context.Context, l *locexpr.Location, bits uint64) (uint64, error) {
	var b [8]byte
	c := surrounded{frameContext{frame: v.frame}, &v.around}
	if err := l.Read(ctx, c, b[:(bits+7)/8], bits); err != nil {
		return 0, err
	}
	return integer(b[:(bits+7)/8], c.ByteOrder()), nil
}

// onStack returns where a variable is at a distance from the frame base, or at the address
// there.
func (v *laneView) onStack(ctx context.Context, p *lanePiece, isPointer bool) (part lanePart, err error) {
	base, err := v.base(ctx)
	if err != nil {
		return part, err
	}
	first := &p.ops[0]
	address := base + uint64(first.add())
	switch {
	case isPointer && p.bits == 0:
		return part, fmt.Errorf("%w: a pointer of a size that is not known", errLaneView)
	case len(p.ops) == 1 && first.kind == "DW_OP_breg" && isPointer && p.bits < uint64(v.frame.walker.machine.Description.AddressBits):
		// LLVM writes the same for a variable there and for a pointer to it.
		return part, fmt.Errorf("%w: at %#x, or that is what it holds", errLaneView, address)
	case len(p.ops) == 1:
		part.place = locexpr.MemoryLocation(v.stack, address)
		return part, nil
	case len(p.ops) == 2 && p.ops[1].kind == "DW_OP_deref":
		info, _ := v.frame.walker.machine.Description.Space(v.stack)
		part.find = func() (locexpr.Location, error) {
			place := v.memory(v.stack, address)
			space, err := v.read(ctx, &place, uint64(info.Bits))
			return v.memory(v.stack, space), err
		}
		return part, nil
	}
	return part, fmt.Errorf("%w: %s", errLaneView, p)
}

// baseRegister returns the register that DW_AT_frame_base of the function names.
func (v *laneView) baseRegister() (reg uint64, ok bool) {
	if v.function.IsZero() {
		return 0, false
	}
	unit, expr, err := v.baseExpression()
	if err != nil {
		return 0, false
	}
	p, ok := v.placeOf(unit, expr)
	return p.register, ok && p.isRegister()
}

func (v *laneView) isFrameBase(reg uint64) bool {
	base, ok := v.baseRegister()
	return ok && base == reg
}

// errNoBase is the error where the register of the frame base does not have it.
var errNoBase = errors.New("the frame's base is not set up here")

// base returns the frame base as an address of a lane's private memory. The function takes it
// from the stack pointer when it was called, which is the CFA, and may round it up: a register
// with less is still, or again, its caller's. Where the CFA is not known the frame must be a
// kernel's.
func (v *laneView) base(ctx context.Context) (uint64, error) {
	f := v.frame
	reg, ok := v.baseRegister()
	if !ok {
		return 0, fmt.Errorf("DW_AT_frame_base of the %s: %w", v.function, locexpr.ErrNoContext)
	}
	ratio := v.ratio
	if f.module.Code.DefaultRule(uint64(f.walker.machine.Description.SP)).Kind == cfi.ValOffsetPerLane {
		ratio = 1 // stack pointers count the bytes of a lane
	}
	base, err := f.value(ctx, reg)
	if err != nil {
		return 0, err
	}
	base = base / ratio
	var cfa uint64 // of a kernel, whose frame is the stack's first, at 0
	switch {
	case f.hasCFA && f.cfaSpace == v.wave:
		cfa = f.cfa / v.ratio
	case f.hasCFA && f.cfaSpace == v.stack:
		cfa = f.cfa
	}
	if base < cfa || base > cfa && base&-base <= base-cfa {
		return 0, fmt.Errorf("%w: %s has %#x, the CFA is %#x", errNoBase, f.walker.registerName(reg), base, cfa)
	}
	return base, nil
}

// value returns the location of a variable of which only the value is left. Registers of 32
// bits take part in computations of 64: it is not known how they are extended, so the result
// must not depend on it.
func (v *laneView) value(ctx context.Context, unit dwarf.Unit, p *lanePiece) (locexpr.Location, error) {
	bits := p.bits
	if bits == 0 || bits > 64 {
		bits = 64
	}
	var first locexpr.Location
	for i, isSigned := range [...]bool{false, true} {
		expr, isExtended, err := v.computation(ctx, unit, p, isSigned)
		if err != nil {
			return first, err
		}
		l, err := v.evaluate(ctx, unit, expr)
		if err != nil {
			return l, err
		}
		if i == 0 {
			if first = l; !isExtended {
				return l, nil
			}
			continue
		}
		a, err := v.read(ctx, &first, bits)
		if err != nil {
			return l, err
		}
		b, err := v.read(ctx, &l, bits)
		if err != nil {
			return l, err
		}
		if a != b {
			return l, fmt.Errorf("%w: the sign of a register counts in %s", errLaneView, p)
		}
	}
	return first, nil
}

// computation returns the expression of a value, with the contents of registers in it.
func (v *laneView) computation(ctx context.Context, unit dwarf.Unit, p *lanePiece, isSigned bool) (expr []byte, isExtended bool, err error) {
	for i := range p.ops {
		o := &p.ops[i]
		var n uint64
		switch o.kind {
		case "DW_OP_fbreg":
			n, err = v.base(ctx)
		case "DW_OP_breg":
			if v.isFrameBase(o.register) {
				n, err = v.base(ctx)
				break
			}
			isExtended = true
			n, err = v.contents(ctx, unit, o.register, isSigned)
		case "DW_OP_deref", "DW_OP_deref_size", "DW_OP_deref_type", "DW_OP_xderef", "DW_OP_xderef_size", "DW_OP_xderef_type":
			return nil, false, fmt.Errorf("%w: %s", errLaneView, p)
		default:
			expr = append(expr, o.bytes...)
			continue
		}
		if err != nil {
			return nil, false, err
		}
		expr = v.appendConstant(expr, n+uint64(o.add()))
	}
	return append(expr, dw.OpStackValue), isExtended, nil
}

// contents returns a register's content for the current lane, extended to 64 bits.
func (v *laneView) contents(ctx context.Context, unit dwarf.Unit, reg uint64, isSigned bool) (uint64, error) {
	bits := v.laneBits(reg)
	if bits == 0 {
		n, _ := v.frame.walker.machine.RegisterBits(reg)
		bits = uint64(n)
	}
	if bits == 0 || bits > 64 {
		return 0, fmt.Errorf("%w: the value of %s, of %d bits", errLaneView, v.frame.walker.registerName(reg), bits)
	}
	part, err := v.register(ctx, unit, reg)
	if err != nil {
		return 0, err
	}
	l, err := part.location(v)
	if err != nil {
		return 0, err
	}
	n, err := v.read(ctx, &l, bits)
	if isSigned {
		n = value.SignExtended(n, bits)
	}
	return n, err
}

// appendConstant appends a DW_OP_const8u.
func (v *laneView) appendConstant(expr []byte, n uint64) []byte {
	expr = append(expr, dw.OpConst8u)
	if v.frame.walker.machine.Order == locexpr.BigEndian {
		return binary.BigEndian.AppendUint64(expr, n)
	}
	return binary.LittleEndian.AppendUint64(expr, n)
}

// planHere returns where a variable in scope at the frame's place is that is described as the lanes
// of its function see it; ok is false where it is not.
func (u *unitContext) planHere(ctx context.Context, s *code.ScopedVariable) (v laneView, plan lanePlan, ok bool, err error) {
	if v, ok = u.laneView(); !ok {
		return v, plan, false, nil
	}
	r, _ := s.Remember(func() any { return v.reading(s.Entry, s.Location.Unit, s.Here) }).(*laneReading)
	if r != nil && r.stack != v.stack { // the threads of a vendor's architecture may differ
		r = v.reading(s.Entry, s.Location.Unit, s.Here)
	}
	plan, ok, err = v.plan(ctx, s.Location.Unit, r)
	return v, plan, ok, err
}

// variableLocation evaluates the DW_AT_location of a variable, as the lanes of its function see
// it where it is written so.
func (u *unitContext) variableLocation(ctx context.Context, variable dwarf.Entry, l *dwarf.Location) (locexpr.Location, error) {
	v, ok := u.laneView()
	if !ok {
		return u.place(ctx, l)
	}
	exprs, err := l.At(u.frame.lookup)
	if err != nil || len(exprs) != 1 {
		return u.place(ctx, l) // which reports it
	}
	plan, ok, err := v.plan(ctx, l.Unit, v.reading(variable, l.Unit, exprs[0]))
	switch {
	case !ok:
		return u.place(ctx, l)
	case err != nil:
		return locexpr.Location{}, err
	}
	return plan.place(&v)
}

// sizeOf returns the size of a variable in bits; 0: it is not known. isPointer is true for a
// pointer or a reference.
func (u *unitContext) sizeOf(variable dwarf.Entry) (bits uint64, isPointer bool) {
	t, err := variable.ValueType()
	if err == nil {
		t, err = t.Plain()
	}
	if err != nil || !t.IsSized || t.Size > 1<<32 {
		return 0, false
	}
	switch t.Kind {
	case dwarf.KindPointer, dwarf.KindReference, dwarf.KindRvalueReference:
		return 8 * value.PointerSize(t, localsFrame{u}), true
	}
	return 8 * t.Size, false
}
