// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// maxThreads bounds the threads of Java.
	maxThreads = 1 << 16
	// threadBytes is how much of a thread is read ahead.
	threadBytes = 1 << 11
)

// javaThread is a thread of Java: a JavaThread.
type javaThread struct {
	address, object uint64
	lwp             string
	id              uint64 // by which monitors of Java 24 and later know it; 0: unknown
	stackLow        uint64
	stackHigh       uint64
	name, state     string
	pending         uint64 // the monitor that it waits to enter; 0: none
	waiting         uint64 // the monitor on which it waits to be notified; 0: none
	exception       uint64 // the object that it has thrown; 0: none
	problem         string
}

// stateWords are the states as Java's own traces have them.
var stateWords = map[string]string{
	"NEW": "NEW", "RUNNABLE": "RUNNABLE", "TERMINATED": "TERMINATED", "SLEEPING": "TIMED_WAITING (sleeping)",
	"IN_OBJECT_WAIT": "WAITING (on object monitor)", "IN_OBJECT_WAIT_TIMED": "TIMED_WAITING (on object monitor)",
	"PARKED": "WAITING (parking)", "PARKED_TIMED": "TIMED_WAITING (parking)", "BLOCKED_ON_MONITOR_ENTER": "BLOCKED (on object monitor)",
}

// readThreads reads the threads of Java.
func (r *reader) readThreads() ([]*javaThread, error) {
	addresses, err := r.threadAddresses()
	if err != nil {
		return nil, fmt.Errorf("the threads of Java: %w", err)
	}
	r.Prefetch(addresses, threadBytes)
	var list []*javaThread
	var further []uint64
	for _, a := range addresses {
		t := &javaThread{address: a}
		list = append(list, t)
		for _, f := range []field{r.osThread, r.threadObject} {
			if n, err := get(r.MemoryReader, a, f); err == nil {
				further = append(further, n)
			}
		}
	}
	r.Prefetch(further, 64)
	for _, t := range list {
		if err := r.readThread(t); err != nil {
			t.problem = fmt.Sprintf("the thread of Java at %#x: %v", t.address, err)
		}
	}
	return list, nil
}

// threadAddresses are the addresses of the threads of Java: in an array, or linked.
func (r *reader) threadAddresses() (list []uint64, err error) {
	if r.smrList != 0 && r.listThreads.isKnown {
		all, err := r.Pointer(r.smrList)
		if err != nil {
			return nil, err
		}
		var count, array uint64
		if err := getAll(r.MemoryReader, all, []memberInto{{r.listLength, &count}, {r.listThreads, &array}}); err != nil {
			return nil, err
		}
		if count > maxThreads {
			return nil, fmt.Errorf("%d threads, expected at most %d", count, maxThreads)
		}
		data, err := r.Bytes(array, 8*count)
		if err != nil {
			return nil, err
		}
		for i := range count {
			list = append(list, r.Number(data[8*i:][:8]))
		}
		return list, nil
	}
	thread, err := r.Pointer(r.threadList)
	for err == nil && thread != 0 {
		if len(list) >= maxThreads || slices.Contains(list[max(0, len(list)-64):], thread) {
			return list, fmt.Errorf("the list of threads has no end")
		}
		list = append(list, thread)
		thread, err = get(r.MemoryReader, thread, r.threadNext)
	}
	return list, err
}

// readThread reads a thread.
func (r *reader) readThread(t *javaThread) error {
	os, err := get(r.MemoryReader, t.address, r.osThread)
	if err != nil {
		return err
	}
	lwp, err := get(r.MemoryReader, os, r.threadID)
	if err != nil {
		return err
	}
	t.lwp = strconv.FormatUint(lwp, 10)
	optional := func(f field) uint64 {
		n, err := get(r.MemoryReader, t.address, f)
		if err != nil {
			return 0
		}
		return n
	}
	t.stackHigh = optional(r.stackBase)
	t.stackLow = t.stackHigh - optional(r.stackSize)
	t.pending, t.waiting, t.id = optional(r.pendingMonitor), optional(r.waitingMonitor), optional(r.ownerID)
	t.exception = optional(r.pendingException)
	if t.object, err = r.handle(t.address, r.threadObject); err != nil || t.object == 0 {
		return err
	}
	if !r.findShape(t.object, "java.lang.Thread") {
		return fmt.Errorf("the object at %#x is no java.lang.Thread", t.object)
	}
	if t.name, err = r.textIn(t.object, "name"); err != nil {
		return fmt.Errorf("its name: %w", err)
	}
	if t.state, err = r.stateOf(t.object); err != nil {
		return fmt.Errorf("its state: %w", err)
	}
	return nil
}

