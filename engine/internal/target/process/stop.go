// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Threads are stopped and released by ptrace(2).
//
// PTRACE_SEIZE attaches to a thread without stopping it. PTRACE_INTERRUPT then stops it
// without a signal: the process sees no SIGSTOP, and a process that is stopped already stays so
// afterwards. All of it has to be done by one thread of this process, the tracer; when that
// ends, however it ends, the kernel releases the threads that it had seized.

// tracee is a thread of the other process.
type tracee struct {
	id        int
	isStopped bool
	isGone    bool
	signal    int // that was pending when the thread stopped, and is delivered when it goes on
	since     time.Time
	stopped   time.Duration // an upper bound
	registers []registerNote
	late      lateness // of a thread that did not stop
	state     byte     // before the stop, of a sample: R, S, D, T and so on
	isLeftOut bool     // it is not stopped
}

// lateness is how long a thread was waited for in vain, and its state then.
type lateness struct {
	state  byte
	waited time.Duration
}

// String says why a thread has no registers.
func (l lateness) String() string {
	waited := l.waited.Round(10 * time.Millisecond)
	switch l.state {
	case 'R':
		return fmt.Sprintf("it got no processor to stop on for %v (state R), as where many want one", waited)
	case 'D':
		return fmt.Sprintf("it is in an uninterruptible wait (state D), and did not leave it for %v", waited)
	case 0:
		return fmt.Sprintf("it did not stop for %v", waited)
	}
	return fmt.Sprintf("it did not stop for %v: its state is %c", waited, l.state)
}

// registerNote is a set of registers as in a core.
type registerNote struct {
	owner string
	typ   uint32
	data  []byte
}

// tracer stops the threads of a process. All its methods are called by one thread.
type tracer struct {
	pid      int
	threads  []*tracee
	begun    time.Time                     // when the first thread was interrupted; zero if none was
	longest  time.Duration                 // the longest stop of one thread
	deadline time.Duration                 // for threads to stop that wait for something
	patience time.Duration                 // for all threads to stop, since begun; see mayGiveUp
	isSample bool                          // threads that wait for a processor have no more time than others
	wanted   func(id int, state byte) bool // the threads of a sample that are stopped; nil: all

	mu     sync.Mutex
	seized []int // IDs that reap looks at
}

// reap collects the exit status of threads that have ended, until done is closed. A thread that
// calls execve waits until the others' are collected, and meanwhile the kernel blocks calls that
// seize or read any thread of its process, such as the tracer's: so another goroutine does it.
// The status of the first thread is left to its parent; execve does not wait for it.
func (t *tracer) reap(done <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		t.mu.Lock()
		t.seized = slices.DeleteFunc(t.seized, func(id int) bool {
			// The kernel reports stops whether they are requested or not. They are
			// left to the tracer.
			const exits = unix.WEXITED | unix.WNOHANG | unix.WALL
			info, e := waitFor(id, exits|unix.WNOWAIT)
			if e == 0 && info.hasExited() {
				_, _ = waitFor(id, exits)
			}
			return e == unix.ECHILD || info.hasExited()
		})
		t.mu.Unlock()
	}
}

const (
	// maxThreads bounds the threads of a process. The kernel's default for all
	// processes together is half of it on a large machine.
	maxThreads = 1 << 20
	// maxRounds bounds how often new threads are looked for. Each round stops all threads,
	// so the next finds only children of threads that had not stopped yet.
	maxRounds = 64
)

// request calls ptrace with a request, which defines the meaning of addr and data.
func request(what, thread int, addr, data uintptr) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(what), uintptr(thread), addr, data, 0, 0); e != 0 {
		return e
	}
	return nil
}

// stop stops all threads of the process, including threads that start meanwhile. The caller must
// release them even after an error.
func (t *tracer) stop() error {
	for range maxRounds {
		fresh, err := t.seize()
		if err != nil || len(fresh) == 0 {
			return err
		}
		if t.begun.IsZero() {
			t.begun = time.Now()
		}
		for _, th := range fresh {
			th.since = time.Now()
			th.isGone = unix.PtraceInterrupt(th.id) != nil // only ESRCH is possible
		}
		t.await(fresh)
	}
	return fmt.Errorf("threads start faster than they can be stopped: %d are", len(t.threads))
}

// seize attaches to the threads that are not known yet, and returns them.
func (t *tracer) seize() (fresh []*tracee, err error) {
	ids, err := threadsOf(t.pid)
	if isGone(err) {
		return nil, ended(t.pid)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		index, known := slices.BinarySearchFunc(t.threads, id, func(th *tracee, id int) int { return th.id - id })
		if known {
			continue
		}
		if len(t.threads) == maxThreads {
			return nil, fmt.Errorf("more than %d threads", maxThreads)
		}
		th := &tracee{id: id}
		if t.wanted != nil && t.leavesOut(th) {
			t.threads = slices.Insert(t.threads, index, th)
			continue
		}
		if ok, err := t.seizeThread(id); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if id != t.pid {
			t.mu.Lock()
			t.seized = append(t.seized, id)
			t.mu.Unlock()
		}
		t.threads = slices.Insert(t.threads, index, th)
		fresh = append(fresh, th)
	}
	return fresh, nil
}

