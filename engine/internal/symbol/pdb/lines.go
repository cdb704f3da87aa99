// SPDX-License-Identifier: Apache-2.0

package pdb

// position is a place in the source.
type position struct {
	file         uint32 // offset in the module's list of files
	line, column int    // 0: unknown
}

// noFile is the file of a position that has none.
const noFile = ^uint32(0)

// lineRow is a row of a line table. It is for the code up to the next row's.
type lineRow struct {
	offset uint32 // in the code of the table
	position
}

// Lines that stand for none: a debugger steps into such code, or over it.
const (
	alwaysStepInto = 0xfeefee
	neverStepInto  = 0xf00f00
)

// rows returns the rows of a line table, of all files.
func (x *moduleIndex) rows(f *File, t *lineTable) (list []lineRow) {
	r, err := readAt(x.stream, t.offset, t.size)
	if err != nil {
		f.note(err)
		return nil
	}
	const blockHeader = 12
	for len(r.Rest) >= blockHeader {
		file, count := r.U32(), r.U32()
		size := min(uint64(r.U32()), uint64(len(r.Rest)+blockHeader))
		b := fieldsOf(r.Take(int(size) - min(int(size), blockHeader))) //nolint:gosec // a part of a stream
		each := 8
		columns := fields{}
		count = uint32(min(int(count), len(b.Rest)/each)) //nolint:gosec // a part of a stream
		if t.hasColumns {
			columns.Rest = b.Rest[8*int(count):]
		}
		for range count {
			row := lineRow{offset: b.U32(), position: position{file: file, line: int(b.U32() & 0xffffff)}}
			if len(columns.Rest) >= 4 {
				row.column = int(columns.U16())
				columns.U16()
			}
			if row.line == alwaysStepInto || row.line == neverStepInto {
				row.line, row.column = 0, 0
			}
			list = append(list, row)
		}
	}
	return list
}

// lineTable returns the line table for an RVA: of those that begin at the same address, the one
// of a number.
func (x *moduleIndex) lineTable(rva uint32, number int) *lineTable {
	first, n := search(len(x.lines), rva, func(i int) section { return x.lines[i].section })
	if n == 0 {
		return nil
	}
	if number < n {
		first += number
	}
	return &x.lines[first]
}

// rowAt returns the row for an offset, of one row or more. Compilers write several rows for an
// address: the first is that of the address itself, the last that of the code behind it. Code
// before all rows has the first.
func rowAt(rows []lineRow, offset uint32) *lineRow {
	best := &rows[0]
	for i := range rows {
		switch r := &rows[i]; {
		case r.offset == offset && best.offset != offset, r.offset < offset && (r.offset >= best.offset || best.offset > offset):
			best = r
		}
	}
	return best
}
