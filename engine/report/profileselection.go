// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/selection"
	"github.com/unwindd/unwindd/engine/trace"
)

// CheckSelection refuses a selection that has no meaning, in the words of flags of commands.
func CheckSelection(s trace.ProfileSelection) error {
	_, err := selection.New(s)
	return err
}

// NewSelectedProfile prepares to write a part of a profile, of the named events as in NewProfile.
// A selection that nothing is in is an error, which names the part that matches nothing.
func NewSelectedProfile(p *trace.Profile, s trace.ProfileSelection, events ...string) (*Profile, error) {
	c, err := chooseEvents(p, events)
	if err != nil {
		return nil, err
	}
	if s.IsZero() {
		return c.profile(len(events) > 0), nil
	}
	selector, err := selection.New(s)
	if err != nil {
		return nil, err
	}
	c.dropOthers()
	whole, seconds := c.share(), c.seconds()
	namer := &Profile{p: c.p}
	result, err := selector.Select(c.p, namer.unknownName)
	if err != nil {
		return nil, err
	}
	c.p = result.Profile
	c.count()
	r := c.profile(len(events) > 0)
	r.whole = &whole
	if s.Time == "" {
		r.seconds = seconds
	}
	r.isRooted = s.Callers != ""
	if len(result.Notes) > 0 {
		noted := *r.p
		noted.Problems = append(slices.Clone(noted.Problems), result.Notes...)
		r.p = &noted
	}
	return r, nil
}

// dropOthers leaves the samples of chosen events only, so that selections are about them.
func (c *eventChoice) dropOthers() {
	if !slices.Contains(c.chosen, false) {
		return
	}
	kept := *c.p
	kept.Samples = nil
	for i := range c.p.Samples {
		if s := &c.p.Samples[i]; c.chosen[s.Event+1] {
			kept.Samples = append(kept.Samples, *s)
		}
	}
	c.p = &kept
}

// profileShare is the amount that a selection is a part of.
type profileShare struct {
	samples int
	weights []uint64 // by event, from event -1 on
}

// share is the amount of the chosen events.
func (c *eventChoice) share() (s profileShare) {
	s.weights = slices.Clone(c.weights)
	for i, n := range c.samples {
		if c.chosen[i] {
			s.samples += n
		}
	}
	return s
}

// selected writes which part of the samples is shown.
func (t *summary) selected(perEvent []eventAmount) {
	if t.r.whole == nil {
		return
	}
	var parts []string
	for i := range perEvent {
		if v := &t.r.values[i]; v.kind == valueOfWeight && len(parts) < maxSummary {
			parts = append(parts, fmt.Sprintf("%s of %s", strings.TrimSpace(percent(perEvent[i].weight, t.r.whole.weights[v.event+1])), v.name))
		}
	}
	t.printf("selected: %d of %d samples: %s\n", t.count, t.r.whole.samples, strings.Join(parts, ", "))
}
