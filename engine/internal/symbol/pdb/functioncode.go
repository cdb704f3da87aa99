// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// EachFunction calls yield with all functions that have code, by address, until it returns false.
// The argument is reused.
func (f *File) EachFunction(yield func(*symbol.FunctionCode) bool) error {
	f.guard(func() {
		m := f.codeMap()
		c := coder{f: f, m: m, effort: f.newEffort(), files: map[fileKey]string{}}
		for first := 0; first < len(m.pieces); {
			next := first + 1
			for next < len(m.pieces) && m.pieces[next].function == m.pieces[first].function {
				next++
			}
			if c.read(m.pieces[first:next]) && !yield(&c.out) {
				return
			}
			first = next
		}
	})
	return nil
}

// coder makes functions with their lines and calls.
type coder struct {
	f      *File
	m      *codeMap
	out    symbol.FunctionCode
	effort *effort
	files  map[fileKey]string
	tree   *tree
	module *module
	index  *moduleIndex
}

// fileKey is a file of a module.
type fileKey struct {
	index *moduleIndex
	file  uint32
}

// maxFiles bounds the names of files that are kept.
const maxFiles = 1 << 16

func (c *coder) file(offset uint32) string {
	key := fileKey{c.index, offset}
	name, ok := c.files[key]
	if !ok {
		if len(c.files) > maxFiles {
			clear(c.files)
		}
		name = c.index.file(c.f, offset)
		c.files[key] = name
	}
	return name
}

// read makes the function that has some code; false where it has no name.
func (c *coder) read(code []codePiece) bool {
	p := &c.m.functions[code[0].function]
	c.module = &c.f.dbi.modules()[p.module]
	c.index = c.module.index()
	name, own := c.f.procedureName(c.index, p.procedure)
	if name == "" {
		return false
	}
	c.out = symbol.FunctionCode{IsShared: p.isShared, Ranges: c.out.Ranges[:0], Lines: c.out.Lines[:0], Calls: c.out.Calls[:0]}
	c.out.Function, c.out.LinkageName = c.f.readable(name, own)
	c.out.Name = own
	c.out.Start, c.out.HasStart = c.f.address(p.start)
	for _, piece := range code {
		c.out.Ranges = append(c.out.Ranges, c.codeRange(piece.section))
	}
	c.f.passed(queryBytes)
	c.tree = c.f.tree(c.effort, c.index, p.procedure, c.module.separatedCode().parts[p.record])
	c.addLines()
	c.addCalls()
	return true
}

func (c *coder) codeRange(image section) symbol.CodeRange {
	return symbol.CodeRange{Start: c.f.base + uint64(image.start), End: c.f.base + uint64(image.end)}
}

// addLines adds the lines of the innermost calls.
func (c *coder) addLines() {
	for i := range c.tree.flat {
		p := &c.tree.flat[i]
		l := symbol.CodeLine{File: c.file(p.file), Line: p.line}
		c.inImage(p.section, func(r symbol.CodeRange) {
			if n := len(c.out.Lines); n > 0 && c.out.Lines[n-1].End == r.Start && c.out.Lines[n-1].File == l.File && c.out.Lines[n-1].Line == l.Line {
				c.out.Lines[n-1].End = r.End
				return
			}
			l.CodeRange = r
			c.out.Lines = append(c.out.Lines, l)
		})
	}
	slices.SortStableFunc(c.out.Lines, func(a, b symbol.CodeLine) int { return cmp.Compare(a.Start, b.Start) })
}

// inImage calls yield with the parts of some code that are the function's in the image.
func (c *coder) inImage(code section, yield func(symbol.CodeRange)) {
	c.f.dbi.omap.each(code, func(image section, _ uint32) bool {
		r := c.codeRange(image)
		i := sort.Search(len(c.out.Ranges), func(i int) bool { return c.out.Ranges[i].End > r.Start })
		for ; i < len(c.out.Ranges) && c.out.Ranges[i].Start < r.End; i++ {
			yield(symbol.CodeRange{Start: max(r.Start, c.out.Ranges[i].Start), End: min(r.End, c.out.Ranges[i].End)})
		}
		return c.effort.take(0)
	})
}

// callPlace is a place that calls an inlined function.
type callPlace struct {
	file uint32
	line int
}

