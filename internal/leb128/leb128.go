// SPDX-License-Identifier: Apache-2.0

// Package leb128 reads and writes numbers in LEB128: seven bits to a byte, the
// lowest first, and the top bit of every byte but the last set (DWARF 5, 7.6).
// binary.AppendUvarint writes unsigned numbers in the same format.
package leb128

import "errors"

// The errors of numbers.
var (
	ErrTruncated        = errors.New("LEB128 is cut off")
	ErrUnsignedOverflow = errors.New("unsigned LEB128 exceeds 64 bits")
	ErrSignedOverflow   = errors.New("signed LEB128 exceeds 64 bits")
)

// More is the bit of a byte that is followed by further ones. A byte below it is a
// number by itself: nearly all numbers are, so fast readers test for that before
// they call.
const More = 0x80

const (
	bits = 0x7f // the bits of a byte that belong to the number
	sign = 0x40 // the sign of a number, in its last byte
)

// Byte returns the signed number of a byte below More.
func Byte(b byte) int64 { return int64(int8(b<<1) >> 1) }

// Unsigned reads the unsigned number at an offset of b. next is the offset behind
// it, 0 where it does not end in b. A number may be padded. One that has more than 64
// significant bits is ErrUnsignedOverflow, with its low 64 bits as v.
func Unsigned(b []byte, offset int) (v uint64, next int, err error) {
	for shift := uint(0); offset < len(b); shift += 7 {
		x := b[offset]
		offset++
		low := uint64(x & bits)
		if shift < 63 {
			v |= low << shift
		} else if shift == 63 {
			v |= low << 63
			if low > 1 {
				err = ErrUnsignedOverflow
			}
		} else if low != 0 {
			err = ErrUnsignedOverflow
		}
		if x < More {
			return v, offset, err
		}
	}
	return 0, 0, cutOff(err)
}

// Signed reads the signed number at an offset of b. next is the offset behind it,
// 0 where it does not end in b. A number may be padded. One whose bits past the
// 64th do not repeat its sign is ErrSignedOverflow, with its low 64 bits as v.
func Signed(b []byte, offset int) (v int64, next int, err error) {
	for shift := uint(0); offset < len(b); shift += 7 {
		x := b[offset]
		offset++
		low := int64(x & bits)
		if shift < 63 {
			v |= low << shift
		} else {
			if shift == 63 {
				v |= low << 63
			}
			if low != v>>63&bits { // from bit 63 on there is only the sign
				err = ErrSignedOverflow
			}
		}
		if x < More {
			if x&sign != 0 && shift < 57 {
				v |= -1 << (shift + 7)
			}
			return v, offset, err
		}
	}
	return 0, 0, cutOff(err)
}

// cutOff returns the error of a number that does not end. An overflow takes
// precedence.
func cutOff(err error) error {
	if err == nil {
		return ErrTruncated
	}
	return err
}

// AppendSigned appends v in as few bytes as can be.
func AppendSigned(b []byte, v int64) []byte {
	for {
		low := byte(v & bits)
		v >>= 7
		if v == 0 && low&sign == 0 || v == -1 && low&sign != 0 {
			return append(b, low)
		}
		b = append(b, low|More)
	}
}
