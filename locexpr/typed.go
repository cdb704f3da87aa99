// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// This file computes with values of base types (DWARF 5, 2.5.1.4 to 2.5.1.6).
// Integers wrap around at the size of their type, floating point numbers are
// rounded to the nearest one of theirs, and a vector computes element by
// element.

// arithmeticOp is an operation on one or two values of the same type.
type arithmeticOp uint8

const (
	addOp arithmeticOp = iota
	subOp
	mulOp
	divOp
	modOp
	andOp
	orOp
	xorOp
	shlOp
	shrOp
	shraOp
	absOp
	negOp
	notOp
)

// needsIntegral reports whether the operation is defined for integral types
// only (DWARF 5, 2.5.1.4).
func (o arithmeticOp) needsIntegral() bool {
	switch o {
	case addOp, subOp, mulOp, divOp, absOp, negOp:
		return false
	}
	return true
}

// wideWordsPerStep is how many products of words a step pays for.
const wideWordsPerStep = 64

// chargeWide charges for work on a value.
func (ev *evaluation) chargeWide(op arithmeticOp, n uint64) error {
	if n <= 64 {
		return nil
	}
	words := int(n / 64)
	switch op {
	case mulOp, divOp, modOp:
		words *= words
	}
	return ev.charge(words / wideWordsPerStep)
}

// typedOperands pops the top entry, and returns it and the one below as values
// of the same type.
func (ev *evaluation) typedOperands() (below *Entry, top *Value, err error) {
	if err := ev.need(2); err != nil {
		return nil, nil, err
	}
	s, t := &ev.stack[ev.n-2], &ev.stack[ev.n-1]
	for _, e := range []*Entry{t, s} {
		if err := ev.toValue(e); err != nil {
			return nil, nil, err
		}
	}
	if !s.value.typ.Same(t.value.typ) {
		return nil, nil, illFormed{fmt.Errorf("%w: operands of types %v and %v, one type expected", ErrType, s.value.typ, t.value.typ)}
	}
	ev.n--
	return s, &t.value, nil
}

// toValue makes an entry a value that arithmetic may use.
func (ev *evaluation) toValue(s *Entry) error {
	switch s.kind {
	case genericEntry, addressEntry:
		s.kind = genericEntry
		s.value = Value{word: s.value.word, bits: ev.bits}
		return nil
	case valueEntry:
		if s.value.implicitPointer() != nil {
			return ErrImplicitPointer
		}
		return nil
	}
	address, err := ev.addressOf(&s.location)
	if err != nil {
		return err
	}
	s.kind, s.value = genericEntry, Value{word: address, bits: ev.bits}
	return nil
}

// set makes an entry hold a value.
func (s *Entry) set(v Value) {
	s.kind, s.value = genericEntry, v
	if v.typ != nil || v.more != nil {
		s.kind = valueEntry
	}
}

// binaryTyped replaces the two top entries by the result of op.
func (ev *evaluation) binaryTyped(op arithmeticOp) error {
	s, top, err := ev.typedOperands()
	if err != nil {
		return err
	}
	v, err := ev.compute(op, s.value, *top)
	if err != nil {
		return err
	}
	s.set(v)
	return nil
}

// unaryTyped replaces the top entry by the result of op, where it is not of the
// generic type.
func (ev *evaluation) unaryTyped(op arithmeticOp) error {
	if err := ev.need(1); err != nil {
		return err
	}
	s := ev.top()
	if err := ev.toValue(s); err != nil {
		return err
	}
	v, err := ev.compute(op, s.value, Value{})
	if err != nil {
		return err
	}
	s.set(v)
	return nil
}

// compute computes with values of one type.
func (ev *evaluation) compute(op arithmeticOp, a, b Value) (Value, error) {
	t := a.typ
	if err := ev.chargeWide(op, a.Bits()); err != nil {
		return Value{}, err
	}
	if t == nil {
		return ev.computeGeneric(op, a, b)
	}
	if t.Elements == 0 {
		return computeScalar(op, t, a, b)
	}
	e := t.element()
	return ev.eachElement(t, func(i int) (Value, error) {
		x := a.element(&e, i)
		y := Value{typ: &e, bits: e.Bits}
		if b.typ != nil {
			y = b.element(&e, i)
		}
		return computeScalar(op, &e, x, y)
	})
}

// computeGeneric computes with the generic type as quickly does.
func (ev *evaluation) computeGeneric(op arithmeticOp, a, b Value) (Value, error) {
	word, err := computeWord(op, a.word, b.word, ev.bits, unsignedClass, true)
	return Value{word: word, bits: ev.bits}, err
}

