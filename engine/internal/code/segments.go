// SPDX-License-Identifier: Apache-2.0

package code

import "sort"

// A Segment is an executable segment of a module.
type Segment struct {
	Start, End uint64 // in the target
	Module     *Module
	Address    uint64 // of Start, in the code object
}

// ObjectAddress returns the address in the code object for one in the target.
func (s *Segment) ObjectAddress(address uint64) uint64 { return address - s.Start + s.Address }

// Segments are the executable segments of a process by start; none overlap.
type Segments []Segment

// SegmentsOf returns the executable segments of modules.
func SegmentsOf(modules []*Module) Segments {
	var list Segments
	for _, m := range modules {
		for _, s := range m.Placed {
			if s.Executable && s.Size > 0 && s.Start+s.Size > s.Start {
				list = append(list, Segment{s.Start, s.Start + s.Size, m, s.Address})
			}
		}
	}
	list.Sort()
	return list
}

// Sort sorts the segments by start. Where segments overlap, an address belongs to the one that
// starts last.
func (x Segments) Sort() {
	sort.SliceStable(x, func(i, j int) bool { return x[i].Start < x[j].Start })
	for i := range x {
		if i+1 < len(x) {
			x[i].End = min(x[i].End, x[i+1].Start)
		}
	}
}

// Find returns the segment that contains an address of the target; nil where none does.
func (x Segments) Find(address uint64) *Segment {
	lo, hi := 0, len(x)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); x[mid].Start > address {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == 0 || address >= x[lo-1].End {
		return nil
	}
	return &x[lo-1]
}
