package cfi

// An FDE is a Frame Description Entry: the call frame table of the code in
// [Start, End) (DWARF 5, 6.4.1; LSB 5.0, 10.6.1.2).
type FDE struct {
	Offset     uint64 // of the entry in its section
	Start, End uint64 // virtual addresses
	Segment    uint64 // segment selector; 0 where there are none
	CIE        *CIE
	LSDA       Pointer // language-specific data area (augmentation L)

	null     bool // the initial location is a null pointer
	pos, end int  // the instructions
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
	f.Segment = r.word(c.SegmentSize)
	b := t.bases()
	at := uint64(r.pos)
	start, null, err := r.pointer(c.FDEEncoding, c.AddressSize, &b)
	switch {
	case r.err != nil:
		return t.readError(&r, "the initial location of an FDE")
	case err != nil:
		return t.errorf(at, err, "%#x, of an FDE's initial location", c.FDEEncoding)
	case start.Indirect:
		if f.Start, err = t.follow(at, start.Address, c.AddressSize); err != nil {
			return err
		}
	default:
		f.Start = start.Address
	}
	// A null pointer relative to itself is a function at its own FDE, unless
	// the section has not been given an address yet.
	f.null = null && (c.FDEEncoding&peApplication != pePCRel || t.section.Address != 0)

	// The range has the format of the location and is relative to nothing; it
	// has no sign, whatever the format says.
	at = uint64(r.pos)
	size := r.number(c.FDEEncoding&peFormat, c.AddressSize)
	if n, _ := fixedSize(c.FDEEncoding&peFormat, c.AddressSize); n != 0 {
		size &= addressMask(n)
	}
	if r.err != nil {
		return t.readError(&r, "the address range of an FDE")
	}
	mask := addressMask(c.AddressSize)
	switch {
	case t.tombstone(f.Start, mask):
		f.null = true
		f.End = f.Start + min(size, mask-f.Start)
	case size > mask || size > mask-f.Start+1 && f.Start != 0 || f.Start+size < f.Start:
		return t.errorf(at, ErrOverflow, "%#x bytes of code at %#x", size, f.Start)
	default:
		f.End = f.Start + size
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
		if c.LSDAEncoding != peOmit && n > 0 {
			d := t.reader(data, r.pos)
			b.function, b.hasFunction = f.Start, true
			p, null, err := d.pointer(c.LSDAEncoding, c.AddressSize, &b)
			switch {
			case d.err != nil:
				return t.readError(&d, "the LSDA pointer of an FDE")
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

// tombstone says whether an initial location is what linkers write where the
// code was dropped: 0, -1 or -2. Only .debug_frame keeps such FDEs (those of
// .eh_frame have a null pointer if they are kept at all).
func (t *Table) tombstone(start, mask uint64) bool {
	return !t.section.EH && (start == 0 || start >= mask-1)
}

// live says whether FDEs like f are found by address.
func (f *FDE) live() bool {
	return !f.null && f.Start < f.End && f.Segment == 0
}

// follow reads the address that an indirect pointer at an offset leads to.
func (t *Table) follow(at, address uint64, size int) (uint64, error) {
	if t.section.Memory == nil {
		return 0, t.errorf(at, ErrIndirect, "the initial location of an FDE is at %#x, and there is no memory to read", address)
	}
	var buf [8]byte
	n, err := t.section.Memory(buf[:size], address)
	if err == nil && n < size {
		err = ErrTruncated
	}
	if err != nil {
		return 0, t.errorf(at, ErrIndirect, "the initial location of an FDE is at %#x: %v", address, err)
	}
	r := reader{data: buf[:size], big: t.big}
	return r.word(size), nil
}
