// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"errors"
	"fmt"
	"iter"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// Entry is a debugging information entry (DWARF 5, 2.1). The zero Entry is none. Entries,
// units and locations are read from the file when needed: their methods run inside
// object.Guard, and until the Reader and the object are closed.
type Entry struct {
	b      *body
	off    uint64
	abbrev *abbrev
}

// Unit is a unit (DWARF 5, 3.1). A split unit is combined with its skeleton.
type Unit struct{ b *body }

// IsZero reports whether the entry is none.
func (e Entry) IsZero() bool { return e.b == nil }

// Tag is the entry's tag; 0 for the zero Entry.
func (e Entry) Tag() dw.Tag {
	if e.abbrev == nil {
		return 0
	}
	return e.abbrev.tag
}

// Offset is the entry's offset in .debug_info of its file.
func (e Entry) Offset() uint64 { return e.off }

// Unit is the unit that the entry is in.
func (e Entry) Unit() Unit { return Unit{e.b} }

// entryAt returns the entry at an offset of the unit's section.
func (b *body) entryAt(off uint64) (Entry, error) {
	a, err := b.abbrevAt(off)
	return Entry{b, off, a}, err
}

// own reads an attribute of the entry itself.
func (e Entry) own(attr dw.Attr) (value, bool, error) {
	c := e.b.cursor(e.off)
	c.uleb()
	for i := range e.abbrev.specs {
		s := &e.abbrev.specs[i]
		v := e.b.format.value(&c, s)
		if c.failed {
			return value{}, false, e.b.wrong(e.off, "the values of the entry do not end in the unit")
		}
		if s.attr == attr {
			return v, true, nil
		}
	}
	return value{}, false, nil
}

// isOfInstance reports whether an instance or completion has an attribute for itself, and
// does not inherit it (DWARF 5, 2.13.2 and 3.3.8).
func isOfInstance(attr dw.Attr) bool {
	switch attr {
	case dw.AttrSibling, dw.AttrLowPC, dw.AttrHighPC, dw.AttrRanges, dw.AttrEntryPC, dw.AttrDeclaration, dw.AttrInline, dw.AttrAbstractOrigin, dw.AttrSpecification,
		dw.AttrCallFile, dw.AttrCallLine, dw.AttrCallColumn, dw.AttrLocation, dw.AttrFrameBase:
		return true
	}
	return false
}

// find reads an attribute of the entry, or of the entry that it is an instance or a
// completion of, and returns the entry that has it.
func (e Entry) find(attr dw.Attr) (value, Entry, bool, error) {
	for range maxOrigins {
		v, ok, err := e.own(attr)
		if ok || err != nil || isOfInstance(attr) {
			return v, e, ok, err
		}
		next, err := e.Origin()
		if err != nil || next.IsZero() {
			return value{}, e, false, err
		}
		e = next
	}
	return value{}, e, false, nil
}

// Origin is the entry that this one is an instance (DW_AT_abstract_origin) or a completion
// (DW_AT_specification) of, or that describes its type in a type unit (DW_AT_signature);
// the zero Entry where it is none.
func (e Entry) Origin() (Entry, error) {
	for _, attr := range []dw.Attr{dw.AttrAbstractOrigin, dw.AttrSpecification, dw.AttrSignature} {
		v, ok, err := e.own(attr)
		if err != nil {
			return Entry{}, err
		}
		if ok {
			return e.b.follow(&v)
		}
	}
	return Entry{}, nil
}

// follow returns the entry that a reference names.
func (b *body) follow(v *value) (Entry, error) {
	u, off, err := b.reference(v)
	if err != nil {
		return Entry{}, err
	}
	return entryKey{u, off}.entry()
}

// Has reports whether the entry, or the entry that it is an instance or a completion of,
// has an attribute.
func (e Entry) Has(attr dw.Attr) bool {
	_, _, ok, err := e.find(attr)
	return ok && err == nil
}

