// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"
	"math"

	"github.com/unwindd/unwindd/internal/dw"
)

// unitHeader is the header of a unit (DWARF 5, 7.5.1).
type unitHeader struct {
	file      *file
	format    format
	kind      uint8  // DW_UT_*
	isInTypes bool   // in .debug_types
	offset    uint64 // of the header in its section
	first     uint64 // offset of its first entry
	end       uint64
	abbrevOff uint64
	signature uint64        // of a type unit, a skeleton, a split unit: DWARF 5 only for the latter two
	typeOff   uint64        // of a type unit: offset of the type from the header
	skeleton  *unit         // of a split unit
	part      *contribution // of a unit in a package

}

// unit is a unit and the parts of it that were read so far. Units do not move.
type unit struct {
	unitHeader
	body lazy[*body]
}

// body has the attributes of a unit's first entry, and data derived from its entries.
type body struct {
	*unit
	table       lazy[*abbrevTable] // see abbrevs
	tag         dw.Tag
	hasChildren bool

	language               uint64
	name, compDir          string
	lineOff                uint64
	hasLine                bool
	base                   uint64 // DW_AT_low_pc: the base of its range lists
	addrBase               uint64
	strOffsetsBase         uint64
	rnglistsBase           uint64
	loclistsBase           uint64
	rangesBase             uint64 // DW_AT_GNU_ranges_base
	dwoName                string
	dwoID                  uint64
	hasDwoID               bool
	low, high, rangesValue value
	hasLow, hasHigh        bool
	hasRanges              bool

	functions lazy[*functions]            // found without visiting entries that cannot contain code
	all       lazy[*functions]            // found by visiting every entry
	instances lazy[map[entryKey][]uint64] // functions with code, by root
	lines     lazy[*lineTable]
	fileNames lazy[*fileNames]
	spaces    spaces
	types     typeTable
	split     lazy[*unit]
}

// bytes is the section that the unit is in, up to its end.
func (u *unitHeader) bytes() []byte {
	if u.isInTypes {
		// Read before the unit was opened.
		return u.file.typesData()[:u.end]
	}
	return u.file.info[:u.end]
}

// section is the name of the section that the unit is in.
func (u *unitHeader) section() string {
	if u.isInTypes {
		return ".debug_types" + u.file.suffix
	}
	return ".debug_info" + u.file.suffix
}

// isType reports whether the unit is a type unit.
func (u *unitHeader) isType() bool {
	return u.isInTypes || u.kind == unitType || u.kind == unitSplitType
}

// main is the file that has the unit's addresses.
func (u *unitHeader) main() *file {
	if u.skeleton != nil {
		return u.skeleton.file
	}
	return u.file
}

func (u *unitHeader) cursor(off uint64) cursor {
	return cursor{data: u.bytes(), off: min(off, u.end), end: u.end, isBigEndian: u.format.isBigEndian, failed: off > u.end}
}

// readHeader reads the header at an offset of a section, and returns the offset of the next
// one. Padding leaves u as it was.
func (u *unitHeader) readHeader(info []byte, off uint64) (next uint64, err error) {
	f, size := u.file, uint64(len(info))
	u.offset = off
	c := newCursor(info, f.isBigEndian, off, size)
	length, offsetSize := c.initialLength()
	if c.failed || length > c.left() {
		return 0, u.wrong(off, "length %#x, expected at most the %#x bytes that follow", length, c.left())
	}
	end := c.off + length
	if length == 0 { // padding between units
		if offsetSize == 8 {
			return 0, u.wrong(off, "length 0")
		}
		return end, nil
	}
	c.end, u.kind = end, unitCompile
	version := c.uint(2)
	if version < 2 || version > 5 {
		return 0, u.wrong(off, "DWARF version %d, expected 2 to 5", version)
	}
	var addrSize uint64
	if version >= 5 {
		u.kind = uint8(c.uint(1))
		addrSize = c.uint(1)
		u.abbrevOff = c.uint(offsetSize)
	} else {
		u.abbrevOff = c.uint(offsetSize)
		addrSize = c.uint(1)
		if u.isInTypes {
			u.kind = unitType
		}
	}
	switch u.kind { // DWARF 5, 7.5.1.2 and 7.5.1.3
	case unitSkeleton, unitSplitCompile:
		u.signature = c.uint(8)
	case unitType, unitSplitType:
		u.signature = c.uint(8)
		u.typeOff = c.uint(offsetSize)
	}
	if c.failed {
		return 0, u.wrong(off, "%#x bytes do not hold its header", length)
	}
	if addrSize != 2 && addrSize != 4 && addrSize != 8 {
		return 0, u.wrong(off, "addresses of %d bytes, expected 2, 4 or 8", addrSize)
	}
	if end-off > math.MaxUint32 {
		return 0, u.wrong(off, "length %#x, expected less than 4 GiB", length)
	}
	if u.abbrevOff > uint64(len(f.abbrev)) {
		return 0, u.wrong(off, "abbreviations at %#x, expected less than the size %#x of .debug_abbrev", u.abbrevOff, len(f.abbrev))
	}
	u.format = format{version: uint8(version), addrSize: uint8(addrSize), offsetSize: uint8(offsetSize), isBigEndian: f.isBigEndian}
	u.first, u.end = c.off, end
	return end, nil
}

