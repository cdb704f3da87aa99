// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"cmp"
	"slices"
)

// Defer reports an edge that may not be taken: the code after a call is reached only if the
// call returns. The edge stays deferred until the plugin decides about it, by Resume, or takes
// it by TakeDeferred. source is the address of the instruction that the edge comes from. Defer
// may keep memory that s refers to.
func (f *Flow[S]) Defer(address, source uint64, s *S) {
	f.deferred = append(f.deferred, Arrival[S]{address, source, *s})
}

// Deferred returns the deferred edges in the order of their discovery. The slice is valid until
// the flow goes on.
func (f *Flow[S]) Deferred() []Arrival[S] { return f.deferred }

// TakeDeferred removes the deferred edges except the first keep ones, and returns them.
func (f *Flow[S]) TakeDeferred(keep int) []Arrival[S] {
	list := slices.Clone(f.deferred[keep:])
	f.deferred = f.deferred[:keep]
	return list
}

// Trial is the evidence that was seen while code was followed on trial. The plugin writes it in
// Step and Join.
type Trial struct {
	// IsConfirmed is evidence for the code: it leads to known code of the function, in the
	// state that is known there.
	IsConfirmed bool
	// IsContradicted is evidence against the code, which is not followed any further.
	IsContradicted bool
	// IsCut is set when the trial's steps are used up: there may be more evidence.
	IsCut bool
	// Note is for the plugin's own use.
	Note bool

	points int // how many points there were before
	steps  int // steps left for it
}

// isOver reports whether nothing more is followed.
func (t *Trial) isOver() bool { return t.IsContradicted || t.IsCut }

// Trial returns the current trial; nil where there is none.
func (f *Flow[S]) Trial() *Trial { return f.trial }

// IsKnown reports whether a point was found before the current trial. Join must leave the
// states of such points as they are.
func (f *Flow[S]) IsKnown(p *Point[S]) bool { return f.trial != nil && p.Order < f.trial.points }

// Try follows the code from an arrival, returns the evidence for and against it, and forgets
// the code. As long as there is no evidence, it also follows the edges deferred there, through
// up to calls calls one after the other. Code after these calls is no evidence against the
// arrival: they may not return either.
//
// steps bounds the steps of the trial. They count as steps of the flow too, but a trial that
// has used up its own ends, and the flow goes on.
func (f *Flow[S]) Try(a *Arrival[S], calls, steps int) Trial {
	t := Trial{points: f.used, steps: steps}
	deferred := len(f.deferred)
	f.trial = &t
	_ = f.Follow(a) // the flow keeps its error
	for ; calls > 0 && f.err == nil && len(f.deferred) > deferred && !t.isOver(); calls-- {
		level := f.TakeDeferred(deferred)
		for i := range level {
			if f.err != nil || t.IsConfirmed || t.IsCut {
				break
			}
			points, waiting, old := f.used, len(f.deferred), t
			_ = f.Follow(&level[i])
			if t.IsContradicted {
				// This call does not return: the code after it is no evidence.
				f.forget(points, waiting)
				old.steps, old.IsCut = t.steps, t.IsCut
				t = old
			}
		}
	}
	f.trial = nil
	f.forget(t.points, deferred)
	return t
}

// forget removes all points and deferred edges after the first ones.
func (f *Flow[S]) forget(points, deferred int) {
	for _, p := range f.found[points:f.used] {
		*f.points.Put(p.Address) = nil
	}
	f.used, f.deferred = points, f.deferred[:deferred]
}

// Decision is the decision about a deferred edge.
type Decision uint8

// The decisions.
const (
	Undecided Decision = iota // there is no evidence: the edge stays deferred
	Believed                  // it is followed
	Refuted                   // it is not taken
)

// Decider decides about deferred edges.
type Decider[S any] interface {
	// Decide decides about an edge. isLast is true when there is no evidence left for any
	// other.
	Decide(a *Arrival[S], isLast bool) Decision
	// Rank orders the edges without evidence: the lowest rank is decided about first.
	Rank(a *Arrival[S]) int
}

// Resume decides about the deferred edges, and follows the believed ones, until nothing can be
// decided about the rest. Edges with evidence come first, because they may be evidence for
// others; then the edges without evidence, in the order of their addresses.
func (f *Flow[S]) Resume(d Decider[S]) error {
	for len(f.deferred) > 0 && f.err == nil {
		hasNew := false
		var open []Arrival[S]
		for _, a := range f.TakeDeferred(0) {
			decision := f.decide(d, &a, false)
			hasNew = hasNew || decision == Believed
			if decision == Undecided {
				open = append(open, a)
			}
		}
		if hasNew || len(open) == 0 {
			f.deferred = append(f.deferred, open...)
		} else if !f.decideLast(d, open) {
			break
		}
	}
	return f.err
}

// decideLast decides about edges without evidence, of the lowest rank. It reports whether it
// could.
func (f *Flow[S]) decideLast(d Decider[S], open []Arrival[S]) (ok bool) {
	slices.SortStableFunc(open, func(a, b Arrival[S]) int { return cmp.Compare(a.Address, b.Address) })
	ranks := make([]int, len(open))
	for i := range open {
		ranks[i] = d.Rank(&open[i])
	}
	lowest := slices.Min(ranks)
	for i := range open {
		if ranks[i] == lowest && f.decide(d, &open[i], true) != Undecided {
			ok = true
		} else {
			f.deferred = append(f.deferred, open[i])
		}
	}
	return ok
}

// decide asks d about an edge, and follows the edge if it is believed.
func (f *Flow[S]) decide(d Decider[S], a *Arrival[S], isLast bool) Decision {
	if f.err != nil {
		return Refuted
	}
	decision := d.Decide(a, isLast)
	if decision == Believed && f.err == nil {
		_ = f.Follow(a) // the flow keeps its error
	}
	return decision
}
