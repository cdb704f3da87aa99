// SPDX-License-Identifier: Apache-2.0

package php

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/unwindd/unwindd/sdk"
)

// exception returns the exception that was raised and not handled; nil: none. The error says why it
// is not whole.
func (r *reader) exception() (*sdk.ManagedException, error) {
	object, err := r.Pointer(r.executor + r.layout.executor.exception)
	if err != nil || object == 0 {
		return nil, err
	}
	class, at, err := r.classOf(object)
	if err != nil {
		return nil, err
	}
	if is, err := r.isThrowable(at); err != nil || !is {
		return nil, err
	}
	out := &sdk.ManagedException{Type: class}
	p, err := r.fields(object, at)
	if err != nil {
		return out, err
	}
	r.wrong = nil
	out.Text = r.plainText(p["message"])
	raised := place{r.plainText(p["file"]), r.plainLine(p["line"])}
	out.Frames = r.trace(raised, p["trace"])
	return out, r.wrong
}

// isThrowable reports whether a class is Exception or Error, or inherits from one.
func (r *reader) isThrowable(class uint64) (bool, error) {
	isInternal, last := true, ""
	for range maxModules {
		switch {
		case class == 0 && !isInternal:
			return false, fmt.Errorf("an object of %s is raised, expected a Throwable", last)
		case class == 0: // with which PHP ends the program
			return false, nil
		case class == r.exceptionClass || class == r.errorCase:
			return true, nil
		}
		name, err := r.class(class)
		if err == nil && (name == "Exception" || name == "Error") {
			err = fmt.Errorf("the class %s is at %#x, expected %#x or %#x", name, class, r.exceptionClass, r.errorCase)
		}
		if err != nil {
			return false, err
		}
		kind, err := r.Uint(class+classType, 1)
		if err != nil {
			return false, err
		}
		isInternal, last = isInternal && kind == functionInternal, name
		if class, err = r.Pointer(class + classParent); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("a class has more than %d above it", maxModules)
}

// maxFields bounds the properties of an exception.
const maxFields = 1 << 8

// fields returns the declared properties of an object of a class, by name: the innermost class's
// of two with a name.
func (r *reader) fields(object, class uint64) (map[string][]byte, error) {
	count, err := r.Uint(class+classCount, 4)
	if err != nil {
		return nil, err
	}
	slots, err := r.Pointer(class + r.slots)
	if err != nil {
		return nil, err
	}
	if count > maxFields {
		return nil, fmt.Errorf("%d properties, expected at most %d", count, maxFields)
	}
	out := map[string][]byte{}
	for i := range count {
		name, err := r.property(slots + i*8)
		if err != nil {
			continue // as properties
		}
		if _, isKnown := out[name]; isKnown {
			continue
		}
		if b, err := r.Bytes(object+objectSlots+i*valueSize, valueSize); err == nil {
			out[name] = b
		}
	}
	return out, nil
}

// plainText returns a value that is a string; "" for others.
func (r *reader) plainText(b []byte) string {
	if len(b) != valueSize || b[valueType] != typeString {
		return ""
	}
	text, _, err := r.textPart(r.Number(b[:8]), maxString)
	if err != nil {
		r.note(err)
		return ""
	}
	return valid(text)
}

// note keeps the first error about an exception.
func (r *reader) note(err error) { r.wrong = cmp.Or(r.wrong, err) }

// plainLine returns a value that is the number of a line; 0 for others.
func (r *reader) plainLine(b []byte) uint32 {
	if len(b) != valueSize || b[valueType] != typeInteger {
		if len(b) == valueSize {
			r.note(fmt.Errorf("a line is of type %d, expected %d", b[valueType], typeInteger))
		}
		return 0
	}
	if n := r.Number(b[:8]); n <= maxLine {
		return uint32(n) //nolint:gosec // bounded
	}
	return 0
}

// place is a place in a file.
type place struct {
	file string
	line uint32
}

// trace returns the frames of an exception that was raised at a place. An element of its trace has
// a function and the place that called it.
func (r *reader) trace(raised place, b []byte) (out []sdk.ManagedFrame) {
	if len(b) != valueSize || b[valueType] != typeArray {
		r.note(fmt.Errorf("its trace is no array"))
		return []sdk.ManagedFrame{{File: raised.file, Line: raised.line, Kind: sdk.Interpreted}}
	}
	at := raised
	for _, each := range r.items(r.Number(b[:8])) {
		if each.value[valueType] != typeArray {
			r.note(fmt.Errorf("an element of its trace is of type %d, expected %d", each.value[valueType], typeArray))
			break
		}
		fields := map[string][]byte{}
		for _, e := range r.items(r.Number(each.value[:8])) {
			fields[e.key] = e.value
		}
		if fields["function"] == nil {
			r.note(fmt.Errorf("an element of its trace has no function"))
			break
		}
		m := sdk.ManagedFrame{
			Function: r.plainText(fields["class"]) + r.plainText(fields["type"]) + r.plainText(fields["function"]),
			File:     at.file, Line: at.line, Kind: sdk.Interpreted,
		}
		if m.File == "" {
			m.Kind = sdk.Builtin
		}
		out = append(out, m)
		at = place{r.plainText(fields["file"]), r.plainLine(fields["line"])}
	}
	return append(out, sdk.ManagedFrame{Function: "{main}", File: at.file, Line: at.line, Kind: sdk.Interpreted})
}

// item is an element of an array.
type item struct {
	key   string
	value []byte
}

// maxItems bounds the elements of an array that is read for the interpreter's own data.
const maxItems = 1 << 12

// items returns the elements of an array; none where it is no array.
func (r *reader) items(address uint64) (out []item) {
	if address == 0 || address%8 != 0 {
		r.note(fmt.Errorf("%#x is no array: expected an address that 8 divides", address))
		return nil
	}
	t, err := r.Bytes(address, tableSize)
	if err == nil && t[4]&15 != typeArray {
		err = fmt.Errorf("%#x is no array: it has type %d, expected %d", address, t[4]&15, typeArray)
	}
	if err != nil {
		r.note(err)
		return nil
	}
	size := uint64(bucketSize)
	if r.Number(t[tableFlags:tableFlags+4])&tableIsPacked != 0 && r.hasPackedValues {
		size = valueSize
	}
	used, data := min(r.Number(t[tableUsed:tableUsed+4]), maxItems), r.Number(t[tableData:tableData+8])
	for i := range used {
		b, err := r.Bytes(data+i*size, size)
		if err != nil {
			r.note(err)
			break
		}
		if b[valueType] == typeUndefined {
			continue
		}
		e := item{value: b[:valueSize]}
		if size == bucketSize {
			if at := r.Number(b[bucketKey : bucketKey+8]); at != 0 {
				if e.key, err = r.text(at); err != nil {
					r.note(err)
				}
			}
		}
		out = append(out, e)
	}
	if n := r.Number(t[tableCount : tableCount+4]); n != uint64(len(out)) && used < maxItems {
		r.note(fmt.Errorf("the array at %#x has %d elements, expected %d", address, len(out), n))
	}
	return out
}

// fatalErrors are the kinds of errors that end a program: E_ERROR, E_PARSE, E_CORE_ERROR,
// E_COMPILE_ERROR, E_USER_ERROR and E_RECOVERABLE_ERROR.
const fatalErrors = 1 | 4 | 16 | 64 | 256 | 4096

// fatal returns the error with which PHP ended the program; "": none.
func (r *reader) fatal() string {
	l := &r.layout.errors
	if r.core == 0 {
		return ""
	}
	kind, err := r.Uint(r.core+l.kind, 4)
	if err != nil || kind&fatalErrors == 0 || kind&(kind-1) != 0 {
		return ""
	}
	read := func(offset uint64, isPlain bool) string {
		at, err := r.Pointer(r.core + offset)
		if err != nil || at == 0 {
			return ""
		}
		var text string
		if isPlain {
			text, err = r.Text(at, maxString)
		} else {
			text, _, err = r.textPart(at, maxString)
		}
		if err != nil {
			return ""
		}
		return valid(text)
	}
	text := read(l.text, l.isPlainText)
	if text == "" {
		return ""
	}
	if file := read(l.file, l.isPlainFile); file != "" {
		if line, err := r.Uint(r.core+l.line, 4); err == nil && line <= maxLine {
			return fmt.Sprintf("PHP Fatal error: %s in %s on line %s", text, file, strconv.FormatUint(line, 10))
		}
	}
	return "PHP Fatal error: " + text
}
