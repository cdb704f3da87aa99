// SPDX-License-Identifier: Apache-2.0

package php

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// maxObjects bounds the objects of a process among which fibers are looked for.
const maxObjects = 1 << 20

// fiberStates are the states of fibers, by number.
var fiberStates = []string{"not started", "running", "suspended", "ended"}

// fibers lists the fibers that have not ended. They are objects, found in the list of all objects.
func (r *reader) fibers(wantsFrames bool) ([]sdk.ManagedThread, error) {
	store, err := r.Bytes(r.executor+r.layout.executor.objects, 16)
	if err != nil {
		return nil, err
	}
	data, count := r.Number(store[:8]), r.Number(store[8:12])
	if count > maxObjects {
		return nil, fmt.Errorf("%d objects, expected at most %d", count, maxObjects)
	}
	if count == 0 {
		return nil, nil
	}
	list, err := r.Bytes(data, count*8)
	if err != nil {
		return nil, fmt.Errorf("the list of %d objects: %w", count, err)
	}
	var objects, numbers []uint64
	for i := uint64(1); i < count; i++ { // there is no object 0
		switch at := r.Number(list[i*8 : i*8+8]); {
		case at%8 == 0 && at != 0:
			objects, numbers = append(objects, at), append(numbers, i)
		case at%2 == 0: // others are free
			return nil, fmt.Errorf("the object %d at %#x: expected an address that 8 divides, or the number of a free one", i, at)
		}
	}
	r.Prefetch(objects, objectClass+8)
	active, _ := r.Pointer(r.executor + r.layout.executor.activeFiber)
	var out []sdk.ManagedThread
	var wrong error
	for i, at := range objects {
		class, err := r.Pointer(at + objectClass)
		if err == nil {
			err = r.checkClass(class, "Fiber", r.fiberClass)
		}
		if err != nil {
			wrong = cmp.Or(wrong, fmt.Errorf("the object at %#x: %w", at, err))
			continue
		}
		if class != r.fiberClass {
			continue
		}
		t, err := r.fiberThread(at, at == active, wantsFrames)
		if err == nil && t != nil && t.Number != numbers[i] {
			err = fmt.Errorf("it has the number %d, expected %d", t.Number, numbers[i])
		}
		if err != nil {
			return out, fmt.Errorf("the fiber at %#x: %w", at, err)
		}
		if t != nil {
			out = append(out, *t)
		}
	}
	return out, wrong
}

// fiberThread returns a fiber; nil where it has ended.
func (r *reader) fiberThread(fiber uint64, isActive, wantsFrames bool) (*sdk.ManagedThread, error) {
	l := &r.layout.fiber
	number, err := r.Uint(fiber+objectNumber, 4)
	if err != nil {
		return nil, err
	}
	state, err := r.Uint(fiber+l.status, 4)
	switch {
	case err != nil:
		return nil, err
	case state >= uint64(len(fiberStates)):
		return nil, fmt.Errorf("state %d, expected one of %d", state, len(fiberStates))
	case fiberStates[state] == "ended":
		return nil, nil
	}
	t := &sdk.ManagedThread{Number: number, State: fiberStates[state]}
	if threads := r.request.Threads; isActive && len(threads) == 1 { // of several any may be the interpreter's
		t.IsMounted, t.Carrier = true, threads[0].ID
	}
	if state == 2 && wantsFrames {
		r.setFrames(t, fiber)
	}
	return t, nil
}

// setFrames sets the frames of a suspended fiber, up to its bottom.
func (r *reader) setFrames(t *sdk.ManagedThread, fiber uint64) {
	problem := func(err error) {
		if err != nil && t.Problem == "" {
			t.Problem = err.Error()
		}
	}
	address, err := r.Pointer(fiber + r.layout.fiber.frame)
	if err != nil {
		problem(err)
		return
	}
	bottom, err := r.Pointer(fiber + r.layout.fiber.bottom)
	if err != nil {
		problem(err)
		return
	}
	list, err := r.chain(address)
	problem(err)
	end := slices.IndexFunc(list, func(f frame) bool { return f.address == bottom })
	if end >= 0 {
		list = list[:end]
	} else {
		problem(fmt.Errorf("prev_execute_data does not lead to the bottom of the fiber, %#x", bottom))
	}
	r.load(list)
	t.Frames, err = r.managed(list)
	problem(err)
}
