// SPDX-License-Identifier: Apache-2.0

package target

import "sort"

// A Mapping is memory that a process had mapped with one protection.
type Mapping struct {
	Start, End                           uint64 // End is not part of it
	IsReadable, IsWritable, IsExecutable bool
	// File is the path of what is mapped there, and Offset where it begins in that; ""
	// of memory without a file.
	File   string
	Offset uint64
}

// Mapper is a Target that knows what its process had mapped, as far as it was kept.
type Mapper interface {
	Target
	// Around are the mapping that an address lies in, and the next ones below it and
	// above it; nil where there are none.
	Around(address uint64) (below, at, above *Mapping)
}

// MappingsAround finds what Mapper.Around gives in n ranges of addresses that are sorted
// and do not overlap: bounds gives a range, mapping the mapping that it stands for.
func MappingsAround(n int, bounds func(i int) (start, end uint64), mapping func(i int) *Mapping, address uint64) (below, at, above *Mapping) {
	i := sort.Search(n, func(i int) bool { start, _ := bounds(i); return start > address })
	if i < n {
		above = mapping(i)
	}
	if i--; i >= 0 {
		if _, end := bounds(i); address < end {
			at = mapping(i)
			i--
		}
	}
	if i >= 0 {
		below = mapping(i)
	}
	return below, at, above
}
