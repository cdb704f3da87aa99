// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"fmt"
	"unicode/utf16"

	"github.com/unwindd/unwindd/sdk"
)

// object is the address of an object on V8's heap, without its tag; 0: none.
type object uint64

// tag are the bits of an address that say that it leads to an object.
const (
	tag     = 1
	tagMask = 3
)

// heap reads objects of V8 while a call is under way.
type heap struct {
	*layout
	*sdk.MemoryReader
	maps map[object]uint16 // the types of objects, by their map
}

func newHeap(l *layout, r *sdk.MemoryReader) *heap {
	return &heap{layout: l, MemoryReader: r, maps: map[object]uint16{}}
}

// objectOf returns the object that a word leads to; false for a number and a weak reference.
func objectOf(word uint64) (object, bool) {
	return object(word - tag), word&tagMask == tag && word>>47 == 0 && word > tagMask
}

// smi returns the number in a word; false where it leads to an object.
func (h *heap) smi(word uint64) (int64, bool) {
	return int64(word) >> (h.offset(smiShiftSize) + 1), word&tag == 0 //nolint:gosec // a number with a sign
}

// word reads a word of an object.
func (h *heap) word(o object, offset value) (uint64, error) {
	return h.Pointer(uint64(o) + h.offset(offset))
}

// number reads a small number of an object.
func (h *heap) number(o object, offset value) (int64, error) {
	w, err := h.word(o, offset)
	if err != nil {
		return 0, err
	}
	n, ok := h.smi(w)
	if !ok {
		return 0, fmt.Errorf("%s of the object at %#x is %#x, expected a number", nameOf(offset), o, w)
	}
	return n, nil
}

// nameOf returns V8's name of a value.
func nameOf(v value) string {
	if len(described[v]) > 0 {
		return described[v][0]
	}
	return "a member"
}

// typeOf returns the type of an object, by its map, whose own map is a map's.
func (h *heap) typeOf(o object) (uint16, error) {
	m, err := h.mapOf(o)
	if err != nil {
		return 0, err
	}
	if t, ok := h.maps[m]; ok {
		return t, nil
	}
	t, err := h.Uint(uint64(m)+h.offset(mapType), 2)
	if err != nil {
		return 0, err
	}
	meta, err := h.mapOf(m)
	if err != nil {
		return 0, err
	}
	is, err := h.Uint(uint64(meta)+h.offset(mapType), 2)
	if err != nil {
		return 0, err
	}
	if is != h.offset(typeMap) {
		return 0, fmt.Errorf("the map of the object at %#x is at %#x, where an object of type %d is, expected type %d", o, m, is, h.offset(typeMap))
	}
	h.maps[m] = uint16(t) //nolint:gosec // 2 bytes
	return uint16(t), nil //nolint:gosec // 2 bytes
}

// mapOf returns the map of an object.
func (h *heap) mapOf(o object) (object, error) {
	w, err := h.Pointer(uint64(o))
	if err != nil {
		return 0, err
	}
	m, ok := objectOf(w)
	if !ok {
		return 0, fmt.Errorf("the map of the object at %#x is %#x, expected an object", o, w)
	}
	return m, nil
}

// isType reports whether an object can be read and has a type.
func (h *heap) isType(o object, t value) bool {
	got, err := h.typeOf(o)
	return err == nil && uint64(got) == h.offset(t)
}

// isBetween reports whether an object can be read and has a type between two.
func (h *heap) isBetween(o object, first, last value) bool {
	got, err := h.typeOf(o)
	return err == nil && uint64(got) >= h.offset(first) && uint64(got) <= h.offset(last)
}

// isString reports whether an object can be read and is a string.
func (h *heap) isString(o object) bool {
	got, err := h.typeOf(o)
	return err == nil && uint64(got) < h.offset(firstNonstring)
}

