// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// madeAt is where the tests' memory begins.
const madeAt = 0x10000

// memoryOf returns a reader of words that begin at madeAt.
func memoryOf(words ...uint32) func(uint64, []byte) int {
	var memory []byte
	for _, w := range words {
		memory = binary.LittleEndian.AppendUint32(memory, w)
	}
	return bytesAt(memory)
}

func bytesAt(memory []byte) func(uint64, []byte) int {
	return func(address uint64, buf []byte) int {
		if address < madeAt || address-madeAt > uint64(len(memory)) {
			return 0
		}
		return copy(buf, memory[address-madeAt:])
	}
}

// stackOf makes frames: a name is a function of a symbol table, "file!name" of that file. Names
// with "::" are those that people read.
func stackOf(names ...string) (list []Frame) {
	for _, name := range names {
		file, function, ok := strings.Cut(name, "!")
		if !ok {
			file, function = "/usr/bin/program", name
		}
		list = append(list, Frame{Module: file, Functions: [][2]string{{function, function}}, IsSignal: function == "signal"})
	}
	return list
}

const (
	glibcFile = "/lib/x86_64-linux-gnu/libc.so.6!"
	muslFile  = "/lib/ld-musl-x86_64.so.1!"
)

// lockCases have the words from madeAt on, the word that the thread waits for, and the line. The
// target has the threads 11 and 12; 11 waits.
var lockCases = []struct {
	name  string
	call  target.FutexCall
	words []uint32
	stack []string
	want  string // "" for nothing
}{
	{"normal", target.FutexCall{Value: 2}, []uint32{2, 0, 12, 1, 0}, []string{glibcFile + "__lll_lock_wait", glibcFile + "___pthread_mutex_lock@@GLIBC_2.2.5"}, "the mutex at 0x10000 held by thread 12"},
	{"its own", target.FutexCall{Value: 2}, []uint32{2, 0, 11, 1, 0}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000, which it holds itself"},
	{"free again", target.FutexCall{Value: 2}, []uint32{0, 0, 0, 0, 0}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000: nobody holds it any more"},
	{"being taken", target.FutexCall{Value: 2}, []uint32{2, 0, 0, 0, 0}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000: its owner is not recorded"},
	{"owner that ended", target.FutexCall{Value: 2}, []uint32{2, 0, 77, 1, 0}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000: its owner, thread 77, is not among the target's threads"},
	{"owner that cannot be", target.FutexCall{Value: 2}, []uint32{2, 0, 0x41414141, 1, 0}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000: its owner is not known"},
	{"overwritten", target.FutexCall{Value: 2}, []uint32{2, 0, 12, 1, 0x41414141}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000: its memory holds no mutex"},
	{"elision", target.FutexCall{Value: 2}, []uint32{2, 0, 0, 0, 256}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000: glibc does not record the owner of a mutex with lock elision"},
	{"cut", target.FutexCall{Value: 2}, []uint32{2, 0}, []string{glibcFile + "pthread_mutex_lock"}, "the mutex at 0x10000: its memory is not in the target"},
	{"robust", target.FutexCall{Value: 2}, []uint32{12 | 1<<31, 0, 0, 1, 16}, []string{glibcFile + "__pthread_mutex_lock_full"}, "the mutex at 0x10000 held by thread 12"},
	{"robust, owner ended", target.FutexCall{Value: 2}, []uint32{ownerDied | 12, 0, 0, 1, 16}, []string{glibcFile + "__pthread_mutex_lock_full"}, "the mutex at 0x10000: its last owner ended without unlocking it"},
	{"inheriting", target.FutexCall{Operation: target.FutexLockPI}, []uint32{12 | 1<<31, 0, 0, 1, 32}, []string{glibcFile + "__pthread_mutex_lock_full"}, "the mutex at 0x10000 held by thread 12"},
	{"inheriting, own function", target.FutexCall{Operation: target.FutexLockPI2}, []uint32{12 | 1<<31}, []string{"syscall", "futex_lock_pi"}, "the mutex at 0x10000 held by thread 12"},
	{"poll with 6 descriptors", target.FutexCall{Operation: target.FutexLockPI}, []uint32{77}, []string{glibcFile + "poll"}, ""},
	{"inheriting, other library", target.FutexCall{Operation: target.FutexLockPI}, []uint32{12}, []string{"pthread_mutex_lock"}, "a mutex held by thread 12"},
	{"refused by the kernel", target.FutexCall{Value: 0}, []uint32{0, 0, 12, 1, 32}, []string{glibcFile + "__pthread_mutex_lock_full"}, "a mutex: the kernel refused it, as its owner has ended or waits for this thread"},
	{"other library", target.FutexCall{Value: 2}, []uint32{2, 0, 12, 1, 0}, []string{"/system/lib64/libc.so!pthread_mutex_lock"}, "a mutex: its layout is not known"},
	{"static glibc", target.FutexCall{Value: 2}, []uint32{2, 0, 12, 1, 0}, []string{"pthread_mutex_lock", "work", "start_thread", "clone3"}, "the mutex at 0x10000 held by thread 12"},
	{"again after a condition", target.FutexCall{Value: 2}, []uint32{2, 0, 12, 1, 0}, []string{glibcFile + "__lll_lock_wait", glibcFile + "__pthread_mutex_cond_lock", glibcFile + "pthread_cond_wait"}, "the mutex at 0x10000 held by thread 12"},

	{"musl, recursive", target.FutexCall{Address: 4, Value: 12}, []uint32{1, 12 | 1<<31, 1}, []string{muslFile + "__timedwait", muslFile + "pthread_mutex_lock"}, "the mutex at 0x10000 held by thread 12"},
	{"musl, normal", target.FutexCall{Address: 4, Value: 16}, []uint32{0, 16 | 1<<31, 1}, []string{muslFile + "pthread_mutex_lock"}, "the mutex at 0x10000: musl does not record the owner of a normal mutex"},
	{"static musl", target.FutexCall{Address: 4, Value: 12}, []uint32{1, 12, 1}, []string{"__timedwait_cp", "__timedwait", "__pthread_mutex_timedlock"}, "the mutex at 0x10000 held by thread 12"},

	{"writer, reading", target.FutexCall{Address: 8, Value: 3}, []uint32{3, 0, 3, 1, 0, 0, 12, 0}, []string{glibcFile + "__futex_abstimed_wait64", glibcFile + "pthread_rwlock_rdlock"}, "the read-write lock at 0x10000 held for writing by thread 12"},
	{"writer, writing", target.FutexCall{Address: 12, Value: 3}, []uint32{3, 1, 3, 3, 0, 0, 12, 0}, []string{glibcFile + "pthread_rwlock_wrlock"}, "the read-write lock at 0x10000 held for writing by thread 12"},
	{"readers", target.FutexCall{Address: 8, Value: 2}, []uint32{2<<3 | 2, 0, 2, 1, 0, 0, 0, 0}, []string{glibcFile + "pthread_rwlock_wrlock"}, "the read-write lock at 0x10000 held by 2 readers"},
	{"writers are preferred", target.FutexCall{Value: 1<<3 | 2 | 4}, []uint32{1<<3 | 2 | 4, 0, 2, 1, 0, 0, 0, 0}, []string{glibcFile + "pthread_rwlock_rdlock"}, "the read-write lock at 0x10000 held by 1 reader"},
	{"readers that wait are no owners", target.FutexCall{Address: 8, Value: 3}, []uint32{5<<3 | 3, 0, 3, 1, 0, 0, 0, 0}, []string{glibcFile + "pthread_rwlock_rdlock"}, "the read-write lock at 0x10000: a writer holds it"},
	{"musl, readers", target.FutexCall{}, []uint32{3 | 1<<31}, []string{muslFile + "pthread_rwlock_wrlock"}, "the read-write lock at 0x10000 held by 3 readers"},
	{"musl, writer", target.FutexCall{}, []uint32{0xffffffff}, []string{muslFile + "pthread_rwlock_rdlock"}, "the read-write lock at 0x10000: a writer holds it, which musl does not record"},

	{"condition, first group", target.FutexCall{Address: 40}, append(make([]uint32, 9), 8, 0, 0), []string{glibcFile + "pthread_cond_wait"}, "the condition at 0x10000"},
	{"condition, second group", target.FutexCall{Address: 44}, append(make([]uint32, 9), 16, 0, 0), []string{glibcFile + "pthread_cond_timedwait"}, "the condition at 0x10000"},
	{"condition of an earlier version", target.FutexCall{Address: 44}, make([]uint32, 12), []string{glibcFile + "pthread_cond_wait"}, "a condition"},
	{"join", target.FutexCall{Value: 12}, []uint32{12}, []string{glibcFile + "__pthread_clockjoin_ex"}, "the end of thread 12"},
	{"join of an ended thread", target.FutexCall{Value: 12}, []uint32{0}, []string{glibcFile + "__pthread_clockjoin_ex"}, "the end of a thread"},
	{"musl, join", target.FutexCall{Address: 8, Value: 2}, []uint32{12, 0, 2}, []string{muslFile + "pthread_join"}, "the end of thread 12"},
	{"join without names", target.FutexCall{Address: 0x2d0, Value: 12}, append(make([]uint32, 0x2d0/4), 12), nil, "the end of thread 12"},
	{"ID of a thread elsewhere", target.FutexCall{Address: 0x1800, Value: 12}, append(make([]uint32, 0x1800/4), 12), nil, ""},
	{"semaphore", target.FutexCall{}, []uint32{0, 1}, []string{glibcFile + "__new_sem_wait_slow64"}, "the semaphore at 0x10000"},
	{"barrier", target.FutexCall{Address: 4}, []uint32{1, 0, 3, 0, 0}, []string{glibcFile + "pthread_barrier_wait"}, "the barrier at 0x10000"},

	{"Rust's mutex", target.FutexCall{Value: 2}, []uint32{2}, []string{"syscall", "<std::sys::sync::mutex::futex::Mutex>::lock_contended"}, "the mutex at 0x10000: Rust's mutex does not record its owner"},
	{"Rust's lock, writing", target.FutexCall{Address: 4}, []uint32{2, 1}, []string{"std::sys::sync::rwlock::futex::RwLock::write_contended"}, "the read-write lock at 0x10000 held by 2 readers"},
	{"Rust's lock, reading", target.FutexCall{}, []uint32{rustMask | 1<<30, 1}, []string{"std::sys::sync::rwlock::futex::RwLock::read_contended"}, "the read-write lock at 0x10000: a writer holds it, which Rust's lock does not record"},
	{"parking_lot", target.FutexCall{}, []uint32{1}, []string{"parking_lot::raw_mutex::RawMutex::lock_slow"}, "a mutex: parking_lot's mutex does not record its owner"},
	{"a parked thread", target.FutexCall{}, []uint32{1}, []string{"std::sys::sync::thread_parking::futex::Parker::park"}, ""},

	{"a name with futex", target.FutexCall{}, []uint32{0}, []string{"syscall", "std::__atomic_futex_unsigned_base::_M_futex_wait_until"}, "the futex at 0x10000"},
	{"futex further out", target.FutexCall{}, []uint32{0}, []string{"nanosleep", "drop_futexes"}, ""},
	{"a function of the program with such a name", target.FutexCall{}, []uint32{2, 0, 12, 1, 0}, []string{glibcFile + "nanosleep", "sem_wait"}, ""},
	{"a name that begins so", target.FutexCall{}, []uint32{2, 0, 12, 1, 0}, []string{"nanosleep", "pthread_join_all", "start_thread"}, ""},
	{"once", target.FutexCall{}, []uint32{1}, []string{glibcFile + "__pthread_once_slow"}, "the futex at 0x10000"},
	{"a function called once", target.FutexCall{}, []uint32{1}, []string{glibcFile + "nanosleep", "slow", glibcFile + "__pthread_once_slow"}, ""},
	{"Go's runtime", target.FutexCall{}, []uint32{0}, []string{"runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep"}, ""},
	{"no names", target.FutexCall{}, []uint32{0}, nil, ""},
	{"behind a signal", target.FutexCall{}, []uint32{2, 0, 12, 1, 0}, []string{"poll", "signal", glibcFile + "pthread_mutex_lock"}, ""},
}

func TestLocks(t *testing.T) {
	eleven, twelve := &trace.Thread{ID: "11"}, &trace.Thread{ID: "12"}
	for _, c := range lockCases {
		t.Run(c.name, func(t *testing.T) {
			r := Reader{
				Memory: memoryOf(c.words...), Threads: map[uint32]*trace.Thread{11: eleven, 12: twelve},
				Pointer: func(*trace.Thread) (uint64, bool) { return madeAt, true },
			}
			c.call.Address += madeAt
			w := r.Of(c.call, stackOf(c.stack...), false)
			got := ""
			if w != nil {
				got = w.Text(eleven)
			}
			if got != c.want {
				t.Errorf("%q, expected %q", got, c.want)
			}
		})
	}
}

// Only code, or the name of a function, tells a futex from another system call.
func TestACertainFutexHasAnAddress(t *testing.T) {
	r := Reader{Memory: memoryOf(0), Threads: map[uint32]*trace.Thread{}}
	w := r.Of(target.FutexCall{Address: madeAt}, nil, true)
	if w == nil || w.Kind != trace.WaitFutex || w.Address != madeAt {
		t.Errorf("%+v", w)
	}
}

// FuzzLockWords has any words, arguments and functions. An owner is a thread of the target,
// whatever they are.
func FuzzLockWords(f *testing.F) {
	for i, c := range lockCases {
		var memory []byte
		for _, w := range c.words {
			memory = binary.LittleEndian.AppendUint32(memory, w)
		}
		f.Add(memory, c.call.Address, c.call.Operation, c.call.Value, uint8(i)) //nolint:gosec // few
	}
	threads := map[uint32]*trace.Thread{}
	known := map[*trace.Thread]bool{nil: true}
	for _, id := range []uint32{1, 11, 12, mostThreads} {
		threads[id] = &trace.Thread{ID: "t"}
		known[threads[id]] = true
	}
	f.Fuzz(func(t *testing.T, memory []byte, address uint64, operation, value uint32, names uint8) {
		r := Reader{Memory: bytesAt(memory), Threads: threads, Pointer: func(*trace.Thread) (uint64, bool) { return address, value%2 == 0 }}
		call := target.FutexCall{Address: madeAt + address, Operation: operation, Value: value}
		w := r.Of(call, stackOf(lockCases[int(names)%len(lockCases)].stack...), value%3 == 0)
		if w == nil {
			return
		}
		if !known[w.Owner] {
			t.Errorf("the owner %+v is no thread of the target", w.Owner)
		}
		if w.Readers < 0 || w.Readers > maxReaders || w.Readers > 0 && w.Owner != nil {
			t.Errorf("%d readers, owner %v", w.Readers, w.Owner)
		}
		if text := w.Text(threads[1]); len(text) > 200 {
			t.Errorf("a line of %d bytes: %.200q", len(text), text)
		}
	})
}
