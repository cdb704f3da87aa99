// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxAttributes bounds the entries of a class's dictionary, and the attributes of an object, that are read.
const maxAttributes = 1 << 11

// place is the distance of a member that every version has.
func (v *values) place(member offset) uint64 { return uint64(member) } //nolint:gosec // not negative

// prefetch reads the objects at addresses, and then their classes, in as few requests as possible.
func (v *values) prefetch(objects []uint64) {
	const object = 64
	v.r.mem.Prefetch(objects, object)
	var classes []uint64
	for _, o := range objects {
		if c, err := v.r.pointer(o, v.r.layout.object.class); err == nil && v.r.classes[c] == nil && checkPointer(c) == nil {
			classes = append(classes, c)
		}
	}
	slices.Sort(classes)
	v.r.mem.Prefetch(slices.Compact(classes), v.place(v.r.layout.class.size))
}

// shortName is the last part of a class's name.
func (c *class) shortName() string { return c.name[strings.LastIndexByte(c.name, '.')+1:] }

// base returns the base of a class; nil where it has none.
func (v *values) base(c *class) *class {
	address, err := v.r.pointer(c.address, v.r.layout.class.base)
	if err != nil || address == 0 {
		return nil
	}
	if b := v.r.classAt(address); b.err == nil {
		return b
	}
	return nil
}

// details has the facts in the dictionaries of a class and its bases.
type details struct {
	module, qualified string
	isEnum            bool
	isDataclass       bool
	fields            []string // of a data class
	tuple             []string // names of a tuple's elements
	slots             []slot
}

// slot is an attribute that has a place of its own in an object.
type slot struct {
	name   string
	offset uint64
}

// detailsOf returns the details of a class.
func (v *values) detailsOf(c *class) *details {
	if d := v.details[c.address]; d != nil {
		return d
	}
	d := &details{}
	v.details[c.address] = d
	if !c.is(classIsHeap) {
		return d
	}
	if p, err := v.r.pointer(c.address, v.r.layout.class.heapQualifiedName); err == nil && p != 0 {
		if name, err := v.r.text(p, maxName); err == nil {
			d.qualified = name
		}
	}
	if meta, err := v.r.class(c.address); err == nil {
		d.isEnum = v.hasBase(meta, "EnumMeta", "EnumType")
	}
	hasText := false // a class that is further derived has its own text
	for n, b := range v.bases(c) {
		if b.is(classIsHeap) {
			v.readDetails(d, b, n == 0, &hasText)
		}
	}
	return d
}

// hasBase reports whether a class that a program makes has one of the names, or a base of it has.
func (v *values) hasBase(c *class, names ...string) bool {
	for n := 0; c != nil && n < maxBases; c, n = v.base(c), n+1 {
		if c.is(classIsHeap) && slices.Contains(names, c.name) {
			return true
		}
	}
	return false
}

// bases returns a class and its bases in the order in which attributes are looked up.
func (v *values) bases(c *class) (list []*class) {
	mro, err := v.r.pointer(c.address, v.r.layout.class.mro)
	if err != nil {
		return []*class{c}
	}
	items, _, err := v.r.items(mro, maxBases)
	if err != nil {
		return []*class{c}
	}
	for _, a := range items {
		if b := v.r.classAt(a); b.err == nil {
			list = append(list, b)
		}
	}
	return list
}

// readDetails adds what the dictionary of a class or of a base says.
func (v *values) readDetails(d *details, c *class, isOwn bool, hasText *bool) {
	dict, err := v.r.pointer(c.address, v.r.layout.class.dict)
	if err != nil || dict == 0 {
		return
	}
	entries, _, err := v.entries(dict, maxAttributes)
	if err != nil {
		return
	}
	v.prefetchNames(entries)
	hadText := *hasText
	for _, e := range entries {
		name, err := v.r.text(e.key, maxName)
		if err != nil {
			continue
		}
		switch name {
		case "__module__":
			if text, err := v.r.text(e.value, maxName); err == nil && isOwn {
				d.module = text
			}
		case "__repr__":
			*hasText = true
		case "__dataclass_fields__":
			if fields := v.keys(e.value); !hadText && d.fields == nil && fields != nil {
				d.isDataclass, d.fields = true, fields
			}
		case "_fields":
			if names := v.texts(e.value); d.tuple == nil {
				d.tuple = names
			}
		default:
			v.addSlot(d, e, name)
		}
	}
}

