package cfi

import (
	"cmp"
	"slices"
)

// An indexEntry says that PCs from start on, up to the next entry's start or
// to the end of the FDE, have the FDE at offset.
type indexEntry struct {
	start  uint64
	offset uint64
}

func (t *Table) findByIndex(pc uint64, f *FDE) error {
	t.indexOnce.Do(t.buildIndex)
	// The last entry that starts at or before pc.
	lo, hi := 0, len(t.index)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.index[mid].start <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 {
		offset := t.index[lo-1].offset
		if err := t.readFDE(offset, f); err != nil {
			return err
		}
		if f.Start <= pc && pc < f.End {
			return nil
		}
	}
	return t.noFDE(pc)
}

func (t *Table) noFDE(pc uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		return t.errorf(0, ErrNoFDE, "%#x", pc)
	}
	return t.errorf(0, ErrNoFDE, "%#x; the section has %d problems, the first: %v", pc, t.count, t.problems[0])
}

// span is an FDE while the index is built.
type span struct {
	start, end uint64
	offset     uint64
}

func (t *Table) buildIndex() {
	var spans []span
	var f FDE
	t.scan(func(e entry, err error) bool {
		if err == nil && !e.cie {
			err = t.parseFDE(e, &f)
		}
		if err != nil {
			t.problem(err)
		} else if !e.cie && f.live() {
			spans = append(spans, span{f.Start, f.End, e.offset})
		}
		return true
	})
	t.index = flatten(spans)
}

// flatten sorts spans and gives every address to the span that starts last, of
// those the shortest, of those the first in the section; where that one ends,
// the next outer one goes on.
func flatten(spans []span) []indexEntry {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(b.offset, a.offset))
	})
	index := make([]indexEntry, 0, len(spans))
	emit := func(start uint64, s span) {
		if n := len(index); n > 0 && index[n-1].start == start {
			index[n-1].offset = s.offset
			return
		}
		index = append(index, indexEntry{start, s.offset})
	}
	var open []span // those that hold the current address, innermost last
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
