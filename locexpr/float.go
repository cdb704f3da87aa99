// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// floatFormat is a binary floating point format: a sign, a biased exponent,
// and a significand, from the highest bit down, as IEEE 754 lays them out.
type floatFormat struct {
	width         uint32 // bits that have a meaning
	exponent      uint32 // bits of the exponent
	digits        uint32 // bits of the significand, the integer bit included
	hasIntegerBit bool   // the integer bit is stored
	isPair        bool   // the sum of two numbers of format double
}

var (
	half     = &floatFormat{width: 16, exponent: 5, digits: 11}
	brain    = &floatFormat{width: 16, exponent: 8, digits: 8}
	single   = &floatFormat{width: 32, exponent: 8, digits: 24}
	double   = &floatFormat{width: 64, exponent: 11, digits: 53}
	extended = &floatFormat{width: 80, exponent: 15, digits: 64, hasIntegerBit: true}
	quad     = &floatFormat{width: 128, exponent: 15, digits: 113}
	pair     = &floatFormat{width: 128, exponent: 11, digits: 107, isPair: true}
)

// floatFormat returns the format of a floating point type. DWARF has only its size. Where
// machines differ in the format of a size Format decides, which the description of the
// machine has, and without it the names that mean one format everywhere.
func (t *BaseType) floatFormat() (*floatFormat, error) {
	switch t.Bits {
	case 16:
		if strings.Contains(strings.ToLower(t.Name), "bf") {
			return brain, nil // __bf16, bfloat16
		}
		return half, nil
	case 32:
		return single, nil
	case 64:
		return double, nil
	case 80, 96: // 96: with padding, on i386
		return extended, nil
	case 128:
		switch t.Format {
		case FloatBinary128:
			return quad, nil
		case FloatExtended:
			return extended, nil
		case FloatDoubleDouble:
			return pair, nil
		}
		switch t.Name {
		case "_Float128", "__float128", "f128":
			return quad, nil
		}
	}
	return nil, fmt.Errorf("%w: the format of floating point type %v of %d bits is not known", ErrArithmetic, t, t.Bits)
}

// Float returns the value of a floating point number with all its digits; of one that is
// not a number f is nil. ok is false for other values and for formats that are not known.
func (v Value) Float() (f *big.Float, ok bool) {
	if v.typ == nil || v.typ.Elements != 0 || v.typ.class() != floatClass {
		return nil, false
	}
	format, err := v.typ.floatFormat()
	if err != nil {
		return nil, false
	}
	n := format.number(&v)
	if n.isNaN() {
		return nil, true
	}
	return n.wide(), true
}

func (f *floatFormat) bias() int { return 1<<(f.exponent-1) - 1 }

// isSmall reports whether every number of the format is a float64.
func (f *floatFormat) isSmall() bool { return f.width <= 64 }

// floatNumber is a floating point number: a float64 where that is exact, and otherwise big,
// or not a number.
type floatNumber struct {
	small float64
	big   *big.Float
}

func number64(f float64) floatNumber { return floatNumber{small: f} }

func (n floatNumber) isNaN() bool { return n.big == nil && math.IsNaN(n.small) }

func (n floatNumber) float64() float64 {
	if n.big == nil {
		return n.small
	}
	f, _ := n.big.Float64()
	return f
}

// wide returns the number as a big one; it is not NaN.
func (n floatNumber) wide() *big.Float {
	if n.big != nil {
		return n.big
	}
	return big.NewFloat(n.small)
}

// sign returns -1, 0 or 1, for zero of both signs 0.
func (n floatNumber) sign() int {
	switch {
	case n.big != nil:
		return n.big.Sign()
	case n.small < 0:
		return -1
	case n.small > 0:
		return 1
	}
	return 0
}

// number decodes a value of the format.
func (f *floatFormat) number(v *Value) floatNumber {
	switch f {
	case single:
		return number64(float64(math.Float32frombits(uint32(v.word))))
	case double:
		return number64(math.Float64frombits(v.word))
	case pair:
		return pairNumber(v)
	}
	fraction := f.digits - 1
	if f.isSmall() {
		sign, exponent := v.word>>(f.width-1)&1, int(v.word>>fraction&lowMask(f.exponent))
		significand := v.word & lowMask(fraction)
		var x float64
		switch exponent {
		case 1<<f.exponent - 1:
			if x = math.Inf(1); significand != 0 {
				x = math.NaN()
			}
		case 0:
			x = math.Ldexp(float64(significand), 1-f.bias()-int(fraction))
		default:
			x = math.Ldexp(float64(significand|1<<fraction), exponent-f.bias()-int(fraction))
		}
		if sign != 0 {
			x = -x
		}
		return number64(x)
	}
	all := v.unsigned()
	stored := fraction
	if f.hasIntegerBit {
		stored++
	}
	significand := new(big.Int).And(all, lowBits(uint64(stored)))
	exponent := int(new(big.Int).Rsh(all, uint(stored)).Uint64() & lowMask(f.exponent))
	negative := all.Bit(int(f.width)-1) != 0
	switch {
	case exponent == 1<<f.exponent-1:
		if significand.SetBit(significand, int(fraction), 0).Sign() != 0 {
			return number64(math.NaN())
		}
		if negative {
			return number64(math.Inf(-1))
		}
		return number64(math.Inf(1))
	case exponent == 0:
		exponent = 1
	case !f.hasIntegerBit:
		significand.SetBit(significand, int(fraction), 1)
	case significand.Bit(int(fraction)) == 0:
		return number64(math.NaN()) // x87 has no such number
	}
	x := new(big.Float).SetPrec(uint(f.digits)).SetInt(significand)
	x.SetMantExp(x, exponent-f.bias()-int(fraction))
	if negative {
		x.Neg(x)
	}
	return floatNumber{big: x}
}