// prefetchNames reads the keys and values of entries.
func (v *values) prefetchNames(entries []entry) {
	list := make([]uint64, 0, 2*len(entries))
	for _, e := range entries {
		list = append(list, e.key, e.value)
	}
	v.prefetch(list)
}

// addSlot adds a member of a class, if an entry of its dictionary is one that has an object.
func (v *values) addSlot(d *details, e entry, name string) {
	c, err := v.r.class(e.value)
	if err != nil || c.name != "member_descriptor" {
		return
	}
	// A member descriptor has its class, its name and its qualified name in front of the pointer
	// to a name, a kind and a place.
	const inDescriptor, kindMember, placeMember = 24, 8, 16
	member, err := v.r.pointer(e.value, v.r.layout.object.size+inDescriptor)
	if err != nil {
		return
	}
	kind, err := v.r.int(member, kindMember)
	if err != nil || kind != 6 && kind != 16 { // of an object that may be missing
		return
	}
	place, err := v.r.pointer(member, placeMember)
	if err == nil && place < maxOffset {
		d.slots = append(d.slots, slot{name, place})
	}
}

// keys are the keys of a dictionary, all of them text; nil where it is none.
func (v *values) keys(dict uint64) (list []string) {
	entries, _, err := v.entries(dict, maxAttributes)
	if err != nil {
		return nil
	}
	list = []string{}
	for _, e := range entries {
		name, err := v.r.text(e.key, maxName)
		if err != nil {
			return nil
		}
		list = append(list, name)
	}
	return list
}

// texts are the elements of a tuple, all of them text; nil where it is none.
func (v *values) texts(tuple uint64) (list []string) {
	if v.r.expect(tuple, classIsTuple, "tuple") != nil {
		return nil
	}
	items, count, err := v.r.items(tuple, maxAttributes)
	if err != nil || count > maxAttributes {
		return nil
	}
	for _, a := range items {
		name, err := v.r.text(a, maxName)
		if err != nil {
			return nil
		}
		list = append(list, name)
	}
	return list
}

func (v *values) isEnum(c *class) bool      { return v.detailsOf(c).isEnum }
func (v *values) isDataclass(c *class) bool { return v.detailsOf(c).isDataclass }
func (v *values) fields(c *class) []string  { return v.detailsOf(c).fields }

// fieldNames are the names of a tuple's elements; nil where they have none.
func (v *values) fieldNames(c *class, count uint64) []string {
	if names := v.detailsOf(c).tuple; c.is(classIsHeap) && uint64(len(names)) == count && count > 0 {
		return names
	}
	return nil
}

// qualifiedName is the name of a class with the classes and functions that it is in.
func (v *values) qualifiedName(c *class) string {
	if name := v.detailsOf(c).qualified; name != "" {
		return name
	}
	return c.shortName()
}

// qualified is the name of a class with its module, unless that is builtins.
func (v *values) qualified(c *class) string {
	d := v.detailsOf(c)
	switch {
	case d.module == "builtins":
		return v.qualifiedName(c)
	case d.module != "":
		return d.module + "." + v.qualifiedName(c)
	}
	return c.name
}

// attribute is an attribute of an object.
type attribute struct {
	name  string
	value uint64
}

// attributes returns the attributes of an object: of its dictionary, and with places of their own.
func (v *values) attributes(c *class, address uint64, most int) (list []attribute, left uint64, err error) {
	for _, s := range v.detailsOf(c).slots {
		if value, err := v.r.mem.Uint(address+s.offset, 8); err == nil && value != 0 {
			list = append(list, attribute{s.name, value})
		}
	}
	entries, left, err := v.dictOf(c, address, maxAttributes)
	if err != nil {
		return nil, 0, err
	}
	v.prefetchNames(entries)
	for _, e := range entries {
		if name, err := v.r.text(e.key, maxName); err == nil {
			list = append(list, attribute{name, e.value})
		}
	}
	if len(list) > most {
		left += uint64(len(list) - most) //nolint:gosec // not negative
		list = list[:most]
	}
	return list, left, nil
}

