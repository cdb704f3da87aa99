// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
)

// unitRange is a range of addresses that a unit describes.
type unitRange struct {
	span
	maxEnd uint64 // the largest end up to here
	unit   uint64 // the offset of its header
}

// unitMap finds the units of an address.
type unitMap struct {
	file   *file
	ranges []unitRange // by start; of equal ones, by descending offset of the unit
	// isComplete is set where the units themselves were read, not only tables about them.
	isComplete bool
}

// Bounds on the search for the unit of an address where ranges overlap: how many units that
// claim it are tried, unless a caller wants others, and how many ranges are skipped.
const (
	maxCandidates = 8
	maxSteps      = 1 << 14
)

// candidates calls yield with at most limit units that claim an address, first the one
// whose range begins nearest, until it returns false.
func (m *unitMap) candidates(address uint64, limit int, yield func(*unit) bool) {
	f, list := m.file, m.ranges
	i := sort.Search(len(list), func(i int) bool { return list[i].start > address })
	seen := 0
	for steps := 0; i > 0 && list[i-1].maxEnd > address && seen < limit && steps < maxSteps; steps++ {
		i--
		if !list[i].holds(address) {
			continue
		}
		seen++
		// A table that was believed so far may name an invalid unit.
		if u := f.unitAt(list[i].unit); u != nil && u.offset == list[i].unit && !u.isType() && !yield(u) {
			return
		}
	}
}

func (f *file) newUnitMap(ranges []unitRange, complete bool) *unitMap {
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
	return &unitMap{f, slices.Clip(ranges), complete}
}

// mapOf is newUnitMap for a file that keeps the map.
func (f *file) mapOf(ranges []unitRange, complete bool) *unitMap {
	f.addKept(sizeOf[unitRange](len(ranges)))
	return f.newUnitMap(ranges, complete)
}

// maps calls f with maps of units of the file that has an address, the cheapest first, until it has found the
// unit of the address. It returns the error of the last call.
func (r *Reader) maps(address uint64, f func(m *unitMap) (isFound bool, err error)) error {
	from := r.fileAt(address)
	if from == nil {
		return nil
	}
	for _, next := range []struct {
		m    *lazy[*unitMap]
		make func() (*unitMap, error)
	}{{&from.early, from.earlyMap}, {&from.quick, from.quickMap}, {&from.whole, from.wholeMap}} {
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

// earlyMap is .debug_aranges unchecked, where .debug_info is unpacked on demand: only up to
// the unit that describes an address. nil: there is no such table.
func (f *file) earlyMap() (*unitMap, error) {
	if f.rest.info != nil {
		if tables := f.arangesRanges(false); len(tables) > 0 {
			return f.mapOf(tables, false), nil
		}
	}
	return nil, nil
}

// quickMap takes the units' ranges from an index of the file, and reads only the units that
// no index has. An index is believed as far as its units confirm it: an address that it
// does not have, or that the unit it names does not describe, is looked up in wholeMap.
func (f *file) quickMap() (*unitMap, error) {
	tables := f.gdbIndexRanges()
	if tables == nil {
		tables = f.arangesRanges(true)
	}
	if tables == nil {
		return f.whole.get(f.wholeMap)
	}
	f.unpackUnits()
	units := f.everyUnit()
	known := make(map[uint64]bool, len(units))
	for i := range tables {
		known[tables[i].unit] = true
	}
	units = slices.DeleteFunc(slices.Clone(units), func(u *unit) bool { return known[u.offset] })
	budget := f.rangeBudget()
	return f.mapOf(f.rangesOf(tables, units, &budget), false), nil
}

// arangesRanges are the ranges in .debug_aranges; nil where no table is usable. With
// isChecked each must have a unit. Ranges of an object file are not used: they are not of functions.
func (f *file) arangesRanges(isChecked bool) []unitRange {
	if f.isPart {
		return nil
	}
	var list []unitRange
	ok := f.readAranges(isChecked, func(off uint64, s span) {
		list = append(list, unitRange{span: s, unit: off})
	})
	if !ok {
		return nil
	}
	return list
}

func (f *file) rangeBudget() int64 {
	return int64(len(f.debugRanges)+len(f.rnglists)) + 1<<16
}

// wholeMap reads the addresses of every unit. Further ranges of .debug_aranges are added: a
// unit of DWARF 2 has no DW_AT_ranges, and its one range may leave code out.
func (f *file) wholeMap() (*unitMap, error) {
	f.unpackUnits()
	budget := f.rangeBudget()
	return f.mapOf(f.rangesOf(f.arangesRanges(true), f.everyUnit(), &budget), true), nil
}

// unpackUnits unpacks the parts of sections for the first entries of all units, several
// sections at once. Failures are reported where the parts are needed.
func (f *file) unpackUnits() {
	var workers sync.WaitGroup
	for _, rest := range []*object.Contents{f.rest.info, f.rest.abbrev, f.rest.str, f.rest.rnglists, f.rest.debugRanges} {
		if rest != nil && rest.Ready() < uint64(len(rest.Bytes())) {
			workers.Go(func() { _ = rest.Need(uint64(len(rest.Bytes()))) })
		}
	}
	workers.Wait()
}

// openUnits reads the first entries of all units, on all cores. Errors stay with the units:
// open returns them to its callers.
func (r *Reader) openUnits() {
	const part = 64 // units for a worker at a time
	r.main.unpackUnits()
	units := r.everyUnit()
	var next atomic.Int64
	work := func() {
		_ = object.Guard(func() error { // a fault is recorded as such an error, too
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

// rangesOf appends the addresses of units: of each those in its first entry, else the code of its
// functions. Unreadable parts become problems.
func (f *file) rangesOf(ranges []unitRange, units []*unit, budget *int64) []unitRange {
	var root body // most units are not opened for this
	for _, u := range units {
		if u.isType() {
			continue
		}
		list, err := f.spansOf(&root, u, budget)
		if err != nil {
			f.reader.failedUnit(u, err)
			continue
		}
		for _, s := range list {
			ranges = append(ranges, unitRange{span: s, unit: u.offset})
		}
	}
	return ranges
}

// spansOf are the addresses of a unit, for which root is overwritten.
func (f *file) spansOf(root *body, u *unit, budget *int64) ([]span, error) {
	if _, err := u.readRoot(root); err != nil {
		return nil, err
	}
	list, err := root.ownSpans(budget)
	if err != nil || len(list) > 0 || !root.hasChildren || root.tag == dw.TagPartialUnit {
		return list, err
	}
	b, err := u.open()
	if err != nil || b.isSplit() {
		return nil, err
	}
	x, err := b.functions.get(func() (*functions, error) { return b.findFunctions(false) })
	if err != nil {
		return nil, err
	}
	return mergedSpans(&x.where), nil
}

// ownSpans are the addresses in the unit's first entry; none in an object file, where they are of functions that the
// program may have elsewhere.
func (b *body) ownSpans(budget *int64) ([]span, error) {
	if b.file.isPart {
		return nil, nil
	}
	e := extent{low: b.low, high: b.high, ranges: b.rangesValue, hasLow: b.hasLow, hasHigh: b.hasHigh, hasRanges: b.hasRanges}
	list, err := b.spans(nil, &e, budget)
	return mergeSpans(list), err
}

// mergedSpans are the ranges that have an item.
func mergedSpans(flat *ranges.Flat) (list []span) {
	for s := range flat.All() {
		list = append(list, span{s.Start, s.End})
	}
	return mergeSpans(list)
}
