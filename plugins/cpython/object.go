// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"
)

// This file reads objects of Python. An object's class is read first and decides what it is.

// The flags of classes.
const (
	classIsHeap      = 1 << 9
	classIsReady     = 1 << 12
	classIsInt       = 1 << 24
	classIsList      = 1 << 25
	classIsTuple     = 1 << 26
	classIsBytes     = 1 << 27
	classIsStr       = 1 << 28
	classIsDict      = 1 << 29
	classIsException = 1 << 30
	classIsType      = 1 << 31

	classHasInlineValues = 1 << 2 // from 3.13 on
	classHasManagedDict  = 1 << 4 // from 3.11 on
)

// class is the class of an object, which CPython calls its type.
type class struct {
	address    uint64
	name       string // tp_name: without the module for classes of programs
	flags      uint64
	basicSize  int64
	itemSize   int64
	dictOffset int64
	err        error // why it is none
}

func (c *class) is(flag uint64) bool { return c.flags&flag != 0 }

// maxName bounds names of classes, in bytes.
const maxName = 1 << 10

// class returns the class of an object.
func (r *reader) class(object uint64) (*class, error) {
	address, err := r.pointer(object, r.layout.object.class)
	if err != nil {
		return nil, fmt.Errorf("object at %#x: %w", object, err)
	}
	c := r.classAt(address)
	if c.err != nil {
		return nil, fmt.Errorf("object at %#x: its class: %w", object, c.err)
	}
	return c, nil
}

// classAt returns the class at an address, whose err says where it is none.
func (r *reader) classAt(address uint64) *class {
	if c := r.classes[address]; c != nil {
		return c
	}
	c := &class{address: address}
	c.err = r.readClass(c)
	r.classes[address] = c
	return c
}

func (r *reader) readClass(c *class) error {
	if err := checkPointer(c.address); err != nil {
		return err
	}
	l := &r.layout.class
	b, err := r.mem.Bytes(c.address, uint64(l.size)) //nolint:gosec // known in all versions
	if err != nil {
		return err
	}
	c.flags = r.word(b, l.flags)
	c.basicSize, c.itemSize = int64(r.word(b, l.basicSize)), int64(r.word(b, l.itemSize)) //nolint:gosec // signed in C
	c.dictOffset = int64(r.word(b, l.dictOffset))                                         //nolint:gosec // signed in C
	switch {
	case c.flags&classIsReady == 0 && !r.isInModule(c.address): // 3.9 does not make all of its own ready
		return fmt.Errorf("tp_flags at %#x are %#x, expected a class that is ready", c.address, c.flags)
	case c.basicSize < int64(r.layout.object.size) || c.basicSize > maxOffset || c.itemSize < 0 || c.itemSize > maxOffset:
		return fmt.Errorf("tp_basicsize at %#x is %d, and tp_itemsize %d, expected sizes of objects", c.address, c.basicSize, c.itemSize)
	}
	// The class of a class is one whose instances are classes.
	meta := r.word(b, r.layout.object.class)
	if flags, err := r.pointer(meta, l.flags); err != nil || flags&classIsType == 0 {
		return fmt.Errorf("the object at %#x is no class", c.address)
	}
	if c.name, err = r.mem.Text(r.word(b, l.name), maxName); err != nil {
		return fmt.Errorf("tp_name at %#x: %w", c.address, err)
	}
	if c.name == "" || !utf8.ValidString(c.name) {
		return fmt.Errorf("tp_name at %#x is %q, expected a name", c.address, c.name)
	}
	return nil
}

// isInModule reports whether an address is in the module of the runtime.
func (r *reader) isInModule(address uint64) bool {
	for i := range r.request.Segments {
		if s := &r.request.Segments[i]; address-s.Start < s.Size {
			return true
		}
	}
	return false
}

// maxBases bounds the classes that a class is derived from by its first bases.
const maxBases = 64

// isDerived reports whether a class is derived from one of a name by its first bases.
func (r *reader) isDerived(c *class, name string) bool {
	for range maxBases {
		base, err := r.pointer(c.address, r.layout.class.base)
		if err != nil || base == 0 {
			return false
		}
		if c = r.classAt(base); c.err != nil {
			return false
		}
		if c.name == name {
			return true
		}
	}
	return false
}

