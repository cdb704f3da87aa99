// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/trie"
)

// The events of a combined profile.
const (
	ChangedEvent = 0 // of the changed profile
	BaseEvent    = 1 // of the base
)

// Combine makes one profile of an event of two: with the samples of the base and of the changed
// one, which have an event each. Frames, threads and modules of the changed one come first; equal
// frames of both are not one.
func Combine(base *trace.Profile, baseEvent int16, changed *trace.Profile, changedEvent int16) *trace.Profile {
	out := &trace.Profile{Path: changed.Path, Stacks: make([]trace.ProfileStack, 1, len(base.Stacks)+len(changed.Stacks)), Lost: base.Lost + changed.Lost}
	c := combiner{out: out, tree: trie.New(len(base.Stacks) + len(changed.Stacks)), stops: map[trace.Stopped]uint16{}}
	c.add(changed, changedEvent, ChangedEvent)
	c.add(base, baseEvent, BaseEvent)
	return out
}

// combiner adds profiles to one.
type combiner struct {
	out   *trace.Profile
	tree  *trie.Trie
	stops map[trace.Stopped]uint16
}

// add adds the samples of an event of a profile, as samples of another event.
func (c *combiner) add(p *trace.Profile, event, as int16) {
	out := c.out
	e := trace.ProfileEvent{Unit: "count"}
	if event >= 0 {
		e = p.Events[event]
	}
	e.States, e.Lanes = false, false
	out.Events = append(out.Events, e)
	frames, threads := uint32(len(out.Frames)), uint32(len(out.Threads)) //nolint:gosec // as indices of both profiles are
	modules := int32(len(out.Modules))                                   //nolint:gosec // likewise
	for i := range p.Frames {
		f := p.Frames[i]
		f.Dispatched = -1
		if f.Module >= 0 {
			f.Module += modules
		}
		out.Frames = append(out.Frames, f)
	}
	out.Modules, out.Threads = append(out.Modules, p.Modules...), append(out.Threads, p.Threads...)
	stacks := make([]uint32, len(p.Stacks))
	for i := 1; i < len(stacks); i++ { // a caller comes before those that it called
		s := trace.ProfileStack{Caller: stacks[p.Stacks[i].Caller], Frame: p.Stacks[i].Frame + frames}
		stack, isNew := c.tree.Child(s.Caller, s.Frame)
		if isNew {
			out.Stacks = append(trie.Grown(out.Stacks), s)
		}
		stacks[i] = stack
	}
	stops := c.numberStops(p.Stops)
	for i := range p.Samples {
		s := p.Samples[i]
		if s.Event != event {
			continue
		}
		s.Event, s.Stack, s.Thread, s.State, s.Launch = as, stacks[s.Stack], s.Thread+threads, 0, trace.EvidenceUnknown
		s.Stop = stops[s.Stop]
		out.Samples = append(out.Samples, s)
	}
	for _, problem := range p.Problems {
		if !slices.Contains(out.Problems, problem) {
			out.Problems = append(out.Problems, problem)
		}
	}
}

// numberStops adds the reasons why stacks end. Beyond what can be numbered they lose their details.
func (c *combiner) numberStops(list []trace.Stopped) []uint16 {
	const most = 1 << 15
	numbers := make([]uint16, len(list))
	for i, s := range list {
		if len(c.out.Stops) >= most {
			s.Detail = ""
		}
		n, ok := c.stops[s]
		if !ok {
			n = uint16(len(c.out.Stops)) //nolint:gosec // bounded
			c.stops[s] = n
			c.out.Stops = append(c.out.Stops, s)
		}
		numbers[i] = n
	}
	return numbers
}
