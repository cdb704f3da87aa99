// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"strconv"
)

// interpreter is a PyInterpreterState.
type interpreter struct {
	address uint64
	id      uint64 // 0: the main one
}

// thread is a PyThreadState: a thread of the operating system that executes an interpreter.
type thread struct {
	address     uint64
	interpreter *interpreter
	threadID    uint64 // of pthread_self
	nativeID    uint64 // LWP; 0: unknown, as before 3.11
	bytes       []byte
	handle      uint64 // of the thread of the operating system
	hasHandle   bool

	chain   *chain
	cframes []cframe // the C functions that execute its frames, innermost first, in 3.10 to 3.12
}

// cframe is a CFrame, a variable of the C function that executes frames.
type cframe struct{ address, frame uint64 }

// Bounds of lists of the runtime.
const (
	maxInterpreters = 1 << 12
	maxThreads      = 1 << 16
)

// interpreters returns the interpreters of the process, with the reason where the list breaks off.
func (r *reader) interpreters() (list []*interpreter, err error) {
	next, err := r.pointer(r.runtime, r.layout.runtime.interpreters)
	if err != nil {
		return nil, fmt.Errorf("_PyRuntime.interpreters.head: %w", err)
	}
	seen := map[uint64]bool{}
	for next != 0 {
		if seen[next] || len(list) >= maxInterpreters {
			return list, fmt.Errorf("interpreter at %#x follows itself", next)
		}
		seen[next] = true
		i := &interpreter{address: next}
		if i.id, err = r.pointer(next, r.layout.interpreter.id); err == nil {
			next, err = r.pointer(next, r.layout.interpreter.next)
		}
		if err != nil {
			return list, fmt.Errorf("interpreter at %#x: %w", i.address, err)
		}
		list = append(list, i)
	}
	return list, nil
}

// threads returns the threads of the interpreters, with the reason where a list breaks off.
func (r *reader) threads() (list []*thread, err error) {
	interpreters, err := r.interpreters()
	seen := map[uint64]bool{}
	for _, i := range interpreters {
		next, threadErr := r.pointer(i.address, r.layout.interpreter.threads)
		for next != 0 && threadErr == nil {
			if seen[next] || len(list) >= maxThreads {
				threadErr = fmt.Errorf("thread state at %#x follows itself", next)
				break
			}
			seen[next] = true
			var t *thread
			if t, threadErr = r.readThread(next, i); threadErr == nil {
				list = append(list, t)
				next = r.word(t.bytes, r.layout.thread.next)
			}
		}
		if err == nil {
			err = threadErr
		}
	}
	return list, err
}

// readThread reads a thread of an interpreter.
func (r *reader) readThread(address uint64, i *interpreter) (*thread, error) {
	if err := checkPointer(address); err != nil {
		return nil, err
	}
	l := &r.layout.thread
	b, err := r.mem.Bytes(address, uint64(l.size)) //nolint:gosec // known in all versions
	if err != nil {
		return nil, fmt.Errorf("thread state at %#x: %w", address, err)
	}
	if own := r.word(b, l.interpreter); own != i.address {
		return nil, fmt.Errorf("thread state at %#x: its interpreter is at %#x, expected %#x", address, own, i.address)
	}
	t := &thread{address: address, interpreter: i, bytes: b, threadID: r.word(b, l.threadID), nativeID: r.word(b, l.nativeID)}
	t.chain = &chain{next: r.word(b, l.frame)}
	return t, nil
}

// maxCFrames bounds the C functions of a thread that execute frames.
const maxCFrames = maxFrames

