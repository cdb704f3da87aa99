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
	data        []byte // the file with its bytes
	offset      uint64 // of its bytes in data
	dumped      uint64 // bytes that the core has
	written     uint64 // bytes that the core had before it was truncated; >= dumped
	flags       elf.ProgFlag
}

// fileSegment is memory that is read from a mapped file.
type fileSegment struct {
	start, size uint64
	data        []byte // of the object
	module      *target.Module
}

// memory is the address space of the target.
//
// Writers leave out memory that files have. The kernel writes, under
// the default coredump_filter (0x33), all private memory that was ever written
// to, and the first page of each file that is mapped from its start and looks
// like ELF; for other file mappings it writes a program header with p_filesz 0.
// gdb's gcore does not even write the program header of such a mapping.
//
// So memory that is not in the core is read from the file only if it was never
// writable: neither the core's program header (if there is one) nor the PT_LOAD
// of the code object is. The second condition excludes RELRO, which is read-only
// in the core and has been relocated. Memory that a truncated core has lost was
// dumped because it may have been written to: it is unknown.
type memory struct {
	data     []byte
	segments []segment     // sorted by start, without overlap
	files    []fileSegment // the same
	devices  *memory       // of a second core, for processors beside the CPU; nil if there is none
	added    []fileSegment // not yet among files; empty once the core is open
}

// newMemory makes the address space of the PT_LOADs. If two overlap, the first keeps the bytes
// that both have.
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

// separate sorts the segments and removes overlaps. It returns the number of overlapping
// segments, and the start of the first.
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

// segment returns the PT_LOAD that contains an address; nil if none does.
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

// file returns the bytes of a mapped file from address on, if any, and its module.
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

// bytesAt returns bytes of memory from address on: at least one, unless the memory
// there is unknown. module is the module whose file has them; nil if the core has.
func (m *memory) bytesAt(address uint64) (b []byte, module *target.Module) {
	b, module = m.own(address)
	if len(b) > 0 || m.devices == nil {
		return b, module
	}
	// Memory that both cores have is the same; the process's core comes first.
	b, module = m.devices.own(address)
	i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].start > address })
	if i < len(m.segments) {
		b = b[:min(uint64(len(b)), m.segments[i].start-address)]
	}
	return b, module
}

// own is bytesAt without the second core.
func (m *memory) own(address uint64) (b []byte, module *target.Module) {
	s := m.segment(address)
	if s == nil {
		b, module = m.file(address)
		// A segment that begins within these bytes comes first.
		i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].start > address })
		if i < len(m.segments) && m.segments[i].start-address < uint64(len(b)) {
			b = b[:m.segments[i].start-address]
		}
		return b, module
	}
	offset := address - s.start
	switch {
	case offset < s.dumped:
		return s.data[s.offset+offset : s.offset+s.dumped], nil
	case offset < s.written || s.flags&elf.PF_W != 0:
		return nil, nil
	}
	b, module = m.file(address)
	return b[:min(uint64(len(b)), s.size-offset)], module
}

// gap returns the number of bytes, at least 1, from an address whose memory is unknown up to where
// known memory can begin.
func (m *memory) gap(address uint64) uint64 {
	m.settle()
	n := max(^uint64(0)-address, 1)
	i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].start > address })
	if i < len(m.segments) {
		n = m.segments[i].start - address
	}
	if i > 0 {
		s := &m.segments[i-1]
		for _, size := range []uint64{s.size, s.written} {
			if offset := address - s.start; offset < size {
				n = min(n, size-offset)
			}
		}
	}
	i = sort.Search(len(m.files), func(i int) bool { return m.files[i].start > address })
	if i < len(m.files) {
		n = min(n, m.files[i].start-address)
	}
	if m.devices != nil {
		n = min(n, m.devices.gap(address))
	}
	return n
}

// read fills buf from address on and returns the number of known bytes. The caller is inside
// object.Guard.
func (m *memory) read(address uint64, buf []byte) (n int) {
	for n < len(buf) {
		next := address + uint64(n)
		if next < address {
			break
		}
		b, _ := m.bytesAt(next)
		if len(b) == 0 {
			break
		}
		n += copy(buf[n:], b)
	}
	return n
}

// dumped returns the number of bytes from address on, up to limit, that are in the core.
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

// readDumped returns the bytes that the core itself has from address on. Bytes of one segment
// are not copied: they must be read inside object.Guard, and not kept.
func (m *memory) readDumped(address, limit uint64) []byte {
	if s := m.segment(address); s != nil {
		if offset := address - s.start; offset < s.dumped && (limit <= s.dumped-offset || s.dumped < s.size && m.devices == nil) {
			n := min(limit, s.dumped-offset)
			return s.data[s.offset+offset:][:n:n]
		}
	}
	n := m.dumped(address, limit)
	if n == 0 {
		return nil
	}
	buf := make([]byte, n)
	return buf[:m.read(address, buf)]
}

// addFiles adds memory that a module's mapped file has.
func (m *memory) addFiles(module *target.Module, list []fileSegment) {
	for i := range list {
		list[i].module = module
	}
	m.added = append(m.added, list...)
}

// settle merges added into files. Of overlapping ranges the first keeps the bytes that both
// have. It is called when files are first needed, as modules are many, and once all modules are
// added, as memory is read concurrently from then on.
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

// fileSegments returns the parts of an object that are mapped read-only, so that its image in
// memory has the same bytes. If ranges is not nil, only parts that it lists as mapped count.
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
			first, last := max(start, r.start), min(start+size, r.end)
			// The mapping must be of these bytes of this file.
			if r.path != path || r.offset+(first-r.start) != im.offset+s.Offset+(first-start) {
				continue
			}
			list = append(list, fileSegment{start: first, size: last - first, data: data[s.Offset+(first-start) : s.Offset+(last-start)]})
		}
	}
	return list
}
