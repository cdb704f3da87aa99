// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/ranges"
)

// record is the place of the description of a range of code. Its text begins at an offset
// of the file, and the lines that belong to it end length bytes later; both are in one
// word.
type record struct {
	start, end uint64
	where      uint64 // offset << lengthBits | length
}

// The bounds of a record: 1 TB of a file, 16 MB of a function. The largest function of a
// browser has 2 MB.
const (
	lengthBits = 24
	maxLength  = 1<<lengthBits - 1
	maxFile    = 1 << (64 - lengthBits)
)

func (r *record) offset() uint64 { return r.where >> lengthBits }
func (r *record) length() uint64 { return r.where & maxLength }

// reach extends the record to an offset. Lines more than maxLength behind its start are not
// read; ok is false.
func (r *record) reach(end uint64) (ok bool) {
	length := end - r.offset()
	if length > maxLength {
		return false
	}
	r.where = r.where&^maxLength | length
	return true
}

// flatten makes ranges disjoint and sorted. Where several cover an address the one that
// begins last has it; of several that begin together the shortest; of equal ones the first
// of the file. (Breakpad's own reader keeps whichever range came first, and drops the
// ranges that overlap it, with all of their code.) Empty ranges cover nothing and are
// dropped.
func flatten(list []record) []record {
	list = slices.DeleteFunc(list, func(r record) bool { return r.start >= r.end })
	inOrder := func(a, b record) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(b.where, a.where))
	}
	if !slices.IsSortedFunc(list, inOrder) {
		slices.SortFunc(list, inOrder)
	}
	disjoint := true
	for i := 1; i < len(list) && disjoint; i++ {
		disjoint = list[i-1].end <= list[i].start
	}
	if disjoint {
		return slices.Clip(list)
	}
	overlapping := make([]ranges.Range, len(list))
	for i, r := range list {
		overlapping[i] = ranges.Range{Start: r.start, End: r.end, Index: int32(i)} //nolint:gosec // a file has fewer lines
	}
	flat := ranges.Flatten(overlapping)
	out := make([]record, 0, len(list))
	for r := range flat.All() {
		out = append(out, record{r.Start, r.End, list[r.Index].where})
	}
	return slices.Clip(out)
}

// find returns the range that covers an address; nil when there is none.
func find(list []record, address uint64) *record {
	if r := before(list, address); r != nil && address < r.end {
		return r
	}
	return nil
}

// before returns the last range that begins at or below an address.
func before(list []record, address uint64) *record {
	i, found := slices.BinarySearchFunc(list, address, func(r record, a uint64) int { return cmp.Compare(r.start, a) })
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	return &list[i]
}

// numbered is a FILE or INLINE_ORIGIN record.
type numbered struct {
	number uint32
	length uint32 // of the text after the number
	offset uint64 // of the text
}

// byNumber sorts records; of several with one number it keeps the first of the file.
func byNumber(list []numbered) []numbered {
	compare := func(a, b numbered) int { return cmp.Compare(a.number, b.number) }
	if !slices.IsSortedFunc(list, compare) {
		slices.SortStableFunc(list, compare)
	}
	return slices.Clip(slices.CompactFunc(list, func(a, b numbered) bool { return a.number == b.number }))
}

// text returns the text of a numbered record; ok is false when there is none.
func (f *File) text(list []numbered, number int) (s []byte, ok bool) {
	if number < 0 {
		return nil, false
	}
	i, found := slices.BinarySearchFunc(list, uint32(number), func(n numbered, want uint32) int { return cmp.Compare(n.number, want) })
	if !found {
		return nil, false
	}
	n := &list[i]
	return f.data[n.offset : n.offset+uint64(n.length)], true
}