// eachElement makes a vector of type t from its elements.
func (ev *evaluation) eachElement(t *BaseType, f func(i int) (Value, error)) (Value, error) {
	if err := ev.charge(int(t.Elements)); err != nil {
		return Value{}, err
	}
	number := make([]byte, max(byteCount(t.Size()), 8))
	for i := range int(t.Elements) {
		v, err := f(i)
		if err != nil {
			return Value{}, fmt.Errorf("element %d: %w", i, err)
		}
		copyBits(number, uint64(i)*uint64(t.Bits), v.number(), 0, uint64(t.Bits), LittleEndian)
	}
	return numberValue(t, uint32(t.Size()), number[:byteCount(t.Size())]), nil
}

func computeScalar(op arithmeticOp, t *BaseType, a, b Value) (Value, error) {
	c := t.class()
	if op.needsIntegral() && !t.isIntegral() {
		return Value{}, illFormed{fmt.Errorf("%w: an integral type is needed, found %v", ErrType, t)}
	}
	switch {
	case c == opaqueClass:
		return Value{}, fmt.Errorf("%w: no arithmetic with type %v", ErrArithmetic, t)
	case c == floatClass:
		return computeFloat(op, t, a, b)
	case a.more != nil:
		return computeBig(op, t, a, b)
	}
	word, err := computeWord(op, a.word, b.word, uint32(a.Bits()), c, false)
	return Value{typ: t, bits: a.bits, word: word}, err
}

// computeWord computes with integers of n bits, at most 64. The generic type
// divides and takes absolute values as a signed one, and everything else as an
// unsigned one (DWARF 5, 2.5.1.4).
func computeWord(op arithmeticOp, a, b uint64, n uint32, c class, generic bool) (uint64, error) {
	mask := lowMask(n)
	signed := c == signedClass
	x, y := int64(signExtend(a, n)), int64(signExtend(b, n))
	switch op {
	case addOp:
		return (a + b) & mask, nil
	case subOp:
		return (a - b) & mask, nil
	case mulOp:
		return a * b & mask, nil
	case divOp, modOp:
		if b == 0 {
			return 0, ErrDivisionByZero
		}
		switch {
		case op == divOp && (signed || generic):
			return uint64(x/y) & mask, nil // Go defines the one quotient that overflows as wrapping around
		case op == divOp:
			return a / b, nil
		case signed:
			return uint64(x%y) & mask, nil
		}
		return a % b, nil
	case andOp:
		return a & b, nil
	case orOp:
		return a | b, nil
	case xorOp:
		return a ^ b, nil
	case shlOp, shrOp, shraOp:
		if signed && y < 0 {
			return 0, fmt.Errorf("%w: shift by %d bits", ErrArithmetic, y)
		}
		switch op {
		case shlOp:
			return a << b & mask, nil
		case shrOp:
			return a >> b, nil
		}
		return uint64(x>>b) & mask, nil
	case absOp:
		if (signed || generic) && x < 0 {
			return -a & mask, nil
		}
		return a, nil
	case negOp:
		return -a & mask, nil
	}
	return ^a & mask, nil
}

// computeBig computes with integers of more than 64 bits.
func computeBig(op arithmeticOp, t *BaseType, av, bv Value) (Value, error) {
	a, b, r := av.Big(), new(big.Int), new(big.Int)
	if bv.typ != nil {
		b = bv.Big()
	}
	n := int(t.Bits)
	switch op {
	case addOp:
		r.Add(a, b)
	case subOp:
		r.Sub(a, b)
	case mulOp:
		r.Mul(a, b)
	case divOp, modOp:
		if b.Sign() == 0 {
			return Value{}, ErrDivisionByZero
		}
		if op == divOp {
			r.Quo(a, b)
		} else {
			r.Rem(a, b)
		}
	case andOp:
		r.And(a, b)
	case orOp:
		r.Or(a, b)
	case xorOp:
		r.Xor(a, b)
	case shlOp, shrOp, shraOp:
		if b.Sign() < 0 {
			return Value{}, fmt.Errorf("%w: shift by %v bits", ErrArithmetic, b)
		}
		count := uint(n)
		if b.IsUint64() {
			count = uint(min(b.Uint64(), uint64(n)))
		}
		switch op {
		case shlOp:
			r.Lsh(a, count)
		case shrOp:
			r.Rsh(av.unsigned(), count)
		default:
			if u := av.unsigned(); u.Bit(n-1) != 0 {
				u.Sub(u, new(big.Int).Lsh(big.NewInt(1), uint(n)))
				a = u
			}
			r.Rsh(a, count)
		}
	case absOp:
		r.Abs(a)
	case negOp:
		r.Neg(a)
	case notOp:
		r.Not(a)
	}
	return BigValue(t, r), nil
}

