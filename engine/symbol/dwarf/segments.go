// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"slices"
	"sync"
)

// segment is a range of a numbered item.
type segment struct {
	span
	index int32
}

// segments have the innermost item at each address. From starts[i] up to starts[i+1] it is
// index[i]; -1: none.
type segments struct {
	starts []uint64
	index  []int32
}

// indexAt returns the innermost item at an address, or -1.
func (s *segments) indexAt(address uint64) int {
	lo, hi := 0, len(s.starts)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); s.starts[mid] > address {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == 0 {
		return -1
	}
	return int(s.index[lo-1])
}

func (s *segments) add(start uint64, index int32) {
	if n := len(s.starts); n > 0 {
		if s.starts[n-1] == start {
			if n > 1 && s.index[n-2] == index {
				s.starts, s.index = s.starts[:n-1], s.index[:n-1]
				return
			}
			s.index[n-1] = index
			return
		}
		if s.index[n-1] == index {
			return
		}
	}
	s.starts = append(s.starts, start)
	s.index = append(s.index, index)
}

// flatten cuts ranges, which come in the order of their entries, into disjoint segments.
// Where several ranges contain an address the one of the highest index wins: entries come
// before those inside them. It changes the order of ranges.
func flatten(ranges []segment) (out segments) {
	if len(ranges) == 0 {
		return out
	}
	slices.SortFunc(ranges, func(a, b segment) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Compare(a.index, b.index)
	})
	tmp := flattenPool.Get().(*flattenScratch)
	defer flattenPool.Put(tmp)
	out.starts, out.index = tmp.starts[:0], tmp.index[:0]
	open := tmp.open[:0]
	pos := uint64(0)
	// until writes the segments of the open ranges from pos to limit.
	until := func(limit uint64) {
		for len(open) > 0 && pos < limit {
			top := open[0]
			if top.end <= pos {
				open.pop()
				continue
			}
			out.add(pos, top.index)
			pos = min(top.end, limit)
		}
		if len(open) == 0 && len(out.starts) > 0 && pos < limit {
			out.add(pos, -1)
		}
	}
	for _, s := range ranges {
		if s.end <= s.start {
			continue
		}
		until(s.start)
		pos = s.start
		open.push(s)
	}
	for len(open) > 0 {
		top := open[0]
		if top.end <= pos {
			open.pop()
			continue
		}
		out.add(pos, top.index)
		pos = top.end
	}
	if len(out.starts) > 0 {
		out.add(pos, -1)
	}
	tmp.starts, tmp.index, tmp.open = out.starts, out.index, open
	return segments{slices.Clone(out.starts), slices.Clone(out.index)}
}

// flattenScratch is the temporary memory for flatten.
type flattenScratch struct {
	starts []uint64
	index  []int32
	open   segmentHeap
}

var flattenPool = sync.Pool{New: func() any { return &flattenScratch{} }}

// segmentHeap has the segment of the highest index on top.
type segmentHeap []segment

func (h *segmentHeap) push(s segment) {
	*h = append(*h, s)
	list := *h
	for i := len(list) - 1; i > 0; {
		up := (i - 1) / 2
		if list[up].index >= list[i].index {
			break
		}
		list[up], list[i] = list[i], list[up]
		i = up
	}
}

func (h *segmentHeap) pop() {
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
		if right := down + 1; right < n && list[right].index > list[down].index {
			down = right
		}
		if list[i].index >= list[down].index {
			return
		}
		list[i], list[down] = list[down], list[i]
		i = down
	}
}
