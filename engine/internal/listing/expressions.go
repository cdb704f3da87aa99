// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"errors"
	"fmt"
	"iter"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// Expression is a DWARF expression in a code object.
type Expression struct {
	File    string // the split file that has it; "": the object itself
	Section string // ".debug_info", ".eh_frame"
	Offset  uint64 // of the entry that has it
	Where   string // "DW_AT_location", "CFA", "rule of rbx"
	Bytes   []byte
	Range   *dwarf.Range // where it is valid, in a location list; nil: everywhere
}

// Expressions yields the expressions of a code object: first from its call frame
// information, then from its debugging information entries and their location lists, in
// its split files too. d names registers; nil: they have numbers. An error is about one
// entry, and the entries after it follow.
func Expressions(o *object.Object, d *sdk.Description) iter.Seq2[Expression, error] {
	return func(yield func(Expression, error) bool) {
		for _, t := range code.FrameTables(o) {
			if !yieldTable(t, d, yield) {
				return
			}
		}
		for e, err := range dwarf.Expressions(o, dwarf.Options{}) {
			if errors.Is(err, dwarf.ErrNoDebugInfo) {
				return
			}
			if !yield(Expression{e.File, e.Section, e.Entry, e.Attribute, e.Bytes, e.Range}, err) {
				return
			}
		}
	}
}

func yieldTable(t code.FrameTable, d *sdk.Description, yield func(Expression, error) bool) bool {
	if t.Err != nil {
		return yield(Expression{}, t.Err)
	}
	more := true
	// An expression is usually the same in several rows.
	seen := map[string]bool{}
	t.Rows(func(fde *cfi.FDE, row *cfi.Row, err error) bool {
		if err != nil {
			more = yield(Expression{}, err)
			return more
		}
		if row.Start == fde.Start {
			clear(seen)
		}
		say := func(where string, expr []byte) {
			if key := where + string(expr); more && !seen[key] {
				seen[key] = true
				more = yield(Expression{Section: t.Section, Offset: fde.Offset, Where: where, Bytes: expr}, nil)
			}
		}
		if row.CFA.Kind == cfi.CFAExpression {
			say("CFA", row.CFA.Expr)
		}
		for _, r := range row.Rules {
			if r.Rule.Kind == cfi.Expression || r.Rule.Kind == cfi.ValExpression {
				say("rule of "+columnName(d, r.Column), r.Rule.Expr)
			}
		}
		return more
	})
	return more
}

// columnName is the name of a register, or its number.
func columnName(d *sdk.Description, column uint64) string {
	if d == nil {
		return fmt.Sprintf("r%d", column)
	}
	if column <= uint64(^uint32(0)) {
		if info, ok := d.Register(uint32(column)); ok {
			return info.Name
		}
	}
	return fmt.Sprint(column)
}
