// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"math/rand/v2"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
)

// madeMemory makes memory of 64 bytes, with files in some places.
func madeMemory(r *rand.Rand, module *target.Module) *memory {
	m := &memory{}
	for at := r.Uint64N(9); at < 64; at += r.Uint64N(12) {
		s := segment{start: at, size: 1 + r.Uint64N(16)}
		s.written = r.Uint64N(s.size + 1)
		s.dumped = r.Uint64N(s.written + 1)
		s.data = make([]byte, s.dumped)
		if r.IntN(2) == 0 {
			s.flags = elf.PF_W
		}
		m.segments = append(m.segments, s)
		at += s.size
	}
	for at := r.Uint64N(9); at < 64; at += 1 + r.Uint64N(24) {
		size := 1 + r.Uint64N(8)
		m.addFiles(module, []fileSegment{{start: at, size: size, data: make([]byte, size)}})
	}
	return m
}

// Whoever asks which file bytes are from need not ask for each byte of memory that a core lacks.
func TestGapsEndWhereMemoryMayBegin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	module := &target.Module{}
	for range 2000 {
		c := &Core{memory: madeMemory(r, module)}
		if r.IntN(2) == 0 {
			c.memory.devices = madeMemory(r, module)
		}
		for address := range uint64(80) {
			m, n := c.FromFile(address)
			b, from := c.memory.bytesAt(address)
			if len(b) > 0 {
				if m != from || n != uint64(len(b)) {
					t.Fatalf("%#x: %d bytes of %p, expected %d of %p", address, n, m, len(b), from)
				}
				continue
			}
			for i := range min(n, 80-address) {
				if b, _ := c.memory.bytesAt(address + i); m != nil || len(b) > 0 {
					t.Fatalf("%#x: %d bytes of %p, but %d bytes are known at %#x", address, n, m, len(b), address+i)
				}
			}
		}
	}
	c := &Core{memory: &memory{segments: []segment{{start: 0x1000, size: 0x1000}, {start: 0x9000, size: 0x1000, flags: elf.PF_W}}}}
	for address, want := range map[uint64]uint64{0: 0x1000, 0x1004: 0xffc, 0x2000: 0x7000, 0x9001: 0xfff, 0xa000: ^uint64(0) - 0xa000, ^uint64(0): 1} {
		if m, n := c.FromFile(address); m != nil || n != want {
			t.Errorf("%#x: %d bytes, expected %d", address, n, want)
		}
	}
}
