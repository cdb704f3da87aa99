// SPDX-License-Identifier: Apache-2.0

// Package codeflow follows machine code over its branches, and finds the state before each
// instruction that it reaches. A plugin that answers FrameRules by reading code implements
// Code: what an instruction does to the state, and how two states are joined. A Flow decides in
// which order code is followed, joins states where edges meet, and ends when nothing new is
// found or the steps are used up.
//
// A plugin for a CPU needs less. It implements CPU: the operations of its instructions and
// their effects on a state. A Function then follows the code, decides which calls return, and
// makes rows; an Exits finds where code goes on; a Reader answers requests with them.
//
// Addresses are plain numbers of 64 bits: addresses of the target, or offsets in the code of
// one function. What a flow does depends on the code alone: the same code gives the same
// states, in the same order.
package codeflow

import (
	"errors"
	"fmt"
	"iter"
)

// ErrSteps is the error of a flow whose steps are used up.
var ErrSteps = errors.New("the code takes more steps to read than any compiled function")

// None is an address that no code has.
const None = ^uint64(0)

// Code is machine code that a flow follows. S is the state before an instruction: a structure, or a
// pointer to one.
type Code[S any] interface {
	// Copy copies src to dst. Step may change the copy, which must leave src as it is.
	Copy(dst, src *S)

	// Step executes the instruction at an address: s, the state before it, becomes the state
	// after it. next is the address of the following instruction, or the same address where the
	// instruction cannot be read; continues tells the flow to go on at next with s. Step
	// reports other edges by Arrive and Defer, and by Spend that the instruction took more than
	// one step.
	Step(address uint64, s *S) (next uint64, continues bool)

	// Join joins s, the state over an edge to p, into the state of p, and reports whether that
	// changed: then the code is followed from p (again). Each join may only remove knowledge
	// from a state, or the flow ends only when its steps are used up. isFirst is true for the
	// first edge to p: Join makes s the state of p. In either case it may keep memory that s
	// refers to.
	Join(p *Point[S], s *S, isFirst bool) (hasChanged bool)
}

// Point is an instruction that has a state: each one that is reached, or the first one of each
// block.
type Point[S any] struct {
	Address   uint64
	End       uint64 // of a block: the end of the code that was followed from here, up to the next point
	State     S      // before the instruction, where IsReached
	Order     int    // how many points were found before
	IsReached bool

	isWaiting bool
}

// Arrival is an edge that leads to an address, with the state over it.
type Arrival[S any] struct {
	Address uint64
	Source  uint64 // the instruction that a deferred edge comes from; None: not known
	State   S
}

// Flow follows code. It is used by one goroutine at a time.
type Flow[S any] struct {
	code      Code[S]
	steps     *int
	maxBlocks int // 0: every instruction is a point
	points    Table[*Point[S]]
	found     []*Point[S] // in the order of discovery; the points from used on were forgotten, and are used again
	used      int
	stack     []Arrival[S] // pending edges, in a flow by instruction
	queue     heap[S]      // pending points, in a flow by block
	deferred  []Arrival[S]
	trial     *Trial
	now       S         // the working copy of Step
	current   *Point[S] // where the code that is being followed begins
	isReplay  bool
	err       error
}

// ByInstruction returns a flow that keeps the state before every instruction. A pending edge
// keeps its own state, and the last one found is followed first. steps is how many instructions
// the flow may follow, over all visits; several flows may share it.
func ByInstruction[S any](code Code[S], steps *int) *Flow[S] {
	return &Flow[S]{code: code, steps: steps}
}

// ByBlock returns a flow that keeps the state before every block: code that is entered only at
// its first instruction. An edge is joined into the block at once, and the block at the lowest
// address is followed first. Blocks are known beforehand (FindBlocks) or found by edges to
// them; a block that an edge leads into ends there. Defer and Try are for flows by instruction.
func ByBlock[S any](code Code[S], steps *int, maxBlocks int) *Flow[S] {
	return &Flow[S]{code: code, steps: steps, maxBlocks: maxBlocks}
}

// Err returns why the flow failed; nil where it did not.
func (f *Flow[S]) Err() error { return f.err }

// Point returns the point at an address; nil where there is none.
func (f *Flow[S]) Point(address uint64) *Point[S] { return f.points.Get(address) }

// Fail ends the flow with an error: pending code is not followed. The first error is kept.
func (f *Flow[S]) Fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// Found returns the points in the order of their discovery.
func (f *Flow[S]) Found() []*Point[S] { return f.found[:f.used] }

