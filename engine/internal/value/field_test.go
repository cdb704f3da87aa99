// SPDX-License-Identifier: Apache-2.0

package value

import "testing"

// TestBitsOfAFieldInBothOrders takes gcc's fields a:3 = 5 and b:11 = 1000 apart, of a structure
// whose scalar_storage_order is big-endian, and of one that is little-endian.
func TestBitsOfAFieldInBothOrders(t *testing.T) {
	for _, c := range []struct {
		bytes       []byte
		from, count uint64
		isBig       bool
		want        uint64
	}{
		{[]byte{0xaf, 0xa2}, 0, 3, true, 5},
		{[]byte{0xaf, 0xa2}, 3, 11, true, 1000},
		{[]byte{0x45, 0x1f}, 0, 3, false, 5},
		{[]byte{0x45, 0x1f}, 3, 11, false, 1000},
		{[]byte{1, 0, 0, 0, 0, 0, 0, 0, 0x02}, 7, 64, true, 1<<63 | 1<<0},
	} {
		if got := bitsOf(c.bytes, c.from, c.count, c.isBig); got != c.want {
			t.Errorf("% x, %d bits from %d on: %d, expected %d", c.bytes, c.count, c.from, got, c.want)
		}
	}
}