// open reads the unit's first entry, once.
func (u *unit) open() (*body, error) { return u.body.get(u.readBody) }

func (u *unitHeader) wrong(off uint64, format string, args ...any) error {
	return &FormatError{u.section(), off, fmt.Sprintf("unit at %#x", u.offset), fmt.Sprintf(format, args...)}
}

func (u *unit) readBody() (*body, error) {
	b := new(body)
	names, err := u.readRoot(b)
	if err != nil {
		return nil, err
	}
	b.setNames(&names)
	u.file.addKept(sizeOf[body](1) + len(b.name) + len(b.compDir) + len(b.dwoName))
	return b, nil
}

// readRoot reads the unit's first entry into b, without its strings.
func (u *unit) readRoot(b *body) (names unitNames, err error) {
	*b = body{unit: u}
	if !u.isInTypes {
		if err := u.file.rest.info.Need(u.end); err != nil {
			return names, err
		}
	}
	b.setDefaults()
	if u.first >= u.end {
		return names, nil
	}
	c := u.cursor(u.first)
	code := c.uleb()
	if code == 0 {
		return names, u.wrong(u.first, "its first entry is null")
	}
	tmp := abbrevPool.Get().(*abbrevScratch)
	defer abbrevPool.Put(tmp)
	a, err := b.rootAbbrev(code, tmp)
	if err != nil {
		return names, err
	}
	b.tag, b.hasChildren = a.tag, a.hasChildren
	names = b.readAttributes(&c, a)
	if c.failed {
		return names, u.wrong(u.first, "the values of its first entry do not end in the unit")
	}
	if u.kind == unitSkeleton || u.kind == unitSplitCompile {
		b.dwoID, b.hasDwoID = u.signature, true
	}
	if b.hasLow {
		if b.base, err = b.ownAddress(&b.low); err != nil {
			return names, u.wrong(u.first, "%v", err)
		}
	}
	return names, nil
}

// rootAbbrev returns the abbreviation of the unit's first entry.
func (b *body) rootAbbrev(code uint64, tmp *abbrevScratch) (*abbrev, error) {
	key, end := b.abbrevKey()
	if d, ok := b.file.rootAbbrev(key, end, code, tmp); ok {
		return &d.abbrev, nil
	}
	t, err := b.abbrevs()
	if err != nil {
		return nil, err
	}
	if a := t.find(code); a != nil {
		return a, nil
	}
	return nil, b.wrong(b.first, "abbreviation %d is not declared", code)
}

// abbrevs returns the abbreviations of the unit, which are read when an entry behind the first
// one is needed.
func (b *body) abbrevs() (*abbrevTable, error) {
	return b.table.get(func() (*abbrevTable, error) {
		key, end := b.abbrevKey()
		t, err := b.file.abbrevs(key, end)
		if err != nil {
			return nil, b.wrong(b.offset, "%v", err)
		}
		return t, nil
	})
}

// abbrevKey is where the abbreviations of the unit are, and where they end at the latest.
func (u *unitHeader) abbrevKey() (key abbrevKey, end uint64) {
	key.format = u.format
	key.format.version = min(key.format.version, 3) // only DWARF 2 differs
	key.offset, end = u.part.place(sectAbbrev, u.abbrevOff, uint64(len(u.file.abbrev)))
	return key, end
}

// unitNames are the strings of a unit's first entry.
type unitNames struct{ name, compDir, dwoName, gnuDwoName value }

