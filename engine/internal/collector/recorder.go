// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"sync"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// recorder is a target that keeps the memory that is read of another one.
type recorder struct {
	target.Target

	mu          sync.Mutex
	instances   map[instance]*pages
	files       target.FileMemory          // nil: memory of all files is kept
	withheld    map[*target.Module]bool    // with memory that was read and not kept
	count       int                        // of pages
	code        map[uint64]string          // pages with code, and the architecture of the thread that met it
	arch        string                     // of the thread that is walked
	thread      *trace.Thread              // that is walked
	description *sdk.Description           // of its architecture; nil: there is none
	needed      map[uint64]map[uint32]bool // by handle: registers of threads in memory that were read
	mappings    map[uint64]target.Mapping  // by start: the requested ones; nil while walking
}

// instance is an instance of an address space; the default one has one.
type instance struct {
	space  locexpr.AddressSpace
	thread uint64 // handle
	lane   uint32 // 1 for lane 0, where lanes have instances of their own; else 0
}

// keep keeps memory that was read, except memory of unconfirmed files.
func (r *recorder) keep(k instance, address uint64, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.space != locexpr.DefaultSpace || r.files == nil {
		r.store(k, address, data)
		return
	}
	for len(data) > 0 {
		m, n := r.files.FromFile(address)
		n = min(n, uint64(len(data)))
		if m == nil || m.Confirmed() {
			r.store(k, address, data[:n])
		} else {
			r.withheld[m] = true
		}
		address, data = address+n, data[n:]
	}
}

// store adds to an instance's pages. The caller has locked mu.
func (r *recorder) store(k instance, address uint64, data []byte) {
	if len(data) == 0 {
		return
	}
	p := r.instances[k]
	if p == nil {
		p = &pages{all: map[uint64]*page{}}
		r.instances[k] = p
	}
	r.count += p.keep(address, data, keptPages-r.count)
}

func (r *recorder) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	n, err := r.Target.ReadMemory(space, address, buf)
	if !r.isRegister(space, address) && space == locexpr.DefaultSpace {
		r.keep(instance{}, address, buf[:n])
	}
	return n, err
}

// isOfLanes reports whether each lane of a thread has an instance of an address space.
func (r *recorder) isOfLanes(thread *trace.Thread, space locexpr.AddressSpace) bool {
	switch {
	case len(thread.LaneStates) == 0:
		return false
	case target.IsOfLanes(thread, space):
		return true
	case r.description == nil:
		return false
	}
	s, ok := r.description.Space(space)
	return ok && s.Scope == sdk.LaneScope
}

// isRegister reports whether an address is that of a register of the thread that is
// walked, and records that it was read.
func (r *recorder) isRegister(space locexpr.AddressSpace, address uint64) bool {
	th := r.thread
	if th == nil || len(th.Saved) == 0 {
		return false
	}
	if r.description == nil {
		return false
	}
	for i := range th.Saved {
		s := &th.Saved[i]
		info, ok := r.description.Register(s.First)
		size := (uint64(info.Bits) + 7) / 8
		if !ok || size == 0 || s.Into != space || address-s.Address >= size*uint64(s.Count) {
			continue
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.needed[th.Handle] == nil {
			r.needed[th.Handle] = map[uint32]bool{}
		}
		r.needed[th.Handle][s.First+uint32((address-s.Address)/size)] = true //nolint:gosec // below Count
		return true
	}
	return false
}

func (r *recorder) Mapped(address uint64) (mapped, executable bool) {
	mapped, executable = r.Target.Mapped(address)
	if mapped && r.mappings != nil {
		r.Around(address)
	}
	if executable {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.noteCode(address)
	}
	return mapped, executable
}

// noteCode records that there is code at an address. The caller has locked mu where walks
// are under way.
func (r *recorder) noteCode(address uint64) {
	if r.code == nil {
		r.code = map[uint64]string{}
	}
	if _, ok := r.code[address>>pageBits]; !ok {
		r.code[address>>pageBits] = r.arch
	}
}

// Around keeps the mappings around an address.
func (r *recorder) Around(address uint64) (below, containing, above *target.Mapping) {
	mapper, ok := r.Target.(target.Mapper)
	if !ok {
		return nil, nil, nil
	}
	below, containing, above = mapper.Around(address)
	r.noteMappings(below, containing, above)
	return below, containing, above
}

// noteMappings records mappings while explain runs.
func (r *recorder) noteMappings(list ...*target.Mapping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range list {
		if m != nil && r.mappings != nil {
			r.mappings[m.Start] = *m
		}
	}
}

// scopedRecorder is a recorder of a target with instances of address spaces.
type scopedRecorder struct {
	*recorder
	scoped target.ScopedMemory
}

func (r *scopedRecorder) ReadScoped(space locexpr.AddressSpace, thread *trace.Thread, address uint64, buf []byte) (int, error) {
	n, err := r.scoped.ReadScoped(space, thread, address, buf)
	if k := (instance{}); space == locexpr.DefaultSpace {
		r.keep(k, address, buf[:n])
	} else if thread != nil {
		k = instance{space: space, thread: thread.Handle}
		if r.isOfLanes(thread, space) {
			k.lane = thread.Lead + 1
		}
		r.keep(k, address, buf[:n])
	}
	return n, err
}
