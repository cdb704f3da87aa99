// SPDX-License-Identifier: Apache-2.0

package leb128

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

// edges are the numbers around every length that a number may have.
func edges() []uint64 {
	list := []uint64{0, math.MaxUint64}
	for shift := range 64 {
		for _, n := range [...]uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			list = append(list, n, -n)
		}
	}
	return list
}

// pad makes a number n bytes longer. fill is its bits above those that it has.
func pad(b []byte, n int, fill byte) []byte {
	b = bytes.Clone(b)
	for range n {
		b[len(b)-1] |= More
		b = append(b, fill)
	}
	return b
}

func TestUnsignedIsThatOfEncodingBinary(t *testing.T) {
	for _, want := range edges() {
		b := binary.AppendUvarint(nil, want)
		for padding := range 12 {
			b := append([]byte{0xff}, pad(b, padding, 0)...)
			if v, next, err := Unsigned(append(b, 1), 1); v != want || next != len(b) || err != nil {
				t.Errorf("%x: %d, next %d, %v; expected %d, next %d", b, v, next, err, want, len(b))
			}
			for cut := 1; cut < len(b); cut++ {
				if _, next, err := Unsigned(b[:cut], 1); next != 0 || !errors.Is(err, ErrTruncated) {
					t.Errorf("%x: next %d, %v; expected 0, %v", b[:cut], next, err, ErrTruncated)
				}
			}
		}
	}
}

func TestSignedIsWhatWasAppended(t *testing.T) {
	for _, u := range edges() {
		want := int64(u)
		b := AppendSigned(nil, want)
		if shortest := signedLength(want); len(b) != shortest {
			t.Errorf("%d: %d bytes, expected %d", want, len(b), shortest)
		}
		if len(b) == 1 && Byte(b[0]) != want {
			t.Errorf("%#x: %d, expected %d", b[0], Byte(b[0]), want)
		}
		for padding := range 12 {
			b := append([]byte{0xff}, pad(b, padding, byte(want>>63)&bits)...)
			if v, next, err := Signed(append(b, 1), 1); v != want || next != len(b) || err != nil {
				t.Errorf("%x: %d, next %d, %v; expected %d, next %d", b, v, next, err, want, len(b))
			}
			for cut := 1; cut < len(b); cut++ {
				if _, next, err := Signed(b[:cut], 1); next != 0 || !errors.Is(err, ErrTruncated) {
					t.Errorf("%x: next %d, %v; expected 0, %v", b[:cut], next, err, ErrTruncated)
				}
			}
		}
	}
}

// signedLength is how many groups of seven bits hold v with its sign.
func signedLength(v int64) int {
	n := 1
	for ; n < 10 && (v < -1<<(7*n-1) || v >= 1<<(7*n-1)); n++ {
	}
	return n
}

func TestNumbersThatExceed64Bits(t *testing.T) {
	nine := func(b byte, last ...byte) []byte { return append(bytes.Repeat([]byte{b}, 9), last...) }
	for _, c := range []struct {
		b                []byte
		unsigned, signed error
	}{
		{nine(0xff, 0x01), nil, ErrSignedOverflow}, // 1<<64 - 1
		{nine(0xff, 0x02), ErrUnsignedOverflow, ErrSignedOverflow},
		{nine(0xff, 0x7f), ErrUnsignedOverflow, nil}, // -1
		{nine(0x80, 0x7f), ErrUnsignedOverflow, nil}, // the lowest
		{nine(0xff, 0x00), nil, nil},                 // the highest
		{nine(0xff, 0xff, 0x7f), ErrUnsignedOverflow, nil},
		{nine(0xff, 0xff, 0x00), ErrUnsignedOverflow, ErrSignedOverflow},
		{nine(0xff, 0x81, 0x00), nil, ErrSignedOverflow},
		{nine(0xff, 0x80, 0x01), ErrUnsignedOverflow, ErrSignedOverflow},
	} {
		if _, next, err := Unsigned(c.b, 0); next != len(c.b) || !errors.Is(err, c.unsigned) {
			t.Errorf("%x: unsigned: next %d, %v; expected %d, %v", c.b, next, err, len(c.b), c.unsigned)
		}
		if _, next, err := Signed(c.b, 0); next != len(c.b) || !errors.Is(err, c.signed) {
			t.Errorf("%x: signed: next %d, %v; expected %d, %v", c.b, next, err, len(c.b), c.signed)
		}
	}
	// What is wrong first counts, where the number does not end either.
	cut := nine(0xff, 0xfd)
	if _, next, err := Unsigned(cut, 0); next != 0 || !errors.Is(err, ErrUnsignedOverflow) {
		t.Errorf("next %d, %v; expected 0, %v", next, err, ErrUnsignedOverflow)
	}
	if _, next, err := Signed(cut, 0); next != 0 || !errors.Is(err, ErrSignedOverflow) {
		t.Errorf("next %d, %v; expected 0, %v", next, err, ErrSignedOverflow)
	}
}

func FuzzNumbers(f *testing.F) {
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 0)
	f.Add([]byte{0x80, 0x80, 0x7f}, 1)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		if at < 0 {
			return // callers begin inside what they read, or at its end
		}
		u, next, err := Unsigned(b, at)
		if want, n := binary.Uvarint(b[min(at, len(b)):]); n > 0 && (u != want || next != at+n || err != nil) {
			t.Errorf("unsigned: %d, next %d, %v; encoding/binary reads %d, %d bytes", u, next, err, want, n)
		}
		s, signedNext, signedErr := Signed(b, at)
		if next != signedNext {
			t.Errorf("unsigned ends at %d, signed at %d", next, signedNext)
		}
		if next == 0 && (err == nil || signedErr == nil) {
			t.Errorf("no end, but no error: %v, %v", err, signedErr)
		}
		if next == 0 || next > len(b) {
			return
		}
		if back := AppendSigned(nil, s); signedErr == nil {
			if again, n, err := Signed(back, 0); again != s || n != len(back) || n > next-at || err != nil {
				t.Errorf("%d became %x, which is %d, next %d, %v", s, back, again, n, err)
			}
		}
	})
}
