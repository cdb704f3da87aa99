// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/ranges"
)

// piece is code and its position, in the function itself or in an inlined call.
type piece struct {
	section     // RVA in the space of symbols
	site    int // index of the call; -1: the function itself
	position
}

// site is an inlined call of a function.
type site struct {
	id     uint32
	parent int // index of the call around it; -1: the function itself
	depth  int
	rows   []piece
}

// tree has the positions and the inlined calls of a function, or of code without one.
type tree struct {
	rows  []piece // by the line tables alone
	sites []site  // each after the call around it
	flat  []piece // by address and disjoint: the innermost call of each address
}

// tree reads the lines and the inlined calls of a procedure and of the parts separated from it,
// which may be none.
func (f *File) tree(e *effort, x *moduleIndex, p procedure, parts []separated) *tree {
	t := &tree{}
	code := []piece{{p.section, -1, position{}}}
	for i := range parts {
		code = append(code, piece{parts[i].section, -1, position{}})
	}
	for i := range code {
		t.rows = x.pieces(e, t.rows, code[i].section)
	}
	slices.SortStableFunc(t.rows, piece.compare)
	t.flatten(t.readSites(e, x, p, code))
	return t
}

func (p piece) compare(q piece) int { return cmp.Compare(p.start, q.start) }

// pieces appends the rows of the line tables for some code.
func (x *moduleIndex) pieces(e *effort, dst []piece, code section) []piece {
	for at := code.start; at < code.end; {
		t := x.lineTable(at, 0)
		if t != nil && !e.take(t.size) {
			break
		}
		if t == nil {
			next := x.nextTable(at)
			if next == nil {
				break
			}
			at = next.start
			continue
		}
		dst = x.tablePieces(e.f, dst, t, section{at, min(t.end, code.end)})
		at = t.end
	}
	return dst
}

// nextTable returns the first line table that begins behind an address.
func (x *moduleIndex) nextTable(rva uint32) *lineTable {
	i, _ := slices.BinarySearchFunc(x.lines, rva, func(t lineTable, rva uint32) int {
		if t.start > rva {
			return 1
		}
		return -1
	})
	if i == len(x.lines) {
		return nil
	}
	return &x.lines[i]
}

// tablePieces appends the rows of a line table for some code, as rowAt finds them: of several rows
// for an address the first is for its one byte.
func (x *moduleIndex) tablePieces(f *File, dst []piece, t *lineTable, code section) []piece {
	rows := x.rows(f, t)
	slices.SortStableFunc(rows, func(a, b lineRow) int { return cmp.Compare(a.offset, b.offset) })
	add := func(start, end uint32, p position) {
		if s := (section{max(start, code.start), min(end, code.end)}); s.start < s.end {
			dst = append(dst, piece{s, -1, p})
		}
	}
	if len(rows) > 0 {
		add(t.start, t.start+rows[0].offset, rows[0].position)
	}
	for first := 0; first < len(rows); {
		next := first + 1
		for next < len(rows) && rows[next].offset == rows[first].offset {
			next++
		}
		start, end := t.start+rows[first].offset, t.end
		if next < len(rows) {
			end = min(end, t.start+rows[next].offset)
		}
		if start < t.start { // behind the last address
			break
		}
		if rows[first].position != rows[next-1].position {
			add(start, min(start+1, end), rows[first].position)
			start++
		}
		add(start, end, rows[next-1].position)
		first = next
	}
	return dst
}

// readSites reads the inlined calls of a procedure with some code: its own, and that of the parts
// separated from it. order has them as their records end.
func (t *tree) readSites(e *effort, x *moduleIndex, p procedure, code []piece) (order []int) {
	sites, ok := e.f.sites(x, p)
	if !ok || !e.take(sites.end-min(sites.pos, sites.end)) {
		return nil
	}
	type open struct {
		site int
		end  uint32
	}
	var around []open
	pop := func(start uint32) {
		for len(around) > 0 && start >= around[len(around)-1].end {
			order = append(order, around[len(around)-1].site)
			around = around[:len(around)-1]
		}
	}
	for sites.next() {
		if !sites.isKnown {
			continue
		}
		pop(sites.start)
		s := site{id: sites.id, parent: -1, depth: len(around)}
		within := code
		if s.depth > 0 {
			s.parent = around[s.depth-1].site
			within = t.sites[s.parent].rows
		}
		s.rows = clip(pieces(sites.rows, code, len(t.sites)), within)
		if len(s.rows) == 0 {
			sites.leave() // it has no code, nor have the calls in it
			continue
		}
		t.sites = append(t.sites, s)
		around = append(around, open{len(t.sites) - 1, sites.innerEnd})
	}
	pop(^uint32(0))
	return order
}

// pieces are the rows of an inlined call by address.
func pieces(rows []siteRow, code []piece, number int) []piece {
	list := make([]piece, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		if int64(r.part) >= int64(len(code)) {
			continue // of code that has no record
		}
		base := code[r.part].start
		if start, end := base+r.start, base+r.end; start >= base && start < end {
			list = append(list, piece{section{start, end}, number, r.position})
		}
	}
	slices.SortStableFunc(list, piece.compare)
	return list
}

// clip returns the parts of pieces that lie in others. Both are by address; of pieces that
// overlap, the first has the code.
func clip(list, within []piece) []piece {
	out := make([]piece, 0, len(list))
	i := 0
	var done uint32
	for _, p := range list {
		p.start = max(p.start, done)
		for i < len(within) && within[i].end <= p.start {
			i++
		}
		for j := i; j < len(within) && within[j].start < p.end; j++ {
			part := p
			part.start, part.end = max(p.start, within[j].start), min(p.end, within[j].end)
			if part.start >= part.end {
				continue
			}
			if n := len(out); n > 0 && out[n-1].end == part.start && out[n-1].site == part.site && out[n-1].position == part.position {
				out[n-1].end = part.end
			} else {
				out = append(out, part)
			}
			done = part.end
		}
	}
	return out
}

// flatten finds the innermost call of each address. Of calls that overlap, the first one counts,
// as in Frames.
func (t *tree) flatten(order []int) {
	all := slices.Clone(t.rows)
	for _, i := range slices.Backward(order) {
		all = append(all, t.sites[i].rows...)
	}
	list := make([]ranges.Range, len(all))
	for i := range all {
		list[i] = ranges.Range{Start: uint64(all[i].start), End: uint64(all[i].end), Index: int32(i)} //nolint:gosec // fewer than bytes of the function
	}
	flat := ranges.Flatten(list)
	for r := range flat.All() {
		p := all[r.Index]
		p.section = section{uint32(r.Start), uint32(r.End)} //nolint:gosec // as above
		t.flat = append(t.flat, p)
	}
}
