// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"errors"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// function is what the plugin said about the function at an address.
func (o *Object) function(address uint64) *sdk.Function {
	i := sort.Search(len(o.functions), func(i int) bool { return o.functions[i].Start > address })
	if i > 0 && address < o.functions[i-1].End {
		return &o.functions[i-1]
	}
	return nil
}

// trampolines are the functions that a signal handler returns to, as the plugin
// says: their code says how they were entered.
type trampolines struct{ object *Object }

func newTrampolines(o *Object) RowSource { return trampolines{o} }

func (s trampolines) Row(ctx context.Context, at *Lookup) (*Row, error) {
	f := s.object.function(at.PC)
	if f == nil || f.Kind != sdk.TrampolineFunction {
		return nil, nil
	}
	row, err := s.object.readRow(ctx, f, at.PC, at.PC, true)
	var none *NoRow
	if errors.As(err, &none) {
		none.isFinal = true
	}
	return row, err
}

// stackSwitches are functions in which a stack begins, or that go on on another
// one: their call frame information is of that other stack. A call before the stack
// is changed is one like others.
type stackSwitches struct{ object *Object }

func newStackSwitches(o *Object) RowSource { return stackSwitches{o} }

func (s stackSwitches) Row(ctx context.Context, at *Lookup) (*Row, error) {
	f := at.Function
	if f == nil || f.Kind != sdk.StackStartFunction && f.Kind != sdk.StackSwitchFunction {
		return nil, nil
	}
	begins := &Row{Outermost: "a stack begins in " + nameOf(f)}
	row, err := s.object.readRow(ctx, f, at.PC, at.Address, at.IsExact)
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
	case !isOnThisStack && !at.IsExact:
		return begins, nil
	}
	return row, nil
}

// pluginRows are rows that the plugin found in the object.
type pluginRows struct{ rows []cfi.Row }

func newOverridingRows(o *Object) RowSource {
	for _, t := range o.tables {
		if t.Priority == sdk.OverridesCFI {
			o.problem("call frame information is overridden: %s", t.Reason)
		}
	}
	return o.pluginRows(true)
}

func newOtherRows(o *Object) RowSource { return o.pluginRows(false) }

// pluginRows are those that override call frame information, or the others.
func (o *Object) pluginRows(override bool) RowSource {
	var rows []cfi.Row
	for i := range o.tables {
		if t := &o.tables[i]; (t.Priority == sdk.OverridesCFI) == override {
			rows = o.takeRows(rows, t)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	sortRows(rows)
	return pluginRows{rows}
}

func (s pluginRows) Row(_ context.Context, at *Lookup) (*Row, error) {
	if row := rowIn(s.rows, at.Address); row != nil {
		return &Row{Rules: row, By: ByObject}, nil
	}
	return nil, nil
}

func sortRows(rows []cfi.Row) {
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Start < rows[j].Start })
}

// rowIn is the row among sorted ones that holds at an address; nil where none
// does, or where it has no rule for the CFA.
func rowIn(rows []cfi.Row, pc uint64) *cfi.Row {
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Start > pc })
	if i > 0 && pc < rows[i-1].End && isCFA(&rows[i-1]) {
		return &rows[i-1]
	}
	return nil
}
