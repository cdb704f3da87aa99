// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"strings"
)

// This file reads generators and coroutines that are suspended: each has a frame, and one that awaits
// has on top of its stack what it awaits.

// generator is a generator, coroutine or asynchronous generator.
type generator struct {
	address     uint64
	frame       *frame
	isExecuting bool
	awaits      uint64 // the object that it awaits, or yields from; 0: none
}

// isGenerator reports whether a class is of generators, coroutines or asynchronous generators.
func isGenerator(name string) bool {
	return name == "generator" || name == "coroutine" || name == "async_generator"
}

// wrappers are classes of objects that stand for a generator, which is their first member.
var wrappers = map[string]bool{
	"coroutine_wrapper": true, "async_generator_asend": true, "async_generator_athrow": true,
	"anext_awaitable": true,
}

// maxWrappers bounds objects that stand for each other.
const maxWrappers = 16

// generatorOf returns the address of the generator that an object is or stands for; 0 where it is
// none.
func (r *reader) generatorOf(object uint64) (uint64, error) {
	for range maxWrappers {
		c, err := r.class(object)
		switch {
		case err != nil:
			return 0, err
		case isGenerator(c.name):
			return object, nil
		case !wrappers[c.name]:
			return 0, nil
		}
		if object, err = r.pointer(object, r.layout.object.size); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("object at %#x stands for others that lead to no generator", object)
}

// readGenerator reads a generator. One that has ended has no frame.
func (r *reader) readGenerator(address uint64) (*generator, error) {
	g := &generator{address: address}
	if r.layout.minor < 11 {
		return g, r.readOldGenerator(g)
	}
	n, err := r.byte(address, r.layout.generator.state)
	if err != nil {
		return nil, err
	}
	state, of := int8(n), &r.layout.states //nolint:gosec // signed in C
	switch {
	case state < of.created || state > of.last:
		return nil, fmt.Errorf("generator at %#x: its state is %d, expected %d to %d", address, state, of.created, of.last)
	case state > of.executing:
		return g, nil
	case r.layout.minor < 15 && state > of.suspended && state < of.executing && state != of.yieldsFrom:
		return nil, fmt.Errorf("generator at %#x: its state is %d", address, state)
	}
	g.isExecuting = state == of.executing
	if g.frame, err = r.readFrame(address + uint64(r.layout.generator.frame)); err != nil { //nolint:gosec // not negative
		return nil, err
	}
	yieldsFrom := state == of.yieldsFrom || state == of.yieldsFromLocked
	if of.yieldsFrom == noState {
		yieldsFrom = state == of.suspended && r.resumesInAwait(g.frame.instruction)
	}
	if yieldsFrom {
		g.awaits, err = r.top(g.frame)
	}
	return g, err
}

// noState is the number of a state that the version does not have.
const noState = 127

// Instructions that tell whether a generator awaits: what follows the one at which it is suspended.
const (
	opYieldFrom          = 72  // before 3.11
	opResume             = 151 // of 3.11 and 3.12, whose argument is 2 or 3 in an await
	opResumeQuick        = 150 // the same in 3.11
	opResumeInstrumented = 240 // the same in 3.12
)

// resumesInAwait reports whether the instruction behind one is where an await goes on.
func (r *reader) resumesInAwait(instruction uint64) bool {
	b, err := r.mem.Bytes(instruction+2, 2)
	return err == nil && (b[0] == opResume || b[0] == opResumeQuick || b[0] == opResumeInstrumented) && b[1]&3 >= 2
}

// readOldGenerator reads what a generator before 3.11 has.
func (r *reader) readOldGenerator(g *generator) error {
	address, err := r.pointer(g.address, r.layout.generator.frame)
	if err != nil || address == 0 {
		return err
	}
	if g.frame, err = r.readFrame(address); err != nil {
		return err
	}
	state, err := r.byte(address, r.layout.frame.state)
	if err != nil {
		return err
	}
	// 3.10 has a number for it, and the others whether it is executed.
	if g.isExecuting = state == 1; r.layout.minor == 10 {
		g.isExecuting = state == 0
	}
	if g.isExecuting || g.frame.last < 0 {
		return nil
	}
	c := r.code(g.frame.code)
	if c.err != nil {
		return c.err
	}
	at, err := r.placeOf(g.frame, c)
	if err != nil {
		return err
	}
	if b, err := r.mem.Bytes(c.start+uint64(at)+2, 1); err == nil && b[0] == opYieldFrom { //nolint:gosec // not negative
		g.awaits, err = r.top(g.frame)
		return err
	}
	return nil
}

// maxStack bounds the places of a frame for locals and values.
const maxStack = 1 << 20

// top returns the object on top of the stack of values of a frame that is suspended.
func (r *reader) top(f *frame) (uint64, error) {
	l := &r.layout.frame
	var end uint64
	var err error
	switch {
	case l.stackPointer.isKnown():
		end, err = r.pointer(f.address, l.stackPointer)
	case l.stackTop.isKnown():
		end, err = r.pointer(f.address, l.stackTop)
	case l.stack.isKnown():
		var depth int32
		if end, err = r.pointer(f.address, l.stack); err == nil {
			depth, err = r.int(f.address, l.stackDepth)
		}
		if depth <= 0 || depth > maxStack {
			return 0, fmt.Errorf("frame at %#x: its stack has %d values", f.address, depth)
		}
		end += uint64(depth) * 8
	default:
		var depth int32
		if depth, err = r.int(f.address, l.stackDepth); depth <= 0 || depth > maxStack {
			return 0, fmt.Errorf("frame at %#x: its stack has %d values", f.address, depth)
		}
		end = f.address + uint64(l.locals) + uint64(depth)*8 //nolint:gosec // not negative
	}
	if err != nil {
		return 0, err
	}
	if end < f.address || end > f.address+maxStack*8 || checkPointer(end) != nil {
		return 0, fmt.Errorf("frame at %#x: its stack ends at %#x, expected an address behind it", f.address, end)
	}
	value, err := r.mem.Pointer(end - 8)
	if err == nil && r.layout.minor >= 15 && (value&^1 == 0 || value&3 == 3) {
		value, err = r.mem.Pointer(end - 16) // on top is the index of an iterator without an object
	}
	if r.layout.minor >= 14 {
		value &^= 3
	}
	return value, err
}

// awaiting is a list of generators that await each other, outermost first.
type awaiting struct {
	next   uint64 // the object that is awaited next; 0: none
	frames []*frame
	seen   map[uint64]bool
	last   uint64 // the object that the innermost one awaits, which is no generator; 0: none
	err    error
}

// maxAwaits bounds the generators that await each other.
const maxAwaits = 1 << 12

// readAwaits reads lists of generators, one generator of each at a time, and resolves their frames.
func (r *reader) readAwaits(lists []*awaiting) {
	active := make([]*awaiting, 0, len(lists))
	for _, a := range lists {
		if a.seen = map[uint64]bool{}; a.next != 0 && a.err == nil {
			active = append(active, a)
		}
	}
	for len(active) > 0 && r.ctx.Err() == nil {
		addresses := make([]uint64, len(active))
		for i, a := range active {
			addresses[i] = a.next
		}
		r.mem.Prefetch(addresses, 256)
		left := active[:0]
		for _, a := range active {
			if a.step(r); a.next != 0 && a.err == nil {
				left = append(left, a)
			}
		}
		active = left
	}
	chains := make([]*chain, len(lists))
	for i, a := range lists {
		chains[i] = &chain{frames: a.frames}
	}
	r.resolve(chains)
	for i, a := range lists {
		if a.frames = chains[i].frames; chains[i].err != nil {
			a.err = chains[i].err
		}
	}
}

// step reads the next generator of a list.
func (a *awaiting) step(r *reader) {
	object := a.next
	a.next = 0
	address, err := r.generatorOf(object)
	if err != nil {
		a.err = err
		return
	}
	if address == 0 {
		a.last = object
		return
	}
	if a.seen[address] || len(a.frames) >= maxAwaits {
		a.err = fmt.Errorf("generator at %#x awaits itself", address)
		return
	}
	a.seen[address] = true
	g, err := r.readGenerator(address)
	if err != nil {
		a.err = err
		return
	}
	if g.frame == nil {
		return
	}
	if g.isExecuting && len(a.frames) == 0 {
		a.err = fmt.Errorf("generator at %#x is executed, but the thread that does it is not known", address)
		return
	}
	a.frames, a.next = append(a.frames, g.frame), g.awaits
}

// isClass reports whether the class of an object, or one that it is derived from, has one of some
// names.
func (r *reader) isClass(object uint64, names ...string) bool {
	c, err := r.class(object)
	if err != nil {
		return false
	}
	for _, name := range names {
		if c.name == name || strings.HasSuffix(c.name, "."+name) && !strings.Contains(name, ".") || r.isDerived(c, name) {
			return true
		}
	}
	return false
}
