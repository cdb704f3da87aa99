// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"iter"
	"maps"
	"slices"
)

// pageSize is how many addresses a page of a table has.
const pageSize = 128

// Table has a value for each address: the zero value where none was put. It is fast for
// addresses that lie close together and are used one after the other, such as the addresses of
// instructions. Its zero value is an empty table.
type Table[T any] struct {
	pages  map[uint64]*[pageSize]T
	last   *[pageSize]T // the page that was used last
	number uint64       // its number
}

// Get returns the value of an address.
func (t *Table[T]) Get(address uint64) (v T) {
	if t.last != nil && t.number == address/pageSize {
		return t.last[address%pageSize]
	}
	if p := t.pages[address/pageSize]; p != nil {
		t.last, t.number = p, address/pageSize
		return p[address%pageSize]
	}
	return v
}

// Put returns a pointer to the value of an address, to set it.
func (t *Table[T]) Put(address uint64) *T {
	if t.last == nil || t.number != address/pageSize {
		p := t.pages[address/pageSize]
		if p == nil {
			p = new([pageSize]T)
			if t.pages == nil {
				t.pages = make(map[uint64]*[pageSize]T)
			}
			t.pages[address/pageSize] = p
		}
		t.last, t.number = p, address/pageSize
	}
	return &t.last[address%pageSize]
}

// All iterates over the values in the order of their addresses. It includes zero values between
// others.
func (t *Table[T]) All() iter.Seq2[uint64, T] {
	return func(yield func(uint64, T) bool) {
		for _, n := range slices.Sorted(maps.Keys(t.pages)) {
			for i, v := range t.pages[n] {
				if !yield(n*pageSize+uint64(i), v) { //nolint:gosec // not negative
					return
				}
			}
		}
	}
}