// member reads a member that is an object of a type.
func (h *heap) member(o object, offset, t value) (object, error) {
	w, err := h.word(o, offset)
	if err != nil {
		return 0, err
	}
	m, ok := objectOf(w)
	if !ok {
		return 0, fmt.Errorf("%s of the object at %#x is %#x, expected an object", nameOf(offset), o, w)
	}
	got, err := h.typeOf(m)
	if err != nil {
		return 0, err
	}
	if uint64(got) != h.offset(t) {
		return 0, fmt.Errorf("%s of the object at %#x has type %d, expected %d", nameOf(offset), o, got, h.offset(t))
	}
	return m, nil
}

// reference returns the object that a word leads to, whose type can be read.
func (h *heap) reference(w uint64) (object, error) {
	o, ok := objectOf(w)
	if !ok {
		return 0, fmt.Errorf("%#x, expected an object", w)
	}
	_, err := h.typeOf(o)
	return o, err
}

// textOr reads the string that a word leads to; "" for 0 and for an object of another type.
func (h *heap) textOr(w uint64) (string, error) {
	if w == 0 {
		return "", nil
	}
	o, err := h.reference(w)
	if err != nil || !h.isString(o) {
		return "", err
	}
	return h.text(o)
}

// bytes reads the bytes of a ByteArray, at most most.
func (h *heap) bytes(o object, most int64) ([]byte, error) {
	n, err := h.number(o, arrayLength)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > most {
		return nil, fmt.Errorf("the array at %#x has %d bytes, expected at most %d", o, n, most)
	}
	return h.Bytes(uint64(o)+h.offset(arrayData), uint64(n)) //nolint:gosec // not negative
}

// words reads the words of a FixedArray, at most most.
func (h *heap) words(o object, most int64) ([]uint64, error) {
	n, err := h.number(o, arrayLength)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > most {
		return nil, fmt.Errorf("the array at %#x has %d elements, expected at most %d", o, n, most)
	}
	size := h.PointerSize()
	b, err := h.Bytes(uint64(o)+h.offset(arrayData), uint64(n)*size) //nolint:gosec // not negative
	if err != nil {
		return nil, err
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = h.Number(b[uint64(i)*size:][:size]) //nolint:gosec // an index
	}
	return list, nil
}

const (
	// maxParts bounds the strings that one string is made of.
	maxParts = 1 << 16
	// maxText bounds the characters of names.
	maxText = 1 << 10
)

// errNoString is returned for an object that is no string.
var errNoString = errors.New("expected a string")

// text reads a string, of which maxText characters are enough.
func (h *heap) text(o object) (string, error) {
	units, err := h.units(o, maxText)
	if err != nil {
		return "", err
	}
	return string(utf16.Decode(units)), nil
}

// part is a part of a string that is made of others.
type part struct {
	string       object
	from, length uint64 // in characters
}

// units reads the first UTF-16 units of a string, at most most.
func (h *heap) units(o object, most uint64) ([]uint16, error) {
	length, err := h.length(o)
	if err != nil {
		return nil, err
	}
	var units []uint16
	todo := []part{{o, 0, min(length, most)}}
	for count := 0; len(todo) > 0; count++ {
		if count > maxParts {
			return nil, fmt.Errorf("the string at %#x is made of more than %d", o, maxParts)
		}
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if p.length == 0 {
			continue
		}
		var more []part
		if units, more, err = h.appendPart(units, p); err != nil {
			return nil, err
		}
		todo = append(todo, more...)
	}
	return units, nil
}

// length reads the length of a string.
func (h *heap) length(o object) (uint64, error) {
	if !h.isString(o) {
		return 0, fmt.Errorf("the object at %#x: %w", o, errNoString)
	}
	n, err := h.Uint(uint64(o)+h.offset(stringLength), 4)
	if err == nil && n == 0 { // names have a hash, the empty one, too
		if hash, err := h.Uint(uint64(o)+h.offset(stringLength)-4, 4); err != nil || hash == 0 {
			return 0, fmt.Errorf("the string at %#x has neither characters nor a hash: %w", o, errors.Join(err, errNoString))
		}
	}
	if err == nil && n > 1<<30 {
		err = fmt.Errorf("the string at %#x has %d characters, expected at most %d", o, n, 1<<30)
	}
	return n, err
}

