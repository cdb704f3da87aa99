// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"errors"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// FDE is a Frame Description Entry: the call frame table of the code in
// [Start, End) (DWARF 5, 6.4.1; LSB 5.0, 10.6.1.2).
type FDE struct {
	Offset     uint64 // of the entry in its section
	Start, End uint64 // virtual addresses
	Segment    uint64 // segment selector; 0 where there are none
	// Code is the code section of a relocatable object that Start and End are
	// addresses of, as Section.Code numbers them; 0 elsewhere.
	Code uint32
	CIE  *CIE
	LSDA Pointer // language-specific data area (augmentation L)

	null     bool // the initial location is a null pointer
	pos, end int  // the instructions
	listing  *int // rules that the rows of all FDEs of a listing may yet move; nil outside of one
}

// FDEAt returns the FDE at an offset of the section. ErrNotFDE when a CIE or a
// terminator is there.
func (t *Table) FDEAt(offset uint64) (*FDE, error) {
	f := new(FDE)
	if err := t.readFDE(offset, f); err != nil {
		return nil, err
	}
	return f, nil
}

func (t *Table) readFDE(offset uint64, f *FDE) error {
	e, err := t.entryAt(offset)
	if err != nil {
		return err
	}
	if e.cie || e.terminator {
		return t.errorf(offset, ErrNotFDE, "expected an FDE here")
	}
	return t.parseFDE(e, f)
}

// parseFDE fills f from its entry.
func (t *Table) parseFDE(e entry, f *FDE) error {
	if e.cieOffset >= uint64(len(t.section.Data)) {
		return t.errorf(e.offset, ErrCIEPointer, "offset %#x of %#x", e.cieOffset, len(t.section.Data))
	}
	c, err := t.cie(e.cieOffset)
	if err != nil {
		return err
	}
	*f = FDE{Offset: e.offset, CIE: c}
	r := t.reader(e.pos, e.end)
	if start, size, ok := t.quickBounds(c, e.pos, e.end); ok {
		f.Start, f.End = start, start+size
		r.pos += 2 * c.layout.size
	} else if err := t.bounds(c, f, &r); err != nil {
		return err
	}
	if c.unexpected {
		f.pos, f.end = r.pos, e.end
		return nil
	}
	if c.sized {
		n := r.uleb()
		data := r.pos
		if r.bytes(n); r.err != nil {
			return t.readError(&r, "augmentation data of an FDE")
		}
		if c.LSDAEncoding != ehpe.Omit && n > 0 {
			d := t.reader(data, r.pos)
			b := t.bases()
			b.function, b.hasFunction = f.Start, true
			p, null, err := d.pointer(c.LSDAEncoding, c.AddressSize, &b)
			switch {
			case d.err != nil:
				return t.readError(&d, "the LSDA pointer of an FDE")
			case errors.Is(err, ErrPointerBase): // rows do not need it
			case err != nil:
				return t.errorf(uint64(data), err, "%#x, of the LSDA", c.LSDAEncoding)
			case !null:
				f.LSDA = p
			}
		}
	}
	f.pos, f.end = r.pos, e.end
	return nil
}

// quickBounds reads the initial location and the range of an FDE whose CIE has a layout,
// where nothing about them is unusual; ok is false where bounds must read them. Where ok is
// true, bounds reads the same.
func (t *Table) quickBounds(c *CIE, pos, end int) (start, size uint64, ok bool) {
	l := &c.layout
	if l.size == 0 || end-pos < 2*l.size {
		return 0, 0, false
	}
	b := t.section.Data[pos : pos+2*l.size]
	switch {
	case l.size == 4:
		start, size = uint64(int64(int32(t.u32(b)))), uint64(t.u32(b[4:]))
	case t.big:
		start, size = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	default:
		start, size = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	}
	if start == 0 { // null
		return 0, 0, false
	}
	if l.relative {
		start += t.section.Address + uint64(pos)
	}
	start &= l.mask
	return start, size, start-1 < l.mask-2 && size <= l.mask-start
}

// bounds reads the segment selector, the initial location and the range of an
// FDE.
func (t *Table) bounds(c *CIE, f *FDE, r *reader) error {
	f.Segment = r.word(c.SegmentSize)
	b := t.bases()
	pos := uint64(r.pos)
	start, null, err := r.pointer(c.FDEEncoding, c.AddressSize, &b)
	switch {
	case r.err != nil:
		return t.readError(r, "the initial location of an FDE")
	case err != nil:
		return t.errorf(pos, err, "%#x, of an FDE's initial location", c.FDEEncoding)
	case start.Indirect:
		if f.Start, err = t.follow(pos, start.Address, c.AddressSize); err != nil {
			return err
		}
	default:
		f.Start = start.Address
	}
	format := c.FDEEncoding & ehpe.FormatMask
	width, _ := fixedSize(format, c.AddressSize)
	mask := addressMask(c.AddressSize)
	dropped := t.isTombstone(f.Start, mask)
	if t.section.Code != nil {
		// Sections of code begin at 0 here, and dropped code has no relocation.
		var ok bool
		f.Code, ok = t.section.Code(uint64(r.pos - width))
		dropped, f.null = !ok, !ok
	} else if start.Indirect {
		f.null = f.Start == 0 // the dynamic linker has yet to write it
	} else {
		// A null pointer relative to itself is a function at its own FDE, unless
		// the section has not been given an address yet.
		f.null = dropped || null && (c.FDEEncoding&ehpe.ApplicationMask != ehpe.PCRel || t.section.Address != 0)
	}

	// The range has the format of the location and is relative to nothing; it
	// has no sign, whatever the format says.
	pos = uint64(r.pos)
	size := r.number(format, c.AddressSize)
	if width != 0 {
		size &= addressMask(width)
	}
	switch {
	case r.err != nil:
		return t.readError(r, "the address range of an FDE")
	case dropped:
		f.End = f.Start + min(size, mask-f.Start)
	case size > mask || size > mask-f.Start+1 && f.Start != 0 || f.Start+size < f.Start:
		return t.errorf(pos, ErrOverflow, "%#x bytes of code at %#x", size, f.Start)
	default:
		f.End = f.Start + size
	}
	return nil
}

// isTombstone reports whether an initial location is a value that linkers write where the
// code was dropped: 0, -1 or -2. Only .debug_frame has such FDEs (in
// .eh_frame they have a null pointer if they stay at all).
func (t *Table) isTombstone(start, mask uint64) bool {
	return !t.section.EH && (start == 0 || start >= mask-1)
}

// isLive reports whether FDEs like f are found by address.
func (f *FDE) isLive() bool {
	return !f.null && f.Start < f.End && f.Segment == 0
}

// follow reads the target of the indirect pointer at an offset.
func (t *Table) follow(pos, address uint64, size int) (uint64, error) {
	if t.section.Memory == nil {
		return 0, t.errorf(pos, ErrIndirect, "the initial location of an FDE is at %#x, and there is no memory to read", address)
	}
	var buf [8]byte
	n, err := t.section.Memory(buf[:size], address)
	if err == nil && n < size {
		err = ErrTruncated
	}
	if err != nil {
		return 0, t.errorf(pos, ErrIndirect, "the initial location of an FDE is at %#x: %v", address, err)
	}
	r := reader{data: buf[:size], big: t.big}
	return r.word(size), nil
}
