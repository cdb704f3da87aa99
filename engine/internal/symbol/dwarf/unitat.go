// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"

	"github.com/unwindd/unwindd/internal/dw"
)

// UnitAt is the unit at an offset of .debug_info: for a skeleton (DWARF 5, 3.1.2) the split
// unit. function is the function whose entry, or the entries inside it, are at the offset;
// the zero Entry where there is none. It is called inside object.Guard.
func (r *Reader) UnitAt(offset uint64) (unit Unit, function Entry, err error) {
	err = r.protect(func() error {
		x := r.main.unitsUpTo(min(offset, max(uint64(len(r.main.info)), 1)-1) + 1)
		u := unitIn(x.list, offset)
		switch {
		case u == nil && x.err != nil && offset < uint64(len(r.main.info)):
			return x.err
		case u == nil:
			return bad(".debug_info", offset, "no unit has the offset: the section has %#x bytes", len(r.main.info))
		}
		b, err := u.open()
		if err != nil {
			return err
		}
		if function, err = b.functionAround(offset); err != nil {
			return err
		}
		if b.isSplit() {
			name := b.dwoName
			if b, err = r.splitOf(b); err == nil && b.isSplit() {
				err = b.wrong(b.offset, "what it describes is in the split file %s, which was not found: %v", name, r.Problems())
			}
		}
		unit = Unit{b}
		return err
	})
	return unit, function, err
}

// functionAround is the innermost function around the entry at an offset.
func (b *body) functionAround(offset uint64) (Entry, error) {
	if offset < b.first || b.first >= b.end {
		return Entry{}, nil
	}
	w := b.walk(b.first)
	var around []Entry // of each depth
	for w.off < b.end && w.off <= offset {
		a, entry, err := w.next()
		if err != nil {
			return Entry{}, err
		}
		if a == nil {
			if len(around) < 2 {
				break
			}
			around = around[:len(around)-1]
			continue
		}
		var e Entry // the innermost function around this entry
		switch {
		case a.tag == dw.TagSubprogram:
			e = Entry{b, entry, a}
		case len(around) > 0:
			e = around[len(around)-1]
		}
		if entry == offset {
			return e, nil
		}
		if err := w.pass(a, entry); err != nil {
			return Entry{}, err
		}
		switch {
		case !a.hasChildren:
		case len(around) == maxDepth:
			return Entry{}, b.wrong(entry, "entry nested deeper than %d", maxDepth)
		default:
			around = append(around, e)
		}
	}
	return Entry{}, nil
}

// String describes the unit for messages.
func (u Unit) String() string { return fmt.Sprintf("unit at %#x of %s", u.b.offset, u.b.section()) }
