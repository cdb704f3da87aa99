// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// rule describes a function in which threads wait.
type rule struct {
	begins string // its name, without underscores before it
	kind   string
	read   func(*waiter) // reads the lock; nil: the thread waits for nothing in particular
}

// rules are by the names of symbol tables: the first that fits counts.
var rules = []rule{
	{"pthread_mutex_", trace.WaitMutex, (*waiter).mutex},
	{"pthread_rwlock_rdlock", trace.WaitRWLock, (*waiter).rwlock},
	{"pthread_rwlock_timedrdlock", trace.WaitRWLock, (*waiter).rwlock},
	{"pthread_rwlock_clockrdlock", trace.WaitRWLock, (*waiter).rwlock},
	{"pthread_rwlock_wrlock", trace.WaitRWLock, (*waiter).rwlock},
	{"pthread_rwlock_timedwrlock", trace.WaitRWLock, (*waiter).rwlock},
	{"pthread_rwlock_clockwrlock", trace.WaitRWLock, (*waiter).rwlock},
	{"pthread_cond_wait", trace.WaitCondition, (*waiter).condition},
	{"pthread_cond_timedwait", trace.WaitCondition, (*waiter).condition},
	{"pthread_cond_clockwait", trace.WaitCondition, (*waiter).condition},
	{"pthread_join", trace.WaitThread, (*waiter).join},
	{"pthread_timedjoin", trace.WaitThread, (*waiter).join},
	{"pthread_clockjoin", trace.WaitThread, (*waiter).join},
	{"sem_wait", trace.WaitSemaphore, (*waiter).semaphore},
	{"sem_timedwait", trace.WaitSemaphore, (*waiter).semaphore},
	{"sem_clockwait", trace.WaitSemaphore, (*waiter).semaphore},
	{"new_sem_wait", trace.WaitSemaphore, (*waiter).semaphore},
	{"pthread_barrier_wait", trace.WaitBarrier, (*waiter).barrier},
	{"pthread_once", trace.WaitFutex, (*waiter).futex},
	{"cxa_guard_acquire", trace.WaitFutex, (*waiter).futex},
	// A thread of Go's runtime that has nothing to do.
	{"runtime.", "", nil},
}

// rustRules are by names as people have them: of a function of a type, whatever the module.
var rustRules = []struct {
	contains, ends string
	rule
}{
	{"std::sys", "Mutex::lock_contended", rule{"", trace.WaitMutex, says("Rust's mutex does not record its owner")}},
	{"std::sys", "RwLock::read_contended", rule{"", trace.WaitRWLock, (*waiter).rustRead}},
	{"std::sys", "RwLock::write_contended", rule{"", trace.WaitRWLock, (*waiter).rustWrite}},
	{"std::sys", "Condvar::wait", rule{"", trace.WaitCondition, (*waiter).timed}},
	{"std::sys", "Condvar::wait_timeout", rule{"", trace.WaitCondition, (*waiter).timed}},
	{"std::sys", "Condvar::wait_optional_timeout", rule{"", trace.WaitCondition, (*waiter).timed}},
	{"std::sys", "Once::call", rule{"", trace.WaitFutex, (*waiter).futex}},
	{"std::sys", "Once::wait", rule{"", trace.WaitFutex, (*waiter).futex}},
	{"std::sys", "Parker::park", rule{"", "", nil}},
	// A thread waits for a word of its own.
	{"parking_lot", "RawMutex::lock_slow", rule{"", trace.WaitMutex, elsewhere("parking_lot's mutex does not record its owner")}},
	{"parking_lot", "RawRwLock::lock_exclusive_slow", rule{"", trace.WaitRWLock, elsewhere("parking_lot's lock does not record its owner")}},
	{"parking_lot", "RawRwLock::lock_shared_slow", rule{"", trace.WaitRWLock, elsewhere("parking_lot's lock does not record its owner")}},
	{"parking_lot", "Condvar::wait_until_internal", rule{"", trace.WaitCondition, elsewhere("")}},
}

// maxInner is how many of the innermost frames are looked at: libraries have few of their own.
const maxInner = 8

