// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"cmp"
	"slices"
)

const (
	// maxFlow bounds the work of following the values of a function's variables from block
	// to block; beyond it they are valid to the end of their block.
	maxFlow = 1 << 24
	// maxParts bounds the values that one variable has at a time, each for a part of it.
	maxParts = 256
)

// flow finds the values of one variable that are valid at the beginning of each block: the
// values that are valid at the end of every block before it. A value is not valid where a
// loop computes it again: on the path into the loop it was not there yet.
type flow struct {
	blocks  []block
	changes []change
	values  map[int][]int // changes of the variable, by block
	budget  *int

	entry [][]int // by block, if it was reached: the valid changes at its beginning
	seen  []bool
}

// newFlow returns a flow for the changes of one variable.
func newFlow(blocks []block, changes []change, values []int, budget *int) *flow {
	f := &flow{blocks: blocks, changes: changes, values: map[int][]int{}, budget: budget}
	for _, v := range values {
		b := changes[v].block
		f.values[b] = append(f.values[b], v)
	}
	return f
}

// solve iterates until nothing changes. A block that was not reached is ignored at first,
// so that values that are valid around a loop are found; a later round corrects it. It is
// false where that takes too much work.
func (f *flow) solve() bool {
	if *f.budget -= 2 * len(f.blocks); *f.budget < 0 {
		return false
	}
	f.entry, f.seen = make([][]int, len(f.blocks)), make([]bool, len(f.blocks))
	f.seen[0] = true
	for again := true; again; {
		again = false
		for i := range f.blocks {
			entry, reached := f.before(i)
			if *f.budget < 0 {
				return false
			}
			if reached && (!f.seen[i] || !slices.Equal(entry, f.entry[i])) {
				f.entry[i], f.seen[i], again = entry, true, true
			}
		}
	}
	return true
}

// before returns the values at the beginning of a block, as far as they are known. A
// function begins without values.
func (f *flow) before(i int) (entry []int, reached bool) {
	if i == 0 {
		return nil, true
	}
	for _, pred := range f.blocks[i].before {
		*f.budget--
		if !f.seen[pred] {
			continue
		}
		out := f.through(pred, f.entry[pred], nil)
		*f.budget -= len(entry) * len(out)
		if !reached {
			entry, reached = out, true
			continue
		}
		entry = slices.DeleteFunc(entry, func(v int) bool { return !slices.Contains(out, v) })
	}
	return entry, reached
}

// through returns the values at the end of a block. ended, if it is not nil, is called for
// each value that ends within the block or with it, with its range.
func (f *flow) through(i int, entry []int, ended func(v, from, to int)) []int {
	b := &f.blocks[i]
	type active struct{ v, start int }
	now := make([]active, 0, len(entry)+1)
	for _, v := range entry {
		now = append(now, active{v, b.start})
	}
	end := func(a active, to int) {
		if ended != nil {
			ended(a.v, a.start, to)
		}
	}
	for _, v := range f.values[i] {
		c := &f.changes[v]
		*f.budget -= 1 + len(now)
		now = slices.DeleteFunc(now, func(a active) bool {
			if !f.changes[a.v].overlaps(c) {
				return false
			}
			end(a, c.index)
			return true
		})
		if len(now) == maxParts {
			end(now[0], c.index)
			now = now[1:]
		}
		now = append(now, active{v, c.index})
	}
	out := make([]int, 0, len(now))
	for _, a := range now {
		*f.budget--
		end(a, b.end)
		out = append(out, a.v)
	}
	slices.Sort(out)
	return out
}

// span is the instructions for which a value is valid.
type span struct{ v, start, end int }

// spans returns the ranges of instructions for which each value is valid, joined across
// neighbouring blocks.
func (f *flow) spans() []span {
	var list []span
	last := map[[2]int]int{} // by value and end
	add := func(v, start, end int) {
		if start >= end {
			return
		}
		if n, ok := last[[2]int{v, start}]; ok {
			list[n].end = end
			last[[2]int{v, end}] = n
			return
		}
		last[[2]int{v, end}] = len(list)
		list = append(list, span{v, start, end})
	}
	if f.solve() {
		for i := range f.blocks {
			f.through(i, f.entry[i], add)
		}
	} else {
		for i := range f.values {
			f.through(i, nil, add)
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.v, b.v)) })
	return list
}
