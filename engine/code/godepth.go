// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
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
