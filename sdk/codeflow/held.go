// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"cmp"
	"math"
	"slices"
)

// Hold tells of a way that may not be one: what lies after a call is reached only if the call
// returns. It waits until the plugin decides about it, by Resume, or takes it back by Release. from
// is the instruction that it comes from. Hold may keep what s refers to.
func (f *Flow[S]) Hold(at, from uint64, s *S) {
	f.held = append(f.held, Arrival[S]{at, from, *s})
}

// Held are the ways that are held, in the order of their discovery, until the flow goes on.
func (f *Flow[S]) Held() []Arrival[S] { return f.held }

// Release returns the ways that are held, but for the first keep ones; they no longer are.
func (f *Flow[S]) Release(keep int) []Arrival[S] {
	list := slices.Clone(f.held[keep:])
	f.held = f.held[:keep]
	return list
}

// A Trial is what was seen while code was followed without being believed: the plugin notes it in
// Step and Join.
type Trial struct {
	// IsConfirmed says that there is evidence for the code: it leads to where the function is known
	// to be, as it is known there.
	IsConfirmed bool
	// IsContradicted says that there is evidence against it. It is not followed any further.
	IsContradicted bool
	// IsCut says that the trial's steps were used up: there may be more evidence.
	IsCut bool
	// Note is the plugin's own.
	Note bool

	points int // how many there were before
	steps  int // that are left for it
}

// isOver says whether nothing is followed any more.
func (t *Trial) isOver() bool { return t.IsContradicted || t.IsCut }

// Trial is the one that is under way; nil where there is none.
func (f *Flow[S]) Trial() *Trial { return f.trial }

// IsKnown says whether a point was found before the trial that is under way. Join must leave the
// states of those as they are.
func (f *Flow[S]) IsKnown(p *Point[S]) bool { return f.trial != nil && p.Order < f.trial.points }

// Try follows the code from an arrival, says what speaks for it and against it, and forgets it. As
// long as nothing does, it follows the ways held there too, through up to beyond calls one
// behind the other. What lies behind its calls does not speak against it: they may not return either.
func (f *Flow[S]) Try(a *Arrival[S], beyond int) Trial {
	return f.TryWithin(a, beyond, math.MaxInt)
}

// TryWithin is Try with a bound for the steps of the trial. They are steps of the flow, but a trial
// that has used up its own ends, and the flow goes on.
func (f *Flow[S]) TryWithin(a *Arrival[S], beyond, steps int) Trial {
	t := Trial{points: f.used, steps: steps}
	held := len(f.held)
	f.trial = &t
	_ = f.Follow(a) // the flow keeps its error
	for ; beyond > 0 && f.err == nil && len(f.held) > held && !t.isOver(); beyond-- {
		level := f.Release(held)
		for i := range level {
			if f.err != nil || t.IsConfirmed || t.IsCut {
				break
			}
			points, waiting, before := f.used, len(f.held), t
			_ = f.Follow(&level[i])
			if t.IsContradicted {
				// This call does not return: what lies behind it says nothing.
				f.forget(points, waiting)
				before.steps, before.IsCut = t.steps, t.IsCut
				t = before
			}
		}
	}
	f.trial = nil
	f.forget(t.points, held)
	return t
}

// forget forgets all points and held ways but for the first ones.
func (f *Flow[S]) forget(points, held int) {
	for _, p := range f.found[points:f.used] {
		*f.points.Put(p.At) = nil
	}
	f.used, f.held = points, f.held[:held]
}

// A Verdict says whether a way that is held is one.
type Verdict uint8

// The verdicts.
const (
	Open     Verdict = iota // nothing speaks for it or against it: it is held
	Believed                // it is followed
	Refuted                 // it is none
)

// A Judge decides about ways that are held.
type Judge[S any] interface {
	// Judge decides about one. isLast says that there is no evidence left for any other.
	Judge(a *Arrival[S], isLast bool) Verdict
	// Rank says of one without evidence when it is decided about: those of the lowest rank are
	// first.
	Rank(a *Arrival[S]) int
}

// Resume decides about the ways that are held, and follows what is believed, until nothing is held
// that anything can be decided about. What has evidence comes first, because it may be evidence for
// others; after that those without evidence, in the order of their addresses.
func (f *Flow[S]) Resume(j Judge[S]) error {
	for len(f.held) > 0 && f.err == nil {
		hasNew := false
		var open []Arrival[S]
		for _, a := range f.Release(0) {
			v := f.decide(j, &a, false)
			hasNew = hasNew || v == Believed
			if v == Open {
				open = append(open, a)
			}
		}
		if hasNew || len(open) == 0 {
			f.held = append(f.held, open...)
		} else if !f.decideLast(j, open) {
			break
		}
	}
	return f.err
}

// decideLast decides about ways without evidence, of the lowest rank. It answers whether it could.
func (f *Flow[S]) decideLast(j Judge[S], open []Arrival[S]) (ok bool) {
	slices.SortStableFunc(open, func(a, b Arrival[S]) int { return cmp.Compare(a.At, b.At) })
	ranks := make([]int, len(open))
	for i := range open {
		ranks[i] = j.Rank(&open[i])
	}
	lowest := slices.Min(ranks)
	for i := range open {
		if ranks[i] == lowest && f.decide(j, &open[i], true) != Open {
			ok = true
		} else {
			f.held = append(f.held, open[i])
		}
	}
	return ok
}

// decide asks a judge about a way, and follows it if it is believed.
func (f *Flow[S]) decide(j Judge[S], a *Arrival[S], isLast bool) Verdict {
	if f.err != nil {
		return Refuted
	}
	v := j.Judge(a, isLast)
	if v == Believed && f.err == nil {
		_ = f.Follow(a) // the flow keeps its error
	}
	return v
}
