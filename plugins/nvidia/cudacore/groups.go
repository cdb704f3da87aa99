// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	lanesOfWarp = 32
	maxFrames   = 1 << 14 // rows of a lane's recorded stack
)

// warpLanes are the lanes of a warp that are valid, by their numbers.
type warpLanes struct {
	warp    uint32
	lanes   [lanesOfWarp]*lane
	callers [lanesOfWarp][]uint64
}

// group are lanes of a warp that are at one place: their PCs and recorded stacks are equal.
type group struct {
	mask    uint32
	lead    uint32 // the lane that stands for the group
	stop    stopCause
	stopped uint32   // the lanes that have the cause of the lead
	others  []uint32 // codes of further exceptions
}

// findLanes finds the lanes of a warp by the numbers in their rows.
func (r *reader) findLanes(i uint32, into *warpLanes) {
	w := &r.warps[i]
	*into = warpLanes{warp: i}
	span := r.rows[w.lanes]
	if w.lanes == 0 {
		span = rows{}
	}
	for j := span.first; j < span.first+span.count; j++ {
		l := &r.lanes[j]
		switch {
		case l.number >= lanesOfWarp:
			r.problems.add("section %d (.cudbg.lntbl) has a lane %d, expected a number below %d: it is left out", w.lanes, l.number, lanesOfWarp)
		case w.valid>>l.number&1 == 0: // a lane that does not exist, or has exited
		case into.lanes[l.number] != nil:
			r.problems.add("section %d (.cudbg.lntbl) has lane %d more than once: the first is used", w.lanes, l.number)
		default:
			into.lanes[l.number] = l
		}
	}
	if missing := w.valid &^ into.mask(); missing != 0 {
		r.problems.add("%s has no row for its lanes %#x (.cudbg.lntbl), which are valid: they are left out", r.warpName(i), missing)
	}
}

// mask are the lanes that were found.
func (w *warpLanes) mask() (mask uint32) {
	for i, l := range w.lanes {
		if l != nil {
			mask |= 1 << i
		}
	}
	return mask
}

// groups puts the lanes of a warp into groups: that of an exception first, then by their
// lowest lanes.
func (r *reader) groups(w *warpLanes) []group {
	var list []group
	for i, l := range w.lanes {
		if l == nil {
			continue
		}
		at := slices.IndexFunc(list, func(g group) bool {
			lowest := bits.TrailingZeros32(g.mask)
			return w.lanes[lowest].pc == l.pc && slices.Equal(w.callers[lowest], w.callers[i])
		})
		if at < 0 {
			at = len(list)
			list = append(list, group{lead: uint32(i)}) //nolint:gosec // a lane
		}
		list[at].mask |= 1 << i
	}
	for i := range list {
		r.findStop(w, &list[i])
	}
	slices.SortStableFunc(list, func(a, b group) int { return int(b.stop.rank()) - int(a.stop.rank()) })
	return list
}

// framesOf returns the return addresses of a recorded stack, innermost first. Rows of one
// level are one call, and a last address of 0 is none.
func framesOf(data []byte, size int) []uint64 {
	type frame struct {
		address uint64
		level   uint32
	}
	var list []frame
	for ; len(data) >= size; data = data[size:] {
		list = append(list, frame{binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint32(data[16:])})
	}
	slices.SortStableFunc(list, func(a, b frame) int { return int(int64(a.level) - int64(b.level)) })
	var callers []uint64
	for i, f := range list {
		if i == 0 || f.level != list[i-1].level {
			callers = append(callers, f.address)
		}
	}
	for len(callers) > 0 && callers[len(callers)-1] == 0 {
		callers = callers[:len(callers)-1]
	}
	return callers
}
