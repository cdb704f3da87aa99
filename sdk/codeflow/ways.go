// SPDX-License-Identifier: Apache-2.0

package codeflow

// Ways say where the code goes on after an instruction, as far as the instruction itself says it.
type Ways struct {
	Next   uint64 // behind the instruction
	Target uint64 // where it jumps to
	GoesOn bool   // at Next
	Jumps  bool   // to Target
}

// FindBlocks makes points of entry and of what branches lead to from there, before any code is
// followed by states: few blocks have to be divided later. Each instruction takes one step.
func (f *Flow[S]) FindBlocks(entry uint64, ways func(at uint64) Ways) error {
	var seen Table[bool]
	waiting := []uint64{entry}
	for len(waiting) > 0 {
		at := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if f.points.Get(at) != nil {
			continue
		}
		if f.add(at) == nil {
			return f.err
		}
		for !seen.Get(at) {
			*seen.Put(at) = true
			if !f.Spend(1) {
				return f.err
			}
			w := ways(at)
			if w.Jumps {
				waiting = append(waiting, w.Target)
				if w.GoesOn {
					waiting = append(waiting, w.Next)
				}
			}
			if w.Jumps || !w.GoesOn {
				break
			}
			at = w.Next
		}
	}
	return nil
}

// LeadingTo returns the addresses of points, and of all points from which the code leads to one of
// them, in a flow by instruction; nil where there are no points.
func (f *Flow[S]) LeadingTo(points []*Point[S], ways func(at uint64) Ways) map[uint64]bool {
	if len(points) == 0 {
		return nil
	}
	before := make(map[uint64][]uint64)
	for _, p := range f.Found() {
		w := ways(p.At)
		if w.Jumps {
			before[w.Target] = append(before[w.Target], p.At)
		}
		if w.GoesOn {
			before[w.Next] = append(before[w.Next], p.At)
		}
	}
	leading := make(map[uint64]bool, len(points))
	var queue []uint64
	note := func(at uint64) {
		if !leading[at] {
			leading[at] = true
			queue = append(queue, at)
		}
	}
	for _, p := range points {
		note(p.At)
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, b := range before[at] {
			note(b)
		}
	}
	return leading
}
