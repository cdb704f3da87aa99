// SPDX-License-Identifier: Apache-2.0

// Package lock finds the lock that a blocked thread waits for, and the thread that holds it:
// by the arguments of the system call that the thread is in, the functions that called it, and
// the words of the lock in memory.
package lock

import (
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// Frame is a frame of a blocked thread.
type Frame struct {
	// Functions are the names of the function and of the calls inlined into it, innermost
	// first, each as symbol tables and as people have it.
	Functions [][2]string
	Module    string // the path of the module; "" if it is not known
	IsSignal  bool   // the kernel made it to call a signal handler
}

// Reader reads locks.
type Reader struct {
	// Memory reads memory, and returns how many bytes it could read.
	Memory func(address uint64, buf []byte) int
	// Threads are the threads of the process, by their IDs as the process knows them.
	Threads map[uint32]*trace.Thread
	// Pointer returns the thread pointer of a thread; ok is false where it is not known.
	Pointer func(*trace.Thread) (address uint64, ok bool)
}

// waiter is a thread that waits in a futex, with the words around it.
type waiter struct {
	*Reader
	call   target.FutexCall
	inner  []Frame // up to the frame of the function that is known
	outer  []Frame // the others
	module string  // of that function
	wait   trace.Wait
}

// Of returns what a thread waits for in a futex, by its frames, innermost first. isCertain means that the
// code shows that the system call is one. The result is nil where it is not known what the thread
// waits for, and where it only has nothing to do.
func (r *Reader) Of(call target.FutexCall, frames []Frame, isCertain bool) *trace.Wait {
	w := &waiter{Reader: r, call: call, inner: frames}
	w.wait.Address, w.wait.HasAddress = call.Address, true
	rule, isKnown := w.find()
	switch {
	case isKnown && rule.read == nil:
		return nil
	case isKnown:
		w.wait.Kind = rule.kind
		rule.read(w)
	case w.isInheriting():
		w.wait.Kind = trace.WaitMutex
		w.inherited(call.Address)
	case w.isJoin():
		w.wait.Kind = trace.WaitThread
	case !isCertain && !w.hasFutexName():
		return nil
	default:
		w.wait.Kind = trace.WaitFutex
	}
	return &w.wait
}

// isInheriting reports whether the kernel finds the owner in the word, to lend it the priority of
// the thread that waits.
func (w *waiter) isInheriting() bool {
	return w.call.Operation == target.FutexLockPI || w.call.Operation == target.FutexLockPI2
}

// word returns the 32-bit word at a distance from an address; ok is false where it cannot be read.
func (r *Reader) word(address uint64, distance int) (v uint32, ok bool) {
	var b [4]byte
	n := r.Memory(address+uint64(distance), b[:]) //nolint:gosec // its bits
	return binary.LittleEndian.Uint32(b[:]), n == len(b)
}

// words returns the words from a distance on; nil where one cannot be read.
func (r *Reader) words(address uint64, distance, count int) []uint32 {
	b := make([]byte, 4*count)
	if r.Memory(address+uint64(distance), b) != len(b) { //nolint:gosec // its bits
		return nil
	}
	list := make([]uint32, count)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return list
}

// at sets the address of the lock, at a distance from the word that the thread waits for.
func (w *waiter) at(distance int) uint64 {
	w.wait.Address = w.call.Address + uint64(distance) //nolint:gosec // its bits
	return w.wait.Address
}

// noAddress states that the address of the lock is not known.
func (w *waiter) noAddress() { w.wait.Address, w.wait.HasAddress = 0, false }

const (
	notThere = "its memory is not in the target"
	released = "nobody holds it any more"

	// mostThreads is the largest ID of a thread of Linux (PID_MAX_LIMIT).
	mostThreads = 1 << 22
	// The bits of a word in which the kernel looks for an owner (futex(2)).
	ownerMask = 0x3fffffff // FUTEX_TID_MASK
	ownerDied = 0x40000000 // FUTEX_OWNER_DIED
)

// owner sets the thread that a lock names. Only a thread of the process is one.
func (w *waiter) owner(id uint32) {
	switch th := w.Threads[id]; {
	case th != nil:
		w.wait.Owner = th
	case id == 0 || id > mostThreads:
		w.wait.Why = "its owner is not known"
	default:
		w.wait.Why = fmt.Sprintf("its owner, thread %d, is not among the target's threads", id)
	}
}

// inherited reads the owner of a mutex whose word has it.
func (w *waiter) inherited(address uint64) {
	word, ok := w.word(address, 0)
	switch {
	case !ok:
		w.wait.Why = notThere
	case word&ownerDied != 0:
		w.wait.Why = "its last owner ended without unlocking it"
	case word&ownerMask == 0:
		w.wait.Why = released
	default:
		w.owner(word & ownerMask)
	}
}
