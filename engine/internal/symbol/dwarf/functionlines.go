// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// coder reads functions with their lines and inlined calls, unit by unit.
type coder struct {
	r        *Reader
	function symbol.FunctionCode
	unit     *body // the last one that was read
	holder   *body // the unit that describes its functions: the split unit, if there is one
	list     []function
	passed   uint64 // bytes of units since pages of the file were released
	budget   int64  // ranges of inlined calls, and steps to find them, that the unit may still have
	depths   []int  // of the calls of a function
}

// stepsPerByte bounds the work on the inlined calls of a unit by its size: an entry of a
// call takes ten bytes at least, and placing it takes as many steps as its depth.
const stepsPerByte = 16

// restEvery is the bytes of units after which pages of the mapped file are released.
const restEvery = 64 << 20

// enter begins a unit.
func (c *coder) enter(u *unit) error {
	if c.unit != nil && c.unit.unit == u {
		return nil
	}
	c.leave()
	b, err := u.open()
	if err != nil {
		return err
	}
	holder, x, err := c.r.everyFunction(b)
	if err != nil {
		return err
	}
	c.unit, c.holder, c.list = b, holder, x.list
	if c.passed += holder.end - holder.offset; c.passed >= restEvery {
		c.passed = 0
		c.r.ReleasePages()
	}
	c.budget = int64(holder.end-holder.offset)*stepsPerByte + 1<<20
	return nil
}

// leave drops the lines and files of the unit.
func (c *coder) leave() {
	if b := c.unit; b != nil {
		for _, b := range []*body{b, c.holder} {
			b.lines, b.fileNames = lazy[*lineTable]{}, lazy[*fileNames]{}
		}
		b.main().forgetLines(b.lineOff)
	}
	c.unit = nil
}

// forgetLines drops a line table.
func (f *file) forgetLines(off uint64) {
	c := &f.lineTables
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.tables[off]
	if l == nil {
		return
	}
	delete(c.tables, off)
	if t, err := l.value, l.err; l.done.Load() && err == nil && t != nil {
		c.left += t.end - t.offset
		f.addKept(-t.memorySize())
	}
}

// read reads a function of a unit from its pieces of code.
func (c *coder) read(u *unit, pieces []codePiece) (isRead bool, err error) {
	if err := c.enter(u); err != nil {
		return false, err
	}
	i := sort.Search(len(c.list), func(i int) bool { return c.list[i].offset >= pieces[0].offset })
	if i == len(c.list) || c.list[i].offset != pieces[0].offset {
		return false, fmt.Errorf("no function is at %#x", pieces[0].offset)
	}
	f, fn := &c.list[i], &c.function
	*fn = symbol.FunctionCode{Ranges: fn.Ranges[:0], Lines: fn.Lines[:0], Calls: fn.Calls[:0]}
	name, err := c.r.functionName(c.holder, c.holder.offset+uint64(f.offset))
	if err != nil {
		return false, err
	}
	name.give(&fn.Symbol)
	fn.Start, fn.HasStart = f.entry, f.hasEntry
	for _, p := range pieces {
		fn.Ranges = append(fn.Ranges, p.exported())
		fn.IsShared = fn.IsShared || p.isShared
		fn.Lines = c.r.linesOf(fn.Lines, c.unit, p.span)
	}
	// A function whose inlined calls cannot be read has its name and lines.
	return true, c.calls(f)
}

func (s span) exported() symbol.CodeRange { return symbol.CodeRange{Start: s.start, End: s.end} }

// linesOf appends the lines of some code by the line table of a unit.
func (r *Reader) linesOf(dst []symbol.CodeLine, b *body, code span) []symbol.CodeLine {
	t, err := b.lineTable()
	if err != nil {
		r.failedUnit(b.unit, err)
	}
	if t == nil || err != nil {
		return dst
	}
	t.rows(code, func(part span, row *row) {
		if uint64(row.file) >= uint64(len(t.files)) {
			return
		}
		file, line := b.fileName(uint64(row.file)).path, int(row.line)
		if n := len(dst); n > 0 && dst[n-1].End == part.start && dst[n-1].Line == line && dst[n-1].File == file {
			dst[n-1].End = part.end
			return
		}
		dst = append(dst, symbol.CodeLine{CodeRange: part.exported(), File: file, Line: line})
	})
	return dst
}

