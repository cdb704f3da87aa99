// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// header is the search table of an .eh_frame_hdr (LSB 5.0, 10.6.2).
type header struct {
	section  Section
	table    int // offset of the search table
	count    int // its entries
	encoding byte
	size     int // bytes of a number
	signed   bool
	big      bool
	mask     uint64
	base     uint64 // base of numbers, besides their own offset
}

// headerSamples is how many entries UseHeader compares with their FDEs. Every
// entry that a lookup uses is compared too.
const headerSamples = 16

// UseHeader makes FDE search the table of an .eh_frame_hdr first, so that the index need not
// be built. The table is not trusted: its extent, its order and a sample of its entries are
// checked now, and an entry that a lookup uses must agree with its FDE. A header that does
// not match is an error, and is not used; one that turns out later not to match is abandoned,
// and Problems lists it. Addresses that the header does not find are looked up in the index.
func (t *Table) UseHeader(hdr Section) error {
	if !t.section.EH {
		return t.errorf(0, ErrHeaderMismatch, "only .eh_frame has a header")
	}
	h, err := t.parseHeader(hdr)
	if err != nil {
		return err
	}
	previous := uint64(0)
	var f FDE
	for n := range min(headerSamples, h.count) {
		i := n
		if h.count > headerSamples { // evenly spread, first and last included
			i = n * (h.count - 1) / (headerSamples - 1)
		}
		start, address := h.entry(i)
		if start < previous {
			return h.errorf(i, ErrHeaderMismatch, "entry %d is not in order: %#x after %#x", i, start, previous)
		}
		previous = start
		if err := t.headerFDE(h, i, start, address, &f); err != nil {
			return err
		}
	}
	t.header.Store(h)
	return nil
}

func (t *Table) parseHeader(hdr Section) (*header, error) {
	h := &header{section: hdr, big: t.big, mask: addressMask(t.section.AddressSize)}
	r := reader{data: hdr.Data, big: t.big}
	version, pointerEncoding, countEncoding, tableEncoding := r.u8(), r.u8(), r.u8(), r.u8()
	if r.err != nil {
		return nil, h.error(r.errPos, r.err, "expected version and three encodings")
	}
	if version != 1 {
		return nil, h.error(0, ErrVersion, "header version is not 1")
	}
	if pointerEncoding == ehpe.Omit {
		return nil, h.error(1, ErrHeader, "no pointer to .eh_frame")
	}
	b := bases{section: hdr.Address, text: t.section.Text, data: hdr.Address}
	pos := r.pos
	p, _, err := r.pointer(pointerEncoding, t.section.AddressSize, &b)
	if err != nil {
		return nil, h.error(pos, err, "of the pointer to .eh_frame")
	}
	if p.Indirect || p.Address != t.section.Address&h.mask {
		return nil, h.error(pos, ErrHeaderMismatch, "the pointer to .eh_frame does not lead to it")
	}
	if countEncoding == ehpe.Omit || tableEncoding == ehpe.Omit {
		return nil, h.error(2, ErrNoSearchTable, "")
	}
	pos = r.pos
	count, _, err := r.pointer(countEncoding, t.section.AddressSize, &b)
	if err != nil {
		return nil, h.error(pos, err, "of the number of FDEs")
	}
	if count.Indirect || count.Address == 0 {
		return nil, h.error(pos, ErrNoSearchTable, "it has no entries")
	}
	h.size, h.signed = fixedSize(tableEncoding&ehpe.FormatMask, t.section.AddressSize)
	known := h.size != 0
	switch tableEncoding & (ehpe.ApplicationMask | ehpe.Indirect) {
	case ehpe.Absolute:
	case ehpe.PCRel, ehpe.DataRel:
		h.base = hdr.Address
	case ehpe.TextRel:
		h.base = t.section.Text
	default:
		known = false
	}
	if !known {
		return nil, h.error(3, ErrPointerEncoding, "of the search table")
	}
	h.encoding = tableEncoding
	h.table = r.pos
	if left := uint64(len(hdr.Data) - r.pos); count.Address > left/uint64(2*h.size) {
		return nil, h.error(pos, ErrTruncated, "the search table is longer than the section")
	}
	// An FDE has a length, an id, a location and a range: 9 bytes at the least.
	if count.Address > uint64(len(t.section.Data)/9) {
		return nil, h.error(pos, ErrHeaderMismatch, "more entries than .eh_frame can have FDEs")
	}
	h.count = int(count.Address)
	return h, nil
}

// entry returns the start of an FDE's code and the FDE's virtual address.
func (h *header) entry(i int) (start, address uint64) {
	pos := h.table + 2*h.size*i
	return h.number(pos), h.number(pos + h.size)
}

func (h *header) number(pos int) uint64 {
	var v uint64
	b := h.section.Data[pos:]
	switch {
	case h.size == 4 && !h.big: // what linkers write
		v = uint64(binary.LittleEndian.Uint32(b))
	default:
		r := reader{data: b, big: h.big}
		v = r.word(h.size)
	}
	if h.signed {
		v = extend(v, h.size)
	}
	if h.encoding&ehpe.ApplicationMask == ehpe.PCRel {
		v += uint64(pos)
	}
	return (v + h.base) & h.mask
}

// search returns how many entries start at or before pc.
func (h *header) search(pc uint64) int {
	lo, hi := 0, h.count
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if h.number(h.table+2*h.size*mid) <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// has reports whether a lookup finds an entry for code that starts at an address.
func (h *header) has(start uint64) bool {
	i := h.search(start)
	return i > 0 && h.number(h.table+2*h.size*(i-1)) == start
}

// findByHeader looks pc up in the search table. An error means that the table
// does not match; not found is no proof that there is no FDE.
func (t *Table) findByHeader(h *header, pc uint64, f *FDE) (bool, error) {
	lo := h.search(pc)
	if lo == 0 {
		return false, nil
	}
	start, address := h.entry(lo - 1)
	if err := t.headerFDE(h, lo-1, start, address, f); err != nil {
		return false, err
	}
	return f.isLive() && f.Start <= pc && pc < f.End, nil
}

// headerFDE reads the FDE of an entry and compares the two.
func (t *Table) headerFDE(h *header, i int, start, address uint64, f *FDE) error {
	offset := (address - t.section.Address) & h.mask
	if err := t.readFDE(offset, f); err != nil {
		return h.errorf(i, ErrHeaderMismatch, "entry %d leads to no FDE: %v", i, err)
	}
	if f.Start != start {
		return h.errorf(i, ErrHeaderMismatch, "entry %d says that code starts at %#x, its FDE at %#x", i, start, f.Start)
	}
	return nil
}

func (h *header) error(pos int, err error, detail string) *Error {
	return &Error{Section: h.section.Name, Offset: uint64(pos), Err: err, Detail: detail}
}

func (h *header) errorf(i int, err error, format string, args ...any) *Error {
	return h.error(h.table+2*h.size*i, err, fmt.Sprintf(format, args...))
}
