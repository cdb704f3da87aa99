// SPDX-License-Identifier: Apache-2.0

package php

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// maxElements bounds the children and characters of one value.
	maxElements = 1 << 12
	// maxValues bounds the values of all frames of one call.
	maxValues = 1 << 16
)

// limits are how much of variables is wanted.
type limits struct {
	depth, elements int
	used            int // values so far
}

// variables returns the variables of a frame.
func (r *reader) variables(c *frame, f *function) (out []sdk.ManagedVariable) {
	if c.isObject {
		out = append(out, r.object("$this", c.this, r.limits.depth))
	}
	first := c.address + frameSize
	if !f.isUser {
		return append(out, r.arguments(c, f, first)...)
	}
	if f.variableSize == 0 {
		return out
	}
	names, err := r.Bytes(f.variables, f.variableSize*8)
	if err != nil {
		return append(out, unreadable("$", err))
	}
	count := f.count
	if f.flags&flagVariadic != 0 {
		count++
	}
	var list []uint64
	for i := range f.variableSize {
		list = append(list, r.Number(names[i*8:i*8+8]))
	}
	r.Prefetch(append(list, first), stringBytes)
	for i, name := range list {
		text, err := r.text(name)
		if err != nil {
			return append(out, unreadable("$", err))
		}
		if r.limits.used >= maxValues {
			break
		}
		v := r.variable("$"+valid(text), first+uint64(i)*valueSize, r.limits.depth) //nolint:gosec // an index
		v.IsParam = uint64(i) < count                                               //nolint:gosec // as above
		out = append(out, v)
	}
	return out
}

// arguments returns the arguments of a function of the interpreter.
func (r *reader) arguments(c *frame, f *function, first uint64) (out []sdk.ManagedVariable) {
	for i := range min(c.count, maxElements) {
		if r.limits.used >= maxValues {
			break
		}
		name := fmt.Sprintf("argument %d", i+1)
		if i < f.count {
			if at, err := r.Pointer(f.arguments + i*r.argument); err == nil {
				if text, err := r.Text(at, sdk.MaxName); err == nil && text != "" {
					name = "$" + valid(text)
				}
			}
		}
		v := r.variable(name, first+i*valueSize, r.limits.depth)
		v.IsParam = true
		out = append(out, v)
	}
	return out
}

func unreadable(name string, err error) sdk.ManagedVariable {
	return sdk.ManagedVariable{Name: name, Status: sdk.ValueUnreadable, Text: err.Error()}
}

// variable returns the value at an address.
func (r *reader) variable(name string, address uint64, depth int) sdk.ManagedVariable {
	r.limits.used++
	b, err := r.Bytes(address, valueSize)
	if err != nil {
		return unreadable(name, err)
	}
	return r.value(name, b, depth)
}

// value returns a value, a zval. References and indirect values are followed.
func (r *reader) value(name string, b []byte, depth int) (v sdk.ManagedVariable) {
	for range 4 {
		address := r.Number(b[:8])
		switch b[valueType] {
		case typeReference:
			address += referenceValue
		case r.indirect:
		default:
			return r.direct(name, b, depth)
		}
		next, err := r.Bytes(address, valueSize)
		if err != nil {
			return unreadable(name, err)
		}
		b = next
	}
	return unreadable(name, fmt.Errorf("a reference leads to a reference"))
}

func (r *reader) direct(name string, b []byte, depth int) sdk.ManagedVariable {
	v, n := sdk.ManagedVariable{Name: name}, r.Number(b[:8])
	switch kind := b[valueType]; kind {
	case typeUndefined:
		v.Status = sdk.ValueUnset
	case typeNull:
		v.Type, v.Text = "null", "null"
	case typeFalse, typeTrue:
		v.Type, v.Text = "bool", strconv.FormatBool(kind == typeTrue)
	case typeInteger:
		v.Type, v.Text = "int", strconv.FormatInt(int64(n), 10) //nolint:gosec // as it is
	case typeFloat:
		v.Type, v.Text = "float", float(math.Float64frombits(n))
	case typeString:
		return r.stringValue(name, n)
	case typeArray:
		return r.array(name, n, depth)
	case typeObject:
		return r.object(name, n, depth)
	case typeResource:
		v.Type = "resource"
		number, err := r.Uint(n+objectNumber, 4)
		if err != nil {
			return unreadable(name, err)
		}
		v.Text = "#" + strconv.FormatUint(number, 10)
	default:
		return unreadable(name, fmt.Errorf("a value of type %d", kind))
	}
	return v
}

// float writes a number as var_export does.
func float(f float64) string {
	s := strconv.FormatFloat(f, 'G', -1, 64)
	switch {
	case math.IsInf(f, 1):
		return "INF"
	case math.IsInf(f, -1):
		return "-INF"
	case math.IsNaN(f):
		return "NAN"
	case !strings.ContainsAny(s, ".E"):
		return s + ".0"
	}
	return s
}

func (r *reader) stringValue(name string, address uint64) sdk.ManagedVariable {
	text, left, err := r.textPart(address, uint64(max(r.limits.elements, 0))) //nolint:gosec // not negative
	if err != nil {
		return unreadable(name, err)
	}
	return sdk.ManagedVariable{Name: name, Type: "string", Text: strconv.Quote(valid(text)), More: left}
}

