// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/internal/ehpe"
	"github.com/unwindd/unwindd/internal/leb128"
)

// indexEntry maps PCs from start on, up to the next entry's start or to
// the end of the FDE, to the FDE at offset. size is the length of that
// range, at most math.MaxUint32.
type indexEntry struct {
	start  uint64
	size   uint32
	offset uint32
}

// index has the FDEs of one code section, or of all code.
type index struct {
	code    uint32 // 0 but in a relocatable object
	entries []indexEntry
}

// findByIndex looks pc up in all code.
func (t *Table) findByIndex(pc uint64, f *FDE) error {
	t.indexOnce.Do(t.buildIndex)
	if len(t.indexes) == 1 {
		if found, err := t.findIn(&t.indexes[0], pc, f); found || err != nil {
			return err
		}
		return t.noFDE(pc)
	}
	var other FDE
	n := 0
	for i := range t.indexes {
		found, err := t.findIn(&t.indexes[i], pc, &other)
		if err != nil {
			return err
		}
		if found {
			*f = other
			n++
		}
	}
	switch n {
	case 0:
		return t.noFDE(pc)
	case 1:
		return nil
	}
	return t.errorf(f.Offset, ErrAmbiguous, "%#x is in %d of them", pc, n)
}

func (t *Table) findIn(x *index, pc uint64, f *FDE) (bool, error) {
	// The last entry that starts at or before pc.
	entries := x.entries
	lo, hi := 0, len(entries)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if entries[mid].start <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return false, nil
	}
	s := &entries[lo-1]
	if s.size != math.MaxUint32 && pc-s.start >= uint64(s.size) {
		return false, nil
	}
	if err := t.readFDE(uint64(s.offset), f); err != nil {
		return false, err
	}
	return f.Start <= pc && pc < f.End, nil
}

func (t *Table) noFDE(pc uint64) error { return t.errorf(0, ErrNoFDE, "%s", t.without(pc)) }

// buildIndex reads the start of every entry once. Linkers leave most FDEs in the order of
// their code: a part in order already is not sorted.
func (t *Table) buildIndex() {
	x := &index{}
	var codes map[uint32]*index
	if t.section.Code != nil {
		codes = make(map[uint32]*index)
	}
	// Compilers need about 50 bytes an FDE.
	x.entries = make([]indexEntry, 0, len(t.section.Data)/48+1)
	var f FDE
	var c *CIE
	read := false
	defer func() {
		if !read { // the file was cut meanwhile, and this is not tried again
			t.problem(t.errorf(0, ErrTruncated, "the section could not be read to its end"))
		}
	}()
	t.scan(func(e entry, err error) bool {
		switch {
		case err != nil:
			t.problem(err)
			return true
		case e.cie:
			return true
		case e.offset > math.MaxUint32:
			t.problem(t.errorf(e.offset, ErrLimit, "FDEs from here on are not found by address"))
			return false
		}
		// The CIE is nearly always the same as of the FDE before.
		if c != nil && c.Offset == e.cieOffset {
			if start, size, ok := t.quickBounds(c, e.pos, e.end); ok && size < math.MaxUint32 && t.hasQuickData(c, e) {
				if size != 0 {
					x.entries = append(x.entries, indexEntry{start, uint32(size), uint32(e.offset)})
				}
				return true
			}
		}
		if err := t.parseFDE(e, &f); err != nil {
			t.problem(err)
			return true
		}
		c = f.CIE
		if !f.isLive() {
			return true
		}
		copied := x
		if codes != nil {
			copied = indexOf(codes, f.Code)
		}
		copied.entries = append(copied.entries, indexEntry{f.Start, uint32(min(f.End-f.Start, math.MaxUint32)), uint32(e.offset)})
		return true
	})
	read = true
	if codes == nil {
		codes = map[uint32]*index{0: x}
	}
	for _, x := range codes {
		t.finish(x)
		t.indexes = append(t.indexes, *x)
	}
}

// indexOf returns the index of a code section, a new one where none of its FDEs was
// read before.
func indexOf(codes map[uint32]*index, code uint32) *index {
	x := codes[code]
	if x == nil {
		x = &index{code: code}
		codes[code] = x
	}
	return x
}

