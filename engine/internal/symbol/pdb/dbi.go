// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// dbi is the stream that lists the modules, and leads to all others.
type dbi struct {
	stream  *msf.Stream
	age     uint32
	machine uint16

	publicStream, recordStream uint16
	isStripped                 bool // of all but public symbols

	moduleBytes, contributionBytes part
	debug                          [11]uint16 // streams by debug*
	sections                       []section  // of the symbols' addresses
	omap                           *omap      // nil: these are the image's

	modules       func() []module
	contributions func() *contributions
}

// part is a part of a stream.
type part struct{ offset, size uint32 }

// section is a section of the image.
type section struct{ start, end uint32 } // RVA

// Indexes of the debug streams.
const (
	debugFPO              = 0
	debugOmapTo           = 3
	debugOmapFrom         = 4
	debugSections         = 5
	debugFrameData        = 9
	debugOriginalSections = 10
)

const (
	dbiHeader    = 64
	dbiSignature = 0xffffffff // before Visual C++ 5 there was none
	flagStripped = 2
)

// readDBI reads the header and the numbers of the debug streams.
func (f *File) readDBI() (*dbi, error) {
	s := f.container.Stream(dbiStream)
	if s == nil || s.Size() < dbiHeader {
		return nil, fmt.Errorf("%s: stream %d, which lists the modules, is missing or cut: expected at least %d bytes (a PDB of types alone, which /Zi makes for a compiler, has none)", f.Name(), dbiStream, dbiHeader)
	}
	r, err := readAt(s, 0, dbiHeader)
	if err != nil {
		return nil, err
	}
	if signature := r.U32(); signature != dbiSignature {
		return nil, s.Errorf(0, "%#x, expected %#x", signature, uint32(dbiSignature))
	}
	r.U32() // version
	d := &dbi{stream: s, age: r.U32()}
	r.Take(4) // the globals' stream, the linker's version
	d.publicStream = r.U16()
	r.U16()
	d.recordStream = r.U16()
	r.U16()
	next := uint64(dbiHeader)
	var parts [8]part
	for i := range parts {
		if i == 5 {
			continue // a number between the sizes
		}
		parts[i] = part{size: r.U32()}
		if i == 4 {
			r.U32()
		}
	}
	flags := r.U16()
	d.machine = r.U16()
	d.isStripped = flags&flagStripped != 0
	// In the order of the stream: modules, contributions, sections, files, type servers,
	// edit and continue, debug streams.
	for _, i := range []int{0, 1, 2, 3, 4, 7, 6} {
		p := &parts[i]
		if next+uint64(p.size) > uint64(s.Size()) {
			f.note(s.Errorf(dbiHeader, "part %d of %d bytes at %#x, expected it in the %d bytes of the stream: the parts from here on are not read", i, p.size, next, s.Size()))
			p.size = 0
			break
		}
		p.offset = uint32(next) //nolint:gosec // less than a stream's size
		next += uint64(p.size)
	}
	d.moduleBytes, d.contributionBytes = parts[0], parts[1]
	d.readDebugStreams(f, parts[6])
	d.modules = sync.OnceValue(func() []module { return d.readModules(f) })
	d.contributions = sync.OnceValue(func() *contributions { return d.readContributions(f) })
	return d, nil
}

// readDebugStreams reads the numbers of the debug streams, the sections and the OMAP.
func (d *dbi) readDebugStreams(f *File, p part) {
	r, err := readAt(d.stream, p.offset, p.size)
	f.note(err)
	for i := range d.debug {
		d.debug[i] = noStream
		if len(r.Rest) >= 2 {
			d.debug[i] = r.U16()
		}
	}
	number := d.debug[debugSections]
	if d.debug[debugOmapFrom] != noStream && d.debug[debugOriginalSections] != noStream {
		if d.omap = f.readOmap(d.debug[debugOmapTo], d.debug[debugOmapFrom]); d.omap != nil {
			number = d.debug[debugOriginalSections]
		}
	}
	const size = 40
	s := f.container.Stream(int(number))
	if number == noStream || s == nil || s.Size() == 0 {
		f.note(fmt.Errorf("%s: no stream with the headers of sections: the addresses of symbols are unknown", f.Name()))
		return
	}
	if r, err = readAt(s, 0, s.Size()/size*size); err != nil {
		f.note(err)
	}
	for len(r.Rest) >= size && len(d.sections) < noStream {
		h := fieldsOf(r.Take(size)[8:])
		length, start := h.U32(), h.U32()
		end := start + length
		if end < start {
			end = ^uint32(0)
		}
		d.sections = append(d.sections, section{start, end})
	}
}