// array returns the value of an array.
func (r *reader) array(name string, address uint64, depth int) sdk.ManagedVariable {
	v := sdk.ManagedVariable{Name: name, Type: "array"}
	count, err := r.elements(&v, address, depth, "[%s]", false)
	if err != nil {
		return unreadable(name, err)
	}
	v.Text = plural(count, "element")
	return v
}

func plural(n uint64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// elements adds the elements of a table to a value and returns their number. Of an object's table,
// declared properties are left out.
func (r *reader) elements(v *sdk.ManagedVariable, address uint64, depth int, format string, isObject bool) (uint64, error) {
	if address == 0 || address%8 != 0 {
		return 0, fmt.Errorf("%#x is no array: expected an address that 8 divides", address)
	}
	t, err := r.Bytes(address, tableSize)
	if err != nil {
		return 0, err
	}
	if kind := t[4] & 15; kind != typeArray {
		return 0, fmt.Errorf("%#x is no array: it has type %d, expected %d", address, kind, typeArray)
	}
	used, count := r.Number(t[tableUsed:tableUsed+4]), r.Number(t[tableCount:tableCount+4])
	if count > used || used > 1<<31 {
		return 0, fmt.Errorf("%#x is no array: %d of %d elements", address, count, used)
	}
	isPacked := r.Number(t[tableFlags:tableFlags+4])&tableIsPacked != 0
	size := uint64(bucketSize)
	if isPacked && r.hasPackedValues {
		size = valueSize
	}
	most := 0
	if depth > 0 {
		most = r.limits.elements - len(v.Children)
	}
	shown, data := uint64(0), r.Number(t[tableData:tableData+8])
	for i := uint64(0); i < used && shown < uint64(max(most, 0)) && r.limits.used < maxValues && r.Err() == nil; i++ { //nolint:gosec // not negative
		b, err := r.Bytes(data+i*size, size)
		if err != nil {
			return count, err
		}
		if b[valueType] == typeUndefined || isObject && b[valueType] == r.indirect {
			continue
		}
		key := strconv.FormatUint(i, 10)
		if size == bucketSize {
			if key, err = r.key(b, isObject); err != nil {
				return count, err
			}
		}
		shown++
		r.limits.used++
		v.Children = append(v.Children, r.value(fmt.Sprintf(format, key), b[:valueSize], depth-1))
	}
	if !isObject {
		v.More = count - min(shown, count)
	}
	return count, nil
}

// key returns the key of a bucket.
func (r *reader) key(b []byte, isObject bool) (string, error) {
	at := r.Number(b[bucketKey : bucketKey+8])
	if at == 0 {
		return strconv.FormatInt(int64(r.Number(b[bucketHash:bucketHash+8])), 10), nil //nolint:gosec // as it is
	}
	text, _, err := r.textPart(at, uint64(max(r.limits.elements, 64))) //nolint:gosec // not negative
	if err != nil || isObject {
		return valid(text), err
	}
	return strconv.Quote(valid(text)), nil
}

// object returns the value of an object, with its properties.
func (r *reader) object(name string, address uint64, depth int) sdk.ManagedVariable {
	v := sdk.ManagedVariable{Name: name}
	class, at, err := r.classOf(address)
	if err != nil {
		return unreadable(name, err)
	}
	number, _ := r.Uint(address+objectNumber, 4)
	v.Type, v.Text = class, fmt.Sprintf("#%d", number)
	count, err := r.Uint(at+classCount, 4)
	if err != nil || count > maxVariables || depth <= 0 {
		return v
	}
	if slots, err := r.Pointer(at + r.slots); err == nil && slots != 0 {
		r.properties(&v, address, slots, count, depth)
	}
	if extra, err := r.Pointer(address + objectExtra); err == nil && extra != 0 && extra%8 == 0 {
		_, _ = r.elements(&v, extra, depth, "%s", true) // a lazy object has something else there
	}
	return v
}

// properties adds the declared properties of an object.
func (r *reader) properties(v *sdk.ManagedVariable, address, slots, count uint64, depth int) {
	for i := range count {
		if len(v.Children) >= r.limits.elements || r.limits.used >= maxValues {
			v.More += count - i
			return
		}
		name, err := r.property(slots + i*8)
		if err != nil {
			continue // a slot that a parent keeps for itself
		}
		v.Children = append(v.Children, r.variable(name, address+objectSlots+i*valueSize, depth-1))
	}
}

// property returns the name of the property whose description a slot leads to, without the class
// that it is private of.
func (r *reader) property(slot uint64) (string, error) {
	info, err := r.Pointer(slot)
	if err != nil {
		return "", err
	}
	at, err := r.Pointer(info + propertyName)
	if err != nil {
		return "", err
	}
	name, err := r.text(at)
	return valid(name[strings.LastIndexByte(name, 0)+1:]), err
}

// classOf returns the class of an object: its name and its address.
func (r *reader) classOf(object uint64) (name string, address uint64, err error) {
	if object == 0 || object%8 != 0 {
		return "", 0, fmt.Errorf("%#x is no object: expected an address that 8 divides", object)
	}
	head, err := r.Bytes(object, objectClass+8)
	if err != nil {
		return "", 0, err
	}
	if kind := head[4] & 15; kind != typeObject {
		return "", 0, fmt.Errorf("%#x is no object: it has type %d, expected %d", object, kind, typeObject)
	}
	address = r.Number(head[objectClass : objectClass+8])
	name, err = r.class(address)
	return name, address, err
}