// expect checks that an object's class has a flag.
func (r *reader) expect(object, flag uint64, what string) error {
	c, err := r.class(object)
	if err == nil && !c.is(flag) {
		err = fmt.Errorf("object at %#x is a %s, expected a %s", object, c.name, what)
	}
	return err
}

// count reads the number of items of an object of variable size, which most bounds.
func (r *reader) count(object, most uint64) (uint64, error) {
	n, err := r.pointer(object, r.layout.object.count)
	if err == nil && n > most {
		err = fmt.Errorf("object at %#x has %d items, expected at most %d", object, n, most)
	}
	return n, err
}

// maxItems bounds the number of items of an object that is not yet known to be damaged.
const maxItems = 1 << 40

// str is a text of Python.
type str struct {
	text    string
	length  uint64 // characters in all
	isWhole bool   // text has all of them
}

// text returns the text of a str that has at most most characters.
func (r *reader) text(object, most uint64) (string, error) {
	s, err := r.str(object, most)
	if err == nil && !s.isWhole {
		err = fmt.Errorf("str at %#x has %d characters, expected at most %d", object, s.length, most)
	}
	return s.text, err
}

// str returns the first most characters of a str. Surrogates, which text cannot have, are U+FFFD.
func (r *reader) str(object, most uint64) (s str, err error) {
	if err := r.expect(object, classIsStr, "str"); err != nil {
		return s, err
	}
	l := &r.layout.text
	if s.length, err = r.pointer(object, l.length); err != nil {
		return s, err
	}
	state, err := r.int(object, l.state)
	if err != nil {
		return s, err
	}
	kind, isCompact, isASCII := r.textState(uint32(state)) //nolint:gosec // bits
	data := object
	switch {
	case s.length > maxItems || kind != 1 && kind != 2 && kind != 4 || isASCII && kind != 1:
		return s, fmt.Errorf("str at %#x has %d characters of %d bytes, and state %#x, expected a text", object, s.length, kind, uint32(state)) //nolint:gosec // bits
	case isCompact && isASCII:
		data += uint64(l.asciiData) //nolint:gosec // known in all versions
	case isCompact:
		data += uint64(l.compactData) //nolint:gosec // known in all versions
	default:
		if data, err = r.pointer(object, l.data); err != nil {
			return s, err
		}
	}
	n := min(s.length, most)
	b, err := r.mem.Bytes(data, n*kind)
	if err != nil {
		return s, fmt.Errorf("str at %#x: %w", object, err)
	}
	s.text, err = r.decode(b, kind, isASCII)
	if err != nil {
		return s, fmt.Errorf("str at %#x: %w", object, err)
	}
	s.isWhole = n == s.length
	return s, nil
}

// textState returns the bytes of a character, whether the text is behind the object, and whether it
// is ASCII.
func (r *reader) textState(state uint32) (kind uint64, isCompact, isASCII bool) {
	state >>= r.layout.text.kindShift & 31
	return uint64(state & 7), state>>3&1 == 1, state>>4&1 == 1
}

// decode returns the text of characters of 1, 2 or 4 bytes.
func (r *reader) decode(b []byte, kind uint64, isASCII bool) (string, error) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i += int(kind) { //nolint:gosec // at most 4
		c := r.mem.Number(b[i:][:kind])
		if isASCII && c >= utf8.RuneSelf || c > utf8.MaxRune {
			return "", fmt.Errorf("character %d is %#x, expected one of its kind", i/int(kind), c) //nolint:gosec // at most 4
		}
		out = utf8.AppendRune(out, rune(c)) //nolint:gosec // at most utf8.MaxRune
	}
	return string(out), nil
}

// maxIntBytes bounds the digits of an int that are read, in bytes.
const maxIntBytes = 1 << 12

