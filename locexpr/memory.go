// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
)

// This file has the operations that make memory, register and undefined
// locations (A.2.5.4.4.1 to A.2.5.4.4.4), and those that read through a
// location (A.2.5.4.3.4).

func opAddr(ev *evaluation) error { return ev.pushAddress(ev.inst.Operands[0] + ev.bias) }

// unitElement and callerElement name elements that several operations need.
const (
	unitElement   = "compilation unit"
	callerElement = "calling frame"
)

// AddressContext has the addresses of a compilation unit.
type AddressContext interface {
	// Addrx returns an entry of the unit's part of .debug_addr, as it stands
	// in the section: DW_OP_addrx adds Evaluator.LoadBias, DW_OP_constx does
	// not.
	Addrx(index uint64) (uint64, error)
}

// addrx returns an entry of .debug_addr.
func addrx(c Context, index uint64) (uint64, error) {
	unit, ok := c.(AddressContext)
	if !ok {
		return 0, noContext(unitElement)
	}
	return unit.Addrx(index)
}

func opAddrx(ev *evaluation) error {
	address, err := addrx(ev.context, ev.inst.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushAddress(address + ev.bias)
}

func opReg(ev *evaluation) error  { return ev.pushRegister(ev.inst.Op.number) }
func opRegx(ev *evaluation) error { return ev.pushRegister(ev.inst.Operands[0]) }

// isRegister reports whether the operation is one of DW_OP_reg*.
func (o *Operation) isRegister() bool {
	return o.Name == "DW_OP_regx" || o.Operands[0] == NoOperand && strings.HasPrefix(o.Name, "DW_OP_reg")
}

func (ev *evaluation) pushRegister(reg uint64) error {
	l, err := ev.context.Register(ev.ctx, reg)
	if err != nil {
		return err
	}
	ev.keepRegister(&l, reg)
	return ev.pushLocation(&l)
}

func opBreg(ev *evaluation) error  { return ev.pushBreg(ev.inst.Op.number, ev.inst.Operands[0]) }
func opBregx(ev *evaluation) error { return ev.pushBreg(ev.inst.Operands[0], ev.inst.Operands[1]) }

func (ev *evaluation) pushBreg(reg, displacement uint64) error {
	v, err := ev.registerValue(reg, ev.bits)
	if err != nil {
		return err
	}
	return ev.pushAddress(v + displacement)
}

// registerValue reads the low n bits of a register of the current frame, which
// must have as many (A.2.5.4.3.4, the note on DW_OP_deref_type).
func (ev *evaluation) registerValue(reg uint64, n uint32) (uint64, error) {
	size, ok := ev.context.RegisterBits(reg)
	switch {
	case !ok || size == n:
	case size < n:
		return 0, fmt.Errorf("%w: %d bits of register %d of %d bits", ErrOutOfBounds, n, reg, size)
	case size > 64:
		l, err := ev.context.Register(ev.ctx, reg)
		if err != nil {
			return 0, err
		}
		return ev.readLow(&l, n, size)
	}
	v, err := ev.context.RegisterValue(ev.ctx, reg)
	if err != nil {
		return 0, err
	}
	return v & lowMask(n), nil
}

// readLow reads the low n bits of a register of more bits, which is at l.
func (ev *evaluation) readLow(l *Location, n, size uint32) (uint64, error) {
	if ev.dec.Order == BigEndian {
		if err := l.shift(bitDisplacement(int64(size-n)), ev.context, ev.bits); err != nil {
			return 0, err
		}
	}
	return ev.read(l, n)
}

func opAspaceBregx(ev *evaluation) error {
	as, err := ev.popSpace()
	if err != nil {
		return err
	}
	size, err := ev.spaceBits(as)
	if err != nil {
		return err
	}
	v, err := ev.registerValue(ev.inst.Operands[0], size)
	if err != nil {
		return err
	}
	return ev.pushMemory(as, v+ev.inst.Operands[1], size)
}

// spaceBits returns the address size of a space that an expression names.
func (ev *evaluation) spaceBits(space AddressSpace) (uint32, error) {
	if space == DefaultSpace {
		return ev.bits, nil
	}
	size, ok := ev.context.SpaceBits(space)
	if !ok || size == 0 || size > 64 {
		return 0, illFormedf("the architecture has no address space %d", space)
	}
	return size, nil
}

// pushMemory pushes the location of the low bits of an address.
func (ev *evaluation) pushMemory(space AddressSpace, address uint64, size uint32) error {
	if space == DefaultSpace {
		return ev.pushAddress(address)
	}
	l := ev.memory(space, address&lowMask(size))
	return ev.pushLocation(&l)
}

func opFormAspaceAddress(ev *evaluation) error {
	as, err := ev.popSpace()
	if err != nil {
		return err
	}
	return ev.formAddress(as)
}

// formAddress pops an address, and pushes its location in a space.
func (ev *evaluation) formAddress(space AddressSpace) error {
	size, err := ev.spaceBits(space)
	if err != nil {
		return err
	}
	if top := ev.top(); top != nil && top.kind == valueEntry && top.value.implicitPointer() != nil {
		p := top.value.implicitPointer()
		if p.place.Space != space {
			return fmt.Errorf("%w: it points into address space %d", ErrImplicitPointer, p.place.Space)
		}
		ev.n--
		l, err := ev.pointerTarget(p)
		if err != nil {
			return err
		}
		return ev.pushLocation(&l)
	}
	address, err := ev.popInteger()
	if err != nil {
		return err
	}
	return ev.pushMemory(space, address, size)
}

// FrameBaseContext has a frame base, for DW_OP_fbreg.
type FrameBaseContext interface {
	// FrameBase returns the result of the DW_AT_frame_base attribute. It may be
	// a register location: DW_OP_fbreg then reads that register (A.3.3.5).
	FrameBase(ctx context.Context) (Location, error)
}

func opFbreg(ev *evaluation) error {
	c, ok := ev.context.(FrameBaseContext)
	if !ok {
		return noContext("frame base")
	}
	l, err := c.FrameBase(ev.ctx)
	if err != nil {
		return err
	}
	distance := displacement{bytes: int64(ev.inst.Operands[0])}
	// A.3.3.5: the frame base is one place, memory or a register that has the
	// address.
	switch {
	case len(l.more) != 0:
	case l.place.Storage == Memory:
		if err := l.shift(distance, ev.context, ev.bits); err != nil {
			return err
		}
		return ev.pushLocation(&l)
	case l.place.Storage == Register:
		size, ok := ev.context.RegisterBits(l.place.Register)
		if !ok || size < ev.bits {
			size = ev.bits
		}
		address, err := ev.readLow(&l, ev.bits, size)
		if err != nil {
			return err
		}
		return ev.pushAddress(address + uint64(distance.bytes))
	}
	return illFormedf("the frame base is %v, neither memory nor a register", l.brief())
}

// CFAContext has the CFA of the current frame, for DW_OP_call_frame_cfa.
type CFAContext interface {
	// CFA returns the location of the CFA (A.2.5.4.4.3).
	CFA() (Location, error)
}

func opCallFrameCFA(ev *evaluation) error {
	c, ok := ev.context.(CFAContext)
	if !ok {
		return noContext("CFA of a call frame")
	}
	l, err := c.CFA()
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

// ObjectContext has a current object, for DW_OP_push_object_address.
type ObjectContext interface {
	// Object returns the location of the object.
	Object(ctx context.Context) (Location, error)
}

func opPushObjectAddress(ev *evaluation) error {
	c, ok := ev.context.(ObjectContext)
	if !ok || ev.isObjectless {
		return noContext("object")
	}
	l, err := c.Object(ev.ctx)
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

// TLSContext has thread-local storage, for DW_OP_form_tls_address.
type TLSContext interface {
	// TLS returns the location of a thread-local storage address.
	TLS(ctx context.Context, offset uint64) (Location, error)
}

func opFormTLSAddress(ev *evaluation) error {
	offset, err := ev.popInteger()
	if err != nil {
		return err
	}
	c, ok := ev.context.(TLSContext)
	if !ok {
		return noContext("thread-local storage of a thread")
	}
	l, err := c.TLS(ev.ctx, offset)
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

// EntryRegisterContext knows where registers were on entry to the current
// subprogram, for DW_OP_LLVM_call_frame_entry_reg.
type EntryRegisterContext interface {
	// CallFrameEntryRegister returns the location of the value that register reg had on entry
	// (A.2.5.4.4.1). It fails with an error that IllFormedError marks when the answer depends
	// on itself.
	CallFrameEntryRegister(ctx context.Context, reg uint64) (Location, error)
}

func opCallFrameEntryReg(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	c, ok := ev.context.(EntryRegisterContext)
	if !ok {
		return noContext("call frame")
	}
	l, err := c.CallFrameEntryRegister(ev.ctx, ev.inst.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

// EntryValueContext knows the calling frame, for DW_OP_entry_value.
type EntryValueContext interface {
	// EntryValue returns the value of an expression in the calling frame, at the call.
	// Evaluator.EntryValue computes it with the calling frame's context.
	EntryValue(ctx context.Context, expr []byte) (Value, error)
}

func opEntryValue(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	c, ok := ev.context.(EntryValueContext)
	if !ok {
		return noContext(callerElement)
	}
	v, err := c.EntryValue(ev.ctx, ev.inst.Block)
	if err != nil {
		return err
	}
	return ev.pushValue(v)
}

func opUndefined(ev *evaluation) error { return ev.pushLocation(&Location{}) }

// offset pops a location and pushes it moved.
func (ev *evaluation) offset(distance displacement) error {
	l, err := ev.popLocation()
	if err != nil {
		return err
	}
	if err := l.shift(distance, ev.context, ev.bits); err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

func opOffset(ev *evaluation) error {
	v, err := ev.popDisplacement()
	if err != nil {
		return err
	}
	return ev.offset(displacement{bytes: v})
}

func opOffsetUconst(ev *evaluation) error {
	return ev.offset(displacement{bytes: ev.signed(ev.inst.Operands[0] & ev.mask)})
}

func opBitOffset(ev *evaluation) error {
	v, err := ev.popDisplacement()
	if err != nil {
		return err
	}
	return ev.offset(bitDisplacement(v))
}

// bitDisplacement returns a displacement of a number of bits.
func bitDisplacement(bits int64) displacement {
	return displacement{bytes: bits >> 3, bits: uint8(bits & 7)}
}

func opDeref(ev *evaluation) error { return ev.deref(nil, ev.bits) }

// opDerefSize reads at most the generic type, and extends with zeros
// (A.2.5.4.3.4).
func opDerefSize(ev *evaluation) error { return ev.deref(nil, ev.derefBits()) }

func (ev *evaluation) derefBits() uint32 { return min(ev.bits, uint32(ev.inst.Operands[0])*8) }

func opXderef(ev *evaluation) error { return ev.xderef(nil, ev.bits) }

func opXderefSize(ev *evaluation) error { return ev.xderef(nil, ev.derefBits()) }

// xderef pops an address and, below it, an address space, and reads n bits.
func (ev *evaluation) xderef(t *BaseType, n uint32) error {
	if err := opSwap(ev); err != nil {
		return err
	}
	if err := opFormAspaceAddress(ev); err != nil {
		return err
	}
	return ev.deref(t, n)
}

// deref pops a location and pushes the n bits there as a value of type t; a value of the
// generic type is extended with zeros.
func (ev *evaluation) deref(t *BaseType, n uint32) error {
	if top := ev.top(); t == nil && top != nil && top.kind <= addressEntry && n%8 == 0 && n > 0 {
		return ev.derefAddress(top, n)
	}
	l, err := ev.popLocation()
	if err != nil {
		return err
	}
	v, err := ev.valueAt(&l, t, n)
	if err != nil {
		return err
	}
	return ev.pushValue(v)
}

// valueAt returns the n bits at a location as a value of type t.
func (ev *evaluation) valueAt(l *Location, t *BaseType, n uint32) (Value, error) {
	if l.place.Storage >= ImplicitPointer || len(l.more) > 0 {
		p, err := ev.implicitPointerAt(l, n)
		if err != nil {
			return Value{}, err
		}
		if p != nil {
			return ev.pointerValue(p, n), nil
		}
	}
	if n > 64 || t != nil {
		return ev.readTyped(l, t, n)
	}
	v, err := ev.read(l, n)
	return Value{word: v, bits: ev.bits}, err
}

// readTyped reads n bits, any number of them, as a value of type t.
func (ev *evaluation) readTyped(l *Location, t *BaseType, n uint32) (Value, error) {
	buffer := ev.scratch[:]
	if n > 64 {
		if err := ev.charge(int(n / 8 / implicitBytesPerStep)); err != nil {
			return Value{}, err
		}
		buffer = make([]byte, byteCount(uint64(n)))
	}
	clear(buffer)
	a := access{ctx: ev.ctx, m: ev.context, order: ev.dec.Order, steps: ev.e.visits}
	err := a.readAll(l, buffer, uint64(n))
	ev.e.visits = a.steps
	if err != nil {
		return Value{}, err
	}
	return fromStream(t, n, buffer[:byteCount(uint64(n))], ev.dec.Order), nil
}

// read reads n bits, at most 64, as an unsigned integer. All reads of an evaluation share one
// limit.
func (ev *evaluation) read(l *Location, n uint32) (uint64, error) {
	a := access{ctx: ev.ctx, m: ev.context, order: ev.dec.Order, steps: ev.e.visits}
	v, err := a.readUint(l, n, ev.scratch[:])
	ev.e.visits = a.steps
	return v, err
}

// derefAddress is deref of whole bytes at an address of the default space, the most frequent
// case.
func (ev *evaluation) derefAddress(top *Entry, n uint32) error {
	address, count := top.value.word, uint64(n/8)
	if err := checkMemory(ev.context, DefaultSpace, address, count); err != nil {
		return err
	}
	clear(ev.scratch[:])
	if err := ev.context.ReadMemory(ev.ctx, DefaultSpace, ev.context.Scope(), address, ev.scratch[:count]); err != nil {
		return err
	}
	top.kind = genericEntry
	top.value.word = unpackStream(binary.LittleEndian.Uint64(ev.scratch[:]), n, ev.dec.Order)
	return nil
}
