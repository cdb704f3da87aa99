// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
)

// Bounds on abbreviations.
const (
	maxAttributes = 128 // of one abbreviation
	// abbrevSlack bounds how often the bytes of .debug_abbrev may be read for different
	// tables: producers write tables that do not overlap.
	abbrevSlack = 4
)

// spec is an attribute of an abbreviation.
type spec struct {
	attr     dw.Attr
	form     dw.Form
	kind     skipKind
	size     uint8 // of a value of fixed size
	implicit int64 // of DW_FORM_implicit_const
}

// abbrev is an abbreviation declaration (DWARF 5, 7.5.3), with the skips over the values of
// an entry that has it.
type abbrev struct {
	specs []spec // nil where the code is not declared
	skips []skip // over the values
	tag   dw.Tag
	// sibling is the distance of the value of DW_AT_sibling from the first attribute's
	// value, in an abbreviation that has it as a reference of 4 bytes after values of fixed
	// sizes; else -1.
	sibling       int16
	isDeclared    bool
	hasChildren   bool
	hasCode       bool // has DW_AT_low_pc or DW_AT_ranges
	isDeclaration bool // has DW_AT_declaration
}

// skip is a step over one value of variable size, or over several of fixed size.
type skip struct {
	kind skipKind
	size uint16 // of skipFixed
}

type skipKind uint8

const (
	skipFixed skipKind = iota
	skipLEB
	skipString
	skipBlock1
	skipBlock2
	skipBlock4
	skipBlock    // a length in LEB128, and as many bytes
	skipAddrxOff // a number in LEB128, and 4 bytes
	skipIndirect
)

// abbrevTable has the abbreviations of a unit, by code. nil has none.
type abbrevTable struct {
	dense  []abbrev // by code, where codes count from 1 as usual
	sparse map[uint64]*abbrev
}

// find returns the declaration of a code; nil where there is none.
func (t *abbrevTable) find(code uint64) *abbrev {
	if t == nil {
		return nil
	}
	if code < uint64(len(t.dense)) {
		if a := &t.dense[code]; a.isDeclared {
			return a
		}
		return nil
	}
	return t.sparse[code]
}

// abbrevKey has all that the skips of a table depend on.
type abbrevKey struct {
	offset uint64
	format format
}

// format has all that the sizes of forms depend on.
type format struct {
	version, addrSize, offsetSize uint8
	isBigEndian                   bool
}

// abbrevCache has the tables of a file that were read so far.
type abbrevCache struct {
	mu     sync.Mutex
	tables map[abbrevKey]*lazy[*abbrevTable]
	budget int64 // bytes of .debug_abbrev that may still be read
}

// table returns a table of a file, which may not be read yet.
func (c *abbrevCache) table(f *file, key abbrevKey) (t *lazy[*abbrevTable], isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil {
		c.tables = make(map[abbrevKey]*lazy[*abbrevTable])
		c.budget = int64(len(f.abbrev))*abbrevSlack + 1<<16
	}
	if t = c.tables[key]; t == nil {
		t, isNew = &lazy[*abbrevTable]{}, true
		c.tables[key] = t
	}
	return t, isNew
}

// spend charges the bytes of a table to the budget; it is false where they are too many.
func (c *abbrevCache) spend(n uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget -= int64(n)
	return c.budget >= 0
}

// abbrevs returns a table, read once.
func (f *file) abbrevs(key abbrevKey, end uint64) (*abbrevTable, error) {
	t, _ := f.abbrevCache.table(f, key)
	return t.get(func() (*abbrevTable, error) { return f.needAbbrevs(key.offset, end, key.format) })
}

