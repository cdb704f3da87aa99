// SPDX-License-Identifier: Apache-2.0

package object

import "unsafe"

// About how much memory is not counted: the functions and maps of the Object itself with the
// Mapping and its paths; and a map's share of one section.
const (
	objectOverhead  = 1 << 10 // bytes
	sectionOverhead = 48      // bytes
)

// MemorySize returns about how many bytes of the heap the object keeps: headers, section names,
// and the sections that were decompressed or relocated so far. Bytes of the file's mapping are not
// counted, nor are symbols, which the object does not keep. An image of a Store is counted with
// its bytes. The call takes no time.
func (o *Object) MemorySize() uint64 {
	size := o.headerSize + uint64(o.keptBytes.Load())
	if laid := o.laidAs.Load(); laid != nil {
		size += laid.MemorySize()
	}
	return size
}

// sizeOfHeaders returns how many bytes read made of the headers.
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