// pairNumber decodes a number of two of format double. The first is in the low bits.
func pairNumber(v *Value) floatNumber {
	number := v.number()
	first := math.Float64frombits(binary.LittleEndian.Uint64(number))
	second := math.Float64frombits(binary.LittleEndian.Uint64(number[8:]))
	if math.IsNaN(first) || math.IsInf(first, 0) || first == 0 || math.IsNaN(second) || math.IsInf(second, 0) {
		return number64(first)
	}
	sum := new(big.Float).SetPrec(uint(pair.digits)).SetFloat64(first)
	return floatNumber{big: sum.Add(sum, big.NewFloat(second))}
}

// pairValue encodes a number as two of format double, each the nearest one.
func pairValue(t *BaseType, n floatNumber) Value {
	first := n.float64()
	number := binary.LittleEndian.AppendUint64(nil, math.Float64bits(first))
	second := 0.0
	if n.big != nil && !math.IsInf(first, 0) {
		second, _ = new(big.Float).Sub(n.big, big.NewFloat(first)).Float64()
	}
	return wideValue(t, binary.LittleEndian.AppendUint64(number, math.Float64bits(second)))
}

// value encodes a number, rounded to the nearest one of the format, of two the
// even one (IEEE 754, 4.3.1).
func (f *floatFormat) value(t *BaseType, n floatNumber) Value {
	switch {
	case f.isPair:
		return pairValue(t, n)
	case n.isNaN() && f.isSmall():
		// A NaN of the machine may have either sign.
		return TypedValue(t, (lowMask(f.exponent)<<1|1)<<(f.digits-2))
	case f == double && n.big == nil:
		return TypedValue(t, math.Float64bits(n.small))
	case f == single && n.big == nil:
		return TypedValue(t, uint64(math.Float32bits(float32(n.small))))
	case n.isNaN():
		return f.assemble(t, false, 1<<f.exponent-1, new(big.Int).Lsh(big.NewInt(3), uint(f.digits)-2))
	case f.isSmall() && n.big == nil:
		return f.encodeSmall(t, n.small)
	}
	x := n.wide()
	negative := x.Signbit()
	infinite := func() Value {
		return f.assemble(t, negative, 1<<f.exponent-1, new(big.Int).Lsh(big.NewInt(1), uint(f.digits)-1))
	}
	if x.IsInf() {
		return infinite()
	}
	if x.Sign() == 0 {
		return f.assemble(t, negative, 0, new(big.Int))
	}
	// The last place that x can have, and x in units of it.
	place := max(x.MantExp(nil)-1, 1-f.bias()) - int(f.digits) + 1
	scaled := new(big.Float).Abs(x)
	scaled.SetMantExp(scaled, -place)
	significand, _ := scaled.Int(nil)
	rest := new(big.Float).SetPrec(scaled.Prec() + 64)
	rest.Sub(scaled, new(big.Float).SetInt(significand))
	switch rest.Cmp(big.NewFloat(0.5)) {
	case 1:
		significand.Add(significand, big.NewInt(1))
	case 0:
		significand.Add(significand, big.NewInt(int64(significand.Bit(0))))
	}
	if significand.BitLen() > int(f.digits) {
		significand.Rsh(significand, 1)
		place++
	}
	exponent := place + int(f.digits) - 1 + f.bias()
	switch {
	case exponent >= 1<<f.exponent-1:
		return infinite()
	case significand.BitLen() < int(f.digits):
		exponent = 0
	}
	return f.assemble(t, negative, exponent, significand)
}

// assemble puts the fields of a number together. significand has its integer
// bit.
func (f *floatFormat) assemble(t *BaseType, negative bool, exponent int, significand *big.Int) Value {
	stored := uint64(f.digits)
	if !f.hasIntegerBit {
		stored--
	}
	all := new(big.Int).Lsh(big.NewInt(int64(exponent)), uint(stored))
	all.Or(all, new(big.Int).And(significand, lowBits(stored)))
	if negative {
		all.SetBit(all, int(f.width)-1, 1)
	}
	return BigValue(t, all)
}

// encodeSmall encodes a number that is not NaN in a format of 16 bits.
func (f *floatFormat) encodeSmall(t *BaseType, x float64) Value {
	fraction := f.digits - 1
	word := uint64(0)
	if math.Signbit(x) {
		word = 1 << (f.width - 1)
		x = -x
	}
	infinity := lowMask(f.exponent) << fraction
	switch {
	case math.IsInf(x, 0):
		word |= infinity
	case x != 0:
		_, exponent := math.Frexp(x)
		place := max(exponent-1, 1-f.bias()) - int(fraction)
		significand := uint64(math.RoundToEven(math.Ldexp(x, -place)))
		// The integer bit counts as one in the exponent, and so does a carry.
		number := uint64(place+int(fraction)+f.bias()-1)<<fraction + significand
		word |= min(number, infinity)
	}
	return TypedValue(t, word)
}

// lowBits returns a mask of the low n bits.
func lowBits(n uint64) *big.Int {
	mask := new(big.Int).Lsh(big.NewInt(1), uint(n))
	return mask.Sub(mask, big.NewInt(1))
}
