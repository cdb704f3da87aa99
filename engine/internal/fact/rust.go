// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// rustOverflow begins the names of the functions that find a fault in a guard page of a Rust
// program's stacks, and abort.
const rustOverflow = "std::sys::pal::unix::stack_overflow"

// rustReasons are functions of Rust's core library that panic for one reason.
var rustReasons = []struct{ function, is string }{
	{"core::panicking::panic_bounds_check", "index out of bounds"},
	{"core::option::unwrap_failed", "unwrap of None"},
	{"core::option::expect_failed", "expect of None"},
	{"core::result::unwrap_failed", "unwrap of an Err"},
	{"core::slice::index::", "slice index out of range"},
	{"core::panicking::panic_const::panic_const_div_by_zero", "division by zero"},
	{"core::panicking::panic_const::panic_const_add_overflow", "overflow of an addition"},
	{"core::panicking::panic_const::panic_const_sub_overflow", "overflow of a subtraction"},
	{"core::panicking::panic_const::panic_const_mul_overflow", "overflow of a multiplication"},
	{"core::cell::panic_already", "a RefCell is borrowed already"},
	{"core::panicking::assert_failed", "assertion failed"},
	{rustOverflow, overflowed},
	{"alloc::alloc::handle_alloc_error", "no memory is left"},
}

// rustPanic explains where a Rust program panicked, and why: by its message, or by the function
// of its core library that panicked for it.
func (c *crash) rustPanic() string {
	isPanic, reason := false, ""
	for i := range c.stack.Frames {
		f := &c.stack.Frames[i]
		for j := range f.Symbols {
			name := f.Symbols[j].Function
			if strings.HasPrefix(name, rustOverflow) || strings.HasSuffix(name, "rust_panic") || strings.HasPrefix(name, "core::panicking::panic") {
				isPanic = true
			}
			for _, r := range rustReasons {
				if reason == "" && strings.HasPrefix(name, r.function) {
					reason = r.is
				}
			}
		}
	}
	if !isPanic {
		return ""
	}
	if reason == overflowed {
		return overflowed + ": " + c.recursion() + "Rust's handler of the signal aborted" + c.whereInProgram()
	}
	if said := c.rustMessage(); said != "" {
		reason = said
	}
	if reason != "" {
		reason = ": " + reason
	}
	_, position := c.culprit(0)
	if position != "" {
		position = " at " + position
	}
	return "Rust panic" + reason + c.whereInProgram() + position
}

// maxPanicFrame bounds the words of a frame that are looked at.
const maxPanicFrame = 1 << 7

// rustMessage returns the message of a panic. Rust's library keeps it in a payload, to which
// the frame of the function that calls the hook has a wide pointer: the payload and a table of
// the functions of its type. Their names tell the table from other words.
func (c *crash) rustMessage() string {
	if c.machine == nil || c.machine.AddressBits != 64 {
		return ""
	}
	for i := 1; i < len(c.stack.Frames) && i < maxNamed; i++ {
		name := c.stack.Frames[i].Symbols
		if len(name) == 0 || !strings.HasSuffix(name[len(name)-1].Function, "panic_with_hook") {
			continue
		}
		words := c.frameWords(&c.stack.Frames[i-1], &c.stack.Frames[i])
		for j := 1; j < len(words); j++ {
			if text := c.payload(words[j-1], words[j]); text != "" {
				return text
			}
		}
	}
	return ""
}

// frameWords returns the words of the stack between a frame's callee and its caller.
func (c *crash) frameWords(callee, f *trace.Frame) (words []uint64) {
	if !callee.HasCFA || !f.HasCFA || f.CFA <= callee.CFA {
		return nil
	}
	b := make([]byte, 8*min((f.CFA-callee.CFA)/8, maxPanicFrame))
	n, _ := c.process.State().ReadMemory(locexpr.DefaultSpace, callee.CFA, b)
	for ; n >= 8; n -= 8 {
		words = append(words, integer(b[:8], c.order))
		b = b[8:]
	}
	return words
}

// payload returns the text of a payload of a panic, if the table of functions belongs to one.
// The table begins with the function that frees, the size and the alignment (Rust's
// library/core/src/ptr/metadata.rs).
func (c *crash) payload(data, table uint64) string {
	size, ok := c.word(table + 8)
	align, isThere := c.word(table + 16)
	if !ok || !isThere || align != 8 || size != 16 && size != 32 {
		return ""
	}
	for slot := uint64(3); slot < 7; slot++ {
		function, _ := c.word(table + 8*slot)
		name := c.nameOf(function)
		switch {
		case !strings.Contains(name, "::panic_handler::"):
		case size == 16 && strings.Contains(name, "StaticStrPayload"):
			return c.stringAt(data)
		case size == 32 && strings.Contains(name, "FormatStringPayload"):
			return c.formatted(data)
		}
	}
	return ""
}

// formatted returns the text of a FormatStringPayload: an Option<String>, whose capacity is out
// of range until the text is needed, and the arguments that it is formatted from. The compiler
// chooses their order.
func (c *crash) formatted(data uint64) string {
	for _, first := range []uint64{0, 8} {
		capacity, ok := c.word(data + first)
		length, isThere := c.word(data + first + 16)
		if ok && isThere && capacity < 1<<62 && length > 0 && length <= capacity {
			return c.stringAt(data + first + 8)
		}
	}
	return ""
}

// stringAt returns the text of a pointer and a length; "" where it is not UTF-8.
func (c *crash) stringAt(address uint64) string {
	start, ok := c.word(address)
	length, isThere := c.word(address + 8)
	if !ok || !isThere || length > 1<<30 {
		return ""
	}
	text, _ := c.text(start, int(length)) //nolint:gosec // bounded
	if length > maxText {
		text = strings.ToValidUTF8(text, "")
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// nameOf returns the name of the function that begins at an address; "" where none does.
func (c *crash) nameOf(address uint64) string {
	s := c.process.Segment(address)
	if s == nil {
		return ""
	}
	names := s.Module.AllNames(c.ctx, s.ObjectAddress(address), true)
	if len(names) == 0 {
		return ""
	}
	if f := &names[len(names)-1]; f.LinkageName != "" {
		return f.LinkageName + " " + f.Function
	}
	return names[len(names)-1].Function
}
