// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxUnmappedRows bounds the rows of code in no module that are remembered.
const maxUnmappedRows = 1 << 16

// unmappedRows are the rows of code in no module that a walker has found.
type unmappedRows struct{ known map[unmappedKey]*unmappedRow }

// unmappedKey is an address of code in no module.
type unmappedKey struct {
	address uint64
	exact   bool
}

// unmappedRow is the row at an unmappedKey, or why there is none.
type unmappedRow struct {
	row  *code.Row
	none *code.NoRow
}

// add remembers a row, as long as there are not too many.
func (u *unmappedRows) add(key unmappedKey, r *unmappedRow) {
	if u.known == nil {
		u.known = map[unmappedKey]*unmappedRow{}
	}
	if len(u.known) < maxUnmappedRows {
		u.known[key] = r
	}
}

// rowAt finds the row for the PC of a frame. isExact is true where the code there is about to
// execute; else it follows a call.
func (w *walker) rowAt(ctx context.Context, f *frame, isExact bool) (*code.Row, error) {
	if f.module != nil {
		return w.row(ctx, f.module, f.offset, isExact)
	}
	key := unmappedKey{f.pc, isExact}
	r, isKnown := w.unmapped.known[key]
	if !isKnown {
		row, err := w.readUnmappedRow(ctx, f, isExact)
		if errors.Is(err, errNoCode) {
			return nil, err // no allocation for samples of processes that begin to execute
		}
		r = &unmappedRow{row: row}
		if err != nil && !errors.As(err, &r.none) {
			return nil, err
		}
		if !w.sampling {
			w.unmapped.add(key, r)
		}
	}
	if r.none != nil {
		return nil, r.none
	}
	return r.row, nil
}

// readUnmappedRow reads the row of code that is in no module.
func (w *walker) readUnmappedRow(ctx context.Context, f *frame, isExact bool) (*code.Row, error) {
	if !w.isCode(f.pc) {
		return nil, errNoCode
	}
	lookup := f.pc
	if !isExact {
		lookup -= uint64(w.machine.Description.CallDistance)
	}
	// Mappings are of whole pages, so executable code is there from its page's start on.
	start := lookup &^ (code.CodeWindow - 1)
	if w.isCode(start-1) && start > 0 {
		start -= code.CodeWindow
	}
	bytes := make([]byte, lookup-start+code.CodeWindow)
	n, err := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, start, bytes)
	if start+uint64(n) <= lookup {
		return nil, &code.NoRow{Reasons: []string{err.Error()}}
	}
	return code.UnmappedRow(ctx, w.machine.Machine, &view{w.process}, sdk.CodeRange{
		PC: lookup, Start: start, Code: bytes[:n], Exact: isExact,
	})
}
