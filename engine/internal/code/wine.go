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
// callerFrame finds that frame pointer from the CFA of the dispatcher, which is at the arguments: at 8 their address,
// at 16 their size.
const callerFrame = "bregx 59 0x328; deref; " +
	// Until the frame before has the stack pointer:
	"dup; plus_uconst 0xa0; deref; plus_uconst 0x88; deref; pick 2; plus_uconst 16; deref_size 4; minus; const1s -16; and; pick 2; plus_uconst 8; deref; eq; bra 7; " +
	"plus_uconst 0xa0; deref; skip -35; " +
	"plus_uconst 0x400; deref; "

// callbackRules are the rules of the dispatcher's caller.
var callbackRules = sync.OnceValue(func() (rules []cfi.RegisterRule) {
	for _, saved := range []struct {
		column uint64
		offset int
	}{{x86RBX, -8}, {x86RSI, -16}, {x86RDI, -24}, {x86RBP, 0}, {x86RSP, 16}, {12, -32}, {13, -40}, {14, -48}, {15, -56}, {x86RIP, 8}} {
		rule := cfi.Rule{Kind: cfi.Expression, Expr: mustParse(fmt.Sprintf("%sconsts %d; plus", callerFrame, saved.offset))}
		if saved.column == x86RSP {
			rule.Kind = cfi.ValExpression
		}
		rules = append(rules, cfi.RegisterRule{Column: saved.column, Rule: rule})
	}
	return rules
})

// withoutUnix are the rules where the memory of the code for Unix is not there, as in a dump of Windows: the code that
// made the system call. The system call itself has no frame of its own on the stack: the stack pointer that it had is the
// first above the arguments at which it can be in a function's entry.
var withoutUnix = sync.OnceValue(func() []cfi.RegisterRule {
	const stackPointer = "dup; plus_uconst 8; deref; swap; plus_uconst 16; deref_size 4; plus; plus_uconst 7; const1s -16; and; plus_uconst 8"
	undefined := cfi.Rule{Kind: cfi.Undefined}
	return []cfi.RegisterRule{
		{Column: x86RBX, Rule: undefined}, {Column: x86RSI, Rule: undefined}, {Column: x86RDI, Rule: undefined}, {Column: x86RBP, Rule: undefined},
		{Column: x86RSP, Rule: cfi.Rule{Kind: cfi.ValExpression, Expr: mustParse(stackPointer + "; plus_uconst 8")}},
		{Column: 12, Rule: undefined}, {Column: 13, Rule: undefined}, {Column: 14, Rule: undefined}, {Column: 15, Rule: undefined},
		{Column: x86RIP, Rule: cfi.Rule{Kind: cfi.Expression, Expr: mustParse(stackPointer)}},
	}
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
		through, around := *own, *own
		through.Rules, through.By, through.Dialect = withRules(own.Rules, callbackRules()), trace.ByRules, locexpr.Canonical
		around.Rules, around.By, around.Dialect = withRules(own.Rules, withoutUnix()), trace.ByScan, locexpr.Canonical
		around.Defaults = l.defaults
		through.Otherwise = &around
		return &through, nil
	}
	return nil, nil
}

// withRules returns a row with other rules.
func withRules(row *cfi.Row, rules []cfi.RegisterRule) *cfi.Row {
	other := *row
	other.Rules, other.ReturnAddress = rules, x86RIP
	return &other
}