// seizeThread attaches to a thread. ok is false if it has ended.
func (t *tracer) seizeThread(id int) (ok bool, err error) {
	// The kernel refuses a thread that is ending before /proc shows that it has ended, or
	// that another thread that calls execve has its ID: so seizing is tried more than once,
	// and longer while no thread stands still for it.
	attempts := 6
	if !t.hasStopped() {
		attempts *= 20
	}
	for attempt := range attempts {
		if attempt > 1 {
			time.Sleep(time.Millisecond)
		}
		if err = unix.PtraceSeize(id); err == nil || isGone(err) {
			return err == nil, nil
		}
		s, e := readStatus(fmt.Sprintf("/proc/%d/task/%d", t.pid, id))
		switch {
		case isGone(e), e == nil && (s.state == 'Z' || s.state == 'X'):
			return false, nil
		case s.tracer == os.Getpid():
			// A seized thread called execve and has this ID now, or this process
			// copies the other process twice at once.
			return false, errChanged
		}
	}
	return false, err
}

// waited is struct siginfo as waitid fills it.
type waited struct {
	signal, errno, code int32
	_                   [unsafe.Sizeof(uintptr(0)) - 4]byte // the union is aligned to a word
	pid, uid, status    int32
	_                   [100]byte
}

// waitFor is waitid for one thread.
func waitFor(id int, options int) (info waited, e unix.Errno) {
	_, _, e = unix.Syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(id), uintptr(unsafe.Pointer(&info)), uintptr(options), 0, 0) //nolint:gosec // flags
	return info, e
}

// hasExited is CLD_EXITED, CLD_KILLED or CLD_DUMPED.
func (w *waited) hasExited() bool { return w.pid != 0 && w.code >= 1 && w.code <= 3 }

// eventStop is PTRACE_EVENT_STOP, the event in waitid's status of a stop without a signal.
const eventStop = unix.PTRACE_EVENT_STOP

// hasStopped reports whether any thread has been stopped.
func (t *tracer) hasStopped() bool {
	return slices.ContainsFunc(t.threads, func(th *tracee) bool { return th.isStopped && !th.isGone })
}

// await waits until threads have stopped, as long as the tracer's bounds let it. The others stand
// still meanwhile.
func (t *tracer) await(threads []*tracee) {
	pending := slices.Clone(threads)
	begun := time.Now()
	pause := 10 * time.Microsecond
	for {
		pending = slices.DeleteFunc(pending, func(th *tracee) bool { return th.isGone || th.hasStopped() })
		past := time.Since(begun)
		if past >= 2*time.Millisecond {
			t.look(pending, past)
		}
		if len(pending) == 0 || t.mayGiveUp(pending, past) {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Millisecond)
	}
}

// look reads the states of threads that have not stopped since past.
func (t *tracer) look(pending []*tracee, past time.Duration) {
	for _, th := range pending {
		// Threads that ended are not waited for. After another thread's execve the
		// thread that has such an ID now was perhaps never interrupted, or not even seized:
		// waitid has nothing to say of that one where it is a child of this process.
		s, err := readStatus(fmt.Sprintf("/proc/%d/task/%d", t.pid, th.id))
		th.isGone = isGone(err) || err == nil && (s.state == 'Z' || s.state == 'X')
		th.late = lateness{s.state, past}
		if !th.isGone {
			th.isGone = isGone(unix.PtraceInterrupt(th.id))
		}
	}
}

// mayGiveUp reports whether threads that have not stopped since past are no longer waited for. All
// of them are in uninterruptible waits then: a thread in another state has been interrupted, and
// stops when it is scheduled next, which may take longer where many want a processor. While no
// thread stands still for the others there is time, too.
func (t *tracer) mayGiveUp(pending []*tracee, past time.Duration) bool {
	switch {
	case past <= t.deadline:
		return false
	case time.Since(t.begun) > t.patience:
		return true
	case !t.hasStopped():
		return false
	}
	return !slices.ContainsFunc(pending, func(th *tracee) bool {
		return th.late.state != 'D' && (th.late.state != 'R' || !t.isSample)
	})
}

// hasStopped reports whether a thread has stopped. The exit status of a thread is left to its
// parent, which may be this process.
func (th *tracee) hasStopped() bool {
	info, e := waitFor(th.id, unix.WSTOPPED|unix.WNOHANG|unix.WALL|unix.WNOTHREAD)
	switch {
	case e == unix.ECHILD:
		th.isGone = true
	case e == 0 && info.pid != 0:
		th.isStopped = true
		// Another stop than the requested one is that of a pending signal.
		if info.status>>8 != eventStop {
			th.signal = int(info.status & 0x7f)
		}
	}
	return th.isStopped
}

// readRegisters reads a set of registers of a stopped thread (PTRACE_GETREGSET) into buf.
// size is 0 for a set that the thread or the processor does not have.
func (th *tracee) readRegisters(typ uint32, buf []byte) (size int) {
	vector := unix.Iovec{Base: &buf[0]}
	vector.SetLen(len(buf))
	err := request(unix.PTRACE_GETREGSET, th.id, uintptr(typ), uintptr(unsafe.Pointer(&vector)))
	if err != nil {
		th.isGone = th.isGone || errors.Is(err, unix.ESRCH) // ESRCH: it was killed while it was stopped
		return 0
	}
	return int(vector.Len) //nolint:gosec // at most len(buf)
}

// release lets all threads go on, except threads that have not stopped: these are released by
// the end of the tracer.
func (t *tracer) release() {
	for _, th := range t.threads {
		if !th.isStopped {
			continue
		}
		_ = request(unix.PTRACE_DETACH, th.id, 0, uintptr(th.signal)) //nolint:gosec // a signal
		th.stopped = time.Since(th.since)
		t.longest = max(t.longest, th.stopped)
	}
}
