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

// An unmappedSource is where rows of code that is in no module come from.
type unmappedSource interface {
	// row returns the row at the PC of a frame; nil without an error, or a *code.NoRow, where
	// the next source is to be asked. Any other error ends the look-up.
	row(ctx context.Context, w *walker, f *frame, isExact bool) (*code.Row, error)
}

// unmappedSources are the sources, in the order in which they are asked.
var unmappedSources = []unmappedSource{
	runtimeRows{}, // the language runtime that made the code
	readRows{},    // the architecture's plugin, which reads the code
}

// rowAt finds the row for the PC of a frame. isExact is true where the code there is about to
// execute; else it follows a call.
func (w *walker) rowAt(ctx context.Context, f *frame, isExact bool) (*code.Row, error) {
	if f.module != nil {
		if row, err := (runtimeRows{}).row(ctx, w, f, isExact); row != nil || err != nil {
			return row, err
		}
		return w.row(ctx, f.module, f.offset, isExact)
	}
	key := unmappedKey{f.pc, isExact}
	r, isKnown := w.unmapped.known[key]
	if !isKnown {
		row, err := w.unmappedRow(ctx, f, isExact)
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

// unmappedRow asks the sources for a row.
func (w *walker) unmappedRow(ctx context.Context, f *frame, isExact bool) (*code.Row, error) {
	if !w.isCode(f.pc) {
		return nil, errNoCode
	}
	none := &code.NoRow{}
	for _, s := range unmappedSources {
		row, err := s.row(ctx, w, f, isExact)
		var reasons *code.NoRow
		switch {
		case errors.As(err, &reasons):
			none.Reasons, none.IsUncalled = append(none.Reasons, reasons.Reasons...), none.IsUncalled || reasons.IsUncalled
		case row != nil || err != nil:
			return row, err
		}
	}
	return nil, none
}

// runtimeRows are the rows of code that language runtimes made.
type runtimeRows struct{}

func (runtimeRows) row(ctx context.Context, w *walker, f *frame, _ bool) (*code.Row, error) {
	if made := w.madeAt(ctx, f); made != nil {
		return made.Rows.At(w.callOf(f)), nil
	}
	return nil, nil
}

// readRows are the rows that the plugin reads from code.
type readRows struct{}

func (readRows) row(ctx context.Context, w *walker, f *frame, isExact bool) (*code.Row, error) {
	lookup := f.pc
	if !isExact {
		lookup -= uint64(w.machine.Description.CallDistance)
	}
	r := w.unmappedCode(f.made, lookup)
	bytes := make([]byte, r.End-r.Start)
	n, err := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, r.Start, bytes)
	if r.Start+uint64(n) <= lookup {
		return nil, &code.NoRow{Reasons: []string{err.Error()}}
	}
	return code.UnmappedRow(ctx, w.machine.Machine, &view{w.process}, sdk.CodeRange{
		PC: lookup, Start: r.Start, Code: bytes[:n], Exact: isExact, Bounded: r.IsKnown && n == len(bytes), Name: r.Name,
	})
}

// unmappedCode returns the code to read for the row at an address: the function that a runtime
// knows there, or what is around.
func (w *walker) unmappedCode(m *RuntimeFunction, lookup uint64) code.Bounds {
	if m != nil && m != notMade && m.End-m.Start <= code.MaxFunctionCode {
		b := code.Bounds{Start: m.Start, End: m.End, IsKnown: true}
		if n := len(m.Symbols); n > 0 {
			b.Name = m.Symbols[n-1].Function
		}
		return b
	}
	// Mappings are of whole pages, so executable code is there from its page's start on.
	start := lookup &^ (code.CodeWindow - 1)
	if w.isCode(start-1) && start > 0 {
		start -= code.CodeWindow
	}
	return code.Bounds{Start: start, End: lookup + code.CodeWindow}
}
