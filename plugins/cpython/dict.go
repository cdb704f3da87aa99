// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"errors"
	"fmt"
)

// entry is an item of a dict: the addresses of its key and value.
type entry struct{ key, value uint64 }

// keys are the keys of a dict, or the names of attributes that instances of a class share.
type keys struct {
	entries   uint64 // the address of the array
	count     uint64 // of entries
	size      uint64 // bytes of an entry
	key       uint64 // the place of the key in an entry; the value is behind it
	hasValues bool
}

// The kinds of keys from 3.11 on: entries with a hash, of str alone, and with values elsewhere.
const (
	keysGeneral = iota
	keysOfStr
	keysSplit
)

// readKeys reads the head of the keys of a dict.
func (r *reader) readKeys(address uint64) (k keys, err error) {
	l := &r.layout.dict
	if err := checkPointer(address); err != nil {
		return k, err
	}
	b, err := r.mem.Bytes(address, uint64(l.keysIndices)) //nolint:gosec // known in all versions
	if err != nil {
		return k, err
	}
	k = keys{size: 24, key: 8, hasValues: true}
	var size, indexBytes uint64
	if l.keysLogSize.isKnown() {
		log, logBytes, kind := r.part(b, l.keysLogSize, 1), r.part(b, l.keysLogIndexBytes, 1), r.part(b, l.keysKind, 1)
		if log > 40 || logBytes > 44 || kind > keysSplit {
			return k, fmt.Errorf("keys of a dict at %#x have 2**%d places, 2**%d bytes and kind %d, expected a table", address, log, logBytes, kind)
		}
		size, indexBytes, k.hasValues = 1<<log, 1<<logBytes, kind != keysSplit
		if kind != keysGeneral {
			k.size, k.key = 16, 0
		}
	} else {
		if size = r.word(b, l.keysSize); size == 0 || size&(size-1) != 0 || size > maxItems {
			return k, fmt.Errorf("keys of a dict at %#x have %d places, expected a power of 2", address, size)
		}
		indexBytes = size * indexSize(size)
	}
	if k.count = r.word(b, l.keysCount); k.count > size {
		return k, fmt.Errorf("keys of a dict at %#x have %d entries, expected at most %d", address, k.count, size)
	}
	k.entries = address + uint64(l.keysIndices) + indexBytes //nolint:gosec // known in all versions
	return k, nil
}

// indexSize is how many bytes an index of a table of a size has.
func indexSize(size uint64) uint64 {
	switch {
	case size <= 1<<8-1:
		return 1
	case size <= 1<<16-1:
		return 2
	case size <= 1<<32-1:
		return 4
	}
	return 8
}

// readEntries reads the first most entries of keys. values reads the values of split keys.
func (r *reader) readEntries(k keys, values func(i uint64) (uint64, error), most uint64) (list []entry, err error) {
	n := min(k.count, most)
	b, err := r.mem.Bytes(k.entries, n*k.size)
	if err != nil {
		return nil, err
	}
	for i := uint64(0); i < n; i++ {
		e := entry{key: r.mem.Number(b[i*k.size+k.key:][:8])}
		if values == nil {
			e.value = r.mem.Number(b[i*k.size+k.key+8:][:8])
		} else if e.value, err = values(i); err != nil {
			return list, err
		}
		if e.key != 0 && e.value != 0 {
			list = append(list, e)
		}
	}
	return list, nil
}

// maxScan bounds the entries of a table that are looked at for those that are used.
const maxScan = 1 << 17

// dict returns the items of a dict in their order, of its first most places.
func (r *reader) dict(object, most uint64) ([]entry, error) {
	if err := r.expect(object, classIsDict, "dict"); err != nil {
		return nil, err
	}
	l := &r.layout.dict
	used, err := r.pointer(object, l.used)
	if err != nil {
		return nil, err
	}
	address, err := r.pointer(object, l.keys)
	if err != nil {
		return nil, err
	}
	k, err := r.readKeys(address)
	if err != nil {
		return nil, err
	}
	if used > k.count {
		return nil, fmt.Errorf("dict at %#x has %d items, and %d keys, expected no fewer", object, used, k.count)
	}
	values, err := r.pointer(object, l.values)
	if err != nil {
		return nil, err
	}
	if values != 0 {
		return r.readEntries(k, r.valuesOf(values), min(most, maxScan))
	}
	if k.hasValues {
		return r.readEntries(k, nil, min(most, maxScan))
	}
	return nil, fmt.Errorf("dict at %#x: its keys have values elsewhere, and it has none", object)
}

// valuesOf returns the function that reads the values of split keys.
func (r *reader) valuesOf(values uint64) func(i uint64) (uint64, error) {
	start := offset(0)
	if r.layout.dict.valuesItems.isKnown() {
		start = r.layout.dict.valuesItems
	}
	return func(i uint64) (uint64, error) {
		if err := checkPointer(values); err != nil {
			return 0, err
		}
		return r.mem.Uint(values+uint64(start)+i*8, 8) //nolint:gosec // not negative
	}
}