// find returns the rule of the innermost function that has one, and cuts the frames behind it.
func (w *waiter) find() (found rule, ok bool) {
	for i := range w.inner {
		f := &w.inner[i]
		if f.IsSignal || i == maxInner {
			break
		}
		for _, names := range f.Functions {
			if found, ok = ruleOf(names[0], names[1]); ok {
				w.inner, w.outer, w.module = w.inner[:i+1], w.inner[i+1:], f.Module
				return found, true
			}
		}
	}
	return rule{}, false
}

var angles = strings.NewReplacer("<", "", ">", "")

func ruleOf(linkageName, name string) (rule, bool) {
	plain := plainName(linkageName)
	for _, r := range rules {
		if strings.HasPrefix(plain, r.begins) {
			return r, true
		}
	}
	if !strings.Contains(name, "::") {
		return rule{}, false
	}
	name = angles.Replace(name) // <std::sys::sync::mutex::futex::Mutex>::lock_contended
	for i := range rustRules {
		if r := &rustRules[i]; strings.HasSuffix(name, r.ends) && strings.Contains(name, r.contains) {
			return r.rule, true
		}
	}
	return rule{}, false
}

// plainName returns a name of a symbol table without its version and the marks of a library's own
// names: __GI___pthread_mutex_lock.
func plainName(name string) string {
	name, _, _ = strings.Cut(name, "@")
	name = strings.TrimLeft(name, "_")
	return strings.TrimLeft(strings.TrimPrefix(name, "GI_"), "_")
}

// futexNames are in the names of functions that call futex.
var futexNames = []string{"futex", "__platform_wait", "__atomic_wait"}

// hasFutexName reports whether the function that made the system call has such a name.
func (w *waiter) hasFutexName() bool {
	for i := range w.inner {
		names := w.inner[i].Functions
		if n := len(names); n > 0 && plainName(names[n-1][0]) == "syscall" {
			continue
		}
		return slices.ContainsFunc(names, func(one [2]string) bool {
			return slices.ContainsFunc(futexNames, func(part string) bool { return strings.Contains(one[1], part) })
		})
	}
	return false
}

// says returns a reader for locks without an owner, whose only word is the one that is waited for.
func says(why string) func(*waiter) {
	return func(w *waiter) { w.wait.Why = why }
}

// elsewhere returns a reader for locks that are not where the thread waits.
func elsewhere(why string) func(*waiter) {
	return func(w *waiter) {
		w.noAddress()
		w.wait.Why = why
	}
}

// futex is the reader of words that only their program understands.
func (w *waiter) futex() {}

// timed is the reader of objects without an owner.
func (w *waiter) timed() { w.wait.IsTimed = w.call.IsTimed }

// The libraries of threads that are told apart.
type library int

const (
	otherLibrary library = iota
	glibc
	musl
)

// libraryNames begin the names of the libraries' files.
var libraryNames = []struct {
	begins string
	library
}{
	{"ld-musl", musl}, {"libc.musl", musl}, {"libc.so.6", glibc}, {"libc-2.", glibc}, {"libpthread-2.", glibc}, {"libpthread.so.0", glibc},
}

// innerNames begin the names of the libraries' own functions, where they are linked statically.
var innerNames = []struct {
	begins string
	library
}{
	{"lll_", glibc}, {"futex_", glibc}, {"timedwait", musl}, {"wait", musl}, {"new_sem_wait", glibc},
}

// outerNames are the functions in which stacks begin in the libraries.
var outerNames = map[string]library{"start_thread": glibc, "libc_start_call_main": glibc, "libc_start_main_stage2": musl}

// library returns the library that the thread waits in: by the file of the function, by the
// functions that it called, or by those in which the stack begins.
func (w *waiter) library() library {
	base := path.Base(w.module)
	for _, n := range libraryNames {
		if strings.HasPrefix(base, n.begins) {
			return n.library
		}
	}
	if strings.Contains(w.module, "-musl/") {
		return musl
	}
	for i := range w.inner {
		for _, names := range w.inner[i].Functions {
			plain := plainName(names[0])
			for _, n := range innerNames {
				if strings.HasPrefix(plain, n.begins) {
					return n.library
				}
			}
		}
	}
	for i := range w.outer {
		for _, names := range w.outer[i].Functions {
			if found := outerNames[plainName(names[0])]; found != otherLibrary {
				return found
			}
		}
	}
	return otherLibrary
}
