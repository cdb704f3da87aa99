// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// goDepths are rows by the depths of the stack in the table of the Go runtime. Many programs are
// linked without their call frame information (-ldflags=-w), which the linker makes of the same
// table.
type goDepths struct{ object *Object }

func newGoDepths(o *Object) RowSource {
	if o.debug.resolver == nil || o.machine.Description.Entry == nil || o.isLaid() {
		return nil
	}
	return goDepths{o}
}

func (s goDepths) Row(_ context.Context, l *Lookup) (*Row, error) {
	d, ok, err := s.object.debug.resolver.Depth(l.Address)
	if err != nil {
		l.problem("%v", err)
	}
	if !ok {
		return nil, nil
	}
	l.bound(Bounds{d.Function.Start, d.Function.End, true, d.Function.Name})
	if d.Uncertain || d.Bytes < 0 {
		return nil, nil // the code knows more
	}
	return &Row{Rules: goRow(s.object.machine.Description.Entry, d.Start, d.End, d.Bytes), By: trace.ByCFI}, nil
}

// goTop returns the row of a function of Go that has a caller although its call frame information
// denies it: where return addresses are in a link register the linker has them undefined in every
// function that is marked TOPFRAME. But the kernel enters runtime.sigtramp with a trampoline to
// return to, and runtime.clone calls runtime.mstart. The plugin names the functions that have no
// caller; if it names none, all are believed.
func (o *Object) goTop(ctx context.Context, l *Lookup, row *cfi.Row) *Row {
	back, ok := row.Rule(row.ReturnAddress)
	if !ok || back.Kind != cfi.Undefined || l.outermost != "" || !slices.ContainsFunc(o.plugin.functions, isOutermost) {
		return nil
	}
	depths, ok := newGoDepths(o).(goDepths)
	if !ok {
		return nil
	}
	known, err := depths.Row(ctx, l)
	if err != nil {
		return nil
	}
	return known
}

func isOutermost(f sdk.Function) bool { return f.Kind == sdk.OutermostFunction }

// goRow returns the row of code of Go that has moved the stack pointer down by a depth from
// where it was at the function's entry. Where a call leaves the return address in a
// register, a function that has a frame stores it right at the stack pointer, before or
// while it moves it (src/runtime/traceback.go, unwinder.resolveInternal).
func goRow(entry *cfi.Row, start, end uint64, depth int64) *cfi.Row {
	back, _ := entry.Rule(entry.ReturnAddress)
	if back.Kind != cfi.Offset && depth > 0 {
		back = cfi.Rule{Kind: cfi.Offset, Offset: -depth - entry.CFA.Offset}
	}
	cfa := entry.CFA
	cfa.Offset += depth
	return &cfi.Row{
		Start: start, End: end, CFA: cfa,
		Rules:         []cfi.RegisterRule{{Column: entry.ReturnAddress, Rule: back}},
		ReturnAddress: entry.ReturnAddress,
	}
}
