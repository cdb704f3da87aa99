// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Kind is the kind of result that an evaluation is to have (A.2.5.1).
type Kind uint8

// The kinds of results.
const (
	AnyKind      Kind = iota // not specified: the top of the stack
	ValueKind                // a value
	LocationKind             // a location description
)

// Value is a value with its type (A.2.5.2). The zero Value is 0 of the generic type.
//
// A value is a number of Bits bits: the two's complement of a signed integer, the format of a
// floating point number, and for a vector all elements, the first one lowest.
type Value struct {
	typ  *BaseType
	bits uint32 // size; 0: not known yet, which is so for GenericValue
	word uint64 // the number, its low bits when there are more than 64
	more *extra // nil for most values
}

// extra is the part of a value that does not fit in a word.
type extra struct {
	pointer *Location // an implicit pointer value: the location it was read from (A.2.5.4.4.5)
	wide    []byte    // a number of more than 64 bits, lowest byte first
}

// GenericValue returns a value of the generic type. An evaluation cuts it to
// the size that the generic type has there.
func GenericValue(u uint64) Value { return Value{word: u} }

// TypedValue returns a value of type t with the low bits of u; nil is the
// generic type. A value of more than 64 bits is u extended, by its sign when t
// is signed.
func TypedValue(t *BaseType, u uint64) Value {
	if t == nil {
		return GenericValue(u)
	}
	n := t.Size()
	if n <= 64 {
		return Value{typ: t, bits: uint32(n), word: u & lowMask(uint32(n))}
	}
	number := binary.LittleEndian.AppendUint64(make([]byte, 0, byteCount(n)), u)
	fill := byte(0)
	if t.class() == signedClass && int64(u) < 0 {
		fill = 0xff
	}
	for uint64(len(number)) < byteCount(n) {
		number = append(number, fill)
	}
	return wideValue(t, number)
}

// BigValue returns a value of type t with the low bits of x, in two's
// complement; nil is the generic type.
func BigValue(t *BaseType, x *big.Int) Value {
	n := uint64(64)
	if t != nil {
		n = t.Size()
	}
	low := new(big.Int).And(x, lowBits(n))
	if n <= 64 {
		return TypedValue(t, low.Uint64())
	}
	number := make([]byte, byteCount(n))
	low.FillBytes(number)
	reverse(number)
	return wideValue(t, number)
}

// FloatValue returns the value of type t, a floating point type of one element,
// that is nearest to f. The error wraps ErrType where t is another type, or one
// whose encoding or size is not known.
func FloatValue(t *BaseType, f float64) (Value, error) {
	if t == nil || t.Elements != 0 || t.class() != floatClass {
		return Value{}, fmt.Errorf("%w: type %v is no floating point type", ErrType, t)
	}
	format, err := t.floatFormat()
	if err != nil {
		return Value{}, err
	}
	return format.value(t, number64(f)), nil
}

// ValueOf returns the value of type t in the bytes of a location storage of t.Size() bits;
// nil is the generic type, of as many bits as b has. The error wraps ErrType where b has not
// the bytes of t, or more than the 8 of the generic type.
func ValueOf(t *BaseType, b []byte, order ByteOrder) (Value, error) {
	n := uint64(len(b)) * 8
	if t != nil {
		if err := t.check(); err != nil {
			return Value{}, err
		}
		n = t.Size()
	}
	switch {
	case t == nil && (n == 0 || n > 64):
		return Value{}, fmt.Errorf("%w: a generic value of %d bytes", ErrType, len(b))
	case uint64(len(b)) != byteCount(n):
		return Value{}, fmt.Errorf("%w: %d bytes for a value of %d bits", ErrType, len(b), n)
	}
	return fromStream(t, uint32(n), b, order), nil
}

// wideValue returns a value of more than 64 bits. It keeps number.
func wideValue(t *BaseType, number []byte) Value {
	n := t.Size()
	clearPadding(number, n, LittleEndian)
	return Value{typ: t, bits: uint32(n), word: binary.LittleEndian.Uint64(number), more: &extra{wide: number}}
}

// numberValue returns a value from its number, lowest byte first. It may keep
// number.
func numberValue(t *BaseType, n uint32, number []byte) Value {
	if n > 64 {
		return wideValue(t, number)
	}
	return Value{typ: t, bits: n, word: loadUint(number, LittleEndian) & lowMask(n)}
}

