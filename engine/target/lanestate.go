// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// LaneState returns the state of a lane that has registers and memory of its own; nil where the
// target has none of it.
func LaneState(th *trace.Thread, lane uint32) *sdk.LaneState {
	i, ok := slices.BinarySearchFunc(th.LaneStates, lane, func(l sdk.LaneState, lane uint32) int { return cmp.Compare(l.Lane, lane) })
	if !ok {
		return nil
	}
	return &th.LaneStates[i]
}

// IsOfLanes reports whether lanes of a thread have instances of an address space of their own.
func IsOfLanes(th *trace.Thread, space locexpr.AddressSpace) bool {
	return slices.ContainsFunc(th.LaneStates, func(l sdk.LaneState) bool {
		return slices.ContainsFunc(l.Memory, func(m sdk.SpaceMemory) bool { return m.Space == space })
	})
}

// OfLane returns a thread as one of its lanes has it: its registers, its saved registers and its
// memory are the lane's, and Lead is the lane. A register and an address space that no lane has
// of its own are the thread's. It is the thread itself where its lead is meant, or where lanes
// have no states of their own; nil where the target lacks the lane's state.
func OfLane(th *trace.Thread, lane uint32) *trace.Thread {
	if len(th.LaneStates) == 0 || lane == th.Lead {
		return th
	}
	state := LaneState(th, lane)
	if state == nil {
		return nil
	}
	own := *th
	own.Lead = lane
	var ranges []registerRange // of lanes
	var spaces []locexpr.AddressSpace
	for i := range th.LaneStates {
		l := &th.LaneStates[i]
		for _, number := range l.Registers.Numbers {
			ranges = append(ranges, registerRange{uint64(number), uint64(number) + 1})
		}
		for _, s := range l.Saved {
			ranges = append(ranges, registerRange{uint64(s.First), uint64(s.First) + uint64(s.Count)})
		}
		for _, m := range l.Memory {
			spaces = append(spaces, m.Space)
		}
	}
	ranges = disjoint(ranges)
	own.Registers = state.Registers.Clone()
	for _, number := range th.Registers.Numbers {
		if !contains(ranges, uint64(number)) {
			value, _ := th.Registers.Get(number)
			own.Registers.Set(number, value)
		}
	}
	own.Saved = append(slices.Clone(state.Saved), savedOutside(th.Saved, ranges)...)
	own.Memory = slices.Clone(state.Memory)
	for _, m := range th.Memory {
		if !slices.Contains(spaces, m.Space) {
			own.Memory = append(own.Memory, m)
		}
	}
	return &own
}

// registerRange is the registers from first on, up to end.
type registerRange struct{ first, end uint64 }

// disjoint sorts ranges and joins those that meet.
func disjoint(ranges []registerRange) []registerRange {
	slices.SortFunc(ranges, func(a, b registerRange) int { return cmp.Compare(a.first, b.first) })
	kept := ranges[:0]
	for _, r := range ranges {
		if n := len(kept); n > 0 && r.first <= kept[n-1].end {
			kept[n-1].end = max(kept[n-1].end, r.end)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

func contains(ranges []registerRange, number uint64) bool {
	return slices.ContainsFunc(ranges, func(r registerRange) bool { return number >= r.first && number < r.end })
}

// savedOutside returns the entries of saved registers of which none is in one of the ranges.
func savedOutside(saved []sdk.SavedRegisters, ranges []registerRange) []sdk.SavedRegisters {
	return slices.DeleteFunc(slices.Clone(saved), func(s sdk.SavedRegisters) bool {
		return slices.ContainsFunc(ranges, func(r registerRange) bool {
			return uint64(s.First) < r.end && r.first < uint64(s.First)+uint64(s.Count)
		})
	})
}