// dictOf returns entries of an object's dictionary.
func (v *values) dictOf(c *class, address uint64, most int) (list []entry, left uint64, err error) {
	switch {
	case c.is(classHasManagedDict) && v.r.layout.minor >= 11:
		return v.managedDict(c, address, most)
	case c.dictOffset == 0:
		return nil, 0, nil
	}
	place := c.dictOffset
	if place < 0 {
		if place, err = v.endOf(c, address); err != nil {
			return nil, 0, err
		}
		place += c.dictOffset
	}
	if place < int64(v.r.layout.object.size) {
		return nil, 0, fmt.Errorf("class %s: tp_dictoffset is %d, expected a place in its objects", c.name, c.dictOffset)
	}
	dict, err := v.r.mem.Uint(address+uint64(place), 8)
	if err != nil || dict == 0 {
		return nil, 0, err
	}
	return v.entries(dict, most)
}

// endOf is the size of an object whose class has objects of several sizes.
func (v *values) endOf(c *class, address uint64) (int64, error) {
	n, err := v.r.pointer(address, v.r.layout.object.count)
	if err != nil {
		return 0, err
	}
	count := int64(n) //nolint:gosec // signed in C
	if c.is(classIsInt) && v.r.layout.number.longTag.isKnown() {
		count = int64(n >> 3) //nolint:gosec // 61 bits
	}
	if count = max(count, -count); count < 0 || count > maxOffset {
		return 0, fmt.Errorf("object at %#x has %d items, expected at most %d", address, count, maxOffset)
	}
	return (c.basicSize + count*c.itemSize + 7) &^ 7, nil
}

// managedDict returns entries of a dictionary that is in front of its object, or of the values that
// stand for one.
func (v *values) managedDict(c *class, address uint64, most int) ([]entry, uint64, error) {
	before := uint64(24) // behind the header of the garbage collector
	if v.r.layout.isFree {
		before = 8
	}
	dict, err := v.r.mem.Uint(address-before, 8)
	if err != nil {
		return nil, 0, err
	}
	keys, _ := v.r.pointer(c.address, v.r.layout.class.cachedKeys)
	switch minor := v.r.layout.minor; {
	case minor == 11:
		values, err := v.r.mem.Uint(address-32, 8)
		if err != nil {
			return nil, 0, err
		}
		if values != 0 {
			return v.splitEntries(keys, values, most)
		}
	case minor == 12 && dict&1 == 1:
		return v.splitEntries(keys, dict+1, most)
	case minor >= 13 && dict == 0 && c.is(classHasInlineValues):
		return v.splitEntries(keys, address+uint64(c.basicSize), most) //nolint:gosec // checked
	}
	if dict == 0 {
		return nil, 0, nil
	}
	return v.entries(dict, most)
}

// runes returns the first characters of a str, surrogates too, and how many there are behind them.
func (v *values) runes(object uint64, most int) (list []rune, left uint64, err error) {
	s, err := v.r.str(object, uint64(most)) //nolint:gosec // not negative
	if err != nil {
		return nil, 0, err
	}
	list = []rune(s.text)
	left = s.length - uint64(len(list))
	if !slices.Contains(list, utf8.RuneError) {
		return list, left, nil
	}
	return v.surrogates(object, list), left, nil
}

// surrogates puts the surrogates of a str in the places of the characters that stand for them.
func (v *values) surrogates(object uint64, list []rune) []rune {
	l := &v.r.layout.text
	state, err := v.r.int(object, l.state)
	if err != nil {
		return list
	}
	kind, isCompact, _ := v.r.textState(uint32(state)) //nolint:gosec // bits
	data := object + v.place(l.compactData)
	if !isCompact {
		if data, err = v.r.pointer(object, l.data); err != nil {
			return list
		}
	}
	for i, r := range list {
		if r == utf8.RuneError {
			if c, err := v.r.mem.Uint(data+uint64(i)*kind, kind); err == nil && c <= utf8.MaxRune { //nolint:gosec // not negative
				list[i] = rune(c) //nolint:gosec // below utf8.MaxRune
			}
		}
	}
	return list
}

