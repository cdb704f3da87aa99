// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"sort"
	"sync"
	"sync/atomic"
)

// unitList is the units of a section, by offset. In a section that is unpacked on demand it
// has the units needed so far.
type unitList struct {
	mu    sync.Mutex
	known atomic.Pointer[knownUnits] // nil: none were read yet
}

// knownUnits are the units up to an offset.
type knownUnits struct {
	list  []*unit
	chunk []unit // memory for the next ones; units do not move
	next  uint64 // offset of the next header
	err   error  // the reason why there are no more
}

// maxUnitChunk is how many units are allocated together at most.
const maxUnitChunk = 256

// allUnits are the units of .debug_info. With an error there are none.
func (f *file) allUnits() ([]*unit, error) {
	x := f.unitsUpTo(uint64(len(f.info)))
	if x.err != nil {
		return nil, x.err
	}
	return x.list, nil
}

// everyUnit is allUnits for callers that got the error before.
func (f *file) everyUnit() []*unit {
	list, _ := f.allUnits()
	return list
}

// unitAt returns the unit of .debug_info that contains an offset; nil where none does.
func (f *file) unitAt(off uint64) *unit {
	if off >= uint64(len(f.info)) {
		return nil
	}
	return unitIn(f.unitsUpTo(off+1).list, off)
}

// unitsUpTo reads the headers before an offset.
func (f *file) unitsUpTo(end uint64) *knownUnits {
	l := &f.units
	if x := l.known.Load(); x != nil && (x.next >= end || x.err != nil) {
		return x
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.known.Load()
	if old == nil {
		old = &knownUnits{}
	}
	if old.next >= end || old.err != nil {
		return old
	}
	x := *old
	if x.err = f.rest.info.Need(end); x.err == nil {
		x.read(f, f.info, end, false)
	}
	if x.err != nil && f.rest.info != nil && f.reader != nil {
		f.reader.problem(x.err.Error()) // otherwise the opener of the file gets it
	}
	l.known.Store(&x)
	return &x
}

// maxUnitHeader is the size of the longest header: of a type unit with offsets of 8 bytes.
const maxUnitHeader = 40

// read reads the headers before end.
func (x *knownUnits) read(f *file, info []byte, end uint64, types bool) {
	for x.next < end {
		u := unitHeader{file: f, isInTypes: types}
		if !types {
			if x.err = f.rest.info.Need(x.next + maxUnitHeader); x.err != nil {
				return
			}
		}
		var next uint64
		if next, x.err = u.readHeader(info, x.next); x.err != nil {
			return
		}
		if x.next = next; u.end == 0 {
			continue
		}
		if len(x.chunk) == cap(x.chunk) {
			x.chunk = make([]unit, 0, min(max(2*len(x.list), 8), maxUnitChunk))
			f.addKept(sizeOf[unit](cap(x.chunk)) + sizeOf[*unit](cap(x.chunk)))
		}
		x.chunk = append(x.chunk, unit{unitHeader: u})
		x.list = append(x.list, &x.chunk[len(x.chunk)-1])
	}
}

// typeUnits reads the headers of .debug_types.
func (f *file) typeUnits(data []byte) ([]*unit, error) {
	var x knownUnits
	if x.read(f, data, uint64(len(data)), true); x.err != nil {
		return nil, x.err
	}
	return x.list, nil
}

// unitIn returns the unit among sorted ones that contains an offset; nil where none does.
func unitIn(units []*unit, off uint64) *unit {
	i := sort.Search(len(units), func(i int) bool { return units[i].offset > off })
	if i == 0 || off >= units[i-1].end {
		return nil
	}
	return units[i-1]
}
