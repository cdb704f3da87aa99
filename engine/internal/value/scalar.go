// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// errNoSize is the error for a type without the size of its values.
var errNoSize = errors.New("the size of the type is not known")

// base reads a value of a base type, which t is or is a name of.
func (r *Reader) base(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location) {
	base := named(t)
	plain, err := t.Plain()
	if err == nil && plain.IsSized && plain.Size == 0 {
		setText(v, plain.Name) // (), the one value of Rust's type of that name
		return
	}
	if err != nil || base == nil {
		fail(v, errors.Join(errNoSize, err))
		return
	}
	if isMachineInteger(base, plain) {
		n, err := r.integer(ctx, l, plain.Size)
		if err != nil {
			fail(v, err)
			return
		}
		setText(v, r.baseText(base, locexpr.TypedValue(base, n)))
		return
	}
	number, err := r.number(ctx, plain, l)
	if err != nil {
		fail(v, err)
		return
	}
	if typ := number.Type(); typ.Format != locexpr.FloatBySize {
		formatted := *base
		formatted.Format, base = typ.Format, &formatted
	}
	setText(v, r.baseText(base, number))
}

// isMachineInteger reports whether the values of a base type are integers of the machine: of 1, 2, 4 or 8
// bytes, in its byte order.
func isMachineInteger(base *locexpr.BaseType, plain *dwarf.Type) bool {
	switch base.Encoding {
	case locexpr.EncodingSigned, locexpr.EncodingUnsigned, locexpr.EncodingSignedChar, locexpr.EncodingUnsignedChar, locexpr.EncodingBoolean, locexpr.EncodingUTF:
	default:
		return false
	}
	size := plain.Size
	return plain.IsSized && size <= 8 && size&(size-1) == 0 && size > 0 && uint64(base.Bits) == 8*size &&
		base.Elements == 0 && base.Endianity == locexpr.EndDefault
}

// integer reads an integer of at most 8 bytes.
func (r *Reader) integer(ctx context.Context, l locexpr.Location, size uint64) (uint64, error) {
	b := r.word[:size]
	clear(b)
	if err := l.Read(ctx, r.context, b, size*8); err != nil {
		return 0, err
	}
	return integer(b, r.context.ByteOrder()), nil
}

// isCharacterName reports whether a type with a name has characters. In C such types are names
// of integers.
func isCharacterName(name string) bool {
	switch name {
	case "wchar_t", "char8_t", "char16_t", "char32_t":
		return true
	}
	return false
}

// named returns the base type that a type is or is a name of: for characters with the name that
// marks them. It is nil for other types.
func named(t *dwarf.Type) *locexpr.BaseType {
	name := ""
	for range maxNames {
		switch {
		case t.Base != nil && name != "":
			base := *t.Base
			base.Name = name
			return &base
		case t.Base != nil:
			return t.Base
		case t.Kind != dwarf.KindNamed && t.Kind != dwarf.KindQualified && t.Kind != dwarf.KindSubrange:
			return nil
		case isCharacterName(t.Name):
			name = t.Name
		}
		next, err := t.Element()
		if err != nil {
			return nil
		}
		t = next
	}
	return nil
}

// maxNames bounds chains of type names.
const maxNames = 64

// number reads an integer, a floating point number or another value of a base type.
func (r *Reader) number(ctx context.Context, t *dwarf.Type, l locexpr.Location) (locexpr.Value, error) {
	if t.Base == nil {
		return locexpr.Value{}, errNoSize
	}
	typ := *t.Base
	r.giveFormat(&typ)
	if size := typ.Size(); size != t.Size*8 && typ.Elements == 0 && t.IsSized && t.Size <= 64 && size > t.Size*8 {
		return locexpr.Value{}, fmt.Errorf("a base type of %d bits in %d bytes", size, t.Size)
	}
	if kept := l.ConvertedBits(); typ.Encoding == locexpr.EncodingFloat && typ.Elements == 0 && uint64(kept) > typ.Size() {
		return r.converted(ctx, &typ, l, kept)
	}
	if isPartConverted(&typ, l) {
		return locexpr.Value{}, errPartConverted
	}
	size := (typ.Size() + 7) / 8
	b, err := r.bytes(ctx, l, min(size, meaningfulBytes(&typ)))
	if err != nil {
		return locexpr.Value{}, err
	}
	b = append(b, make([]byte, size-uint64(len(b)))...)
	return locexpr.ValueOf(&typ, b, r.context.ByteOrder())
}

