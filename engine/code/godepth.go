// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// goDepths are rows of what the table of the Go runtime says of the stack. Many
// programs are linked without their call frame information (-ldflags=-w), which
// the linker makes of the same table.
type goDepths struct{ object *Object }

func newGoDepths(o *Object) RowSource {
	if o.symbols == nil || o.machine.Description.Entry == nil || o.isLaid() {
		return nil
	}
	return goDepths{o}
}

func (s goDepths) Row(_ context.Context, at *Lookup) (*Row, error) {
	d, ok, err := s.object.symbols.Depth(at.Address)
	if err != nil {
		at.problem("%v", err)
	}
	if !ok {
		return nil, nil
	}
	if !at.Bounds.IsKnown {
		at.Bounds = Bounds{d.Function.Start, d.Function.End, true, d.Function.Name}
	}
	if d.Uncertain || d.Bytes < 0 {
		return nil, nil // the code knows more
	}
	return &Row{Rules: goRow(s.object.machine.Description.Entry, d.Start, d.End, d.Bytes), By: ByCFI}, nil
}

// goTop is the row of a function of Go whose call frame information says that it has no
// caller, and which has one: where a link register holds return addresses the linker has them
// undefined in every function that is marked TOPFRAME. Of those, the kernel enters
// runtime.sigtramp with a trampoline to return to, and runtime.clone calls runtime.mstart.
// Which have none the plugin says; if it names nobody, all are believed.
func (o *Object) goTop(ctx context.Context, at *Lookup, row *cfi.Row) *Row {
	back, ok := row.Rule(row.ReturnAddress)
	if !ok || back.Kind != cfi.Undefined || at.outermost != "" || !slices.ContainsFunc(o.functions, isOutermost) {
		return nil
	}
	depths, ok := newGoDepths(o).(goDepths)
	if !ok {
		return nil
	}
	known, err := depths.Row(ctx, at)
	if err != nil {
		return nil
	}
	return known
}

func isOutermost(f sdk.Function) bool { return f.Kind == sdk.OutermostFunction }

// goRow is the row of code of Go that has moved the stack pointer down by a depth from
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