// addCalls adds the inlined calls. The position of a call is that of the code around it, and code
// of the same call whose position changes becomes several.
func (c *coder) addCalls() {
	for i := range c.tree.sites {
		s := &c.tree.sites[i]
		around := c.tree.rows
		if s.parent >= 0 {
			around = c.tree.sites[s.parent].rows
		}
		first := len(c.out.Calls)
		eachPlace(s.rows, around, func(code section, place callPlace) {
			call := symbol.InlinedCall{Function: withAnonymous(c.f.inlineeName(c.index, s.id)), Depth: s.depth, CallFile: c.file(place.file), CallLine: place.line}
			n := slices.IndexFunc(c.out.Calls[first:], func(o symbol.InlinedCall) bool {
				return o.CallFile == call.CallFile && o.CallLine == call.CallLine
			})
			if n < 0 {
				n = len(c.out.Calls) - first
				c.out.Calls = append(c.out.Calls, call)
			}
			to := &c.out.Calls[first+n]
			c.inImage(code, func(r symbol.CodeRange) { to.Ranges = appendRange(to.Ranges, r) })
		})
	}
	c.out.Calls = slices.DeleteFunc(c.out.Calls, func(call symbol.InlinedCall) bool { return len(call.Ranges) == 0 })
}

// appendRange appends a range, to the last one where it goes on.
func appendRange(list []symbol.CodeRange, r symbol.CodeRange) []symbol.CodeRange {
	if n := len(list); n > 0 && list[n-1].End == r.Start {
		list[n-1].End = r.End
		return list
	}
	return append(list, r)
}

// eachPlace calls yield with the code of rows and its positions in the rows around them. Both are
// by address.
func eachPlace(rows, around []piece, yield func(section, callPlace)) {
	for _, r := range rows {
		i := sort.Search(len(around), func(i int) bool { return around[i].end > r.start })
		for at := r.start; at < r.end; i++ {
			if i == len(around) || around[i].start >= r.end {
				yield(section{at, r.end}, callPlace{file: noFile})
				break
			}
			p := &around[i]
			if p.start > at { // no row has it
				yield(section{at, p.start}, callPlace{file: noFile})
				at = p.start
			}
			if end := min(p.end, r.end); end > at {
				yield(section{at, end}, callPlace{p.file, p.line})
				at = end
			}
		}
	}
}

// Lines appends the lines of code, by address.
func (f *File) Lines(dst []symbol.CodeLine, code symbol.CodeRange) []symbol.CodeLine {
	f.guard(func() {
		for at := code.Start; at < code.End; {
			x, ok := f.locate(at)
			if !ok {
				return
			}
			t := x.index.lineTable(x.rva, x.number)
			if t == nil {
				if t = x.index.nextTable(x.rva); t == nil {
					return
				}
				at += uint64(t.start - x.rva)
				continue
			}
			end := min(uint64(t.end), uint64(x.rva)+(code.End-at))
			for _, p := range x.index.tablePieces(f, nil, t, section{x.rva, uint32(end)}) { //nolint:gosec // at most t.end
				start := at + uint64(p.start-x.rva)
				dst = append(dst, symbol.CodeLine{
					CodeRange: symbol.CodeRange{Start: start, End: start + uint64(p.end-p.start)}, File: x.index.file(f, p.file), Line: p.line,
				})
			}
			at += end - uint64(x.rva)
		}
	})
	return dst
}

// tableNumber is a line table of a module.
type tableNumber struct {
	start         uint32 // in the image
	module, table int32
}

// EachLine calls yield with the rows of all line tables, by address, until it returns false. The
// row is reused. A row ends where the position of a call around it changes, too.
func (f *File) EachLine(yield func(*symbol.LineRow) bool) error {
	f.guard(func() {
		var tables []tableNumber
		modules := f.dbi.modules()
		for i := range modules {
			lines := modules[i].index().lines
			for j := range lines {
				f.dbi.omap.each(lines[j].section, func(image section, _ uint32) bool {
					tables = append(tables, tableNumber{image.start, int32(i), int32(j)}) //nolint:gosec // at most as many as bytes of a stream
					return false
				})
			}
		}
		slices.SortStableFunc(tables, func(a, b tableNumber) int { return cmp.Compare(a.start, b.start) })
		rows := rowReader{f: f, effort: f.newEffort(), yield: yield}
		for _, n := range tables {
			m := &modules[n.module]
			if !rows.table(m, &m.index().lines[n.table]) {
				return
			}
		}
	})
	return nil
}

