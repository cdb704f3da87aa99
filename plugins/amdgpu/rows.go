// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// A gap is code without a row.
type gap struct {
	start, end uint64
	reason     string
}

// rows finds the rows of the code between two addresses that a flow reached, and the
// gaps between them. A viewer finds the view of each state, and a writer writes it.
func (f *flow) rows(start, end uint64) (rows []cfi.Row, gaps []gap, err error) {
	x := &viewer{flow: f, now: &evidence{}, before: &evidence{}, isAnew: true}
	w := &writer{machineMode: f.machineMode}
	var v view
	for b := range f.All() {
		if !b.IsReached || b.At >= end || b.End <= start {
			continue
		}
		err := f.replay(b, func(pc uint64, in *isa.Inst, s *codeState) {
			if pc < start || pc >= end {
				return
			}
			next := min(pc+uint64(in.Size), end)
			// Where look finds nothing new the view is that of the last row.
			other := x.look(in, s)
			if other {
				v = x.view(in)
			}
			if v.reason != "" {
				gaps = append(gaps, gap{pc, next, v.reason})
				return
			}
			other = other && !v.equal(&w.before)
			if n := len(rows); n > 0 && rows[n-1].End == pc && !other {
				rows[n-1].End = next
				return
			}
			rows = append(rows, w.row(pc, next, &v))
			if other {
				w.before, x.buffer = v, w.before.rules // the memory of two views takes turns
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return rows, gaps, nil
}
