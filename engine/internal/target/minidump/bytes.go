// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"fmt"
	"math"
)

// record is the bytes of a structure. An incomplete or absent field reads as 0, so
// that older and shorter versions of a structure need no care.
type record struct {
	b     []byte
	order binary.ByteOrder
}

func (r record) has(offset, size int) bool { return offset <= len(r.b) && size <= len(r.b)-offset }

func (r record) u16(offset int) uint16 {
	if !r.has(offset, 2) {
		return 0
	}
	return r.order.Uint16(r.b[offset:])
}

func (r record) u32(offset int) uint32 {
	if !r.has(offset, 4) {
		return 0
	}
	return r.order.Uint32(r.b[offset:])
}

func (r record) u64(offset int) uint64 {
	if !r.has(offset, 8) {
		return 0
	}
	return r.order.Uint64(r.b[offset:])
}

// skip returns the record without its first bytes; it is empty where there are no more.
func (r record) skip(offset int) record {
	if offset > len(r.b) {
		return record{nil, r.order}
	}
	return record{r.b[offset:], r.order}
}

// location is a MINIDUMP_LOCATION_DESCRIPTOR, or its 64-bit version.
type location struct{ size, offset uint64 }

func (r record) location(offset int) location {
	return location{uint64(r.u32(offset)), uint64(r.u32(offset + 4))}
}

// bytesOf returns the bytes of a location as far as the file has them. Where some are
// missing, the problem is the end of a sentence about them.
func (d *Dump) bytesOf(l location) (r record, problem string) {
	have := uint64(len(d.data))
	if l.offset <= have && l.size <= have-l.offset {
		return record{d.data[l.offset : l.offset+l.size : l.offset+l.size], d.Order}, ""
	}
	problem = fmt.Sprintf("%d bytes at offset %#x are expected, the file ends at %#x", l.size, l.offset, have)
	if l.offset >= have {
		return record{nil, d.Order}, problem
	}
	return record{d.data[l.offset:], d.Order}, problem
}

// toEnd returns the location from an offset to the end of the file.
func (d *Dump) toEnd(offset uint64) location {
	return location{uint64(len(d.data)) - min(offset, uint64(len(d.data))), offset}
}

// entries are the records of a list.
type entries struct {
	record
	size   int // of an entry
	count  int
	offset uint64 // of the first one in the file
}

func (e *entries) entry(i int) record { return record{e.b[i*e.size : (i+1)*e.size], e.order} }

// where returns the offset of an entry in the file.
func (e *entries) where(i int) uint64 { return e.offset + uint64(i)*uint64(e.size) }

// list divides the bytes behind a list's header into entries. size is the entries'
// size as the list states it, least the smallest valid one. An invalid list
// adds a problem.
func (d *Dump) list(s *Stream, r record, header, size, count uint64, least, most int) entries {
	e := entries{record: record{nil, r.order}, offset: s.Offset + header}
	switch {
	case header > uint64(len(r.b)):
		if count > 0 {
			d.problem(s, 0, "its header has %d bytes, the stream has %d", header, len(r.b))
		}
		return e
	case count == 0:
		return e
	case size < uint64(least) || size > math.MaxInt32:
		d.problem(s, 0, "its entries have %d bytes, expected %d at least", size, least)
		return e
	}
	rest := r.b[header:]
	if capacity := uint64(len(rest)) / size; count > capacity {
		d.problem(s, 0, "it has %d entries of %d bytes, but its %d bytes have room for %d; those are read", count, size, len(r.b), capacity)
		count = capacity
	}
	if count > uint64(most) {
		d.problem(s, 0, "it has %d entries, %d are read", count, most)
		count = uint64(most)
	}
	e.b, e.size, e.count = rest, int(size), int(count)
	return e
}

// counted reads a list that begins with a count of 32 bits. Some writers put 4 bytes
// behind the count, to align the entries, as a C compiler does; the size of the stream
// shows it.
func (d *Dump) counted(s *Stream, least, most int) entries {
	r := d.stream(s)
	count, header := uint64(r.u32(0)), uint64(4)
	if s.Size == 8+count*uint64(least) {
		header = 8
	}
	return d.list(s, r, header, uint64(least), count, least, most)
}

// described reads a list that begins with the sizes of its header, at least
// leastHeader, and of its entries, each in 32 bits.
func (d *Dump) described(s *Stream, leastHeader int, count func(r record) uint64, least, most int) entries {
	r := d.stream(s)
	header := uint64(r.u32(0))
	if header < uint64(leastHeader) {
		d.problem(s, 0, "its header has %d bytes, expected %d at least; the list is not read", header, leastHeader)
		return entries{}
	}
	return d.list(s, r, header, uint64(r.u32(4)), count(r), least, most)
}

// count32 and count64 return the number of entries of lists that state their sizes.
func count32(r record) uint64 { return uint64(r.u32(8)) }
func count64(r record) uint64 { return r.u64(8) }