// All iterates over the points in the order of their addresses.
func (f *Flow[S]) All() iter.Seq[*Point[S]] {
	return func(yield func(*Point[S]) bool) {
		for _, p := range f.points.All() {
			if p != nil && !yield(p) {
				return
			}
		}
	}
}

// Current returns the point that begins the code for which Step is being called.
func (f *Flow[S]) Current() *Point[S] { return f.current }

// Arrive reports an edge to an address. It may keep memory that s refers to.
func (f *Flow[S]) Arrive(address uint64, s *S) {
	switch {
	case f.isReplay:
	case f.maxBlocks == 0:
		f.stack = append(f.stack, Arrival[S]{address, None, *s})
	default:
		if p, hasChanged := f.join(address, s); hasChanged && !p.isWaiting {
			f.queue.push(p)
		}
	}
}

// Run follows all pending code, and the code reached from there.
func (f *Flow[S]) Run() error {
	for len(f.stack) > 0 && f.err == nil {
		a := &f.stack[len(f.stack)-1]
		f.now = a.State
		f.stack = f.stack[:len(f.stack)-1]
		f.walk(a.Address)
		if f.trial != nil && f.trial.isOver() {
			f.stack = f.stack[:0]
		}
	}
	for len(f.queue) > 0 && f.err == nil {
		f.walkBlock(f.queue.pop(), nil)
	}
	return f.err
}

// Follow follows the code from an arrival.
func (f *Flow[S]) Follow(a *Arrival[S]) error {
	f.Arrive(a.Address, &a.State)
	return f.Run()
}

// Spend takes steps off the budget for other work of a plugin; the flow itself takes one for
// each instruction. ok is false where not enough are left, or the flow has failed.
func (f *Flow[S]) Spend(steps int) (ok bool) {
	if t := f.trial; t != nil {
		if t.steps -= steps; t.steps < 0 {
			t.IsCut = true
			return false
		}
	}
	if *f.steps -= steps; *f.steps < 0 {
		f.Fail(ErrSteps)
	}
	return f.err == nil
}

// walk follows straight-line code, with the state in now, until it ends or changes nothing.
func (f *Flow[S]) walk(address uint64) {
	for continues := true; continues; {
		p, hasChanged := f.join(address, &f.now)
		if !hasChanged || !f.Spend(1) {
			return
		}
		f.current = p
		f.code.Copy(&f.now, &p.State)
		address, continues = f.code.Step(address, &f.now)
	}
}

// walkBlock follows a block to the blocks that it leads to. See Replay for visit.
func (f *Flow[S]) walkBlock(p *Point[S], visit func(address uint64, s *S)) {
	f.current = p
	f.code.Copy(&f.now, &p.State)
	for address := p.Address; f.Spend(1); {
		if visit != nil {
			visit(address, &f.now)
		}
		next, continues := f.code.Step(address, &f.now)
		if p.End = next; !continues {
			return
		}
		if f.points.Get(next) != nil {
			f.Arrive(next, &f.now)
			return
		}
		address = next
	}
}

// Replay executes the instructions of a block once more, from the state before it. Before each
// instruction it calls visit, if that is not nil, with its address and the state there. Edges to
// other blocks are not followed.
func (f *Flow[S]) Replay(p *Point[S], visit func(address uint64, s *S)) error {
	f.isReplay = true
	f.walkBlock(p, visit)
	f.isReplay = false
	return f.err
}

// join joins a state into the point at an address. p is nil where there are too many points.
func (f *Flow[S]) join(address uint64, s *S) (p *Point[S], hasChanged bool) {
	if p = f.points.Get(address); p == nil {
		if p = f.add(address); p == nil {
			return nil, false
		}
		f.divide(address)
	}
	isFirst := !p.IsReached
	p.IsReached = true
	return p, f.code.Join(p, s, isFirst)
}

// add makes a point of an address.
func (f *Flow[S]) add(address uint64) *Point[S] {
	if f.maxBlocks != 0 && f.used == f.maxBlocks {
		f.err = fmt.Errorf("a function with more than %d branches", f.maxBlocks)
		return nil
	}
	if f.used == len(f.found) {
		f.found = append(f.found, new(Point[S]))
	}
	p := f.found[f.used]
	*p = Point[S]{Address: address, End: address, Order: f.used}
	f.used++
	*f.points.Put(address) = p
	return p
}

// divide queues the blocks that were followed past an address once more, to end at the address:
// it became a point of its own.
func (f *Flow[S]) divide(address uint64) {
	if f.maxBlocks == 0 {
		return
	}
	for _, p := range f.found[:f.used] {
		if p.Address < address && address < p.End && p.IsReached && !p.isWaiting {
			f.queue.push(p)
		}
	}
	*f.steps -= f.used / 8
}
