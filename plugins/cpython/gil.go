// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// gil is a global interpreter lock. Interpreters share one, or have their own, from 3.12 on.
type gil struct {
	address uint64
	holder  uint64 // the thread state that holds it; 0: none
}

// gilName is the lock's name.
const gilName = "the GIL"

// gilOf returns the lock of an interpreter; nil where it has none, as in free-threaded builds.
func (r *reader) gilOf(i *interpreter) (*gil, error) {
	g := &gil{}
	if own := r.layout.runtime.gil; own.isKnown() {
		g.address = r.runtime + uint64(own) //nolint:gosec // not negative
	} else {
		var err error
		if g.address, err = r.pointer(i.address, r.layout.interpreter.gil); err != nil || g.address == 0 {
			return nil, err
		}
	}
	if r.layout.gil.enabled.isKnown() {
		if isEnabled, err := r.int(g.address, r.layout.gil.enabled); err != nil || isEnabled == 0 {
			return nil, err
		}
	}
	locked, err := r.int(g.address, r.layout.gil.locked)
	if err != nil {
		return nil, fmt.Errorf("the GIL at %#x: %w", g.address, err)
	}
	switch locked {
	case -1: // not yet made
		return nil, nil
	case 0:
		return g, nil
	case 1:
	default:
		return nil, fmt.Errorf("the GIL at %#x: locked is %d, expected 0 or 1", g.address, locked)
	}
	g.holder, err = r.pointer(g.address, r.layout.gil.holder)
	return g, err
}

// gils returns the locks of the interpreters that threads execute.
func (r *reader) gils(threads []*thread) (known map[*interpreter]*gil, err error) {
	known = map[*interpreter]*gil{}
	for _, t := range threads {
		if _, isKnown := known[t.interpreter]; isKnown {
			continue
		}
		g, gilErr := r.gilOf(t.interpreter)
		if err == nil {
			err = gilErr
		}
		known[t.interpreter] = g
	}
	return known, err
}

// locks describes the locks of the process as far as they are known without native stacks.
func (r *reader) locks() (list []sdk.RuntimeLock) {
	threads, _ := r.threads() // the stacks say why the list breaks off
	r.assign(threads)
	of, _ := r.gils(threads)
	byAddress := map[uint64]*sdk.RuntimeLock{}
	for _, t := range threads {
		g := of[t.interpreter]
		if g == nil || !t.hasHandle {
			continue
		}
		l := byAddress[g.address]
		if l == nil {
			l = &sdk.RuntimeLock{Address: g.address, Name: gilName}
			byAddress[g.address] = l
		}
		if g.holder == t.address {
			l.Holder, l.HasHolder = t.handle, true
		} else if r.part(t.bytes, r.layout.thread.gilRequested, 4) == 1 && !slices.Contains(l.Waiters, t.handle) {
			l.Waiters = append(l.Waiters, t.handle)
		}
	}
	for _, l := range byAddress {
		slices.Sort(l.Waiters)
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b sdk.RuntimeLock) int { return cmp.Compare(a.Address, b.Address) })
	return list
}

// The states of threads in free-threaded builds, by their number.
var states = map[uint64]string{0: "detached", 1: "attached", 2: "suspended", 3: "shutting down"}

// setState sets the state of a thread of the operating system, by the thread states that it has:
// whether it holds the lock or waits for it.
func (s *stacks) setState(i int, threads []*thread, gils map[*interpreter]*gil) {
	answer := &s.answer[i]
	hasLock := false
	for _, t := range threads {
		g := gils[t.interpreter]
		if g == nil {
			continue
		}
		hasLock = true
		if g.holder == t.address {
			answer.State = "holds " + gilName
			answer.Locks = append(answer.Locks, sdk.ManagedLock{Address: g.address, Name: gilName})
			return
		}
	}
	if !hasLock {
		if len(threads) > 0 && s.layout.isFree {
			answer.State = states[s.part(threads[0].bytes, s.layout.thread.state, 4)]
		}
		return
	}
	answer.State = "released " + gilName
	for _, t := range threads {
		g := gils[t.interpreter]
		if g == nil || g.holder == 0 {
			continue
		}
		if isWaiting(&s.request.Threads[i]) || s.part(t.bytes, s.layout.thread.gilRequested, 4) == 1 {
			answer.State = "waits for " + gilName
			answer.Locks = append(answer.Locks, sdk.ManagedLock{Address: g.address, Name: gilName, IsWaited: true})
			return
		}
	}
}

// takers are the functions that take the lock, and do nothing else that takes long.
var takers = map[string]bool{
	"take_gil": true, "PyEval_RestoreThread": true, "PyEval_AcquireThread": true, "PyEval_AcquireLock": true,
	"PyGILState_Ensure": true, "_PyThreadState_Attach": true,
}

// isWaiting reports whether a thread is in a function that takes the lock. Without names of static
// functions it is the one in the module that waits for a condition: the locks of programs are
// semaphores.
func isWaiting(stack *sdk.NativeStack) bool {
	for k := range stack.Frames {
		f := &stack.Frames[k]
		name, _, _ := strings.Cut(f.Function, ".")
		switch {
		case f.InModule && takers[name]:
			return true
		case f.InModule:
			return name == "" && k > 0 && isConditionWait(stack.Frames[k-1].Function)
		case k > maxWaitFrames:
			return false
		}
	}
	return false
}

// maxWaitFrames bounds the frames of the C library between a wait and its caller.
const maxWaitFrames = 8

// isConditionWait reports whether a function of the C library waits for a condition, for a time.
func isConditionWait(name string) bool {
	return strings.Contains(name, "pthread_cond_timedwait") || strings.Contains(name, "pthread_cond_clockwait")
}
