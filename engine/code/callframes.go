// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// callFrames are the .eh_frame and .debug_frame of the object, and the
// .debug_frame of its debug file. They are asked in this order.
type callFrames struct{ object *Object }

func newCallFrames(o *Object) RowSource {
	tables, err := o.loadedTables(o.laid)
	if err != nil {
		o.problem("%v", err)
	}
	if o.debugLaid != nil {
		// The .eh_frame of a debug file is the object's, without its bytes.
		more, err := o.loadedTables(o.debugLaid)
		if err != nil {
			o.problem("%v", err)
		}
		for _, t := range more {
			if t.Section == ".debug_frame" {
				tables = append(tables, t)
			}
		}
	}
	for _, t := range tables {
		if t.header != nil {
			o.problem("%v; the index is built from the section itself", t.header)
		}
		if t.Err != nil {
			o.problem("%v", t.Err)
			continue
		}
		o.frames = append(o.frames, t)
	}
	if len(o.frames) == 0 {
		return nil
	}
	return callFrames{o}
}

func (s callFrames) problems() (list []string) {
	for _, t := range s.object.frames {
		for _, err := range t.Problems() {
			list = append(list, err.Error())
		}
	}
	return list
}

// Row finds the row of the first FDE that has one. One entry that cannot be read
// is no reason to stop: others may know the function.
func (s callFrames) Row(ctx context.Context, at *Lookup) (*Row, error) {
	none := &NoRow{}
	for _, t := range s.object.frames {
		found, fde, err := callFrameRow(t.Table, at)
		isEntered := false
		if errors.Is(err, cfi.ErrNoFDE) && !at.IsExact {
			if found, fde = s.object.enteredRow(ctx, t.Table, at.PC); found != nil {
				isEntered, err = true, nil
			}
		}
		if fde != nil && !at.Bounds.IsKnown {
			at.Bounds = Bounds{Start: fde.Start, End: fde.End, IsKnown: true}
		}
		switch {
		case err == nil:
			if row := s.object.goTop(ctx, at, found); row != nil {
				return row, nil
			}
			if row := s.object.betweenCalls(ctx, at, fde, found); row != nil {
				return row, nil
			}
			dialect := s.object.dialects.ofCIE(fde.CIE)
			if t.Section == ".eh_frame" {
				dialect = at.completeByCode(found, dialect)
			}
			s.object.machine.countPushed(found)
			s.object.machine.countPushedBefore(fde, found)
			return &Row{Rules: found, By: ByCFI, Dialect: dialect, IsEntered: isEntered}, nil
		case errors.Is(err, cfi.ErrNoFDE):
		case errors.Is(err, errEmptyFDE):
			none.Reasons = append(none.Reasons, err.Error())
		default:
			at.problem("%s: %v", s.object.File.Name(), err)
			none.Reasons = append(none.Reasons, err.Error())
		}
	}
	return nil, none
}

// errEmptyFDE says that an FDE is no information. Compilers write such FDEs for
// accelerators: that nothing is said of a frame does not make it the outermost.
var errEmptyFDE = errors.New("has no rule for the CFA")

// callFrameRow finds the row of a table. A signal trampoline is entered by
// returning to its first instruction, so the byte before it belongs to nobody:
// an FDE with the augmentation S that starts exactly at the PC is taken although
// the PC came as a return address.
func callFrameRow(t *cfi.Table, at *Lookup) (*cfi.Row, *cfi.FDE, error) {
	fde, err := t.FDE(at.Address)
	if !at.IsExact && (err != nil || !fde.CIE.SignalFrame) {
		if begins, beginsErr := t.FDE(at.PC); beginsErr == nil && begins.CIE.SignalFrame {
			fde, err = begins, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	address := at.Address
	if fde.CIE.SignalFrame {
		address = at.PC
	}
	var row cfi.Row
	if err := fde.RowAt(address, &row); err != nil {
		return nil, fde, err
	}
	if !isCFA(&row) {
		return nil, fde, fmt.Errorf("call frame information: the FDE at offset %#x, of %#x to %#x, %w", fde.Offset, fde.Start, fde.End, errEmptyFDE)
	}
	if err := breakCircle(&row, fde, at); err != nil {
		return nil, fde, err
	}
	return &row, fde, nil
}

// breakCircle has no rule of a row lead to itself, which is ill-formed (A.6.4.1): registers
// of which that is so are undefined, and it is a problem. Without the return address
// there is no row.
func breakCircle(row *cfi.Row, fde *cfi.FDE, at *Lookup) error {
	circle := row.Circle()
	if circle == nil {
		return nil
	}
	err := fmt.Errorf("call frame information: the FDE at offset %#x, of %#x to %#x: %w", fde.Offset, fde.Start, fde.End, cfi.CircleError(circle))
	if slices.Contains(circle, row.ReturnAddress) {
		return err
	}
	for i := range row.Rules {
		if slices.Contains(circle, row.Rules[i].Column) {
			row.Rules[i].Rule = cfi.Rule{Kind: cfi.Undefined}
		}
	}
	at.problem("%v", err)
	return nil
}

// countPushed completes a row of a function that is entered with its return address on
// the stack although the architecture's calls leave it in a register, as the description
// says that some are: the caller's stack pointer is above what was pushed.
func (m *Machine) countPushed(row *cfi.Row) {
	d := m.Description
	if d.EntryPushed == 0 || row.CFA.Kind != cfi.CFARegister || row.CFA.Register != uint64(d.SP) && row.CFA.Register != uint64(d.FP) {
		return
	}
	back, _ := row.Rule(row.ReturnAddress)
	if back.Kind == cfi.Offset && back.Offset >= 0 && back.Offset < int64(d.EntryPushed) {
		addRule(row, uint64(d.SP), cfi.Rule{Kind: cfi.ValOffset, Offset: int64(d.EntryPushed)})
	}
}

// addRule adds a rule to a row that has none for the column.
func addRule(row *cfi.Row, column uint64, rule cfi.Rule) {
	i, isThere := slices.BinarySearchFunc(row.Rules, column, func(r cfi.RegisterRule, column uint64) int {
		return cmp.Compare(r.Column, column)
	})
	if !isThere {
		row.Rules = slices.Insert(row.Rules, i, cfi.RegisterRule{Column: column, Rule: rule})
	}
}

// countPushedBefore is countPushed for the first row of a function, which may lack the return
// address: in glibc's _dl_runtime_resolve the directive that has it stands behind the landing
// pad (bti c) that the function begins with. The next row has it above the same CFA, so
// that nothing in between pushed it.
func (m *Machine) countPushedBefore(fde *cfi.FDE, row *cfi.Row) {
	if m.Description.EntryPushed == 0 || row.Start != fde.Start || row.End >= fde.End {
		return
	}
	if back, isSaid := row.Rule(row.ReturnAddress); isSaid && back.Kind != cfi.Unspecified {
		return
	}
	var next cfi.Row
	if fde.RowAt(row.End, &next) != nil || next.CFA.Kind != row.CFA.Kind || next.CFA.Register != row.CFA.Register || next.CFA.Offset != row.CFA.Offset {
		return
	}
	m.countPushed(&next)
	sp := uint64(m.Description.SP)
	if rule, isCounted := next.Rule(sp); isCounted {
		addRule(row, sp, rule)
	}
}
