// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// Expression is an expression of an attribute of a debugging information entry, or of its
// location list.
type Expression struct {
	File      string // the split file that the entry is in; "": the object itself
	Section   string // ".debug_info", ".debug_types", with ".dwo" of a split unit
	Entry     uint64 // offset of the entry in the section
	Attribute string // "DW_AT_location"
	Bytes     []byte // part of the section
	// Range is the range in which an expression of a location list is valid; nil: it is of
	// none.
	Range *Range
}

// Range is the range of an entry of a location list.
type Range struct {
	Start, End uint64
	// StartIndex and EndIndex are the bases of Start and End: indexes of addresses of
	// .debug_addr that the file does not have itself. nil: 0.
	StartIndex, EndIndex *uint64
	// Code is the section of the addresses in a relocatable object where several have code;
	// "" elsewhere.
	Code      string
	IsDefault bool // valid where no other range of the list is (DW_LLE_default_location)
	IsDropped bool // the linker dropped the code
}

// Expressions are the expressions in entries of an object and in their location lists, in
// the order of its sections. Split units come in the place of their skeletons, as far as
// options tell where they are, and split units that the object itself has (.dwo, .dwp) come
// too. An error is about one unit or list, and the iteration continues after it. An object
// without debug information yields ErrNoDebugInfo. Iterate inside object.Guard.
func Expressions(o *object.Object, options Options) iter.Seq2[Expression, error] {
	return func(yield func(Expression, error) bool) {
		x := &expressions{yield: yield, split: map[uint64]bool{}}
		x.object(o, options)
		if !x.hasUnits && !x.isStopped {
			yield(Expression{}, fmt.Errorf("%s: %w", o.Name(), ErrNoDebugInfo))
		}
	}
}

// Expressions are the expressions of the reader's object alone, and of its split units; see
// the function.
func (r *Reader) Expressions() iter.Seq2[Expression, error] {
	return func(yield func(Expression, error) bool) {
		(&expressions{yield: yield, split: map[uint64]bool{}}).units(r.main)
	}
}

// expressions visits the units of an object.
type expressions struct {
	yield     func(Expression, error) bool
	isStopped bool
	hasUnits  bool            // there are units
	split     map[uint64]bool // split units that were shown, by ID
	budget    map[*file]*int64
}

// listRatio bounds the entries of location lists by the bytes of their section: usually
// each list belongs to one attribute, and an entry has 3 bytes or more.
const (
	listRatio = 2
	listFloor = 1 << 16
)

func (x *expressions) object(o *object.Object, options Options) {
	whole, err := openFile(o, "")
	if err != nil {
		x.problem(err)
	} else {
		r := &Reader{main: whole, options: options}
		whole.reader = r
		defer r.Close()
		x.file(whole)
		for _, p := range r.Problems() {
			x.problem(errors.New(p))
		}
	}
	if o.Section(".debug_info.dwo") == nil && o.Section(".debug_types.dwo") == nil {
		return
	}
	parts, err := openFile(o, ".dwo")
	if err != nil {
		x.problem(err)
		return
	}
	r := &Reader{main: parts, options: options}
	parts.reader = r
	defer r.Close()
	if o.Section(".debug_cu_index") != nil {
		x.packaged(parts)
		return
	}
	x.file(parts)
}

// problem yields an error.
func (x *expressions) problem(err error) {
	x.hasUnits = true
	if !x.isStopped {
		x.isStopped = !x.yield(Expression{}, err)
	}
}

// file reads the headers of a file's units and visits them.
func (x *expressions) file(f *file) {
	if _, err := f.allUnits(); err != nil {
		x.problem(fmt.Errorf("%s: %w", f.name, err))
	}
	x.units(f)
}

// units visits the units of a file, types first where they have a section of their own
// (DWARF 4).
func (x *expressions) units(f *file) {
	types, err := f.typeSection()
	if err != nil {
		x.problem(fmt.Errorf("%s: %w", f.name, err))
	}
	for _, units := range [][]*unit{types.units, f.everyUnit()} {
		for _, u := range units {
			if x.isStopped {
				return
			}
			x.unit(u)
		}
	}
}

