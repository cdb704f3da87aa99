package engine

import "sort"

// A codeIndex is the executable segments of a process by start; none overlap.
type codeIndex []moduleSegment

// moduleSegment is an executable segment.
type moduleSegment struct {
	start, end uint64
	module     *module
	address    uint64 // of start, in the module
}

// sort puts the segments in order. Where segments overlap, an address is the
// one's that starts last.
func (x codeIndex) sort() {
	sort.SliceStable(x, func(i, j int) bool { return x[i].start < x[j].start })
	for i := range x {
		if i+1 < len(x) {
			x[i].end = min(x[i].end, x[i+1].start)
		}
	}
}

// find finds the segment that holds a run-time address; nil where none does.
func (x codeIndex) find(address uint64) *moduleSegment {
	lo, hi := 0, len(x)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); x[mid].start > address {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == 0 || address >= x[lo-1].end {
		return nil
	}
	return &x[lo-1]
}

// objectAddress is the address in the module of a run-time address of s.
func (s *moduleSegment) objectAddress(address uint64) uint64 { return address - s.start + s.address }
