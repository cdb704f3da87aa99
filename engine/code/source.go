// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// rowSources make the sources of an object's rows, in the order in which they are
// asked (design of the walk: the object's rows that override call frame
// information, call frame information, the object's other rows, rows that are
// read from the code). The first that has a row gives it. An object that has
// nothing for a source to read has nil for it.
var rowSources = []func(*Object) RowSource{
	newTrampolines,    // functions whose call frame information is not to be believed
	newStackSwitches,  // functions that call on another stack
	newOverridingRows, // of the plugin, above call frame information
	newUnwindCodes,    // .pdata, .xdata
	newCheckedFrames,  // code that contradicts call frame information
	newCallFrames,     // .eh_frame, .debug_frame
	newBreakpadRows,   // STACK CFI of a symbol file
	newSFrames,        // .sframe
	newGoDepths,       // .gopclntab
	newOtherRows,      // of the plugin
	newBeginnings,     // code that nothing called
	newCodeReader,     // rows that the plugin reads from the code
	newGoUnwindCodes,  // .pdata, .xdata of Go
	newLeaves,         // functions that .pdata leaves out
}

// A RowSource is a place where rows of a code object come from.
type RowSource interface {
	// Row answers a lookup with a row. A source that knows nothing of the address
	// answers nil without an error. One that should know it says why it does not by
	// a *NoRow, and the next source is asked. Any other error ends the lookup.
	//
	// Of the row it sets Rules and By; what Lookup says is put in where the source
	// leaves it out.
	Row(ctx context.Context, at *Lookup) (*Row, error)
}

// A Lookup is an address whose row is asked for.
type Lookup struct {
	PC      uint64 // an address of the object
	IsExact bool   // the code there is about to execute; else it is behind a call
	// Address is what rows are looked up by: PC, or for one behind a call an
	// address inside the call.
	Address uint64
	// Function is what the plugin said about the function at Address; nil: nothing.
	Function *sdk.Function
	// Bounds are those of the function, where a source that was asked before has
	// them.
	Bounds Bounds

	code       *cfi.Row // read from the code, complete; nil: none that call frame information is held against
	outermost  string
	defaults   *RuleSet
	isInjected bool
	machine    *sdk.Description
	problems   []string
}

// problem adds a sentence to the problems of the modules of which the address is
// asked for.
func (at *Lookup) problem(format string, args ...any) {
	at.problems = append(at.problems, fmt.Sprintf(format, args...))
}

// lookup is the lookup of an address.
func (o *Object) lookup(pc uint64, isExact bool) *Lookup {
	at := &Lookup{PC: pc, IsExact: isExact, Address: pc, defaults: o.defaults, machine: o.machine.Description}
	if !isExact {
		at.Address -= uint64(o.machine.Description.CallDistance)
	}
	f := o.function(at.Address)
	at.Function = f
	if f == nil {
		return at
	}
	if rules := o.special[f]; rules != nil {
		at.defaults = rules
	}
	switch f.Kind {
	case sdk.InjectedFunction:
		at.isInjected = true
	case sdk.OutermostFunction:
		at.outermost = nameOf(f) + " has no caller"
	case sdk.KernelFunction:
		at.outermost = nameOf(f) + " is a kernel"
	}
	return at
}

// nameOf is a plugin's function in a sentence.
func nameOf(f *sdk.Function) string {
	if f.Name == "" {
		return "the function"
	}
	return f.Name
}

// complete puts into a row what the lookup says.
func (at *Lookup) complete(r *Row) *Row {
	if r.Defaults == nil {
		r.Defaults = at.defaults
	}
	if r.Outermost == "" {
		r.Outermost = at.outermost
	}
	if r.IsInjected = at.isInjected; r.IsInjected && r.Rules != nil {
		r.Rules = injectedRow(r.Rules, at.machine)
	}
	return r
}

// injectedRow is the row of a function that a signal handler made what it interrupted call.
// Where a call leaves its return address in a register, that had a value of the function that
// was interrupted before, and the handler has pushed it: the row gets the PC in the PC's own
// column, and the rules of the register and of the stack pointer are left to the default
// rules of the function.
func injectedRow(row *cfi.Row, d *sdk.Description) *cfi.Row {
	link, pc, sp := row.ReturnAddress, uint64(d.PC), uint64(d.SP)
	if link == pc {
		return row
	}
	back, ok := row.Rule(link)
	if !ok || back.Kind == cfi.SameValue {
		back = cfi.Rule{Kind: cfi.Register, Register: link}
	}
	injected := *row
	injected.ReturnAddress = pc
	injected.Rules = slices.DeleteFunc(slices.Clone(row.Rules), func(r cfi.RegisterRule) bool { return r.Column == link || r.Column == pc || r.Column == sp })
	injected.Rules = append(injected.Rules, cfi.RegisterRule{Column: pc, Rule: back})
	slices.SortFunc(injected.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
	return &injected
}

// openSources makes the sources of the object.
func (o *Object) openSources() {
	o.sources, o.frames = nil, nil // a file that was cut may have ended this before
	for _, open := range rowSources {
		if s := open(o); s != nil {
			o.sources = append(o.sources, s)
		}
	}
}

// find asks the sources for the row of a lookup.
func (o *Object) find(ctx context.Context, at *Lookup) (*Row, error) {
	all := &NoRow{}
	for _, s := range o.sources {
		row, err := s.Row(ctx, at)
		var none *NoRow
		switch {
		case errors.As(err, &none):
			all.Reasons = append(all.Reasons, none.Reasons...)
			all.IsUncalled = all.IsUncalled || none.IsUncalled
			if none.isFinal {
				return nil, all
			}
		case err != nil:
			return nil, err
		case row != nil:
			return at.complete(row), nil
		}
	}
	return nil, all
}
