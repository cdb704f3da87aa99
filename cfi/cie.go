// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// CIE is a Common Information Entry (DWARF 5, 6.4.1; LSB 5.0, 10.6.1.1). It
// is shared by FDEs and must not be changed.
type CIE struct {
	Offset        uint64 // of the entry in its section
	Version       uint8  // 1, 3 or 4
	Augmentation  string
	AddressSize   int    // bytes
	SegmentSize   int    // bytes of a segment selector; 0: there are none
	CodeAlignment uint64 // code units: bytes that DW_CFA_advance_loc counts in
	DataAlignment int64  // data units: bytes that offsets from the CFA count in
	ReturnAddress uint64 // column of the return address
	// SignalFrame marks the FDEs of signal trampolines
	// (augmentation S): the caller was interrupted, its PC is exact.
	SignalFrame bool
	// BKey means that return addresses are signed with the B key (augmentation
	// B, AArch64).
	BKey         bool
	Personality  Pointer // augmentation P
	LSDAEncoding uint8   // augmentation L; DW_EH_PE_omit when there is none
	FDEEncoding  uint8   // augmentation R; DW_EH_PE_absptr when there is none

	table      *Table
	sized      bool // augmentation z: FDEs have augmentation data
	unexpected bool // the augmentation is unknown: only the fields before the instructions of an FDE can be read
	pos, end   int  // the initial instructions
	plain      bool // alignment factors with which operands of one byte cannot overflow
	layout     layout

	initialOnce sync.Once
	initial     state
	initialErr  error
	executed    atomic.Bool // for listings; initialOnce guards the rest
}

// maxAugmentation bounds the length of an augmentation string, and maxInitial the length
// of the initial instructions (3584 columns of AMDGPU take 16 KiB). Both are
// read once for every FDE in the worst case.
const (
	maxAugmentation = 4096
	maxInitial      = 64 << 10
)

// cie returns the CIE at an offset of the section.
func (t *Table) cie(offset uint64) (*CIE, error) {
	slot := &t.cies[(offset>>2)*0x9e3779b97f4a7c15>>56]
	if c := slot.Load(); c != nil && c.Offset == offset {
		return c, nil
	}
	e, err := t.entryAt(offset)
	if err != nil {
		return nil, err
	}
	if !e.cie {
		return nil, t.errorf(offset, ErrCIEPointer, "expected a CIE here")
	}
	c, err := t.parseCIE(e)
	if err != nil {
		return nil, err
	}
	slot.Store(c)
	return c, nil
}

func (t *Table) parseCIE(e entry) (*CIE, error) {
	r := t.reader(e.pos, e.end)
	c := &CIE{Offset: e.offset, AddressSize: t.section.AddressSize, LSDAEncoding: ehpe.Omit, table: t}
	c.Version = r.u8()
	if r.err == nil && c.Version != 1 && c.Version != 3 && c.Version != 4 {
		return nil, t.errorf(uint64(e.pos), ErrVersion, "CIE version %d, expected 1, 3 or 4", c.Version)
	}
	c.Augmentation = r.cstring(maxAugmentation)
	if r.err != nil {
		return nil, t.readError(&r, "version and augmentation string of a CIE")
	}
	letters, known := augmentation(c.Augmentation)
	if !known {
		// DWARF 5, 6.4.1: only the FDEs' bounds can be read. In .eh_frame not
		// even these, for their encoding is part of the augmentation.
		if t.section.EH {
			return nil, t.errorf(uint64(e.pos+1), ErrAugmentation, "%q", c.Augmentation)
		}
		c.unexpected = true
		return c, nil
	}
	if letters == "eh" {
		r.bytes(uint64(c.AddressSize)) // exception table of g++ 2
	}
	if c.Version >= 4 {
		if err := t.sizes(c, &r); err != nil {
			return nil, err
		}
	}
	c.CodeAlignment = r.uleb()
	c.DataAlignment = r.sleb()
	if c.Version == 1 {
		c.ReturnAddress = uint64(r.u8())
	} else {
		c.ReturnAddress = r.uleb()
	}
	if r.err != nil {
		return nil, t.readError(&r, "alignment factors and return address register of a CIE")
	}
	if strings.HasPrefix(letters, "z") {
		c.sized = true
		if err := t.augmentationData(c, letters[1:], &r); err != nil {
			return nil, err
		}
	} else {
		c.SignalFrame = strings.Contains(letters, "S")
		c.BKey = strings.Contains(letters, "B")
	}
	c.pos, c.end = r.pos, e.end
	c.plain = c.CodeAlignment-1 < 1<<31 && c.DataAlignment < 1<<31 && c.DataAlignment > -1<<31
	c.layout = t.layout(c)
	return c, nil
}

// sizes reads the sizes of addresses and of segment selectors, which CIEs have from
// version 4 on.
func (t *Table) sizes(c *CIE, r *reader) error {
	pos := uint64(r.pos)
	c.AddressSize = int(r.u8())
	c.SegmentSize = int(r.u8())
	if r.err == nil && c.AddressSize != 4 && c.AddressSize != 8 {
		return t.errorf(pos, ErrAddressSize, "%d bytes, expected 4 or 8", c.AddressSize)
	}
	switch c.SegmentSize {
	case 0, 1, 2, 4, 8:
		return nil
	}
	return t.errorf(pos+1, ErrSegmentSize, "%d bytes, expected 0, 1, 2, 4 or 8", c.SegmentSize)
}

