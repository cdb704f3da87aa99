// SPDX-License-Identifier: Apache-2.0

package codeflow

import "testing"

func TestPieces(t *testing.T) {
	p := OnePiece(0x1000, make([]byte, 16))
	if target, ok := p.Target(4, 8); target != 12 || !ok {
		t.Errorf("in one piece: %d, %t", target, ok)
	}
	if _, ok := p.Target(4, 12); ok {
		t.Error("a target behind the code is inside")
	}
	p.Add(0x800, make([]byte, 8), make([]byte, 4))
	if len(p.Code) != 28 {
		t.Fatalf("%d bytes, expected 28", len(p.Code))
	}
	for _, c := range []struct {
		offset  uint64
		address uint64
		ok      bool
	}{{0, 0x1000, true}, {15, 0x100f, true}, {16, 0, false}, {19, 0, false}, {20, 0x800, true}, {27, 0x807, true}, {28, 0, false}} {
		if got, ok := p.Address(c.offset); got != c.address || ok != c.ok {
			t.Errorf("offset %d: %#x, %t, expected %#x, %t", c.offset, got, ok, c.address, c.ok)
		}
	}
	distance := func(start, end uint64) uint64 { return end - start }
	if target, ok := p.Target(3, distance(0x1003, 0x802)); target != 22 || !ok {
		t.Errorf("from one piece into another: %d, %t", target, ok)
	}
	if target, ok := p.Target(21, distance(0x801, 0x100f)); target != 15 || !ok {
		t.Errorf("back: %d, %t", target, ok)
	}
	if _, ok := p.Target(21, distance(0x801, 0x808)); ok {
		t.Error("a target between two pieces is inside")
	}
}
