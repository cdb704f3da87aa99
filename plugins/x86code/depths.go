// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"math"
	"slices"
)

// What callees of 32-bit code remove is guessed from the code behind their calls, and a wrong
// guess makes every row behind it wrong. Here the guesses are proved: an instruction has one
// depth of the stack however it is reached, nothing is removed but what a callee may remove,
// and a function's returns are at its return address. A depth for which that leaves one
// possibility is certain, and any other is forgotten.

// span is the range of how much higher the stack pointer may be than was guessed, in bytes.
type span struct{ low, high int64 }

// isOne reports whether a span leaves one possibility.
func (s span) isOne() bool { return s.low == s.high }

// narrow keeps what two spans have in common, and reports whether s has changed.
func (s *span) narrow(low, high int64) bool {
	old := *s
	s.low, s.high = max(s.low, low), min(s.high, high)
	return *s != old
}

// depthEdge leads from one instruction to another. added is how much higher the stack pointer
// is there in truth than by the guesses, for the same at from: nothing, but behind a call.
type depthEdge struct {
	from, to int32
	added    *span
}

// depths has the spans of the points of a function, by the order of their discovery.
type depths struct {
	*flow
	spans   []span
	edges   []depthEdge
	targets map[uint64]*depthCallee // functions that are called by their address
	callees []*depthCallee          // the same, by their first calls
	most    int64                   // that a callee removes, in bytes
}

// depthCallee is a function that is called: it removes the same at each call.
type depthCallee struct {
	removed span // in bytes
	calls   []depthCall
}

// depthCall is a call of it, with what the guess for that call was.
type depthCall struct {
	guessed int64
	added   *span
}

// maxDepthRounds bounds how often spans are carried over the edges.
const maxDepthRounds = 64

// proveDepths corrects the stack pointers of the points where they are certain, and forgets those
// that are not. Callees remove a word at most, as the psABI has it, where that is possible in
// the whole function.
func (f *flow) proveDepths() {
	if len(f.removed) == 0 {
		return
	}
	word, most := int64(f.mode.Word), int64(f.mode.Word)
	for _, r := range f.removed {
		most = max(most, r.bytes)
	}
	d := f.findDepths(word)
	if most > word && d.isContradiction() {
		d = f.findDepths(most)
	}
	d.apply()
}

// findDepths narrows the spans of all points, where a callee removes so many bytes at most.
func (f *flow) findDepths(most int64) *depths {
	d := &depths{flow: f, targets: make(map[uint64]*depthCallee), most: most, spans: make([]span, len(f.Found()))}
	for i, p := range f.Found() {
		d.begin(int32(i), p) //nolint:gosec // at most MaxCode
	}
	for range maxDepthRounds {
		if !d.carry() {
			break
		}
	}
	return d
}

// isContradiction reports whether a point has no depth that is possible.
func (d *depths) isContradiction() bool {
	return slices.ContainsFunc(d.spans, func(s span) bool { return s.low > s.high })
}

// isPlain reports whether a stack pointer counts from where the function began.
func isPlain(sp value) bool { return sp.kind == address && sp.base == SP }

// begin sets the span of a point, and finds the edges from it.
func (d *depths) begin(i int32, p *point) {
	const far = math.MaxInt32
	d.spans[i] = span{-far, far}
	e, sp := d.effect(p.Address), p.State.gpr[SP]
	if e == nil || !isPlain(sp) {
		return
	}
	in := e.instruction()
	target, isInside := d.Target(p.Address, &in)
	isTail := e.Kind == Jump && !isInside && !d.isThroughTable(e, &p.State) && sp == entryValue(SP)
	if p.Address == 0 || isTail {
		d.spans[i] = span{}
	}
	if e.Kind == Return {
		d.spans[i] = span{-int64(sp.off), -int64(sp.off)}
	}
	next := p.Address + uint64(e.Length)
	after := p.State
	added := new(span)
	switch {
	case e.Kind == Call && isInside && target == next:
		after.push(d.mode, value{}, d.mode.Word, false)
	case e.Kind == Call:
		d.Apply(p.Address, &after)
		added = d.call(p, e)
	case e.setsStack():
		return
	default:
		d.Apply(p.Address, &after)
	}
	edges := d.Edges(p.Address)
	if edges.Continues || e.Kind == Call && !d.IsRefuted(next) {
		d.edge(i, next, after.gpr[SP], added)
	}
	if edges.Jumps {
		d.edge(i, edges.Target, after.gpr[SP], added)
	}
}