// giveFormat sets the format of a type of floating point numbers to the machine's.
func (r *Reader) giveFormat(t *locexpr.BaseType) {
	if c, ok := r.context.(locexpr.FloatContext); ok && (t.Encoding == locexpr.EncodingFloat || t.Encoding == locexpr.EncodingComplexFloat) {
		t.Format = c.FloatFormat(t)
	}
}

// converted reads a number of a type in a register of a number of bits, which has it in the
// format of numbers of the register's size.
func (r *Reader) converted(ctx context.Context, t *locexpr.BaseType, l locexpr.Location, bits uint32) (locexpr.Value, error) {
	own := locexpr.BaseType{Encoding: locexpr.EncodingFloat, Bits: bits}
	b, err := r.bytes(ctx, l, uint64(bits+7)/8)
	if err != nil {
		return locexpr.Value{}, err
	}
	n, err := locexpr.ValueOf(&own, b, r.context.ByteOrder())
	if err != nil {
		return n, err
	}
	if f, ok := n.Float64(); ok {
		return locexpr.FloatValue(t, f)
	}
	return n, fmt.Errorf("the register's format of %d bits is not known", bits)
}

// errPartConverted is the error for a number with a part in a register that has whole numbers
// in another format.
var errPartConverted = errors.New("parts of the number are in registers that keep numbers in another format")

// isPartConverted reports whether a floating point number has a part in a register that has
// numbers in another format, with more bits.
func isPartConverted(t *locexpr.BaseType, l locexpr.Location) bool {
	if t.Encoding != locexpr.EncodingFloat && t.Encoding != locexpr.EncodingComplexFloat {
		return false
	}
	return slices.ContainsFunc(l.Place(0).Parts(), func(p locexpr.Part) bool { return uint64(p.Location.ConvertedBits()) > p.Bits })
}

// meaningfulBytes returns how many of a number's bytes have a meaning. The bytes after the ten
// of x87's extended format do not: a compiler leaves them out of DW_OP_piece.
func meaningfulBytes(t *locexpr.BaseType) uint64 {
	if t.Encoding == locexpr.EncodingFloat && t.Elements == 0 && (t.Bits == 96 || t.Format == locexpr.FloatExtended) {
		return 10
	}
	return 1 << 32
}

// baseText returns the text of a value of a base type.
func (r *Reader) baseText(t *locexpr.BaseType, n locexpr.Value) string {
	switch t.Encoding {
	case locexpr.EncodingBoolean:
		if n.Bits() <= 64 && n.Uint64() <= 1 {
			return strconv.FormatBool(n.Uint64() == 1)
		}
	case locexpr.EncodingFloat:
		return floatText(t, n)
	case locexpr.EncodingComplexFloat:
		return complexText(t, n)
	case locexpr.EncodingSignedChar, locexpr.EncodingUnsignedChar:
		if t.Bits == 8 && r.hasCharacters() {
			return charText(t, n)
		}
	case locexpr.EncodingUTF, locexpr.EncodingUCS, locexpr.EncodingASCII:
		return charText(t, n)
	case locexpr.EncodingSigned, locexpr.EncodingUnsigned:
		if isCharacterName(t.Name) {
			return charText(t, n)
		}
	case locexpr.EncodingAddress:
		return hex(n.Uint64())
	case locexpr.EncodingImaginaryFloat:
		number := *t
		number.Encoding = locexpr.EncodingFloat
		return floatText(&number, locexpr.BigValue(&number, n.Big())) + "i"
	}
	if locexpr.EncodingPackedDecimal <= t.Encoding && t.Encoding <= locexpr.EncodingDecimalFloat {
		return n.Hex() // digits, or scaled by an attribute
	}
	return decimal(t, n)
}

// decimal returns the text of a number of an integral type.
func decimal(t *locexpr.BaseType, n locexpr.Value) string {
	switch bits := n.Bits(); {
	case bits == 0 || bits > 64:
		return n.Big().String()
	case IsSigned(t):
		return strconv.FormatInt(int64(SignExtended(n.Uint64(), bits)), 10)
	}
	return strconv.FormatUint(n.Uint64(), 10)
}

