// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"
	"strconv"
	"strings"
)

// TextOptions are the encoding of an expression, and the names that its text may use. The
// zero value is for DWARF5 on a little-endian machine with 64-bit addresses, in the 32-bit
// DWARF format, without names.
type TextOptions struct {
	Dialect     *Dialect // nil: DWARF5
	AddressSize int      // bytes of an address, 1 to 8; 0 is 8
	OffsetSize  int      // bytes of an offset in .debug_info: 4 or 8 by the DWARF format, as of an address in DWARF 2; 0 is 4
	Order       ByteOrder
	Names       Names // nil: registers and address spaces are numbers
}

// Names are an architecture's names of registers and address spaces. Names are
// found in any case.
type Names interface {
	// Register returns the DWARF number of the register with a name.
	Register(name string) (number uint64, ok bool)
	// RegisterName returns the name of a register.
	RegisterName(number uint64) (name string, ok bool)
	// Space returns the address space with a name.
	Space(name string) (space AddressSpace, ok bool)
	// SpaceName returns the name of an address space.
	SpaceName(space AddressSpace) (name string, ok bool)
}

// TextError is the reason why a text is no expression.
type TextError struct {
	Offset int    // in the text, in bytes
	Op     string // the name of the operation, as far as it is known
	Err    error  // the expected contents
}

// Error returns the place, the operation and the expected contents.
func (e *TextError) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("expression text: offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("expression text: offset %d: %s: %v", e.Offset, e.Op, e.Err)
}

// Unwrap returns the reason.
func (e *TextError) Unwrap() error { return e.Err }

// The bytes that separate words of the text form.
const (
	textBlanks     = " \t\r\n"
	textSeparators = textBlanks + ",;{}"
)

// registerWord returns a register as a word of the text: its name where that leads back to
// it, else its number. Registers of different widths may share a name, which then stands for
// one of them only.
func (o *TextOptions) registerWord(number uint64) string {
	if o.Names != nil {
		if name, ok := o.Names.RegisterName(number); ok && isNameWord(name) {
			if back, ok := o.Names.Register(name); ok && back == number {
				return name
			}
		}
	}
	return strconv.FormatUint(number, 10)
}

// spaceName returns the name of an address space where it leads back to it.
func (o *TextOptions) spaceName(space AddressSpace) (string, bool) {
	if o.Names == nil {
		return "", false
	}
	name, ok := o.Names.SpaceName(space)
	if !ok || !isNameWord(name) {
		return "", false
	}
	back, ok := o.Names.Space(name)
	return name, ok && back == space
}

// isNameWord reports whether a name can be a word of the text form that is not
// taken for a number.
func isNameWord(name string) bool {
	return name != "" && !isNumberWord(name) && !strings.ContainsAny(name, textSeparators)
}

// isNumberWord reports whether a word is meant as a number, even if not a valid
// one.
func isNumberWord(word string) bool {
	word = strings.TrimLeft(word, "+-")
	return word != "" && word[0] >= '0' && word[0] <= '9'
}
