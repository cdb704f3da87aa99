// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"fmt"
	"math"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// A Segment is a program header of type PT_LOAD: a part of the file that is
// mapped as one.
type Segment struct {
	Offset   uint64 // in the file
	FileSize uint64 // bytes in the file
	Address  uint64 // virtual
	MemSize  uint64 // bytes in memory; those past FileSize are zero
	Align    uint64
	Flags    elf.ProgFlag
}

// Executable reports whether the segment may be executed (PF_X).
func (s Segment) Executable() bool { return s.Flags&elf.PF_X != 0 }

// SegmentForMapping finds the segment of a mapping of the file: size bytes from fileOffset on,
// mapped with or without the right to execute.
//
// Link editors let adjacent segments share a page of the file, and then both segments' mappings
// contain that page, so the offset alone does not tell the segment of a mapping. The right to
// execute does, and among segments with the same right the largest overlap. Only where no segment
// has the mapping's right, another is taken (a process that asks for executable data has all its
// mappings executable).
//
// The mapping's first byte is at Address + fileOffset - Offset, which may be
// below Address by the part of a page.
func (o *Object) SegmentForMapping(fileOffset, size uint64, executable bool) (Segment, bool) {
	if o.debugOnly {
		return o.describedSegment(fileOffset, size, executable)
	}
	best, bestAny := -1, -1
	var most, mostAny uint64
	for i := range o.segments {
		s := &o.segments[i]
		n := overlap(fileOffset, size, s.Offset, s.FileSize)
		if n == 0 {
			continue
		}
		if n > mostAny {
			bestAny, mostAny = i, n
		}
		if s.Executable() == executable && n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		best = bestAny
	}
	if best < 0 {
		return Segment{}, false
	}
	return o.segments[best], true
}

// describedSegment is SegmentForMapping for a debug file, whose segments have lost their offsets in
// the file of the code: it finds the only one with the mapping's right and number of pages. Its
// Offset is set by the mapping.
func (o *Object) describedSegment(fileOffset, size uint64, executable bool) (found Segment, ok bool) {
	for _, s := range o.segments {
		if s.Executable() != executable || s.MemSize == 0 {
			continue
		}
		inPage := s.Address & (basePage - 1)
		if pages := (inPage + s.MemSize + basePage - 1) &^ (basePage - 1); ok || pages != size {
			return Segment{}, false
		}
		found, ok = s, true
		found.Offset = fileOffset + inPage
	}
	return found, ok
}

// overlap returns how many bytes two ranges share. A range that would pass the
// largest offset ends there.
func overlap(a, aSize, b, bSize uint64) uint64 {
	aEnd, bEnd := a+aSize, b+bSize
	if aEnd < a {
		aEnd = ^uint64(0)
	}
	if bEnd < b {
		bEnd = ^uint64(0)
	}
	start, end := max(a, b), min(aEnd, bEnd)
	if start >= end {
		return 0
	}
	return end - start
}

// segmentAt returns the segment that contains an address in memory; nil when none does.
func (o *Object) segmentAt(address uint64) *Segment {
	i := sort.Search(len(o.byStart), func(i int) bool { return o.byStart[i].Address > address }) - 1
	if i < 0 || address-o.byStart[i].Address >= o.byStart[i].MemSize {
		return nil
	}
	return &o.byStart[i]
}

// fileFrom returns the bytes of the file from an address on to the end of its
// segment; nil when the file has none there.
func (o *Object) fileFrom(address uint64) []byte { return o.fileUpTo(address, math.MaxUint64) }

// fileUpTo is fileFrom of at most some bytes.
func (o *Object) fileUpTo(address, most uint64) []byte {
	s := o.segmentAt(address)
	if s == nil {
		return nil
	}
	skip := address - s.Address
	if skip >= s.FileSize || s.Offset >= uint64(len(o.data)) {
		return nil
	}
	end := min(s.FileSize, uint64(len(o.data))-s.Offset)
	if skip >= end {
		return nil
	}
	if end-skip > most {
		end = skip + most
	}
	if end = skip + o.readable(s.Offset+skip, end-skip); end == skip {
		return nil
	}
	if o.need(s.Offset+skip, end-skip, false) != nil {
		return nil
	}
	return o.data[s.Offset:][skip:end:end]
}

// readable returns how many bytes of a range of the file, from its beginning on, are not encrypted.
func (o *Object) readable(offset, size uint64) uint64 {
	if o.macho == nil {
		return size
	}
	return o.macho.Readable(offset, size)
}

// IsEncrypted reports whether the file has the bytes at an address encrypted.
func (o *Object) IsEncrypted(address uint64) bool {
	s := o.segmentAt(address)
	return s != nil && address-s.Address < s.FileSize && o.readable(s.Offset+(address-s.Address), 1) == 0
}

// ReadableSegments returns the segments, without those parts of them that are encrypted in the file: a segment
// with such a part becomes two at most.
func (o *Object) ReadableSegments() []Segment {
	if o.macho == nil {
		return o.segments
	}
	offset, size := o.macho.Encrypted()
	if size == 0 {
		return o.segments
	}
	var list []Segment
	for _, s := range o.segments {
		before := o.readable(s.Offset, s.FileSize)
		if before > 0 {
			first := s
			first.FileSize, first.MemSize = before, min(before, s.MemSize)
			list = append(list, first)
		}
		if skip := offset + size - s.Offset; before < s.FileSize && skip < min(s.FileSize, s.MemSize) {
			s.Offset, s.Address, s.FileSize, s.MemSize = s.Offset+skip, s.Address+skip, s.FileSize-skip, s.MemSize-skip
			list = append(list, s)
		}
	}
	return list
}

// ReadAddress fills dst with the contents of the file's segments at a virtual
// address: their bytes in the file, and zero for memory that has none. It
// returns how many bytes from address on there are; fewer than len(dst) only
// with an error, which wraps ErrNoAddress where the object has no such address.
func (o *Object) ReadAddress(dst []byte, address uint64) (n int, err error) {
	if o.debugOnly {
		return 0, fmt.Errorf("%s: %w: the file holds debug information only", o.name, ErrNoData)
	}
	err = Guard(func() error {
		for n < len(dst) {
			next := address + uint64(n)
			s := o.segmentAt(next)
			if s == nil || next < address {
				return fmt.Errorf("%s: address %#x: %w", o.name, next, ErrNoAddress)
			}
			skip := next - s.Address
			if skip >= s.FileSize && !o.isLoaded {
				zero := dst[n:][:min(uint64(len(dst)-n), s.MemSize-skip)]
				clear(zero)
				n += len(zero)
				continue
			}
			b := o.fileFrom(next)
			if len(b) == 0 && o.readable(s.Offset+skip, 1) == 0 {
				return fmt.Errorf("%s: address %#x: %w", o.name, next, macho.ErrEncrypted)
			}
			if len(b) == 0 {
				return fmt.Errorf("%s: address %#x is at offset %#x, past the %d bytes of the file", o.name, next, s.Offset+skip, len(o.data))
			}
			n += copy(dst[n:], b[:min(uint64(len(b)), s.MemSize-skip)])
		}
		return nil
	})
	return n, err
}
