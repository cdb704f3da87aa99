// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"errors"
	"fmt"
	"unicode/utf16"

	"github.com/unwindd/unwindd/sdk"
)

// An object has a mark, its class, and its fields; a reference may be compressed to 32 bits. How
// wide classes and references are depends on options of the process, and is found by an object
// of a known class.

// Where the classes of objects are.
const (
	klassUnknown = iota
	klassCompressed
	klassFull
	klassInMark
)

// heapShape is how objects are laid out in a process.
type heapShape struct {
	klass           int
	reference       uint64 // bytes of a reference; 0: unknown
	oopBase         uint64
	oopShift        uint64
	klassBase       uint64
	klassShift      uint64
	length          uint64 // offset of the length of an array
	bytes, elements uint64 // offsets of the first byte, and of the first reference
}

const (
	// maxFields bounds the fields of a class.
	maxFields = 1 << 16
	// maxSupers bounds the classes above a class.
	maxSupers = 256
	// maxText bounds the text of a name or a message, in characters.
	maxText = 1 << 10
	// markKlassShift is where the mark of a compact header has the class.
	markKlassShift = 42
)

// readShape reads the numbers by which references are compressed.
func (r *reader) readShape() {
	number := func(address, size uint64) uint64 {
		if address == 0 {
			return 0
		}
		n, err := r.Uint(address, size)
		if err != nil {
			return 0
		}
		return n
	}
	s := &r.heapShape
	s.oopBase, s.oopShift = number(r.layout.oopBase, 8), number(r.layout.oopShift, 4)
	s.klassBase, s.klassShift = number(r.layout.klassBase, 8), number(r.kShift, 4)
}

// classOf reads the class of an object.
func (r *reader) classOf(object uint64) (uint64, error) {
	if object == 0 || object%8 != 0 {
		return 0, fmt.Errorf("there is no object at %#x", object)
	}
	switch r.heapShape.klass {
	case klassCompressed:
		n, err := r.Uint(object+r.narrowKlass.offset, 4)
		return r.klassBase(n), err
	case klassInMark:
		n, err := r.Uint(object, 8)
		return r.klassBase(n >> markKlassShift), err
	case klassFull:
		return r.Pointer(object + r.layout.klass.offset)
	}
	return 0, errors.New("how objects have their classes is not known")
}

// klassBase is the address of a class by its compressed one.
func (r *reader) klassBase(narrow uint64) uint64 {
	return r.heapShape.klassBase + narrow<<(r.heapShape.klassShift&31)
}

// isClass reports whether a class or one above it has a name.
func (r *reader) isClass(class uint64, name string) bool {
	for range maxSupers {
		n, err := r.nameOfClass(class)
		if err != nil {
			return false
		}
		if n == name {
			return true
		}
		if class, err = get(r.MemoryReader, class, r.superClass); err != nil || class == 0 {
			return false
		}
	}
	return false
}

// findShape finds how objects are laid out, by an object of a class of that name or below it.
func (r *reader) findShape(object uint64, name string) bool {
	s := &r.heapShape
	if s.klass != klassUnknown {
		return true
	}
	array := uint64(24)
	if r.version.first >= 23 {
		array = 20
	}
	for _, try := range []heapShape{
		{klass: klassCompressed, length: 12, bytes: 16, elements: 16},
		{klass: klassFull, length: 16, bytes: array, elements: 24},
		{klass: klassInMark, length: 8, bytes: 12, elements: 12},
	} {
		s.klass, s.length, s.bytes, s.elements = try.klass, try.length, try.bytes, try.elements
		if class, err := r.classOf(object); err == nil && r.isClass(class, name) {
			return true
		}
	}
	s.klass = klassUnknown
	return false
}

// place of a field in objects.
type objectField struct {
	offset    uint64
	signature string
	value     uint64 // index of its constant value in the pool; 0: none
}

// fieldOf finds a field of a class, or of a class above it.
func (r *reader) fieldOf(class uint64, name string) (objectField, error) {
	for range maxSupers {
		fields, err := r.fieldsOf(class)
		if err != nil {
			return objectField{}, err
		}
		if f, ok := fields[name]; ok {
			return f, nil
		}
		if class, err = get(r.MemoryReader, class, r.superClass); err != nil || class == 0 {
			break
		}
	}
	return objectField{}, fmt.Errorf("there is no field %s", name)
}

