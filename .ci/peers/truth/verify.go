// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// decision is the result of comparing a stack with the truth.
type decision struct {
	kind  decisionKind
	frame int // the frame whose caller, or CFA, differs
	// frames are how many frames have the return address that was pushed, and guesses how
	// many of these, or of those behind them, are marked as guesses.
	frames, guesses int
	registers       int  // that have the values of the calls
	isBeyond        bool // the wrong frame is beyond the program's start
	detail          string
}

type decisionKind uint8

const (
	right decisionKind = iota
	wrong
	wrongGuess // a frame that is wrong, and marked as a guess, or behind one
	wrongCFA
	wrongRegister
	missing
)

func (k decisionKind) String() string {
	return [...]string{"right", "wrong", "wrong guess", "wrong CFA", "wrong register", "missing"}[k]
}

// position is a place of the stacks that a shadow has: the next one that a return takes.
type position struct {
	s *stack
	i int // places[i-1] is next
}

// edge is a place that may follow a position.
type edge struct {
	place    *place
	next     position
	isNeeded bool // the stack may not end before it
}

// judge compares the frames of a stack with what the processor will do.
func (h *shadow) judge(s *trace.Stack) decision {
	v := decision{}
	if len(s.Frames) == 0 {
		return decision{kind: missing, detail: s.Stopped.Detail}
	}
	at := []position{{h.current, len(h.current.places)}}
	changed := -1 // a frame whose return address was written over
	for i := 1; i < len(s.Frames); i++ {
		f := &s.Frames[i]
		if f.FoundBy == trace.ByCallSite {
			continue
		}
		isGuess := f.RestsOnGuess || f.FoundBy.IsGuess()
		if isGuess {
			v.guesses++
		}
		var next []position
		var to *place
		for _, p := range at {
			for _, w := range h.edges(p) {
				if h.isAt(w.place, f.PC) {
					if f.PC != w.place.back && changed < 0 {
						changed = i - 1
					}
					next, to = append(next, w.next), w.place
				}
			}
		}
		if len(next) == 0 {
			v.kind, v.frame, v.isBeyond = wrong, i-1, !h.goesOn(at)
			if isGuess {
				v.kind = wrongGuess
			}
			v.detail = fmt.Sprintf("%#x, expected %s", f.PC, h.expected(at))
			if changed >= 0 {
				v.frame = changed
			}
			return v
		}
		v.frames++
		if len(next) == 1 && to.kind == byCall && v.kind == right && !isGuess {
			h.judgeFrame(&v, &s.Frames[i-1], f, to)
			if v.kind != right {
				v.frame = i - 1
			}
		}
		at = next
	}
	if v.kind != right || h.mayEnd(at) {
		return v
	}
	v.kind, v.frame = missing, len(s.Frames)-1
	v.detail = fmt.Sprintf("%s: %s; expected %s", s.Stopped.Reason, s.Stopped.Detail, h.expected(at))
	return v
}

// judgeFrame compares a frame's CFA, and registers of its caller, with what they were at the call.
func (h *shadow) judgeFrame(v *decision, callee, caller *trace.Frame, p *place) {
	cfa := p.slot
	if !h.hasLink {
		cfa += 8
	}
	if callee.HasCFA && callee.CFA != cfa {
		v.kind, v.detail = wrongCFA, fmt.Sprintf("CFA %#x, expected %#x", callee.CFA, cfa)
		return
	}
	for _, r := range caller.Registers() {
		for i, number := range h.preserved {
			if r.Number != number {
				continue
			}
			if r.Value != p.kept[i] {
				v.kind, v.detail = wrongRegister, fmt.Sprintf("%s is %#x, expected %#x", r.Name, r.Value, p.kept[i])
				return
			}
			v.registers++
		}
	}
}

// isAt reports whether a frame is at the address in a place. The current contents of the
// slot count, too: the processor will use them.
func (h *shadow) isAt(p *place, pc uint64) bool {
	if pc == p.back || h.hasLink {
		return pc == p.back || p.kind == byProgram
	}
	now, ok := h.memory.word(p.slot)
	return ok && now == pc
}

func (h *shadow) mayEnd(positions []position) bool {
	for _, p := range positions {
		needed := false
		for _, w := range h.edges(p) {
			needed = needed || w.isNeeded
		}
		if !needed {
			return true
		}
	}
	return false
}

// goesOn reports whether anything follows.
func (h *shadow) goesOn(positions []position) bool {
	return slices.ContainsFunc(positions, func(p position) bool { return len(h.edges(p)) > 0 })
}

func (h *shadow) expected(positions []position) string {
	for _, p := range positions {
		for _, w := range h.edges(p) {
			return fmt.Sprintf("%#x", w.place.back)
		}
	}
	return "none"
}

// edges returns the places that may follow at a position. It is one place except where a
// stack was made by the program, or switched to.
func (h *shadow) edges(p position) (list []edge) {
	s := p.s
	if s.taken != nil && p.s == h.current && p.i == len(s.places) {
		list = append(list, edge{place: s.taken, next: position{s, p.i}})
	}
	isEntered := s.from != nil && h.isGo && (p.i == 0 || s.places[p.i-1].slot >= s.entered)
	if p.i > 0 {
		next := &s.places[p.i-1]
		return append(append(list, edge{next, position{s, p.i - 1}, next.kind != byProgram && !isEntered}), h.fromEdges(s, isEntered)...)
	}
	if s.isBelow || isEntered {
		more := h.fromEdges(s, true)
		for i := range more {
			more[i].isNeeded = s.isBelow
		}
		return append(list, more...)
	}
	return list
}

// fromEdges returns the edges to the stack that one was switched from.
func (h *shadow) fromEdges(s *stack, goes bool) (list []edge) {
	if !goes || s.from == nil || len(s.from.places) == 0 {
		return nil
	}
	n := len(s.from.places)
	return []edge{{place: &s.from.places[n-1], next: position{s.from, n - 1}}}
}