// rootAbbrev returns the declaration of a unit's first entry without reading the rest of its
// table; ok is false where the table has another unit too, or cannot be read. It is valid until
// tmp is used again.
func (f *file) rootAbbrev(key abbrevKey, end, code uint64, tmp *abbrevScratch) (d *declaration, ok bool) {
	if _, isNew := f.abbrevCache.table(f, key); !isNew || !f.abbrevCache.spend(1) {
		return nil, false
	}
	d = &tmp.root
	_ = needList(f.rest.abbrev, key.offset, end, func(end uint64) (isCut bool, err error) {
		r := abbrevReader{cursor: newCursor(f.abbrev, f.isBigEndian, key.offset, end), format: key.format, specs: tmp.specs[:0], skips: tmp.skips[:0]}
		*d, ok, err = r.find(code)
		tmp.specs, tmp.skips = r.specs, r.skips
		ok = ok && f.abbrevCache.spend(r.off-key.offset)
		return r.failed, err
	})
	d.specs = tmp.specs
	return d, ok
}

// find reads up to the declaration of a code, which it returns; ok is false where there is none.
func (r *abbrevReader) find(code uint64) (d declaration, ok bool, err error) {
	for {
		entry := r.off
		switch r.uleb() {
		case code:
			r.off = entry
			return r.next()
		case 0:
			return d, false, nil
		}
		r.uleb() // tag
		r.skip(1)
		for {
			name, encoding := r.uleb(), r.uleb()
			if encoding == uint64(dw.FormImplicitConst) {
				r.sleb()
			}
			if name == 0 && encoding == 0 || r.failed {
				break
			}
		}
	}
}

// needAbbrevs reads a table in as much of the section as contains it.
func (f *file) needAbbrevs(off, end uint64, format format) (t *abbrevTable, err error) {
	err = needList(f.rest.abbrev, off, end, func(end uint64) (isCut bool, err error) {
		t, err = f.readAbbrevs(off, end, format)
		return errors.Is(err, errCut), err
	})
	if errors.Is(err, errCut) {
		return nil, wrongTable(off, err.Error())
	}
	return t, err
}

// leastWindow is the size of the first read from a section where the length of a part is
// unknown.
const leastWindow = 16 << 10

// errCut is the error of a table that ends beyond the bytes read.
var errCut = errors.New("it does not end in the section")

func wrongTable(off uint64, problem string) error {
	return &FormatError{".debug_abbrev", off, fmt.Sprintf("table at %#x", off), problem}
}

func (f *file) readAbbrevs(off, end uint64, format format) (*abbrevTable, error) {
	if !f.abbrevCache.spend(1) { // the budget is spent: nothing need be read to refuse it
		return nil, wrongTable(off, "the tables of different units overlap")
	}
	tmp := abbrevPool.Get().(*abbrevScratch)
	defer abbrevPool.Put(tmp)
	r := abbrevReader{cursor: newCursor(f.abbrev, f.isBigEndian, off, end), format: format, specs: tmp.specs[:0], skips: tmp.skips[:0]}
	list := tmp.list[:0]
	charged := off
	for {
		d, ok, err := r.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		list = append(list, d)
		if r.off-charged > abbrevCharge {
			if !f.abbrevCache.spend(r.off - charged) {
				return nil, wrongTable(off, "the tables of different units overlap")
			}
			charged = r.off
		}
	}
	tmp.specs, tmp.skips, tmp.list = r.specs, r.skips, list
	if r.failed {
		return nil, errCut
	}
	if !f.abbrevCache.spend(r.off - charged) {
		return nil, wrongTable(off, "the tables of different units overlap")
	}
	t := &abbrevTable{dense: make([]abbrev, 1, len(list)+1)}
	specs, skips := slices.Clone(r.specs), slices.Clone(r.skips)
	for _, d := range list {
		d.specs, specs = specs[:d.specCount:d.specCount], specs[d.specCount:]
		d.skips, skips = skips[:d.skipCount:d.skipCount], skips[d.skipCount:]
		t.add(d.code, d.abbrev)
	}
	f.addKept(sizeOf[abbrev](len(list)) + sizeOf[spec](len(r.specs)) + sizeOf[skip](len(r.skips)))
	return t, nil
}

// abbrevReader reads the declarations of a table. It collects the attributes, and the skips
// over them, of one declaration after the other.
type abbrevReader struct {
	cursor
	format format
	specs  []spec
	skips  []skip
}