// stateOf reads the state of a thread: a number in its object, or in one that this has.
func (r *reader) stateOf(object uint64) (string, error) {
	class, err := r.classOf(object)
	if err != nil {
		return "", err
	}
	f, err := r.fieldOf(class, "threadStatus")
	if err != nil {
		if object, err = r.objectIn(object, "holder", "java.lang.Thread$FieldHolder"); err != nil || object == 0 {
			return "", err
		}
		if class, err = r.classOf(object); err != nil {
			return "", err
		}
		if f, err = r.fieldOf(class, "threadStatus"); err != nil {
			return "", err
		}
	}
	n, err := r.Uint(object+f.offset, 4)
	if err != nil {
		return "", err
	}
	return stateWords[r.statuses[signed(n, 4)]], nil
}

// monitor is a lock of Java that has threads waiting for it.
type monitor struct {
	object uint64
	name   string
	owner  *javaThread // nil: none, or unknown
}

// readMonitor reads an ObjectMonitor.
func (r *reader) readMonitor(address uint64, threads []*javaThread) (*monitor, error) {
	object, err := get(r.MemoryReader, address, r.monitorObject)
	if err != nil {
		return nil, err
	}
	if r.version.hasWeakMonitors {
		object, err = r.Pointer(object)
	}
	m := &monitor{object: object}
	if err == nil {
		m.name, err = r.typeOf(object)
	}
	if err != nil {
		return nil, fmt.Errorf("the object of the monitor at %#x: %w", address, err)
	}
	owner, err := get(r.MemoryReader, address, r.monitorOwner)
	if err != nil {
		return nil, err
	}
	for _, t := range threads {
		// The owner is a thread, its number, or a lock in its stack.
		if owner != 0 && (owner == t.address || owner == t.id || owner >= t.stackLow && owner < t.stackHigh) {
			m.owner = t
		}
	}
	return m, nil
}

// locksOf are the locks for which threads wait.
func (r *reader) locksOf(threads []*javaThread, handles map[string]uint64) (list []sdk.RuntimeLock, problems []string) {
	byMonitor := map[uint64]int{}
	for _, t := range threads {
		handle, has := handles[t.lwp]
		if t.pending == 0 || !has {
			continue
		}
		i, isKnown := byMonitor[t.pending]
		if !isKnown {
			m, err := r.readMonitor(t.pending, threads)
			if err != nil {
				problems = append(problems, fmt.Sprintf("the lock for which thread %s waits is not known: %v", t.lwp, err))
				continue
			}
			i = len(list)
			byMonitor[t.pending] = i
			l := sdk.RuntimeLock{Address: m.object, Name: "a " + m.name}
			if m.owner != nil {
				l.Holder, l.HasHolder = handles[m.owner.lwp], true
				_, l.HasHolder = handles[m.owner.lwp]
			}
			list = append(list, l)
		}
		list[i].Waiters = append(list[i].Waiters, handle)
	}
	for i := range list {
		slices.Sort(list[i].Waiters)
	}
	return list, problems
}

// describe adds to a stack the name, state, locks and exception of its thread.
func (r *reader) describe(t *javaThread, threads []*javaThread, stack *sdk.ManagedStack) {
	stack.Name, stack.State = t.name, t.state
	if t.problem != "" {
		stack.Problem = t.problem
		return
	}
	if t.pending != 0 {
		if m, err := r.readMonitor(t.pending, threads); err == nil {
			stack.Locks = append(stack.Locks, sdk.ManagedLock{Address: m.object, Name: "a " + m.name, IsWaited: true})
		}
	}
	if t.exception != 0 {
		e, err := r.exception(t.exception)
		if err != nil {
			stack.Problem = fmt.Sprintf("its exception: %v", err)
			return
		}
		stack.Exception = e
	}
}

// notifierOf is the object by which a thread waits to be notified; 0: none.
func (r *reader) notifierOf(t *javaThread, threads []*javaThread) uint64 {
	if t.waiting == 0 {
		return 0
	}
	m, err := r.readMonitor(t.waiting, threads)
	if err != nil {
		return 0
	}
	return m.object
}
