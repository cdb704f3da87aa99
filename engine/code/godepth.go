// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"debug/elf"

	"github.com/unwindd/unwindd/cfi"
)

// goDepths are rows of what the table of the Go runtime says of the stack. Many
// programs are linked without their call frame information (-ldflags=-w), which
// the linker makes of the same table.
type goDepths struct{ object *Object }

func newGoDepths(o *Object) RowSource {
	if o.symbols == nil || o.File.Machine() != uint16(elf.EM_X86_64) || o.isLaid() {
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
	// A call pushes the return address, from which the depth counts.
	machine := s.object.machine.Description
	column := uint64(machine.PC)
	return &Row{Rules: &cfi.Row{
		Start: d.Start, End: d.End,
		CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(machine.SP), Offset: d.Bytes + 8},
		Rules:         []cfi.RegisterRule{{Column: column, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}},
		ReturnAddress: column,
	}, By: ByCFI}, nil
}