// readAttributes reads the values of a unit's first entry. The strings wait until
// all bases are known.
func (b *body) readAttributes(c *cursor, a *abbrev) (names unitNames) {
	for i := range a.specs {
		v := b.format.value(c, &a.specs[i])
		switch a.specs[i].attr {
		case dw.AttrName:
			names.name = v
		case dw.AttrCompDir:
			names.compDir = v
		case dw.AttrDwoName:
			names.dwoName = v
		case dw.AttrGNUDwoName:
			names.gnuDwoName = v
		case dw.AttrGNUDwoID:
			b.dwoID, b.hasDwoID = v.n, true
		case dw.AttrLanguage:
			b.language, _ = v.constant()
		case dw.AttrStmtList:
			if b.skeleton == nil { // else the skeleton's table is used
				b.lineOff, b.hasLine = v.offset()
			}
		case dw.AttrLowPC:
			b.low, b.hasLow = v, true
		case dw.AttrHighPC:
			b.high, b.hasHigh = v, true
		case dw.AttrRanges:
			b.rangesValue, b.hasRanges = v, true
		case dw.AttrAddrBase, dw.AttrGNUAddrBase:
			b.addrBase, _ = v.offset()
		case dw.AttrStrOffsetsBase:
			b.strOffsetsBase, _ = v.offset()
		case dw.AttrRnglistsBase:
			b.rnglistsBase, _ = v.offset()
		case dw.AttrLoclistsBase:
			b.loclistsBase, _ = v.offset()
		case dw.AttrGNURangesBase:
			b.rangesBase, _ = v.offset()
		}
	}
	return names
}

// setNames reads the strings of the unit's first entry.
func (b *body) setNames(names *unitNames) {
	dwoName := &names.dwoName
	if dwoName.form == 0 {
		dwoName = &names.gnuDwoName
	}
	for _, x := range [...]struct {
		field *string
		*value
	}{{&b.name, &names.name}, {&b.compDir, &names.compDir}, {&b.dwoName, dwoName}} {
		if x.form == 0 {
			continue
		}
		// A unit whose name cannot be read is still a unit.
		if text, err := b.text(x.value); err == nil {
			*x.field = copied(text)
		}
	}
}

// setDefaults sets the bases that a unit's first entry need not have: of a split unit, and
// where a section's only table begins after its header.
func (b *body) setDefaults() {
	u := b.unit
	header := uint64(8)
	if u.format.offsetSize == 8 {
		header = 16
	}
	if u.format.version >= 5 {
		b.addrBase, b.strOffsetsBase = header, header
		b.rnglistsBase, b.loclistsBase = header+4, header+4
	}
	b.strOffsetsBase, _ = u.part.place(sectStrOffsets, b.strOffsetsBase, 0)
	b.rnglistsBase, _ = u.part.place(sectRnglists, b.rnglistsBase, 0)
	b.loclistsBase, _ = u.part.place(sectLoclists, b.loclistsBase, 0)
	if u.skeleton == nil {
		return
	}
	if s, err := u.skeleton.open(); err == nil {
		b.addrBase, b.rangesBase = s.addrBase, s.rangesBase
		b.base = s.base
		b.lineOff, b.hasLine = s.lineOff, s.hasLine
		b.compDir = s.compDir
	}
}

// addrx returns an address of the unit's part of .debug_addr (DWARF 5, 7.27), as the file has it.
func (b *body) addrx(index uint64) (uint64, error) {
	f, size := b.main(), uint64(b.format.addrSize)
	if n := uint64(len(f.addr)); index <= n && b.addrBase <= n {
		if off := b.addrBase + index*size; off+size <= n {
			if err := f.rest.addr.Need(off + size); err != nil {
				return 0, err
			}
			return uintAt(f.addr[off:off+size], f.isBigEndian), nil
		}
	}
	return 0, bad(".debug_addr", b.addrBase, "no address of index %d in a section of %#x bytes", index, len(f.addr))
}

// address returns a value of class address, an address of the object.
func (b *body) address(v *value) (uint64, error) {
	address, err := b.ownAddress(v)
	if err != nil {
		return 0, err
	}
	return b.main().moved(address)
}

// ownAddress is address as the file has it.
func (b *body) ownAddress(v *value) (uint64, error) {
	switch v.form {
	case dw.FormAddr:
		return v.n, nil
	case dw.FormAddrx, dw.FormAddrx1, dw.FormAddrx2, dw.FormAddrx3, dw.FormAddrx4, dw.FormGNUAddrIndex:
		return b.addrx(v.n)
	case dw.FormLLVMAddrxOffset:
		a, err := b.addrx(v.n)
		return a + uintAt(v.b, b.format.isBigEndian), err
	}
	return 0, bad(b.section(), b.offset, "form %#x of an address", uint16(v.form))
}

// isAddress reports whether a value is of class address.
func (v *value) isAddress() bool {
	switch v.form {
	case dw.FormAddr, dw.FormAddrx, dw.FormAddrx1, dw.FormAddrx2, dw.FormAddrx3, dw.FormAddrx4, dw.FormGNUAddrIndex, dw.FormLLVMAddrxOffset:
		return true
	}
	return false
}
