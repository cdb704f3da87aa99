// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/sdk"
)

// PlacedMemory is memory of one address space whose bytes are at places of others.
type PlacedMemory struct {
	list []sdk.SpaceMemory // once settled: sorted by Start, without overlap
}

// Add adds memory. Where two overlap, the first that was added has the bytes.
func (m *PlacedMemory) Add(memory sdk.SpaceMemory) { m.list = append(m.list, memory) }

// Settle puts the memory in order, before the first Read.
func (m *PlacedMemory) Settle() {
	slices.SortStableFunc(m.list, func(a, b sdk.SpaceMemory) int { return cmp.Compare(a.Start, b.Start) })
	kept := m.list[:0]
	for _, s := range m.list {
		if n := len(kept); n > 0 && s.Start-kept[n-1].Start < kept[n-1].Size {
			skip := kept[n-1].Size - (s.Start - kept[n-1].Start)
			if skip >= s.Size {
				continue
			}
			s.Start, s.Size, s.Address = s.Start+skip, s.Size-skip, s.Address+skip
		}
		kept = append(kept, s)
	}
	m.list = kept
}

// Read reads memory at its places in a target. It returns the number of bytes read; fewer than
// len(buf) only with an error.
func (m *PlacedMemory) Read(t Target, address uint64, buf []byte) (int, error) {
	return readPlaces(t, func(address uint64) *sdk.SpaceMemory {
		i := sort.Search(len(m.list), func(i int) bool { return m.list[i].Start > address })
		if i == 0 || address-m.list[i-1].Start >= m.list[i-1].Size {
			return nil
		}
		return &m.list[i-1]
	}, address, buf)
}

// readPlaces reads memory at its places in a target, which find gives.
func readPlaces(t Target, find func(address uint64) *sdk.SpaceMemory, address uint64, buf []byte) (n int, err error) {
	for n < len(buf) {
		m := find(address + uint64(n))
		if m == nil {
			return n, fmt.Errorf("%w: %#x", ErrNoMemory, address+uint64(n))
		}
		offset := address + uint64(n) - m.Start
		part := buf[n:][:min(uint64(len(buf)-n), m.Size-offset)]
		read, err := t.ReadMemory(m.Into, m.Address+offset, part)
		if n += read; err != nil {
			return n, err
		}
	}
	return n, nil
}
