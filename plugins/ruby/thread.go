// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"fmt"
	"strconv"

	"github.com/unwindd/unwindd/sdk"
)

// thread is a thread of Ruby.
type thread struct {
	address, ec uint64
	ractor      uint64 // 0: there are none in this version
	stackStart  uint64 // the outer end of its native stack, or its fiber's
	stackSize   uint64
	state       string
	name        string
	hasLock     bool   // it has the GVL
	lock        uint64 // address of the GVL
	waits       bool   // for the GVL
	id          string // of its native thread; "": unknown
	isParked    bool   // no native thread executes it
}

// maxThreads bounds the threads of a VM, and maxRactors its ractors.
const (
	maxThreads = 1 << 16
	maxRactors = 1 << 10
)

// readThreads reads the threads of the VM.
func (r *reader) readThreads() ([]*thread, error) {
	if err := r.checkVM(r.vm); err != nil {
		return nil, fmt.Errorf("the VM is not as it was: %w", err)
	}
	main, err := r.word("the main thread", r.vm+r.vmMainThread)
	if err != nil {
		return nil, err
	}
	firsts := []uint64{main}
	var problem error
	if r.vmRactors != absent {
		var others []uint64
		if others, problem = r.otherRactors(main); problem == nil {
			firsts = append(firsts, others...)
		}
	}
	var list []*thread
	for _, first := range firsts {
		some, err := r.ring(first)
		if list = append(list, some...); problem == nil {
			problem = err
		}
		if len(list) >= maxThreads {
			break
		}
	}
	r.readLocks(list)
	return list, problem
}

// ring returns the threads of the list that a thread is in.
func (r *reader) ring(first uint64) (list []*thread, err error) {
	heads, isKnown := 0, map[uint64]bool{}
	for node := first; !isKnown[node]; {
		isKnown[node] = true
		if ec, wrong := r.checkThread(node, r.vm); wrong == nil {
			list = append(list, r.readThread(node, ec))
		} else if heads++; heads > 1 { // the list is a ring that its head is in, which is no thread
			return list, fmt.Errorf("the list of threads has the node at %#x: %w", node, wrong)
		}
		if len(list) > maxThreads {
			return list, fmt.Errorf("there are more than %d threads", maxThreads)
		}
		before := node
		if node, err = r.word("the list of threads", node); err != nil {
			return list, err
		}
		if back, err := r.word("the list of threads", node+8); err != nil || back != before {
			return list, fmt.Errorf("the list of threads has %#x before the node at %#x, expected %#x", back, node, before)
		}
	}
	return list, nil
}

// otherRactors returns the main threads of the ractors beside the main one.
func (r *reader) otherRactors(main uint64) (list []uint64, err error) {
	head := r.vm + r.vmRactors
	node, err := r.word("the list of ractors", head)
	for range maxRactors {
		if err != nil || node == head {
			return list, err
		}
		first, err := r.word("a ractor's thread", node-r.ractorNode+r.ractorThread)
		if err == nil && !isPlace(first) {
			err = fmt.Errorf("a ractor's thread is %#x: expected an address", first)
		}
		if err != nil {
			return list, err
		}
		if first != main {
			list = append(list, first)
		}
		if node, err = r.word("the list of ractors", node); err != nil {
			return list, err
		}
	}
	return list, fmt.Errorf("there are more than %d ractors", maxRactors)
}

// states are the words of Ruby for the numbers of states.
var states = [...]string{"run", "sleep", "sleep_forever", "dead"}

// readThread reads a thread that was checked.
func (r *reader) readThread(address, ec uint64) *thread {
	t := &thread{address: address, ec: ec}
	if b, err := r.Bytes(ec, r.ecStackSize+8); err == nil {
		t.stackStart, t.stackSize = r.Number(b[r.ecStackStart:][:8]), r.Number(b[r.ecStackSize:][:8])
	}
	if status, err := r.Uint(address+r.threadStatus, 1); err == nil {
		t.state = states[status&3]
	}
	if name, err := r.word("a thread's name", address+r.threadName); err == nil && isPlace(name) {
		if t.name, err = r.text(name); err != nil {
			t.name = ""
		}
	}
	r.readNative(t)
	if r.vmMainRactor != absent {
		if ractor, err := r.word("a thread's ractor", address+threadRactor); err == nil && isPlace(ractor) {
			t.ractor = ractor
		}
	}
	return t
}

// readNative reads which native thread executes a thread.
func (r *reader) readNative(t *thread) {
	place := t.address
	if r.threadID == absent {
		return
	}
	if r.threadNative != absent {
		native, err := r.word("a native thread", t.address+r.threadNative)
		if t.isParked = err == nil && native == 0; !isPlace(native) {
			return
		}
		place = native
	}
	if id, err := r.Uint(place+r.threadID, 4); err == nil {
		t.id = strconv.FormatUint(id, 10)
	}
}

// threadRactor is the place of a thread's ractor, in all versions that have ractors.
const threadRactor = 24

// readLocks finds which threads have the GVL of their ractor, or of the VM, and which wait for it.
func (r *reader) readLocks(list []*thread) {
	byAddress := map[uint64]*thread{}
	locks := map[uint64]bool{}
	for _, t := range list {
		byAddress[t.address] = t
		switch {
		case r.vmLock != absent:
			t.lock = r.vm + r.vmLock
		case t.ractor != 0:
			t.lock = t.ractor + r.ractorRunning
		}
		locks[t.lock] = true
	}
	delete(locks, 0)
	for lock := range locks {
		if holder, err := r.word("the GVL", lock); err == nil {
			if t := byAddress[holder]; t != nil && t.lock == lock {
				t.hasLock = true
			}
		}
		head := lock + r.lockWaiters
		node, err := r.word("the list of the GVL", head)
		for range maxThreads {
			if err != nil || node == head || !isPlace(node) {
				break
			}
			if t := byAddress[node-r.threadWaits]; t != nil && !t.hasLock {
				t.waits = true
			}
			node, err = r.word("the list of the GVL", node)
		}
	}
}

// find returns the thread whose native stack frames are on; nil: none.
func (r *reader) find(threads []*thread, native *sdk.NativeStack) *thread {
	frames := native.Frames
	var best *thread
	for _, t := range threads {
		if t.stackStart == 0 || best != nil && best.stackSize <= t.stackSize {
			continue
		}
		for i := range frames {
			if f := &frames[i]; f.HasCFA && f.InModule && t.stackStart-f.CFA < t.stackSize {
				best = t
				break
			}
		}
	}
	if best != nil {
		return best
	}
	for i := range r.request.Threads {
		for _, t := range threads {
			if n := &r.request.Threads[i]; n.Thread == native.Thread && n.ID == t.id && !t.isParked {
				return t
			}
		}
	}
	return nil
}
