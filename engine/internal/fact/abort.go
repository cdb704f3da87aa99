// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// abort explains a SIGABRT by the run-time library that aborted, the innermost one first.
func (c *crash) abort() string {
	for i := range c.stack.Frames {
		switch linkageName(&c.stack.Frames[i]) {
		case "__cxa_pure_virtual":
			return "call of a pure virtual function" + c.whereInProgram()
		}
	}
	for _, explain := range []func(*crash) string{(*crash).sanitizer, (*crash).goMessage, (*crash).rustPanic, (*crash).terminate, (*crash).glibcMessage} {
		if text := explain(c); text != "" {
			return text
		}
	}
	for i := range c.stack.Frames {
		if name := linkageName(&c.stack.Frames[i]); name == "abort" || name == "__GI_abort" {
			return "abort() was called" + c.whereInProgram()
		}
		if i == maxNamed {
			break
		}
	}
	return c.sent()
}

// glibcKinds are the kinds of glibc's messages, by their beginning. The first that fits
// counts.
var glibcKinds = []struct{ begins, is string }{
	{"*** stack smashing", "stack smashing"}, {"*** buffer overflow", "buffer overflow"}, {"*** ", "check of glibc"},
	{"free()", "heap corruption"}, {"malloc", "heap corruption"}, {"realloc", "heap corruption"}, {"double free", "heap corruption"},
	{"munmap_chunk", "heap corruption"}, {"corrupted", "heap corruption"}, {"invalid", "heap corruption"}, {"sysmalloc", "heap corruption"},
	{"tcache", "heap corruption"}, {"mremap_chunk", "heap corruption"}, {"unaligned", "heap corruption"}, {"chunk", "heap corruption"},
}

// glibcMessage returns the message that glibc printed before it aborted: __abort_msg points to
// a struct abort_msg_s, an unsigned int followed by the text (glibc, include/stdlib.h).
func (c *crash) glibcMessage() string {
	variable, ok := c.glibcSymbol("__abort_msg")
	if !ok {
		return ""
	}
	record, ok := c.word(variable)
	if !ok || record == 0 {
		return ""
	}
	text, ok := c.text(record+4, -1)
	text = strings.TrimSpace(text)
	if !ok || text == "" {
		return ""
	}
	is := "glibc aborted"
	for _, k := range glibcKinds {
		if strings.HasPrefix(text, k.begins) {
			is = k.is
			break
		}
	}
	if strings.Contains(text, ": Assertion `") {
		return "assertion failed: " + text // which names the function
	}
	return is + ": " + text + c.whereInProgram()
}

// glibcSymbol returns the address of a variable of the C library: in the library, or in an
// executable that was linked statically.
func (c *crash) glibcSymbol(name string) (address uint64, ok bool) {
	for i, m := range c.process.Modules() {
		if m.Object == nil || i > 0 && !isLibC(m.Path) {
			continue
		}
		_ = m.Object.EachSymbol(func(s *object.Symbol) { // symbols that can be read are enough
			if plain, _, _ := strings.Cut(s.Name, "@"); !ok && plain == name && s.Section != 0 {
				address, ok = m.Start(s.Address)
			}
		})
		if ok {
			return address, true
		}
	}
	return 0, false
}

// goMessages are the functions of Go's runtime that end a program, with the parameter that has
// the reason.
var goMessages = map[string]struct{ parameter, is string }{
	"runtime.gopanic": {"e", "Go panic"}, "runtime.throw": {"s", "Go fatal error"}, "runtime.fatal": {"s", "Go fatal error"},
}

// goMessage returns why a Go program ended. Where a panic was raised while another one was
// handled, the innermost one counts.
func (c *crash) goMessage() string {
	for i := range c.stack.Frames {
		message, ok := goMessages[linkageName(&c.stack.Frames[i])]
		if !ok {
			continue
		}
		text := message.is
		if said := c.goText(i, message.parameter); said != "" {
			text += ": " + said
		}
		return text + c.whereInProgram()
	}
	return ""
}

// goReasons are functions of Go's runtime that panic for one reason.
var goReasons = map[string]string{
	"runtime.goPanicIndex": "index out of range", "runtime.goPanicIndexU": "index out of range", "runtime.panicBounds": "index out of range",
	"runtime.panicBounds64": "index out of range", "runtime.panicdivide": "integer divide by zero",
	"runtime.panicmem": "invalid memory address or nil pointer dereference", "runtime.panicshift": "negative shift amount",
	"runtime.panicdottypeE": "interface conversion", "runtime.panicdottypeI": "interface conversion", "runtime.panicnildottype": "interface conversion",
	"runtime.goPanicSliceAlen": "slice bounds out of range", "runtime.goPanicSliceAcap": "slice bounds out of range", "runtime.goPanicSliceB": "slice bounds out of range",
}

// goText returns the reason why a Go program ended, from the parameter of a function of the
// runtime. gopanic also keeps the argument of panic in p.arg, where the runtime replaces an
// error by its text before it prints it.
func (c *crash) goText(frame int, parameter string) string {
	if text := c.variable(frame, "p", "arg"); text != "" {
		return text
	}
	if text := c.variable(frame, parameter, ""); text != "" {
		return text
	}
	for i := frame; i < len(c.stack.Frames) && i < frame+4; i++ {
		for j := range c.stack.Frames[i].Symbols {
			if text := goReasons[c.stack.Frames[i].Symbols[j].Function]; text != "" {
				return text
			}
		}
	}
	return ""
}

// variable returns the text in a variable of a frame, or in a member of it; "" where it is not
// known, or no text.
func (c *crash) variable(frame int, name, member string) string {
	for i := range c.frames {
		if c.frames[i].Index() != c.frame+frame {
			continue
		}
		for _, level := range c.frames[i].Locals(c.ctx, trace.ValueLimits{Depth: 4, Elements: maxText}) {
			for j := range level {
				if v := &level[j]; v.Name == name && !v.IsShadowed {
					return textOf(&v.Value, member)
				}
			}
		}
	}
	return ""
}

// maxParts is how deep a text may lie within a value: an interface, a pointer and an
// error of package errors.
const maxParts = 4

// textOf returns the text of a value's member, or, without a member, the text that the value
// leads to.
func textOf(v *trace.Value, member string) string {
	if member != "" {
		for i := range v.Children {
			if v.Children[i].Name == member {
				return textOf(&v.Children[i], "")
			}
		}
		return ""
	}
	for range maxParts {
		if _, quoted, ok := strings.Cut(v.Text, `"`); ok && strings.HasSuffix(quoted, `"`) {
			return strings.TrimSuffix(quoted, `"`)
		}
		if len(v.Children) != 1 {
			break
		}
		v = &v.Children[0]
	}
	// A number, with its type before it.
	if text := v.Text[strings.LastIndexByte(v.Text, ' ')+1:]; isNumber(text) && len(v.Children) == 0 {
		return text
	}
	return ""
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && !strings.HasPrefix(text, "0x") // an address is no message
}
