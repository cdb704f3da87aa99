// SPDX-License-Identifier: Apache-2.0

package wine

import (
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// This file has the rules of the functions of x86-64 at which Wine enters the code of Windows. Its code for Unix jumps
// to them, so that unwind codes do not lead back to where it was.

// Registers of x86-64 by their numbers in DWARF.
const (
	x86RDX, x86RCX, x86RBX, x86RSI, x86RDI, x86RBP, x86RSP = 1, 2, 3, 4, 5, 6, 7
	x86RIP                                                 = 16

	// ReturnAddress is the column of the return address in the rules of callers.
	ReturnAddress = x86RIP
)

// ExceptionRow returns the row of KiUserExceptionDispatcher: the stack pointer is at the CONTEXT of the code that raised the
// exception (winnt.h).
var ExceptionRow = sync.OnceValue(func() cfi.Row {
	return codeflow.SignalRow(x86RSP, x86RIP, []codeflow.SavedRegister{
		{Register: 0, Offset: 0x78}, {Register: x86RDX, Offset: 0x88}, {Register: x86RCX, Offset: 0x80}, {Register: x86RBX, Offset: 0x90},
		{Register: x86RSI, Offset: 0xa8}, {Register: x86RDI, Offset: 0xb0}, {Register: x86RBP, Offset: 0xa0}, {Register: x86RSP, Offset: 0x98},
		{Register: 8, Offset: 0xb8}, {Register: 9, Offset: 0xc0}, {Register: 10, Offset: 0xc8}, {Register: 11, Offset: 0xd0},
		{Register: 12, Offset: 0xd8}, {Register: 13, Offset: 0xe0}, {Register: 14, Offset: 0xe8}, {Register: 15, Offset: 0xf0},
		{Register: x86RIP, Offset: 0xf8},
	})
})

// A callback leads from KiUserCallbackDispatcher to the function of Unix that called back (KeUserModeCallback). It has
// put the arguments of the callback below the stack pointer that the system call had, which tells the frame of the
// system call among those that the environment block of the thread leads to (struct syscall_frame). The frame
// that call_user_mode_callback put before that one has that function's frame pointer, below which it saved registers.
// The function's own call frame information is wrong in Wine 8.0.
//
// calledFrame finds the frame of the callback from the CFA of the dispatcher, which is at the arguments: at 8 their
// address, at 16 their size. At 0xa0 it has the address of the frame of the system call.
const calledFrame = "bregx 59 0x328; deref; " +
	// Until the frame before has the stack pointer:
	"dup; plus_uconst 0xa0; deref; plus_uconst 0x88; deref; pick 2; plus_uconst 16; deref_size 4; minus; const1s -16; and; pick 2; plus_uconst 8; deref; eq; bra 7; " +
	"plus_uconst 0xa0; deref; skip -35; "

// A savedAt is the place of a register from an address.
type savedAt struct {
	column uint64
	offset int
}

// rulesFrom are the rules of registers that are saved around the address that an expression finds. isValue: the stack
// pointer is the address there, not saved.
func rulesFrom(frame string, isValue bool, saved []savedAt) (rules []cfi.RegisterRule) {
	for _, at := range saved {
		rule := cfi.Rule{Kind: cfi.Expression, Expr: mustParse(fmt.Sprintf("%sconsts %d; plus", frame, at.offset))}
		if isValue && at.column == x86RSP {
			rule.Kind = cfi.ValExpression
		}
		rules = append(rules, cfi.RegisterRule{Column: at.column, Rule: rule})
	}
	return rules
}

// UnixCaller returns the rules of KeUserModeCallback, by what call_user_mode_callback saved around its frame pointer.
var UnixCaller = sync.OnceValue(func() []cfi.RegisterRule {
	return rulesFrom(calledFrame+"plus_uconst 0x400; deref; ", true, []savedAt{
		{x86RBX, -8}, {x86RSI, -16}, {x86RDI, -24}, {x86RBP, 0}, {x86RSP, 16}, {12, -32}, {13, -40}, {14, -48}, {15, -56}, {x86RIP, 8},
	})
})

// WindowsCaller returns the rules of the function that made the system call, by the frame of that.
var WindowsCaller = sync.OnceValue(func() []cfi.RegisterRule {
	return rulesFrom(calledFrame+"plus_uconst 0xa0; deref; ", false, []savedAt{
		{x86RBX, 0x8}, {x86RSI, 0x20}, {x86RDI, 0x28}, {x86RBP, 0x98}, {x86RSP, 0x88}, {12, 0x50}, {13, 0x58}, {14, 0x60}, {15, 0x68}, {x86RIP, 0x70},
	})
})

// GuessedCaller returns the rules of that function's caller, where nothing but the stack of Windows is there: the stack
// pointer of the system call is the first above the arguments that it can be at the entry of a function.
var GuessedCaller = sync.OnceValue(func() []cfi.RegisterRule {
	const stackPointer = "dup; plus_uconst 8; deref; swap; plus_uconst 16; deref_size 4; plus; plus_uconst 7; const1s -16; and; plus_uconst 8; "
	rules := rulesFrom(stackPointer, true, []savedAt{{x86RBX, 0}, {x86RSI, 0}, {x86RDI, 0}, {x86RBP, 0}, {x86RSP, 8}, {12, 0}, {13, 0}, {14, 0}, {15, 0}, {x86RIP, 0}})
	for i := range rules {
		if c := rules[i].Column; c != x86RSP && c != x86RIP {
			rules[i].Rule = cfi.Rule{Kind: cfi.Undefined}
		}
	}
	return rules
})

// mustParse assembles an expression of this file.
func mustParse(text string) []byte {
	expr, err := locexpr.Parse(text, locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		panic(err) // no text is user-provided
	}
	return expr
}
