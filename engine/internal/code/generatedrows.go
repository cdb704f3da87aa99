// SPDX-License-Identifier: Apache-2.0

package code

import (
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
)

// GeneratedRows are the rows of a function that a language runtime made, in the order of their
// addresses, which are the target's. They do not change.
type GeneratedRows []Row

// NewGeneratedRows prepares rows of an architecture, which are sorted and valid.
func NewGeneratedRows(m *Machine, rows []cfi.Row) GeneratedRows {
	list := make(GeneratedRows, len(rows))
	for i := range rows {
		list[i] = Row{Rules: &rows[i], By: trace.ByRuntime, Defaults: m.Defaults}
		list[i].Compile(m)
	}
	return list
}

// At returns the row in force at an address; nil where there is none.
func (x GeneratedRows) At(address uint64) *Row {
	i := sort.Search(len(x), func(i int) bool { return x[i].Rules.Start > address })
	if i == 0 || address >= x[i-1].Rules.End {
		return nil
	}
	return &x[i-1]
}