// rva returns the RVA, in the space of symbols, of an offset in a numbered section.
func (d *dbi) rva(section uint16, offset uint32) (rva uint32, ok bool) {
	if section == 0 || int(section) > len(d.sections) {
		return 0, false
	}
	s := &d.sections[section-1]
	rva = s.start + offset
	return rva, rva >= s.start
}

// module is an object file of the program, or a part that the linker made.
type module struct {
	stream        uint16 // noStream: it has no symbols
	offset        uint32 // of its record in the DBI stream
	symbols       uint32 // bytes
	oldLines      uint32 // bytes of lines of the format C11
	lines         uint32 // bytes of C13: lines, inlinees, files
	index         func() *moduleIndex
	separatedCode func() *separatedParts
}

const moduleHeader = 64

// readModules reads the list of modules.
func (d *dbi) readModules(f *File) []module {
	b, err := d.stream.Bytes(d.moduleBytes.offset, d.moduleBytes.size)
	if err != nil {
		f.note(err)
		return nil
	}
	list := make([]module, 0, len(b)/(moduleHeader+64))
	for at := 0; at+moduleHeader <= len(b); {
		r := fieldsOf(b[at+34 : at+moduleHeader])
		m := module{offset: d.moduleBytes.offset + uint32(at), stream: r.U16(), symbols: r.U32(), oldLines: r.U32(), lines: r.U32()} //nolint:gosec // inside a stream
		list = append(list, m)
		at += moduleHeader
		for range 2 { // names of the module and of its library
			i := bytes.IndexByte(b[at:], 0)
			if i < 0 {
				i = len(b) - at - 1
			}
			if at += i + 1; at >= len(b) {
				break
			}
		}
		at = (at + 3) &^ 3
	}
	list = slices.Clip(list)
	for i := range list {
		m := &list[i]
		m.index = sync.OnceValue(func() *moduleIndex { return f.indexModule(m) })
		m.separatedCode = sync.OnceValue(func() *separatedParts { return f.separatedCode(m) })
	}
	f.kept.Add(int64(len(list)) * int64(unsafe.Sizeof(module{})+64))
	return list
}

// contribution is the part of a section that a module has.
type contribution struct {
	section
	module uint16
}

// contributions are the parts of sections, which lead from an address to its module. The
// linkers' lists are by address, and are searched where they are.
type contributions struct {
	d     *dbi
	part  part   // of the entries
	size  uint32 // of an entry
	count uint32
	f     *File

	isSorted func() bool // the entries are by address
	once     sync.Once
	list     []contribution // where they are not, or there are none
}

const contributionsV2 = 0xeffe0000 + 20140516

func (d *dbi) readContributions(f *File) *contributions {
	c := &contributions{d: d, f: f, size: 28, part: d.contributionBytes}
	c.isSorted = sync.OnceValue(c.checkOrder)
	if c.part.size < 4 {
		return c
	}
	r, err := readAt(d.stream, c.part.offset, 4)
	if err != nil {
		f.note(err)
		return c
	}
	if version := r.U32(); version == contributionsV2 {
		c.size = 32
	}
	c.part.offset += 4
	c.part.size -= 4
	c.count = c.part.size / c.size
	return c
}

// place is an entry's place: section and offset.
type place struct {
	section uint16
	offset  uint32
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.section, q.section), cmp.Compare(p.offset, q.offset))
}

