// SPDX-License-Identifier: Apache-2.0

// Package leb128 reads and writes numbers in LEB128: seven bits to a byte, the
// lowest first, and the top bit of every byte but the last set (DWARF 5, 7.6).
// Unsigned numbers are written by binary.AppendUvarint, whose form is the same.
package leb128

import "errors"

// What may be wrong with a number.
var (
	ErrTruncated        = errors.New("LEB128 is cut off")
	ErrUnsignedOverflow = errors.New("unsigned LEB128 exceeds 64 bits")
	ErrSignedOverflow   = errors.New("signed LEB128 exceeds 64 bits")
)

// More is the bit of a byte that says that further bytes follow. A byte below it
// is a number by itself: nearly all numbers are, so that fast readers ask for that
// before they call.
const More = 0x80

const (
	bits = 0x7f // those of a byte that are the number's
	sign = 0x40 // of a signed number, in its last byte
)

// Byte is the signed number that a byte below More is.
func Byte(b byte) int64 { return int64(int8(b<<1) >> 1) }

// Unsigned reads the unsigned number at an offset of b. next is the offset behind
// it, 0 where it does not end in b. A number may be padded. One that has more than 64
// significant bits is ErrUnsignedOverflow, with its low 64 bits as v.
func Unsigned(b []byte, at int) (v uint64, next int, err error) {
	for shift := uint(0); at < len(b); shift += 7 {
		x := b[at]
		at++
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
			return v, at, err
		}
	}
	return 0, 0, cutOff(err)
}

// Signed reads the signed number at an offset of b. next is the offset behind it,
// 0 where it does not end in b. A number may be padded. One whose bits past the
// 64th do not repeat its sign is ErrSignedOverflow, with its low 64 bits as v.
func Signed(b []byte, at int) (v int64, next int, err error) {
	for shift := uint(0); at < len(b); shift += 7 {
		x := b[at]
		at++
		low := int64(x & bits)
		if shift < 63 {
			v |= low << shift
		} else {
			if shift == 63 {
				v |= low << 63
			}
			if low != v>>63&bits { // from bit 63 on there is room for the sign only
				err = ErrSignedOverflow
			}
		}
		if x < More {
			if x&sign != 0 && shift < 57 {
				v |= -1 << (shift + 7)
			}
			return v, at, err
		}
	}
	return 0, 0, cutOff(err)
}

// cutOff is what is wrong with a number that does not end. That it is too large is
// seen first.
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
