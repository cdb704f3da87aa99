// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"unsafe"

	"github.com/unwindd/unwindd/engine/internal/ranges"
)

// MemorySize is about how many bytes the data that the Reader read takes: units,
// abbreviations, functions and inlined calls by address, line tables, names, and the files
// that it opened. Unpacked sections belong to the object. It is cheap to call, and only
// grows.
func (r *Reader) MemorySize() uint64 {
	size := uint64(max(r.kept.Load(), 0))
	if o := r.supplementary.Load(); o != nil {
		size += o.MemorySize() // it is unpacked on demand
	}
	return size
}

// leastRested is the least size of sections whose pages ReleasePages releases, in bytes.
const leastRested = 1 << 20

// ReleasePages releases the pages of large sections in the mapped file: queries in the order of
// addresses do not return to most of them.
func (r *Reader) ReleasePages() {
	for _, f := range r.usedFiles() {
		for _, section := range [][]byte{f.info, f.line, f.str, f.rnglists, f.debugRanges} {
			if len(section) >= leastRested {
				f.object.ReleasePages(section)
			}
		}
	}
}

// addKept adds to the bytes that the Reader keeps.
func (f *file) addKept(bytes int) {
	if f.reader != nil {
		f.reader.kept.Add(int64(bytes))
	}
}

// sizeOf is the size of n elements of a list.
func sizeOf[T any](n int) int {
	var zero T
	return n * int(unsafe.Sizeof(zero))
}

func flatSize(f *ranges.Flat) int {
	return sizeOf[uint64](cap(f.Starts)) + sizeOf[int32](cap(f.Index))
}

func (t *lineTable) memorySize() int {
	size := sizeOf[lineTable](1) + sizeOf[sequence](cap(t.sequences)) + sizeOf[checkpoint](cap(t.checkpoints)) +
		sizeOf[lineFile](cap(t.dirs)+cap(t.files)) + sizeOf[row](t.sorted)
	for i := range t.sequences {
		size += sizeOf[uint32](cap(t.sequences[i].order))
	}
	if t.special != nil {
		size += int(unsafe.Sizeof(*t.special))
	}
	return size
}

// nameBytes is the size of a name in the maps and lists that have it, without its text.
const nameBytes = int(unsafe.Sizeof(functionName{})) + 64

func (n *functionName) memorySize() int {
	return nameBytes + len(n.readable) + len(n.linkage) + len(n.name) + len(n.decoded)
}
