// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"slices"
	"sort"
	"unsafe"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// moduleIndex tells where a module has its functions and lines. Its lists are by address.
type moduleIndex struct {
	stream *msf.Stream // nil: the module has no symbols
	end    uint32      // of the symbols

	procedures []procedure // disjoint, but several may begin at an address: then the first is believed
	lines      []lineTable
	inlinees   []inlinee // by identifier
	files      part      // of the list of files
	imports    part      // identifiers of other modules
	exports    part      // identifiers for other modules
}

// lineTable is a DEBUG_S_LINES: the lines of some code, mostly of a function.
type lineTable struct {
	section
	part // behind the header
	// hasColumns is set where columns follow the lines of each file.
	hasColumns bool
}

// inlinee is a function that was inlined, with the place where it is written.
type inlinee struct {
	id, file, line uint32 // file: offset in the list of files
}

// noLine is the line of an inlinee of which nothing tells which one it is: linkers merge the
// identifiers of functions with equal names and types, as older compilers of Rust wrote them.
const noLine = ^uint32(0)

// merged makes one of the places of each inlinee, of a list by identifier.
func merged(list []inlinee) []inlinee {
	out := list[:0]
	for _, e := range list {
		n := len(out)
		if n == 0 || out[n-1].id != e.id {
			out = append(out, e)
			continue
		}
		if last := &out[n-1]; *last != e {
			last.line = noLine
			if last.file != e.file {
				last.file = noFile
			}
		}
	}
	return slices.Clip(out)
}

// Kinds of the parts of C13 (DEBUG_S_SUBSECTION_TYPE of cvinfo.h).
const (
	partLines       = 0xf2
	partFiles       = 0xf4
	partInlinees    = 0xf6
	partImports     = 0xf7
	partExports     = 0xf8
	moduleSignature = 4 // of C13; older ones are 1 (C7) and 2 (C11)
)

// indexModule finds the functions and lines of a module.
func (f *File) indexModule(m *module) *moduleIndex {
	x := &moduleIndex{}
	if m.stream == noStream {
		return x
	}
	s := f.container.Stream(int(m.stream))
	if s == nil || uint64(m.symbols)+uint64(m.oldLines)+uint64(m.lines) > uint64(s.Size()) {
		f.note(f.dbi.stream.Errorf(m.offset, "a module of the stream %d with %d, %d and %d bytes of symbols and lines, expected them in its stream", m.stream, m.symbols, m.oldLines, m.lines))
		return x
	}
	x.stream, x.end = s, m.symbols
	if m.symbols >= 4 {
		r, err := readAt(s, 0, 4)
		f.note(err)
		if signature := r.U32(); err == nil && signature != moduleSignature {
			f.note(s.Errorf(0, "symbols of the version %d, which compilers before Visual C++ 7 wrote, expected %d: the module has no names", signature, moduleSignature))
			x.end = 0
		}
	}
	if m.oldLines > 0 {
		f.note(s.Errorf(m.symbols, "lines of the format C11, which compilers before Visual C++ 7 wrote, expected C13: the module has no lines"))
	}
	x.findProcedures(f)
	x.findLines(f, m.symbols+m.oldLines, m.symbols+m.oldLines+m.lines)
	f.passed(int64(m.symbols) + int64(m.lines))
	f.kept.Add(int64(cap(x.procedures))*int64(unsafe.Sizeof(procedure{})) +
		int64(cap(x.lines))*int64(unsafe.Sizeof(lineTable{})) + int64(cap(x.inlinees))*int64(unsafe.Sizeof(inlinee{})))
	return x
}

// findProcedures finds the records of code. The records of a function, which lie between it and
// its end, are skipped.
func (x *moduleIndex) findProcedures(f *File) {
	released := uint32(0)
	for at := uint32(4); ; {
		if at-released >= restBytes {
			f.ReleasePages()
			released = at
		}
		r, ok := recordAt(x.stream, at, x.end)
		if !ok {
			if at < x.end {
				f.note(x.stream.Errorf(at, "no record before the end of the symbols at %#x: the functions from here on are not read", x.end))
			}
			break
		}
		at = r.next
		p, end, ok := f.dbi.readProcedure(r)
		if ok {
			x.procedures = append(x.procedures, p)
		}
		if end > at {
			at = end
		}
	}
	slices.SortStableFunc(x.procedures, byStart)
	x.procedures = slices.Clip(x.procedures)
}

func byStart(a, b procedure) int { return cmp.Compare(a.start, b.start) }

// separatedParts are the parts that were separated from a module's functions.
type separatedParts struct {
	byAddress []separated
	parts     map[uint32][]separated // by number, by the record of the function
}

// separatedCode finds the parts that were separated from functions. Their records may lie among the
// records of the functions, so all are read.
func (f *File) separatedCode(m *module) *separatedParts {
	x, out := m.index(), &separatedParts{parts: map[uint32][]separated{}}
	for at := uint32(4); x.stream != nil; {
		r, ok := recordAt(x.stream, at, x.end)
		if !ok {
			break
		}
		at = r.next
		if s, ok := f.readSeparated(x, r); ok {
			s.number = uint32(len(out.parts[s.function.record])) + 1 //nolint:gosec // fewer than bytes of a stream
			out.parts[s.function.record] = append(out.parts[s.function.record], s)
			out.byAddress = append(out.byAddress, s)
		}
	}
	f.passed(int64(x.end))
	slices.SortStableFunc(out.byAddress, func(a, b separated) int { return cmp.Compare(a.start, b.start) })
	f.kept.Add(4 * int64(cap(out.byAddress)) * int64(unsafe.Sizeof(separated{})))
	return out
}

