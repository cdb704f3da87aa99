// SPDX-License-Identifier: Apache-2.0

package lock

// This file has the layouts of locks in memory: of glibc 2.25 and later unless a comment names
// other versions (sysdeps/nptl/bits/struct_mutex.h, struct_rwlock.h, thread-shared-types.h), and
// of musl 1.1 and later (src/internal/pthread_impl.h).

// Kinds of glibc's mutexes (nptl/pthreadP.h).
const (
	kindRobust  = 16
	kindInherit = 32
	kindElision = 256 // and 512: the lock may be left to the processor's transactions
	kindMask    = 0x3ff
)

// mutex reads a mutex: int lock, unsigned count, int owner, unsigned nusers, int kind.
func (w *waiter) mutex() {
	w.wait.IsTimed = w.call.IsTimed
	switch library := w.library(); {
	case library == musl:
		w.muslMutex()
		return
	case library == otherLibrary && w.isInheriting():
		w.inherited(w.call.Address)
		w.noAddress()
		return
	case library == otherLibrary:
		w.noAddress()
		w.wait.Why = "its layout is not known"
		return
	}
	if w.call.Value == 0 && !w.isInheriting() {
		// glibc lets a thread wait forever for a word on its stack (nptl/pthread_mutex_lock.c).
		w.noAddress()
		w.wait.Why = "the kernel refused it, as its owner has ended or waits for this thread"
		return
	}
	m := w.words(w.call.Address, 0, 5)
	if m == nil {
		w.wait.Why = notThere
		return
	}
	lock, owner, kind := m[0], m[2], m[4]
	switch {
	case kind&^kindMask != 0:
		w.wait.Why = "its memory holds no mutex"
	case kind&(kindRobust|kindInherit) != 0:
		w.inherited(w.call.Address)
	case lock == 0:
		w.wait.Why = released
	case owner == 0 && kind&kindElision != 0:
		w.wait.Why = "glibc does not record the owner of a mutex with lock elision"
	case owner == 0:
		w.wait.Why = "its owner is not recorded"
	default:
		w.owner(owner)
	}
}

// muslMutex reads a mutex of musl: int type, int lock, whose low bits are the owner's ID. Only
// normal mutexes (type 0) do not have it.
func (w *waiter) muslMutex() {
	kind, ok := w.word(w.at(-4), 0)
	switch {
	case !ok:
		w.wait.Why = notThere
	case kind&15 == 0:
		w.wait.Why = "musl does not record the owner of a normal mutex"
	default:
		w.inherited(w.call.Address)
	}
}

// The words of a read-write lock of glibc, and the bits of the first one
// (nptl/pthread_rwlock_common.c).
const (
	rwReaders, rwPhaseFutex, rwWritersFutex, rwWriter, rwWords = 0, 2, 3, 6, 7

	rwWritePhase, rwWriteLocked, rwReadersWait = 1, 2, 4
	rwReaderShift                              = 3
)

// rwlock reads a read-write lock. A thread waits for one of three of its words: pthread_rwlock_t
// is aligned to 8 bytes, and the word of the readers is waited for while it says so.
func (w *waiter) rwlock() {
	w.wait.IsTimed = w.call.IsTimed
	switch w.library() {
	case musl:
		w.muslRWLock()
		return
	case otherLibrary:
		w.noAddress()
		return
	}
	offset := 4 * rwPhaseFutex
	switch {
	case w.call.Address%8 == 4:
		offset = 4 * rwWritersFutex
	case w.call.Value&rwReadersWait != 0:
		offset = 0
	}
	m := w.words(w.at(-offset), 0, rwWords)
	if m == nil {
		w.wait.Why = notThere
		return
	}
	readers, writer := m[rwReaders], m[rwWriter]
	switch {
	case writer != 0: // versions before 2.25 have it in the same place
		w.owner(writer)
	case readers&rwWriteLocked != 0 && readers&rwWritePhase != 0:
		w.wait.Why = "a writer holds it"
	case readers&rwWritePhase == 0 && readers>>rwReaderShift > 0:
		w.readers(readers >> rwReaderShift)
	}
}

// maxReaders bounds a count of readers that is believed.
const maxReaders = 1 << 22