// calls reads the inlined calls of a function.
func (c *coder) calls(f *function) error {
	x, count, err := c.holder.findInlines(f)
	if err != nil {
		return err
	}
	c.holder.file.kept.Add(-int64(count)) // they are not kept
	code := make([][]symbol.CodeRange, len(x.list))
	where := x.flat()
	for s := range where.All() {
		part := symbol.CodeRange{Start: s.Start, End: s.End}
		for n := s.Index; n >= 0; n = x.list[n].parent {
			if c.budget--; c.budget < 0 {
				return c.holder.wrong(c.holder.offset+uint64(f.offset), "the ranges of inlined calls are more than the size of the unit makes believable")
			}
			if last := len(code[n]) - 1; last >= 0 && code[n][last].End == part.Start {
				code[n][last].End = part.End
			} else {
				code[n] = append(code[n], part)
			}
		}
	}
	c.depths = append(c.depths[:0], make([]int, len(x.list))...)
	for i := range x.list {
		if parent := x.list[i].parent; parent >= 0 {
			c.depths[i] = c.depths[parent] + 1
		}
		if len(code[i]) == 0 {
			continue
		}
		call, err := c.r.readCall(c.holder, c.holder.offset+uint64(x.list[i].offset))
		if err != nil {
			return err
		}
		name, _ := call.name.names()
		c.function.Calls = append(c.function.Calls, symbol.InlinedCall{
			Function: name, Depth: c.depths[i], CallFile: c.unit.fileName(uint64(call.file)).path, CallLine: int(call.line), Ranges: code[i],
		})
	}
	return nil
}

// rows calls yield with the row that position finds for each address of a span, and the
// part of the span where it is valid.
func (t *lineTable) rows(bounds span, yield func(part span, r *row)) {
	for pos := bounds.start; pos < bounds.end; {
		next := sort.Search(len(t.sequences), func(i int) bool { return t.sequences[i].start > pos })
		end := bounds.end
		if next < len(t.sequences) {
			end = min(end, t.sequences[next].start)
		}
		for i := next - 1; i >= 0 && i >= next-maxSequences; i-- {
			if s := &t.sequences[i]; s.holds(pos) {
				end = min(end, s.end)
				t.rowsOf(s, span{pos, end}, yield)
				break
			}
		}
		pos = end
	}
}

// rowsOf is rows in one sequence.
func (t *lineTable) rowsOf(s *sequence, bounds span, yield func(part span, r *row)) {
	bounds.start, bounds.end = bounds.start-s.moved, bounds.end-s.moved
	give := func(r *row, end uint64) {
		if part := (span{max(r.address, bounds.start), min(end, bounds.end)}); part.start < part.end {
			yield(span{part.start + s.moved, part.end + s.moved}, r)
		}
	}
	if s.count == 0 {
		first := sort.Search(len(s.sorted), func(i int) bool { return s.sorted[i].address > bounds.start })
		for i := max(first-1, 0); i < len(s.sorted) && s.sorted[i].address < bounds.end; i++ {
			end := bounds.end
			if i+1 < len(s.sorted) {
				end = s.sorted[i+1].address
			}
			give(&s.sorted[i], end)
		}
		return
	}
	list := t.checkpoints[s.first : s.first+s.count]
	n, _ := slices.BinarySearchFunc(list, bounds.start, func(p checkpoint, start uint64) int {
		return cmp.Compare(p.address, start)
	})
	m := t.machineAt(&list[max(n-1, 0)])
	for r := m.row; ; r = m.row {
		event, err := m.step()
		if err != nil || event != lineRow {
			give(&r, bounds.end)
			return
		}
		give(&r, m.address)
		if m.address >= bounds.end {
			return
		}
	}
}
