// SPDX-License-Identifier: Apache-2.0

package dwarf

// descent visits an entry and the entries inside it in the order of the file; the entries
// inside one can be skipped.
type descent struct {
	entry Entry // the current one
	depth int   // number of entries around it, from the first one on
	err   error // of a descent that ended early

	w        walk
	isPassed bool // w is already behind the current entry
}

// descend begins at the entry at an offset of the unit's section.
func (b *body) descend(off uint64) descent { return descent{w: b.walk(off), isPassed: true} }

// next moves to the next entry. It is false behind the last one, and where err is set.
func (d *descent) next() bool {
	if !d.isPassed {
		if d.enter(); d.depth == 0 {
			return false // the first one has no children
		}
	}
	for d.err == nil && d.w.off < d.w.end {
		a, off, err := d.w.next()
		switch {
		case err != nil:
			d.err = err
		case a != nil:
			d.entry, d.isPassed = Entry{d.w.body, off, a}, false
			return true
		default:
			if d.depth--; d.depth <= 0 {
				return false
			}
		}
	}
	return false
}

// enter moves to the children of the current entry, or behind it where it has none.
func (d *descent) enter() {
	d.err = d.w.pass(d.entry.abbrev, d.entry.off)
	if d.err == nil && d.entry.abbrev.hasChildren {
		if d.depth++; d.depth > maxDepth {
			d.err = d.w.wrong(d.entry.off, "entry nested deeper than %d", maxDepth)
		}
	}
}

// skip skips the entries inside the current entry.
func (d *descent) skip() {
	d.err, d.isPassed = d.w.passEntry(d.entry.abbrev, d.entry.off), true
}

// skipBySibling is skip where DW_AT_sibling gives the next entry (DWARF 5, 2.3). Elsewhere the
// descent continues inside the entry, which costs no more than looking for its end.
func (d *descent) skipBySibling() {
	if !d.entry.abbrev.hasChildren {
		return
	}
	if next := d.w.sibling(d.entry.abbrev); next != 0 {
		d.w.off, d.isPassed = next, true
	}
}
