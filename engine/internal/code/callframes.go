// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
)

// callFrames are the .eh_frame and .debug_frame of the object, and the
// .debug_frame of its debug file. They are asked in this order.
type callFrames struct{ object *Object }

func newCallFrames(o *Object) RowSource {
	if o.plugin.readsCFI {
		return nil // its rows are there already
	}
	tables, err := o.loadedTables(o.laid)
	if err != nil {
		o.problem("%v", err)
	}
	if o.debug.laid != nil && !o.hasCompactUnwind() {
		// The .eh_frame of a debug file repeats the object's, without its bytes.
		more, err := o.loadedTables(o.debug.laid)
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
		o.rows.frames = append(o.rows.frames, t)
	}
	if len(o.rows.frames) == 0 {
		return nil
	}
	return callFrames{o}
}

func (s callFrames) problems() (list []string) {
	for _, t := range s.object.rows.frames {
		for _, err := range t.Problems() {
			list = append(list, err.Error())
		}
	}
	return list
}

// Row finds the row of the first FDE that has one. An entry that cannot be read is no reason to
// stop: others may know the function.
func (s callFrames) Row(ctx context.Context, l *Lookup) (*Row, error) {
	none := &NoRow{}
	for _, t := range s.object.rows.frames {
		found, fde, err := callFrameRow(t.Table, l)
		isEntered := false
		if errors.Is(err, cfi.ErrNoFDE) && !l.IsExact {
			if found, fde = s.object.enteredRow(ctx, t.Table, l.PC); found != nil {
				isEntered, err = true, nil
			}
		}
		if fde != nil {
			l.bound(fdeBounds(fde))
		}
		switch {
		case err == nil:
			if row := s.object.goTop(ctx, l, found); row != nil {
				return row, nil
			}
			if row := s.object.betweenCalls(ctx, l, fde, found); row != nil {
				return row, nil
			}
			if row := s.object.inEpilogue(ctx, l, fde, found); row != nil {
				return row, nil
			}
			dialect := s.object.plugin.dialects.ofCIE(fde.CIE)
			if t.Section == ".eh_frame" {
				dialect = l.completeByCode(found, dialect)
			}
			s.object.machine.countPushed(found)
			s.object.machine.countPushedBefore(fde, found)
			return &Row{Rules: found, By: trace.ByCFI, Dialect: dialect, IsEntered: isEntered}, nil
		case errors.Is(err, cfi.ErrNoFDE):
		case errors.Is(err, errEmptyFDE):
			none.Reasons = append(none.Reasons, err.Error())
		default:
			l.problem("%s: %v", s.object.File.Name(), err)
			none.Reasons = append(none.Reasons, err.Error())
		}
	}
	return nil, none
}

// errEmptyFDE is the error of an FDE without information. Compilers write such FDEs for
// accelerators; they do not make a frame the outermost.
var errEmptyFDE = errors.New("has no rule for the CFA")

// callFrameRow finds the row of a table. A signal trampoline is entered by returning to its first
// instruction, so the byte before belongs to no function: an FDE with the augmentation S that
// starts exactly at the PC is taken although the PC came as a return address.
func callFrameRow(t *cfi.Table, l *Lookup) (*cfi.Row, *cfi.FDE, error) {
	fde, err := t.FDE(l.Address)
	if !l.IsExact && (err != nil || !fde.CIE.SignalFrame) {
		if begins, beginsErr := t.FDE(l.PC); beginsErr == nil && begins.CIE.SignalFrame {
			fde, err = begins, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	address := l.Address
	if fde.CIE.SignalFrame {
		address = l.PC
	}
	var row cfi.Row
	if err := fde.RowAt(address, &row); err != nil {
		return nil, fde, err
	}
	if !isCFA(&row) {
		return nil, fde, fmt.Errorf("call frame information: the FDE at offset %#x, of %#x to %#x, %w", fde.Offset, fde.Start, fde.End, errEmptyFDE)
	}
	if err := breakCircle(&row, fde, l); err != nil {
		return nil, fde, err
	}
	return &row, fde, nil
}

// breakCircle makes registers undefined whose rules lead back to themselves, which is ill-formed
// (A.6.4.1) and a problem. Without the return address there is no row.
func breakCircle(row *cfi.Row, fde *cfi.FDE, l *Lookup) error {
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
	l.problem("%v", err)
	return nil
}

// countPushed completes a row of a function that is entered with its return address on the stack
// although the architecture's calls leave it in a register, as Description.EntryPushed declares:
// the caller's stack pointer is above the words that were pushed.
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
	if back, hasRule := row.Rule(row.ReturnAddress); hasRule && back.Kind != cfi.Unspecified {
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