// computeFloat computes with floating point numbers. Division by zero is an
// error, as it is of integers.
func computeFloat(op arithmeticOp, t *BaseType, av, bv Value) (Value, error) {
	format, err := t.floatFormat()
	if err != nil {
		return Value{}, err
	}
	// Changing the sign is no arithmetic: a NaN stays one.
	sign := int(format.width) - 1
	if format.isPair && (op == negOp || op == absOp) {
		if first := av.number()[7]; op == negOp || first>>7 != 0 {
			av = flipBit(t, flipBit(t, av, 63, true), sign, true)
		}
		return av, nil
	}
	switch op {
	case negOp:
		return flipBit(t, av, sign, true), nil
	case absOp:
		return flipBit(t, av, sign, false), nil
	}
	a, b := format.number(&av), format.number(&bv)
	if op == divOp && !b.isNaN() && b.sign() == 0 {
		return Value{}, ErrDivisionByZero
	}
	if a.isNaN() || b.isNaN() {
		return format.value(t, number64(math.NaN())), nil
	}
	if format.isSmall() {
		// float64 has more than twice the digits of the smaller formats, so
		// rounding twice has the result of rounding once.
		x, y := a.small, b.small
		switch op {
		case addOp:
			x += y
		case subOp:
			x -= y
		case mulOp:
			x *= y
		case divOp:
			x /= y
		}
		return format.value(t, number64(x)), nil
	}
	x, y := a.wide(), b.wide()
	r := new(big.Float).SetPrec(3*uint(format.digits) + 8) // rounding twice is rounding once, as above
	inf := x.IsInf() && y.IsInf()
	switch {
	case op == addOp && inf && x.Signbit() != y.Signbit(),
		op == subOp && inf && x.Signbit() == y.Signbit(),
		op == mulOp && (x.IsInf() && y.Sign() == 0 || x.Sign() == 0 && y.IsInf()),
		op == divOp && inf:
		return format.value(t, number64(math.NaN())), nil
	case op == addOp:
		r.Add(x, y)
	case op == subOp:
		r.Sub(x, y)
	case op == mulOp:
		r.Mul(x, y)
	case op == divOp:
		r.Quo(x, y)
	}
	return format.value(t, floatNumber{big: r}), nil
}

// flipBit returns v with a bit inverted, or cleared.
func flipBit(t *BaseType, v Value, bit int, flip bool) Value {
	if v.more == nil {
		if flip {
			v.word ^= 1 << bit
		} else {
			v.word &^= 1 << bit
		}
		return v
	}
	x := v.unsigned()
	if flip {
		x.SetBit(x, bit, x.Bit(bit)^1)
	} else {
		x.SetBit(x, bit, 0)
	}
	return BigValue(t, x)
}

// compareTyped compares the two top entries, and pushes 1 or 0 of the generic type (DWARF 5,
// 2.5.1.5). A NaN equals no number.
func (ev *evaluation) compareTyped(less, equal, greater bool) error {
	s, top, err := ev.typedOperands()
	if err != nil {
		return err
	}
	order, unordered, err := ev.compareValues(&s.value, top)
	if err != nil {
		return err
	}
	holds := equal
	switch {
	case unordered:
		holds = less && greater // DW_OP_ne
	case order < 0:
		holds = less
	case order > 0:
		holds = greater
	}
	s.kind, s.value = genericEntry, Value{bits: ev.bits}
	if holds {
		s.value.word = 1
	}
	return nil
}

func (ev *evaluation) compareValues(a, b *Value) (order int, unordered bool, err error) {
	t := a.typ
	switch c := t.class(); {
	case t != nil && t.Elements != 0:
		return 0, false, illFormed{fmt.Errorf("%w: no comparison of type %v", ErrType, t)}
	case c == opaqueClass:
		return 0, false, fmt.Errorf("%w: no comparison of type %v", ErrArithmetic, t)
	case c == floatClass:
		format, err := t.floatFormat()
		if err != nil {
			return 0, false, err
		}
		x, y := format.number(a), format.number(b)
		switch {
		case x.isNaN() || y.isNaN():
			return 0, true, nil
		case x.big == nil && y.big == nil:
			return compareOrdered(x.small, y.small), false, nil
		}
		return x.wide().Cmp(y.wide()), false, nil
	case a.more != nil:
		if err := ev.chargeWide(addOp, a.Bits()); err != nil {
			return 0, false, err
		}
		return a.Big().Cmp(b.Big()), false, nil
	case c == signedClass || t == nil:
		n := uint32(a.Bits())
		return compareOrdered(int64(signExtend(a.word, n)), int64(signExtend(b.word, n))), false, nil
	}
	return compareOrdered(a.word, b.word), false, nil
}