// readCFrames reads the C functions that execute frames of threads, one of each thread at a time.
func (r *reader) readCFrames(threads []*thread) {
	l := &r.layout.cframe
	if !r.layout.thread.cframe.isKnown() {
		return
	}
	next := make([]uint64, len(threads))
	for i, t := range threads {
		next[i] = r.word(t.bytes, r.layout.thread.cframe)
	}
	for isActive := true; isActive && r.ctx.Err() == nil; {
		isActive = false
		r.mem.Prefetch(next, 24)
		for i, t := range threads {
			root := t.address + uint64(r.layout.thread.rootCFrame) //nolint:gosec // known here
			if next[i] == 0 || next[i] == root || t.chain.err != nil {
				continue
			}
			if len(t.cframes) >= maxCFrames {
				t.chain.err = fmt.Errorf("CFrame at %#x: there are more than %d", next[i], maxCFrames)
				continue
			}
			c := cframe{address: next[i]}
			var err error
			if l.frame.isKnown() {
				c.frame, err = r.pointer(c.address, l.frame)
			}
			if err == nil {
				next[i], err = r.pointer(c.address, l.previous)
			}
			if err != nil {
				t.chain.err = fmt.Errorf("CFrame at %#x: %w", c.address, err)
				continue
			}
			t.cframes = append(t.cframes, c)
			isActive = true
		}
	}
}

// readFrames reads the frames of threads.
func (r *reader) readFrames(threads []*thread) {
	r.readCFrames(threads)
	chains := make([]*chain, len(threads))
	for i, t := range threads {
		if !r.layout.thread.frame.isKnown() && len(t.cframes) > 0 {
			t.chain.next = t.cframes[0].frame
		}
		if base := r.word(t.bytes, r.layout.thread.baseFrame); base != 0 && t.chain.next == base {
			t.chain.next = 0
		}
		chains[i] = t.chain
	}
	r.readChains(chains)
}

// pthreadTID is where glibc's struct pthread has the ID of the thread, by e_machine.
var pthreadTID = map[uint16]uint64{
	62:  0x2d0, // x86-64
	183: 0xd0,  // AArch64
}

// dwarfThreadPointer is the DWARF number of the register whose value is pthread_self, by e_machine.
var dwarfThreadPointer = map[uint16]uint32{62: 58}

// assign finds the threads of the operating system that threads are.
func (r *reader) assign(threads []*thread) {
	byID := make(map[string]uint64, len(r.request.Threads))
	for i := range r.request.Threads {
		byID[r.request.Threads[i].ID] = r.request.Threads[i].Thread
	}
	place := pthreadTID[r.request.Machine]
	var addresses []uint64
	for _, t := range threads {
		if place != 0 && checkPointer(t.threadID) == nil {
			addresses = append(addresses, t.threadID+place)
		}
	}
	r.mem.Prefetch(addresses, 4)
	isAll := true
	for _, t := range threads {
		id := t.nativeID
		if place != 0 && checkPointer(t.threadID) == nil {
			// After a fork some versions keep the ID of the thread that forked.
			if tid, err := r.mem.Uint(t.threadID+place, 4); err == nil && tid != 0 {
				if _, isKnown := byID[strconv.FormatUint(tid, 10)]; isKnown || id == 0 {
					id = tid
				}
			}
		}
		if t.handle, t.hasHandle = byID[strconv.FormatUint(id, 10)]; !t.hasHandle {
			isAll = false
		}
	}
	if !isAll {
		r.assignByRegister(threads)
	}
}

// assignByRegister finds the threads of the operating system by the register that has pthread_self:
// in another PID namespace threads have other IDs.
func (r *reader) assignByRegister(threads []*thread) {
	register, ok := dwarfThreadPointer[r.request.Machine]
	if !ok {
		return
	}
	byPointer := make(map[uint64]uint64, len(r.request.Threads))
	for i := range r.request.Threads {
		handle := r.request.Threads[i].Thread
		found, err := r.engine.ReadRegisters(r.ctx, handle, []uint32{register})
		if err == nil && len(found.Numbers) == 1 && len(found.Data) == 8 {
			byPointer[r.mem.Number(found.Data)] = handle
		}
	}
	for _, t := range threads {
		if handle, isKnown := byPointer[t.threadID]; isKnown && t.threadID != 0 {
			t.handle, t.hasHandle = handle, true
		}
	}
}