// appendPart appends the units of a part, or returns the parts that it is made of, the last one
// first.
func (h *heap) appendPart(units []uint16, p part) ([]uint16, []part, error) {
	length, err := h.length(p.string)
	if err != nil {
		return nil, nil, err
	}
	if p.from > length || p.length > length-p.from {
		return nil, nil, fmt.Errorf("the string at %#x has %d characters, expected %d from %d on", p.string, length, p.length, p.from)
	}
	t, err := h.typeOf(p.string)
	if err != nil {
		return nil, nil, err
	}
	isOneByte := int64(t)&h.values[stringEncoding] == h.values[stringOneByte]
	switch int64(t) & h.values[stringForm] {
	case h.values[stringSeq]:
		chars := twoByteChars
		if isOneByte {
			chars = oneByteChars
		}
		units, err = h.appendChars(units, uint64(p.string)+h.offset(chars), p, isOneByte)
		return units, nil, err
	case h.values[stringExternal]:
		// Behind the resource is the address of its characters.
		data, err := h.Pointer(uint64(p.string) + h.offset(externalResource) + h.PointerSize())
		if err != nil {
			return nil, nil, err
		}
		units, err = h.appendChars(units, data, p, isOneByte)
		return units, nil, err
	}
	more, err := h.partsOf(p, t)
	return units, more, err
}

// partsOf returns the parts of a part of a string without own characters, the last one first.
func (h *heap) partsOf(p part, t uint16) ([]part, error) {
	read := func(offset value) (object, error) {
		w, err := h.word(p.string, offset)
		if err != nil {
			return 0, err
		}
		o, ok := objectOf(w)
		if !ok {
			return 0, fmt.Errorf("%s of the string at %#x is %#x, expected an object", nameOf(offset), p.string, w)
		}
		return o, nil
	}
	switch int64(t) & h.values[stringForm] {
	case h.values[stringThin]:
		o, err := read(thinActual)
		return []part{{o, p.from, p.length}}, err
	case h.values[stringSliced]:
		o, err := read(slicedParent)
		if err != nil {
			return nil, err
		}
		from, err := h.number(p.string, slicedOffset)
		if err != nil || from < 0 {
			return nil, fmt.Errorf("the string at %#x begins at %d of another: %w", p.string, from, errors.Join(err, errNoString))
		}
		return []part{{o, p.from + uint64(from), p.length}}, nil //nolint:gosec // not negative
	case h.values[stringCons]:
		first, err := read(consFirst)
		if err != nil {
			return nil, err
		}
		second, err := read(consSecond)
		if err != nil {
			return nil, err
		}
		n, err := h.length(first)
		if err != nil {
			return nil, err
		}
		if p.from >= n {
			return []part{{second, p.from - n, p.length}}, nil
		}
		left := min(p.length, n-p.from)
		return []part{{second, 0, p.length - left}, {first, p.from, left}}, nil
	}
	return nil, fmt.Errorf("the string at %#x has type %d, which is not known", p.string, t)
}

// appendChars appends characters from an address on.
func (h *heap) appendChars(units []uint16, address uint64, p part, isOneByte bool) ([]uint16, error) {
	size := uint64(2)
	if isOneByte {
		size = 1
	}
	b, err := h.Bytes(address+p.from*size, p.length*size)
	if err != nil {
		return nil, err
	}
	for i := 0; i+int(size) <= len(b); i += int(size) { //nolint:gosec // 1 or 2
		units = append(units, uint16(h.Number(b[i:i+int(size)]))) //nolint:gosec // 1 or 2 bytes
	}
	return units, nil
}