// next reads a declaration; ok is false at the end of the table, and where the
// section ends before it.
func (r *abbrevReader) next() (d declaration, ok bool, err error) {
	entry := r.off
	code := r.uleb()
	if code == 0 {
		return d, false, nil
	}
	tag := r.uleb()
	a := abbrev{tag: dw.Tag(tag), isDeclared: true, sibling: -1}
	a.hasChildren = r.uint(1) != 0
	firstSpec, firstSkip := len(r.specs), len(r.skips)
	fixed := 0 // bytes of the values of fixed size that no skip covers yet
	for {
		name, encoding := r.uleb(), r.uleb()
		s := spec{attr: dw.Attr(name), form: dw.Form(encoding)}
		if s.form == dw.FormImplicitConst && encoding == uint64(dw.FormImplicitConst) {
			s.implicit = r.sleb()
		}
		if name == 0 && encoding == 0 || r.failed {
			break
		}
		if len(r.specs)-firstSpec == maxAttributes {
			return d, false, bad(".debug_abbrev", entry, "more than %d attributes", maxAttributes)
		}
		if name > 0xffff || encoding > 0xffff || tag > 0xffff {
			return d, false, bad(".debug_abbrev", entry, "tag %#x, attribute %#x, form %#x, expected less than 0x10000", tag, name, encoding)
		}
		if s.kind, s.size, ok = r.format.skipOf(s.form); !ok {
			return d, false, bad(".debug_abbrev", entry, "form %#x of attribute %#x is not known", encoding, name)
		}
		if s.attr >= leastSecondNumber {
			s.attr = cmp.Or(secondNumbers[s.attr], s.attr)
		}
		a.record(&s, len(r.skips) == firstSkip, fixed)
		r.specs = append(r.specs, s)
		if s.kind == skipFixed {
			fixed += int(s.size)
			continue
		}
		r.skipFixed(fixed)
		fixed = 0
		r.skips = append(r.skips, skip{s.kind, 0})
	}
	r.skipFixed(fixed)
	return declaration{code, a, len(r.specs) - firstSpec, len(r.skips) - firstSkip}, !r.failed, nil
}

// skipFixed adds a skip over values of fixed size, if there are any.
func (r *abbrevReader) skipFixed(size int) {
	if size > 0 {
		r.skips = append(r.skips, skip{skipFixed, uint16(size)})
	}
}

// record stores an attribute that is the same in all entries with the abbreviation. If
// isFixed is set, all attributes before it have fixed sizes, and its value is distance
// bytes behind the first one's.
func (a *abbrev) record(s *spec, isFixed bool, distance int) {
	switch s.attr {
	case dw.AttrSibling:
		if s.form == dw.FormRef4 && isFixed {
			a.sibling = int16(distance)
		}
	case dw.AttrLowPC, dw.AttrRanges:
		a.hasCode = true
	case dw.AttrDeclaration:
		a.isDeclaration = true
	}
}

// abbrevCharge is how many bytes of a table are read before they are charged.
const abbrevCharge = 1 << 12

// declaration is an abbreviation of a table that is being read.
type declaration struct {
	code uint64
	abbrev
	specCount, skipCount int
}

// abbrevScratch is the temporary memory for reading a table.
type abbrevScratch struct {
	specs []spec
	skips []skip
	list  []declaration
	root  declaration
}

var abbrevPool = sync.Pool{New: func() any { return &abbrevScratch{} }}

// add declares a code; of several declarations the first counts.
func (t *abbrevTable) add(code uint64, a abbrev) {
	if t.find(code) != nil {
		return
	}
	if code == uint64(len(t.dense)) {
		t.dense = append(t.dense, a)
		return
	}
	if code < uint64(len(t.dense)) {
		t.dense[code] = a
		return
	}
	if t.sparse == nil {
		t.sparse = make(map[uint64]*abbrev)
	}
	t.sparse[code] = &a
}
