// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"bytes"
	"encoding/binary"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// fields are bytes that are read from the front; once they do not suffice, cut is set and zeros
// are read.
type fields struct {
	b   []byte
	cut bool
}

func (r *fields) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.cut = nil, true
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *fields) u8() uint8 { return r.take(1)[0] }

func (r *fields) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }

func (r *fields) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

// text reads a text that a zero byte ends, or the end of the bytes.
func (r *fields) text() string {
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		i = len(r.b)
	}
	s := string(r.b[:i])
	r.b = r.b[min(i+1, len(r.b)):]
	return s
}

// readAt reads n bytes of a stream.
func readAt(s *msf.Stream, offset, n uint32) (fields, error) {
	b, err := s.Bytes(offset, n)
	return fields{b: b}, err
}