// methodName is the name of a function of C.
func (v *values) methodName(method uint64) (string, error) {
	p, err := v.r.pointer(method, 0)
	if err != nil {
		return "", err
	}
	name, err := v.r.mem.Text(p, maxName)
	if err == nil && !utf8.ValidString(name) {
		err = fmt.Errorf("ml_name at %#x is no text", p)
	}
	return name, err
}

// entries returns the first entries of a dictionary, in their order, and how many there are behind them.
func (v *values) entries(dict uint64, most int) ([]entry, uint64, error) {
	if err := v.r.expect(dict, classIsDict, "dict"); err != nil {
		return nil, 0, err
	}
	l := &v.r.layout.dict
	used, err := v.r.pointer(dict, l.used)
	if err != nil {
		return nil, 0, err
	}
	keys, err := v.r.pointer(dict, l.keys)
	if err != nil {
		return nil, 0, err
	}
	values, err := v.r.pointer(dict, l.values)
	if err != nil {
		return nil, 0, err
	}
	if used > maxItems {
		return nil, 0, fmt.Errorf("dict at %#x has %d entries, expected less", dict, used)
	}
	var list []entry
	if values != 0 {
		list, _, err = v.splitEntries(keys, values, most)
	} else {
		list, err = v.tableEntries(keys, min(used, uint64(most))) //nolint:gosec // not negative
	}
	if err != nil {
		return nil, 0, fmt.Errorf("dict at %#x: %w", dict, err)
	}
	if uint64(len(list)) > used {
		return nil, 0, fmt.Errorf("dict at %#x has %d entries, expected %d", dict, len(list), used)
	}
	return list, used - uint64(len(list)), nil
}

// scanEntries bounds the entries of a table that are looked at.
const scanEntries = 1 << 16