// entry reads an entry.
func (c *contributions) entry(i uint32) (p place, size uint32, module uint16, ok bool) {
	r, err := readAt(c.d.stream, c.part.offset+i*c.size, c.size)
	if err != nil {
		c.f.note(err)
		return p, 0, 0, false
	}
	p.section = r.U16()
	r.U16()
	p.offset, size = r.U32(), r.U32()
	r.U32() // characteristics
	return p, size, r.U16(), true
}

// at returns the contribution that has an RVA in the space of symbols.
func (c *contributions) at(rva uint32) (found contribution, ok bool) {
	for number := range c.d.sections {
		s := &c.d.sections[number]
		if rva < s.start || rva >= s.end {
			continue
		}
		where := place{uint16(number + 1), rva - s.start} //nolint:gosec // at most 0xffff sections
		i := sort.Search(int(c.count), func(i int) bool {
			p, _, _, ok := c.entry(uint32(i)) //nolint:gosec // less than count
			return !ok || p.compare(where) > 0
		})
		found, state := c.before(i, where)
		switch state {
		case isFound:
			found.start, found.end = s.start+found.start, s.start+found.end
			return found, true
		case isLong:
			return c.indexed(rva)
		}
	}
	if c.count > 0 && c.isSorted() {
		return found, false
	}
	return c.indexed(rva)
}

// States of a search among the contributions before a place.
const (
	isMissing = iota
	isFound
	isLong // too many without code lie before it
)

// before finds the contribution that has a place among those before a number. Its offsets are in
// the section.
func (c *contributions) before(number int, where place) (found contribution, state int) {
	for steps := 0; number > 0; number, steps = number-1, steps+1 {
		if steps > maxOverlaps {
			return found, isLong
		}
		p, size, module, ok := c.entry(uint32(number - 1)) //nolint:gosec // less than count
		if !ok || p.section != where.section {
			break
		}
		if size == 0 {
			continue // of an object file without code
		}
		if where.offset-p.offset < size {
			return contribution{section{p.offset, p.offset + size}, module}, isFound
		}
		break
	}
	return found, isMissing
}

// indexed is at by a list in memory.
func (c *contributions) indexed(rva uint32) (found contribution, ok bool) {
	c.once.Do(c.index)
	i := sort.Search(len(c.list), func(i int) bool { return c.list[i].start > rva })
	for steps := 0; i > 0 && steps < maxOverlaps; i, steps = i-1, steps+1 {
		if rva < c.list[i-1].end {
			return c.list[i-1], true
		}
	}
	return found, false
}

// checkOrder reports whether the file's list is by address.
func (c *contributions) checkOrder() bool {
	var before place
	for i := range c.count {
		p, _, _, ok := c.entry(i)
		if !ok {
			break
		}
		if p.section == 0 || int(p.section) > len(c.d.sections) {
			continue
		}
		if before.compare(p) > 0 {
			return false
		}
		before = p
	}
	return true
}

// index makes a list by address of the file's, or where there is none, of the modules'.
func (c *contributions) index() {
	if c.count == 0 {
		c.ofModules()
	}
	for i := range c.count {
		p, size, module, ok := c.entry(i)
		if !ok {
			break
		}
		if start, ok := c.d.rva(p.section, p.offset); ok && start+size > start {
			c.list = append(c.list, contribution{section{start, start + size}, module})
		}
	}
	slices.SortStableFunc(c.list, func(a, b contribution) int { return cmp.Compare(a.start, b.start) })
	c.f.kept.Add(int64(cap(c.list)) * int64(unsafe.Sizeof(contribution{})))
}

// ofModules makes a list of the functions and lines of all modules, and of the sections for the
// code of none.
func (c *contributions) ofModules() {
	for _, s := range c.d.sections {
		c.list = append(c.list, contribution{s, noStream})
	}
	modules := c.d.modules()
	for i := range modules {
		x := modules[i].index()
		for _, p := range x.procedures {
			c.list = append(c.list, contribution{p.section, uint16(i)}) //nolint:gosec // numbers of modules have 16 bits
		}
		for _, t := range x.lines {
			c.list = append(c.list, contribution{t.section, uint16(i)}) //nolint:gosec // likewise
		}
	}
}
