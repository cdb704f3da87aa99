// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// gap is code without a row, or whose call frame information contradicts the row.
type gap struct {
	start, end uint64
	reason     string
}

// rows finds the rows of the code between two addresses that a flow reached, and the
// gaps between them. A viewer finds the view of each state, and a writer writes it.
func (f *flow) rows(start, end uint64) (rows []cfi.Row, gaps []gap, err error) {
	found, err := f.checkedRows(start, end, nil)
	return found.rows, found.gaps, err
}

// checkedRows does the same, and finds where call frame information contradicts the code.
// check may be nil.
func (f *flow) checkedRows(start, end uint64, check *frameCheck) (found functionRows, err error) {
	x := &viewer{flow: f, now: &evidence{}, before: &evidence{}, isAnew: true}
	w := &writer{machineMode: f.machineMode}
	var v view
	var checked *cfi.Row // that the view was compared with
	why := ""
	for b := range f.All() {
		if !b.IsReached || b.Address >= end || b.End <= start {
			continue
		}
		err := f.replay(b, func(pc uint64, inst *isa.Inst, s *codeState) {
			if pc < start || pc >= end {
				return
			}
			next := min(pc+uint64(inst.Size), end)
			// Where look finds nothing new the view of the last row still
			// holds.
			other := x.look(inst, s)
			if other {
				v = x.view(inst)
			}
			if v.reason != "" {
				found.gaps = append(found.gaps, gap{pc, next, v.reason})
				return
			}
			if check != nil {
				if said := check.row(pc); other || said != checked {
					checked, why = said, x.contradiction(check, pc, s, &v)
				}
				found.contradict(pc, next, why)
			}
			other = other && !v.equal(&w.before)
			if n := len(found.rows); n > 0 && found.rows[n-1].End == pc && !other {
				found.rows[n-1].End = next
				return
			}
			found.rows = append(found.rows, w.row(pc, next, &v))
			if other {
				w.before, x.buffer = v, w.before.rules // two views share the memory in turn
			}
		})
		if err != nil {
			return functionRows{}, err
		}
	}
	return found, nil
}

// contradict records a contradiction between call frame information and the code; why is
// "" if there is none.
func (f *functionRows) contradict(start, end uint64, why string) {
	if why == "" {
		return
	}
	if n := len(f.contradictions); n > 0 && f.contradictions[n-1].end == start && f.contradictions[n-1].reason == why {
		f.contradictions[n-1].end = end
		return
	}
	f.contradictions = append(f.contradictions, gap{start, end, why})
}
