// SPDX-License-Identifier: Apache-2.0

package locexpr

import "testing"

func TestImplicitWordIsTheInverseOfImplicitUint64(t *testing.T) {
	for _, order := range []ByteOrder{LittleEndian, BigEndian} {
		for bits := uint32(1); bits <= 64; bits++ {
			want := uint64(0x8123456789abcdef) & lowMask(bits)
			if v, n, ok := ImplicitUint64(want, bits, order).ImplicitWord(order); !ok || n != bits || v != want {
				t.Errorf("%v, %d bits: %#x of %d bits, %v, expected %#x", order, bits, v, n, ok, want)
			}
		}
	}
	moved, err := ImplicitUint64(1, 64, LittleEndian).Offset(8)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Location{
		"memory": MemoryLocation(0, 8), "undefined": UndefinedLocation(), "long": ImplicitLocation(make([]byte, 16)), "a part": moved,
	} {
		if _, _, ok := l.ImplicitWord(LittleEndian); ok {
			t.Errorf("%s is a word", name)
		}
	}
}