// Number is an attribute of class constant or flag. It may come, like the other attributes,
// from the entry that this one is an instance or a completion of.
func (e Entry) Number(attr dw.Attr) (n int64, ok bool, err error) {
	v, _, ok, err := e.find(attr)
	if !ok || err != nil {
		return 0, false, err
	}
	if v.form == dw.FormFlag || v.form == dw.FormFlagPresent {
		return int64(v.n), true, nil
	}
	c, ok := v.constant()
	return int64(c), ok, nil
}

// Text is an attribute of class string.
func (e Entry) Text(attr dw.Attr) (text string, ok bool, err error) {
	v, owner, ok, err := e.find(attr)
	if !ok || err != nil {
		return "", false, err
	}
	b, err := owner.b.text(&v)
	return copied(b), err == nil, err
}

// Name is DW_AT_name; "" where it is missing or cannot be read.
func (e Entry) Name() string {
	name, _, _ := e.Text(dw.AttrName)
	return name
}

// Address is an attribute of class address: a virtual address of the object.
func (e Entry) Address(attr dw.Attr) (address uint64, ok bool, err error) {
	v, owner, ok, err := e.find(attr)
	if !ok || err != nil || !v.isAddress() {
		return 0, false, err
	}
	address, err = owner.b.address(&v)
	if errors.Is(err, errLeftOut) {
		return 0, false, nil
	}
	return address, err == nil, err
}

// Reference is the entry that an attribute refers to; the zero Entry where there is no such
// attribute.
func (e Entry) Reference(attr dw.Attr) (Entry, error) {
	v, owner, ok, err := e.find(attr)
	if !ok || err != nil {
		return Entry{}, err
	}
	return owner.b.follow(&v)
}

// Type is the entry that DW_AT_type refers to; the zero Entry is the type void.
func (e Entry) Type() (Entry, error) { return e.Reference(dw.AttrType) }

// Block is an attribute of class block, such as a DW_AT_const_value.
func (e Entry) Block(attr dw.Attr) (block []byte, ok bool, err error) {
	v, _, ok, err := e.find(attr)
	if !ok || err != nil {
		return nil, false, err
	}
	return v.b, v.isBlock() || v.form == dw.FormData16, nil
}

