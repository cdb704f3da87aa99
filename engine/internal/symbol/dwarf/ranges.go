// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
)

func compare(a, b uint64) int { return cmp.Compare(a, b) }

// extent is the attributes of an entry that give the range of its code.
type extent struct {
	low, high, ranges, entry             value
	hasLow, hasHigh, hasRanges, hasEntry bool
}

// spans appends the address ranges of an entry (DWARF 5, 2.17). Empty ranges and ranges of
// code that is not in the object are left out.
func (b *body) spans(dst []span, e *extent, budget *int64) ([]span, error) {
	if e.hasLow && e.hasHigh {
		low, err := b.ownAddress(&e.low)
		if err != nil {
			return dst, err
		}
		high := e.high.n
		if e.high.isAddress() {
			if high, err = b.ownAddress(&e.high); err != nil {
				return dst, err
			}
		} else {
			high += low
		}
		dst = b.main().appendLive(dst, span{low, high})
	}
	if e.hasRanges {
		return b.rangeAttr(dst, &e.ranges, budget)
	}
	return dst, nil
}

// entryPC is the start of an entry's code (DWARF 5, 2.18), given its spans.
func (b *body) entryPC(e *extent, spans []span) (uint64, bool) {
	if len(spans) == 0 {
		return 0, false
	}
	base := spans[0].start
	if e.hasLow {
		if low, err := b.address(&e.low); err == nil {
			base = low
		}
	}
	if e.hasEntry {
		if e.entry.isAddress() {
			pc, err := b.address(&e.entry)
			return pc, err == nil
		}
		if n, ok := e.entry.constant(); ok {
			return base + n, true
		}
	}
	return base, true
}

// rangeAttr appends the ranges that a value of DW_AT_ranges leads to.
func (b *body) rangeAttr(dst []span, v *value, budget *int64) ([]span, error) {
	off := v.n
	if b.format.version >= 5 {
		f := b.file
		if v.form == dw.FormRnglistx {
			size := uint64(b.format.offsetSize)
			n := uint64(len(f.rnglists))
			if v.n > n || b.rnglistsBase > n || b.rnglistsBase+v.n*size+size > n {
				return dst, bad(".debug_rnglists"+f.suffix, b.rnglistsBase, "no list of index %d in a section of %#x bytes", v.n, n)
			}
			offset := b.rnglistsBase + v.n*size
			if err := f.rest.rnglists.Need(offset + size); err != nil {
				return dst, err
			}
			off = b.rnglistsBase + uintAt(f.rnglists[offset:offset+size], f.isBigEndian)
		} else {
			off, _ = b.part.place(sectRnglists, off, 0)
		}
		return b.rangeList5(off, dst, budget)
	}
	if b.skeleton != nil {
		off += b.rangesBase
	}
	return b.rangeList(off, dst, budget)
}

// spend takes one from a budget of work.
func spend(budget *int64, section string, off uint64) error {
	if *budget--; *budget < 0 {
		return bad(section, off, "the lists of one unit are longer than its size makes believable")
	}
	return nil
}

// needList reads a list at an offset of the first size bytes of a section: read gets the
// end of the available part, and reports whether the list is cut there. rest is of a
// section that is unpacked on demand.
func needList(rest *object.Contents, off, size uint64, read func(end uint64) (isCut bool, err error)) error {
	for window := uint64(leastWindow); ; window *= 8 {
		end := size
		if rest != nil && window < size-min(off, size) {
			end = off + window
		}
		if err := rest.Need(end); err != nil {
			return err
		}
		if isCut, err := read(end); !isCut || end == size {
			return err
		}
	}
}

// rangeList reads a list of .debug_ranges (DWARF 4, 2.17.3).
func (b *body) rangeList(off uint64, list []span, budget *int64) ([]span, error) {
	f, before := b.main(), len(list)
	err := needList(f.rest.debugRanges, off, uint64(len(f.debugRanges)), func(end uint64) (isCut bool, err error) {
		list, isCut, err = b.rangeListUpTo(off, end, list[:before], budget)
		return isCut, err
	})
	return list, err
}

