// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// segment is a PT_LOAD of the core: memory of the target, of which the first
// bytes may be in the core.
type segment struct {
	start, size uint64
	data        []byte // the file that has its bytes
	offset      uint64 // of its bytes in that
	dumped      uint64 // bytes that the core has
	written     uint64 // bytes that the core had before it was cut; >= dumped
	flags       elf.ProgFlag
}

// fileSegment is memory that is read from a mapped file.
type fileSegment struct {
	start, size uint64
	data        []byte // the object's bytes for it
	module      *target.Module
}

// memory is the address space of the target.
//
// Producers leave out what a reader can get elsewhere. The kernel writes, under
// the default coredump_filter (0x33), all private memory that was ever written
// to, and the first page of each file that is mapped from its start and looks
// like ELF; of other file mappings only the program header, with p_filesz 0.
// gdb's gcore leaves out even the program header of such a mapping.
//
// So memory that is not in the core is the file's only where nobody could have
// written to it: the core's program header (where there is one) is not
// writable, and neither is the PT_LOAD of the code object that it was mapped
// by. The second part keeps out RELRO, which is read-only in the core and has
// been relocated. Memory that the core had and lost by being cut may have been
// written to, or it would not have been dumped: it is unknown.
type memory struct {
	data     []byte
	segments []segment     // sorted by start, without overlap
	files    []fileSegment // the same
	devices  *memory       // of a second core, with what processors beside the CPU could reach; nil: there is none
	added    []fileSegment // not yet among files; none once the core is open
}

// newMemory makes the address space of the PT_LOADs. Where two overlap, the
// one that starts first keeps the bytes that both claim.
func newMemory(data []byte, h *coreHeader) (m *memory, problems []string) {
	m = &memory{data: data, segments: make([]segment, 0, len(h.programs))}
	end := uint64(len(data))
	var cut, wrapped int
	var firstCut, firstWrapped string
	for i := range h.programs {
		p := &h.programs[i]
		if p.typ != elf.PT_LOAD || p.memSize == 0 {
			continue
		}
		s := segment{start: h.mask(p.address), size: p.memSize, data: data, offset: p.offset, flags: p.flags}
		s.written = min(p.fileSize, p.memSize)
		// The highest address is left out, so that start+size never wraps.
		if limit := h.mask(^uint64(0)) - s.start; s.size > limit {
			if wrapped++; wrapped == 1 {
				firstWrapped = fmt.Sprintf("program header %d, address %#x, size %#x", i, p.address, p.memSize)
			}
			s.size = limit
			s.written = min(s.written, limit)
		}
		switch {
		case s.offset >= end:
			s.dumped = 0
		case s.written > end-s.offset:
			s.dumped = end - s.offset
		default:
			s.dumped = s.written
		}
		if s.dumped < s.written {
			if cut++; cut == 1 {
				firstCut = fmt.Sprintf("program header %d (address %#x) with %#x bytes at offset %#x", i, s.start, s.written, s.offset)
			}
		}
		if s.size > 0 {
			m.segments = append(m.segments, s)
		}
	}
	if cut > 0 {
		problems = append(problems, fmt.Sprintf("the file is cut at offset %#x: memory of %d segments is lost, the first is %s", end, cut, firstCut))
	}
	if wrapped > 0 {
		problems = append(problems, fmt.Sprintf("%d segments reach past the last address and are cut there, the first is %s", wrapped, firstWrapped))
	}
	if n, first := m.separate(); n > 0 {
		problems = append(problems, fmt.Sprintf("%d segments overlap one that starts before them, the first at address %#x", n, first))
	}
	return m, problems
}

// separate sorts the segments and removes what overlaps. It says how many did,
// and where the first one starts.
func (m *memory) separate() (overlaps int, first uint64) {
	slices.SortStableFunc(m.segments, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	kept := m.segments[:0]
	var end uint64
	for _, s := range m.segments {
		if s.start < end {
			if overlaps++; overlaps == 1 {
				first = s.start
			}
			skip := end - s.start
			if skip >= s.size {
				continue
			}
			s.start += skip
			s.size -= skip
			s.offset += skip
			s.dumped -= min(s.dumped, skip)
			s.written -= min(s.written, skip)
		}
		end = s.start + s.size
		kept = append(kept, s)
	}
	m.segments = kept
	return overlaps, first
}

// segment finds the PT_LOAD that holds an address; nil when none does.
func (m *memory) segment(address uint64) *segment {
	i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].start > address })
	if i == 0 {
		return nil
	}
	if s := &m.segments[i-1]; address-s.start < s.size {
		return s
	}
	return nil
}

// file finds the mapped file's bytes from address on, and its module; none where
// there are none.
func (m *memory) file(address uint64) ([]byte, *target.Module) {
	m.settle()
	i := sort.Search(len(m.files), func(i int) bool { return m.files[i].start > address })
	if i == 0 {
		return nil, nil
	}
	if f := &m.files[i-1]; address-f.start < f.size {
		return f.data[address-f.start : f.size], f.module
	}
	return nil, nil
}