// hex returns a number as addresses are written.
func hex(n uint64) string {
	var b [18]byte
	return string(strconv.AppendUint(append(b[:0], "0x"...), n, 16))
}

// hasCharacters reports whether integers of a byte may be characters in the language.
func (r *Reader) hasCharacters() bool {
	return r.language != dw.LangRust && r.language != dw.LangGo
}

// floatText returns the shortest text that reads back as a floating point number.
func floatText(t *locexpr.BaseType, n locexpr.Value) string {
	switch t.Bits {
	case 32:
		return shortest(float64(math.Float32frombits(uint32(n.Uint64()))), 32)
	case 64:
		return shortest(math.Float64frombits(n.Uint64()), 64)
	}
	switch f, ok := n.Float(); {
	case !ok:
		return n.Hex()
	case f == nil && isNegative(t, n):
		return "-nan"
	case f == nil:
		return "nan"
	case t.Bits <= 16 || f.IsInf():
		short, _ := f.Float64()
		return shortest(short, 32)
	default:
		return wideText(f)
	}
}

// isNegative reports whether the sign of a NaN is set.
func isNegative(t *locexpr.BaseType, n locexpr.Value) bool {
	sign := int(t.Bits) - 1
	switch {
	case t.Format == locexpr.FloatExtended || t.Bits == 96:
		sign = 79
	case t.Format == locexpr.FloatDoubleDouble:
		sign = 63
	}
	return n.Big().Bit(sign) != 0
}

func shortest(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		if math.Signbit(f) {
			return "-nan"
		}
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if abs := math.Abs(f); abs >= 1e-5 && abs < 1e17 {
		text = strconv.FormatFloat(f, 'f', -1, bits)
	}
	return text
}

// wideText returns the shortest text that reads back as a number with more digits than a
// float64.
func wideText(f *big.Float) string {
	if e := f.MantExp(nil); e > -16 && e < 56 {
		return f.Text('f', -1)
	}
	return f.Text('g', -1)
}

// complexText returns the text of a complex number: two floating point numbers of half its
// size, of which the real one is first in memory and in the number's low bits.
func complexText(t *locexpr.BaseType, n locexpr.Value) string {
	bits := uint(t.Bits / 2)
	half := &locexpr.BaseType{Name: t.Name, Encoding: locexpr.EncodingFloat, Bits: uint32(bits), Format: t.Format}
	all := n.Big()
	low := locexpr.BigValue(half, all)
	high := locexpr.BigValue(half, new(big.Int).Rsh(all, bits))
	return floatText(half, low) + " + " + floatText(half, high) + "i"
}

// charText returns the text of a character: its number, and the character in quotes.
func charText(t *locexpr.BaseType, n locexpr.Value) string {
	number := n.Big()
	code := new(big.Int).And(number, big.NewInt(1<<32-1)).Uint64()
	if t.Bits == 8 {
		code &= 0xff
	}
	return number.String() + " " + charPrefix(t) + "'" + escaped(rune(code), t.Bits, '\'') + "'"
}

// charPrefix returns the language's prefix for a character of the type.
func charPrefix(t *locexpr.BaseType) string {
	switch {
	case strings.HasPrefix(t.Name, "wchar"):
		return "L"
	case t.Name == "char16_t":
		return "u"
	case t.Name == "char32_t":
		return "U"
	case t.Name == "char8_t":
		return "u8"
	}
	return ""
}

