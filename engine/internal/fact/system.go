// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/msvcname"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// exceptions are the explainers of exceptions of Windows and macOS, by the beginnings of the
// names in reports: the first that fits counts.
var exceptions = []struct {
	begins  string
	explain []func(*crash) string
}{
	{"EXCEPTION_ACCESS_VIOLATION", []func(*crash) string{(*crash).assertion, (*crash).overflow, (*crash).execution, (*crash).access}},
	{"EXCEPTION_STACK_OVERFLOW", []func(*crash) string{(*crash).stackLimit}},
	{"EXCEPTION_IN_PAGE_ERROR", []func(*crash) string{(*crash).inPage}},
	{"EXCEPTION_INT_", []func(*crash) string{(*crash).arithmetic}},
	{"EXCEPTION_FLT_DIVIDE_BY_ZERO", []func(*crash) string{floating("floating-point division by zero")}},
	{"EXCEPTION_FLT_OVERFLOW", []func(*crash) string{floating("floating-point overflow")}},
	{"EXCEPTION_FLT_UNDERFLOW", []func(*crash) string{floating("floating-point underflow")}},
	{"EXCEPTION_FLT_INEXACT_RESULT", []func(*crash) string{floating("inexact floating-point result")}},
	{"EXCEPTION_FLT_", []func(*crash) string{floating("invalid floating-point operation")}},
	{"EXCEPTION_ILLEGAL_INSTRUCTION", []func(*crash) string{(*crash).execution, (*crash).illegal}},
	{"EXCEPTION_PRIV_INSTRUCTION", []func(*crash) string{(*crash).illegal}},
	{"EXCEPTION_BREAKPOINT", []func(*crash) string{(*crash).assertion, (*crash).breakpoint}},
	{"EXCEPTION_STACK_BUFFER_OVERRUN", []func(*crash) string{(*crash).assertion, (*crash).fastFail}},
	{"Unhandled C++ Exception", []func(*crash) string{(*crash).windowsException}},
	{"STATUS_HEAP_CORRUPTION", []func(*crash) string{says("heap corruption, which Windows' heap found")}},
	{"EXC_BAD_ACCESS", []func(*crash) string{(*crash).message, (*crash).overflow, (*crash).execution, (*crash).access}},
	{"EXC_BAD_INSTRUCTION", []func(*crash) string{(*crash).message, (*crash).execution, (*crash).illegal}},
	{"EXC_ARITHMETIC", []func(*crash) string{(*crash).arithmetic}},
	{"EXC_BREAKPOINT", []func(*crash) string{(*crash).message, (*crash).breakpoint}},
	{"EXC_", []func(*crash) string{(*crash).message}},
}

// assertion describes the assertion that did not hold, as the target has it.
func (c *crash) assertion() string {
	text := c.kept.Assertion
	switch {
	case text == "":
		return ""
	case strings.HasPrefix(text, "a pure virtual function"), strings.HasPrefix(text, "an invalid parameter"):
		return text + c.whereInProgram()
	}
	return "assertion failed: " + text
}

// message returns the message that a library of macOS left for the report of a crash.
func (c *crash) message() string {
	f := c.process.Info().Facts
	if f == nil {
		return ""
	}
	for i := range f.Messages {
		if text := strings.TrimSpace(f.Messages[i].Text); text != "" {
			line, _, _ := strings.Cut(text, "\n")
			return "the program said: " + line + c.whereInProgram()
		}
	}
	return ""
}

// stackLimit explains an exception that itself means that the stack is used up.
func (c *crash) stackLimit() string {
	for i := range c.instruction.Accesses {
		a := &c.instruction.Accesses[i]
		if address, ok := c.effective(a); ok && c.isNear(address) {
			return overflowed + ": " + c.recursion() + c.whatDid(a, address)
		}
	}
	if cycle := strings.TrimSuffix(c.recursion(), "; "); cycle != "" {
		return overflowed + ": " + cycle
	}
	return overflowed + c.whereText()
}

