// SPDX-License-Identifier: Apache-2.0

package object

import "unsafe"

// What an object takes besides what is counted: the functions and maps of the Object
// itself; a map's share of one section; the Mapping with its paths.
const (
	objectOverhead  = 1 << 10 // bytes
	sectionOverhead = 48      // bytes
)

// MemorySize is about how many bytes of the heap the object keeps: headers, section
// names, and the sections that were decompressed or relocated so far. What lies in
// the file's mapping is not counted, nor are symbols, which the object does not keep.
// An image of a Store is counted with its bytes. It takes no time to ask.
func (o *Object) MemorySize() uint64 {
	size := o.headerSize + uint64(o.made.Load())
	if laid := o.laidAs.Load(); laid != nil {
		size += laid.MemorySize()
	}
	return size
}

// sizeOfHeaders is what the object keeps of what read has read.
func (o *Object) sizeOfHeaders() uint64 {
	size := uint64(unsafe.Sizeof(*o)) + objectOverhead + uint64(len(o.name))
	size += uint64(cap(o.programs)) * uint64(unsafe.Sizeof(Program{}))
	size += uint64(cap(o.segments)+cap(o.byStart)) * uint64(unsafe.Sizeof(Segment{}))
	size += uint64(len(o.sections)) * uint64(unsafe.Sizeof(Section{})+unsafe.Sizeof(&Section{})+sectionOverhead)
	names := 0
	for _, s := range o.sections {
		names += len(s.Name) + 1
	}
	size += uint64(min(names, len(o.data))) // which are parts of one string
	for _, p := range o.problems {
		size += uint64(len(p))
	}
	return size
}