// layout is the start of the FDEs of a CIE where it has a common format: a location and a
// range of size bytes each, an absolute number or a number relative to itself. A size of 0 is
// any other format.
type layout struct {
	size     int
	relative bool
	mask     uint64 // of an address
	lsda     int    // bytes of augmentation data that an LSDA pointer takes; 0: unknown
}

func (t *Table) layout(c *CIE) (l layout) {
	size, signed := fixedSize(c.FDEEncoding&ehpe.FormatMask, c.AddressSize)
	application := c.FDEEncoding &^ ehpe.FormatMask
	if size == 4 && (signed || c.AddressSize == 4) || size == 8 && c.AddressSize == 8 {
		if c.SegmentSize == 0 && t.section.Code == nil && (application == ehpe.Absolute || application == ehpe.PCRel) {
			l = layout{size: size, relative: application == ehpe.PCRel, mask: addressMask(c.AddressSize)}
		}
	}
	switch c.LSDAEncoding &^ (ehpe.FormatMask | ehpe.Indirect) {
	case ehpe.Absolute, ehpe.PCRel, ehpe.TextRel, ehpe.DataRel, ehpe.FuncRel:
		l.lsda, _ = fixedSize(c.LSDAEncoding&ehpe.FormatMask, c.AddressSize)
	}
	return l
}

// augmentationData reads the data of the letters behind z.
func (t *Table) augmentationData(c *CIE, letters string, r *reader) error {
	size := r.uleb()
	start := r.pos
	if r.bytes(size); r.err != nil {
		return t.readError(r, "augmentation data of a CIE")
	}
	d := t.reader(start, r.pos)
	for _, letter := range letters {
		pos := uint64(d.pos)
		switch letter {
		case 'L':
			c.LSDAEncoding = d.u8()
			if d.err == nil && c.LSDAEncoding != ehpe.Omit && !isValidFormat(c.LSDAEncoding&ehpe.FormatMask) {
				return t.errorf(pos, ErrPointerEncoding, "%#x, of the LSDA", c.LSDAEncoding)
			}
		case 'P':
			encoding := d.u8()
			if d.err != nil || encoding == ehpe.Omit {
				break
			}
			b := t.bases()
			p, null, err := d.pointer(encoding, c.AddressSize, &b)
			if errors.Is(err, ErrPointerEncoding) {
				return t.errorf(pos, err, "%#x, of the personality routine", encoding)
			}
			if err == nil && !null {
				c.Personality = p
			}
		case 'R':
			c.FDEEncoding = d.u8()
			if d.err == nil && (c.FDEEncoding == ehpe.Omit || !isValidFormat(c.FDEEncoding&ehpe.FormatMask)) {
				return t.errorf(pos, ErrPointerEncoding, "%#x, of FDEs", c.FDEEncoding)
			}
		case 'S':
			c.SignalFrame = true
		case 'B':
			c.BKey = true
		}
		if d.err != nil {
			return t.readError(&d, "data of augmentation "+string(letter))
		}
	}
	return nil
}

func (t *Table) bases() bases {
	return bases{section: t.section.Address, text: t.section.Text, data: t.section.DataBase}
}

// augmentation splits an augmentation string into the letters that have a meaning here and
// the [vendor:vX.Y:options] parts, which name the dialect of expressions (A.6.4.1) and add no
// fields. known is false when there is anything else.
func augmentation(s string) (letters string, known bool) {
	letters = s
	if i := strings.IndexByte(s, '['); i >= 0 {
		letters = s[:i]
		if !isVendorParts(s[i:]) {
			return "", false
		}
	}
	if letters == "" || letters == "eh" {
		return letters, true
	}
	rest, sized := strings.CutPrefix(letters, "z")
	for _, letter := range rest {
		switch letter {
		case 'S', 'B', 'G': // no data. G: the frame's memory is tagged (AArch64)
		case 'L', 'P', 'R':
			if !sized {
				return "", false
			}
		default:
			return "", false
		}
	}
	return letters, true
}

// isVendorParts reports whether s is a sequence of [vendor:vX.Y] or
// [vendor:vX.Y:options], not empty.
func isVendorParts(s string) bool {
	for s != "" {
		if s[0] != '[' {
			return false
		}
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return false
		}
		vendor, rest, ok := strings.Cut(s[1:end], ":v")
		version, _, _ := strings.Cut(rest, ":")
		if !ok || vendor == "" || strings.ContainsAny(vendor, "[:") || !isSemanticVersion(version) {
			return false
		}
		s = s[end+1:]
	}
	return true
}

// isSemanticVersion reports whether s begins with X.Y. The document wants X.Y and
// refers to semantic versioning, so X.Y.Z and pre-releases are accepted too.
func isSemanticVersion(s string) bool {
	major, rest, ok := strings.Cut(s, ".")
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if !ok || major == "" || n == 0 || n < len(rest) && !strings.ContainsRune(".-+", rune(rest[n])) {
		return false
	}
	return strings.Trim(major, "0123456789") == ""
}