// inPage explains memory that is mapped and could not be read from its file.
func (c *crash) inPage() string {
	a := c.failing(c.address)
	text := "the contents of mapped memory could not be read"
	if _, mapping, _ := c.around(c.address); mapping != nil {
		text += ofFile(mapping)
	}
	return text + ": " + c.whatDid(a, c.address)
}

// floating explains an exception of floating-point arithmetic.
func floating(what string) func(*crash) string {
	return func(c *crash) string {
		return withText(what, c.instruction.Text) + c.whereText()
	}
}

// breakpoint explains a breakpoint of a system where the PC stays at it.
func (c *crash) breakpoint() string {
	if c.instruction.Kind == sdk.BreakpointInstruction {
		return "breakpoint: " + c.instruction.Text + c.whereText()
	}
	return "breakpoint" + c.whereText()
}

// fastFails are the meanings of the codes of __fastfail that programs meet (winnt.h,
// FAST_FAIL_*).
var fastFails = map[uint64]string{
	0: "stack smashing: the /GS check failed", 2: "stack smashing: the /GS check failed", 3: "a linked list is corrupt",
	4: "the stack pointer is not in the stack", 5: "an invalid argument was passed to a function of the C library",
	7: "abort() was called", 8: "an index is out of range", 10: "Control Flow Guard refused an indirect call",
	11: "Control Flow Guard's check of writing failed", 21: "the chain of exception handlers is corrupt", 29: "a balanced tree is corrupt",
	50: "heap corruption, which Windows' heap found", 57: "the shadow stack has another return address",
}

// fastFail explains an end by __fastfail.
func (c *crash) fastFail() string {
	if len(c.kept.Parameters) == 0 {
		return ""
	}
	code := c.kept.Parameters[0] & (1<<32 - 1)
	if text := fastFails[code]; text != "" {
		return text + c.whereInProgram()
	}
	return fmt.Sprintf("the program ended itself by fast fail %d", code) + c.whereInProgram()
}

// cxxThrow are the parameters of an exception of Visual C++ on 64-bit Windows: a magic
// number, the object, the ThrowInfo and the address that its offsets count from
// (ehdata.h).
const (
	cxxThrow          = 4
	maxCatchableTypes = 64
)

// windowsException names the type of a C++ exception of Windows that was not caught. The
// ThrowInfo leads to the list of types by which the object can be caught, the first of which is
// its own.
func (c *crash) windowsException() string {
	const text = "C++ exception that nobody caught"
	p := c.kept.Parameters
	if len(p) < cxxThrow || c.wordSize() != 8 || p[2] == 0 {
		return text + c.whereInProgram()
	}
	base := p[3]
	types, ok := c.half(p[2] + 12)
	if !ok {
		return text + c.whereInProgram()
	}
	count, ok := c.half(base + types)
	first, isThere := c.half(base + types + 4)
	if !ok || !isThere || count == 0 || count > maxCatchableTypes {
		return text + c.whereInProgram()
	}
	descriptor, ok := c.half(base + first + 4)
	if !ok {
		return text + c.whereInProgram()
	}
	name, ok := c.text(base+descriptor+16, -1)
	if !ok || name == "" {
		return text + c.whereInProgram()
	}
	return text + ": " + typeOfDescriptor(name) + c.whereInProgram()
}

// typeOfDescriptor returns a type by the name in its descriptor: ".?AVerror@app@@" is
// app::error. Other names are returned unchanged.
func typeOfDescriptor(name string) string {
	readable, ok := msvcname.Type(name)
	if !ok {
		return name
	}
	for _, keyword := range []string{"class ", "struct ", "union ", "enum "} {
		readable = strings.TrimPrefix(readable, keyword)
	}
	return readable
}

// half reads 32 bits of the target's memory.
func (c *crash) half(address uint64) (uint64, bool) {
	text, ok := c.text(address, 4)
	return integer([]byte(text), c.order), ok
}

// verbs are the verbs for the kinds of accesses that targets record.
var verbs = map[string]string{trace.AccessRead: "reads", trace.AccessWrite: "writes", trace.AccessExecute: "executes"}
