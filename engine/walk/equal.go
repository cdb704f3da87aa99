// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds out which of several functions a frame belongs to whose code a linker merged:
// the one that its caller's call site names (DW_AT_call_origin; DWARF 5, 3.4).

// equalFunction is one of several functions with the same code.
type equalFunction struct {
	dwarf.Entry
	isChosen bool // a call site names it
}

// function returns the frame's function among several with the same code; the zero Entry where
// there is only one.
func (f *frame) function() dwarf.Entry {
	if f.equal == nil {
		return dwarf.Entry{}
	}
	return f.equal.Entry
}

// described returns the function of the frame by its debug information; the zero Entry where
// none is described.
func (f *frame) described() (dwarf.Entry, error) {
	if f.equal != nil {
		return f.equal.Entry, nil
	}
	return f.module.Code.Function(f.lookup)
}

// chooseEqual finds out which of several functions with the same code a frame belongs to, by
// the call of its caller; nil: there is none. Where that does not tell, it is the one that the
// frame is named by.
func (w *walker) chooseEqual(f, caller *frame) error {
	f.equal = nil
	if f.module == nil || f.module.Code.DWARF() == nil {
		return nil
	}
	symbols, hasSymbols := w.stack.Frames[f.index].Symbols, !w.process.shared.options.NoSymbols
	if !hasSymbols || len(symbols) > 0 && symbols[len(symbols)-1].Equals > 0 {
		equals, err := f.module.Code.DWARF().Equals(f.lookup)
		if err != nil {
			return err
		}
		if len(equals) > 0 {
			f.equal = &equalFunction{Entry: equals[0]}
		}
	}
	if caller == nil || caller.module == nil || caller.isGuess() || caller.exact || w.process.tails.isPlain(framePair{f.pc, caller.pc, f.exact}) {
		return nil
	}
	callee, err := caller.calledFunction()
	if err != nil || callee.IsZero() {
		return err
	}
	return w.chooseCallee(f, callee)
}

// calledFunction returns the function that the call site of a frame calls; the zero Entry where
// it is not named, or depends on the choice of the frame's own function.
func (f *frame) calledFunction() (callee dwarf.Entry, err error) {
	functions := []dwarf.Entry{f.function()}
	if f.equal != nil && !f.equal.isChosen {
		if functions, err = f.module.Code.DWARF().Equals(f.lookup); err != nil {
			return callee, err
		}
	}
	return f.module.Code.Callee(f.offset, functions)
}

// chooseCallee chooses the called function as a frame's own, where it is one of several with
// the same code.
func (w *walker) chooseCallee(f *frame, callee dwarf.Entry) error {
	own, err := f.described()
	if err != nil || own.IsZero() {
		return err
	}
	function, err := f.module.Code.Called(f.lookup, own, callee)
	switch {
	case err != nil || function.IsZero():
		return err
	case !function.Is(own):
		w.choose(f, function)
	case f.equal != nil:
		f.equal.isChosen = true
	}
	return nil
}

// choose sets the function of a frame to one of several with the same code.
func (w *walker) choose(f *frame, function dwarf.Entry) {
	f.equal = &equalFunction{function, true}
	if !w.process.shared.options.NoSymbols {
		w.stack.Frames[f.index].Symbols = w.process.namesIn(f.module, f.named(), function)
	}
}

// namesIn returns the names at an address in one of several functions that have the same code.
func (p *Process) namesIn(m *code.Module, address uint64, function dwarf.Entry) []trace.Symbol {
	if function.IsZero() {
		return p.names(m, address)
	}
	return m.Code.NamesIn(address, p.shared.options.NoInlines, function)
}
