// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
)

// A unitRange says that a unit describes some addresses.
type unitRange struct {
	span
	maxEnd uint64 // the largest end up to here
	unit   uint64 // the offset of its header
}

// A unitMap finds the units of an address.
type unitMap struct {
	ranges []unitRange // by start; of equal ones, by offset of the unit, the last one first
	// isComplete says that the units themselves were asked, not only tables about them.
	isComplete bool
}

// Bounds on the search for the unit of an address where ranges overlap: how many
// units that claim it are looked at, unless somebody asks for others, and how many ranges
// are passed over.
const (
	maxCandidates = 8
	maxSteps      = 1 << 14
)

// candidates calls yield with at most so many units that claim an address, the one whose
// range begins nearest first, until it returns false.
func (f *file) candidates(m *unitMap, address uint64, limit int, yield func(*unit) bool) {
	list := m.ranges
	i := sort.Search(len(list), func(i int) bool { return list[i].start > address })
	seen := 0
	for steps := 0; i > 0 && list[i-1].maxEnd > address && seen < limit && steps < maxSteps; steps++ {
		i--
		if !list[i].holds(address) {
			continue
		}
		seen++
		// A table that was believed so far may name what is no unit.
		if u := f.unitAt(list[i].unit); u != nil && u.offset == list[i].unit && !u.isType() && !yield(u) {
			return
		}
	}
}

func newUnitMap(ranges []unitRange, complete bool) *unitMap {
	slices.SortStableFunc(ranges, func(a, b unitRange) int {
		if a.start != b.start {
			return compare(a.start, b.start)
		}
		return compare(b.unit, a.unit)
	})
	var end uint64
	for i := range ranges {
		end = max(end, ranges[i].end)
		ranges[i].maxEnd = end
	}
	return &unitMap{slices.Clip(ranges), complete}
}

// mapOf is newUnitMap of the units of a Reader, which keeps it.
func (r *Reader) mapOf(ranges []unitRange, complete bool) *unitMap {
	r.main.keeps(sizeOf[unitRange](len(ranges)))
	return newUnitMap(ranges, complete)
}

// maps calls f with what finds the units of an address, as long as that is not found:
// first what reads the least. It returns the error that the last one gave.
func (r *Reader) maps(f func(m *unitMap) (isFound bool, err error)) error {
	for _, next := range []struct {
		m    *lazy[*unitMap]
		make func() (*unitMap, error)
	}{{&r.early, r.earlyMap}, {&r.quick, r.quickMap}, {&r.whole, r.wholeMap}} {
		m, err := next.m.get(next.make)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		isFound, err := f(m)
		if isFound {
			return nil
		}
		if m.isComplete {
			return err
		}
	}
	return nil
}

// earlyMap is .debug_aranges as it is, where .debug_info is unpacked by need: no more
// of it than up to the unit that describes an address. nil: there is no such table.
func (r *Reader) earlyMap() (*unitMap, error) {
	if f := r.main; f.rest.info != nil {
		if tables := f.arangesRanges(false); len(tables) > 0 {
			return r.mapOf(tables, false), nil
		}
	}
	return nil, nil
}

// quickMap takes the units' ranges from an index of the file, and asks those
// units that no index has. An index is believed as far as what it leads to is
// confirmed: an address that it does not have, or that the unit it names does
// not describe, is looked for in wholeMap.
func (r *Reader) quickMap() (*unitMap, error) {
	f := r.main
	tables := f.gdbIndexRanges()
	if tables == nil {
		tables = f.arangesRanges(true)
	}
	if tables == nil {
		return r.whole.get(r.wholeMap)
	}
	f.unpackUnits()
	units := f.everyUnit()
	known := make(map[uint64]bool, len(units))
	for i := range tables {
		known[tables[i].unit] = true
	}
	budget := r.rangeBudget()
	for _, u := range units {
		if !known[u.offset] {
			tables = append(tables, r.rangesOf(u, &budget)...)
		}
	}
	return r.mapOf(tables, false), nil
}

