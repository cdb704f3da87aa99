// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// floatingCodes are the si_code values of SIGFPE of floating-point arithmetic
// (include/uapi/asm-generic/siginfo.h).
var floatingCodes = map[int32]string{
	3: "floating-point division by zero", 4: "floating-point overflow", 5: "floating-point underflow",
	6: "inexact floating-point result", 7: "invalid floating-point operation",
}

// arithmetic explains a SIGFPE. x86 raises the same exception for a division by zero
// and for a quotient that is too large (Intel SDM volume 3, 6.15, #DE): the divisor
// tells.
func (c *crash) arithmetic() string {
	if text := floatingCodes[c.kept.Code]; text != "" {
		return withText(text, c.instruction.Text) + c.whereText()
	}
	if c.instruction.Kind != sdk.DivideInstruction {
		return ""
	}
	divisor, ok := c.divisor()
	switch {
	case !ok:
		return "integer division by zero, or a quotient that is too large: " + c.instruction.Text + c.whereText()
	case divisor == 0:
		return "integer division by zero: " + c.instruction.Text + c.whereText()
	}
	return "the quotient of an integer division is too large: " + c.instruction.Text + c.whereText()
}

// divisor returns the number that a division divides by.
func (c *crash) divisor() (uint64, bool) {
	if bits := c.instruction.RegisterBits; bits > 0 {
		v, ok := c.register(c.instruction.Register)
		return v & (1<<bits - 1), ok
	}
	if len(c.instruction.Accesses) == 0 {
		return 0, false
	}
	a := &c.instruction.Accesses[0]
	address, ok := c.effective(a)
	if !ok || a.Size == 0 || a.Size > 8 {
		return 0, false
	}
	word, ok := c.word(address)
	if a.Size < 8 {
		word &= 1<<(8*a.Size) - 1
	}
	return word, ok
}

// illegal explains a SIGILL.
func (c *crash) illegal() string {
	switch {
	case !c.isDecoded || c.instruction.Text == noInstruction:
		if code := c.codeBytes(); code != "" {
			return "illegal instruction: " + code + c.whereText()
		}
		return "illegal instruction" + c.whereText()
	case c.instruction.Kind == sdk.UndefinedInstruction:
		return compilersTrap + c.instruction.Text + c.whereText()
	case c.instruction.Kind == sdk.PrivilegedInstruction:
		return "privileged instruction: " + c.instruction.Text + c.whereText()
	}
	return "illegal instruction: " + c.instruction.Text + c.whereText()
}

// compilersTrap begins the text about an instruction that compilers write to end a program.
const compilersTrap = "trap that the compiler wrote: "

// noInstruction is the text of disassemblers for bytes that are no instruction.
const noInstruction = "(bad)"

// codeBytes returns the first bytes at the PC.
func (c *crash) codeBytes() string {
	code, _ := c.text(c.pc, 4)
	return fmt.Sprintf("% x", code)
}

// trap explains a SIGTRAP. The PC is at an executed breakpoint, or, on x86, after it.
func (c *crash) trap() string {
	switch text := c.breakpointText(); {
	case text != "":
		return "breakpoint: " + text + c.whereText()
	case c.instruction.Kind == sdk.UndefinedInstruction:
		return compilersTrap + c.instruction.Text + c.whereText()
	}
	return "trap" + c.whereText()
}

// breakpointText returns the breakpoint at the PC, or right before it; "" where there is none.
func (c *crash) breakpointText() string {
	if c.instruction.Kind == sdk.BreakpointInstruction || !c.hasPC {
		return c.instruction.Text
	}
	instruction, err := c.process.Instruction(c.ctx, c.thread, c.pc-1)
	if err == nil && instruction.Kind == sdk.BreakpointInstruction && instruction.Size == 1 {
		return instruction.Text
	}
	return ""
}

// systemCall explains a SIGSYS.
func (c *crash) systemCall() string {
	if k := c.kept.SystemCall; k != nil {
		return fmt.Sprintf("system call %d is refused by a seccomp filter", k.Number) + c.whereText()
	}
	return c.sent()
}

// sent names the sender of a signal; "" where the kernel sent it.
func (c *crash) sent() string {
	s := c.kept.Sender
	if s == nil || c.signal == "" {
		return ""
	}
	if c.isOwn() {
		return fmt.Sprintf("the process sent %s to itself", c.signal) + c.whereInProgram()
	}
	return c.signal + " was sent by " + s.String()
}

// sentByOther names the sender of a signal where it is another process.
func (c *crash) sentByOther() string {
	if c.isOwn() {
		return ""
	}
	return c.sent()
}

// stop explains why a wave stopped, as its hardware has it.
func (c *crash) stop() string {
	s := c.thread.Stop
	if c.thread.Wave == nil || s == nil {
		return ""
	}
	text := stops[s.Reason]
	if text == "" {
		return ""
	}
	if s.HasTrapID {
		text += fmt.Sprintf(" %d", s.TrapID)
	}
	if words := plainWords(text, s.Details); words != "" {
		text += " (" + words + ")"
	}
	if s.HasAddress {
		text += fmt.Sprintf(" at %#x", s.Address)
		if s.Address < nullEnd {
			text = "null pointer, " + text
		}
	}
	if s.HasPCExact && !s.PCExact {
		return text + c.whereText() + c.whichLane() + " (PC not exact)"
	}
	if c.isDecoded && s.Reason == sdk.StopIllegalInstruction {
		text += ": " + c.instruction.Text
	}
	return text + c.whereText() + c.whichLane()
}

// plainWords has the words that a stop's details add: the first one, where that is no name of a bit or a
// constant and the text does not have it, and the sentence about the instruction ("it loads from ...").
func plainWords(text string, details []string) string {
	var words []string
	for i, d := range details {
		isFirst := i == 0 && strings.ToUpper(d) != d && !strings.Contains(text, d)
		if isFirst || strings.HasPrefix(d, "it ") {
			words = append(words, d)
		}
	}
	return strings.Join(words, ": ")
}

// whichLane names the kernel and the lane that failed, where the target tells the lane: as the thread
// is named.
func (c *crash) whichLane() string {
	th := c.thread
	if len(th.LaneStates) == 0 {
		return ""
	}
	text := ""
	kernel := th.Wave.Kernel
	if kernel != "" && (len(c.stack.Frames) == 0 || linkageName(&c.stack.Frames[0]) != kernel) {
		text += ", kernel " + funcname.Of(&trace.Symbol{Function: symbol.Demangle(kernel), LinkageName: kernel})
	}
	if th.Name != "" {
		text += ", " + th.Name
	}
	return text
}

// stops are the texts for the reasons why waves stop.
var stops = map[string]string{
	sdk.StopBreakpoint: "a wave hit a breakpoint", sdk.StopWatchpoint: "a wave hit a watchpoint", sdk.StopTrap: "a wave executed trap",
	sdk.StopMemoryFault: "a wave accessed memory that is not mapped for it", sdk.StopAddressError: "a wave accessed an invalid address",
	sdk.StopIllegalInstruction: "a wave executed an illegal instruction", sdk.StopMathError: "a wave failed in arithmetic",
	sdk.StopECCError: "a wave read memory that lost its contents", sdk.StopFatalHalt: "the hardware halted a wave",
	sdk.StopAssert: "an assertion failed in a wave", sdk.StopStackOverflow: "the stack of a wave overflowed", sdk.StopException: "an exception stopped a wave",
}
