// SPDX-License-Identifier: Apache-2.0

package msf

import (
	"bytes"
	"encoding/binary"
)

// Fields are bytes that are read from the front. Once they do not suffice, IsCut is set and zeros
// are read.
type Fields struct {
	Rest  []byte
	IsCut bool
}

// Take reads n bytes.
func (f *Fields) Take(n int) []byte {
	if n > len(f.Rest) {
		f.Rest, f.IsCut = nil, true
		return make([]byte, n)
	}
	b := f.Rest[:n]
	f.Rest = f.Rest[n:]
	return b
}

// U8 reads a byte.
func (f *Fields) U8() uint8 { return f.Take(1)[0] }

// U16 reads a number of 2 bytes.
func (f *Fields) U16() uint16 { return binary.LittleEndian.Uint16(f.Take(2)) }

// U32 reads a number of 4 bytes.
func (f *Fields) U32() uint32 { return binary.LittleEndian.Uint32(f.Take(4)) }

// Text reads a text that a zero byte ends, or the end of the bytes.
func (f *Fields) Text() string {
	i := bytes.IndexByte(f.Rest, 0)
	if i < 0 {
		i = len(f.Rest)
	}
	s := string(f.Rest[:i])
	f.Rest = f.Rest[min(i+1, len(f.Rest)):]
	return s
}
