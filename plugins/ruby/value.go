// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The types of objects, in the low bits of their first word.
const (
	typeObject, typeClass, typeModule, typeFloat, typeString = 1, 2, 3, 4, 5
	typeArray, typeHash, typeStruct, typeData                = 7, 8, 9, 12
	typeInternal, typeInclude                                = 0x1a, 0x1c
	typeMask                                                 = 0x1f

	// Objects of the interpreter's own have a type in these bits.
	internalShift, internalMask = 12, 0xf
	internalMethod              = 6
	internalSequence            = 7
	internalVariables           = 2

	notEmbedded = 1 << 13 // the text of a string lies elsewhere
	embedded    = 1 << 13 // the elements of an array lie in itself
)

// maxText bounds the bytes of a text that is read.
const maxText = 4 << 10

// flags reads the first word of an object, which has one of the types.
func (r *reader) flags(what string, object uint64, types ...uint64) (uint64, error) {
	if !isPlace(object) {
		return 0, fmt.Errorf("%s at %#x: expected an address", what, object)
	}
	flags, err := r.word(what, object)
	if err != nil {
		return 0, err
	}
	for _, t := range types {
		if flags&typeMask == t {
			return flags, nil
		}
	}
	return 0, fmt.Errorf("%s at %#x has the type %#x, expected %#x", what, object, flags&typeMask, types)
}

// text returns the text of a String.
func (r *reader) text(object uint64) (string, error) {
	if s, isKnown := r.texts[object]; isKnown {
		return s, nil
	}
	place, size, err := r.textPlace(object)
	if err != nil {
		return "", err
	}
	b, err := r.Bytes(place, min(size, maxText))
	if err != nil {
		return "", fmt.Errorf("the text of the string at %#x: %w", object, err)
	}
	s := string(b)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	r.texts[object] = s
	return s, nil
}

// maxLength bounds the length of a string or an array.
const maxLength = 1 << 40

// textPlace returns where the text of a String is.
func (r *reader) textPlace(object uint64) (place, size uint64, err error) {
	flags, err := r.flags("a string", object, typeString)
	if err != nil {
		return 0, 0, err
	}
	if flags&notEmbedded == 0 && !r.isTextLong {
		return object + 16, flags >> 14 & 0x1f, nil
	}
	if size, err = r.word("the length of a string", object+16); err != nil {
		return 0, 0, err
	}
	if size > maxLength || flags&notEmbedded == 0 && size > 1<<10 {
		return 0, 0, fmt.Errorf("the string at %#x has a length of %d", object, size)
	}
	if flags&notEmbedded == 0 {
		return object + 24, size, nil
	}
	place, err = r.word("the place of a text", object+24)
	return place, size, err
}

// array returns where the elements of an Array are.
func (r *reader) array(object uint64) (place, count uint64, err error) {
	flags, err := r.flags("an array", object, typeArray)
	if err != nil {
		return 0, 0, err
	}
	if flags&embedded != 0 {
		mask := uint64(3)
		if r.isTextLong {
			mask = 0x7f
		}
		return object + 16, flags >> 15 & mask, nil
	}
	if count, err = r.word("the length of an array", object+16); err != nil {
		return 0, 0, err
	}
	if count > maxLength {
		return 0, 0, fmt.Errorf("the array at %#x has a length of %d", object, count)
	}
	place, err = r.word("the place of elements", object+32)
	return place, count, err
}

// element returns an element of an Array.
func (r *reader) element(object, index uint64) (uint64, error) {
	place, count, err := r.array(object)
	if err != nil {
		return 0, err
	}
	if index >= count {
		return 0, fmt.Errorf("element %d of the array at %#x, which has %d", index, object, count)
	}
	return r.word("an element", place+8*index)
}