// arangesRanges are the ranges in .debug_aranges; nil where there is no table that
// can be used. isChecked says that each must be of a unit.
func (f *file) arangesRanges(isChecked bool) []unitRange {
	var list []unitRange
	ok := f.readAranges(isChecked, func(off uint64, s span) {
		list = append(list, unitRange{span: s, unit: off})
	})
	if !ok {
		return nil
	}
	return list
}

func (r *Reader) rangeBudget() int64 {
	return int64(len(r.main.debugRanges)+len(r.main.rnglists)) + 1<<16
}

// wholeMap asks every unit which addresses it describes. What .debug_aranges has
// beside that is added: a unit of DWARF 2 has no DW_AT_ranges, and its one range
// may leave code out.
func (r *Reader) wholeMap() (*unitMap, error) {
	r.openUnits()
	budget := r.rangeBudget()
	list := r.main.arangesRanges(true)
	for _, u := range r.main.everyUnit() {
		list = append(list, r.rangesOf(u, &budget)...)
	}
	return r.mapOf(list, true), nil
}

// unpackUnits unpacks what the first entries of all units need, several sections at
// once. What fails is told where it is needed.
func (f *file) unpackUnits() {
	var workers sync.WaitGroup
	for _, rest := range []*object.Contents{f.rest.info, f.rest.abbrev, f.rest.str, f.rest.rnglists, f.rest.debugRanges} {
		if rest != nil && rest.Ready() < uint64(len(rest.Bytes())) {
			workers.Go(func() { _ = rest.Need(uint64(len(rest.Bytes()))) })
		}
	}
	workers.Wait()
}

// openUnits reads the first entries of all units, on all cores. Errors are kept
// with the units: open returns them to its callers.
func (r *Reader) openUnits() {
	const part = 64 // units that a worker takes at a time
	r.main.unpackUnits()
	units := r.main.everyUnit()
	var next atomic.Int64
	work := func() {
		_ = object.Guard(func() error { // a fault is kept as such an error, too
			for {
				end := next.Add(part)
				if end-part >= int64(len(units)) {
					return nil
				}
				for i := end - part; i < min(end, int64(len(units))); i++ {
					_, _ = units[i].open()
				}
			}
		})
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 1+len(units)/part) {
		workers.Go(work)
	}
	workers.Wait()
}

// rangesOf are the addresses that a unit's first entry says, else those of its
// functions. What cannot be read becomes a problem.
func (r *Reader) rangesOf(u *unit, budget *int64) []unitRange {
	if u.isType() {
		return nil
	}
	b, err := u.open()
	var list []span
	if err == nil {
		list, err = b.ownSpans(budget)
	}
	if err == nil && len(list) == 0 && b.hasChildren && b.tag != dw.TagPartialUnit && !b.isSplit() {
		var x *functions
		if x, err = b.functions.get(func() (*functions, error) { return b.findFunctions(false) }); err == nil {
			list = x.where.spans()
		}
	}
	if err != nil {
		r.failedUnit(u, err)
		return nil
	}
	ranges := make([]unitRange, len(list))
	for i, s := range list {
		ranges[i] = unitRange{span: s, unit: u.offset}
	}
	return ranges
}

// ownSpans are the addresses that the unit's first entry says.
func (b *body) ownSpans(budget *int64) ([]span, error) {
	e := extent{low: b.low, high: b.high, ranges: b.rangesValue, hasLow: b.hasLow, hasHigh: b.hasHigh, hasRanges: b.hasRanges}
	list, err := b.spans(nil, &e, budget)
	return mergeSpans(list), err
}

// spans are where something is.
func (s *segments) spans() (list []span) {
	for i, index := range s.index {
		if index >= 0 && i+1 < len(s.starts) {
			list = append(list, span{s.starts[i], s.starts[i+1]})
		}
	}
	return mergeSpans(list)
}
