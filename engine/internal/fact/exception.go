// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/walk"
)

// This file finds the exception that ended a C++ program, by the layout of the Itanium
// C++ ABI: Exception Handling, 2.2.1 (__cxa_exception), and 1.2 (_Unwind_Exception).

// The classes of exceptions of libstdc++ and libc++abi. The lowest byte of a dependent
// exception, which refers to another one, is 1: those are not read.
const (
	classGNU   = 0x474e5543432b2b00 // "GNUCC++\0"
	classClang = 0x434c4e47432b2b00 // "CLNGC++\0"
)

// Offsets from the _Unwind_Exception of an exception, on machines of 64 bits.
const (
	exceptionType   = 80 // before it: std::type_info *exceptionType
	exceptionObject = 32 // behind it: the object
)

// headers are the offsets of an _Unwind_Exception from the pointer that a run-time function has
// in a register: to itself, to the thrown object, to the __cxa_exception, and to the structure
// with its count of references.
var headers = [...]int64{0, -exceptionObject, 80, 96}

// throwing are functions that end in std::terminate, or that call it: a stripped library may
// only name these.
var throwing = map[string]bool{
	"_ZSt9terminatev": true, "__gxx_personality_v0": true, "__cxa_throw": true, "__cxa_rethrow": true, "__cxa_call_terminate": true,
	"_Unwind_RaiseException": true, "_Unwind_Resume": true, "_Unwind_Resume_or_Rethrow": true,
}

// terminate explains an abort by std::terminate.
func (c *crash) terminate() string {
	at := slices.IndexFunc(c.frames, func(a walk.Activation) bool {
		return throwing[linkageName(&c.stack.Frames[a.Index()-c.frame])]
	})
	if at < 0 || at > maxNamed {
		return ""
	}
	if header, ok := c.exception(at); ok {
		return "C++ exception that nobody caught: " + c.exceptionText(header) + c.whereInProgram()
	}
	return "std::terminate was called" + c.whereInProgram()
}

// maxThrowing is how many frames from std::terminate on, all of the run-time library, are
// looked at for the exception.
const maxThrowing = 8

// exception returns the _Unwind_Exception of the exception that std::terminate was called for:
// a register that the run-time library's functions preserve for their callers leads to it. ok
// is false where none or several do.
func (c *crash) exception(terminate int) (header uint64, ok bool) {
	if c.machine.AddressBits != 64 {
		return 0, false
	}
	var found []uint64
	for i := terminate; i < len(c.frames) && i < terminate+maxThrowing; i++ {
		for number := range uint64(32) {
			v, err := c.frames[i].Value(c.ctx, number)
			if err != nil || v < nullEnd {
				continue
			}
			for _, offset := range headers {
				if h := v + uint64(offset); c.isException(h) && !slices.Contains(found, h) { //nolint:gosec // its bits
					found = append(found, h)
				}
			}
		}
		if len(found) > 0 { // those further out may belong to exceptions that were caught
			break
		}
	}
	if len(found) != 1 {
		return 0, false
	}
	return found[0], true
}

func (c *crash) isException(header uint64) bool {
	class, ok := c.word(header)
	if !ok || class != classGNU && class != classClang {
		return false
	}
	_, ok = c.typeName(header)
	return ok
}

// typeName returns the mangled name of an exception's type: std::type_info has a pointer to it
// after the pointer to its virtual table (Itanium C++ ABI, 2.9.4).
func (c *crash) typeName(header uint64) (string, bool) {
	info, ok := c.word(header - exceptionType)
	if !ok {
		return "", false
	}
	name, ok := c.word(info + 8)
	if !ok {
		return "", false
	}
	text, ok := c.text(name, -1)
	return strings.TrimPrefix(text, "*"), ok && text != ""
}

// withMessage are the exceptions of the standard library that have a pointer to their text
// after the pointer to their virtual table, in libstdc++ and libc++ alike.
var withMessage = map[string]bool{
	"St11logic_error": true, "St12domain_error": true, "St16invalid_argument": true, "St12length_error": true, "St12out_of_range": true,
	"St13runtime_error": true, "St11range_error": true, "St14overflow_error": true, "St15underflow_error": true,
}

// maxBases is how many base classes of an exception are looked at.
const maxBases = 8

// isStandard reports whether an exception is in withMessage, or of a class derived from one
// there. The std::type_info of a class with one base class is followed by a pointer to the
// base's (Itanium C++ ABI, 2.9.5); the standard exceptions have one, so that their
// std::type_info has the same virtual table.
func (c *crash) isStandard(header uint64) bool {
	info, ok := c.word(header - exceptionType)
	tables := []uint64{}
	for range maxBases {
		if !ok {
			return false
		}
		name, _ := c.word(info + 8)
		mangled, _ := c.text(name, -1)
		table, _ := c.word(info)
		if withMessage[strings.TrimPrefix(mangled, "*")] {
			return !slices.ContainsFunc(tables, func(t uint64) bool { return t != table })
		}
		tables = append(tables, table)
		info, ok = c.word(info + 16)
	}
	return false
}

// exceptionText returns the type of an exception, and its message where it is a standard one.
func (c *crash) exceptionText(header uint64) string {
	mangled, _ := c.typeName(header)
	text := symbol.Demangle("_ZTS" + mangled)
	text = strings.TrimPrefix(text, "typeinfo name for ")
	if !c.isStandard(header) {
		return text
	}
	if object, ok := c.word(header + exceptionObject + 8); ok {
		if message, ok := c.text(object, -1); ok {
			text += ": " + message
		}
	}
	return text
}
