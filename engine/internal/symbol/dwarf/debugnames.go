// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/internal/dw"
)

// Bounds on a lookup in .debug_names.
const (
	maxNamed      = 1 << 12 // entries of one name
	maxNameAbbrev = 1 << 12 // abbreviations of one index
	maxNameIdx    = 32      // index attributes of one abbreviation
)

// Index attributes (DWARF 5, 6.1.1.4.8, table 6.1).
const (
	idxCompileUnit = 1 // DW_IDX_compile_unit
	idxTypeUnit    = 2 // DW_IDX_type_unit
	idxDieOffset   = 3 // DW_IDX_die_offset
)

// nameIndex is a name index of .debug_names (DWARF 5, 6.1.1.4).
type nameIndex struct {
	file         *file
	data         []byte // the section, up to the end of the index
	offset       uint64
	format       format
	augmentation string // the producer, by its own account

	units, types, foreign uint64 // counts of the units
	unitList              uint64 // offset of the list of compilation units, local type units and foreign type units
	buckets, names        uint64 // counts
	bucketTable, hashes   uint64 // offsets of the tables
	strings, offsets      uint64
	pool                  uint64 // of entries

	abbrevs map[uint64]*nameAbbrev
}

// nameAbbrev is an abbreviation of the entries of an index.
type nameAbbrev struct {
	tag   dw.Tag
	attrs []nameAttr
}

type nameAttr struct {
	idx  uint64
	form dw.Form
}

// nameIndexes are the indexes in .debug_names. A damaged index is a problem; neither it nor
// later ones are used.
func (f *file) nameIndexes() []*nameIndex {
	list, err := f.debugNames.get(func() ([]*nameIndex, error) {
		data, err := f.read(".debug_names")
		if err != nil {
			return nil, err
		}
		return f.readNameIndexes(data)
	})
	if err != nil {
		f.reader.problem(err.Error())
	}
	return list
}

// readNameIndexes reads the headers of indexes. With an error it returns the indexes before
// the damaged one.
func (f *file) readNameIndexes(data []byte) (list []*nameIndex, err error) {
	for off := uint64(0); off < uint64(len(data)); {
		x, next, err := f.readNameIndex(data, off)
		if err != nil {
			return list, err
		}
		if x != nil {
			list = append(list, x)
		}
		off = next
	}
	return list, nil
}

// readNameIndex reads the header of an index, and checks the units that it lists (DWARF 5,
// 6.1.1.4.1 to 6.1.1.4.7). Padding is no index.
func (f *file) readNameIndex(data []byte, off uint64) (x *nameIndex, next uint64, err error) {
	wrong := func(off uint64, format string, args ...any) (*nameIndex, uint64, error) {
		return nil, 0, bad(".debug_names", off, format, args...)
	}
	c := newCursor(data, f.isBigEndian, off, uint64(len(data)))
	length, offsetSize := c.initialLength()
	if c.failed || length > c.left() {
		return wrong(off, "length %#x, expected at most the %#x bytes that follow", length, c.left())
	}
	end := c.off + length
	if length == 0 {
		return nil, end, nil
	}
	c.end = end
	if version := c.uint(2); version != 5 {
		return wrong(off, "version %d, expected 5", version)
	}
	c.skip(2) // padding
	x = &nameIndex{
		file: f, data: data[:end], offset: off,
		format: format{version: 5, addrSize: 8, offsetSize: uint8(offsetSize), isBigEndian: f.isBigEndian},
	}
	x.units, x.types, x.foreign = c.uint(4), c.uint(4), c.uint(4)
	x.buckets, x.names = c.uint(4), c.uint(4)
	abbrevSize, textSize := c.uint(4), c.uint(4)
	x.augmentation = string(bytes.TrimRight(c.bytes(textSize), "\x00"))
	if err := checkAugmentation(x.augmentation, off); err != nil {
		f.reader.problem(err.Error())
	}
	if pad := -textSize & 3; pad > 0 {
		c.skip(pad)
	}
	abbrevs := x.findTables(&c, abbrevSize)
	if c.failed {
		return wrong(off, "%d+%d+%d units, %d buckets, %d names and %#x bytes of abbreviations do not fit its %#x bytes",
			x.units, x.types, x.foreign, x.buckets, x.names, abbrevSize, length)
	}
	for i := range x.units + x.types {
		offset := x.listed(i)
		if u := f.unitAt(offset); u == nil || u.offset != offset || u.isType() != (i >= x.units) {
			return wrong(x.unitList+i*uint64(offsetSize), "a unit at %#x, where there is none of that kind", offset)
		}
	}
	if err := x.readAbbrevs(abbrevs); err != nil {
		return nil, 0, err
	}
	return x, end, nil
}

