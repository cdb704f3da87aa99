// SPDX-License-Identifier: Apache-2.0

package gpusamples

import (
	"cmp"
	"slices"
)

// Range is the range of addresses at which an object of some index was loaded.
type Range struct {
	Start, Size uint64
	Index       int
}

// Places is an index of loaded objects by address.
type Places []place

// place is a range of addresses with the same object: index is its index, or several.
type place struct {
	start, end uint64
	index      int
}

// several is the index where there is more than one object.
const several = -2

// NewPlaces builds the index of addresses. No range may reach past the last address.
func NewPlaces(ranges []Range) Places {
	type edge struct {
		address uint64
		index   int
		isStart bool
	}
	edges := make([]edge, 0, 2*len(ranges))
	for _, r := range ranges {
		edges = append(edges, edge{r.Start, r.Index, true}, edge{r.Start + r.Size, r.Index, false})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.index, b.index))
	})
	// Counting the objects, and adding up their indices, is enough: where there is only
	// one, the sum is its index.
	var places Places
	count, sum := 0, 0
	for i := range edges {
		e := &edges[i]
		if e.isStart {
			count, sum = count+1, sum+e.index
		} else {
			count, sum = count-1, sum-e.index
		}
		if i+1 == len(edges) || edges[i+1].address == e.address || count == 0 {
			continue
		}
		p := place{e.address, edges[i+1].address, several}
		if count == 1 {
			p.index = sum
		}
		places = append(places, p)
	}
	return places
}

// At returns the index of the object at an address; -1 where there is none, or, with a
// problem, more than one.
func (p Places) At(address uint64) (index int, problem string) {
	i, found := slices.BinarySearchFunc(p, address, func(p place, address uint64) int { return cmp.Compare(p.start, address) })
	if !found {
		i--
	}
	switch {
	case i < 0 || address >= p[i].end:
		return -1, ""
	case p[i].index == several:
		return -1, "several modules were loaded at its address"
	}
	return p[i].index, ""
}
