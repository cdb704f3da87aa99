// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// endian is a byte order; true is big endian. It is not a binary.ByteOrder
// because calls through an interface would take most of the time of a sample.
type endian bool

func (e endian) u16(b []byte) uint16 {
	if e {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (e endian) u32(b []byte) uint32 {
	if e {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (e endian) append64(b []byte, v uint64) []byte {
	if e {
		return binary.BigEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, v)
}

func (e endian) u64(b []byte) uint64 {
	if e {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

var errShort = errors.New("the bytes end before it")

// fields reads fields one after the other. From the first one that is incomplete
// on, all are zero and isShort is true.
type fields struct {
	b       []byte
	order   endian
	isShort bool
}

func (f *fields) bytes(n uint64) []byte {
	if n > uint64(len(f.b)) {
		f.b, f.isShort = nil, true
		return nil
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) u16() uint16 {
	if b := f.bytes(2); b != nil {
		return f.order.u16(b)
	}
	return 0
}

func (f *fields) u32() uint32 {
	if b := f.bytes(4); b != nil {
		return f.order.u32(b)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if len(f.b) < 8 {
		f.b, f.isShort = nil, true
		return 0
	}
	v := f.order.u64(f.b)
	f.b = f.b[8:]
	return v
}

// text reads a perf_header_string: its length with padding, and the bytes.
func (f *fields) text() string { return text(f.bytes(uint64(f.u32()))) }

// text returns the bytes before the first NUL, or all.
func text(b []byte) string { return string(textBytes(b)) }

func textBytes(b []byte) []byte {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		return b[:end]
	}
	return b
}
