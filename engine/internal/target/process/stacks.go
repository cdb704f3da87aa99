// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"cmp"
	"debug/elf"
	"slices"
)

const (
	// redZone is the number of bytes copied below the stack pointer, which leaf functions
	// use under some ABIs: 128 bytes on x86-64, 288 and 512 on PowerPC.
	redZone = 512
	// maxStack bounds the copy of a thread's stack that is a mapping: the usual limit of the
	// first thread's, and the usual size of the others'.
	maxStack = 8 << 20
	// maxPart bounds the copy of a stack that is a part of a mapping: runtimes put many
	// stacks, and their heaps, into one mapping.
	maxPart = 256 << 10
	// maxStacks bounds the stacks of all threads together, except that at least minStack of
	// each is copied.
	maxStacks = 64 << 20
	minStack  = 64 << 10
)

// span is a range of addresses.
type span struct{ start, end uint64 }

// stackRanges returns the stacks of threads with these stack pointers, in ascending order and
// without overlap: each from its red zone to the end of its mapping, bounded.
func (c *copied) stackRanges(pointers []uint64) []span {
	list := make([]span, 0, len(pointers))
	var total uint64
	for _, sp := range pointers {
		i, ok := slices.BinarySearchFunc(c.maps, sp, func(m mapping, sp uint64) int {
			switch {
			case m.end <= sp:
				return -1
			case m.start > sp:
				return 1
			}
			return 0
		})
		if !ok || c.maps[i].flags&elf.PF_R == 0 {
			continue // it overflowed into its guard page, or is corrupt
		}
		m := &c.maps[i]
		limit := uint64(maxPart)
		if c.isStack(i) {
			limit = maxStack
		}
		s := span{start: max(m.start, sp-min(sp, redZone)), end: m.end}
		if m.end-sp > limit {
			s.end = sp + limit
		}
		total += s.end - s.start
		list = append(list, s)
	}
	if total > maxStacks {
		share := max(minStack, maxStacks/uint64(len(list)))
		for i := range list {
			list[i].end = min(list[i].end, list[i].start+share)
		}
	}
	return joined(list)
}

// isStack reports whether a mapping is one stack: by the kernel's name, or by a guard page below
// it, as libraries of threads put it there.
func (c *copied) isStack(i int) bool {
	m := &c.maps[i]
	if m.path == "[stack]" {
		return true
	}
	return i > 0 && c.maps[i-1].end == m.start && c.maps[i-1].flags == 0 && !m.isOfFile()
}

// joined sorts spans and joins spans that touch.
func joined(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	kept := list[:0]
	for _, s := range list {
		if n := len(kept); n > 0 && s.start <= kept[n-1].end {
			kept[n-1].end = max(kept[n-1].end, s.end)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}
