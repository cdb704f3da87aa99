// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// annotationStalls is the number of stall reasons with columns of their own.
const annotationStalls = 3

// sampleCount is the amount of an event at a place.
type sampleCount struct {
	samples, weight uint64
	inlined         uint64   // the weight in calls that are inlined there
	lanes           uint64   // active lanes, of all samples
	states          []uint64 // weights, by state; nil where none is known
}

func (c *sampleCount) add(s *trace.ProfileSample, isInlined bool, states int) {
	c.samples++
	c.weight = add(c.weight, s.Weight)
	c.lanes += uint64(s.ActiveLanes)
	if isInlined {
		c.inlined = add(c.inlined, s.Weight)
	}
	if s.State == 0 || int(s.State) >= states {
		return
	}
	if c.states == nil {
		c.states = make([]uint64, states)
	}
	c.states[s.State] = add(c.states[s.State], s.Weight)
}

// annotationCount is the amount of an event in a function itself, without its callees.
type annotationCount struct {
	*profileValue
	all         sampleCount
	lines, code []sampleCount // indexed as in the annotation
	// unlined and elsewhere are samples at no known line, and at no instruction that is
	// shown.
	unlined, elsewhere uint64
}

// countAnnotations goes over the samples once. The counts are by annotation, of the requested
// events that have samples in it; where none was requested by name, of the first of them, or
// with isAll of all.
func (r *Profile) countAnnotations(isAll bool) [][]*annotationCount {
	type target struct {
		annotation int
		place      int
	}
	targets := make([][]target, len(r.p.Frames))
	hasKernels := false
	for i := range r.p.Annotations {
		for j := range r.p.Annotations[i].Places {
			p := &r.p.Annotations[i].Places[j]
			targets[p.Frame] = append(targets[p.Frame], target{i, j})
			hasKernels = hasKernels || p.Kernel >= 0
		}
	}
	var kernels []int32
	if hasKernels {
		kernels = r.kernelsOfStacks()
	}
	counts := make([][]*annotationCount, len(r.p.Annotations))
	for i := range counts {
		counts[i] = make([]*annotationCount, len(r.values))
	}
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		if s.Stack == 0 || !r.isRequested(s) {
			continue
		}
		value := r.valueOf[s.Event+1]
		for _, t := range targets[r.p.Stacks[s.Stack].Frame] {
			a := &r.p.Annotations[t.annotation]
			p := &a.Places[t.place]
			if p.Kernel >= 0 && kernels[s.Stack] != p.Kernel {
				continue
			}
			c := counts[t.annotation][value]
			if c == nil {
				c = &annotationCount{profileValue: &r.values[value], lines: make([]sampleCount, len(a.Lines)), code: make([]sampleCount, len(a.Code))}
				counts[t.annotation][value] = c
			}
			c.add(s, p, len(r.p.States))
		}
	}
	for i := range counts {
		counts[i] = slices.DeleteFunc(counts[i], func(c *annotationCount) bool { return c == nil })
		if !r.isFiltered && !isAll {
			counts[i] = counts[i][:min(len(counts[i]), 1)]
		}
	}
	return counts
}

// add adds a sample at a place.
func (c *annotationCount) add(s *trace.ProfileSample, p *trace.AnnotatedPlace, states int) {
	c.all.add(s, p.IsInlined, states)
	if p.Line >= 0 {
		c.lines[p.Line].add(s, p.IsInlined, states)
	} else {
		c.unlined++
	}
	if p.Code >= 0 {
		c.code[p.Code].add(s, p.IsInlined, states)
	} else {
		c.elsewhere++
	}
}

// stallsOf are the states in which waves waited, the heaviest first.
func (r *Profile) stallsOf(c *sampleCount) (states []uint8) {
	for state, weight := range c.states {
		if weight > 0 && r.p.States[state].Stalled {
			states = append(states, uint8(state)) //nolint:gosec // at most gpusamples.MaxStates
		}
	}
	slices.SortFunc(states, func(a, b uint8) int {
		return cmp.Or(cmp.Compare(c.states[b], c.states[a]), cmp.Compare(a, b))
	})
	return states
}
