// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// This file has the rows of the functions at which Wine enters the code of Windows. Its code for Unix jumps to them, so
// that unwind codes do not lead back to where it was.

// Registers of x86-64 by their numbers in DWARF.
const (
	x86RDX, x86RCX, x86RBX, x86RSI, x86RDI, x86RBP, x86RSP = 1, 2, 3, 4, 5, 6, 7
	x86RIP                                                 = 16
)

// contextRow is the row of KiUserExceptionDispatcher: the stack pointer is at the CONTEXT of the code that raised the
// exception (winnt.h).
var contextRow = sync.OnceValue(func() cfi.Row {
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

// unixCaller are the rules of KeUserModeCallback, by what call_user_mode_callback saved around its frame pointer.
var unixCaller = sync.OnceValue(func() []cfi.RegisterRule {
	return rulesFrom(calledFrame+"plus_uconst 0x400; deref; ", true, []savedAt{
		{x86RBX, -8}, {x86RSI, -16}, {x86RDI, -24}, {x86RBP, 0}, {x86RSP, 16}, {12, -32}, {13, -40}, {14, -48}, {15, -56}, {x86RIP, 8},
	})
})

// windowsCaller are the rules of the function that made the system call, by the frame of that.
var windowsCaller = sync.OnceValue(func() []cfi.RegisterRule {
	return rulesFrom(calledFrame+"plus_uconst 0xa0; deref; ", false, []savedAt{
		{x86RBX, 0x8}, {x86RSI, 0x20}, {x86RDI, 0x28}, {x86RBP, 0x98}, {x86RSP, 0x88}, {12, 0x50}, {13, 0x58}, {14, 0x60}, {15, 0x68}, {x86RIP, 0x70},
	})
})

// guessedCaller are the rules of that function's caller, where nothing but the stack of Windows is there: the stack
// pointer of the system call is the first above the arguments that it can be at the entry of a function.
var guessedCaller = sync.OnceValue(func() []cfi.RegisterRule {
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

// wineEntries are the functions of Wine's ntdll.dll at which it enters the code of Windows.
type wineEntries struct {
	file                *pe.File
	callback, exception pe.Function
}

// newWineEntries returns the entries of a file that is Wine's ntdll.dll: that of Windows does not export the version.
func newWineEntries(o *Object) RowSource {
	f := o.pe()
	if f == nil || !strings.EqualFold(object.LastPart(o.Name()), "ntdll.dll") || !o.File.MayExport("wine_get_version") {
		return nil
	}
	exports, err := f.Exports()
	if err != nil {
		return nil // the reader of names reports it
	}
	s := wineEntries{file: f}
	for i := range exports {
		into := map[string]*pe.Function{"KiUserCallbackDispatcher": &s.callback, "KiUserExceptionDispatcher": &s.exception}[exports[i].Name]
		if fn, ok, err := f.FunctionAt(exports[i].Address); into != nil && ok && err == nil {
			*into = fn
		}
	}
	return s
}

func (s wineEntries) Row(ctx context.Context, l *Lookup) (*Row, error) {
	isIn := func(fn *pe.Function) bool { return l.Address >= fn.Start && l.Address < fn.End }
	switch {
	case isIn(&s.exception):
		row := contextRow()
		row.Start, row.End = s.exception.Start, s.exception.End
		l.bound(peBounds(&s.exception))
		return &Row{Rules: &row, By: trace.ByRules, Dialect: locexpr.Canonical}, nil
	case isIn(&s.callback):
		own, err := unwindCodes{s.file}.Row(ctx, l)
		if err != nil || own == nil || own.Rules.SignalFrame {
			return own, err // later versions have the frame of an interrupt, which leads to the code of Windows
		}
		guessed := otherCaller(own, trace.ByScan, guessedCaller(), nil)
		windows := otherCaller(own, trace.ByRules, windowsCaller(), guessed)
		return otherCaller(own, trace.ByRules, unixCaller(), windows), nil
	}
	return nil, nil
}

// otherCaller returns a row that leads to another caller, and to the one of the row otherwise where that is not there.
func otherCaller(row *Row, found trace.FoundBy, rules []cfi.RegisterRule, otherwise *Row) *Row {
	other, changed := *row, *row.Rules
	changed.Rules, changed.ReturnAddress = rules, x86RIP
	other.Rules, other.By, other.Dialect, other.Otherwise, other.ToModule = &changed, found, locexpr.Canonical, otherwise, otherwise != nil
	return &other
}
