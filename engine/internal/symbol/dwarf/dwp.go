// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// sect is a kind of section of a package (DWARF 5, 7.3.5.3, table 7.1; GNU's version 2 has
// other numbers for some).
type sect uint8

const (
	sectInfo sect = iota + 1
	sectTypes
	sectAbbrev
	sectLine
	sectLoc
	sectLoclists
	sectStrOffsets
	sectRnglists
	sectOther
	sectCount
)

// sectsV2 and sectsV5 are the sections by their numbers in an index.
var (
	sectsV2 = []sect{0, sectInfo, sectTypes, sectAbbrev, sectLine, sectLoc, sectStrOffsets, sectOther, sectOther}
	sectsV5 = []sect{0, sectInfo, 0, sectAbbrev, sectLine, sectLoclists, sectStrOffsets, sectOther, sectRnglists}
)

// contribution is a unit's parts of the sections of a package.
type contribution struct {
	off, size [sectCount]uint64
}

// place converts an offset in the unit's part of a section to an offset in the section, and
// returns the end of that part. Outside of packages the part is the whole section, which
// ends at sectionEnd.
func (c *contribution) place(s sect, off, sectionEnd uint64) (place, end uint64) {
	if c == nil {
		return off, sectionEnd
	}
	return c.off[s] + off, c.off[s] + c.size[s]
}

// packageIndex is .debug_cu_index or .debug_tu_index (DWARF 5, 7.3.5.3).
type packageIndex struct {
	data             []byte
	isBigEndian      bool
	section          string
	columns          []sect
	units, slots     uint64
	ids, rows        uint64 // offsets of the hash table's columns
	offsets, lengths uint64 // offsets of the rows of the two tables
}

const maxColumns = 16

// readPackageIndex reads the header of an index; nil where there is none.
func readPackageIndex(section string, data []byte, big bool) (*packageIndex, error) {
	if len(data) == 0 {
		return nil, nil
	}
	c := newCursor(data, big, 0, uint64(len(data)))
	version := c.uint(4)
	known := sectsV2
	if version != 2 {
		// Version 5 has 2 bytes of it, and 2 of padding.
		c.off = 0
		if version = c.uint(2); version != 5 {
			return nil, bad(section, 0, "version %d, expected 2 or 5", version)
		}
		c.skip(2)
		known = sectsV5
	}
	x := &packageIndex{data: data, isBigEndian: big, section: section}
	columns := c.uint(4)
	x.units, x.slots = c.uint(4), c.uint(4)
	if c.failed || columns > maxColumns || x.slots&(x.slots-1) != 0 || x.units > x.slots {
		return nil, bad(section, 0, "%d columns, %d units, %d slots, expected at most %d columns, and slots that are a power of 2 and not less than units",
			columns, x.units, x.slots, maxColumns)
	}
	x.ids = c.off
	c.skip(8 * x.slots)
	x.rows = c.off
	c.skip(4 * x.slots)
	for range columns {
		n := c.uint(4)
		s := sect(0)
		if n < uint64(len(known)) {
			s = known[n]
		}
		x.columns = append(x.columns, s)
	}
	x.offsets = c.off
	c.skip(4 * columns * x.units)
	x.lengths = c.off
	c.skip(4 * columns * x.units)
	if c.failed {
		return nil, bad(section, 0, "%d units in %d columns do not fit the %#x bytes of the section", x.units, columns, len(data))
	}
	return x, nil
}

// find returns the contribution of a unit; nil where there is none.
func (x *packageIndex) find(id uint64) (*contribution, error) {
	if x == nil || x.slots == 0 {
		return nil, nil
	}
	mask := x.slots - 1
	word := func(off uint64) uint64 { return uintAt(x.data[off:off+4], x.isBigEndian) }
	for slot, step := id&mask, id>>32&mask|1; ; slot = (slot + step) & mask {
		row := word(x.rows + 4*slot)
		if row == 0 {
			return nil, nil
		}
		if offset := x.ids + 8*slot; uintAt(x.data[offset:offset+8], x.isBigEndian) != id {
			// The step is odd, so that every slot is visited once.
			if (slot+step)&mask == id&mask {
				return nil, nil
			}
			continue
		}
		if row > x.units {
			return nil, bad(x.section, x.rows+4*slot, "row %d, expected at most %d", row, x.units)
		}
		var c contribution
		n := uint64(len(x.columns))
		for i, s := range x.columns {
			offset := 4 * ((row-1)*n + uint64(i))
			c.off[s], c.size[s] = word(x.offsets+offset), word(x.lengths+offset)
		}
		return &c, nil
	}
}

// openPackage opens the object's package; nil where there is none.
func (r *Reader) openPackage() (*file, error) {
	if path := r.options.Package; path != "" {
		p, err := object.Open(path)
		if err != nil {
			return nil, err
		}
		return r.readPackage(r.keepOpen(p))
	}
	o := r.main.object
	if o == nil || o.Path() == "" {
		return nil, nil
	}
	paths := []string{o.Path() + ".dwp"}
	if rest, ok := strings.CutSuffix(o.Path(), ".debug"); ok {
		paths = append(paths, rest+".dwp")
	}
	for _, path := range paths {
		p, err := r.openObject(place{path, false})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return r.readPackage(p)
	}
	return nil, nil
}

// readPackage reads the indexes of a package.
func (r *Reader) readPackage(p *object.Object) (*file, error) {
	f, err := openFile(p, ".dwo")
	if err != nil {
		return nil, err
	}
	if f.reader = r; f.isBigEndian != r.main.isBigEndian {
		return nil, fmt.Errorf("%s: is of another byte order", f.name)
	}
	for i, section := range []string{".debug_cu_index", ".debug_tu_index"} {
		data, err := sectionData(p, section)
		if err == nil {
			f.indexes[i], err = readPackageIndex(section, data, f.isBigEndian)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if f.indexes[0] == nil {
		return nil, fmt.Errorf("%s: has no .debug_cu_index", f.name)
	}
	r.kept.Add(int64(p.MemorySize())) // it is unpacked now
	return f, nil
}

// packaged returns the unit of a package that has an ID; nil where the index has no such
// unit. which is the index: 0 of compilation units, 1 of type units.
func (f *file) packaged(which int, id uint64, skeleton *unit) (*unit, error) {
	part, err := f.indexes[which].find(id)
	if part == nil || err != nil {
		return nil, err
	}
	u := &unit{unitHeader: unitHeader{file: f, part: part, skeleton: skeleton}}
	s, info := sectInfo, f.info
	if part.size[sectInfo] == 0 && part.size[sectTypes] != 0 {
		s, u.isInTypes, info = sectTypes, true, f.typesData()
	}
	off, end := part.place(s, 0, 0)
	if end > uint64(len(info)) || off >= end {
		return nil, bad(u.section(), off, "the unit of ID %#x ends at %#x, the section at %#x", id, end, len(info))
	}
	for {
		next, err := u.readHeader(info[:end], off)
		if err != nil {
			return nil, err
		}
		// A unit of version 4 has its ID in its first entry, and only the index tells which
		// of several it is: the first.
		if u.end != 0 && (u.format.version < 5 && !u.isType() || u.signature == id) {
			return u, nil
		}
		if next >= end {
			return nil, bad(u.section(), off, "the unit of ID %#x is expected", id)
		}
		off, u.end = next, 0
	}
}