func compareOrdered[T int64 | uint64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// convert converts a value to another type (DWARF 5, 2.5.1.6); nil is the generic type, which
// converts as an unsigned integer. An integer keeps its low bits, and the fraction of a
// floating point number is dropped; every value but 0 is true. It is an error when a floating
// point number has no integer of the type.
func (ev *evaluation) convert(v Value, typ *BaseType) (Value, error) {
	source := v.typ
	if source.Same(typ) {
		v.typ = typ
		return v, nil
	}
	if err := ev.chargeWide(addOp, v.Bits()); err != nil {
		return Value{}, err
	}
	fromElements, toElements := v.Elements(), 0
	if typ != nil {
		toElements = int(typ.Elements)
	}
	if fromElements != toElements {
		return Value{}, illFormed{fmt.Errorf("%w: no conversion of type %v to %v", ErrType, source, typ)}
	}
	if toElements == 0 {
		return ev.convertScalar(v, typ)
	}
	ef, et := source.element(), typ.element()
	return ev.eachElement(typ, func(i int) (Value, error) { return ev.convertScalar(v.element(&ef, i), &et) })
}

func (ev *evaluation) convertScalar(v Value, typ *BaseType) (Value, error) {
	fc, tc := v.typ.class(), typ.class()
	if fc == opaqueClass || tc == opaqueClass {
		return Value{}, fmt.Errorf("%w: no conversion of type %v to %v", ErrArithmetic, v.typ, typ)
	}
	if fc != floatClass && tc != floatClass {
		return ev.convertInteger(v, typ)
	}
	var n floatNumber
	if fc == floatClass {
		format, err := v.typ.floatFormat()
		if err != nil {
			return Value{}, err
		}
		n = format.number(&v)
		if tc != floatClass {
			return ev.truncate(n, typ)
		}
	}
	format, err := typ.floatFormat()
	if err != nil {
		return Value{}, err
	}
	if fc == floatClass {
		return format.value(typ, n), nil
	}
	return format.ofInteger(typ, &v), nil
}

// ofInteger returns the number nearest to an integer.
func (f *floatFormat) ofInteger(t *BaseType, v *Value) Value {
	if v.more == nil {
		signed := v.typ.class() == signedClass
		x := int64(signExtend(v.word, uint32(v.Bits())))
		switch {
		case f == single && signed:
			return TypedValue(t, uint64(math.Float32bits(float32(x))))
		case f == single:
			return TypedValue(t, uint64(math.Float32bits(float32(v.word))))
		case f == double && signed:
			return TypedValue(t, math.Float64bits(float64(x)))
		case f == double:
			return TypedValue(t, math.Float64bits(float64(v.word)))
		case f.isSmall() && signed && x >= -1<<53 && x <= 1<<53:
			return f.value(t, number64(float64(x)))
		case f.isSmall() && !signed && v.word <= 1<<53:
			return f.value(t, number64(float64(v.word)))
		}
	}
	x := v.Big()
	return f.value(t, floatNumber{big: new(big.Float).SetPrec(uint(max(x.BitLen(), 1))).SetInt(x)})
}

func (ev *evaluation) convertInteger(v Value, typ *BaseType) (Value, error) {
	if typ.class() == booleanClass {
		truth := uint64(0)
		if v.word != 0 || v.more != nil && v.unsigned().Sign() != 0 {
			truth = 1
		}
		return TypedValue(typ, truth), nil
	}
	if v.more == nil && (typ == nil || typ.Size() <= 64) {
		word := v.word
		if v.typ.class() == signedClass {
			word = signExtend(word, uint32(v.Bits()))
		}
		if typ == nil {
			return Value{word: word & ev.mask, bits: ev.bits}, nil
		}
		return TypedValue(typ, word), nil
	}
	w := BigValue(typ, v.Big())
	if typ == nil {
		return Value{word: w.word & ev.mask, bits: ev.bits}, nil
	}
	return w, nil
}

// truncate converts a floating point number to an integer.
func (ev *evaluation) truncate(n floatNumber, typ *BaseType) (Value, error) {
	if typ.class() == booleanClass {
		truth := uint64(0)
		if n.isNaN() || n.sign() != 0 {
			truth = 1
		}
		return TypedValue(typ, truth), nil
	}
	size, signed := ev.bits, typ.class() == signedClass
	if typ != nil {
		size = typ.Bits
	}
	if n.isNaN() {
		return Value{}, noInteger(typ, n)
	}
	if n.big == nil && size <= 64 {
		x := math.Trunc(n.small)
		low, high := 0.0, math.Ldexp(1, int(size))
		if signed {
			high /= 2
			low = -high
		}
		if x < low || x >= high {
			return Value{}, noInteger(typ, n)
		}
		word := uint64(x)
		if x < 0 { // where a conversion to uint64 depends on the machine
			word = uint64(int64(x))
		}
		if typ == nil {
			return Value{word: word, bits: ev.bits}, nil
		}
		return TypedValue(typ, word), nil
	}
	w := n.wide()
	if w.IsInf() {
		return Value{}, noInteger(typ, n)
	}
	x, _ := w.Int(nil)
	low, high := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(size))
	if signed {
		high.Rsh(high, 1)
		low.Neg(high)
	}
	if x.Cmp(low) < 0 || x.Cmp(high) >= 0 {
		return Value{}, noInteger(typ, n)
	}
	v := BigValue(typ, x)
	if typ == nil {
		v.bits = ev.bits
	}
	return v, nil
}