// fromStream returns the value in n bits of a location storage.
func fromStream(t *BaseType, n uint32, stream []byte, machine ByteOrder) Value {
	order := t.order(machine)
	if n <= 64 && (order == LittleEndian || t == nil || t.unit() == uint64(n)) {
		return Value{typ: t, bits: n, word: unpackStream(loadUint(stream, LittleEndian), n, order)}
	}
	return numberValue(t, n, reorder(t, n, stream, order, false))
}

// appendStream appends v as the bytes of a location storage.
func (v *Value) appendStream(dst []byte, machine ByteOrder) []byte {
	n := uint32(v.Bits())
	order := v.typ.order(machine)
	if n <= 64 && (order == LittleEndian || v.typ == nil || v.typ.unit() == uint64(n)) {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], packStream(v.word, n, order))
		return append(dst, word[:byteCount(uint64(n))]...)
	}
	return append(dst, reorder(v.typ, n, v.number(), order, true)...)
}

// reorder converts between a number, lowest byte first, and its stream of bits in an order.
// Both are the same when the order is little-endian; otherwise each unit of the type is
// reversed.
func reorder(t *BaseType, n uint32, content []byte, order ByteOrder, toStream bool) []byte {
	if order == LittleEndian {
		return bytes.Clone(content)
	}
	size := uint64(n)
	if t != nil {
		size = t.unit()
	}
	out := make([]byte, byteCount(uint64(n)))
	if size%8 == 0 {
		k := size / 8
		for first := uint64(0); first < uint64(len(out)); first += k {
			copy(out[first:first+k], content[first:])
			reverse(out[first : first+k])
		}
		return out
	}
	// Bit i of an element's number is bit size-1-i of its stream.
	for first := uint64(0); first < uint64(n); first += size {
		for i := range size {
			src, dst, srcOrder, dstOrder := first+i, first+size-1-i, BigEndian, LittleEndian
			if toStream {
				srcOrder, dstOrder = LittleEndian, BigEndian
			}
			putBits(out, dst, 1, getBits(content, src, 1, srcOrder), dstOrder)
		}
	}
	return out
}

func reverse(b []byte) {
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
}

// number returns the number of v, lowest byte first. It must not be changed.
func (v *Value) number() []byte {
	if w := v.wide(); w != nil {
		return w
	}
	return binary.LittleEndian.AppendUint64(nil, v.word)[:byteCount(v.Bits())]
}

func (v *Value) wide() []byte {
	if v.more == nil {
		return nil
	}
	return v.more.wide
}

// implicitPointer returns the location that an implicit pointer value was read
// from, nil for every other value.
func (v *Value) implicitPointer() *Location {
	if v.more == nil {
		return nil
	}
	return v.more.pointer
}

// Type returns the type of v; nil is the generic type.
func (v Value) Type() *BaseType { return v.typ }

// Bits returns the size of v in bits. It is 64 for a GenericValue that was not
// the result of an evaluation.
func (v Value) Bits() uint64 {
	if v.bits == 0 {
		return 64
	}
	return uint64(v.bits)
}

// Uint64 returns the low 64 bits of the number of v, zero-extended: the value of an unsigned
// integer of up to 64 bits. An implicit pointer value has no number, see ImplicitPointer, and
// gives 0.
func (v Value) Uint64() uint64 { return v.word }

// Big returns the value of an integer of any size: a signed one by its sign,
// every other value as an unsigned number.
func (v Value) Big() *big.Int {
	x := v.unsigned()
	if n := int(v.Bits()); v.typ.class() == signedClass && v.typ.Elements == 0 && x.Bit(n-1) != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(n)))
	}
	return x
}

// unsigned returns the number as an unsigned integer.
func (v *Value) unsigned() *big.Int {
	w := v.wide()
	if w == nil {
		return new(big.Int).SetUint64(v.word)
	}
	w = bytes.Clone(w)
	reverse(w)
	return new(big.Int).SetBytes(w)
}

// Float64 returns the value of a floating point number, rounded where it has
// more digits. ok is false for other values and for formats that are not known.
func (v Value) Float64() (f float64, ok bool) {
	if v.typ == nil || v.typ.Elements != 0 || v.typ.class() != floatClass {
		return 0, false
	}
	format, err := v.typ.floatFormat()
	if err != nil {
		return 0, false
	}
	return format.number(&v).float64(), true
}

