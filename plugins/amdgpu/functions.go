package amdgpu

import (
	"errors"
	"slices"
)

// functions are the functions of an object that were read.
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

// A reading is a function while it is read together with those that it calls.
type reading struct {
	summary   summary
	callers   []uint64
	isWaiting bool
}

// read follows a function, after those that it calls and that are not known yet. A call
// does what the called function is found to do. Functions that call each other are
// followed until nothing new is found. At first none of them is known to return, so that
// in the end they change no more than the code shows.
func (fs *functions) read(entry uint64, steps *int) (*flow, error) {
	readings := map[uint64]*reading{}
	var queue []uint64
	enqueue := func(at uint64, r *reading) {
		if !r.isWaiting {
			r.isWaiting = true
			queue = append(queue, at)
		}
	}
	order, err := fs.order(entry, steps)
	if err != nil {
		return nil, err
	}
	for i := len(order) - 1; i >= 0; i-- {
		r := &reading{}
		readings[order[i]] = r
		enqueue(order[i], r) // the last of the queue is followed first
	}
	var last *flow
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		r := readings[at]
		r.isWaiting = false
		f := newFlow(&fs.mode, fs.code, at, steps, func(target uint64) *summary {
			if s := fs.known[target]; s != nil {
				return s
			}
			callee := readings[target]
			if callee == nil {
				callee = &reading{}
				readings[target] = callee
				enqueue(target, callee)
			}
			if !slices.Contains(callee.callers, at) {
				callee.callers = append(callee.callers, at)
			}
			return &callee.summary
		})
		fs.visited++
		if err := f.run(); err != nil {
			return nil, err
		}
		if len(f.tails) > 0 {
			fs.tails[at] = f.tails
		}
		if len(readings) > maxCallee {
			return nil, errCallees
		}
		if at == entry {
			last = f
		}
		if r.summary.changes.add(&f.exits.changes) || f.exits.canReturn && !r.summary.canReturn {
			r.summary.canReturn = r.summary.canReturn || f.exits.canReturn
			for _, caller := range r.callers {
				enqueue(caller, readings[caller])
			}
		}
	}
	for at, r := range readings {
		fs.known[at] = &r.summary
	}
	return last, nil
}

// order lists a function, last, after the functions that it leads to and that are not
// known yet. Called functions come before their callers, as far as the code shows that
// without being followed.
func (fs *functions) order(entry uint64, steps *int) ([]uint64, error) {
	type visit struct {
		at      uint64
		callees []uint64
	}
	var order []uint64
	seen := map[uint64]bool{}
	var stack []visit
	enter := func(at uint64) error {
		seen[at] = true
		f := newFlow(&fs.mode, fs.code, at, steps, nil)
		if err := f.findBlocks(); err != nil {
			return err
		}
		stack = append(stack, visit{at, f.callees()})
		return nil
	}
	if err := enter(entry); err != nil {
		return nil, err
	}
	for len(stack) > 0 {
		v := &stack[len(stack)-1]
		if len(v.callees) == 0 {
			order = append(order, v.at)
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

// alone follows a function and no other. On entry registers hold what the caller left in
// them, except those of entered.
func (fs *functions) alone(entry uint64, steps *int, entered *registerSet) (*flow, error) {
	f := newFlow(&fs.mode, fs.code, entry, steps, func(target uint64) *summary { return fs.known[target] })
	f.entered = entered
	fs.visited++
	return f, f.run()
}
