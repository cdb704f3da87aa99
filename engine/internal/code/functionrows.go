// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"errors"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// trampolines are the functions that a signal handler returns to, according to the plugin: their
// code tells how they were entered.
type trampolines struct{ object *Object }

func newTrampolines(o *Object) RowSource { return trampolines{o} }

func (s trampolines) Row(ctx context.Context, l *Lookup) (*Row, error) {
	f := s.object.plugin.function(l.PC)
	if f == nil || f.Kind != sdk.TrampolineFunction {
		return nil, nil
	}
	row, err := s.object.code.functionRow(ctx, f, codeRequest{pc: l.PC, lookup: l.PC, isExact: true})
	var none *NoRow
	if errors.As(err, &none) {
		none.isFinal = true
	}
	return row, err
}

// stackSwitches are functions in which a stack begins, or that go on on another one: their call
// frame information describes that other stack. A call before the stack is changed is like any
// other.
type stackSwitches struct{ object *Object }

func newStackSwitches(o *Object) RowSource { return stackSwitches{o} }

func (s stackSwitches) Row(ctx context.Context, l *Lookup) (*Row, error) {
	f := l.Function
	if f == nil || f.Kind != sdk.StackStartFunction && f.Kind != sdk.StackSwitchFunction {
		return nil, nil
	}
	begins := &Row{Outermost: "a stack begins in " + nameOf(f)}
	row, err := s.object.code.functionRow(ctx, f, l.codeRequest(Bounds{}))
	var none *NoRow
	if errors.As(err, &none) {
		return begins, nil
	}
	if err != nil {
		return nil, err
	}
	isOnThisStack := row.Rules.CFA.Kind == cfi.CFARegister && row.Rules.CFA.Register == uint64(s.object.machine.Description.SP)
	switch {
	case f.Kind == sdk.StackSwitchFunction && row.Rules.CFA.Kind == cfi.CFAExpression:
		row.Switches = begins.Outermost
	case !isOnThisStack && !l.IsExact:
		return begins, nil
	}
	return row, nil
}

// pluginRows are rows that the plugin found in the object.
type pluginRows struct {
	rows    []cfi.Row
	foundBy trace.FoundBy
}

func newOverridingRows(o *Object) RowSource {
	for _, t := range o.plugin.tables {
		if t.Priority == sdk.OverridesCFI && !o.plugin.readsCFI {
			o.problem("call frame information is overridden: %s", t.Reason)
		}
	}
	return o.pluginRows(true)
}

func newOtherRows(o *Object) RowSource { return o.pluginRows(false) }

// pluginRows returns the rows that override call frame information, or the others.
func (o *Object) pluginRows(override bool) RowSource {
	var rows []cfi.Row
	for i := range o.plugin.tables {
		if t := &o.plugin.tables[i]; (t.Priority == sdk.OverridesCFI) == override {
			rows = o.placeRows(rows, t)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	sortRows(rows)
	if override && o.plugin.readsCFI {
		return pluginRows{rows, trace.ByCFI}
	}
	return pluginRows{rows, trace.ByObject}
}

func (s pluginRows) Row(_ context.Context, l *Lookup) (*Row, error) {
	if row := rowIn(s.rows, l.Address); row != nil {
		return &Row{Rules: row, By: s.foundBy, Dialect: s.dialect()}, nil
	}
	return nil, nil
}

// dialect returns the dialect of expressions in rows that are found by call frame information.
func (s pluginRows) dialect() *locexpr.Dialect {
	if s.foundBy == trace.ByCFI {
		return locexpr.Canonical
	}
	return nil
}

func sortRows(rows []cfi.Row) {
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Start < rows[j].Start })
}

// rowIn finds the row at an address among sorted ones; nil where there is none, or where it has
// no rule for the CFA.
func rowIn(rows []cfi.Row, pc uint64) *cfi.Row {
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Start > pc })
	if i > 0 && pc < rows[i-1].End && isCFA(&rows[i-1]) {
		return &rows[i-1]
	}
	return nil
}