// escapes are the characters that have an escape of their own.
var escapes = map[rune]string{
	'\a': `\a`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`, 0x1b: `\033`, '\\': `\\`,
}

// escaped returns a character as it is written in quotes.
func escaped(c rune, bits uint32, quote rune) string {
	if s, ok := escapes[c]; ok {
		return s
	}
	switch {
	case c == quote:
		return `\` + string(c)
	case c < utf8.RuneSelf && unicode.IsPrint(c):
		return string(c)
	case bits == 8 || c >= 0 && c < utf8.RuneSelf:
		return octal(uint8(c))
	case utf8.ValidRune(c) && unicode.IsPrint(c):
		return string(c)
	case c > 0xffff || c < 0:
		return fmt.Sprintf(`\U%08x`, uint32(c))
	}
	return fmt.Sprintf(`\u%04x`, uint32(c))
}

// enumeration reads a value of an enumeration.
func (r *Reader) enumeration(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location) {
	n, isSigned, err := r.enumNumber(ctx, t, l)
	if err != nil {
		fail(v, err)
		return
	}
	list, err := t.Enumerators()
	if err != nil {
		fail(v, err)
		return
	}
	setText(v, enumText(t, list, n, isSigned))
}

// enumNumber returns the number of an enumeration's value, extended by its type.
func (r *Reader) enumNumber(ctx context.Context, t *dwarf.Type, l locexpr.Location) (n uint64, isSigned bool, err error) {
	if !t.IsSized || t.Size == 0 || t.Size > 8 {
		return 0, false, errNoSize
	}
	n, err = r.integer(ctx, l, t.Size)
	if err != nil {
		return 0, false, err
	}
	n, isSigned = extendedAsEnum(t, n, 8*t.Size)
	return n, isSigned, nil
}

// extendedAsEnum extends a number of some bits of an enumeration, by the enumeration's integer
// type.
func extendedAsEnum(t *dwarf.Type, n, bits uint64) (extended uint64, isSigned bool) {
	e, err := t.Element()
	if err == nil {
		e, err = e.Plain()
	}
	if err != nil || !IsSigned(e.Base) {
		return n, false
	}
	return SignExtended(n, bits), true
}

// IsSigned reports whether a base type has signed integers.
func IsSigned(t *locexpr.BaseType) bool {
	return t != nil && (t.Encoding == locexpr.EncodingSigned || t.Encoding == locexpr.EncodingSignedChar)
}

// SignExtended extends a signed number of at most 64 bits to 64.
func SignExtended(n, bits uint64) uint64 {
	shift := 64 - bits
	return uint64(int64(n<<shift) >> shift)
}

// integer returns the number in at most 8 bytes.
func integer(b []byte, order locexpr.ByteOrder) (n uint64) {
	for i := range b {
		if order == locexpr.BigEndian {
			n = n<<8 | uint64(b[i])
		} else {
			n |= uint64(b[i]) << (8 * i)
		}
	}
	return n
}

// enumText returns the name of a value, or the flags that it consists of.
func enumText(t *dwarf.Type, list []dwarf.Enumerator, n uint64, isSigned bool) string {
	mask := ^uint64(0) >> (64 - 8*t.Size)
	for _, e := range list {
		if e.Value&mask == n&mask {
			return enumName(t, e.Name)
		}
	}
	number := strconv.FormatUint(n, 10)
	if isSigned {
		number = strconv.FormatInt(int64(n), 10)
	}
	if n == 0 || !areFlags(list, mask) {
		return number
	}
	var parts []string
	rest := n & mask
	for _, e := range list {
		if e.Value&mask != 0 && rest&e.Value&mask == e.Value&mask {
			parts = append(parts, enumName(t, e.Name))
			rest &^= e.Value
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("(unknown: %#x)", rest)
	}
	if rest != 0 {
		parts = append(parts, fmt.Sprintf("unknown: %#x", rest))
	}
	return "(" + strings.Join(parts, " | ") + ")"
}

// enumName returns an enumerator as the language writes it: the class comes before an
// enumerator of an enum class, and the scope before others of C++.
func enumName(t *dwarf.Type, name string) string {
	full := t.QualifiedName()
	if isClass, ok, err := t.Number(dw.AttrEnumClass); err == nil && ok && isClass != 0 {
		return full + "::" + name
	}
	if !t.Unit().HasScopedNames() {
		return name
	}
	if outer := strings.TrimSuffix(full, t.Name); outer != full || t.Name == "" {
		return outer + name
	}
	return name
}

// areFlags reports whether the values of an enumeration are made to be combined: no two of them
// have a bit in common, and the bits of each are neighbours, like the bits of a field.
func areFlags(list []dwarf.Enumerator, mask uint64) bool {
	var all uint64
	for _, e := range list {
		n := e.Value & mask
		if all&n != 0 && all&n != n || n != 0 && !isField(n) {
			return false
		}
		all |= n
	}
	return len(list) > 0
}

// isField reports whether the bits of a number are neighbours.
func isField(n uint64) bool {
	n >>= bits.TrailingZeros64(n)
	return n&(n+1) == 0
}