// rowReader calls yield with the rows of line tables.
type rowReader struct {
	f      *File
	effort *effort
	yield  func(*symbol.LineRow) bool
	out    symbol.LineRow
	isOver bool // yield returned false

	// The last procedure that was read, by its module and its record.
	module *module
	record uint32
	tree   *tree
}

// table calls yield with the rows of a line table, until it returns false.
func (r *rowReader) table(m *module, t *lineTable) (isMore bool) {
	r.f.passed(queryBytes)
	for start := t.start; start < t.end && !r.isOver; {
		p, code, ok := m.codeAt(start)
		part := section{start, min(t.end, code.end)}
		switch {
		case !ok && r.effort.take(t.size):
			r.rows(m.index(), &tree{flat: m.index().tablePieces(r.f, nil, t, part)}, part)
		case ok && r.tree != nil && r.module == m && r.record == p.record:
			r.rows(m.index(), r.tree, part)
		case ok:
			r.module, r.record = m, p.record
			r.tree = r.f.tree(r.effort, m.index(), p, m.separatedCode().parts[p.record])
			r.rows(m.index(), r.tree, part)
		}
		start = part.end
	}
	return !r.isOver
}

// rows calls yield with the rows of a tree for some code.
func (r *rowReader) rows(x *moduleIndex, t *tree, code section) {
	i := sort.Search(len(t.flat), func(i int) bool { return t.flat[i].end > code.start })
	for ; i < len(t.flat) && t.flat[i].start < code.end; i++ {
		p := t.flat[i]
		p.start, p.end = max(p.start, code.start), min(p.end, code.end)
		for p.start < p.end && !r.isOver {
			row := section{start: p.start}
			r.out.Frames, row.end = r.f.chain(r.out.Frames[:0], x, t, &p)
			r.f.dbi.omap.each(row, func(image section, _ uint32) bool {
				r.out.Start, r.out.End = r.f.base+uint64(image.start), r.f.base+uint64(image.end)
				r.isOver = !r.yield(&r.out)
				return !r.isOver && r.effort.take(0)
			})
			p.start = row.end
		}
	}
}

// codeAt returns the procedure that has the code at an RVA, and that part of its code. Where none
// has it, ok is false, and the code ends where that of another begins.
func (m *module) codeAt(rva uint32) (p procedure, code section, ok bool) {
	list := m.index().procedures
	if first, n := find(list, rva); n > 0 {
		return list[first], list[first].section, true
	}
	parts := m.separatedCode().byAddress
	if s, ok := findSeparated(parts, rva); ok {
		return s.function, s.section, true
	}
	code = section{rva, ^uint32(0)}
	if i := sort.Search(len(list), func(i int) bool { return list[i].start > rva }); i < len(list) {
		code.end = list[i].start
	}
	if i := sort.Search(len(parts), func(i int) bool { return parts[i].start > rva }); i < len(parts) {
		code.end = min(code.end, parts[i].start)
	}
	return p, code, false
}

// chain appends the positions of the start of a piece, innermost first, and returns where one of
// them changes.
func (f *File) chain(dst []trace.Symbol, x *moduleIndex, t *tree, p *piece) (frames []trace.Symbol, end uint32) {
	position := p.position
	end = p.end
	for number := p.site; number >= 0; number = t.sites[number].parent {
		s := &t.sites[number]
		frame := f.inlineeSymbol(x, s.id)
		frame.File, frame.Line, frame.Column = x.file(f, position.file), position.line, position.column
		dst = append(dst, frame)
		around := t.rows
		if s.parent >= 0 {
			around = t.sites[s.parent].rows
		}
		var next uint32
		position, next = positionIn(around, p.start)
		end = min(end, next)
	}
	return append(dst, trace.Symbol{File: x.file(f, position.file), Line: position.line, Column: position.column}), end
}

// positionIn is the position of an address in rows by address, and where it ends.
func positionIn(rows []piece, rva uint32) (p position, end uint32) {
	i := sort.Search(len(rows), func(i int) bool { return rows[i].end > rva })
	switch {
	case i == len(rows):
		return position{file: noFile}, ^uint32(0)
	case rows[i].start > rva:
		return position{file: noFile}, rows[i].start
	}
	return rows[i].position, rows[i].end
}
