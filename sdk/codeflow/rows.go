// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"bytes"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// Rows are rows in the order of their addresses.
type Rows []cfi.Row

// Add adds a row, and joins it to the one before where both have the same rules. Instructions
// may overlap where a jump goes over a prefix: the row before ends there.
func (l *Rows) Add(row *cfi.Row) {
	if n := len(*l); n > 0 {
		last := &(*l)[n-1]
		if last.Start < row.Start && last.End > row.Start {
			last.End = row.Start
		}
		if last.End == row.Start && isSame(last, row) {
			last.End = row.End
			return
		}
	}
	*l = append(*l, *row)
}

// Covers reports whether a row covers pc.
func (l Rows) Covers(pc uint64) bool {
	return slices.ContainsFunc(l, func(r cfi.Row) bool { return pc >= r.Start && pc < r.End })
}

// isSame reports whether two rows have the same rules.
func isSame(a, b *cfi.Row) bool {
	return IsSameCFA(&a.CFA, &b.CFA) && a.ReturnAddress == b.ReturnAddress && a.WindowSave == b.WindowSave && a.SignalFrame == b.SignalFrame &&
		slices.EqualFunc(a.Rules, b.Rules, IsSameRule)
}

// IsSameCFA reports whether two CFA rules are the same.
func IsSameCFA(a, b *cfi.CFARule) bool {
	return a.Kind == b.Kind && a.Register == b.Register && a.Offset == b.Offset && a.Space == b.Space && bytes.Equal(a.Expr, b.Expr)
}

// IsSameRule reports whether two register rules are the same.
func IsSameRule(a, b cfi.RegisterRule) bool {
	return a.Column == b.Column && a.Rule.Kind == b.Rule.Kind && a.Rule.Register == b.Rule.Register &&
		a.Rule.Offset == b.Rule.Offset && bytes.Equal(a.Rule.Expr, b.Rule.Expr)
}
