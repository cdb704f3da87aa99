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

// rowSources make the sources of an object's rows, in the order in which they are asked. The
// first that has a row gives it. An object that has nothing for a source to read has nil for
// it.
var rowSources = []func(*Object) RowSource{
	newForeignCode,    // of another machine, which has no rows
	newTrampolines,    // functions whose call frame information is not to be believed
	newStackSwitches,  // functions that call on another stack
	newWineEntries,    // functions at which Wine enters the code of Windows
	newOverridingRows, // of the plugin, above call frame information
	newUnwindCodes,    // .pdata, .xdata
	newCheckedFrames,  // code that contradicts call frame information
	newCallFrames,     // .eh_frame, .debug_frame
	newCompactUnwind,  // __unwind_info of a Mach-O file
	newBreakpadRows,   // STACK CFI of a symbol file
	newCallFrameData,  // frame data of a PDB file, STACK WIN of a symbol file
	newSFrames,        // .sframe
	newGoDepths,       // .gopclntab
	newOtherRows,      // of the plugin
	newEntryPoints,    // code that nothing called
	newCodeReader,     // rows that the plugin reads from the code
	newExactFrameData, // the same, for code that is about to execute
	newGoUnwindCodes,  // .pdata, .xdata of Go
	newLeaves,         // functions that .pdata leaves out
}

// A RowSource is a place where rows of a code object come from.
type RowSource interface {
	// Row answers a lookup with a row. A source that does not know the address answers nil
	// without an error. One that should know it gives the reason by a *NoRow, and the next
	// source is asked. Any other error ends the lookup.
	//
	// It sets the row's Rules and By; the members that it leaves out are set by the Lookup.
	Row(ctx context.Context, l *Lookup) (*Row, error)
}

// A Lookup is a request for the row at an address.
type Lookup struct {
	PC      uint64 // an address of the object
	IsExact bool   // the code there is about to execute; else it is behind a call
	// Address is the address that rows are looked up by: PC, or for a PC behind a call an
	// address inside the call.
	Address uint64
	// Function is the plugin's description of the function at Address; nil: there is none.
	Function *sdk.Function
	// Bounds are the bounds of the function, if an earlier source has them.
	Bounds Bounds

	ahead      Ahead    // where the next lookups may be; nil: it is not known
	code       *cfi.Row // read from the code, complete, and to be compared with call frame information; or nil
	outermost  string
	defaults   *RuleSet
	isInjected bool
	machine    *sdk.Description
	problems   []string
}

// problem adds a sentence to the problems of the modules in which the address is looked up.
func (l *Lookup) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// bound sets the bounds of the function, if no earlier source had them.
func (l *Lookup) bound(b Bounds) {
	if !l.Bounds.IsKnown {
		l.Bounds = b
	}
}

// lookup returns the lookup of an address.
func (o *Object) lookup(pc uint64, isExact bool) *Lookup {
	l := &Lookup{PC: pc, IsExact: isExact, Address: pc, defaults: o.plugin.defaults, machine: o.machine.Description}
	if !isExact {
		l.Address -= uint64(o.machine.Description.CallDistance)
	}
	f := o.plugin.function(l.Address)
	l.Function = f
	if f == nil {
		return l
	}
	if rules := o.plugin.special[f]; rules != nil {
		l.defaults = rules
	}
	switch f.Kind {
	case sdk.InjectedFunction:
		l.isInjected = true
	case sdk.OutermostFunction:
		l.outermost = nameOf(f) + " has no caller"
	case sdk.KernelFunction:
		l.outermost = nameOf(f) + " is a kernel"
	}
	return l
}

// nameOf returns a plugin's function in a sentence.
func nameOf(f *sdk.Function) string {
	if f.Name == "" {
		return "the function"
	}
	return f.Name
}

// complete sets the members of a row that its source left out.
func (l *Lookup) complete(r *Row) *Row {
	if r.Defaults == nil {
		r.Defaults = l.defaults
	}
	if r.Outermost == "" {
		r.Outermost = l.outermost
	}
	if r.Otherwise != nil {
		l.complete(r.Otherwise)
	}
	if r.IsInjected = l.isInjected; r.IsInjected && r.Rules != nil {
		r.Rules = injectedRow(r.Rules, l.machine)
	}
	return r
}

// injectedRow returns the row of a function that a signal handler made the interrupted function
// call. Where a call leaves its return address in a register, that had a value of the
// interrupted function, and the handler has pushed it: the row gets the PC in the PC's own
// column, and the rules of the register and of the stack pointer are left to the default rules
// of the function.
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

// rowFinder has the sources of an object's rows, and the rows that they gave. Object.mu guards
// sources and frames, which are constant once the object is open, and is held while a source is
// asked; the caches have their own locks, so that a known row is found without it.
type rowFinder struct {
	sources []RowSource
	frames  []FrameTable // of call frame information

	found     cache[rowKey, *Row]
	ofCode    cache[uint64, *Row]        // see rowOfCode; nil: there is none
	read      cache[rowKey, *Row]        // see ReadRow; nil: there is none
	fromStart cache[[2]uint64, *cfi.Row] // see RowFrom; nil: there is none
}

// openSources makes the sources of the object.
func (o *Object) openSources() {
	o.rows.sources, o.rows.frames = nil, nil // a file that was cut may have ended this before
	for _, open := range rowSources {
		if s := open(o); s != nil {
			o.rows.sources = append(o.rows.sources, s)
		}
	}
}

// find asks the sources for the row of a lookup.
func (f *rowFinder) find(ctx context.Context, l *Lookup) (*Row, error) {
	all := &NoRow{}
	for _, s := range f.sources {
		row, err := s.Row(ctx, l)
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
			return l.complete(row), nil
		}
	}
	return nil, all
}

// bounds returns the bounds of the FDE at an address.
func (f *rowFinder) bounds(address uint64) Bounds {
	for _, t := range f.frames {
		if fde, err := t.FDE(address); err == nil {
			return fdeBounds(fde)
		}
	}
	return Bounds{}
}

// forget forgets the rows, and returns how much memory they took.
func (f *rowFinder) forget() int {
	return f.found.forget() + f.ofCode.forget() + f.read.forget() + f.fromStart.forget()
}
