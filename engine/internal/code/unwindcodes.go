// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file has the rows of PE files ("x64 exception handling", "ARM64 exception handling"). The unwind codes of .pdata and
// .xdata come before DWARF: Windows walks by nothing else, so a program does not run without
// right ones, and the code is read to find epilogues, which compilers' DWARF leaves out. But the
// unwind codes of Go's linker claim a frame where functions call for a larger stack, behind
// their code: for its files they come last.

// pe returns the PE file of the object if its unwind information can be read; nil otherwise.
func (o *Object) pe() *pe.File {
	if o.File == nil || !o.File.IsPE() || !o.File.PE().HasUnwindCodes() {
		return nil
	}
	return o.File.PE()
}

// peRules returns the default rules of a PE file. Go's functions preserve no registers.
func peRules(f *pe.File) *RuleSet {
	rules := f.DefaultRules()
	if f.IsGo() {
		for i := range rules {
			if rules[i].Rule.Kind == cfi.SameValue {
				rules[i].Rule.Kind = cfi.Undefined
			}
		}
	}
	return NewRuleSet(rules)
}

// unwindCodes are the unwind codes of a PE file.
type unwindCodes struct{ file *pe.File }

func newUnwindCodes(o *Object) RowSource {
	f := o.pe()
	switch {
	case f == nil:
		return nil
	case f.IsGo():
		return functionBounds{f}
	}
	return unwindCodes{f}
}

// foreignCode gives no rows for code of hybrid files that the file's machine does not execute, as that
// of ARM64EC in a file for x86-64: other sources would take it for the machine's.
type foreignCode struct {
	file *pe.File
	name string
}

func newForeignCode(o *Object) RowSource {
	if o.File == nil || !o.File.IsPE() || o.File.PE().Hybrid() == "" {
		return nil
	}
	return foreignCode{o.File.PE(), o.Name()}
}

func (s foreignCode) Row(_ context.Context, l *Lookup) (*Row, error) {
	kind := s.file.ForeignCode(l.Address)
	if kind == "" {
		return nil, nil
	}
	l.problem("%s is %s; the code there that is %s is not unwound", s.name, s.file.Hybrid(), kind)
	return nil, &NoRow{Reasons: []string{"the code is " + kind}, isFinal: true}
}

// functionBounds gives no rows, but the bounds of functions by .pdata, to sources that read their
// code.
type functionBounds struct{ file *pe.File }

func (s functionBounds) Row(_ context.Context, l *Lookup) (*Row, error) {
	if fn, isListed, err := s.file.FunctionAt(l.Address); err == nil && isListed {
		l.bound(peBounds(&fn))
	}
	return nil, nil
}

// newGoUnwindCodes returns the unwind codes of Go's files.
func newGoUnwindCodes(o *Object) RowSource {
	f := o.pe()
	if f == nil || !f.IsGo() {
		return nil
	}
	return unwindCodes{f}
}

func (s unwindCodes) Row(_ context.Context, l *Lookup) (*Row, error) {
	fn, isListed, err := s.file.FunctionAt(l.Address)
	if err != nil {
		l.problem("%v", err)
		return nil, noRow(err.Error())
	}
	if !isListed {
		return nil, nil
	}
	l.bound(peBounds(&fn))
	var row pe.Row
	if err := s.file.RowAt(l.Address, &row); err != nil {
		l.problem("%v", err)
		return nil, noRow(err.Error())
	}
	if row.IsCodeMissing && l.IsExact {
		return nil, noRow("the function's code is not there to look for epilogues in")
	}
	return &Row{Rules: &row.Row, By: trace.ByPE, Otherwise: s.withoutFrameRegister(l, &fn)}, nil
}

// withoutFrameRegister returns the row of a function whose frame register is not known, as where a frame further in is
// a guess; nil where it has none.
func (s unwindCodes) withoutFrameRegister(l *Lookup, fn *pe.Function) *Row {
	var fixed pe.Row
	if has, err := s.file.FixedBody(*fn, &fixed); l.IsExact || err != nil || !has {
		return nil
	}
	return &Row{Rules: &fixed.Row, By: trace.ByScan}
}

// leaves are functions of a PE file that .pdata does not list: by the document they change
// neither the stack pointer nor the registers that they preserve. That is true of code that is
// about to execute: a function that called another is no leaf, listed or not.
type leaves struct{ file *pe.File }

func newLeaves(o *Object) RowSource {
	f := o.pe()
	if f == nil {
		return nil
	}
	return leaves{f}
}

func (s leaves) Row(_ context.Context, l *Lookup) (*Row, error) {
	if !l.IsExact {
		return nil, noRow("no function of .pdata has the return address")
	}
	var row pe.Row
	switch err := s.file.RowAt(l.Address, &row); {
	case errors.Is(err, pe.ErrNoRow):
		return nil, nil
	case err != nil || row.Part != pe.Leaf:
		return nil, nil //nolint:nilerr // the unwind codes have reported it
	}
	return &Row{Rules: &row.Row, By: trace.ByPE}, nil
}
