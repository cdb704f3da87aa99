// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

// This file writes the values of variables, as Ruby's inspect does where that needs no code of the
// program.

// limits bound the values that are written.
type limits struct {
	depth, elements uint64
	left            *uint64 // values of a frame that may still be written
}

// maxValues bounds the values of a frame.
const maxValues = 1 << 12

// maxLocals bounds the locals of a frame, and maxDigits the words of a great Integer.
const (
	maxLocals = 1 << 8
	maxDigits = 64
)

// variables returns self and the locals of a frame.
func (r *reader) variables(f *frame, l limits) []sdk.ManagedVariable {
	left := uint64(maxValues)
	l.left = &left
	s := f.sequence
	own := r.variable("self", f.self, l)
	list := []sdk.ManagedVariable{own}
	if s.count > maxLocals || s.count == 0 {
		return list
	}
	const environment = 3 // words between the last local and what follows the environment
	names, err := r.Bytes(s.locals, 8*s.count)
	if err != nil {
		return list
	}
	values, err := r.Bytes(f.ep-8*(environment+s.count-1), 8*s.count)
	if err != nil {
		return list
	}
	for i := range s.count {
		name, err := r.name(r.Number(names[8*i:][:8]))
		if err != nil || !isName(name) { // a local that the compiler made
			continue
		}
		v := r.variable(name, r.Number(values[8*i:][:8]), l)
		v.IsParam = i < s.params
		list = append(list, v)
	}
	return list
}

