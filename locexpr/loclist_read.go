// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"cmp"
	"errors"
	"fmt"
)

// listReader reads the entries of one list.
type listReader struct {
	*LocationLists
	addrx  func(uint64) (uint64, error)
	base   uint64
	isDead bool    // the linker dropped the code of base
	dec    Decoder // on the section, at the next entry
	entry  int     // where the current entry starts
	max    uint64  // the highest address
}

func (r *listReader) start(offset uint64) error {
	size := cmp.Or(r.AddressSize, 8)
	if size < 1 || size > 8 {
		return &ListError{IllFormed, r.Section, offset, fmt.Errorf("address size %d, 1 to 8 expected", size)}
	}
	if offset >= uint64(len(r.Data)) {
		return &ListError{IllFormed, r.Section, offset, fmt.Errorf("a location list is expected, the section has %d bytes", len(r.Data))}
	}
	r.dec = Decoder{Expr: r.Data, AddressSize: size, Order: r.Order, pos: int(offset)}
	r.max = lowMask(uint32(size) * 8)
	r.setBase(r.base)
	return nil
}

func (r *listReader) fail(kind ErrorKind, err error) error {
	return &ListError{kind, r.Section, uint64(r.entry), err}
}

func (r *listReader) failf(format string, args ...any) error {
	return r.fail(IllFormed, fmt.Errorf(format, args...))
}

// setBase sets the base address. Linkers set addresses of code that they dropped to the
// highest value. In .debug_loc, where that has another meaning, some use the value below.
func (r *listReader) setBase(base uint64) {
	r.base = base & r.max
	r.isDead = r.base == r.max || r.Format == DebugLoc && r.base == r.max-1
}

// next reads an entry into e, which is zero.
func (r *listReader) next(e *ListEntry) error {
	r.entry = r.dec.pos
	e.Offset = uint64(r.entry)
	if r.Format == DebugLoc {
		return r.nextPair(e)
	}
	return r.nextKind(e)
}

// nextPair reads an entry of .debug_loc: two addresses, and an expression after
// a length of 2 bytes. Two zeros end the list, and a start that is the highest
// address makes the second one the base (DWARF 4, 2.6.2).
func (r *listReader) nextPair(e *ListEntry) error {
	var pair [2]uint64
	if err := r.operands([2]OperandKind{Address, Address}, &pair); err != nil {
		return r.failf("addresses of an entry: %w", err)
	}
	switch {
	case pair[0] == 0 && pair[1] == 0:
		e.Kind = ListEnd
		return nil
	case pair[0] == r.max:
		e.Kind = ListBaseAddress
		r.setBase(pair[1])
		return nil
	}
	e.Kind = ListOffsetPair
	if err := r.expression(e, Unsigned2); err != nil {
		return err
	}
	return r.resolve(e, pair)
}

// nextKind reads an entry that starts with its kind.
func (r *listReader) nextKind(e *ListEntry) error {
	if !r.dec.More() {
		return r.failf("an entry is expected, the section ends without DW_LLE_end_of_list")
	}
	kind := ListEntryKind(r.Data[r.dec.pos])
	known := int(kind) < len(listOperands)
	if r.Format == DebugLocDWO {
		known = kind <= ListStartxLength || kind == ListViewPair
	}
	if !known {
		return r.failf("an entry of kind 0x%02x, DW_LLE_* expected", uint8(kind))
	}
	r.dec.pos++
	e.Kind = kind
	layout := listOperands[kind]
	exprLength := ULEB
	if r.Format == DebugLocDWO {
		exprLength = Unsigned2
		if kind == ListStartxLength {
			layout.operands[1] = Unsigned4
		}
	}
	var operands [2]uint64
	if err := r.operands(layout.operands, &operands); err != nil {
		return r.failf("%v: %w", kind, err)
	}
	if layout.hasExpr {
		if err := r.expression(e, exprLength); err != nil {
			return err
		}
	}
	return r.resolve(e, operands)
}

// operands reads numbers.
func (r *listReader) operands(kinds [2]OperandKind, values *[2]uint64) error {
	for i, kind := range kinds {
		if kind == NoOperand {
			break
		}
		value, next, err := r.dec.operand(nil, kind, r.dec.pos)
		if err != nil {
			return fmt.Errorf("operand %d: %w", i+1, err)
		}
		values[i] = value
		r.dec.pos = next
	}
	return nil
}

// expression reads an expression and its length.
func (r *listReader) expression(e *ListEntry, length OperandKind) error {
	var n [2]uint64
	if err := r.operands([2]OperandKind{length}, &n); err != nil {
		return r.failf("%v: length of the expression: %w", e.Kind, err)
	}
	left := len(r.Data) - r.dec.pos
	if n[0] > uint64(left) {
		return r.failf("%v: expression of %d bytes, %d are left", e.Kind, n[0], left)
	}
	end := r.dec.pos + int(n[0])
	e.Expr = r.Data[r.dec.pos:end:end]
	r.dec.pos = end
	return nil
}

