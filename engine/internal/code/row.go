// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// maxKept bounds the rows that an object remembers, and the values of each of its caches. A module of a crashed process is entered at a few hundred places; a
// bound keeps a damaged target that leads everywhere from filling memory.
const maxKept = 1 << 16

// rowBytes is about how much memory a row takes, with its rules and its place in a map.
const rowBytes = 600

// rowKey is an address of the object; exact tells a frame that is about to
// execute there from one that is inside a call.
type rowKey struct {
	address uint64
	exact   bool
}

// A Row is the row in force at an address, and its source. It does not change once it was
// found.
type Row struct {
	Rules    *cfi.Row
	By       trace.FoundBy
	Defaults *RuleSet         // the rules of columns that Rules do not mention
	Dialect  *locexpr.Dialect // of the expressions of call frame information; nil: the row is of another source
	// Outermost is why no caller is looked for, and Rules may be nil; "": there may be a
	// caller.
	Outermost string
	// Switches is why there is no caller where the row leads to another stack that cannot be
	// read; "": it stays on its stack.
	Switches string
	// Otherwise is the row where this one needs a register or memory that is not known; nil: there is none.
	Otherwise *Row
	// ToModule: it leads to a module, or Otherwise is right.
	ToModule   bool
	IsComplete bool // it mentions every register that the function changes
	IsInjected bool // a signal handler made the interrupted function call this one
	IsEntered  bool // the function is entered at its start by a return, not called
	// IsSearched is set where the CFA is only where the search for the return address begins, for
	// code that is about to execute. In a call the parameters of the called function lie below it.
	IsSearched bool

	Fast       cfi.CompiledRow // Rules and Defaults, where IsCompiled
	IsCompiled bool

	// The address that it was found for.
	object *Object
	key    rowKey
	none   *NoRow // why there is no row; nil: there is a row
	// problems are errors of sources that should have a row.
	problems []string
}

// IsSignalFrame reports whether a signal interrupted the frame's caller.
func (r *Row) IsSignalFrame() bool {
	if r.IsCompiled {
		return r.Fast.SignalFrame
	}
	return r.Rules != nil && r.Rules.SignalFrame
}

// Compile fills in the compiled row, if there can be one. It is called once, before
// the row is used.
func (r *Row) Compile(m *Machine) {
	if r.Rules == nil || m.Compiler == nil || r.IsSearched {
		return
	}
	if _, ok := r.Rules.Rule(uint64(m.Description.SignState)); ok && m.Description.SignState != 0 {
		return // compiled rows do not have the pseudo-register
	}
	fast, err := m.Compiler.Compile(r.Rules, r.Defaults.Column)
	r.Fast, r.IsCompiled = fast, err == nil
}

// A NoRow is the error of an address for which no source has a row.
type NoRow struct {
	Reasons    []string // of the sources
	IsUncalled bool     // the code is not entered by calls
	isFinal    bool     // no other source is to be asked
}

func (e *NoRow) Error() string {
	if len(e.Reasons) == 0 {
		return "no call frame information"
	}
	return strings.Join(e.Reasons, "; ")
}

// noRow returns the error of a source with one reason.
func noRow(reason string) *NoRow { return &NoRow{Reasons: []string{reason}} }

// Row finds the row in force at an address of the module's code object. isExact: the code there
// is about to execute; else the address is behind a call. The error is a *NoRow, or a plugin's.
func (m *Module) Row(ctx context.Context, address uint64, isExact bool) (*Row, error) {
	return m.RowAhead(ctx, address, isExact, nil)
}

// RowAhead is Row. Where the plugin is asked to read the code there, it is asked about the code
// at the places of ahead too.
func (m *Module) RowAhead(ctx context.Context, address uint64, isExact bool, ahead Ahead) (*Row, error) {
	m.look()
	o, key := m.Code, rowKey{address, isExact}
	slot := o.cached.slot(o.number, key)
	r := slot.Load()
	if r == nil || r.key != key || r.object != o {
		var err error
		o.library.misses.Add(1)
		if r, err = o.keptRow(ctx, key, ahead); err != nil {
			return nil, err
		}
		slot.Store(r)
	}
	if r.problems != nil {
		m.addProblems(r.problems...)
	}
	if r.none != nil {
		return nil, r.none
	}
	return r, nil
}