// fieldsOf reads the fields of a class, once.
func (r *reader) fieldsOf(class uint64) (map[string]objectField, error) {
	if fields, ok := r.classFields[class]; ok {
		return fields, nil
	}
	pool, err := get(r.MemoryReader, class, r.poolOfClass)
	if err != nil {
		return nil, err
	}
	fields := map[string]objectField{}
	if r.fieldInfo.isKnown {
		err = r.readFieldStream(class, pool, fields)
	} else {
		err = r.readFieldArray(class, pool, fields)
	}
	if err != nil {
		return nil, fmt.Errorf("the fields of the class at %#x: %w", class, err)
	}
	r.classFields[class] = fields
	return fields, nil
}

// addField adds a field by the indices of its name and signature.
func (r *reader) addField(fields map[string]objectField, pool, name, signature, offset, value uint64) error {
	n, err := r.poolText(pool, name)
	if err != nil {
		return err
	}
	s, err := r.poolText(pool, signature)
	if err != nil {
		return err
	}
	if _, has := fields[n]; !has {
		fields[n] = objectField{offset, s, value}
	}
	return nil
}

const (
	// fieldShorts are the numbers of 16 bits that Java 8 to 20 have of a field: access, name,
	// signature, value, and the offset in two of them, above two bits of a tag.
	fieldShorts = 6
	// accInternal is the flag of a field that HotSpot has added: its name is not in the pool.
	accInternal = 0x0400
	// fieldInjected and fieldExtras are flags of Java 21 and later: of an added field, and of those
	// with one number more each.
	fieldInjected = 1 << 1
	fieldValue    = 1 << 0
	fieldExtras   = fieldValue | 1<<2 | 1<<4
)

// readFieldArray reads the fields of a class of Java 8 to 20.
func (r *reader) readFieldArray(class, pool uint64, into map[string]objectField) error {
	array, err := get(r.MemoryReader, class, r.layout.fields)
	if err != nil {
		return err
	}
	count, err := get(r.MemoryReader, class, r.fieldCount)
	if err != nil {
		return err
	}
	length, err := r.Uint(array, 4)
	if err != nil || count > maxFields || count*fieldShorts > length {
		return fmt.Errorf("%d fields in %d numbers: %w", count, length, errRange)
	}
	data, err := r.Bytes(array+4, 2*fieldShorts*count)
	if err != nil {
		return err
	}
	for i := range count {
		short := func(n uint64) uint64 { return r.Number(data[2*(fieldShorts*i+n):][:2]) }
		if short(0)&accInternal != 0 {
			continue
		}
		if err := r.addField(into, pool, short(1), short(2), (short(5)<<16|short(4))>>2, short(3)); err != nil {
			return err
		}
	}
	return nil
}

// readFieldStream reads the fields of a class of Java 21 and later: compressed numbers.
func (r *reader) readFieldStream(class, pool uint64, into map[string]objectField) error {
	array, err := get(r.MemoryReader, class, r.fieldInfo)
	if err != nil {
		return err
	}
	length, err := r.Uint(array, 4)
	if err != nil || length > 64*maxFields {
		return fmt.Errorf("fields of %d bytes: %w", length, errRange)
	}
	data, err := r.Bytes(array+4, length)
	if err != nil {
		return err
	}
	s := &numberStream{data: data, excluded: r.version.excluded}
	count := s.int()
	s.int() // those that HotSpot has added, which come last
	for i := uint32(0); i < count && i < maxFields; i++ {
		name, signature, offset := uint64(s.int()), uint64(s.int()), uint64(s.int())
		s.int() // access
		flags := s.int()
		value := uint64(0)
		for extra := flags & fieldExtras; extra != 0; extra &= extra - 1 {
			if n := s.int(); extra&fieldValue != 0 {
				value = uint64(n)
			}
		}
		if s.failed || flags&fieldInjected != 0 {
			return fmt.Errorf("field %d of %d: %w", i, count, errRange)
		}
		if err := r.addField(into, pool, name, signature, offset, value); err != nil {
			return err
		}
	}
	return nil
}

