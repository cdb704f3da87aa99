// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/target"
)

// Range is memory of the process, and its offset in the dump.
type Range struct {
	Start, Size uint64
	Offset      uint64 // in the file
}

// block is a Range of a list. Where blocks overlap, the one with the lowest order is
// read.
type block struct {
	Range
	order int
}

func (b *block) end() uint64 { return b.Start + b.Size }

const (
	memoryDescriptorSize   = 16
	memory64DescriptorSize = 16
	memory64Header         = 16
)

func (d *Dump) readMemoryList(s *Stream) {
	e := d.counted(s, memoryDescriptorSize, maxRanges)
	d.added = slices.Grow(d.added, e.count)
	for i := range e.count {
		d.addMemory(s, e.where(i), e.entry(i).descriptor(0), "range", i)
	}
}

// readMemory64List reads MINIDUMP_MEMORY64_LIST, whose ranges follow one another in
// the file.
func (d *Dump) readMemory64List(s *Stream) {
	r := d.stream(s)
	e := d.list(s, r, memory64Header, memory64DescriptorSize, r.u64(0), memory64DescriptorSize, maxRanges)
	d.added = slices.Grow(d.added, e.count)
	offset := r.u64(8)
	for i := range e.count {
		m := Range{Start: e.entry(i).u64(0), Size: e.entry(i).u64(8), Offset: offset}
		d.addMemory(s, e.where(i), m, "range", i)
		if offset+m.Size < offset {
			d.problem(s, e.where(i), "range %d has %d bytes at offset %#x, which is beyond the last offset; those behind it are not read", i, m.Size, offset)
			return
		}
		offset += m.Size
	}
}

// addMemory adds as much of a range as the file has.
func (d *Dump) addMemory(s *Stream, offset uint64, m Range, what string, index int) {
	if m.Size == 0 {
		return
	}
	if m.Start+m.Size-1 < m.Start {
		d.problem(s, offset, "%s %d has %d bytes at %#x, which is beyond the last address", what, index, m.Size, m.Start)
		m.Size = -m.Start
	}
	have := uint64(len(d.data))
	if available := have - min(m.Offset, have); m.Size > available {
		d.problem(s, offset, "%s %d has %d bytes of memory at offset %#x, the file ends at %#x", what, index, m.Size, m.Offset, have)
		m.Size = available
	}
	// The last byte of the address space is left out, so that no end wraps.
	if m.Start+m.Size < m.Start {
		m.Size--
	}
	if m.Size > 0 {
		d.added = append(d.added, block{m, len(d.added)})
	}
}

// joinMemory joins the blocks of the lists into disjoint ones, by address. The stacks of
// threads are mostly among them; other stacks come last in order.
func (d *Dump) joinMemory() {
	listed := len(d.added)
	for i := range d.Streams {
		s := &d.Streams[i]
		if s.Type != StreamThreadList && s.Type != StreamThreadExList {
			continue
		}
		for j := range d.Threads {
			// dbghelp has an address and no size where it could not read the stack.
			if t := &d.Threads[j].Stack; t.Offset != 0 {
				d.addMemory(s, 0, *t, "the stack of thread", j)
			}
		}
		break
	}
	list := d.added
	d.sayOverlaps(list[:listed])
	d.memory = disjoint(list)
}

// isSame reports whether two blocks, of which the second one begins in the first, have
// the same bytes for the same addresses. Beyond a budget it is false.
func (d *Dump) isSame(a, b *block, budget *uint64) bool {
	offset := a.Offset + (b.Start - a.Start)
	size := min(a.end(), b.end()) - b.Start
	if offset == b.Offset {
		return true
	}
	if size > *budget {
		return false
	}
	*budget -= size
	return bytes.Equal(d.data[offset:offset+size], d.data[b.Offset:b.Offset+size])
}

// sayOverlaps adds problems for blocks of the lists that have, or may have, different
// bytes for the same addresses. dbghelp lists the code at the PC beside the pages that
// contain it.
func (d *Dump) sayOverlaps(list []block) {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b block) int { return cmp.Compare(a.Start, b.Start) })
	budget := uint64(len(d.data)) // of bytes to compare
	for i := 1; i < len(sorted); i++ {
		a, b := &sorted[i-1], &sorted[i]
		if b.Start < a.end() && !d.isSame(a, b, &budget) && d.problems.HasRoom(maxProblems) {
			first := a
			if b.order < a.order {
				first = b
			}
			d.problems.Keep(fmt.Sprintf("memory: %d bytes at %#x and %d bytes at %#x overlap; those at offset %#x, which come first, are read",
				a.Size, a.Start, b.Size, b.Start, first.Offset))
		}
		if a.end() > b.end() { // the longer one may overlap more
			sorted[i] = *a
		}
	}
}

// disjoint cuts blocks so that each address is in one only: the one with the lowest order.
func disjoint(list []block) []block {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b block) int { return cmp.Compare(a.Start, b.Start) })
	isApart := true
	for i := 1; i < len(sorted) && isApart; i++ {
		isApart = sorted[i-1].end() <= sorted[i].Start
	}
	if isApart {
		return sorted
	}
	overlapping := make([]ranges.Range, len(list))
	for i := range list {
		overlapping[i] = ranges.Range{Start: list[i].Start, End: list[i].end(), Index: int32(len(list) - 1 - i)} //nolint:gosec // bounded
	}
	flat := ranges.Flatten(overlapping)
	out := make([]block, 0, len(list))
	for r := range flat.All() {
		b := list[len(list)-1-int(r.Index)]
		out = append(out, block{Range{r.Start, r.End - r.Start, b.Offset + (r.Start - b.Start)}, b.order})
	}
	return out
}

// Memory returns the ranges of memory that the dump has, by address, without overlap.
func (d *Dump) Memory() []Range {
	list := make([]Range, len(d.memory))
	for i := range d.memory {
		list[i] = d.memory[i].Range
	}
	return list
}

// ReadMemory reads memory at an address and returns the number of bytes read; with fewer
// than len(buf) the error wraps target.ErrNoMemory.
func (d *Dump) ReadMemory(address uint64, buf []byte) (n int, err error) {
	return target.ReadBytes(address, buf, func(address uint64) ([]byte, error) {
		b, _ := d.bytesAt(address)
		return b, nil
	})
}

// bytesAt returns the bytes from an address on that the dump has in one piece; next is the first
// address from there on that it has.
func (d *Dump) bytesAt(address uint64) (b []byte, next uint64) {
	i := sort.Search(len(d.memory), func(i int) bool { return d.memory[i].end() > address })
	if i == len(d.memory) {
		return nil, ^uint64(0)
	}
	m := &d.memory[i]
	if address < m.Start {
		return nil, m.Start
	}
	return d.data[m.Offset+(address-m.Start) : m.Offset+m.Size], address
}
