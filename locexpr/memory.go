// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// This file has the operations that make memory, register and undefined
// locations (A.2.5.4.4.1 to A.2.5.4.4.4), and those that read through a
// location (A.2.5.4.3.4).

func opAddr(ev *evaluation) error { return ev.pushAddress(ev.in.Operands[0] + ev.bias) }

func opAddrx(ev *evaluation) error {
	address, err := ev.ctx.Addrx(ev.in.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushAddress(address + ev.bias)
}

func opReg(ev *evaluation) error  { return ev.pushRegister(ev.in.Op.number) }
func opRegx(ev *evaluation) error { return ev.pushRegister(ev.in.Operands[0]) }

// isRegister reports whether the operation is one of DW_OP_reg*.
func (o *Operation) isRegister() bool {
	return o.Name == "DW_OP_regx" || o.Operands[0] == NoOperand && strings.HasPrefix(o.Name, "DW_OP_reg")
}

func (ev *evaluation) pushRegister(reg uint64) error {
	l, err := ev.ctx.Register(reg)
	if err != nil {
		return err
	}
	ev.keepRegister(&l, reg)
	return ev.pushLocation(&l)
}

func opBreg(ev *evaluation) error  { return ev.pushBreg(ev.in.Op.number, ev.in.Operands[0]) }
func opBregx(ev *evaluation) error { return ev.pushBreg(ev.in.Operands[0], ev.in.Operands[1]) }

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
	size, ok := ev.ctx.RegisterBits(reg)
	switch {
	case !ok || size == n:
	case size < n:
		return 0, fmt.Errorf("%w: %d bits of register %d of %d bits", ErrOutOfBounds, n, reg, size)
	case size > 64:
		l, err := ev.ctx.Register(reg)
		if err != nil {
			return 0, err
		}
		return ev.readLow(&l, n, size)
	}
	v, err := ev.ctx.RegisterValue(reg)
	if err != nil {
		return 0, err
	}
	return v & lowMask(n), nil
}

// readLow reads the low n bits of a register of more bits, which is at l.
func (ev *evaluation) readLow(l *Location, n, size uint32) (uint64, error) {
	if ev.dec.Order == BigEndian {
		if err := l.shift(bitDisplacement(int64(size-n)), ev.ctx, ev.bits); err != nil {
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
	v, err := ev.registerValue(ev.in.Operands[0], size)
	if err != nil {
		return err
	}
	return ev.pushMemory(as, v+ev.in.Operands[1], size)
}

// spaceBits returns the address size of a space that an expression names.
func (ev *evaluation) spaceBits(space AddressSpace) (uint32, error) {
	if space == DefaultSpace {
		return ev.bits, nil
	}
	size, ok := ev.ctx.SpaceBits(space)
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

func opFbreg(ev *evaluation) error {
	l, err := ev.ctx.FrameBase()
	if err != nil {
		return err
	}
	by := displacement{bytes: int64(ev.in.Operands[0])}
	// A.3.3.5: the frame base is one place, memory or a register that has the
	// address.
	switch {
	case len(l.more) != 0:
	case l.place.Storage == Memory:
		if err := l.shift(by, ev.ctx, ev.bits); err != nil {
			return err
		}
		return ev.pushLocation(&l)
	case l.place.Storage == Register:
		size, ok := ev.ctx.RegisterBits(l.place.Register)
		if !ok || size < ev.bits {
			size = ev.bits
		}
		address, err := ev.readLow(&l, ev.bits, size)
		if err != nil {
			return err
		}
		return ev.pushAddress(address + uint64(by.bytes))
	}
	return illFormedf("the frame base is %v, neither memory nor a register", l.brief())
}

func opCallFrameCFA(ev *evaluation) error {
	l, err := ev.ctx.CFA()
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

func opPushObjectAddress(ev *evaluation) error {
	l, err := ev.ctx.Object()
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

func opFormTLSAddress(ev *evaluation) error {
	offset, err := ev.popInteger()
	if err != nil {
		return err
	}
	l, err := ev.ctx.TLS(offset)
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

func opCallFrameEntryReg(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	l, err := ev.ctx.CallFrameEntryRegister(ev.in.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushLocation(&l)
}

func opEntryValue(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	v, err := ev.ctx.EntryValue(ev.in.Block)
	if err != nil {
		return err
	}
	return ev.pushValue(v)
}

func opUndefined(ev *evaluation) error { return ev.pushLocation(&Location{}) }

// offset pops a location and pushes it moved.
func (ev *evaluation) offset(by displacement) error {
	l, err := ev.popLocation()
	if err != nil {
		return err
	}
	if err := l.shift(by, ev.ctx, ev.bits); err != nil {
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
	return ev.offset(displacement{bytes: ev.signed(ev.in.Operands[0] & ev.mask)})
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

func (ev *evaluation) derefBits() uint32 { return min(ev.bits, uint32(ev.in.Operands[0])*8) }

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

// deref pops a location and pushes the n bits there as a value of type t; those
// of the generic type are extended with zeros.
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
	a := access{m: ev.ctx, order: ev.dec.Order, steps: ev.e.visits}
	err := a.readAll(l, buffer, uint64(n))
	ev.e.visits = a.steps
	if err != nil {
		return Value{}, err
	}
	return fromStream(t, n, buffer[:byteCount(uint64(n))], ev.dec.Order), nil
}

// read reads n bits, at most 64, as an unsigned integer. What all reads of an
// evaluation visit is bounded together.
func (ev *evaluation) read(l *Location, n uint32) (uint64, error) {
	a := access{m: ev.ctx, order: ev.dec.Order, steps: ev.e.visits}
	v, err := a.readUint(l, n, ev.scratch[:])
	ev.e.visits = a.steps
	return v, err
}

// derefAddress is deref of whole bytes at an address of the default space,
// which nearly every one is.
func (ev *evaluation) derefAddress(top *Entry, n uint32) error {
	address, count := top.value.word, uint64(n/8)
	if err := checkMemory(ev.ctx, DefaultSpace, address, count); err != nil {
		return err
	}
	clear(ev.scratch[:])
	if err := ev.ctx.ReadMemory(DefaultSpace, ev.ctx.Scope(), address, ev.scratch[:count]); err != nil {
		return err
	}
	top.kind = genericEntry
	top.value.word = unpackStream(binary.LittleEndian.Uint64(ev.scratch[:]), n, ev.dec.Order)
	return nil
}
