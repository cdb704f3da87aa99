// SPDX-License-Identifier: Apache-2.0

package target

import "sort"

// Mapping is memory that a process had mapped with one protection.
type Mapping struct {
	Start, End                           uint64 // End is exclusive
	IsReadable, IsWritable, IsExecutable bool
	// File is the path of the mapped file, "" for memory without a file; Offset is the
	// offset in the file of Start.
	File   string
	Offset uint64
}

// Mapper is a Target that lists the mappings of its process, as far as they were recorded.
type Mapper interface {
	Target
	// Around returns the mapping that contains an address, and its neighbours below and
	// above; nil where there are none.
	Around(address uint64) (below, containing, above *Mapping)
}

// MappingsAround implements Mapper.Around over n sorted ranges of addresses that do not
// overlap: bounds returns a range, mapping returns its mapping.
func MappingsAround(n int, bounds func(i int) (start, end uint64), mapping func(i int) *Mapping, address uint64) (below, containing, above *Mapping) {
	i := sort.Search(n, func(i int) bool { start, _ := bounds(i); return start > address })
	if i < n {
		above = mapping(i)
	}
	if i--; i >= 0 {
		if _, end := bounds(i); address < end {
			containing = mapping(i)
			i--
		}
	}
	if i >= 0 {
		below = mapping(i)
	}
	return below, containing, above
}
