// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// LaneState is the state of a lane in a frame.
type LaneState string

// The states.
const (
	LaneActive     LaneState = "active"       // it executes at its thread's place
	LaneInactive   LaneState = "inactive"     // it is in the function, and waits elsewhere in it
	LaneNotOnEntry LaneState = "not-on-entry" // it did not call the function: the frame is not its own
	LaneUnknown    LaneState = "unknown"
)

// LaneGroup is the lanes of a frame that are in one state at one place.
type LaneGroup struct {
	Lanes LaneSet
	State LaneState
	// PC is the place of the lanes: the frame's own, or the logical one that DW_AT_LLVM_lane_pc
	// gives a waiting lane. HasPC is false where nothing describes it.
	PC    uint64
	HasPC bool
	// ModuleOffset is PC as an ELF virtual address of its module.
	ModuleOffset uint64
	// Symbols are the functions at PC, innermost first; see Frame.Symbols.
	Symbols []Symbol
	// Locals are the variables at PC, for lanes that wait there; see FrameDetails. Executing
	// lanes have the frame's.
	Locals [][]FrameVariable
}

// LaneSet is a set of lanes, lane 0 in the lowest bit of the first word.
type LaneSet []uint64

// Has reports whether a lane is in the set.
func (s LaneSet) Has(lane uint32) bool {
	return int(lane/64) < len(s) && s[lane/64]>>(lane%64)&1 != 0
}

// Len returns how many lanes are in the set.
func (s LaneSet) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// All iterates over the lanes of the set, the lowest first.
func (s LaneSet) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// Add puts a lane into a set that is large enough for it.
func (s LaneSet) Add(lane uint32) { s[lane/64] |= 1 << (lane % 64) }

// NewLaneSet returns an empty set that is large enough for lanes lanes.
func NewLaneSet(lanes uint32) LaneSet { return make(LaneSet, (lanes+63)/64) }

// String lists the lanes as ranges: "0-3,7".
func (s LaneSet) String() string {
	var b strings.Builder
	for lane, end := uint32(0), uint32(len(s)*64); lane < end; lane++ {
		if !s.Has(lane) {
			continue
		}
		first := lane
		for s.Has(lane + 1) {
			lane++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(uint64(first), 10))
		if lane > first {
			b.WriteByte('-')
			b.WriteString(strconv.FormatUint(uint64(lane), 10))
		}
	}
	return b.String()
}

// LaneGroupOf returns the group that has a lane; nil where none has.
func LaneGroupOf(groups []LaneGroup, lane uint32) *LaneGroup {
	for i := range groups {
		if groups[i].Lanes.Has(lane) {
			return &groups[i]
		}
	}
	return nil
}
