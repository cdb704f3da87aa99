// SPDX-License-Identifier: Apache-2.0

package cfi

import "encoding/binary"

// entry is the frame that CIEs and FDEs share (DWARF 5, 6.4.1; LSB 5.0,
// 10.6.1).
type entry struct {
	offset     uint64 // of the length field
	pos        int    // first byte behind the id
	end        int    // first byte behind the entry
	cie        bool
	cieOffset  uint64 // FDE: offset of its CIE; of a CIE meaningless
	terminator bool   // a length of zero
}

// entryAt reads the length and id of the entry at an offset. When the error
// leaves the length sound, e.end is set and the next entry is there.
func (t *Table) entryAt(offset uint64) (e entry, err error) {
	data := t.section.Data
	e.offset = offset
	if offset > uint64(len(data)) {
		return e, t.errorf(offset, ErrTruncated, "the section has %#x bytes", len(data))
	}
	if rest := data[offset:]; len(rest) >= 8 {
		// Nearly every entry: a 32-bit length with an id behind it.
		length, id := t.u32(rest), t.u32(rest[4:])
		if length-4 < 0xfffffff0-4 && uint64(length) <= uint64(len(rest)-4) {
			e.pos, e.end = int(offset)+8, int(offset)+4+int(length)
			switch {
			case t.section.EH:
				e.cie = id == 0
				e.cieOffset = offset + 4 - uint64(int64(int32(id)))
			default:
				e.cie = id == 0xffffffff
				e.cieOffset = uint64(id)
			}
			return e, nil
		}
	}
	return t.rareEntry(offset)
}

// rareEntry is entryAt for any entry: one with a 64-bit length, one that cannot be
// read, or the end mark.
func (t *Table) rareEntry(offset uint64) (e entry, err error) {
	data := t.section.Data
	e.offset = offset
	r := t.reader(int(offset), len(data))
	length, dwarf64 := uint64(r.u32()), false
	switch {
	case length == 0xffffffff:
		dwarf64 = true
		length = r.u64()
	case length >= 0xfffffff0:
		return e, t.errorf(offset, ErrLength, "%#x is a reserved value", length)
	}
	if r.err != nil {
		return e, t.readError(&r, "the length of a CIE or FDE")
	}
	if length > uint64(len(data)-r.pos) {
		return e, t.errorf(offset, ErrLength, "entry of %#x bytes, %#x are left in the section", length, len(data)-r.pos)
	}
	e.end = r.pos + int(length)
	if length == 0 {
		e.terminator = true
		return e, nil
	}

	r.data = r.data[:e.end:e.end]
	idPos := uint64(r.pos)
	var id uint64
	if t.section.EH {
		// The id has 4 bytes in both formats, 0 is a CIE, and the pointer is a
		// distance back from itself (LSB 5.0, 10.6.1.1).
		v := r.u32()
		e.cie = v == 0
		id = idPos - uint64(int64(int32(v)))
	} else if dwarf64 {
		id = r.u64()
		e.cie = id == 0xffffffffffffffff
	} else {
		id = uint64(r.u32())
		e.cie = id == 0xffffffff
	}
	if r.err != nil {
		return e, t.readError(&r, "CIE_id or CIE_pointer")
	}
	e.cieOffset = id
	e.pos = r.pos
	return e, nil
}

// u32 reads a number of 4 bytes at the start of b.
func (t *Table) u32(b []byte) uint32 {
	if t.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

// scan lists the entries in order. A length of zero is the linker's end mark, but crtend.o's
// may stand in the middle: the entries behind it are read too, unless Data may go on behind
// the section. In that case bytes that cannot be read end the list as well.
func (t *Table) scan(yield func(entry, error) bool) {
	data := t.section.Data
	for offset := 0; offset < len(data); {
		if rest := data[offset:]; len(rest) < 4 && isAllZero(rest) {
			return // alignment
		}
		e, err := t.entryAt(uint64(offset))
		if t.section.Open && (err != nil || e.terminator) {
			return
		}
		if !e.terminator && !yield(e, err) {
			return
		}
		if e.end == 0 {
			return
		}
		offset = e.end
	}
}

func isAllZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
