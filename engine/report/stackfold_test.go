// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// Waves at one place whose lanes differ, or their variables, are told apart by their hashes: a
// thousand of them are compared with few others.
func TestWavesDifferInHash(t *testing.T) {
	f := newStackFolder()
	sums := map[uint64]string{}
	for name, group := range map[string]trace.LaneGroup{
		"lanes":     {Lanes: trace.LaneSet{1}, State: trace.LaneActive},
		"others":    {Lanes: trace.LaneSet{2}, State: trace.LaneActive},
		"waiting":   {Lanes: trace.LaneSet{1}, State: trace.LaneInactive},
		"elsewhere": {Lanes: trace.LaneSet{1}, State: trace.LaneInactive, PC: 4, HasPC: true},
		"variables": {Lanes: trace.LaneSet{1}, State: trace.LaneActive, Locals: [][]trace.FrameVariable{{{Variable: trace.Variable{Value: trace.Value{Text: "1"}}}}}},
		"parts": {Lanes: trace.LaneSet{1}, State: trace.LaneActive, Locals: [][]trace.FrameVariable{{{Variable: trace.Variable{
			Value: trace.Value{Children: []trace.Value{{Text: "2"}}},
		}}}}},
	} {
		s := &trace.Stack{Thread: &trace.Thread{}, Frames: []trace.Frame{{PC: 1, Details: &trace.FrameDetails{Lanes: []trace.LaneGroup{group}}}}}
		e := endingOf(s)
		sum := f.sum(s, &e)
		if other, ok := sums[sum]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		sums[sum] = name
	}
}