// integer returns an int; nil where it has too many digits.
func (r *reader) integer(object uint64) (*big.Int, error) {
	if err := r.expect(object, classIsInt, "int"); err != nil {
		return nil, err
	}
	var digits uint64
	var isNegative bool
	if l := &r.layout.number; l.longTag.isKnown() {
		tag, err := r.pointer(object, l.longTag)
		if err != nil {
			return nil, err
		}
		// The two lowest bits are the sign, and the third says that the object is immortal.
		digits, isNegative = tag>>3, tag&3 == 2
		if tag&3 == 1 {
			digits = 0
		}
	} else {
		size, err := r.pointer(object, r.layout.object.count)
		if err != nil {
			return nil, err
		}
		n := int64(size) //nolint:gosec // signed in C
		digits, isNegative = uint64(max(n, -n)), n < 0
	}
	if digits > maxItems {
		return nil, fmt.Errorf("int at %#x has %d digits, expected less", object, digits)
	}
	if digits > maxIntBytes/4 {
		return nil, nil
	}
	b, err := r.mem.Bytes(object+uint64(r.layout.number.longDigits), digits*4) //nolint:gosec // known in all versions
	if err != nil {
		return nil, fmt.Errorf("int at %#x: %w", object, err)
	}
	n := new(big.Int)
	for i := len(b) - 4; i >= 0; i -= 4 {
		digit := r.mem.Number(b[i:][:4])
		if digit >= 1<<30 {
			return nil, fmt.Errorf("int at %#x: digit %d is %#x, expected less than 2**30", object, i/4, digit)
		}
		n.Lsh(n, 30).Or(n, new(big.Int).SetUint64(digit))
	}
	if isNegative {
		n.Neg(n)
	}
	return n, nil
}

// smallInt returns an int that is not negative and has at most 63 bits.
func (r *reader) smallInt(object uint64) (uint64, error) {
	n, err := r.integer(object)
	switch {
	case err != nil:
		return 0, err
	case n == nil || n.Sign() < 0 || !n.IsUint64() || n.Uint64() > math.MaxInt64:
		return 0, fmt.Errorf("int at %#x, expected one from 0 to 2**63-1", object)
	}
	return n.Uint64(), nil
}

// bytes returns the first most bytes of a bytes object, and how many it has.
func (r *reader) bytes(object, most uint64) ([]byte, uint64, error) {
	if err := r.expect(object, classIsBytes, "bytes"); err != nil {
		return nil, 0, err
	}
	n, err := r.count(object, maxItems)
	if err != nil {
		return nil, 0, err
	}
	b, err := r.mem.Bytes(object+uint64(r.layout.sequence.bytesData), min(n, most)) //nolint:gosec // known in all versions
	return b, n, err
}

// items returns the addresses of the first most items of a tuple or list, and how many it has. An
// item may be 0 while the object is being made.
func (r *reader) items(object, most uint64) ([]uint64, uint64, error) {
	c, err := r.class(object)
	if err != nil {
		return nil, 0, err
	}
	n, err := r.count(object, maxItems)
	if err != nil {
		return nil, 0, err
	}
	var data uint64
	switch {
	case c.is(classIsTuple):
		data = object + uint64(r.layout.sequence.tupleItems) //nolint:gosec // known in all versions
	case c.is(classIsList):
		if data, err = r.pointer(object, r.layout.sequence.listItems); err != nil {
			return nil, 0, err
		}
	default:
		return nil, 0, fmt.Errorf("object at %#x is a %s, expected a tuple or list", object, c.name)
	}
	list, err := r.pointers(data, min(n, most))
	return list, n, err
}

// pointers reads an array of addresses.
func (r *reader) pointers(address, count uint64) ([]uint64, error) {
	if count == 0 {
		return nil, nil
	}
	if err := checkPointer(address); err != nil {
		return nil, err
	}
	b, err := r.mem.Bytes(address, count*8)
	if err != nil {
		return nil, err
	}
	list := make([]uint64, count)
	for i := range list {
		list[i] = r.mem.Number(b[i*8:][:8])
	}
	return list, nil
}

// isNone reports whether an object is None.
func (r *reader) isNone(object uint64) bool {
	if r.none != 0 {
		return object == r.none
	}
	c, err := r.class(object)
	return err == nil && c.name == "NoneType"
}
