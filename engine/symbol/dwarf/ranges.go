package dwarf

import (
	godwarf "debug/dwarf"
	"fmt"
)

const (
	attrDwoName     = godwarf.Attr(0x76)   // DW_AT_dwo_name
	attrGNUDwoName  = godwarf.Attr(0x2130) // DW_AT_GNU_dwo_name
	attrMIPSLinkage = godwarf.Attr(0x2007) // DW_AT_MIPS_linkage_name
)

// ranges returns the addresses of an entry (DWARF 5, 2.17), and where it
// begins. Empty ranges and those of code that is not in the object are left out.
func (r *Reader) ranges(u *unit, e *godwarf.Entry, budget *int) (list []span, entry uint64, hasEntry bool, err error) {
	low, hasLow := e.Val(godwarf.AttrLowpc).(uint64)
	if f := e.AttrField(godwarf.AttrHighpc); f != nil && hasLow {
		var end uint64
		switch v := f.Val.(type) {
		case uint64:
			end = v
		case int64:
			end = low + uint64(v)
		}
		if s := (span{low, end}); r.live(s) {
			list = append(list, s)
		}
	}
	if f := e.AttrField(godwarf.AttrRanges); f != nil {
		var off uint64
		switch v := f.Val.(type) {
		case int64:
			off = uint64(v)
		case uint64:
			off = v // of DW_FORM_rnglistx, as an offset
		}
		if u.version >= 5 {
			list, err = r.rangeList5(u, off, list, budget)
		} else {
			list, err = r.rangeList(u, off, list, budget)
		}
		if err != nil {
			return nil, 0, false, err
		}
	}
	switch { // DWARF 5, 2.18
	case len(list) == 0:
	case e.Val(godwarf.AttrEntrypc) != nil:
		switch v := e.Val(godwarf.AttrEntrypc).(type) {
		case uint64:
			entry, hasEntry = v, true
		case int64:
			base := list[0].start
			if hasLow {
				base = low
			}
			entry, hasEntry = base+uint64(v), true
		}
	case hasLow:
		entry, hasEntry = low, true
	default:
		entry, hasEntry = list[0].start, true
	}
	return list, entry, hasEntry, nil
}

// spend takes one from a budget of work.
func spend(budget *int, section string, off uint64) error {
	if *budget--; *budget < 0 {
		return fmt.Errorf("%s: list at %#x: the lists of one unit are longer than its size makes believable", section, off)
	}
	return nil
}

// rangeList reads a list of .debug_ranges (DWARF 4, 2.17.3).
func (r *Reader) rangeList(u *unit, off uint64, list []span, budget *int) ([]span, error) {
	c := at(r.debugRanges, r.order, off, uint64(len(r.debugRanges)))
	base := u.base
	escape := ^uint64(0) >> (64 - 8*u.addrSize)
	for {
		low, high := c.uint(u.addrSize), c.uint(u.addrSize)
		if c.failed {
			return nil, fmt.Errorf(".debug_ranges: list at %#x does not end in the %#x bytes of the section", off, len(r.debugRanges))
		}
		if err := spend(budget, ".debug_ranges", off); err != nil {
			return nil, err
		}
		switch {
		case low == 0 && high == 0:
			return list, nil
		case low == escape:
			base = high
		default:
			if s := (span{base + low, base + high}); r.live(s) {
				list = append(list, s)
			}
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
func (r *Reader) rangeList5(u *unit, off uint64, list []span, budget *int) ([]span, error) {
	c := at(r.rnglists, r.order, off, uint64(len(r.rnglists)))
	base := u.base
	addrx := func(index uint64) uint64 {
		// DWARF 5, 7.27
		if size := uint64(len(r.addr)); index <= size && u.addrBase <= size {
			a := at(r.addr, r.order, u.addrBase+index*uint64(u.addrSize), size)
			v := a.uint(u.addrSize)
			c.failed = c.failed || a.failed
			return v
		}
		c.failed = true
		return 0
	}
	for {
		kind := c.uint(1)
		var s span
		switch kind {
		case rleEndOfList:
		case rleBaseAddressx:
			base = addrx(c.uleb())
		case rleStartxEndx:
			s.start = addrx(c.uleb())
			s.end = addrx(c.uleb())
		case rleStartxLength:
			s.start = addrx(c.uleb())
			s.end = s.start + c.uleb()
		case rleOffsetPair:
			s.start = base + c.uleb()
			s.end = base + c.uleb()
		case rleBaseAddress:
			base = c.uint(u.addrSize)
		case rleStartEnd:
			s.start = c.uint(u.addrSize)
			s.end = c.uint(u.addrSize)
		case rleStartLength:
			s.start = c.uint(u.addrSize)
			s.end = s.start + c.uleb()
		default:
			return nil, fmt.Errorf(".debug_rnglists: list at %#x: entry kind %#x, expected 0 to 7", off, kind)
		}
		if c.failed {
			return nil, fmt.Errorf(".debug_rnglists: list at %#x is cut short or names an address that .debug_addr does not have", off)
		}
		if err := spend(budget, ".debug_rnglists", off); err != nil {
			return nil, err
		}
		if kind == rleEndOfList {
			return list, nil
		}
		if r.live(s) {
			list = append(list, s)
		}
	}
}

// aranges reads .debug_aranges (DWARF 5, 6.1.2): the ranges by offset of their
// unit's header. What cannot be read is left out: the table only helps.
func (s *sections) readAranges() map[uint64][]span {
	table := make(map[uint64][]span)
	for off := uint64(0); off < uint64(len(s.aranges)); {
		c := at(s.aranges, s.order, off, uint64(len(s.aranges)))
		length, offsetSize := c.initialLength()
		if c.failed || length > uint64(len(c.data)) {
			break
		}
		c.data = c.data[:length]
		end := c.off + length
		version := c.uint(2)
		unit := c.uint(offsetSize)
		size, selector := int(c.uint(1)), c.uint(1)
		if version == 2 && selector == 0 && (size == 4 || size == 8) {
			tuple := uint64(2 * size)
			c.bytes((tuple - (c.off-off)%tuple) % tuple)
			for c.more() {
				start, length := c.uint(size), c.uint(size)
				if c.failed || start == 0 && length == 0 {
					break
				}
				if a := (span{start, start + length}); s.live(a) {
					table[unit] = append(table[unit], a)
				}
			}
		}
		off = end
	}
	return table
}