// packaged visits the units of a package (DWARF 5, 7.3.5), by their place.
func (x *expressions) packaged(f *file) {
	var units []*unit
	for i, section := range []string{".debug_cu_index", ".debug_tu_index"} {
		data, err := sectionData(f.object, section)
		if err == nil {
			f.indexes[i], err = readPackageIndex(section, data, f.isBigEndian)
		}
		if err != nil {
			x.problem(fmt.Errorf("%s: %w", f.name, err))
			continue
		}
		for _, id := range f.indexes[i].all() {
			u, err := f.packaged(i, id, nil)
			if err != nil {
				x.problem(fmt.Errorf("%s: %w", f.name, err))
			} else if u != nil {
				units = append(units, u)
			}
		}
	}
	slices.SortStableFunc(units, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.section(), b.section()), cmp.Compare(a.offset, b.offset))
	})
	for _, u := range units {
		if x.isStopped {
			return
		}
		x.unit(u)
	}
}

// all are the IDs of the units of an index, which may be nil.
func (x *packageIndex) all() (ids []uint64) {
	if x == nil {
		return nil
	}
	for slot := range x.slots {
		offset, row := x.ids+8*slot, x.rows+4*slot
		if uintAt(x.data[row:row+4], x.isBigEndian) != 0 {
			ids = append(ids, uintAt(x.data[offset:offset+8], x.isBigEndian))
		}
	}
	return ids
}

// unit visits a unit, and the split unit of a skeleton.
func (x *expressions) unit(u *unit) {
	x.hasUnits = true
	b, err := u.open()
	if err == nil && b.file.suffix != "" && b.hasDwoID && x.split[b.dwoID] {
		return
	}
	if err == nil {
		err = x.entries(b)
	}
	if err != nil {
		x.problem(fmt.Errorf("%s: %w", u.file.name, err))
		return
	}
	for _, err := range b.problems() {
		x.problem(fmt.Errorf("%s: %w", u.file.name, err))
	}
	if x.isStopped || !b.isSplit() {
		return
	}
	split, err := b.file.reader.splitOf(b)
	if err == nil && split != b {
		x.split[split.dwoID] = true
		err = x.entries(split)
	}
	if err != nil {
		x.problem(fmt.Errorf("%s: %w", u.file.name, err))
	}
}

// entries visits the entries of a unit.
func (x *expressions) entries(b *body) error {
	if b.first >= b.end {
		return nil
	}
	e := Expression{Section: b.section()}
	if b.file.name != b.main().name {
		e.File = b.file.name
	}
	w := b.walk(b.first)
	for w.off < b.end {
		a, entry, err := w.next()
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		e.Entry = entry
		c := w.cursor(w.off)
		for i := range a.specs {
			v := b.format.value(&c, &a.specs[i])
			if c.failed {
				return b.wrong(entry, "the values of the entry do not end in the unit")
			}
			if x.value(b, e, a.specs[i].attr, &v); x.isStopped {
				return nil
			}
		}
		w.off = c.off
	}
	return nil
}

// value yields the expressions of an attribute's value.
func (x *expressions) value(b *body, e Expression, attr dw.Attr, v *value) {
	switch {
	case b.isExpression(attr, v):
		e.Attribute, e.Bytes = attr.String(), v.b
		x.isStopped = !x.yield(e, nil)
	case b.isLocationList(attr, v):
		e.Attribute = attr.String()
		x.list(b, e, v)
	}
}

// isExpression reports whether a value of an attribute is of class exprloc, as the blocks
// of some attributes are before DWARF 4 (DWARF 3, 7.5.4).
func (b *body) isExpression(attr dw.Attr, v *value) bool {
	return v.form == dw.FormExprloc || v.isBlock() && b.format.version < 4 && attr != dw.AttrConstValue && attr != dw.AttrDiscrList // a list is no expression (DWARF 5, 5.7.10)
}

