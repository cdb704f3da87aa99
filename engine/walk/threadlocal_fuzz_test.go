// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"encoding/binary"
	"testing"
)

// FuzzThreadLocal has the dynamic loader's list of modules, and how it is laid
// out, from nowhere.
func FuzzThreadLocal(f *testing.F) {
	const base = 0x1000
	word := binary.LittleEndian.AppendUint64
	// A list of three entries, two of link_maps; the second vector is too old.
	var list []byte
	for _, v := range []uint64{base + 0x08, 3, 0, 0, 0, 1, base + 0x48, 2, base + 0x60, // to 0x48
		1, 0x100, 7, 2, ^uint64(0), 9, // link_maps: ID, distance, PT_DYNAMIC
		base + 0x80, 1, 0, 0x5000, 0, ^uint64(0), 0} { // the thread, its vector
		list = word(list, v)
	}
	f.Add(uint64(base+0x78), uint32(64), uint32(128), []byte{0, 0, 0, 0, 0, 8, 0, 8, 0, 8, 0, 16}, list)
	f.Add(uint64(base), uint32(8), uint32(8), make([]byte, 12), make([]byte, 64))
	f.Fuzz(func(t *testing.T, pointer uint64, bits, element uint32, offsets, memory []byte) {
		state := &Synthetic{Arch: "x86_64", Memory: []Piece{{Address: base, Bytes: memory}}}
		made := newX86Process(t, state)
		made.Bind()
		w := newWalker(made, made.stateOf(t.Context(), state.Thread()))
		l := &made.tls.layout
		l.loaderGlobal = base
		for i, field := range []*tlsField{&l.threadDTV, &l.generation, &l.block, &l.firstList, &l.listLength, &l.listNext,
			&l.moduleSince, &l.moduleMap, &l.mapID, &l.mapDistance, &l.vector, &l.listModules} {
			field.bits = bits
			if field == &l.vector || field == &l.listModules {
				field.bits = element
			}
			if i < len(offsets) {
				field.offset = uint32(offsets[i])
			}
		}
		err := w.listTLSModules(t.Context())
		if n := len(made.tls.modules); n >= maxTLSModules {
			t.Errorf("%d modules, %v", n, err)
		}
		for i := range made.tls.modules[:min(len(made.tls.modules), 100)] {
			// Any answer is right for such memory, but there is one.
			if _, err := w.blockOf(t.Context(), &made.tls.modules[i], pointer); err != nil && err.Error() == "" {
				t.Error("an error without a reason")
			}
		}
	})
}
