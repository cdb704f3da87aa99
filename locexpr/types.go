// SPDX-License-Identifier: Apache-2.0

package locexpr

import "fmt"

// This file has the operations that name a base type (A.2.5.4.3.1,
// A.2.5.4.3.3, A.2.5.4.3.4).

// TypeContext has the base types of a compilation unit.
type TypeContext interface {
	// BaseType returns the base type at an offset of the compilation unit; nil is the generic
	// type. It fails with an error that IllFormedError marks when there is no
	// DW_TAG_base_type. An operation that takes offset 0 for the generic type does not call
	// it.
	BaseType(offset uint64) (*BaseType, error)
}

// baseType returns the base type at an offset of the compilation unit.
func (ev *evaluation) baseType(offset uint64) (*BaseType, error) {
	c, ok := ev.context.(TypeContext)
	if !ok {
		return nil, noContext(unitElement)
	}
	t, err := c.BaseType(offset)
	if err != nil || t == nil {
		return t, err
	}
	return t, t.check()
}

// resultType returns the type that DW_OP_convert and DW_OP_reinterpret name.
func (ev *evaluation) resultType() (*BaseType, error) {
	if ev.inst.Operands[0] == 0 {
		return nil, nil
	}
	return ev.baseType(ev.inst.Operands[0])
}

// typeBits returns the size of a type.
func (ev *evaluation) typeBits(t *BaseType) uint32 {
	if t == nil {
		return ev.bits
	}
	return uint32(t.Size())
}

// sizedType returns the type at an offset, which must have size bytes.
func (ev *evaluation) sizedType(offset, size uint64) (*BaseType, error) {
	t, err := ev.baseType(offset)
	if err != nil {
		return nil, err
	}
	if n := ev.typeBits(t); byteCount(uint64(n)) != size {
		return nil, illFormed{fmt.Errorf("%w: %d bytes for type %v of %d bits", ErrType, size, t, n)}
	}
	return t, nil
}

func opConstType(ev *evaluation) error {
	block := ev.inst.Block
	t, err := ev.sizedType(ev.inst.Operands[0], uint64(len(block)))
	if err != nil {
		return err
	}
	n := ev.typeBits(t)
	if n%8 != 0 && (t == nil || t.Elements == 0) {
		// "The least significant bits of B", which on a big-endian machine are
		// not the first ones.
		number := block
		if ev.dec.Order == BigEndian {
			number = append([]byte(nil), block...)
			reverse(number)
		}
		if n <= 64 {
			return ev.pushValue(Value{typ: t, bits: n, word: loadUint(number, LittleEndian) & lowMask(n)})
		}
		return ev.pushValue(wideValue(t, append([]byte(nil), number...)))
	}
	return ev.pushValue(fromStream(t, n, block, ev.dec.Order))
}

func opRegvalType(ev *evaluation) error {
	t, err := ev.baseType(ev.inst.Operands[1])
	if err != nil {
		return err
	}
	if t == nil {
		v, err := ev.registerValue(ev.inst.Operands[0], ev.bits)
		if err != nil {
			return err
		}
		return ev.pushGeneric(v)
	}
	if err := ev.pushRegister(ev.inst.Operands[0]); err != nil {
		return err
	}
	// The document defines it by DW_OP_regx and DW_OP_deref_type, which would take the first
	// bits: on a big-endian machine the high-order end, where compilers put nothing.
	top := ev.top()
	if top.kind == locationEntry {
		top.location = top.location.Object(t.Size(), ev.dec.Order)
	}
	return ev.deref(t, uint32(t.Size()))
}

func opDerefType(ev *evaluation) error {
	t, err := ev.sizedType(ev.inst.Operands[1], ev.inst.Operands[0])
	if err != nil {
		return err
	}
	return ev.deref(t, ev.typeBits(t))
}

func opXderefType(ev *evaluation) error {
	t, err := ev.sizedType(ev.inst.Operands[1], ev.inst.Operands[0])
	if err != nil {
		return err
	}
	return ev.xderef(t, ev.typeBits(t))
}

func opConvert(ev *evaluation) error     { return ev.retype((*evaluation).convert) }
func opReinterpret(ev *evaluation) error { return ev.retype((*evaluation).reinterpret) }

// retype replaces the top entry by its value in the type that the operation names.
func (ev *evaluation) retype(f func(*evaluation, Value, *BaseType) (Value, error)) error {
	t, err := ev.resultType()
	if err != nil {
		return err
	}
	if err := ev.need(1); err != nil {
		return err
	}
	s := ev.top()
	if err := ev.toValue(s); err != nil {
		return err
	}
	v, err := f(ev, s.value, t)
	if err != nil {
		return err
	}
	s.set(v)
	return nil
}

// plusTyped adds an operand, as a number of the same type, to the top entry.
func (ev *evaluation) plusTyped(operand uint64) error {
	if err := ev.need(1); err != nil {
		return err
	}
	s := ev.top()
	if err := ev.toValue(s); err != nil {
		return err
	}
	t := s.value.typ
	if !t.isIntegral() {
		return illFormed{fmt.Errorf("%w: an integral type is needed, found %v", ErrType, t)}
	}
	addend := Value{word: operand & ev.mask, bits: ev.bits}
	if t != nil {
		addend = TypedValue(t, operand)
		if w := addend.wide(); w != nil {
			clear(w[8:])
		}
	}
	v, err := ev.compute(addOp, s.value, addend)
	if err != nil {
		return err
	}
	s.set(v)
	return nil
}

// pushBits pushes n bits that were read as a number: of the generic type, or where that is
// too small of an unsigned integral type.
func (ev *evaluation) pushBits(l *Location, n uint64) error {
	switch {
	case n > maxTypeBits:
		return fmt.Errorf("%w: value of %d bits", ErrLimit, n)
	case n == 0:
		return ev.pushGeneric(0)
	case n > uint64(ev.bits):
		t := &BaseType{Encoding: EncodingUnsigned, Bits: uint32(n)}
		v, err := ev.readTyped(l, t, uint32(n))
		if err != nil {
			return err
		}
		return ev.pushValue(v)
	}
	v, err := ev.read(l, uint32(n))
	if err != nil {
		return err
	}
	return ev.pushGeneric(v)
}