// rangeListUpTo reads a list in the first end bytes of the section. isCut is set where it
// does not end in them.
func (b *body) rangeListUpTo(off, end uint64, list []span, budget *int64) (_ []span, isCut bool, err error) {
	f := b.main()
	c := newCursor(f.debugRanges, f.isBigEndian, off, end)
	base, size := b.base, int(b.format.addrSize)
	highest := ^uint64(0) >> (64 - 8*size)
	for {
		low, high := c.uint(size), c.uint(size)
		if c.failed {
			return list, true, bad(".debug_ranges", off, "the list does not end in the %#x bytes of the section", len(f.debugRanges))
		}
		if err := spend(budget, ".debug_ranges", off); err != nil {
			return list, false, err
		}
		switch {
		case low == 0 && high == 0:
			return list, false, nil
		case low == highest:
			base = high
		default:
			list = f.appendLive(list, span{base + low, base + high})
		}
	}
}

// Range list entries (DWARF 5, table 7.30).
const (
	rleEndOfList    = 0x00
	rleBaseAddressx = 0x01
	rleStartxEndx   = 0x02
	rleStartxLength = 0x03
	rleOffsetPair   = 0x04
	rleBaseAddress  = 0x05
	rleStartEnd     = 0x06
	rleStartLength  = 0x07
)

// rangeList5 reads a list of .debug_rnglists (DWARF 5, 2.17.3).
func (b *body) rangeList5(off uint64, list []span, budget *int64) ([]span, error) {
	f, before := b.file, len(list)
	err := needList(f.rest.rnglists, off, uint64(len(f.rnglists)), func(end uint64) (isCut bool, err error) {
		list, isCut, err = b.rangeList5UpTo(off, end, list[:before], budget)
		return isCut, err
	})
	return list, err
}

// rangeList5UpTo reads a list in the first end bytes of the section. isCut is set where it
// does not end in them.
func (b *body) rangeList5UpTo(off, end uint64, list []span, budget *int64) (_ []span, isCut bool, err error) {
	f := b.file
	section := ".debug_rnglists" + f.suffix
	c := newCursor(f.rnglists, f.isBigEndian, off, end)
	base, size := b.base, int(b.format.addrSize)
	highest := ^uint64(0) >> (64 - 8*size)
	main := b.main()
	var failed error
	addrx := func() uint64 {
		a, err := b.addrx(c.uleb())
		if err != nil {
			failed = err
		}
		return a
	}
	for {
		kind := c.uint(1)
		var s span
		switch kind {
		case rleEndOfList:
		case rleOffsetPair:
			s.start, s.end = base+c.uleb(), base+c.uleb()
			if base == highest { // of code that the linker threw away
				s = span{}
			}
		case rleBaseAddressx:
			base = addrx()
		case rleStartxEndx:
			s.start, s.end = addrx(), addrx()
		case rleStartxLength:
			s.start = addrx()
			s.end = s.start + c.uleb()
		case rleBaseAddress:
			base = c.uint(size)
		case rleStartEnd:
			s.start, s.end = c.uint(size), c.uint(size)
		case rleStartLength:
			s.start = c.uint(size)
			s.end = s.start + c.uleb()
		default:
			return list, false, bad(section, off, "entry kind %#x, expected 0 to 7", kind)
		}
		if c.failed {
			return list, true, bad(section, off, "the list does not end in the %#x bytes of the section", len(f.rnglists))
		}
		if failed != nil {
			return list, false, bad(section, off, "%v", failed)
		}
		if err := spend(budget, section, off); err != nil {
			return list, false, err
		}
		if kind == rleEndOfList {
			return list, false, nil
		}
		list = main.appendLive(list, s)
	}
}