// errNoKey is the error for a key that a dict does not have.
var errNoKey = errors.New("it is not there")

// lookup returns the value of a key of a dict, a str; an error where it has none.
func (r *reader) lookup(object uint64, key string) (uint64, error) {
	list, err := r.dict(object, maxScan)
	if err != nil {
		return 0, err
	}
	keys := make([]uint64, len(list))
	for i := range list {
		keys[i] = list[i].key
	}
	r.mem.Prefetch(keys, 64)
	for _, e := range list {
		if s, err := r.str(e.key, uint64(len(key))); err == nil && s.isWhole && s.text == key {
			return e.value, nil
		}
	}
	return 0, fmt.Errorf("dict at %#x has no key %q: %w", object, key, errNoKey)
}

// attributes returns the names and values of an object's own attributes, as far as they are in its
// dict or its values.
func (r *reader) attributes(object, most uint64) ([]entry, error) {
	c, err := r.class(object)
	if err != nil {
		return nil, err
	}
	if r.layout.minor >= 11 && c.is(classHasManagedDict) {
		return r.managedAttributes(object, c, most)
	}
	place := c.dictOffset
	switch {
	case place == 0:
		return nil, nil
	case place < 0:
		n, err := r.pointer(object, r.layout.object.count)
		if err != nil {
			return nil, err
		}
		items := int64(n) //nolint:gosec // signed in C
		if items = max(items, -items); items > maxItems {
			return nil, fmt.Errorf("object at %#x has %d items, expected less", object, items)
		}
		place += (c.basicSize + items*c.itemSize + 7) &^ 7
	}
	if place < int64(r.layout.object.size) || place%8 != 0 {
		return nil, fmt.Errorf("object at %#x: the dict of its %s is at %d, expected behind its head", object, c.name, place)
	}
	dict, err := r.mem.Pointer(object + uint64(place)) //nolint:gosec // not negative
	if err != nil || dict == 0 {
		return nil, err
	}
	list, err := r.dict(dict, most)
	return list, err
}

// managedAttributes returns the attributes of an object whose class has no place for a dict.
func (r *reader) managedAttributes(object uint64, c *class, most uint64) ([]entry, error) {
	l := &r.layout.dict
	dict, err := r.mem.Pointer(object - uint64(l.beforeObject)) //nolint:gosec // known from 3.11 on
	if err != nil {
		return nil, err
	}
	var values uint64
	switch {
	case l.valuesBeforeObject.isKnown():
		if values, err = r.mem.Pointer(object - uint64(l.valuesBeforeObject)); err != nil { //nolint:gosec // known here
			return nil, err
		}
	case r.layout.minor == 12:
		if dict&1 == 1 {
			dict, values = 0, dict+1
		}
	case c.is(classHasInlineValues):
		values = object + uint64(c.basicSize) //nolint:gosec // above 0
		isValid, err := r.byte(values, l.valuesValid)
		if err != nil {
			return nil, err
		}
		if isValid == 0 {
			values = 0
		}
	}
	if dict != 0 {
		list, err := r.dict(dict, most)
		return list, err
	}
	if values == 0 {
		return nil, nil
	}
	shared, err := r.pointer(c.address, r.layout.class.cachedKeys)
	if err != nil {
		return nil, err
	}
	k, err := r.readKeys(shared)
	if err != nil {
		return nil, err
	}
	if l.valuesCapacity.isKnown() {
		capacity, err := r.byte(values, l.valuesCapacity)
		if err != nil {
			return nil, err
		}
		k.count = min(k.count, uint64(capacity))
	}
	return r.readEntries(k, r.valuesOf(values), min(most, maxScan))
}

// attributeStore returns where the attributes of an object may be: a dict, or values; 0 where it is
// not known. It is for reading ahead alone: attributes looks closer.
func (r *reader) attributeStore(object uint64) uint64 {
	c, err := r.class(object)
	if err != nil {
		return 0
	}
	place := object + uint64(max(c.dictOffset, 0)) //nolint:gosec // not negative
	if l := &r.layout.dict; r.layout.minor >= 11 && c.is(classHasManagedDict) {
		if place = object - uint64(l.beforeObject); l.valuesBeforeObject.isKnown() { //nolint:gosec // not negative
			if values, err := r.mem.Pointer(object - uint64(l.valuesBeforeObject)); err == nil && values != 0 { //nolint:gosec // not negative
				return values &^ 7
			}
		}
	}
	store, err := r.mem.Pointer(place)
	if err != nil {
		return 0
	}
	return (store + 1) &^ 7 // 3.12 has values less 1 there
}

// attribute returns an attribute of an object; an error where it does not have it.
func (r *reader) attribute(object uint64, name string) (uint64, error) {
	list, err := r.attributes(object, maxScan)
	if err != nil {
		return 0, err
	}
	for _, e := range list {
		if s, err := r.str(e.key, uint64(len(name))); err == nil && s.isWhole && s.text == name {
			return e.value, nil
		}
	}
	return 0, fmt.Errorf("object at %#x has no attribute %q", object, name)
}