// isName reports whether a name is one of a local in the program's text.
func isName(name string) bool {
	for i, c := range name {
		if c != '_' && !unicode.IsLetter(c) && c < utf8.RuneSelf && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return name != ""
}

// Words that stand for values themselves.
const (
	valueFalse, valueTrue         = 0, 0x14
	integerBit                    = 1
	floatMask, floatBits          = 3, 2
	symbolMask, symbolBits        = 0xff, 0x0c
	symbolShift                   = 8
	unsetBefore, unset            = 0x34, 0x24 // before 3.2, and since
	floatZero              uint64 = 0x8000000000000002
)

// variable writes a variable.
func (r *reader) variable(name string, value uint64, l limits) sdk.ManagedVariable {
	v := sdk.ManagedVariable{Name: name}
	isUnset := value == unset && r.isTextLong || value == unsetBefore && !r.isTextLong
	switch {
	case value&integerBit != 0:
		v.Type, v.Text = "Integer", strconv.FormatInt(int64(value)>>1, 10) //nolint:gosec // signed
	case value == r.nilValue:
		v.Type, v.Text = "NilClass", "nil"
	case value == valueFalse:
		v.Type, v.Text = "FalseClass", "false"
	case value == valueTrue:
		v.Type, v.Text = "TrueClass", "true"
	case isUnset:
		v.Status = sdk.ValueUnset
	case value&floatMask == floatBits:
		v.Type, v.Text = "Float", float(flonum(value))
	case value&symbolMask == symbolBits:
		v.Type = "Symbol"
		text, err := r.name(value >> symbolShift)
		setText(&v, symbolOf(text), err)
	default:
		r.object(&v, value, l)
	}
	return v
}

// operators are the symbols that are no names and are written without quotes.
const operators = " ! != % & * ** + +@ - -@ / < << <= <=> == === =~ !~ > >= >> [] []= ^ ` | ~ "

// symbolOf writes a Symbol.
func symbolOf(text string) string {
	name := strings.TrimLeft(text, "@$")
	if n := len(name); n > 1 && strings.ContainsRune("?!=", rune(name[n-1])) {
		name = name[:n-1]
	}
	if isName(name) || text != "" && strings.Contains(operators, " "+text+" ") {
		return ":" + text
	}
	return ":" + strconv.Quote(text)
}

// flonum is the number that a word stands for.
func flonum(value uint64) float64 {
	if value == floatZero {
		return 0
	}
	return math.Float64frombits(bits.RotateLeft64(2-value>>63|value&^3, -3))
}

// float writes a Float.
func float(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		form = 'e'
	}
	text := strconv.FormatFloat(f, form, -1, 64)
	if mantissa, exponent, ok := strings.Cut(text, "e"); ok && !strings.Contains(mantissa, ".") {
		return mantissa + ".0e" + exponent
	}
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// setText sets the text of a value, or why it has none.
func setText(v *sdk.ManagedVariable, text string, err error) {
	if err != nil {
		v.Status, v.Text = sdk.ValueUnreadable, err.Error()
		return
	}
	v.Text = text
}

// object writes an object.
func (r *reader) object(v *sdk.ManagedVariable, object uint64, l limits) {
	if !isPlace(object) {
		setText(v, "", fmt.Errorf("%#x is no value", object))
		return
	}
	flags, err := r.word("an object", object)
	if err != nil {
		setText(v, "", err)
		return
	}
	v.Type, err = r.classOf(object)
	switch flags & typeMask {
	case typeString:
		text, err := r.quoted(object, l)
		setText(v, text, err)
	case typeSymbol:
		name, err := r.word("the name of a symbol", object+symbolText)
		if err == nil {
			name, err := r.text(name)
			setText(v, symbolOf(name), err)
		} else {
			setText(v, "", err)
		}
	case typeFloat:
		b, err := r.word("a Float", object+16)
		setText(v, float(math.Float64frombits(b)), err)
	case typeGreat:
		text, err := r.great(object, flags)
		setText(v, text, err)
	case typeArray:
		r.elements(v, object, l)
	case typeHash:
		r.pairs(v, object, flags, l)
	case typeClass, typeModule:
		name, err := r.className(object)
		setText(v, name, err)
	case typeObject, typeStruct, typeData, typeRegexp, typeFile, typeMatch, typeComplex, typeRational:
		setText(v, "#<"+v.Type+">", err)
	default:
		setText(v, "", fmt.Errorf("the object at %#x has the type %#x", object, flags&typeMask))
	}
}

// The types of objects that values alone have.
const (
	typeRegexp, typeGreat, typeFile                       = 6, 0xa, 0xb
	typeMatch, typeComplex, typeRational, typeSymbol      = 0xd, 0xe, 0xf, 0x14
	symbolText                                            = 24
	greatSign, greatInside, greatShift, greatMask         = 1 << 13, 1 << 14, 15, 7
	hashTable, hashShift, hashBoundMask, hashPairs        = 1 << 15, 20, 0xf, 8
	tableCount, tableFirst, tableEnd, tableList, tableOne = 16, 32, 40, 48, 24
)

// quoted writes a String.
func (r *reader) quoted(object uint64, l limits) (string, error) {
	text, err := r.text(object)
	if err != nil {
		return "", err
	}
	_, size, err := r.textPlace(object)
	if n := uint64(len(text)); n > l.elements {
		cut := l.elements
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	quoted := strconv.Quote(text)
	if uint64(len(text)) < size {
		quoted += "..."
	}
	return quoted, err
}

// great writes an Integer that does not fit into a word.
func (r *reader) great(object, flags uint64) (string, error) {
	place, count := object+16, flags>>greatShift&greatMask
	if flags&greatInside == 0 {
		var err error
		if count, err = r.word("the digits of an Integer", object+16); err != nil {
			return "", err
		}
		if place, err = r.word("the digits of an Integer", object+24); err != nil {
			return "", err
		}
	}
	if count > maxDigits {
		return fmt.Sprintf("an Integer of %d bytes", 8*count), nil
	}
	b, err := r.Bytes(place, 8*count)
	if err != nil {
		return "", fmt.Errorf("the digits of an Integer: %w", err)
	}
	digits := slices.Clone(b)
	slices.Reverse(digits)
	n := new(big.Int).SetBytes(digits)
	if flags&greatSign == 0 {
		n.Neg(n)
	}
	return n.String(), nil
}

// elements writes the elements of an Array.
func (r *reader) elements(v *sdk.ManagedVariable, object uint64, l limits) {
	place, count, err := r.array(object)
	if err != nil {
		setText(v, "", err)
		return
	}
	v.Text = fmt.Sprintf("%d elements", count)
	shown := l.take(count)
	if shown == 0 {
		return
	}
	b, err := r.Bytes(place, 8*shown)
	if err != nil {
		setText(v, "", err)
		return
	}
	l.depth--
	for i := range shown {
		v.Children = append(v.Children, r.variable(fmt.Sprintf("[%d]", i), r.Number(b[8*i:][:8]), l))
	}
	v.More = count - shown
}

// pairs writes the pairs of a Hash.
func (r *reader) pairs(v *sdk.ManagedVariable, object, flags uint64, l limits) {
	place := object + 24
	if !r.isHashInline {
		var err error
		if place, err = r.word("the pairs of a Hash", object+16); err != nil {
			setText(v, "", err)
			return
		}
	}
	entries, first, end, size, keyAt := place, uint64(0), flags>>hashShift&hashBoundMask, uint64(16), uint64(0)
	if flags&hashTable == 0 && r.isHashInline {
		entries += 8 // hints
	}
	if flags&hashTable != 0 {
		b, err := r.Bytes(place, tableList+8)
		if err != nil {
			setText(v, "", err)
			return
		}
		first, end, entries = r.Number(b[tableFirst:][:8]), r.Number(b[tableEnd:][:8]), r.Number(b[tableList:][:8])
		size, keyAt = tableOne, 8
	}
	if first > end || flags&hashTable == 0 && end > hashPairs {
		setText(v, "", fmt.Errorf("a Hash has the pairs %d to %d", first, end))
		return
	}
	r.pairsIn(v, entries+first*size, end-first, size, keyAt, l)
}

// take returns how many of a number of children are written.
func (l *limits) take(count uint64) uint64 {
	if l.depth == 0 {
		return 0
	}
	n := min(count, l.elements, *l.left)
	*l.left -= n
	return n
}

// pairsIn writes pairs of words. One that was removed has a key that is not set.
func (r *reader) pairsIn(v *sdk.ManagedVariable, place, count, size, keyAt uint64, l limits) {
	v.Text = fmt.Sprintf("%d pairs", count)
	shown := l.take(count)
	if shown == 0 {
		return
	}
	b, err := r.Bytes(place, size*shown)
	if err != nil {
		setText(v, "", err)
		return
	}
	l.depth--
	for i := range shown {
		pair := b[size*i+keyAt:]
		key := r.variable("", r.Number(pair[:8]), limits{elements: l.elements, left: l.left})
		if key.Status != sdk.ValueUnset {
			v.Children = append(v.Children, r.variable(key.Text, r.Number(pair[8:16]), l))
		}
	}
	if count == shown {
		v.Text = fmt.Sprintf("%d pairs", len(v.Children))
	}
	v.More = count - shown
}
