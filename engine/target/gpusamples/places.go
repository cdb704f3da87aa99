// SPDX-License-Identifier: Apache-2.0

package gpusamples

import (
	"cmp"
	"slices"
)

// A Range is where something was loaded: Index says what.
type Range struct {
	Start, Size uint64
	Index       int
}

// Places say what was loaded at an address.
type Places []place

// A place is a range of addresses in which nothing changes: index is the one thing
// that is there, or several.
type place struct {
	start, end uint64
	index      int
}

// several is the index where more than one thing is.
const several = -2

// NewPlaces makes the index of addresses. No range may reach past the last address.
func NewPlaces(ranges []Range) Places {
	type edge struct {
		at      uint64
		index   int
		isStart bool
	}
	edges := make([]edge, 0, 2*len(ranges))
	for _, r := range ranges {
		edges = append(edges, edge{r.Start, r.Index, true}, edge{r.Start + r.Size, r.Index, false})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
	})
	// Counting the things that are there, and adding up their indices, is enough:
	// where there is only one, the sum is its index.
	var places Places
	count, sum := 0, 0
	for i := range edges {
		e := &edges[i]
		if e.isStart {
			count, sum = count+1, sum+e.index
		} else {
			count, sum = count-1, sum-e.index
		}
		if i+1 == len(edges) || edges[i+1].at == e.at || count == 0 {
			continue
		}
		p := place{e.at, edges[i+1].at, several}
		if count == 1 {
			p.index = sum
		}
		places = append(places, p)
	}
	return places
}

// At finds what was loaded at an address; -1 where nothing was, and where more than one
// thing was, which the problem says.
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
