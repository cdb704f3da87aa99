// SPDX-License-Identifier: Apache-2.0

package codeflow

// Edges are the places where the code goes on after an instruction, as far as the instruction
// itself shows them.
type Edges struct {
	Next      uint64 // the following instruction
	Target    uint64 // where it jumps to
	Continues bool   // at Next
	Jumps     bool   // to Target
}

// FindBlocks makes points of the entry and of the targets of the branches reached from it,
// before any code is followed by states: few blocks have to be divided later. Each instruction
// takes one step.
func (f *Flow[S]) FindBlocks(entry uint64, edges func(address uint64) Edges) error {
	var seen Table[bool]
	waiting := []uint64{entry}
	for len(waiting) > 0 {
		address := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if f.points.Get(address) != nil {
			continue
		}
		if f.add(address) == nil {
			return f.err
		}
		for !seen.Get(address) {
			*seen.Put(address) = true
			if !f.Spend(1) {
				return f.err
			}
			e := edges(address)
			if e.Jumps {
				waiting = append(waiting, e.Target)
				if e.Continues {
					waiting = append(waiting, e.Next)
				}
			}
			if e.Jumps || !e.Continues {
				break
			}
			address = e.Next
		}
	}
	return nil
}

// Reaching returns the addresses of points, and of all points from which the code leads to one of
// them, in a flow by instruction; nil where there are no points.
func (f *Flow[S]) Reaching(points []*Point[S], edges func(address uint64) Edges) map[uint64]bool {
	if len(points) == 0 {
		return nil
	}
	predecessors := make(map[uint64][]uint64)
	for _, p := range f.Found() {
		e := edges(p.Address)
		if e.Jumps {
			predecessors[e.Target] = append(predecessors[e.Target], p.Address)
		}
		if e.Continues {
			predecessors[e.Next] = append(predecessors[e.Next], p.Address)
		}
	}
	reaching := make(map[uint64]bool, len(points))
	var queue []uint64
	add := func(address uint64) {
		if !reaching[address] {
			reaching[address] = true
			queue = append(queue, address)
		}
	}
	for _, p := range points {
		add(p.Address)
	}
	for len(queue) > 0 {
		address := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, b := range predecessors[address] {
			add(b)
		}
	}
	return reaching
}
