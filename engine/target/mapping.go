// SPDX-License-Identifier: Apache-2.0

package target

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
