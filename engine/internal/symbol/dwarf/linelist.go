// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// EachLine calls yield with the rows of all line tables, of units and without, by address, until it
// returns false. Rows without code are left out. The row is reused between calls. Tables that
// cannot be read are left out, and are problems.
func (r *Reader) EachLine(yield func(*symbol.LineRow) bool) error {
	return r.protect(func() error {
		var out symbol.LineRow
		for _, part := range r.everySequence() {
			isOver := false
			p := linePlace{unit: part.unit, table: part.table, sequence: &part.table.sequences[part.index]}
			part.table.rowsOf(p.sequence, p.sequence.span, func(code span, from *row) {
				if isOver {
					return
				}
				p.row, p.Symbol = *from, trace.Symbol{}
				r.giveRow(&p.Symbol, p.unit, p.table, from)
				out.Start, out.End = code.start, code.end
				out.Frames = r.lineChain(append(out.Frames[:0], p.Symbol), &p, &ownFrameStyle)
				isOver = !yield(&out)
			})
			if isOver {
				break
			}
		}
		return nil
	})
}

// sequencePart is a sequence of a line table.
type sequencePart struct {
	unit  *body
	table *lineTable
	index int
}

// everySequence lists the sequences of all line tables by address.
func (r *Reader) everySequence() (list []sequencePart) {
	var units []*body
	isKnown := map[uint64]bool{}
	for _, u := range r.everyUnit() {
		b, err := u.open()
		if err != nil {
			r.failedUnit(u, err)
			continue
		}
		if b.hasLine && (u.file.isPart || !isKnown[b.lineOff]) { // each unit has its functions' rows there
			isKnown[b.lineOff] = true
			units = append(units, b)
		}
	}
	if lone, err := r.lone.get(r.findLoneTables); err == nil {
		units = append(units, lone.tables...)
	}
	for _, b := range units {
		t, err := b.lineTable()
		if err != nil {
			r.failedUnit(b.unit, err)
		}
		if t == nil || err != nil {
			continue
		}
		for i := range t.sequences {
			list = append(list, sequencePart{b, t, i})
		}
	}
	slices.SortStableFunc(list, func(a, b sequencePart) int {
		return cmp.Compare(a.table.sequences[a.index].start, b.table.sequences[b.index].start)
	})
	if r.parts != nil {
		list = disjoint(list)
	}
	return list
}

// disjoint leaves out sequences of code that others have: each is of a function, which units may have in common.
func disjoint(list []sequencePart) []sequencePart {
	end := uint64(0)
	return slices.DeleteFunc(list, func(p sequencePart) bool {
		s := &p.table.sequences[p.index]
		isSecond := s.start < end
		end = max(end, s.end)
		return isSecond
	})
}
