// SPDX-License-Identifier: Apache-2.0

package dwarf

// readAranges reads .debug_aranges (DWARF 5, 6.1.2): ranges with the offsets of their
// units' headers. It is false where the table is damaged: then nothing in it is believed.
// With isChecked its units must exist.
func (f *file) readAranges(isChecked bool, yield func(unit uint64, s span)) bool {
	if f.rest.aranges.Need(uint64(len(f.aranges))) != nil {
		return false
	}
	for off := uint64(0); off < uint64(len(f.aranges)); {
		c := newCursor(f.aranges, f.isBigEndian, off, uint64(len(f.aranges)))
		length, offsetSize := c.initialLength()
		if c.failed || length > c.left() {
			return false
		}
		c.end = c.off + length
		end := c.end
		version := c.uint(2)
		unit := c.uint(offsetSize)
		size, selector := c.uint(1), c.uint(1)
		if c.failed || version != 2 || selector != 0 || size != 4 && size != 8 {
			return false
		}
		if isChecked {
			if u := f.unitAt(unit); u == nil || u.offset != unit || u.isType() {
				return false
			}
		}
		tuple := 2 * size
		c.skip((tuple - (c.off-off)%tuple) % tuple)
		for c.hasMore() {
			start, length := c.uint(int(size)), c.uint(int(size))
			if c.failed {
				return false
			}
			if start == 0 && length == 0 {
				break
			}
			if s := (span{start, start + length}); f.isLive(s) {
				yield(unit, s)
			}
		}
		off = end
	}
	return true
}