// from finds bytes of memory from address on: at least one, unless the memory
// there is unknown. of is the module whose file has them; nil: the core has them.
func (m *memory) from(address uint64) (b []byte, of *target.Module) {
	b, of = m.own(address)
	if len(b) > 0 || m.devices == nil {
		return b, of
	}
	// What both cores have is the same memory, and the process's core is asked first.
	b, of = m.devices.own(address)
	i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].start > address })
	if i < len(m.segments) {
		b = b[:min(uint64(len(b)), m.segments[i].start-address)]
	}
	return b, of
}

// own is from without the second core.
func (m *memory) own(address uint64) (b []byte, of *target.Module) {
	s := m.segment(address)
	if s == nil {
		b, of = m.file(address)
		// A segment that begins within these bytes has the better claim.
		i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].start > address })
		if i < len(m.segments) && m.segments[i].start-address < uint64(len(b)) {
			b = b[:m.segments[i].start-address]
		}
		return b, of
	}
	at := address - s.start
	switch {
	case at < s.dumped:
		return s.data[s.offset+at : s.offset+s.dumped], nil
	case at < s.written || s.flags&elf.PF_W != 0:
		return nil, nil
	}
	b, of = m.file(address)
	return b[:min(uint64(len(b)), s.size-at)], of
}

// read fills buf from address on and returns how many bytes are known. The
// caller holds object.Guard.
func (m *memory) read(address uint64, buf []byte) (n int) {
	for n < len(buf) {
		at := address + uint64(n)
		if at < address {
			break
		}
		b, _ := m.from(at)
		if len(b) == 0 {
			break
		}
		n += copy(buf[n:], b)
	}
	return n
}

// dumped returns how many bytes from address on, up to limit, are in the core.
func (m *memory) dumped(address, limit uint64) (n uint64) {
	for n < limit {
		s := m.segment(address + n)
		if s == nil || address+n-s.start >= s.dumped {
			if m.devices == nil {
				break
			}
			if s = m.devices.segment(address + n); s == nil || address+n-s.start >= s.dumped {
				break
			}
		}
		n += s.dumped - (address + n - s.start)
	}
	return min(n, limit)
}

// readDumped returns what the core itself has from address on. The bytes are those of
// the core where one segment has them: they are read inside object.Guard, and not kept.
func (m *memory) readDumped(address, limit uint64) []byte {
	if s := m.segment(address); s != nil {
		if at := address - s.start; at < s.dumped && (limit <= s.dumped-at || s.dumped < s.size && m.devices == nil) {
			n := min(limit, s.dumped-at)
			return s.data[s.offset+at:][:n:n]
		}
	}
	n := m.dumped(address, limit)
	if n == 0 {
		return nil
	}
	buf := make([]byte, n)
	return buf[:m.read(address, buf)]
}

// addFiles adds memory that is read from a module's mapped file.
func (m *memory) addFiles(of *target.Module, list []fileSegment) {
	for i := range list {
		list[i].module = of
	}
	m.added = append(m.added, list...)
}

// settle puts what was added in order. It is done when it is first needed, as
// modules are many, and once all modules are there, as reading memory is
// concurrent from then on. Of overlapping ranges the one that starts first
// stays.
func (m *memory) settle() {
	if len(m.added) == 0 {
		return
	}
	if m.files == nil {
		m.files = m.added
	} else {
		m.files = append(m.files, m.added...)
	}
	m.added = nil
	slices.SortStableFunc(m.files, func(a, b fileSegment) int { return cmp.Compare(a.start, b.start) })
	kept := m.files[:0]
	var end uint64
	for _, f := range m.files {
		if f.start < end {
			skip := end - f.start
			if skip >= f.size {
				continue
			}
			f.start, f.size, f.data = f.start+skip, f.size-skip, f.data[skip:]
		}
		end = f.start + f.size
		kept = append(kept, f)
	}
	m.files = kept
}

// fileSegments are the parts of an object that its image in memory cannot have changed: those that are mapped without the
// right to write. ranges restricts them to what was mapped, when it is not nil.
func fileSegments(o *object.Object, n numbers, im *image, path string, ranges *fileRanges) []fileSegment {
	data := o.Data()
	list := make([]fileSegment, 0, len(o.Segments()))
	for _, s := range o.Segments() {
		if s.Flags&elf.PF_W != 0 || s.FileSize == 0 || s.Offset >= uint64(len(data)) {
			continue
		}
		size := min(s.FileSize, s.MemSize, uint64(len(data))-s.Offset)
		start := n.mask(s.Address + im.bias)
		if size > n.mask(^uint64(0))-start {
			continue
		}
		if ranges == nil {
			list = append(list, fileSegment{start: start, size: size, data: data[s.Offset : s.Offset+size]})
			continue
		}
		for _, r := range ranges.overlapping(start, size) {
			from, to := max(start, r.start), min(start+size, r.end)
			// What is mapped there must be these bytes of this file.
			if r.path != path || r.offset+(from-r.start) != im.offset+s.Offset+(from-start) {
				continue
			}
			list = append(list, fileSegment{start: from, size: to - from, data: data[s.Offset+(from-start) : s.Offset+(to-start)]})
		}
	}
	return list
}
