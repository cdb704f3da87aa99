// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"errors"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
)

// framePiece is a range of code whose rows an FDE has, or a compact unwind encoding.
type framePiece struct {
	start, end uint64
	offset     uint64 // of the FDE in the section
	table      int    // compactTable: offset is the number of an entry
}

// tables are the sections of call frame information, in the order of lookup: the object's, which are own ones,
// and the .debug_frame of its debug file, whose .eh_frame has no bytes.
func (x *symbolSource) tables() (list []code.FrameTable, own int) {
	list = x.readable(code.FrameTables(x.Object))
	own = len(list)
	if x.Debug != nil {
		apart := code.FrameTables(x.Debug)
		list = append(list, x.readable(slices.DeleteFunc(apart, func(t code.FrameTable) bool { return t.Section != ".debug_frame" }))...)
	}
	return list, own
}

// readable returns the tables that can be read. The others are problems.
func (x *symbolSource) readable(all []code.FrameTable) (list []code.FrameTable) {
	for _, t := range all {
		if t.Err != nil {
			x.problem(t.Err)
			continue
		}
		list = append(list, t)
	}
	return list
}

// maxSymbolProblems bounds the list of problems: each entry of a section may have one.
const maxSymbolProblems = 16

func (x *symbolSource) problem(err error) {
	if text := err.Error(); len(x.done.Problems) < maxSymbolProblems && !slices.Contains(x.done.Problems, text) {
		x.done.Problems = append(x.done.Problems, text)
	}
}

// frames calls yield with the code of every FDE and of every compact unwind encoding, or of every function
// with unwind codes, by address.
func (x *symbolSource) frames(yield func(*breakpad.SourceFrame) bool) error {
	if list := x.windowsFunctions(); len(list) > 0 {
		x.windowsFrames(list, yield)
		return nil
	}
	tables, own := x.tables()
	var pieces []framePiece
	machO := x.machOFrames()
	if machO != nil {
		pieces = machO.divide(tables, own)
	} else {
		pieces = x.framePieces(tables)
	}
	var frame breakpad.SourceFrame
	for i := range pieces {
		p := &pieces[i]
		var rows func(yield func(*cfi.Row) bool) error
		if p.table == compactTable {
			rows = machO.rows(p)
		} else {
			fde, err := tables[p.table].FDEAt(p.offset)
			if err != nil {
				x.problem(err)
				continue
			}
			if rows = fde.Rows; machO != nil {
				rows = machO.rowsOf(fde)
			}
		}
		frame.Range = breakpad.Range{Start: p.start - x.base, End: p.end - x.base}
		frame.Rows = x.fromBase(rows)
		if !yield(&frame) {
			break
		}
	}
	return nil
}

// fromBase returns rows whose addresses count from the file's base. An error is a problem: the rows before it are valid.
func (x *symbolSource) fromBase(rows func(yield func(*cfi.Row) bool) error) func(yield func(*cfi.Row) bool) error {
	return func(yield func(*cfi.Row) bool) error {
		err := rows(func(row *cfi.Row) bool {
			row.Start -= x.base
			row.End -= x.base
			isMore := yield(row)
			row.Start += x.base
			row.End += x.base
			return isMore
		})
		if err != nil {
			x.problem(err)
		}
		return nil
	}
}

// framePieces divides code among FDEs. Most code has one.
func (x *symbolSource) framePieces(tables []code.FrameTable) []framePiece {
	var list, out []framePiece
	for i, t := range tables {
		for fde, err := range t.FDEs() {
			if err != nil {
				x.problem(err)
				continue
			}
			if fde.Start >= x.base && fde.Start < fde.End {
				list = append(list, framePiece{fde.Start, fde.End, fde.Offset, i})
			}
		}
	}
	slices.SortFunc(list, func(a, b framePiece) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.table, b.table), cmp.Compare(a.offset, b.offset))
	})
	for first := 0; first < len(list); {
		cuts, end, next := []uint64(nil), list[first].end, first+1
		for ; next < len(list) && list[next].start < end; next++ {
			end = max(end, list[next].end)
		}
		for _, p := range list[first:next] {
			cuts = append(cuts, p.start, p.end)
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i := range cuts[:len(cuts)-1] {
			if p, ok := frameAt(tables, cuts[i]); ok {
				p.start, p.end = cuts[i], cuts[i+1]
				if n := len(out); n > 0 && out[n-1].end == p.start && out[n-1].offset == p.offset && out[n-1].table == p.table {
					out[n-1].end = p.end
					continue
				}
				out = append(out, p)
			}
		}
		first = next
	}
	return out
}

// frameAt is the FDE that a walk uses at an address: the FDE of the first table which has a
// row.
func frameAt(tables []code.FrameTable, address uint64) (p framePiece, ok bool) {
	var row cfi.Row
	for i, t := range tables {
		fde, err := t.FDE(address)
		if err != nil {
			continue
		}
		if err := fde.RowAt(address, &row); err != nil && !errors.Is(err, cfi.ErrNoRow) || row.CFA.Kind == cfi.NoCFA {
			continue
		}
		return framePiece{offset: fde.Offset, table: i}, true
	}
	return p, false
}