// Children are the entries directly inside this one; the zero Entry has none.
func (e Entry) Children() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if e.IsZero() || !e.abbrev.hasChildren {
			return
		}
		w := e.b.walk(e.off)
		_, entry, err := w.next()
		if err == nil {
			err = w.pass(e.abbrev, entry)
		}
		for err == nil && w.off < e.b.end {
			var a *abbrev
			if a, entry, err = w.next(); err != nil || a == nil {
				break
			}
			if !yield(Entry{e.b, entry, a}, nil) {
				return
			}
			if err = w.passEntry(a, entry); err != nil {
				break
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// passEntry skips an entry and its children.
func (w *walk) passEntry(a *abbrev, entry uint64) error {
	if a.hasChildren {
		if next := w.sibling(a); next != 0 {
			w.off = next
			return nil
		}
	}
	err := w.pass(a, entry)
	if err == nil && a.hasChildren {
		err = w.passChildren(entry)
	}
	return err
}

// Covers reports whether the entry's code includes an address.
func (e Entry) Covers(address uint64) (bool, error) {
	list, err := e.spans()
	for _, s := range list {
		if s.holds(address) {
			return true, nil
		}
	}
	return false, err
}

// spans are the address ranges of the entry's code.
func (e Entry) spans() ([]span, error) {
	if !e.abbrev.hasCode {
		return nil, nil
	}
	c := e.b.cursor(e.off)
	c.uleb()
	var x extent
	if e.b.readExtent(&c, e.abbrev, &x); c.failed {
		return nil, e.b.wrong(e.off, "the values of the entry do not end in the unit")
	}
	budget := int64(e.b.end-e.b.offset) + 1<<20
	return e.b.spans(nil, &x, &budget)
}

// Location is an attribute with a location or a value: an expression, or a location list
// (DWARF 5, 2.6).
type Location struct {
	Unit Unit
	Expr []byte // part of the section; valid where Lists is nil

	// Of a location list: the section, the offset in it, and the unit's base address, as in
	// locexpr.Evaluator.EvaluateList.
	Lists        *locexpr.LocationLists
	Offset, Base uint64
}

// Location is an attribute of class exprloc, block or loclist, such as
// DW_AT_location, DW_AT_frame_base, DW_AT_LLVM_lane_pc or
// DW_AT_LLVM_active_lane. DW_AT_LLVM_iterations and DW_AT_LLVM_lanes share a
// number, and are told apart by whether Location or Number has them.
func (e Entry) Location(attr dw.Attr) (l Location, ok bool, err error) {
	v, owner, ok, err := e.find(attr)
	if !ok || err != nil {
		return l, false, err
	}
	l.Unit = Unit{owner.b}
	if v.isBlock() {
		l.Expr = v.b
		ok, err = l.moveLocation()
		return l, ok, err
	}
	old := owner.b.format.version < 4 && (v.form == dw.FormData4 || v.form == dw.FormData8)
	if v.form != dw.FormSecOffset && v.form != dw.FormLoclistx && !old {
		return l, false, nil
	}
	l.Base = owner.b.base
	if l.Lists, l.Offset, err = owner.b.locationList(&v); err != nil {
		return l, false, err
	}
	ok, err = l.moveLocation()
	return l, ok, err
}

// Placed is the DW_AT_location of a variable, or of the abstract instance, which then is
// the same in all instances (DWARF 5, 3.3.8.2); nil where there is none.
func (e Entry) Placed() (*Location, error) {
	for n := 0; !e.IsZero() && n < maxOrigins; n++ {
		l, ok, err := e.Location(dw.AttrLocation)
		if err != nil {
			return nil, err
		}
		if ok {
			return &l, nil
		}
		if e, err = e.Origin(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// At returns the expressions that are valid at an address of the object.
func (l *Location) At(address uint64) ([][]byte, error) {
	if l.Lists == nil {
		return [][]byte{l.Expr}, nil
	}
	return l.Lists.At(l.Offset, address, l.Base, l.Unit.Addrx)
}

// locationList returns the section of a location list, and the offset of the list.
func (b *body) locationList(v *value) (*locexpr.LocationLists, uint64, error) {
	f := b.file
	order := locexpr.LittleEndian
	if f.isBigEndian {
		order = locexpr.BigEndian
	}
	lists := &locexpr.LocationLists{Section: ".debug_loc" + f.suffix, AddressSize: int(b.format.addrSize), OffsetSize: int(b.format.offsetSize), Order: order}
	off := v.n
	var err error
	if b.format.version < 5 {
		if lists.Format = locexpr.DebugLoc; f.suffix != "" {
			lists.Format = locexpr.DebugLocDWO
		}
		off, _ = b.part.place(sectLoc, off, 0)
		lists.Data, err = f.loc.get(func() ([]byte, error) { return f.read(".debug_loc") })
		return lists, off, err
	}
	lists.Section = ".debug_loclists" + f.suffix
	if lists.Data, err = f.loclists.get(func() ([]byte, error) { return f.read(".debug_loclists") }); err != nil {
		return nil, 0, err
	}
	if v.form != dw.FormLoclistx {
		off, _ = b.part.place(sectLoclists, off, 0)
		return lists, off, nil
	}
	size, n := uint64(b.format.offsetSize), uint64(len(lists.Data))
	if v.n > n || b.loclistsBase > n || b.loclistsBase+v.n*size+size > n {
		return nil, 0, bad(lists.Section, b.loclistsBase, "no list of index %d in a section of %#x bytes", v.n, n)
	}
	offset := b.loclistsBase + v.n*size
	return lists, b.loclistsBase + uintAt(lists.Data[offset:offset+size], f.isBigEndian), nil
}

// Offset is the offset of the unit's header in .debug_info of its file: offsets in
// expressions are relative to it.
func (u Unit) Offset() uint64 { return u.b.offset }

// Version is the unit's version of DWARF.
func (u Unit) Version() int { return int(u.b.format.version) }

// AddressSize is the size of an address, in bytes.
func (u Unit) AddressSize() int { return int(u.b.format.addrSize) }

// OffsetSize is the size of an offset, in bytes: 4 or 8.
func (u Unit) OffsetSize() int { return int(u.b.format.offsetSize) }

// Language is DW_AT_language (DWARF 5, table 7.17), for a partial unit without one the
// language of a unit that imports it; 0 where it is unknown.
func (u Unit) Language() uint64 { return u.b.languageOf() }

// HasScopedNames reports whether the unit's language qualifies names by the namespaces and
// classes around them.
func (u Unit) HasScopedNames() bool { return hasScopedNames(u.b.languageOf()) }

// Root is the unit's first entry.
func (u Unit) Root() (Entry, error) { return u.b.entryAt(u.b.first) }

// Augmentation is DW_AT_LLVM_augmentation (heterogeneous extension, A.3.1.1); "" where it
// is missing.
func (u Unit) Augmentation() string {
	root, err := u.Root()
	if err != nil {
		return ""
	}
	text, _, _ := root.Text(dw.AttrLLVMAugmentation)
	return text
}

// Entry returns the entry at an offset of the unit's section, which may be in another unit.
func (u Unit) Entry(off uint64) (Entry, error) {
	b := u.b
	if off < b.offset || off >= b.end {
		other := b.file.unitAt(off)
		if other == nil {
			return Entry{}, b.wrong(b.offset, "no unit has the offset %#x", off)
		}
		var err error
		if b, err = other.open(); err != nil {
			return Entry{}, err
		}
	}
	return b.entryAt(off)
}

// Addrx returns an address by its index in the unit's part of .debug_addr.
func (u Unit) Addrx(index uint64) (uint64, error) {
	address, err := u.b.addrx(index)
	if err != nil {
		return 0, err
	}
	return u.b.main().moved(address)
}

// maxBaseType bounds the size of a base type, in bytes.
const maxBaseType = 1 << 16

// BaseType returns the DW_TAG_base_type at an offset from the unit's header
// (DWARF 5, 5.1; heterogeneous extension, A.5.1).
func (u Unit) BaseType(off uint64) (*locexpr.BaseType, error) {
	b := u.b
	if off >= b.end-b.offset {
		return nil, b.wrong(b.offset, "base type at %#x, which is not in the unit", off)
	}
	e, err := b.entryAt(b.offset + off)
	if err != nil {
		return nil, err
	}
	return e.BaseType()
}

// BaseType reads the entry as a base type.
func (e Entry) BaseType() (*locexpr.BaseType, error) {
	if e.Tag() != dw.TagBaseType {
		return nil, e.b.wrong(e.off, "the entry has tag %#x, expected DW_TAG_base_type", uint16(e.Tag()))
	}
	t := &locexpr.BaseType{Name: e.Name()}
	bits := int64(0)
	for _, x := range []struct {
		attr dw.Attr
		set  func(int64) bool
	}{
		{dw.AttrEncoding, func(n int64) bool { t.Encoding = uint8(n); return n>>8 == 0 }},
		{dw.AttrByteSize, func(n int64) bool { bits = n * 8; return n >= 0 && n <= maxBaseType }},
		{dw.AttrBitSize, func(n int64) bool { bits = n; return n >= 0 && n <= maxBaseType*8 }},
		{dw.AttrEndianity, func(n int64) bool { t.Endianity = locexpr.Endianity(n); return n>>8 == 0 }},
		{dw.AttrLLVMVectorSize, func(n int64) bool { t.Elements = uint32(n); return n > 0 && n <= maxBaseType }},
	} {
		n, ok, err := e.Number(x.attr)
		if err != nil {
			return nil, err
		}
		if ok && !x.set(n) {
			return nil, e.b.wrong(e.off, "attribute %#x of a base type is %d", uint16(x.attr), n)
		}
	}
	t.Bits = uint32(bits)
	return t, nil
}

// String describes the entry for messages.
func (e Entry) String() string {
	if e.IsZero() {
		return "no entry"
	}
	return fmt.Sprintf("entry at %#x of %s", e.off, e.b.section())
}