// KnownRow returns the row at an address, as Row finds it, if the cache has it and it has no
// problems; nil: call Row.
func (m *Module) KnownRow(address uint64, isExact bool) *Row {
	o, key := m.Code, rowKey{address, isExact}
	r := o.cached.slot(o.number, key).Load()
	if r == nil || r.key != key || r.object != o || r.problems != nil || r.none != nil {
		return nil
	}
	m.look()
	return r
}

// ReadRow returns the row at an address that the plugin reads from the code, whatever the other
// sources have; nil where it reads none.
func (m *Module) ReadRow(ctx context.Context, address uint64, isExact bool) (*Row, error) {
	m.look()
	o, key := m.Code, rowKey{address, isExact}
	o.resolver()
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.rows.read.find(key); ok {
		return r, nil
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	l := o.lookup(address, isExact)
	rules, err := o.code.rules(ctx, l.codeRequest(o.bounds(l.Address)))
	if err != nil {
		return nil, err
	}
	var r *Row
	if row := rowIn(rules.Rows, l.Address); row != nil {
		r = l.complete(&Row{Rules: row, By: trace.ByRules, IsComplete: rules.Complete})
		r.Compile(o.machine)
	}
	remember(o, &o.rows.read, key, r, rowBytes)
	return r, nil
}

// keptRow returns a row that the object remembers, or asks the sources for it.
func (o *Object) keptRow(ctx context.Context, key rowKey, ahead Ahead) (*Row, error) {
	o.resolver() // finds the debug file, whose .debug_frame counts too
	r, isAdded, err := o.rememberedRow(ctx, key, ahead)
	if isAdded {
		o.grow(rowBytes)
	}
	return r, err
}

// rememberedRow is keptRow, and reports whether the row was added. A file that is cut faults
// here: the lock is released all the same.
func (o *Object) rememberedRow(ctx context.Context, key rowKey, ahead Ahead) (r *Row, isAdded bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.rows.found.find(key); ok {
		return r, false, nil
	}
	if r, err = o.newRow(ctx, key, ahead); err != nil {
		return nil, false, err
	}
	return r, o.rows.found.add(key, r, rowBytes), nil
}

// newRow asks the sources for a row. Where they have none, the row has none set.
func (o *Object) newRow(ctx context.Context, key rowKey, ahead Ahead) (*Row, error) {
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	l := o.lookup(key.address, key.exact)
	l.ahead = ahead
	r, err := o.rows.find(ctx, l)
	var none *NoRow
	switch {
	case errors.As(err, &none):
		r = &Row{none: none}
	case err != nil:
		return nil, err
	}
	r.object, r.key, r.problems = o, key, l.problems
	r.Compile(o.machine)
	return r, nil
}

// CFAProblem adds to the module's problems that the CFA of a row cannot be evaluated, unless the
// state of the thread is why.
func (m *Module) CFAProblem(r *Row, err error) {
	if !IsOfState(err) {
		m.StateProblem("%s: the CFA of the code at %#x to %#x cannot be evaluated: %s", m.Code.Name(), r.Rules.Start, r.Rules.End, err)
	}
}

// ErrUndefined is the error of a register that has no recoverable value in a frame.
var ErrUndefined = errors.New("is undefined")

// IsOfState reports whether an evaluation failed for lack of a register, of memory or of an
// answer, which another thread may have.
func IsOfState(err error) bool {
	var failure *plugin.Failure
	if errors.As(err, &failure) {
		return true
	}
	return slices.ContainsFunc([]error{target.ErrNoMemory, target.ErrEndOfStack, object.ErrFileShrank, ErrUndefined, locexpr.ErrUndefined}, func(missing error) bool { return errors.Is(err, missing) })
}