// resolve finds the range of an entry from its operands, or the base address
// that it sets (DWARF 5, 2.6.2).
func (r *listReader) resolve(e *ListEntry, operands [2]uint64) error {
	a, b := operands[0], operands[1]
	var err error
	switch e.Kind {
	case ListBaseAddress:
		r.setBase(a)
		return nil
	case ListBaseAddressx:
		if a, err = r.address(a); err != nil {
			return err
		}
		r.setBase(a)
		return nil
	case ListStartxEndx:
		if b, err = r.address(b); err != nil {
			return err
		}
		fallthrough
	case ListStartxLength:
		if a, err = r.address(a); err != nil {
			return err
		}
	case ListStartEnd, ListStartLength, ListOffsetPair:
	default:
		return nil // no range
	}

	switch e.Kind {
	case ListOffsetPair:
		// Offsets may be negative ones, in two's complement.
		e.Start, e.End, e.IsDead = (r.base+a)&r.max, (r.base+b)&r.max, r.isDead
	case ListStartLength, ListStartxLength:
		e.Start, e.End, e.IsDead = a, a+b, a == r.max
		if !e.IsDead && b > r.max-a {
			return r.failf("%v: range of 0x%x bytes from 0x%x, the last address is 0x%x", e.Kind, b, a, r.max)
		}
	default:
		e.Start, e.End, e.IsDead = a, b, a == r.max
	}
	if e.End < e.Start && !e.IsDead {
		return r.failf("%v: range ends at 0x%x, %w 0x%x", e.Kind, e.End, errInverted, e.Start)
	}
	return nil
}

// errInverted is the error of a range whose end is below its start.
var errInverted = errors.New("before its start")

// address returns an address of the unit's part of .debug_addr.
func (r *listReader) address(index uint64) (uint64, error) {
	if r.addrx == nil {
		return 0, r.fail(Evaluation, fmt.Errorf("address index %d: compilation unit: %w", index, ErrNoContext))
	}
	address, err := r.addrx(index)
	if err != nil {
		return 0, r.fail(kindOf(err), fmt.Errorf("address index %d: %w", index, err))
	}
	return address & r.max, nil
}

// ListHeader is the header of a unit's contribution to .debug_loclists (DWARF 5, 7.29).
type ListHeader struct {
	Offset      uint64 // of the header in the section
	Version     uint16
	AddressSize int
	OffsetSize  int    // 4 or 8, by the DWARF format
	OffsetCount uint32 // of the table of offsets
	Base        uint64 // offset of that table, which DW_AT_loclists_base has
	End         uint64 // offset after the contribution
}

// Header reads the header of the contribution at an offset of .debug_loclists.
// In split DWARF the lists of DW_FORM_loclistx are indexed from Base of the
// first one, since there is no DW_AT_loclists_base. The error is a *ListError.
func (s *LocationLists) Header(offset uint64) (ListHeader, error) {
	h := ListHeader{Offset: offset, OffsetSize: 4}
	fail := func(format string, args ...any) (ListHeader, error) {
		return ListHeader{}, &ListError{IllFormed, s.Section, offset, fmt.Errorf("header: "+format, args...)}
	}
	if offset > uint64(len(s.Data)) {
		return fail("the section has %d bytes", len(s.Data))
	}
	dec := Decoder{Expr: s.Data, Order: s.Order, pos: int(offset)}
	var err error
	read := func(kind OperandKind) (value uint64) {
		if err == nil {
			value, dec.pos, err = dec.operand(nil, kind, dec.pos)
		}
		return value
	}
	length := read(Unsigned4)
	switch {
	case length == 0xffffffff: // the 64-bit format (DWARF 5, 7.4)
		h.OffsetSize = 8
		length = read(Unsigned8)
	case length >= 0xfffffff0:
		return fail("length 0x%x is reserved", length)
	}
	if err != nil {
		return fail("%w", err)
	}
	if left := len(s.Data) - dec.pos; length > uint64(left) {
		return fail("length of %d bytes, %d are left", length, left)
	}
	h.End = uint64(dec.pos) + length
	dec.Expr = s.Data[:h.End]
	h.Version = uint16(read(Unsigned2))
	h.AddressSize = int(read(Unsigned1))
	segment := read(Unsigned1)
	h.OffsetCount = uint32(read(Unsigned4))
	h.Base = uint64(dec.pos)
	switch {
	case err != nil:
		return fail("%w", err)
	case h.Version != 5:
		return fail("version %d, 5 expected", h.Version)
	case segment != 0:
		return fail("segment selectors of %d bytes, 0 expected", segment)
	case h.AddressSize < 1 || h.AddressSize > 8:
		return fail("address size %d, 1 to 8 expected", h.AddressSize)
	case uint64(h.OffsetCount)*uint64(h.OffsetSize) > h.End-h.Base:
		return fail("%d offsets of %d bytes, %d bytes are left", h.OffsetCount, h.OffsetSize, h.End-h.Base)
	}
	return h, nil
}

// Indexed returns the offset in .debug_loclists of the list of a
// DW_FORM_loclistx. base is DW_AT_loclists_base, where the table of offsets
// starts, just after a header, whose last member is the number of offsets
// (DWARF 5, 7.29). The error is a *ListError.
func (s *LocationLists) Indexed(base, index uint64) (uint64, error) {
	fail := func(format string, args ...any) (uint64, error) {
		return 0, &ListError{IllFormed, s.Section, base, fmt.Errorf("list %d of DW_FORM_loclistx: "+format, append([]any{index}, args...)...)}
	}
	size := cmp.Or(s.OffsetSize, 4)
	switch length := uint64(len(s.Data)); {
	case size != 4 && size != 8:
		return fail("offset size %d, 4 or 8 expected", size)
	case base > length:
		return fail("the section has %d bytes", length)
	case base < 12:
		return fail("a table of offsets after a header is expected")
	}
	count := loadUint(s.Data[base-4:base], s.Order)
	if index >= count {
		return fail("the table has %d offsets", count)
	}
	table := s.Data[base:]
	if index >= uint64(len(table)/size) {
		return fail("the section ends after %d bytes of the table", len(table))
	}
	place := int(index) * size
	offset := loadUint(table[place:place+size], s.Order)
	if offset >= uint64(len(table)) {
		return fail("offset 0x%x, %d bytes are left", offset, len(table))
	}
	return base + offset, nil
}