// findTables records the offsets of the tables of an index whose header was read. It
// returns the offset of the abbreviations.
func (x *nameIndex) findTables(c *cursor, abbrevSize uint64) (abbrevs uint64) {
	size := uint64(x.format.offsetSize)
	x.unitList = c.off
	c.skip(x.units*size + x.types*size)
	c.skip(x.foreign * 8)
	x.bucketTable = c.off
	c.skip(x.buckets * 4)
	x.hashes = c.off
	if x.buckets > 0 {
		c.skip(x.names * 4)
	}
	x.strings = c.off
	c.skip(x.names * size)
	x.offsets = c.off
	c.skip(x.names * size)
	abbrevs = c.off
	c.skip(abbrevSize)
	x.pool = c.off
	return abbrevs
}

// listed is the offset of a compilation unit or a local type unit.
func (x *nameIndex) listed(i uint64) uint64 { return x.word(x.unitList, i, int(x.format.offsetSize)) }

// word reads a number of a table.
func (x *nameIndex) word(table, i uint64, size int) uint64 {
	offset := table + i*uint64(size)
	return uintAt(x.data[offset:offset+uint64(size)], x.format.isBigEndian)
}

// readAbbrevs reads the abbreviations (DWARF 5, 6.1.1.4.7), which come before the pool.
func (x *nameIndex) readAbbrevs(off uint64) error {
	x.abbrevs = make(map[uint64]*nameAbbrev)
	c := newCursor(x.data, x.format.isBigEndian, off, x.pool)
	for c.hasMore() {
		entry := c.off
		code := c.uleb()
		if code == 0 {
			break
		}
		tag := c.uleb()
		a := &nameAbbrev{tag: dw.Tag(tag)}
		for {
			idx, encoding := c.uleb(), c.uleb()
			if idx == 0 && encoding == 0 || c.failed {
				break
			}
			if _, _, ok := x.format.skipOf(dw.Form(encoding)); !ok || encoding > 0xffff {
				return bad(".debug_names", entry, "form %#x of index attribute %#x is not known", encoding, idx)
			}
			if encoding == uint64(dw.FormImplicitConst) {
				return bad(".debug_names", entry, "form %#x of index attribute %#x", encoding, idx)
			}
			if len(a.attrs) == maxNameIdx {
				return bad(".debug_names", entry, "more than %d index attributes", maxNameIdx)
			}
			a.attrs = append(a.attrs, nameAttr{idx, dw.Form(encoding)})
		}
		if c.failed || tag > 0xffff || x.abbrevs[code] != nil || len(x.abbrevs) == maxNameAbbrev {
			return bad(".debug_names", entry, "abbreviation %d of tag %#x, expected one that ends before %#x, of a code of its own, and at most %d", code, tag, x.pool, maxNameAbbrev)
		}
		x.abbrevs[code] = a
	}
	return nil
}

// hashOfName is the hash of a name (DWARF 5, 7.33): Bernstein's, of the name with
// its case folded.
func hashOfName(name string) uint32 {
	h := uint32(5381)
	for i, r := range name {
		switch {
		case r < utf8.RuneSelf:
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			h = h*33 + uint32(r)
			continue
		case r == 'İ' || r == 'ı': // both fold to the letter i
			r = 'i'
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(name[i:]); n == 1 { // not UTF-8
				h = h*33 + uint32(name[i])
				continue
			}
		default:
			r = foldRune(r)
		}
		for _, b := range utf8.AppendRune(nil, r) {
			h = h*33 + uint32(b)
		}
	}
	return h
}

