// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object/pe"
)

// This file has the rows of PE files ("x64 exception handling"). The unwind codes of .pdata
// and .xdata are asked before DWARF: Windows walks by nothing else, so a program does not run
// without right ones, and code is read for where an epilogue is, which compilers' DWARF leaves
// out. But those of Go's linker say that a frame is set up where functions call for a larger
// stack, behind their code: of its files they are asked last.

// pe is the PE file that the object is, where its unwind information is read; nil otherwise.
func (o *Object) pe() *pe.File {
	if o.File == nil || !o.File.IsPE() || o.File.PE().Machine() != pe.MachineX86_64 {
		return nil
	}
	return o.File.PE()
}

// peRules are what holds in a PE file for registers that a row does not mention. Go's
// functions preserve none.
func peRules(f *pe.File) *RuleSet {
	rules := pe.DefaultRules()
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

// functionBounds are where functions lie by .pdata, for sources that read their code.
type functionBounds struct{ file *pe.File }

func (s functionBounds) Row(_ context.Context, at *Lookup) (*Row, error) {
	if fn, isListed, err := s.file.FunctionAt(at.Address); err == nil && isListed && !at.Bounds.IsKnown {
		at.Bounds = Bounds{Start: fn.Start, End: fn.End, IsKnown: true}
	}
	return nil, nil
}

// newGoUnwindCodes are the unwind codes of Go's files.
func newGoUnwindCodes(o *Object) RowSource {
	f := o.pe()
	if f == nil || !f.IsGo() {
		return nil
	}
	return unwindCodes{f}
}

func (s unwindCodes) Row(_ context.Context, at *Lookup) (*Row, error) {
	fn, isListed, err := s.file.FunctionAt(at.Address)
	if err != nil {
		at.problem("%v", err)
		return nil, noRow(err.Error())
	}
	if !isListed {
		return nil, nil
	}
	if !at.Bounds.IsKnown {
		at.Bounds = Bounds{Start: fn.Start, End: fn.End, IsKnown: true}
	}
	var row pe.Row
	if err := s.file.RowAt(at.Address, &row); err != nil {
		at.problem("%v", err)
		return nil, noRow(err.Error())
	}
	if row.IsCodeMissing && at.IsExact {
		return nil, noRow("the function's code is not there to look for epilogues in")
	}
	return &Row{Rules: &row.Row, By: ByPE}, nil
}

// leaves are functions of a PE file that .pdata does not list: by the document they leave
// the stack pointer and what they preserve alone. That holds of code that is about to execute: what
// called something is no leaf, whatever lists it.
type leaves struct{ file *pe.File }

func newLeaves(o *Object) RowSource {
	f := o.pe()
	if f == nil {
		return nil
	}
	return leaves{f}
}

func (s leaves) Row(_ context.Context, at *Lookup) (*Row, error) {
	if !at.IsExact {
		return nil, noRow("no function of .pdata has the return address")
	}
	var row pe.Row
	switch err := s.file.RowAt(at.Address, &row); {
	case errors.Is(err, pe.ErrNoRow):
		return nil, nil
	case err != nil || row.Part != pe.Leaf:
		return nil, nil //nolint:nilerr // the unwind codes have said so
	}
	return &Row{Rules: &row.Row, By: ByPE}, nil
}