// edge adds an edge to an address, where the stack pointer is sp by the guesses.
func (d *depths) edge(from int32, address uint64, sp value, added *span) {
	to := d.Point(address)
	if to == nil || !isPlain(sp) || to.State.gpr[SP] != sp {
		return
	}
	d.edges = append(d.edges, depthEdge{from, int32(to.Order), added}) //nolint:gosec // at most MaxCode
}

// call returns how far the callee of a call may remove another number of bytes than was guessed.
func (d *depths) call(p *point, e *Effect) *span {
	r, ok := d.removed[p.Address]
	end := int(p.Address) + int(e.Length)
	pushed := d.pushedFor(end)
	switch {
	case !ok || r.bytes == 0 && pushed == 0 && (d.body == nil || int64(p.State.gpr[SP].off) >= *d.body):
		return new(span) // it has no arguments on the stack
	case pushed == 0 && r.bytes == int64(d.mode.Word) && d.mode.removed(d.code, end) == removal{r.bytes, true}:
		return new(span) // the caller makes up for it: it makes no room for arguments by so little
	}
	added := &span{-r.bytes, d.most - r.bytes}
	if !e.IsDirect {
		return added
	}
	target := p.Address + uint64(e.Target)
	callee := d.targets[target]
	if callee == nil {
		callee = &depthCallee{removed: span{0, d.most}}
		d.targets[target], d.callees = callee, append(d.callees, callee)
	}
	callee.calls = append(callee.calls, depthCall{r.bytes, added})
	return added
}

// carry narrows the spans over every edge, in both directions, and reports whether one has
// changed.
func (d *depths) carry() (hasChanged bool) {
	for i := range d.edges {
		// Code is followed both ways: what lies ahead is known from the returns.
		for _, e := range [...]*depthEdge{&d.edges[i], &d.edges[len(d.edges)-1-i]} {
			a, b := &d.spans[e.from], &d.spans[e.to]
			if a.low > a.high || b.low > b.high || e.added.low > e.added.high {
				continue // a contradiction: nothing is concluded from it
			}
			hasChanged = b.narrow(a.low+e.added.low, a.high+e.added.high) || hasChanged
			hasChanged = a.narrow(b.low-e.added.high, b.high-e.added.low) || hasChanged
			hasChanged = e.added.narrow(b.low-a.high, b.high-a.low) || hasChanged
		}
	}
	for _, callee := range d.callees {
		for _, c := range callee.calls {
			hasChanged = callee.removed.narrow(c.added.low+c.guessed, c.added.high+c.guessed) || hasChanged
		}
		if callee.removed.low > callee.removed.high {
			continue
		}
		for _, c := range callee.calls {
			hasChanged = c.added.narrow(callee.removed.low-c.guessed, callee.removed.high-c.guessed) || hasChanged
		}
	}
	return hasChanged
}

// apply corrects or forgets the stack pointers. A register that gets its value from one
// that is not known is not known either, nor where it is used.
func (d *depths) apply() {
	var copies [GPRCount]bool
	for i, p := range d.Found() {
		sp := &p.State.gpr[SP]
		if !isPlain(*sp) {
			continue
		}
		s := d.spans[i]
		if e := d.effect(p.Address); e != nil && s != (span{}) && e.Dst != None && e.Dst != SP &&
			(e.Kind == Move && e.Src == SP || e.Kind == Address && e.Mem.Base == SP) {
			copies[e.Dst] = true
		}
		if *sp = sp.plus(s.low); !s.isOne() {
			*sp = value{}
		}
	}
	for _, p := range d.Found() {
		for r := range p.State.gpr {
			if v := &p.State.gpr[r]; copies[r] && isPlain(*v) {
				*v = value{}
			}
		}
	}
}
