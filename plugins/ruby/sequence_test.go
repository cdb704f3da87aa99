// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// memory is an engine with memory alone, which begins at memoryStart.
type memory struct {
	sdk.RuntimeEngine
	bytes []byte
}

const memoryStart = 0x10000

func (m *memory) ReadMemory(_ context.Context, r sdk.MemoryRange, buf []byte) (int, error) {
	if r.Address < memoryStart || r.Address-memoryStart >= uint64(len(m.bytes)) {
		return 0, nil
	}
	return copy(buf, m.bytes[r.Address-memoryStart:]), nil
}

// index makes the succinct bit vector of positions, as the interpreter has it.
func index(positions []uint64, size uint64) []byte {
	has := map[uint64]bool{}
	for _, p := range positions {
		has[p] = true
	}
	b := make([]byte, rankSmall/9*8)
	rank := uint64(0)
	for j := range uint64(rankSmall / 9) {
		word := uint64(0)
		for i := range uint64(9) {
			if has[j*9+i] {
				rank++
			}
			word |= rank << (7 * i)
		}
		binary.LittleEndian.PutUint64(b[8*j:], word)
	}
	for start := uint64(rankSmall); start < size; start += rankBlock {
		block := make([]byte, rankBytes)
		binary.LittleEndian.PutUint32(block, uint32(rank))
		small, ranks := uint64(0), uint64(0)
		for j := range uint64(8) {
			if j > 0 {
				ranks |= small << (9 * (j - 1))
			}
			word := uint64(0)
			for i := range uint64(64) {
				if has[start+64*j+i] {
					word |= 1 << i
					small++
				}
			}
			binary.LittleEndian.PutUint64(block[rankHeader+8*j:], word)
		}
		binary.LittleEndian.PutUint64(block[8:], ranks)
		rank += small
		b = append(b, block...)
	}
	return b
}

func TestRanksOfPositions(t *testing.T) {
	const size = 3000
	var positions []uint64
	for p := uint64(0); p < size; p += 1 + p%7 {
		positions = append(positions, p)
	}
	e := &memory{bytes: index(positions, size)}
	r := newReader(t.Context(), e, &process{layout: &layouts[0], request: &sdk.OpenRuntimeRequest{AddressBits: 64}})
	want := uint64(0)
	for x := range uint64(size) {
		if int(want) < len(positions) && positions[want] == x {
			want++
		}
		if got, err := r.rank(memoryStart, x); err != nil || got != want {
			t.Fatalf("%d positions are at most %d, expected %d: %v", got, x, want, err)
		}
	}
}

func TestLayoutOfVersions(t *testing.T) {
	for version, want := range map[string]string{
		"2.7.4": "2.7", "3.1.2": "3.1", "3.4.11": "3.4", "2.6.10": "", "3.5.0": "", "4.0.0": "", "3.10.0": "", "3.1": "", "": "",
	} {
		got := ""
		if l := layoutOf(version); l != nil {
			got = l.version
		}
		if got != want {
			t.Errorf("Ruby %q has the layout of %q, expected %q", version, got, want)
		}
	}
}
