// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// checkedFrames are rows that the plugin reads from the code where it finds that call frame
// information contradicts it: compilers for accelerators write some that is wrong.
type checkedFrames struct{ object *Object }

func newCheckedFrames(o *Object) RowSource {
	if !o.plugin.checksCFI {
		return nil
	}
	return checkedFrames{o}
}

func (s checkedFrames) Row(ctx context.Context, l *Lookup) (*Row, error) {
	o := s.object
	bounds := o.rows.bounds(l.Address)
	if !bounds.IsKnown {
		return nil, nil
	}
	rules, err := o.code.rules(ctx, l.codeRequest(bounds))
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		l.problem("call frame information is not checked by the code: %v", err)
		return nil, nil
	}
	reason := rules.ContradictionAt(l.Address)
	row := rowIn(rules.Rows, l.Address)
	if reason == "" || row == nil {
		if rules.Complete {
			l.code = row
		}
		return nil, nil
	}
	o.problem("call frame information is overridden: rows read from the code: %s", reason)
	return &Row{Rules: row, By: trace.ByRules, Defaults: o.machine.Defaults, IsComplete: rules.Complete}, nil
}

// completeByCode adds to a row of call frame information the rules of registers that it leaves
// out and the code changes: LLVM 23 writes none for EXEC, and for other registers only where the
// function itself is known to change them. It returns the dialect of the resulting row. Compilers
// that write whole rules for accelerators have them in .debug_frame, LLVM 23 in .eh_frame.
func (l *Lookup) completeByCode(row *cfi.Row, dialect *locexpr.Dialect) *locexpr.Dialect {
	if l.code == nil {
		return dialect
	}
	// Rules of the code are in the canonical dialect, which contains these.
	isPart := dialect == nil || dialect.Name == locexpr.DWARF5.Name || dialect.Name == locexpr.LLVMUser.Name
	for _, r := range l.code.Rules {
		i, isSaid := slices.BinarySearchFunc(row.Rules, r.Column, func(r cfi.RegisterRule, column uint64) int { return cmp.Compare(r.Column, column) })
		switch {
		case isSaid && row.Rules[i].Rule.Kind != cfi.Unspecified:
			continue
		case r.Rule.Kind == cfi.Expression && !isPart:
			r.Rule = cfi.Rule{Kind: cfi.Undefined}
		}
		if isSaid {
			row.Rules[i] = r
		} else {
			row.Rules = slices.Insert(row.Rules, i, r)
		}
	}
	if isPart {
		return locexpr.Canonical
	}
	return dialect
}
