// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"debug/elf"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/trace"
)

// loneTables are the line tables that no unit has. Compilers of CUDA write them where lines alone
// are wanted, beside units of other source files or without any.
type loneTables struct {
	tables []*body // stand for the units
	where  ranges.Flat
}

// mayHaveLoneTables reports whether line tables without units are looked for: where there is no
// unit, and in code of GPUs by NVIDIA, which mixes them. To look for them everywhere would read
// every unit of a program for an address that it does not describe.
func (f *file) mayHaveLoneTables() bool {
	return len(f.line) > 0 && (len(f.info) == 0 || f.object != nil && elf.Machine(f.object.Machine()) == elf.EM_CUDA)
}

// loneFrames appends the frames at an address by the line tables that no unit has. The last frame,
// of the function that has the code, has no name: symbols have it.
func (r *Reader) loneFrames(dst []trace.Symbol, address uint64, style *frameStyle) []trace.Symbol {
	if !r.main.mayHaveLoneTables() {
		return dst
	}
	x, err := r.lone.get(r.findLoneTables)
	if err != nil {
		return dst
	}
	n := x.where.At(address)
	if n < 0 {
		return dst
	}
	if place, isKnown := r.place(x.tables[n], address, style.isFirst); isKnown {
		dst = r.lineChain(append(dst, place.Symbol), &place, style)
	}
	return dst
}

// findLoneTables reads the line tables that no unit has. Those that cannot be read become problems.
func (r *Reader) findLoneTables() (*loneTables, error) {
	f, x := r.main, &loneTables{}
	var list []ranges.Range
	var tables []*lineTable
	for _, off := range r.loneOffsets() {
		t, err := f.lineTableAt(off, uint8(f.object.AddressSize()))
		if err != nil {
			r.problem(err.Error())
			continue
		}
		if len(t.sequences) == 0 {
			f.forgetLines(off)
			continue
		}
		for i := range t.sequences {
			s := &t.sequences[i]
			list = append(list, ranges.Range{Start: s.start, End: s.end, Index: int32(len(x.tables))})
		}
		x.tables, tables = append(x.tables, f.loneBody(off)), append(tables, t)
	}
	r.joinNames(tables)
	x.where = ranges.Flatten(list)
	f.addKept(flatSize(&x.where) + sizeOf[body](len(x.tables)) + sizeOf[unit](len(x.tables)))
	return x, nil
}

// loneBody stands for the unit of a line table.
func (f *file) loneBody(off uint64) *body {
	u := &unit{unitHeader: unitHeader{file: f, kind: unitCompile}}
	u.format = format{addrSize: uint8(f.object.AddressSize()), offsetSize: 4, isBigEndian: f.isBigEndian}
	return &body{unit: u, lineOff: off, hasLine: true}
}

// loneOffsets are the offsets of the line tables that no unit has, one behind the other. Where the
// length of one is damaged there are no more.
func (r *Reader) loneOffsets() (list []uint64) {
	f := r.main
	if err := f.rest.line.Need(uint64(len(f.line))); err != nil {
		r.problem(err.Error())
		return nil
	}
	isKnown := map[uint64]bool{}
	for _, u := range f.everyUnit() {
		if b, err := u.open(); err == nil && b.hasLine {
			isKnown[b.lineOff] = true
		}
	}
	for off := uint64(0); off < uint64(len(f.line)); {
		c := newCursor(f.line, f.isBigEndian, off, uint64(len(f.line)))
		length, _ := c.initialLength()
		if c.failed || length > c.left() {
			r.problem(bad(f.lineSection(), off, "length %#x of a table, expected at most the %#x bytes that follow", length, c.left()).Error())
			return list
		}
		if length > 0 && !isKnown[off] {
			list = append(list, off)
		}
		off = c.off + length
	}
	return list
}

// joinNames finds the names of inlined calls in the tables of several files that nvlink joined: it
// puts one .debug_str behind the other and leaves the offsets of the tables as they were, from 0 on.
// Where the names of all tables, one behind the other, are all of .debug_str, each table's begin
// where the names of the table before it end; else they are not known, which is a problem.
func (r *Reader) joinNames(tables []*lineTable) {
	f := r.main
	var named []*lineTable
	isJoined := false
	for _, t := range tables {
		if t.names.isUsed {
			isJoined = isJoined || len(named) > 0 && t.nameBase == named[0].nameBase
			named = append(named, t)
		}
	}
	if !isJoined || named[0].nameBase != 0 {
		return
	}
	bases, end := make([]uint64, len(named)), uint64(0)
	for i, t := range named {
		bases[i] = end
		last, err := stringAt(".debug_str", f.str, f.rest.str, end+uint64(t.names.last))
		if err != nil {
			end = 0
			break
		}
		end += uint64(t.names.last) + uint64(len(last)) + 1
	}
	isWhole := end == uint64(len(f.str))
	for i, t := range named {
		t.nameBase, t.names.isUnknown = bases[i], !isWhole
	}
	if !isWhole {
		r.problem(named[0].wrong("names of inlined calls are not known: %d tables have names from offset 0 of .debug_str on, which a linker joined", len(named)).Error())
	}
}
