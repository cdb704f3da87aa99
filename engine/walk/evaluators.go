// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// evaluators has the evaluators of rows of one machine. Rows of CFI have expressions in the
// dialect of their object, rows of plugins in the canonical one. The evaluation of one row's
// rule may need registers that another's rule places, so all evaluators derive from one, and
// share its limits.
type evaluators struct {
	cfi, plugin *locexpr.Evaluator
	dialects    map[*locexpr.Dialect]*locexpr.Evaluator
}

func newEvaluators(m *machine) evaluators {
	e := evaluators{cfi: &locexpr.Evaluator{
		Dialect:     locexpr.DWARF5,
		AddressBits: m.Description.AddressBits,
		Order:       m.Order,
		CFI:         true,
	}}
	e.plugin = e.cfi.Derive()
	e.plugin.Dialect = locexpr.Canonical
	return e
}

// forRow returns the evaluator for the expressions of a row.
func (e *evaluators) forRow(row *code.Row) *locexpr.Evaluator {
	switch {
	case row.By != trace.ByCFI:
		return e.plugin
	case row.Dialect == nil || row.Dialect == locexpr.DWARF5:
		return e.cfi
	}
	ev := e.dialects[row.Dialect]
	if ev == nil {
		if e.dialects == nil {
			e.dialects = map[*locexpr.Dialect]*locexpr.Evaluator{}
		}
		ev = e.cfi.Derive()
		ev.Dialect = row.Dialect
		e.dialects[row.Dialect] = ev
	}
	return ev
}

// rowEvaluator returns the evaluator for the expressions of a row of the frame, whose addresses
// (DW_OP_addr) are of the frame's code object.
func (f *frame) rowEvaluator(row *code.Row) *locexpr.Evaluator {
	ev := f.walker.evals.forRow(row)
	ev.LoadBias = 0
	if f.module != nil && f.module.Object != nil {
		ev.LoadBias = f.pc - f.offset
	}
	return ev
}