// foldRune is the simple case folding of a character: the lower-case form of its upper-case
// form.
func foldRune(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// find calls f with the offsets of the series of entries of a name, until f returns false.
func (x *nameIndex) find(name string, f func(off uint64) bool) error {
	if x.buckets == 0 {
		for i := range x.names {
			if x.isNamed(i, name) && !f(x.word(x.offsets, i, int(x.format.offsetSize))) {
				break
			}
		}
		return nil
	}
	hash := uint64(hashOfName(name))
	bucket := hash % x.buckets
	first := x.word(x.bucketTable, bucket, 4)
	if first == 0 {
		return nil
	}
	if first > x.names {
		return bad(".debug_names", x.bucketTable+4*bucket, "name %d, expected at most %d", first, x.names)
	}
	for i := first - 1; i < x.names; i++ {
		h := x.word(x.hashes, i, 4)
		if h%x.buckets != bucket {
			break
		}
		if h == hash && x.isNamed(i, name) && !f(x.word(x.offsets, i, int(x.format.offsetSize))) {
			break
		}
	}
	return nil
}

// isNamed reports whether a string of the table of names is a name.
func (x *nameIndex) isNamed(i uint64, name string) bool {
	off, str := x.word(x.strings, i, int(x.format.offsetSize)), x.file.str
	n := uint64(len(name))
	if off < uint64(len(str)) && x.file.rest.str.Need(off+n+1) != nil {
		return false
	}
	return off < uint64(len(str)) && uint64(len(str))-off > n && string(str[off:off+n]) == name && str[off+n] == 0
}

// Named returns the entries that .debug_names has for a name or linkage name and that match
// it: each has the tag that the index states, and the name. There are none where the object
// has no such index; an index need not have all. An error is about the index.
func (r *Reader) Named(name string) (list []Entry, err error) {
	err = r.protect(func() error {
		for _, x := range r.main.nameIndexes() {
			var failed error
			err := x.find(name, func(off uint64) bool {
				failed = x.entries(off, func(e Entry) bool {
					if e.isCalled(name) {
						list = append(list, e)
					}
					return len(list) < maxNamed
				})
				return failed == nil && len(list) < maxNamed
			})
			if err == nil {
				err = failed
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// isCalled reports whether a name is the entry's, or its linkage name.
func (e Entry) isCalled(name string) bool {
	named := false
	for _, attr := range []dw.Attr{dw.AttrName, dw.AttrLinkageName, dw.AttrMIPSLinkageName} {
		v, owner, ok, err := e.find(attr)
		if !ok || err != nil {
			continue
		}
		named = named || attr == dw.AttrName
		if text, err := owner.b.text(&v); err == nil && string(text) == name {
			return true
		}
	}
	return !named && e.Tag() == dw.TagNamespace && name == anonymous[dw.TagNamespace]
}

// entries calls f with the entries in a series of the pool (DWARF 5, 6.1.1.4.8) that match
// the series.
func (x *nameIndex) entries(off uint64, f func(Entry) bool) error {
	size := uint64(len(x.data))
	if off >= size-x.pool {
		return bad(".debug_names", x.pool, "a series of entries at %#x of a pool of %#x bytes", off, size-x.pool)
	}
	c := newCursor(x.data, x.format.isBigEndian, x.pool+off, size)
	for range maxNamed {
		entry := c.off
		code := c.uleb()
		if code == 0 && !c.failed {
			return nil
		}
		a := x.abbrevs[code]
		if a == nil || c.failed {
			return bad(".debug_names", entry, "an entry of abbreviation %d, which is not declared", code)
		}
		var values [idxDieOffset + 1]value
		for _, attr := range a.attrs {
			v := x.format.read(&c, attr.form)
			if attr.idx < uint64(len(values)) {
				values[attr.idx] = v
			}
		}
		if c.failed {
			return bad(".debug_names", entry, "the values of an entry do not end in the index")
		}
		e, err := x.entry(&values)
		if err != nil {
			x.file.reader.problem(fmt.Sprintf(".debug_names: offset %#x: %v", entry, err))
			continue
		}
		if !e.IsZero() && e.Tag() == a.tag && !f(e) {
			return nil
		}
	}
	return nil
}

// entry is the debugging information entry that the values of an entry of the pool lead to;
// none where its unit is unavailable.
func (x *nameIndex) entry(values *[idxDieOffset + 1]value) (Entry, error) {
	die := &values[idxDieOffset]
	if die.form == 0 {
		return Entry{}, nil
	}
	b, err := x.unitOf(values)
	if err != nil || b == nil {
		return Entry{}, err
	}
	target := b.offset + die.n
	if die.form == dw.FormRefAddr {
		target = die.n // of the section, as gdb writes it
	}
	if die.n > uint64(len(b.bytes())) || target < b.first || target >= b.end {
		return Entry{}, b.wrong(b.offset, "an entry is expected at %#x", die.n)
	}
	return b.entryAt(target)
}

// unitOf is the unit of an entry, for a skeleton the split unit; nil where it is
// unavailable. Where an index has one unit, entries need not name it.
func (x *nameIndex) unitOf(values *[idxDieOffset + 1]value) (*body, error) {
	cu, tu := &values[idxCompileUnit], &values[idxTypeUnit]
	n, limit := cu.n, x.units
	switch {
	case tu.form != 0 && tu.n < x.types:
		n, limit = x.units+tu.n, x.units+x.types
	case tu.form != 0 && tu.n-x.types < x.foreign:
		return x.foreignUnit(tu.n-x.types, cu)
	case tu.form != 0:
		return nil, bad(".debug_names", x.offset, "type unit %d, expected less than %d", tu.n, x.types+x.foreign)
	case cu.form == 0 && x.units != 1:
		return nil, bad(".debug_names", x.offset, "an entry names no unit, of %d", x.units)
	}
	if n >= limit {
		return nil, bad(".debug_names", x.offset, "unit %d, expected less than %d", n, limit)
	}
	b, err := x.file.unitAt(x.listed(n)).open()
	if err != nil {
		return nil, err
	}
	if !b.isSplit() {
		return b, nil
	}
	split, err := x.file.reader.splitOf(b)
	if split == b {
		return nil, err
	}
	return split, err
}

// foreignUnit is a type unit in a split file: the file of a compilation unit, where one is
// named.
func (x *nameIndex) foreignUnit(i uint64, cu *value) (*body, error) {
	if cu.form == 0 || cu.n >= x.units {
		return nil, nil
	}
	skeleton, err := x.file.unitAt(x.listed(cu.n)).open()
	if err != nil {
		return nil, err
	}
	split, err := x.file.reader.splitOf(skeleton)
	if err != nil || split == skeleton {
		return nil, err
	}
	signature := x.word(x.unitList+(x.units+x.types)*uint64(x.format.offsetSize), i, 8)
	u, err := split.file.typeUnit(signature)
	if u == nil || err != nil {
		return nil, err
	}
	return u.open()
}
