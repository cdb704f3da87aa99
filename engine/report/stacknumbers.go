// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/unwindd/unwindd/engine/trace"
)

// stackNumbers numbers stacks of locations. Two stacks of a profile get the same number where
// their frames differ only in facts that locations do not have, so that such frames are one
// location.
type stackNumbers struct {
	stacks   []trace.ProfileStack
	location []uint32 // by frame
	// numbers has the numbers of stacks of locations, from 1 on, and canonical has
	// that number for each stack of the profile. canonical is nil where each location
	// is one frame: then a stack's number is its index.
	numbers   map[trace.ProfileStack]uint32
	canonical []uint32
}

// newStackNumbers prepares to number stacks. location has the number of the location of each
// frame; isShared means that several frames have the same one.
func newStackNumbers(stacks []trace.ProfileStack, location []uint32, isShared bool) *stackNumbers {
	n := &stackNumbers{stacks: stacks, location: location}
	if isShared {
		n.numbers = map[trace.ProfileStack]uint32{}
		n.canonical = make([]uint32, len(stacks))
	}
	return n
}

// number is the number of a stack.
func (s *stackNumbers) number(n uint32) uint32 {
	if s.canonical == nil {
		return n
	}
	var todo []uint32
	for ; n != 0 && s.canonical[n] == 0; n = s.stacks[n].Caller {
		todo = append(todo, n)
	}
	first := s.canonical[n]
	for i := len(todo) - 1; i >= 0; i-- {
		key := trace.ProfileStack{Caller: first, Frame: s.location[s.stacks[todo[i]].Frame]}
		next, ok := s.numbers[key]
		if !ok {
			next = uint32(len(s.numbers)) + 1
			s.numbers[key] = next
		}
		s.canonical[todo[i]] = next
		first = next
	}
	return first
}
