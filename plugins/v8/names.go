// SPDX-License-Identifier: Apache-2.0

package v8

import "fmt"

// This file finds names that functions have as a property of their own: methods whose names the
// program computes, and functions whose names it sets.

// property is a place of a property in objects of a map: a word of the object, or of its array of
// properties; neither for one that every function has in common.
type property struct {
	offset   uint64 // in the object; 0: it is in the array
	index    uint64 // in the array
	constant object // the value, where all objects of the map have the same
	isOwn    bool
}

const (
	// maxDescriptors bounds the properties that a function's name is looked for among.
	maxDescriptors = 64
	// descriptorWords are the words of a property in a map's list: its name, its details, its value.
	descriptorWords = 3
	// dictionaryBit is the bit of a map's flags for objects whose properties are in a table.
	dictionaryBit = 21
)

// ownName returns the name that a function has as a property of its own; "" for none.
func (c *call) ownName(fn object) (string, error) {
	m, err := c.mapOf(fn)
	if err != nil {
		return "", err
	}
	p, ok := c.names[m]
	if !ok {
		p, _ = c.property(m, c.isText("name")) // without it, the function has the name of its source
		c.names[m] = p
	}
	value, err := c.valueOf(fn, p)
	if err != nil || value == 0 {
		return "", err
	}
	if t, err := c.typeOf(value); err != nil || uint64(t) >= c.offset(firstNonstring) {
		return "", err
	}
	return c.text(value)
}

// isText returns a function that reports whether an object is a string with a text.
func (c *call) isText(text string) func(object) bool {
	return func(o object) bool {
		if !c.isString(o) {
			return false
		}
		got, err := c.text(o)
		return err == nil && got == text
	}
}

// valueOf returns the value of a property of an object; 0 where it has none, or a number.
func (c *call) valueOf(o object, p property) (object, error) {
	if !p.isOwn || p.constant != 0 {
		return p.constant, nil
	}
	base := uint64(o)
	if p.offset == 0 {
		w, err := c.word(o, objectProperties)
		list, ok := objectOf(w)
		if err != nil || !ok {
			return 0, err
		}
		base, p.offset = uint64(list), c.offset(arrayData)+p.index*c.PointerSize()
	}
	w, err := c.Pointer(base + p.offset)
	if err != nil {
		return 0, err
	}
	if value, ok := objectOf(w); ok {
		return value, nil
	}
	return 0, nil
}

// property returns where objects of a map have the property with a key.
func (c *call) property(m object, isKey func(object) bool) (p property, err error) {
	flags, err := c.Uint(uint64(m)+c.offset(mapFlags), 4)
	if err != nil {
		return p, err
	}
	count := flags & c.offset(descriptorsMask) >> c.offset(descriptorsShift)
	w, err := c.word(m, mapDescriptors)
	if err != nil {
		return p, err
	}
	list, ok := objectOf(w)
	if !ok || flags>>dictionaryBit&1 != 0 || !c.isBetween(list, typeDescriptors, typeDescriptorsLast) {
		return p, fmt.Errorf("the map at %#x has its properties at %#x", m, w)
	}
	for i := range min(count, maxDescriptors) {
		place := uint64(list) + c.offset(descriptorsData) + i*descriptorWords*c.PointerSize()
		if w, err = c.Pointer(place); err != nil {
			return p, err
		}
		if key, ok := objectOf(w); ok && isKey(key) {
			return c.propertyAt(m, place)
		}
	}
	return p, nil
}

// propertyAt reads a property of a map's list.
func (c *call) propertyAt(m object, place uint64) (p property, err error) {
	w, err := c.Pointer(place + c.PointerSize())
	if err != nil {
		return p, err
	}
	details, ok := c.smi(w)
	if !ok {
		return p, fmt.Errorf("the details at %#x are %#x, expected a number", place, w)
	}
	if w, err = c.Pointer(place + 2*c.PointerSize()); err != nil {
		return p, err
	}
	if details&c.values[locationMask] != 0 { // the value is in the list
		value, ok := objectOf(w)
		p.constant, p.isOwn = value, ok && c.isString(value) // else a function of V8 finds the name
		return p, nil
	}
	start, err := c.Uint(uint64(m)+c.offset(mapInObject), 1)
	if err != nil {
		return p, err
	}
	end, err := c.Uint(uint64(m)+c.offset(mapSize), 1)
	if err != nil {
		return p, err
	}
	index := uint64(details&c.values[indexMask]) >> c.offset(indexShift)
	p.isOwn = true
	if p.offset = (start + index) * c.PointerSize(); start+index >= end {
		p.offset, p.index = 0, start+index-end
	}
	return p, nil
}
