package dwarf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// What debug/dwarf does with a unit, an abbreviation or a string is bounded by
// nothing but its input, so the input is bounded here, before it gets there.
const (
	maxAttributes = 128     // of one abbreviation
	maxString     = 1 << 20 // bytes of one string in a string section
	// abbrevSlack bounds how often the bytes of .debug_abbrev may be read for
	// different tables: producers write tables that do not overlap.
	abbrevSlack = 4
)

// A unit is the header of a unit in .debug_info (DWARF 5, 7.5.1), and what was
// learned of it so far.
type unit struct {
	offset     uint64 // of the header in .debug_info
	first      uint64 // offset of its first entry
	end        uint64
	version    int
	offsetSize int
	addrSize   int
	typeUnit   bool

	language int64
	compDir  string
	lineOff  uint64
	hasLine  bool
	base     uint64 // DW_AT_low_pc: the base of its range lists
	addrBase uint64 // DW_AT_addr_base
	hasCode  bool   // may describe functions
	index    *index // nil until it is needed
	err      error  // why there is none
}

// vet checks the sections that debug/dwarf will read and lists the units.
func (s *sections) vet() ([]unit, error) {
	if uint64(len(s.info)) > math.MaxUint32 {
		return nil, fmt.Errorf(".debug_info: %d bytes, expected less than 4 GiB", len(s.info))
	}
	units, abbrevs, err := s.unitHeaders()
	if err != nil {
		return nil, err
	}
	if len(units) == 0 {
		return nil, errors.New(".debug_info: holds no unit")
	}
	if err := s.vetAbbrevs(abbrevs); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{".debug_str": s.str, ".debug_line_str": s.lineStr} {
		for off := 0; off < len(data); {
			n := bytes.IndexByte(data[off:], 0)
			if n < 0 {
				n = len(data) - off
			}
			if n > maxString {
				return nil, fmt.Errorf("%s: offset %#x: string of %d bytes, expected at most %d", name, off, n, maxString)
			}
			off += n + 1
		}
	}
	return units, nil
}

// unitHeaders walks the headers in .debug_info. It also returns where the
// units' abbreviations begin.
func (s *sections) unitHeaders() (units []unit, abbrevs []uint64, err error) {
	size := uint64(len(s.info))
	for off := uint64(0); off < size; {
		c := at(s.info, s.order, off, size)
		length, offsetSize := c.initialLength()
		if c.failed || length > size-c.off {
			return nil, nil, fmt.Errorf(".debug_info: unit at %#x: length %#x, expected at most the %#x bytes that follow", off, length, size-c.off)
		}
		end := c.off + length
		if length == 0 { // padding between units
			if offsetSize == 8 {
				return nil, nil, fmt.Errorf(".debug_info: unit at %#x: length 0", off)
			}
			off = end
			continue
		}
		c = at(s.info, s.order, c.off, end)
		u := unit{offset: off, end: end, offsetSize: offsetSize}
		u.version = int(c.uint(2))
		if u.version < 2 || u.version > 5 {
			return nil, nil, fmt.Errorf(".debug_info: unit at %#x: DWARF version %d, expected 2 to 5", off, u.version)
		}
		var kind, abbrev uint64
		if u.version >= 5 {
			kind = c.uint(1)
			u.addrSize = int(c.uint(1))
			abbrev = c.uint(offsetSize)
		} else {
			abbrev = c.uint(offsetSize)
			u.addrSize = int(c.uint(1))
		}
		switch kind { // DWARF 5, 7.5.1.2 and 7.5.1.3
		case utSkeleton, utSplitCompile:
			c.uint(8) // dwo_id
		case utType, utSplitType:
			u.typeUnit = true
			c.uint(8) // type_signature
			c.uint(offsetSize)
		}
		if c.failed {
			return nil, nil, fmt.Errorf(".debug_info: unit at %#x: %#x bytes do not hold its header", off, length)
		}
		if u.addrSize != 2 && u.addrSize != 4 && u.addrSize != 8 {
			return nil, nil, fmt.Errorf(".debug_info: unit at %#x: addresses of %d bytes, expected 2, 4 or 8", off, u.addrSize)
		}
		if abbrev > uint64(len(s.abbrev)) {
			return nil, nil, fmt.Errorf(".debug_info: unit at %#x: abbreviations at %#x, expected less than the size %#x of .debug_abbrev", off, abbrev, len(s.abbrev))
		}
		u.first = c.off
		units = append(units, u)
		abbrevs = append(abbrevs, abbrev)
		off = end
	}
	return units, abbrevs, nil
}

// Unit types (DWARF 5, table 7.2).
const (
	utType         = 0x02
	utSkeleton     = 0x04
	utSplitCompile = 0x05
	utSplitType    = 0x06
)

const formImplicitConst = 0x21

// vetAbbrevs walks the abbreviation tables (DWARF 5, 7.5.3) that begin at offsets.
func (s *sections) vetAbbrevs(offsets []uint64) error {
	slices.Sort(offsets)
	budget := uint64(len(s.abbrev))*abbrevSlack + 1<<16
	for _, off := range slices.Compact(offsets) {
		c := at(s.abbrev, s.order, off, uint64(len(s.abbrev)))
		for {
			entry := c.off
			if c.uleb() == 0 {
				break
			}
			c.uleb()  // tag
			c.uint(1) // children
			for n := 0; ; n++ {
				name, form := c.uleb(), c.uleb()
				if form == formImplicitConst {
					c.sleb()
				}
				if name == 0 && form == 0 || c.failed {
					break
				}
				if n == maxAttributes {
					return fmt.Errorf(".debug_abbrev: entry at %#x: more than %d attributes", entry, maxAttributes)
				}
			}
		}
		if c.failed {
			return fmt.Errorf(".debug_abbrev: table at %#x does not end in the section", off)
		}
		if used := c.off - off; used > budget {
			return fmt.Errorf(".debug_abbrev: table at %#x: the tables of different units overlap", off)
		} else {
			budget -= used
		}
	}
	return nil
}

// sections are the parts of .debug_* that are read. All of them lie in memory
// that may fault: they are read inside protect only.
type sections struct {
	info, abbrev, str, lineStr, line, debugRanges, rnglists, addr, strOffsets, aranges []byte

	order binary.ByteOrder
	// code are the address ranges that hold code, sorted; what lies outside is
	// of code that the linker threw away. Empty where that is not known.
	code []span
}

// A span is the addresses from start up to, not including, end.
type span struct{ start, end uint64 }

func (s span) holds(address uint64) bool { return s.start <= address && address < s.end }

// live says whether a range is of code that is in the object.
func (s *sections) live(r span) bool {
	if r.start >= r.end {
		return false
	}
	if len(s.code) == 0 {
		return true
	}
	i := sort.Search(len(s.code), func(i int) bool { return s.code[i].start > r.start })
	return i > 0 && s.code[i-1].holds(r.start)
}
