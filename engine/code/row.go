// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"errors"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

// maxKept bounds the rows that an object remembers, and each of its other
// answers. A module of a crashed process is entered at a few hundred places; a
// bound keeps a damaged target that leads everywhere from filling memory.
const maxKept = 1 << 16

// rowBytes is about what a row takes, with its rules and its place in a map.
const rowBytes = 600

// rowKey is an address of the object; exact tells a frame that is about to
// execute there from one that is inside a call.
type rowKey struct {
	address uint64
	exact   bool
}

// A Row is what holds at an address, with where that came from. It does not
// change once it was found.
type Row struct {
	Rules    *cfi.Row
	By       FoundBy
	Defaults *RuleSet         // what holds for columns that Rules do not mention
	Dialect  *locexpr.Dialect // of the expressions of call frame information; nil: of another source's
	// Outermost is why no caller is looked for; "" where one is. Rules may be nil
	// then.
	Outermost string
	// Switches says that the row leads to another stack: it is why there is no
	// caller where that cannot be read.
	Switches   string
	IsComplete bool // it mentions every register that the function changes
	IsInjected bool // a signal handler made what it interrupted call the function
	IsEntered  bool // the function is entered at its start by a return, not called

	Fast       cfi.CompiledRow // Rules and Defaults, where IsCompiled
	IsCompiled bool

	// The address that it was found for.
	object *Object
	key    rowKey
	none   *NoRow // why there is no row; nil where there is one
	// problems are what was wrong with sources that should have a row.
	problems []string
}

// IsSignalFrame says whether the row is of a frame that a signal interrupted.
func (r *Row) IsSignalFrame() bool {
	if r.IsCompiled {
		return r.Fast.SignalFrame
	}
	return r.Rules != nil && r.Rules.SignalFrame
}

// Compile fills in the compiled row, if there can be one. It is called once, before
// the row is used.
func (r *Row) Compile(m *Machine) {
	if r.Rules == nil || m.Compiler == nil {
		return
	}
	if _, ok := r.Rules.Rule(uint64(m.Description.SignState)); ok && m.Description.SignState != 0 {
		return // the compiled form does not have the pseudo-register
	}
	fast, err := m.Compiler.Compile(r.Rules, r.Defaults.Column)
	r.Fast, r.IsCompiled = fast, err == nil
}

// A NoRow is the error of an address for which no source has a row.
type NoRow struct {
	Reasons    []string // what each source answered
	IsUncalled bool     // the code is not entered by calls
	isFinal    bool     // no other source is to be asked
}

func (e *NoRow) Error() string {
	if len(e.Reasons) == 0 {
		return "no call frame information"
	}
	return strings.Join(e.Reasons, "; ")
}

// noRow is the error of a source with one reason.
func noRow(reason string) *NoRow { return &NoRow{Reasons: []string{reason}} }

// Row finds the row in force at an address of the module's code object. isExact says
// that the code there is about to execute; else the address is behind a call. The
// error is a *NoRow, or that of a plugin.
func (m *Module) Row(ctx context.Context, address uint64, isExact bool) (*Row, error) {
	m.look()
	o, key := m.Code, rowKey{address, isExact}
	slot := o.cached.slot(o.number, key)
	r := slot.Load()
	if r == nil || r.key != key || r.object != o {
		var err error
		o.library.misses.Add(1)
		if r, err = o.keptRow(ctx, key); err != nil {
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

// KnownRow is the row at an address, as Row finds it, where the cache has it and
// nothing is wrong with it; nil where Row is to be asked.
func (m *Module) KnownRow(address uint64, isExact bool) *Row {
	o, key := m.Code, rowKey{address, isExact}
	r := o.cached.slot(o.number, key).Load()
	if r == nil || r.key != key || r.object != o || r.problems != nil || r.none != nil {
		return nil
	}
	m.look()
	return r
}

// ReadRow is the row at an address that the plugin reads from the code, whatever else the
// code object says; nil where it reads none.
func (m *Module) ReadRow(ctx context.Context, address uint64, isExact bool) (*Row, error) {
	m.look()
	o, key := m.Code, rowKey{address, isExact}
	o.resolver()
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.readRows[key]; ok {
		return r, nil
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	at := o.lookup(address, isExact)
	rules, err := o.readFunction(ctx, at.PC, at.Address, isExact, o.bounds(at.Address))
	if err != nil {
		return nil, err
	}
	var r *Row
	if row := rowIn(rules.Rows, at.Address); row != nil {
		r = at.complete(&Row{Rules: row, By: ByRules, IsComplete: rules.Complete})
		r.Compile(o.machine)
	}
	if o.readRows == nil {
		o.readRows = map[rowKey]*Row{}
	}
	if len(o.readRows) < maxKept {
		o.readRows[key] = r
		o.bytes.Add(rowBytes)
		o.library.bytes.Add(rowBytes)
	}
	return r, nil
}

// keptRow finds a row among those that the object remembers, or finds it out.
func (o *Object) keptRow(ctx context.Context, key rowKey) (*Row, error) {
	o.resolver() // finds the debug file, whose .debug_frame counts too
	r, isAdded, err := o.rememberedRow(ctx, key)
	if isAdded {
		o.grow(rowBytes)
	}
	return r, err
}

// rememberedRow is the row that the object remembers; isAdded says that it does so
// from now on. A file that is cut faults here: the lock is given back all the same.
func (o *Object) rememberedRow(ctx context.Context, key rowKey) (r *Row, isAdded bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.rows[key]; ok {
		return r, false, nil
	}
	if r, err = o.newRow(ctx, key); err != nil || len(o.rows) >= maxKept {
		return r, false, err
	}
	if o.rows == nil {
		o.rows = map[rowKey]*Row{}
	}
	o.rows[key] = r
	return r, true, nil
}

// newRow finds out a row. That there is none is an answer too: none is set.
func (o *Object) newRow(ctx context.Context, key rowKey) (*Row, error) {
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	at := o.lookup(key.address, key.exact)
	r, err := o.find(ctx, at)
	var none *NoRow
	switch {
	case errors.As(err, &none):
		r = &Row{none: none}
	case err != nil:
		return nil, err
	}
	r.object, r.key, r.problems = o, key, at.problems
	r.Compile(o.machine)
	return r, nil
}

// CFAProblem makes it a problem of the module that the CFA of a row cannot be
// evaluated, unless the state of the thread is why.
func (m *Module) CFAProblem(r *Row, err error) {
	if !IsOfState(err) {
		m.StateProblem("%s: the CFA of the code at %#x to %#x cannot be evaluated: %s", m.Code.Name(), r.Rules.Start, r.Rules.End, err)
	}
}

// ErrUndefined says that a register has no recoverable value in a frame.
var ErrUndefined = errors.New("is undefined")

// IsOfState says whether an evaluation failed for lack of a register, of memory or
// of an answer, which another thread may have.
func IsOfState(err error) bool {
	var failure *plugin.Failure
	if errors.As(err, &failure) {
		return true
	}
	for _, missing := range []error{target.ErrNoMemory, target.ErrEndOfStack, object.ErrFileShrank, ErrUndefined, locexpr.ErrUndefined} {
		if errors.Is(err, missing) {
			return true
		}
	}
	return false
}
