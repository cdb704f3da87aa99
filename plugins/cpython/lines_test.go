// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"math"
	"testing"
)

// TestPositions checks the positions of instructions by the tables of all versions, as Python's own
// co_lines and co_positions have them.
func TestPositions(t *testing.T) {
	for _, c := range []struct {
		name  string
		minor int
		table []byte
		at    int64
		want  position
	}{
		{"before the first instruction", 8, []byte{0, 1}, -1, position{10, 0}},
		{"first line", 8, []byte{4, 2, 6, 0xff}, 3, position{10, 0}},
		{"forward", 8, []byte{4, 2, 6, 0xff}, 4, position{12, 0}},
		{"back", 9, []byte{4, 2, 6, 0xff}, 200, position{11, 0}},
		{"a range", 10, []byte{4, 2, 6, 0xff}, 2, position{12, 0}},
		{"the next range", 10, []byte{4, 2, 6, 0xff}, 4, position{11, 0}},
		{"a range without a line", 10, []byte{4, 2, 6, 0x80, 2, 1}, 6, position{}},
		{"behind a range without a line", 10, []byte{4, 2, 6, 0x80, 2, 1}, 10, position{13, 0}},
		{"behind all ranges", 10, []byte{4, 2}, 4, position{}},
		{"no line behind 2**31", 10, []byte{4, 2}, 0, position{12, 0}},
		{"short form", 11, []byte{0x80 | 2<<3 | 1, 0x35}, 2, position{10, 2<<3 + 3 + 1}},
		{"one line", 11, []byte{0x80 | 11<<3, 4, 9}, 0, position{11, 5}},
		{"no columns", 12, []byte{0x80 | 13<<3, 2<<1 | 1}, 0, position{8, 0}},
		{"long form", 13, []byte{0x80 | 14<<3, 64 | 2, 1, 0, 6, 7}, 0, position{43, 6}},
		{"without a line", 14, []byte{0x80 | 15<<3 | 7}, 14, position{}},
		{"behind one without a line", 15, []byte{0x80 | 15<<3, 0x80 | 10<<3, 1, 2}, 2, position{10, 2}},
		{"cut", 11, []byte{0x80 | 14<<3, 64}, 0, position{}},
		{"no entry", 11, []byte{0x10, 0}, 0, position{}},
	} {
		code := &code{firstLine: 10, lines: c.table}
		if got := code.position(c.minor, c.at); got != c.want {
			t.Errorf("%s: %+v, expected %+v", c.name, got, c.want)
		}
	}
}

// FuzzPositions checks that no table gives a position that there cannot be.
func FuzzPositions(f *testing.F) {
	f.Add([]byte{0x80 | 14<<3, 64 | 2, 1, 0, 6, 7}, int32(10), int64(2))
	f.Add([]byte{4, 2, 6, 0x80, 2, 1}, int32(math.MaxInt32), int64(6))
	f.Fuzz(func(t *testing.T, table []byte, first int32, at int64) {
		for minor := 8; minor <= 15; minor++ {
			p := (&code{firstLine: first, lines: table}).position(minor, at)
			if p.line > math.MaxInt32 || p.column > math.MaxInt32 || p.line == 0 && p.column != 0 {
				t.Fatalf("3.%d: %+v", minor, p)
			}
		}
	})
}
