// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/unwindd/unwindd/internal/leb128"
)

// reader reads forward in a section. The first failure stays in err; from
// then on every read gives zero.
type reader struct {
	data   []byte // the section, cut where the reading must end
	pos    int    // offset in the section
	big    bool
	err    error // ErrTruncated, ErrLEB128 or ErrLimit
	errPos int   // where err happened
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err, r.errPos = err, r.pos
	}
	r.pos = len(r.data)
}

// bytes returns the next n bytes, which alias the section.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)-r.pos) {
		r.fail(ErrTruncated)
		return nil
	}
	b := r.data[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) u8() byte {
	if r.pos >= len(r.data) {
		r.fail(ErrTruncated)
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

func (r *reader) u16() uint16 {
	b := r.bytes(2)
	switch {
	case b == nil:
		return 0
	case r.big:
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (r *reader) u32() uint32 {
	b := r.bytes(4)
	switch {
	case b == nil:
		return 0
	case r.big:
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *reader) u64() uint64 {
	b := r.bytes(8)
	switch {
	case b == nil:
		return 0
	case r.big:
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// word reads an unsigned number of 0, 1, 2, 4 or 8 bytes.
func (r *reader) word(size int) uint64 {
	switch size {
	case 0:
		return 0
	case 1:
		return uint64(r.u8())
	case 2:
		return uint64(r.u16())
	case 4:
		return uint64(r.u32())
	}
	return r.u64()
}

// uleb reads an unsigned LEB128 number (DWARF 5, 7.6). Padding is allowed;
// bits past the 64th must be zero.
func (r *reader) uleb() uint64 {
	if r.pos < len(r.data) && r.data[r.pos] < leb128.More {
		r.pos++
		return uint64(r.data[r.pos-1])
	}
	v, next, err := leb128.Unsigned(r.data, r.pos)
	if err != nil {
		r.failLEB128(err)
		return 0
	}
	r.pos = next
	return v
}

// sleb reads a signed LEB128 number. Padding is allowed; bits past the 64th
// must repeat the sign.
func (r *reader) sleb() int64 {
	v, next, err := leb128.Signed(r.data, r.pos)
	if err != nil {
		r.failLEB128(err)
		return 0
	}
	r.pos = next
	return v
}

// failLEB128 fails at the end of the data where a number is cut off, else at the
// number.
func (r *reader) failLEB128(err error) {
	if errors.Is(err, leb128.ErrTruncated) {
		r.pos = len(r.data)
		r.fail(ErrTruncated)
		return
	}
	r.fail(ErrLEB128)
}

// cstring reads a string that ends with a zero byte; of more than limit bytes
// it is ErrLimit.
func (r *reader) cstring(limit int) string {
	rest := r.data[r.pos:]
	cut := rest
	if len(cut) > limit+1 {
		cut = cut[:limit+1]
	}
	i := bytes.IndexByte(cut, 0)
	switch {
	case i >= 0:
		r.pos += i + 1
		return string(rest[:i])
	case len(cut) < len(rest):
		r.fail(ErrLimit)
	default:
		r.fail(ErrTruncated)
	}
	return ""
}
