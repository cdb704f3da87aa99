// SPDX-License-Identifier: Apache-2.0

// Package ranges makes disjoint ranges of addresses of ranges that overlap.
package ranges

import (
	"cmp"
	"iter"
	"slices"
	"sync"
)

// Range is the range of a numbered item. End is the first address behind it.
type Range struct {
	Start, End uint64
	Index      int32
}

// Flat are disjoint ranges. From Starts[i] up to Starts[i+1] it is the item Index[i]; -1: none.
type Flat struct {
	Starts []uint64
	Index  []int32
}

// At returns the item at an address, or -1.
func (f *Flat) At(address uint64) int {
	i, isStart := slices.BinarySearch(f.Starts, address)
	if isStart {
		i++
	}
	if i == 0 {
		return -1
	}
	return int(f.Index[i-1])
}

// All yields the ranges that have an item, by address. Neighbours have different items.
func (f *Flat) All() iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for i, index := range f.Index {
			if index >= 0 && i+1 < len(f.Starts) && !yield(Range{f.Starts[i], f.Starts[i+1], index}) {
				return
			}
		}
	}
}

// add appends a range that ends where the next one starts.
func (f *Flat) add(start uint64, index int32) {
	if n := len(f.Starts); n > 0 {
		if f.Starts[n-1] == start {
			if n > 1 && f.Index[n-2] == index {
				f.Starts, f.Index = f.Starts[:n-1], f.Index[:n-1]
				return
			}
			f.Index[n-1] = index
			return
		}
		if f.Index[n-1] == index {
			return
		}
	}
	f.Starts = append(f.Starts, start)
	f.Index = append(f.Index, index)
}

// Flatten cuts ranges into disjoint ones. Where several contain an address the one of the
// highest index wins. It changes the order of ranges.
func Flatten(ranges []Range) (out Flat) {
	if len(ranges) == 0 {
		return out
	}
	slices.SortFunc(ranges, func(a, b Range) int {
		if a.Start != b.Start {
			return cmp.Compare(a.Start, b.Start)
		}
		return cmp.Compare(a.Index, b.Index)
	})
	tmp := pool.Get().(*scratch)
	defer pool.Put(tmp)
	out.Starts, out.Index = slices.Grow(tmp.Starts[:0], len(ranges)+1), slices.Grow(tmp.Index[:0], len(ranges)+1)
	open := tmp.open[:0]
	pos := uint64(0)
	// until writes the open ranges from pos to limit.
	until := func(limit uint64) {
		for len(open) > 0 && pos < limit {
			top := open[0]
			if top.End <= pos {
				open.pop()
				continue
			}
			out.add(pos, top.Index)
			pos = min(top.End, limit)
		}
		if len(open) == 0 && len(out.Starts) > 0 && pos < limit {
			out.add(pos, -1)
		}
	}
	for i, r := range ranges {
		if r.End <= r.Start {
			continue
		}
		until(r.Start)
		pos = r.Start
		if len(open) == 0 && (i+1 == len(ranges) || ranges[i+1].Start >= r.End) { // alone, as nearly all are
			out.add(pos, r.Index)
			pos = r.End
			continue
		}
		open.push(r)
	}
	for len(open) > 0 {
		top := open[0]
		if top.End <= pos {
			open.pop()
			continue
		}
		out.add(pos, top.Index)
		pos = top.End
	}
	if len(out.Starts) > 0 {
		out.add(pos, -1)
	}
	tmp.Flat, tmp.open = out, open
	return Flat{slices.Clone(out.Starts), slices.Clone(out.Index)}
}

// scratch is the temporary memory of Flatten.
type scratch struct {
	Flat
	open queue
}

var pool = sync.Pool{New: func() any { return &scratch{} }}

// queue has the range of the highest index on top.
type queue []Range

func (h *queue) push(r Range) {
	*h = append(*h, r)
	list := *h
	for i := len(list) - 1; i > 0; {
		up := (i - 1) / 2
		if list[up].Index >= list[i].Index {
			break
		}
		list[up], list[i] = list[i], list[up]
		i = up
	}
}

func (h *queue) pop() {
	list := *h
	n := len(list) - 1
	list[0] = list[n]
	list = list[:n]
	*h = list
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			return
		}
		if right := down + 1; right < n && list[right].Index > list[down].Index {
			down = right
		}
		if list[i].Index >= list[down].Index {
			return
		}
		list[i], list[down] = list[down], list[i]
		i = down
	}
}