func noInteger(t *BaseType, n floatNumber) error {
	return fmt.Errorf("%w: no %v is %v", ErrArithmetic, t, n.float64())
}

// reinterpret takes the bits of a value for one of another type of the same
// size (DWARF 5, 2.5.1.6).
func (ev *evaluation) reinterpret(v Value, typ *BaseType) (Value, error) {
	size := uint64(ev.bits)
	if typ != nil {
		size = typ.Size()
	}
	if v.Bits() != size {
		return Value{}, illFormed{fmt.Errorf("%w: %d bits of type %v as the %d bits of type %v", ErrType, v.Bits(), v.typ, size, typ)}
	}
	v.typ = typ
	if typ == nil && v.more != nil {
		return Value{}, illFormed{fmt.Errorf("%w: the generic type has at most 64 bits", ErrType)}
	}
	return v, nil
}

// integer is the result of popIntegral: the value of an integral type.
type integer struct {
	word       uint64
	size       uint32
	isNegative bool // in a signed type; whether the generic type is signed depends on the operation
	isGeneric  bool
	large      *Value // of more than 64 bits
}

// popIntegral pops a value of an integral type.
func (ev *evaluation) popIntegral() (integer, error) {
	if err := ev.need(1); err != nil {
		return integer{}, err
	}
	ev.n--
	return ev.integralOf(&ev.stack[ev.n])
}

func (ev *evaluation) integralOf(s *Entry) (integer, error) {
	switch s.kind {
	case genericEntry, addressEntry:
		return integer{word: s.value.word, size: ev.bits, isGeneric: true}, nil
	case valueEntry:
		v := &s.value
		switch {
		case v.implicitPointer() != nil:
			return integer{}, ErrImplicitPointer
		case !v.typ.isIntegral():
			return integer{}, illFormed{fmt.Errorf("%w: an integral type is needed, found %v", ErrType, v.typ)}
		}
		i := integer{word: v.word, size: v.bits}
		if v.more != nil {
			large := *v
			i.large = &large
		}
		if v.typ.class() == signedClass {
			if v.more != nil {
				i.isNegative = v.Big().Sign() < 0
			} else {
				i.word = signExtend(v.word, v.bits)
				i.isNegative = int64(i.word) < 0
			}
		}
		return i, nil
	}
	address, err := ev.addressOf(&s.location)
	return integer{word: address, size: ev.bits, isGeneric: true}, err
}

// uint64 returns an integer that is not negative and fits; ok is false for
// others. The generic type counts as unsigned.
func (i integer) uint64() (v uint64, ok bool) {
	if i.isNegative {
		return 0, false
	}
	if i.large != nil && bits.Len64(i.word) != i.large.unsigned().BitLen() {
		return 0, false
	}
	return i.word, true
}

// int64 returns an integer that fits. The generic type counts as signed.
func (i integer) int64() (v int64, ok bool) {
	switch {
	case i.isGeneric:
		return int64(signExtend(i.word, i.size)), true
	case i.large != nil:
		x := i.large.Big()
		return x.Int64(), x.IsInt64()
	case !i.isNegative && int64(i.word) < 0:
		return 0, false
	}
	return int64(i.word), true
}

// isSet reports whether bit n of the number is 1; n is below its size.
func (i integer) isSet(n uint64) bool {
	if i.large != nil {
		return getBits(i.large.wide(), n, 1, LittleEndian) != 0
	}
	return i.word>>n&1 != 0
}
