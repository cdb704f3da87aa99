// SPDX-License-Identifier: Apache-2.0

package aarch64

import "testing"

// TestLoadsOfStructuresWriteTheirVectors: not those behind them, which a function may have to preserve.
func TestLoadsOfStructuresWriteTheirVectors(t *testing.T) {
	for _, c := range []struct {
		text    string
		w       uint32
		vectors uint32
	}{
		{"ld1 {v7.h}[1], [x20]", 0x0d404a87, 1 << 7},
		{"ld1 {v0.d}[1], [x2]", 0x4d408440, 1},
		{"ld2 {v0.b-v1.b}[0], [x0]", 0x0d600000, 3},
		{"ld3 {v0.b-v2.b}[0], [x0]", 0x0d402000, 7},
		{"ld4r {v0.8b-v3.8b}, [x0]", 0x0d60e000, 15},
		{"ld1 {v31.8b}, [x0]", 0x0c40701f, 1 << 31},
		{"ld1 {v0.8b-v1.8b}, [x0]", 0x0c40a000, 3},
		{"ld3 {v0.8b-v2.8b}, [x0]", 0x0c404000, 7},
		{"ld1 {v0.16b-v3.16b}, [x2], #64", 0x4cdf2040, 15},
		{"ld4 {v30.8b-v1.8b}, [x0]", 0x0c40001e, 3<<30 | 3},
		{"st1 {v0.d}[1], [x2]", 0x4d008440, 0},
	} {
		var e effect
		if readEffect(c.w, &e); e.vectors != c.vectors {
			t.Errorf("%s writes %#x, expected %#x", c.text, e.vectors, c.vectors)
		}
	}
}