// findSeparated returns the separated code that has an RVA.
func findSeparated(list []separated, rva uint32) (s separated, ok bool) {
	first, n := search(len(list), rva, func(i int) section { return list[i].section })
	if n == 0 {
		return s, false
	}
	return list[first], true
}

// maxOverlaps bounds the code before an address that is looked at: where records are sound, only
// the last that begins before it has it.
const maxOverlaps = 64

// find returns the code that has an RVA, and begins at the same address: n members of the list
// from one on.
func find(list []procedure, rva uint32) (first, n int) {
	return search(len(list), rva, func(i int) section { return list[i].section })
}

// search is find for a list of any kind.
func search(count int, rva uint32, member func(i int) section) (first, n int) {
	i := sort.Search(count, func(i int) bool { return member(i).start > rva })
	for steps := 0; i > 0 && steps < maxOverlaps; i, steps = i-1, steps+1 {
		start := member(i - 1).start
		if rva >= member(i-1).end {
			continue
		}
		last := i
		for i > 1 && last-i < maxOverlaps && member(i-2).start == start && rva < member(i-2).end {
			i--
		}
		return i - 1, last - i + 1
	}
	return 0, 0
}

// findLines finds the parts with lines, inlinees and files.
func (x *moduleIndex) findLines(f *File, start, end uint32) {
	at := start
	hasInlinees := []part{}
	released := start
	for end-at >= 8 && at < end {
		if at-released >= restBytes {
			f.ReleasePages()
			released = at
		}
		r, err := readAt(x.stream, at, 8)
		f.note(err)
		kind, p := r.U32(), part{at + 8, r.U32()}
		if err != nil || p.size > end-p.offset {
			f.note(x.stream.Errorf(at, "a part %#x of %d bytes, expected it before the end of the lines at %#x: lines from here on are not read", kind, p.size, end))
			break
		}
		switch kind {
		case partLines:
			x.addLines(f, p)
		case partFiles:
			x.files = p
		case partImports:
			x.imports = p
		case partExports:
			x.exports = p
		case partInlinees:
			hasInlinees = append(hasInlinees, p)
		}
		at = p.offset + p.size
		if rest := end - at; rest < 8 {
			break
		}
		at = (at + 3) &^ 3
	}
	slices.SortStableFunc(x.lines, func(a, b lineTable) int { return cmp.Compare(a.start, b.start) })
	x.lines = slices.Clip(x.lines)
	for _, p := range hasInlinees {
		x.addInlinees(f, p)
	}
	slices.SortStableFunc(x.inlinees, func(a, b inlinee) int { return cmp.Compare(a.id, b.id) })
	x.inlinees = merged(x.inlinees)
}

const linesHeader = 12

func (x *moduleIndex) addLines(f *File, p part) {
	if p.size < linesHeader {
		f.note(x.stream.Errorf(p.offset, "lines of %d bytes, expected at least %d", p.size, linesHeader))
		return
	}
	r, err := readAt(x.stream, p.offset, linesHeader)
	if err != nil {
		f.note(err)
		return
	}
	offset, number, flags, size := r.U32(), r.U16(), r.U16(), r.U32()
	start, ok := f.dbi.rva(number, offset)
	if !ok || start+size <= start {
		return
	}
	x.lines = append(x.lines, lineTable{section{start, start + size}, part{p.offset + linesHeader, p.size - linesHeader}, flags&1 != 0})
}

// addInlinees reads the places of inlined functions.
func (x *moduleIndex) addInlinees(f *File, p part) {
	r, err := readAt(x.stream, p.offset, p.size)
	if err != nil {
		f.note(err)
		return
	}
	const hasMoreFiles = 1
	signature := r.U32()
	for len(r.Rest) >= 12 {
		x.inlinees = append(x.inlinees, inlinee{r.U32(), r.U32(), r.U32()})
		if signature == hasMoreFiles {
			r.Take(4 * int(min(r.U32(), uint32(len(r.Rest)/4)))) //nolint:gosec // a part of a stream
		}
	}
}

// inlinee returns the place of an inlined function.
func (x *moduleIndex) inlinee(id uint32) (found inlinee, ok bool) {
	i, ok := slices.BinarySearchFunc(x.inlinees, id, func(e inlinee, id uint32) int { return cmp.Compare(e.id, id) })
	if !ok {
		return found, false
	}
	return x.inlinees[i], true
}

// file returns the name of a file by its offset in the list of files; "" where it is unknown.
func (x *moduleIndex) file(f *File, offset uint32) string {
	if x.files.size < 4 || offset > x.files.size-4 {
		return ""
	}
	r, err := readAt(x.stream, x.files.offset+offset, 4)
	if err != nil {
		f.note(err)
		return ""
	}
	return f.names().text(r.U32())
}
