// SPDX-License-Identifier: Apache-2.0

package linetext

import "math"

// Decimal reads a number of decimal digits only.
func Decimal(text []byte) (n uint64, ok bool) {
	for _, c := range text {
		d := uint64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(text) > 0
}

// Hex reads a number of hexadecimal digits only, without 0x.
func Hex(text []byte) (n uint64, ok bool) {
	for _, c := range text {
		var d byte
		switch {
		case c >= '0' && c <= '9':
			d = c - '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		if n > math.MaxUint64>>4 {
			return 0, false
		}
		n = n<<4 | uint64(d)
	}
	return n, len(text) > 0
}