// hasQuickData reports whether the augmentation data of an FDE can be read, as far as its
// length and pointers show without reading it.
func (t *Table) hasQuickData(c *CIE, e entry) bool {
	if !c.sized {
		return true
	}
	pos := e.pos + 2*c.layout.size
	if pos >= e.end {
		return false
	}
	n := int(t.section.Data[pos])
	return n < leb128.More && n < e.end-pos && (n == 0 || c.LSDAEncoding == ehpe.Omit || c.layout.lsda != 0 && c.layout.lsda <= n)
}

// finish sorts the entries, and gives every address to one of them.
func (t *Table) finish(x *index) {
	sorted, apart := true, true
	for i := 1; i < len(x.entries); i++ {
		a, b := &x.entries[i-1], &x.entries[i]
		if a.start > b.start {
			sorted = false
			break
		}
		apart = apart && a.size != math.MaxUint32 && uint64(a.size) <= b.start-a.start
	}
	if !sorted {
		x.entries = sortByStart(x.entries)
		for i := 1; i < len(x.entries) && apart; i++ {
			a, b := &x.entries[i-1], &x.entries[i]
			apart = a.size != math.MaxUint32 && uint64(a.size) <= b.start-a.start
		}
	}
	if !apart {
		x.entries = t.flatten(x.entries)
	}
	if n := len(x.entries); cap(x.entries)-n > n/8 {
		x.entries = slices.Clone(x.entries)
	}
}

// sortByStart sorts by start and keeps the order of equal ones. It takes the
// digits of the starts from the last to the first, as many as they differ by.
func sortByStart(entries []indexEntry) []indexEntry {
	const digit = 11
	least, most := entries[0].start, entries[0].start
	for i := range entries {
		least, most = min(least, entries[i].start), max(most, entries[i].start)
	}
	passes := (bits.Len64(most-least) + digit - 1) / digit
	if len(entries) < 1<<digit/4 || passes > 4 {
		slices.SortStableFunc(entries, func(a, b indexEntry) int { return cmp.Compare(a.start, b.start) })
		return entries
	}
	var counts [4][1 << digit]uint32
	for i := range entries {
		v := entries[i].start - least
		for p := range passes {
			counts[p][v&(1<<digit-1)]++
			v >>= digit
		}
	}
	source, target := entries, make([]indexEntry, len(entries))
	for p := range passes {
		n := &counts[p]
		pos := uint32(0)
		for d, count := range n {
			n[d] = pos
			pos += count
		}
		shift := p * digit
		for i := range source {
			d := (source[i].start - least) >> shift & (1<<digit - 1)
			target[n[d]] = source[i]
			n[d]++
		}
		source, target = target, source
	}
	return source
}

// span is an FDE while addresses are shared out.
type span struct {
	start, end uint64
	offset     uint32
}

// flatten gives every address to one FDE: see share.
func (t *Table) flatten(entries []indexEntry) []indexEntry {
	spans := make([]span, len(entries))
	var f FDE
	for i, s := range entries {
		spans[i] = span{s.start, s.start + uint64(s.size), s.offset}
		if s.size == math.MaxUint32 && t.readFDE(uint64(s.offset), &f) == nil {
			spans[i].end = f.End
		}
	}
	return share(spans)
}

// share gives every address to the span that starts last, of several the
// shortest, of equal ones the first in the section; where that one ends, the next
// outer one goes on.
func share(spans []span) []indexEntry {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(b.offset, a.offset))
	})
	index := make([]indexEntry, 0, len(spans))
	emit := func(start uint64, s span) {
		size := uint32(min(s.end-start, math.MaxUint32))
		if n := len(index); n > 0 {
			last := &index[n-1]
			if last.start == start {
				last.offset, last.size = s.offset, size
				return
			}
			last.size = uint32(min(uint64(last.size), start-last.start))
		}
		index = append(index, indexEntry{start, size, s.offset})
	}
	var open []span // around the current address, innermost last
	// closeTo ends the open spans that end at or before an address.
	closeTo := func(address uint64, last bool) {
		for len(open) > 0 && (last || open[len(open)-1].end <= address) {
			end := open[len(open)-1].end
			for len(open) > 0 && open[len(open)-1].end <= end {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && (last || end < address) {
				emit(end, open[len(open)-1])
			}
		}
	}
	for _, s := range spans {
		closeTo(s.start, false)
		open = append(open, s)
		emit(s.start, s)
	}
	closeTo(0, true)
	return index
}
