// SPDX-License-Identifier: Apache-2.0

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

// This file stops threads and lets them go (ptrace(2)).
//
// PTRACE_SEIZE attaches to a thread without stopping it. PTRACE_INTERRUPT then stops it
// without a signal: nobody sees a SIGSTOP, and a process that is stopped already stays so
// afterwards. All of it has to be done by one thread of this process, the tracer; when that
// ends, however it ends, the kernel lets go what it had seized.

// A tracee is a thread of the other process.
type tracee struct {
	id        int
	isStopped bool
	isGone    bool
	signal    int // that the thread was about to get when it stopped; it gets it when it goes on
	since     time.Time
	stopped   time.Duration // how long it was, at most
	registers []registerNote
}

// A registerNote is a set of registers as a core has it.
type registerNote struct {
	owner string
	typ   uint32
	data  []byte
}

// A tracer stops the threads of a process. All its methods are called by one thread.
type tracer struct {
	pid      int
	threads  []*tracee
	begun    time.Time     // the first thread was interrupted; zero: none was
	longest  time.Duration // that one thread was stopped
	deadline time.Duration // for the threads to stop

	mu     sync.Mutex
	seized []int // IDs that reap looks at
}

// reap asks for the exit status of threads that have ended, until done is closed. A thread
// that calls execve waits until the others are asked for, and meanwhile the kernel blocks
// whoever would seize or read any thread of its process, as the tracer does: so it is done
// by another goroutine. The status of the first thread is its parent's to ask for, and
// execve does not wait for that one.
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
			// The kernel tells of stops whether they are asked for or not. They are the
			// tracer's to take.
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
	// maxRounds is how often new threads are looked for. Each round stops all that there
	// are, so the next one finds only the children of those that had not stopped yet.
	maxRounds = 64
)

// request is a request of ptrace. What addr and data are depends on it.
func request(what, thread int, addr, data uintptr) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(what), uintptr(thread), addr, data, 0, 0); e != 0 {
		return e
	}
	return nil
}

// stop stops all threads of the process, those too that start meanwhile. What was stopped
// is to be released whatever it returns.
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
			th.isGone = unix.PtraceInterrupt(th.id) != nil // it is ESRCH alone
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
		at, known := slices.BinarySearchFunc(t.threads, id, func(th *tracee, id int) int { return th.id - id })
		if known {
			continue
		}
		if len(t.threads) == maxThreads {
			return nil, fmt.Errorf("more than %d threads", maxThreads)
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
		th := &tracee{id: id}
		t.threads = slices.Insert(t.threads, at, th)
		fresh = append(fresh, th)
	}
	return fresh, nil
}

// seizeThread attaches to a thread. ok is false for one that has ended.
func (t *tracer) seizeThread(id int) (ok bool, err error) {
	// A thread that ends is refused before it can be seen to have ended, and where another
	// one calls execve, that has its ID then: so it is asked more than once, and longer
	// while no thread stands still for it.
	attempts := 6
	if !t.holdsAny() {
		attempts *= patience
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
			// A thread that is seized called execve and has this ID now. Or this process
			// copies the other one twice at once.
			return false, errChanged
		}
	}
	return false, err
}

// A waited is struct siginfo as waitid fills it.
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

// eventStop is PTRACE_EVENT_STOP where waitid says it: the stop is no signal's.
const eventStop = unix.PTRACE_EVENT_STOP

// patience is how many times the deadline is waited for while no thread stands still: a
// process that executes another program, on a machine with much to do, is not at fault.
const patience = 20

// holdsAny says whether a thread has been stopped.
func (t *tracer) holdsAny() bool {
	return slices.ContainsFunc(t.threads, func(th *tracee) bool { return th.isStopped && !th.isGone })
}

// await waits until threads have stopped, as long as the deadline lets it.
func (t *tracer) await(threads []*tracee) {
	pending := slices.Clone(threads)
	begun := time.Now()
	pause := 10 * time.Microsecond
	for {
		pending = slices.DeleteFunc(pending, func(th *tracee) bool { return th.isGone || th.hasStopped() })
		past := time.Since(begun)
		if len(pending) == 0 || past > t.deadline && (t.holdsAny() || past > patience*t.deadline) {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Millisecond)
		if past < 2*time.Millisecond {
			continue
		}
		// One that ended is not waited for. Where another thread called execve, the
		// thread that has its ID now was perhaps never interrupted.
		for _, th := range pending {
			s, err := readStatus(fmt.Sprintf("/proc/%d/task/%d", t.pid, th.id))
			th.isGone = isGone(err) || err == nil && (s.state == 'Z' || s.state == 'X')
			if !th.isGone {
				_ = unix.PtraceInterrupt(th.id)
			}
		}
	}
}

// hasStopped asks whether a thread has stopped. The exit of a thread is left for its
// parent to be asked for, which may be this process.
func (th *tracee) hasStopped() bool {
	info, e := waitFor(th.id, unix.WSTOPPED|unix.WNOHANG|unix.WALL|unix.WNOTHREAD)
	switch {
	case e == unix.ECHILD:
		th.isGone = true
	case e == 0 && info.pid != 0:
		th.isStopped = true
		// Another stop than the one asked for is that of a signal on its way.
		if info.status>>8 != eventStop {
			th.signal = int(info.status & 0x7f)
		}
	}
	return th.isStopped
}

// readRegisters reads a set of registers of a stopped thread (PTRACE_GETREGSET) into buf.
// size is 0 for a set that the thread or the processor has not.
func (th *tracee) readRegisters(typ uint32, buf []byte) (size int) {
	vector := unix.Iovec{Base: &buf[0]}
	vector.SetLen(len(buf))
	err := request(unix.PTRACE_GETREGSET, th.id, uintptr(typ), uintptr(unsafe.Pointer(&vector)))
	if err != nil {
		th.isGone = th.isGone || errors.Is(err, unix.ESRCH) // it was killed while it was stopped
		return 0
	}
	return int(vector.Len) //nolint:gosec // at most what was asked for
}

// release lets all threads go on. Those that have not stopped cannot be let go: the end of
// the tracer does that.
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