// tableEntries returns the first entries of a table with values.
func (v *values) tableEntries(keys, most uint64) (list []entry, err error) {
	t, err := v.r.readKeys(keys)
	if err != nil {
		return nil, err
	}
	const step = 256
	for first := uint64(0); first < min(t.count, scanEntries) && uint64(len(list)) < most; first += step {
		b, err := v.r.mem.Bytes(t.entries+first*t.size, min(step, t.count-first)*t.size)
		if err != nil {
			return nil, err
		}
		for ; uint64(len(b)) >= t.size && uint64(len(list)) < most; b = b[t.size:] {
			e := entry{v.r.mem.Number(b[t.key:][:8]), v.r.mem.Number(b[t.key+8:][:8])}
			if e.key != 0 && e.value != 0 {
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// splitEntries returns the first entries of a table whose values are apart from it.
func (v *values) splitEntries(keys, values uint64, most int) (list []entry, left uint64, err error) {
	if err := checkPointer(keys); err != nil {
		return nil, 0, err
	}
	t, err := v.r.readKeys(keys)
	if err != nil {
		return nil, 0, err
	}
	order, err := v.valueOrder(values, t.count)
	if err != nil {
		return nil, 0, err
	}
	first := values
	if l := &v.r.layout.dict; l.valuesItems.isKnown() {
		first += v.place(l.valuesItems)
	}
	for _, i := range order {
		key, err := v.r.mem.Uint(t.entries+i*t.size+t.key, 8)
		if err != nil {
			return nil, 0, err
		}
		value, err := v.r.mem.Uint(first+8*i, 8)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case key == 0 || value == 0:
		case len(list) == most:
			left++
		default:
			list = append(list, entry{key, value})
		}
	}
	return list, left, nil
}

// maxSplit bounds the values that are apart from their keys: CPython has 30 of them.
const maxSplit = 1 << 10

// valueOrder is the order in which values that are apart from their keys were set.
func (v *values) valueOrder(values, count uint64) (order []uint64, err error) {
	l := &v.r.layout.dict
	var size, at uint64
	switch minor := v.r.layout.minor; {
	case minor >= 13:
		capacity, err := v.r.byte(values, l.valuesCapacity)
		if err != nil {
			return nil, err
		}
		n, err := v.r.byte(values, l.valuesSize)
		if err != nil {
			return nil, err
		}
		size, at = uint64(n), values+v.place(l.valuesItems)+8*uint64(capacity)
		if n > capacity {
			return nil, fmt.Errorf("values at %#x: %d of %d, expected less", values, n, capacity)
		}
	case minor >= 11: // bytes in front of the values, backwards
		n, err := v.r.mem.Uint(values-2, 1)
		if err != nil {
			return nil, err
		}
		size, at = n, values-2-n
	default:
		for i := range min(count, maxSplit) {
			order = append(order, i)
		}
		return order, nil
	}
	b, err := v.r.mem.Bytes(at, size)
	if err != nil {
		return nil, err
	}
	for _, i := range b {
		if uint64(i) >= count {
			return nil, fmt.Errorf("values at %#x: index %d, expected less than %d", values, i, count)
		}
		order = append(order, uint64(i))
	}
	if v.r.layout.minor < 13 {
		slices.Reverse(order)
	}
	return order, nil
}

// setElements returns the first elements of a set.
func (v *values) setElements(address uint64) (list []uint64, isMore bool, err error) {
	l := &v.r.layout.sequence
	used, err := v.r.pointer(address, l.setUsed)
	if err != nil {
		return nil, false, err
	}
	mask, err := v.r.pointer(address, l.setMask)
	if err != nil {
		return nil, false, err
	}
	if mask > maxItems || mask&(mask+1) != 0 || used > mask+1 {
		return nil, false, fmt.Errorf("set at %#x: %d elements, and mask %#x, expected a table", address, used, mask)
	}
	table, err := v.r.pointer(address, l.setTable)
	if err != nil {
		return nil, false, err
	}
	const step, size = 256, 16
	for first := uint64(0); first <= min(mask, scanEntries) && len(list) < v.elements; first += step {
		b, err := v.r.mem.Bytes(table+first*size, min(step, mask+1-first)*size)
		if err != nil {
			return nil, false, err
		}
		for ; len(b) >= size && len(list) < v.elements; b = b[size:] {
			// An element that was removed has the hash -1, which no other has.
			if key := v.r.mem.Number(b[:8]); key != 0 && v.r.mem.Number(b[8:16]) != math.MaxUint64 {
				list = append(list, key)
			}
		}
	}
	return list, uint64(len(list)) < used, nil
}

// deque writes a deque: blocks of 64 elements that lead to each other.
func (w *valueWriter) deque(c *class, address uint64, depth int) error {
	const block, room = 8, 64 // a block has the previous one in front of its elements, and the next one behind
	head := w.r.layout.object.count + 8
	count, err := w.r.count(address, maxItems)
	if err != nil {
		return err
	}
	at, err := w.r.pointer(address, head)
	if err != nil {
		return err
	}
	index, err := w.r.pointer(address, head+16)
	if err != nil {
		return err
	}
	var list []uint64
	for n := uint64(0); n < count && len(list) < w.elements; n++ {
		if index >= room {
			if at, err = w.r.pointer(at, block+8*room); err != nil {
				return err
			}
			index = 0
		}
		p, err := w.r.pointer(at, block+offset(8*index)) //nolint:gosec // below room
		if err != nil {
			return err
		}
		list, index = append(list, p), index+1
	}
	w.WriteString(c.shortName() + "(")
	defer w.WriteByte(')')
	if !w.enter(address, depth) {
		w.WriteString("[...]")
		return nil
	}
	defer w.leave()
	w.WriteByte('[')
	w.parts(list, depth, uint64(len(list)) < count)
	w.WriteByte(']')
	most, err := w.r.pointer(address, head+40)
	if err == nil && int64(most) >= 0 { //nolint:gosec // signed in C
		fmt.Fprintf(w, ", maxlen=%d", most)
	}
	return err
}