func (w *waiter) readers(n uint32) {
	if n <= maxReaders {
		w.wait.Readers = int(n)
	}
}

// muslRWLock reads a read-write lock of musl: a count of readers, or 0x7fffffff for a writer, and
// the highest bit where threads wait.
func (w *waiter) muslRWLock() {
	word, ok := w.word(w.call.Address, 0)
	switch n := word & 0x7fffffff; {
	case !ok:
		w.wait.Why = notThere
	case n == 0x7fffffff:
		w.wait.Why = "a writer holds it, which musl does not record"
	default:
		w.readers(n)
	}
}

// The offsets of words of a condition of glibc.
const (
	condWaiters    = 36 // 8 times the number of waiting threads, and flags
	condFirst      = 40 // the words that threads wait for
	condSecond     = 44
	condShift      = 3
	barrierRound   = 4
	barrierCount   = 8
	barrierOut     = 16
	joinMuslThread = -8 // the ID, from the word that threads wait for
)

// condition finds the beginning of a condition, which is aligned to 8 bytes.
func (w *waiter) condition() {
	w.wait.IsTimed = w.call.IsTimed
	if w.library() != glibc {
		w.noAddress() // musl's threads wait for a word on their stack
		return
	}
	offset := condFirst
	if w.call.Address%8 == 4 {
		offset = condSecond
	}
	if waiters, ok := w.word(w.at(-offset), condWaiters); !ok || waiters>>condShift == 0 {
		w.noAddress() // of an earlier version
	}
}

// join reads the ID of the thread whose end is waited for: it is the word that the kernel clears.
func (w *waiter) join() {
	w.wait.IsTimed = w.call.IsTimed
	distance := 0
	switch w.library() {
	case musl:
		distance = joinMuslThread
	case otherLibrary:
		w.noAddress()
		return
	}
	if id, ok := w.word(w.call.Address, distance); ok {
		w.wait.Owner = w.Threads[id]
	}
	w.noAddress()
}

// maxControlBlock bounds the control block of a thread, which lies below the thread pointer or
// above it.
const maxControlBlock = 1 << 12

// isJoin reports whether the word is the ID of a thread in that thread's own control block, and
// sets the thread: a library without names waits for the end of a thread there.
func (w *waiter) isJoin() bool {
	id, ok := w.word(w.call.Address, 0)
	th := w.Threads[id]
	if !ok || th == nil {
		return false
	}
	pointer, ok := w.Pointer(th)
	if !ok || w.call.Address-pointer+maxControlBlock >= 2*maxControlBlock {
		return false
	}
	w.wait.Owner = th
	w.noAddress()
	return true
}

// semaphore reads nothing: a semaphore begins with the word that is waited for.
func (w *waiter) semaphore() {
	w.timed()
	if w.library() == otherLibrary {
		w.noAddress()
	}
}

// barrier finds the beginning of a barrier of glibc, which is aligned to 8 bytes: unsigned in,
// current_round, count, int shared, unsigned out.
func (w *waiter) barrier() {
	offset := barrierRound
	if w.call.Address%8 == 0 {
		offset = barrierOut
	}
	base := w.at(-offset)
	entered, _ := w.word(base, 0)
	count, ok := w.word(base, barrierCount)
	if !ok || w.library() != glibc || count == 0 || offset == barrierRound && entered > count {
		w.noAddress()
	}
}

// The bits of a read-write lock of Rust (std::sys::sync::rwlock::futex): a count of readers, all
// ones for a writer.
const rustMask = 1<<30 - 1

// rustRead reads a lock that a thread waits for to read: the word is its first.
func (w *waiter) rustRead() { w.rustRWLock() }

// rustWrite reads a lock that a thread waits for to write: the word is its second.
func (w *waiter) rustWrite() {
	w.at(-4)
	w.rustRWLock()
}

func (w *waiter) rustRWLock() {
	word, ok := w.word(w.wait.Address, 0)
	switch n := word & rustMask; {
	case !ok:
		w.wait.Why = notThere
	case n == rustMask:
		w.wait.Why = "a writer holds it, which Rust's lock does not record"
	default:
		w.readers(n)
	}
}
