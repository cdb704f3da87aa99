// SPDX-License-Identifier: Apache-2.0

package goruntime

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// reader reads the memory of a process while a call is under way.
type reader struct {
	*process
	ctx       context.Context
	engine    sdk.RuntimeEngine
	functions map[uint64]sdk.FunctionPlace // by address
	machines  map[uint64]machine           // runtime.m, by address
}

// read reads memory of the process.
func (r *reader) read(address uint64, buf []byte) (int, error) {
	return r.engine.ReadMemory(r.ctx, sdk.MemoryRange{Space: locexpr.DefaultSpace, Address: address, Lane: -1}, buf)
}

// word reads a number of the size of a pointer.
func (r *reader) word(address uint64) (uint64, error) {
	b := make([]byte, r.pointer)
	if _, err := r.read(address, b); err != nil {
		return 0, err
	}
	return r.number(b), nil
}

// structs reads structs of a size at many addresses, one after the other. isMissing has the
// indices of those that are not in the target, and err the reason for the first.
func (r *reader) structs(addresses []uint64, size uint64) (data []byte, isMissing map[int]bool, err error) {
	data = make([]byte, uint64(len(addresses))*size)
	missing, err := sdk.ReadParts(r.ctx, r.engine, addresses, int(size), data) //nolint:gosec // at most maxStruct
	isMissing = make(map[int]bool, len(missing))
	for _, i := range missing {
		isMissing[i] = true
	}
	if err != nil && len(missing) == 0 { // nothing could be read
		for i := range addresses {
			isMissing[i] = true
		}
	}
	return data, isMissing, err
}

// number returns the number in up to 8 bytes.
func (r *reader) number(b []byte) (n uint64) {
	switch len(b) {
	case 8:
		return r.order.Uint64(b)
	case 4:
		return uint64(r.order.Uint32(b))
	case 2:
		return uint64(r.order.Uint16(b))
	case 1:
		return uint64(b[0])
	}
	return 0
}

// get returns a member of a struct; 0 where this version does not have it.
func (r *reader) get(b []byte, f field) uint64 { return r.number(b[f.offset : f.offset+f.size]) }

// findFunctions asks for the functions at addresses, of which 0 is none.
func (r *reader) findFunctions(addresses []uint64) error {
	if r.functions == nil {
		r.functions = map[uint64]sdk.FunctionPlace{}
	}
	var left []uint64
	for _, a := range addresses {
		if _, isKnown := r.functions[a]; a != 0 && !isKnown {
			r.functions[a] = sdk.FunctionPlace{}
			left = append(left, a)
		}
	}
	for len(left) > 0 {
		n := min(len(left), sdk.MaxFindFunctions)
		places, err := r.engine.FindFunctions(r.ctx, left[:n])
		if err == nil && len(places) != n {
			err = fmt.Errorf("FindFunctions: %d functions, expected %d", len(places), n)
		}
		if err != nil {
			return err
		}
		for i, f := range places {
			r.functions[left[i]] = f
		}
		left = left[n:]
	}
	return nil
}

// isFunction reports whether a function is at an address that was asked for, and with isStart
// whether it begins there.
func (r *reader) isFunction(pc uint64, isStart bool) bool {
	f := r.functions[pc]
	return f.Name != "" && (!isStart || f.HasStart && f.Start == pc)
}

// machine is a runtime.m.
type machine struct {
	thread string // its LWP; "" where it is not known
	using  uint64 // the goroutine that it executes
}

// readMachines reads the machines at addresses, of which 0 is none.
func (r *reader) readMachines(addresses []uint64) {
	if r.machines == nil {
		r.machines = map[uint64]machine{}
	}
	var left []uint64
	for _, a := range addresses {
		if _, isKnown := r.machines[a]; a != 0 && !isKnown {
			r.machines[a] = machine{}
			left = append(left, a)
		}
	}
	data, isMissing, _ := r.structs(left, r.m.size)
	for i, a := range left {
		if b := data[uint64(i)*r.m.size:][:r.m.size]; !isMissing[i] { //nolint:gosec // an index
			r.machines[a] = machine{fmt.Sprint(r.get(b, r.m.thread)), r.get(b, r.m.using)}
		}
	}
}

// hasThread reports whether the target has a thread.
func (r *reader) hasThread(id string) bool {
	for i := range r.request.Threads {
		if r.request.Threads[i].ID == id {
			return true
		}
	}
	return false
}