// Elements returns the number of elements of a vector, and 0 for another value.
func (v Value) Elements() int {
	if v.typ == nil {
		return 0
	}
	return int(v.typ.Elements)
}

// Element returns element i of a vector, counted from 0, as a value of the type
// of its elements.
func (v Value) Element(i int) Value {
	t := v.typ.element()
	return v.element(&t, i)
}

// element is Element with the elements' type.
func (v *Value) element(t *BaseType, i int) Value {
	first := uint64(i) * uint64(t.Bits)
	if v.wide() == nil {
		return Value{typ: t, bits: t.Bits, word: v.word >> first & lowMask(t.Bits)}
	}
	number := make([]byte, byteCount(uint64(t.Bits)))
	copyBits(number, 0, v.wide(), first, uint64(t.Bits), LittleEndian)
	return numberValue(t, t.Bits, number)
}

// Bytes returns the value as the bytes of a location storage of Bits bits.
func (v Value) Bytes(order ByteOrder) []byte { return v.appendStream(nil, order) }

// ImplicitPointer returns the implicit pointer location that v was read from
// (A.2.5.4.4.5). ok is false for every other value.
func (v Value) ImplicitPointer() (l Location, ok bool) {
	p := v.implicitPointer()
	if p == nil {
		return Location{}, false
	}
	return *p, true
}

// Hex returns the number of v as a 0x number. The elements of a vector are bare
// hex digits of its bytes, the first element's lowest byte first.
func (v Value) Hex() string {
	switch w := v.wide(); {
	case v.Elements() != 0:
		return hex.EncodeToString(v.number())
	case w != nil:
		return "0x" + v.unsigned().Text(16)
	}
	return "0x" + strconv.FormatUint(v.word, 16)
}

// String returns the value for people to read: an integer of the generic type as a 0x number,
// and for other types the result of Hex, the value of a floating point number, and the type:
// "0x5 (unsigned 8)", "0x3fc00000 = 1.5 (float 32)".
func (v Value) String() string {
	if p := v.implicitPointer(); p != nil {
		return p.String()
	}
	if v.typ == nil {
		return v.Hex()
	}
	var b strings.Builder
	b.WriteString(v.Hex())
	if f, ok := v.Float64(); ok {
		fmt.Fprintf(&b, " = %v", f)
	}
	fmt.Fprintf(&b, " (%v)", v.typ)
	return b.String()
}

// entryKind is the kind of the contents of an Entry. The kinds up to addressEntry are
// integers in value.word that convert into each other, which is sufficient for most
// operations.
type entryKind uint8

const (
	genericEntry  entryKind = iota // a value of the generic type that is no implicit pointer
	addressEntry                   // a memory byte address of the default space, in the scope of the evaluation; only inside an evaluation
	valueEntry                     // any other value
	locationEntry                  // a location description
)

// Entry is an entry of the stack: a value or a location description. The
// zero Entry is 0 of the generic type.
type Entry struct {
	kind     entryKind
	isUninit bool // DW_OP_GNU_uninit
	value    Value
	location Location
}

// ValueEntry returns an entry with a value.
func ValueEntry(v Value) Entry {
	if v.typ != nil || v.more != nil {
		return Entry{kind: valueEntry, value: v}
	}
	return Entry{kind: genericEntry, value: v}
}

// LocationEntry returns an entry with a location description.
func LocationEntry(l Location) Entry { return Entry{kind: locationEntry, location: l} }

// IsLocation reports whether the entry is a location description, not a value.
func (e Entry) IsLocation() bool { return e.kind == locationEntry || e.kind == addressEntry }

// IsUninitialized reports whether the entry is the result of an expression that marks its
// object as not initialized yet (DW_OP_GNU_uninit).
func (e Entry) IsUninitialized() bool { return e.isUninit }

// Value returns the value of the entry, the zero Value when it is a location description.
func (e Entry) Value() Value {
	if e.IsLocation() {
		return Value{}
	}
	return e.value
}

// Location returns the location description of the entry, the undefined one when it is a
// value.
func (e Entry) Location() Location {
	if e.kind != locationEntry {
		return Location{}
	}
	return e.location
}

// String returns the value or the location for people to read.
func (e Entry) String() string {
	if e.IsLocation() {
		return e.Location().String()
	}
	return e.value.String()
}