// reference reads a reference to an object; 0 for null. How wide it is, is found by the first that
// leads to an object of a class with the name.
func (r *reader) reference(address uint64, name string) (uint64, error) {
	s := &r.heapShape
	for _, size := range []uint64{4, 8} {
		if s.reference != 0 && s.reference != size {
			continue
		}
		n, err := r.Uint(address, size)
		if err != nil {
			return 0, err
		}
		if size == 4 {
			n = r.oop(n)
		}
		if s.reference == size || n == 0 && size == 8 {
			return n, nil
		}
		if class, err := r.classOf(n); err == nil && r.isClass(class, name) {
			s.reference = size
			return n, nil
		}
	}
	return 0, fmt.Errorf("the reference at %#x leads to no %s", address, name)
}

// oop is the address of an object by its compressed one.
func (r *reader) oop(narrow uint64) uint64 {
	if narrow == 0 {
		return 0
	}
	return r.heapShape.oopBase + narrow<<(r.heapShape.oopShift&31)
}

// objectIn reads a field that refers to an object; 0 for null.
func (r *reader) objectIn(object uint64, field, class string) (uint64, error) {
	own, err := r.classOf(object)
	if err != nil {
		return 0, err
	}
	f, err := r.fieldOf(own, field)
	if err != nil {
		return 0, err
	}
	return r.reference(object+f.offset, class)
}

// textIn reads a field that is text; "" for null.
func (r *reader) textIn(object uint64, field string) (string, error) {
	text, err := r.objectIn(object, field, "java.lang.String")
	if err != nil || text == 0 {
		return "", err
	}
	return r.text(text)
}

// text reads a java.lang.String: bytes of Latin-1, or characters of 16 bits.
func (r *reader) text(object uint64) (string, error) {
	class, err := r.classOf(object)
	if err != nil {
		return "", err
	}
	if name, err := r.nameOfClass(class); err != nil || name != "java.lang.String" {
		return "", fmt.Errorf("the object at %#x is a %s, expected text", object, name)
	}
	value, err := r.fieldOf(class, "value")
	if err != nil {
		return "", err
	}
	wide := value.signature == "[C"
	if coder, err := r.fieldOf(class, "coder"); err == nil && !wide {
		c, err := r.Uint(object+coder.offset, 1)
		if err != nil || c > 1 {
			return "", fmt.Errorf("the text at %#x has coder %d: %w", object, c, errRange)
		}
		wide = c == 1
	}
	array, err := r.reference(object+value.offset, value.signature)
	if err != nil || array == 0 {
		return "", err
	}
	length, err := r.Uint(array+r.heapShape.length, 4)
	if err != nil {
		return "", err
	}
	unit := uint64(1)
	if wide {
		unit = 2
	}
	if value.signature == "[B" {
		length /= unit
	}
	data, err := r.Bytes(array+r.heapShape.bytes, unit*min(length, maxText))
	if err != nil {
		return "", err
	}
	units := make([]uint16, min(length, maxText))
	for i := range units {
		units[i] = uint16(r.Number(data[uint64(i)*unit:][:unit])) //nolint:gosec // 16 bits at most
	}
	return string(utf16.Decode(units)), nil
}

// handle reads an object that a structure of HotSpot refers to: by a pointer to it, or by a pointer to
// where that is.
func (r *reader) handle(base uint64, f field) (uint64, error) {
	n, err := get(r.MemoryReader, base, f)
	if err == nil && n != 0 && f.isHandle {
		n, err = r.Pointer(n)
	}
	return n, err
}

// typeOf is the name of an object's class.
func (r *reader) typeOf(object uint64) (string, error) {
	class, err := r.classOf(object)
	if err != nil {
		return "", err
	}
	return r.nameOfClass(class)
}

// exception describes a Throwable.
func (r *reader) exception(object uint64) (*sdk.ManagedException, error) {
	class, err := r.classOf(object)
	if err != nil {
		return nil, err
	}
	if !r.isClass(class, "java.lang.Throwable") {
		return nil, fmt.Errorf("the object at %#x is no exception", object)
	}
	e := &sdk.ManagedException{}
	if e.Type, err = r.nameOfClass(class); err != nil {
		return nil, err
	}
	e.Text, err = r.textIn(object, "detailMessage")
	return e, err
}
