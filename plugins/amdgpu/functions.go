// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"errors"
	"slices"
)

// functions has the functions of an object that were read.
type functions struct {
	mode    machineMode
	code    code
	known   map[uint64]*summary
	tails   map[uint64]map[uint64]*registerSet // flow.tails, by functions that jump to others
	visited int                                // how many times a function was followed
}

func newFunctions(mode machineMode, c code) *functions {
	return &functions{mode: mode, code: c, known: map[uint64]*summary{}, tails: map[uint64]map[uint64]*registerSet{}}
}

var errCallees = errors.New("the function leads to more functions than any compiled one")

// reading is a function that is being read together with its callees.
type reading struct {
	summary   summary
	callers   []uint64
	isWaiting bool
}

// reader reads functions that call each other.
type reader struct {
	*functions
	readings map[uint64]*reading
	queue    []uint64 // the functions to follow, the last one first
}

// enqueue has a function followed once more.
func (r *reader) enqueue(entry uint64) {
	if !r.readings[entry].isWaiting {
		r.readings[entry].isWaiting = true
		r.queue = append(r.queue, entry)
	}
}

// callee returns the effect of a called function as far as it is known.
func (r *reader) callee(target, caller uint64) *summary {
	if s := r.known[target]; s != nil {
		return s
	}
	callee := r.readings[target]
	if callee == nil {
		callee = &reading{}
		r.readings[target] = callee
		r.enqueue(target)
	}
	if !slices.Contains(callee.callers, caller) {
		callee.callers = append(callee.callers, caller)
	}
	return &callee.summary
}

// read follows a function, after its callees that are not known yet. A call has the
// effect of the called function. Functions that call each other are followed until
// nothing new is found. At first none of them is known to return, so that in the end
// they change no more than the code shows.
func (fs *functions) read(entry uint64, steps *int) (*flow, error) {
	order, err := fs.order(entry, steps)
	if err != nil {
		return nil, err
	}
	r := &reader{functions: fs, readings: map[uint64]*reading{}}
	for _, start := range slices.Backward(order) {
		r.readings[start] = &reading{}
		r.enqueue(start)
	}
	var last *flow
	for len(r.queue) > 0 {
		start := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		now := r.readings[start]
		now.isWaiting = false
		f := newFlow(&fs.mode, fs.code, start, steps, func(target uint64) *summary { return r.callee(target, start) })
		fs.visited++
		if err := f.run(); err != nil {
			return nil, err
		}
		if len(f.tails) > 0 {
			fs.tails[start] = f.tails
		}
		if len(r.readings) > maxCallee {
			return nil, errCallees
		}
		if start == entry {
			last = f
		}
		if now.summary.changes.add(&f.exits.changes) || f.exits.canReturn && !now.summary.canReturn {
			now.summary.canReturn = now.summary.canReturn || f.exits.canReturn
			for _, caller := range now.callers {
				r.enqueue(caller)
			}
		}
	}
	for start, done := range r.readings {
		fs.known[start] = &done.summary
	}
	return last, nil
}

// order lists a function, last, after the functions that it leads to and are not known
// yet. Called functions come before their callers, as far as the code shows that
// without being followed.
func (fs *functions) order(entry uint64, steps *int) ([]uint64, error) {
	type visit struct {
		start   uint64
		callees []uint64
	}
	var order []uint64
	seen := map[uint64]bool{}
	var stack []visit
	enter := func(start uint64) error {
		seen[start] = true
		f := newFlow(&fs.mode, fs.code, start, steps, nil)
		if err := f.FindBlocks(start, f.edges); err != nil {
			return err
		}
		stack = append(stack, visit{start, f.callees()})
		return nil
	}
	if err := enter(entry); err != nil {
		return nil, err
	}
	for len(stack) > 0 {
		v := &stack[len(stack)-1]
		if len(v.callees) == 0 {
			order = append(order, v.start)
			stack = stack[:len(stack)-1]
			continue
		}
		next := v.callees[0]
		v.callees = v.callees[1:]
		if seen[next] || fs.known[next] != nil || next%4 != 0 || fs.code.at(next) == nil {
			continue
		}
		if len(seen) > maxCallee {
			return nil, errCallees
		}
		if err := enter(next); err != nil {
			return nil, err
		}
	}
	return slices.Clip(order), nil
}

// alone follows a function and no other. On entry registers have the caller's values,
// except the registers in entered.
func (fs *functions) alone(entry uint64, steps *int, entered *registerSet) (*flow, error) {
	f := newFlow(&fs.mode, fs.code, entry, steps, func(target uint64) *summary { return fs.known[target] })
	f.entered = entered
	fs.visited++
	return f, f.run()
}
