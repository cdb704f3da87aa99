// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// maxTraceback bounds the frames of a traceback.
	maxTraceback = 1 << 12
	// maxException bounds the text of an exception, in bytes.
	maxException = 4096
)

// addException adds the exception that a thread has raised to its answer.
func (r *reader) addException(answer *sdk.ManagedStack, t *thread) error {
	raised, err := r.raised(t.address)
	if err != nil {
		return fmt.Errorf("the exception of the thread state at %#x: %w", t.address, err)
	}
	if answer.Exception == nil {
		answer.Exception = raised
	}
	return nil
}

// raised returns the exception that a thread has raised and that is on its way to a handler; nil: none.
func (r *reader) raised(thread uint64) (*sdk.ManagedException, error) {
	l := &r.layout.thread
	value, err := r.pointer(thread, l.raisedValue)
	if err != nil {
		return nil, err
	}
	var class, traceback uint64
	if l.raisedType.isKnown() {
		if class, err = r.pointer(thread, l.raisedType); err != nil || class == 0 {
			return nil, err
		}
		if traceback, err = r.pointer(thread, l.raisedTraceback); err != nil {
			return nil, err
		}
	} else if value == 0 {
		return nil, nil
	}
	return r.exceptionOf(class, value, traceback)
}

// exceptionOf describes an exception. Before 3.12 its class and its traceback are apart from it while it is raised, and it
// may be a value of which no object was made yet.
func (r *reader) exceptionOf(class, value, traceback uint64) (*sdk.ManagedException, error) {
	out := &sdk.ManagedException{}
	v := newValues(r, 4, maxException/4)
	isObject := false
	if value != 0 {
		c, err := r.class(value)
		if err != nil {
			return nil, err
		}
		if isObject = c.is(classIsException); isObject {
			out.Type = v.qualified(c)
			if out.Text, err = v.message(c, value); err != nil {
				return nil, err
			}
			if traceback == 0 {
				if traceback, err = r.pointer(value, r.layout.exception.traceback); err != nil {
					return nil, err
				}
			}
		}
	}
	if !isObject {
		c := r.classAt(class)
		switch {
		case c.err != nil:
			return nil, c.err
		case !c.is(classIsException):
			return nil, fmt.Errorf("class at %#x is %s, expected an exception", class, c.name)
		}
		out.Type = v.qualified(c)
		if value != 0 && !r.isNone(value) {
			text, err := v.plainText(value)
			if err != nil {
				return nil, err
			}
			out.Text = text
		}
	}
	var err error
	out.Frames, err = r.tracebackOf(traceback)
	return out, err
}

// message is the text that str() returns for an exception, as far as its class has no text of its own.
func (v *values) message(c *class, exception uint64) (string, error) {
	arguments, err := v.r.pointer(exception, v.r.layout.exception.arguments)
	if err != nil || arguments == 0 {
		return "", err
	}
	if err := v.r.expect(arguments, classIsTuple, "tuple"); err != nil {
		return "", err
	}
	items, count, err := v.r.items(arguments, 2)
	switch {
	case err != nil || count == 0:
		return "", err
	case v.hasBuiltinBase(c, "OSError") && count > 1:
		return v.systemMessage(exception, items)
	case v.hasBuiltinBase(c, "KeyError") && count == 1:
		return v.written(items[0])
	case count == 1:
		return v.plainText(items[0])
	}
	return v.written(arguments)
}

// systemMessage is the text of an error of the system: the number, the message and the file.
func (v *values) systemMessage(exception uint64, items []uint64) (string, error) {
	number, err := v.plainText(items[0])
	if err != nil {
		return "", err
	}
	message, err := v.plainText(items[1])
	if err != nil {
		return "", err
	}
	text := "[Errno " + number + "] " + message
	// An error of the system has its number, its message and its file behind what every exception has.
	file, err := v.r.pointer(exception, v.r.layout.exception.suppressContext+24)
	if err == nil && file != 0 && !v.r.isNone(file) {
		name, err := v.written(file)
		if err != nil {
			return "", err
		}
		text += ": " + name
	}
	return text, nil
}

// hasBuiltinBase reports whether a class is one of the language, or is derived from it.
func (v *values) hasBuiltinBase(c *class, name string) bool {
	for n := 0; c != nil && n < maxBases; c, n = v.base(c), n+1 {
		if !c.is(classIsHeap) && c.name == name {
			return true
		}
	}
	return false
}

// written is the text of an object, as repr() returns it.
func (v *values) written(object uint64) (string, error) {
	w := v.write(object, v.depth, valueObjects)
	return w.String(), w.problem
}

// plainText is the text of an object, as str() returns it.
func (v *values) plainText(object uint64) (string, error) {
	c, err := v.r.class(object)
	if err != nil {
		return "", err
	}
	if !c.is(classIsStr) {
		return v.written(object)
	}
	s, err := v.r.str(object, maxException/4)
	if err == nil && !s.isWhole {
		s.text += "..."
	}
	return strings.ToValidUTF8(s.text, "\ufffd"), err
}

// tracebackOf returns the frames of a traceback, innermost first.
func (r *reader) tracebackOf(address uint64) (list []sdk.ManagedFrame, err error) {
	l := &r.layout.traceback
	seen := map[uint64]bool{}
	for address != 0 && !r.isNone(address) {
		c, err := r.class(address)
		switch {
		case err != nil:
			return nil, err
		case c.name != "traceback":
			return nil, fmt.Errorf("object at %#x is a %s, expected a traceback", address, c.name)
		case seen[address] || len(list) == maxTraceback:
			return nil, fmt.Errorf("traceback at %#x: it has no end in %d frames", address, len(list))
		}
		seen[address] = true
		frame, err := r.tracebackFrame(address)
		if err != nil {
			return nil, fmt.Errorf("traceback at %#x: %w", address, err)
		}
		list = append([]sdk.ManagedFrame{*frame}, list...)
		if address, err = r.pointer(address, l.next); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// tracebackFrame returns the function of a traceback's frame, and the line that the traceback has.
func (r *reader) tracebackFrame(address uint64) (*sdk.ManagedFrame, error) {
	l := &r.layout.traceback
	object, err := r.pointer(address, l.frame)
	if err != nil {
		return nil, err
	}
	c, err := r.class(object)
	if err != nil {
		return nil, err
	}
	if c.name != "frame" {
		return nil, fmt.Errorf("object at %#x is a %s, expected a frame", object, c.name)
	}
	inner := object
	if r.layout.frameObject.frame.isKnown() {
		if inner, err = r.pointer(object, r.layout.frameObject.frame); err != nil {
			return nil, err
		}
	}
	at, err := r.pointer(inner, r.layout.frame.code)
	if err != nil {
		return nil, err
	}
	if r.layout.minor >= 14 {
		at &^= 3
	}
	code := r.code(at)
	if code.err != nil {
		return nil, code.err
	}
	last, err := r.int(address, l.last)
	if err != nil {
		return nil, err
	}
	unit := int64(1)
	if r.layout.minor == 10 {
		unit = 2
	}
	position := code.position(r.layout.minor, int64(last)*unit)
	line, err := r.uint(address, l.line, 4)
	if err == nil && int32(line) > 0 { //nolint:gosec // signed in C
		position.line = uint32(line) //nolint:gosec // four bytes
	}
	return &sdk.ManagedFrame{Function: code.function(), File: code.file, Line: position.line, Column: position.column, Kind: sdk.Interpreted}, err
}
