// SPDX-License-Identifier: Apache-2.0

package dwarf

// gdbIndexRanges are the ranges in the address table of .gdb_index; nil where no table is
// usable.
//
// The format is described in gdb's manual ("The .gdb_index section format"): six
// little-endian words (version, and the offsets of the CU list, the TU list, the
// address table, the symbol table and the constant pool), then those. An entry of
// the CU list is an offset and a length of 8 bytes each, one of the address table
// two addresses of 8 bytes and the number of the unit in 4.
func (f *file) gdbIndexRanges() []unitRange {
	data, err := f.read(".gdb_index")
	if err != nil || len(data) == 0 {
		return nil
	}
	return f.readGDBIndex(data)
}

func (f *file) readGDBIndex(data []byte) []unitRange {
	c := newCursor(data, false, 0, uint64(len(data)))
	version := c.uint(4)
	cus, tus, addresses, symbols := c.uint(4), c.uint(4), c.uint(4), c.uint(4)
	if c.failed || version < 4 || version > 9 || cus > tus || tus > addresses || addresses > symbols || symbols > uint64(len(data)) {
		return nil
	}
	units := make([]*unit, 0, min((tus-cus)/16, uint64(len(f.everyUnit()))))
	for c = newCursor(data, false, cus, tus); c.left() >= 16; {
		off, length := c.uint(8), c.uint(8)
		u := f.unitAt(off)
		if u == nil || u.offset != off || u.end != off+length {
			return nil // of another version of the file
		}
		units = append(units, u)
	}
	var list []unitRange
	for c = newCursor(data, false, addresses, symbols); c.left() >= 20; {
		s := span{c.uint(8), c.uint(8)}
		n := c.uint(4)
		if n >= uint64(len(units)) {
			return nil
		}
		if f.isLive(s) {
			list = append(list, unitRange{span: s, unit: units[n].offset})
		}
	}
	return list
}
