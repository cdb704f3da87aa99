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
	for _, off := range r.loneOffsets() {
		t, err := f.lineTableAt(off, uint8(f.object.AddressSize()))
		if err != nil {
			r.problem(err.Error())
			continue
		}
		for i := range t.sequences {
			s := &t.sequences[i]
			list = append(list, ranges.Range{Start: s.start, End: s.end, Index: int32(len(x.tables))})
		}
		x.tables = append(x.tables, f.loneBody(off))
	}
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
