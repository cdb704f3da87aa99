// SPDX-License-Identifier: Apache-2.0

package dwarf

import "unsafe"

// MemorySize is about how many bytes the Reader keeps of what it read: units,
// abbreviations, functions and inlined calls by address, line tables, names, and the
// files that it opened. What sections of the object itself were unpacked to is the
// object's. It takes no time to ask, and grows only.
func (r *Reader) MemorySize() uint64 {
	size := uint64(max(r.kept.Load(), 0))
	if o := r.supplementary.Load(); o != nil {
		size += o.MemorySize() // it is unpacked by need
	}
	return size
}

// leastRested is the size of sections that Rest gives back, in bytes.
const leastRested = 1 << 20

// Rest gives back the pages of large sections that lie in the mapped file: whoever asks
// about addresses in their order does not come back to most of them.
func (r *Reader) Rest() {
	f := r.main
	for _, section := range [][]byte{f.info, f.line, f.str, f.rnglists, f.debugRanges} {
		if len(section) >= leastRested {
			f.object.ReleasePages(section)
		}
	}
}

// keeps says that the Reader keeps so many bytes more.
func (f *file) keeps(bytes int) {
	if f.reader != nil {
		f.reader.kept.Add(int64(bytes))
	}
}

// sizeOf is what n elements of a list take.
func sizeOf[T any](n int) int {
	var zero T
	return n * int(unsafe.Sizeof(zero))
}

func (s *segments) memorySize() int {
	return sizeOf[uint64](cap(s.starts)) + sizeOf[int32](cap(s.index))
}

func (t *lineTable) memorySize() int {
	size := sizeOf[lineTable](1) + sizeOf[sequence](cap(t.sequences)) + sizeOf[checkpoint](cap(t.checkpoints)) +
		sizeOf[lineFile](cap(t.dirs)+cap(t.files)) + sizeOf[row](t.sorted)
	if t.special != nil {
		size += int(unsafe.Sizeof(*t.special))
	}
	return size
}

// nameBytes is what a name takes in the maps and lists that have it, beside its text.
const nameBytes = int(unsafe.Sizeof(functionName{})) + 64

func (n *functionName) memorySize() int {
	return nameBytes + len(n.readable) + len(n.linkage) + len(n.name) + len(n.decoded)
}