// isLocationList reports whether a value of an attribute is of class loclist: the form
// alone decides only for DW_FORM_loclistx (DWARF 5, 7.5.5, table 7.5).
func (b *body) isLocationList(attr dw.Attr, v *value) bool {
	switch {
	case v.form == dw.FormLoclistx:
		return true
	case v.form == dw.FormSecOffset:
	case b.format.version < 4 && (v.form == dw.FormData4 || v.form == dw.FormData8):
		if attr == dw.AttrDataMemberLocation && b.format.version == 3 {
			return false // a constant (DWARF 4, 7.5.5 on what producers of DWARF 3 wrote)
		}
	default:
		return false
	}
	switch attr {
	case dw.AttrLocation, dw.AttrStringLength, dw.AttrReturnAddr, dw.AttrDataMemberLocation, dw.AttrFrameBase, dw.AttrSegment, dw.AttrStaticLink,
		dw.AttrUseLocation, dw.AttrVtableElemLocation, dw.AttrLLVMActiveLane, dw.AttrLLVMLanes, dw.AttrLLVMLanePC:
		return true
	}
	return false
}

// list yields the entries of a location list that have an expression.
func (x *expressions) list(b *body, e Expression, v *value) {
	lists, off, err := b.locationList(v)
	if err != nil {
		x.problem(fmt.Errorf("%s: entry at %#x: %s: %w", b.file.name, e.Entry, e.Attribute, err))
		return
	}
	lists.Budget = x.budgetOf(b.file, len(lists.Data))
	addrx, indexes := b.addrx, &addressIndexes{}
	if b.file.suffix != "" && b.skeleton == nil {
		addrx = indexes.request
	}
	for entry, err := range lists.Entries(off, b.base, addrx) {
		if err != nil {
			x.problem(fmt.Errorf("%s: entry at %#x: %s: %w", b.file.name, e.Entry, e.Attribute, err))
			return
		}
		r := &Range{Start: entry.Start, End: entry.End, IsDefault: entry.IsDefault(), IsDropped: entry.IsDead}
		indexes.put(r, entry.Kind)
		b.main().layout.subtractBase(r)
		e.Bytes, e.Range = entry.Expr, r
		if x.isStopped = !x.yield(e, nil); x.isStopped {
			return
		}
	}
}

// subtractBase subtracts the address of its section from a range.
func (l *layout) subtractBase(r *Range) {
	if l == nil || len(l.sections) < 2 || r.IsDefault || r.IsDropped {
		return
	}
	for _, p := range l.sections {
		if p.start <= r.Start && r.Start <= p.end {
			r.Start, r.End, r.Code = r.Start-p.start, r.End-p.start, l.object.Sections()[p.index].Name
			return
		}
	}
}

// budgetOf is the number of entries of a file's lists that may still be read.
func (x *expressions) budgetOf(f *file, size int) *int64 {
	if x.budget == nil {
		x.budget = map[*file]*int64{}
	}
	n := x.budget[f]
	if n == nil {
		limit := int64(listRatio*size) + listFloor
		n = &limit
		x.budget[f] = n
	}
	return n
}

// addressIndexes are the requested indexes of addresses that are unavailable, the bases of
// a list's ranges.
type addressIndexes struct {
	requested []uint64 // since the last range
	base      *uint64
}

func (a *addressIndexes) request(index uint64) (uint64, error) {
	a.requested = append(a.requested, index)
	return 0, nil
}

// put sets the bases of a range. A list requests the end of a range before its start, and
// base addresses come before their ranges.
func (a *addressIndexes) put(r *Range, kind locexpr.ListEntryKind) {
	own := 0
	switch kind {
	case locexpr.ListStartxEndx:
		own = 2
	case locexpr.ListStartxLength:
		own = 1
	}
	if own > len(a.requested) {
		return
	}
	last := len(a.requested) - own
	if last > 0 {
		base := a.requested[last-1]
		a.base = &base
	}
	requested := slices.Clone(a.requested[last:])
	a.requested = a.requested[:0]
	switch kind {
	case locexpr.ListStartxEndx:
		r.StartIndex, r.EndIndex = &requested[1], &requested[0]
	case locexpr.ListStartxLength:
		r.StartIndex, r.EndIndex = &requested[0], &requested[0]
	case locexpr.ListOffsetPair:
		r.StartIndex, r.EndIndex = a.base, a.base
	}
}

// isBlock reports whether a value is of class block or exprloc.
func (v *value) isBlock() bool {
	switch v.form {
	case dw.FormExprloc, dw.FormBlock, dw.FormBlock1, dw.FormBlock2, dw.FormBlock4:
		return true
	}
	return false
}
