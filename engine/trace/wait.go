// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strconv"
	"strings"
)

// The kinds of objects that threads wait for (`waits_for.kind` in the output).
const (
	WaitMutex     = "mutex"
	WaitRWLock    = "rwlock"
	WaitCondition = "condition" // it has no owner: another thread signals it
	WaitThread    = "thread"    // its end
	WaitSemaphore = "semaphore"
	WaitBarrier   = "barrier"
	WaitFutex     = "futex" // a word of memory, whose meaning only the program knows
	WaitLock      = "lock"  // of a language, whose runtime names it
)

// Wait is the object that a blocked thread waits for.
type Wait struct {
	Kind string // one of the constants above
	// Address is the address of the object, if HasAddress.
	Address    uint64
	HasAddress bool
	// Name is the variable that the object is, or is a part of: "accounts[1].lock"; "" if
	// that is not known.
	Name string
	// Owner is the thread that holds a mutex or has a read-write lock for writing, and the
	// thread whose end is waited for; nil if it is not known.
	Owner *Thread
	// Readers is how many threads have a read-write lock for reading; nothing tells which.
	Readers int
	// Why is why the owner is not known; "" where that is all that can be said.
	Why string
	// IsTimed is true where the wait ends at a given time, whatever happens.
	IsTimed bool
}

// nouns are the kinds in words.
var nouns = map[string]string{
	WaitMutex: "mutex", WaitRWLock: "read-write lock", WaitCondition: "condition", WaitSemaphore: "semaphore", WaitBarrier: "barrier", WaitFutex: "futex",
}

// Text describes the object and its owner, for the thread that waits for it: `the mutex at 0x10
// (queue.lock) held by thread 12 "worker"`.
func (w *Wait) Text(waiting *Thread) string {
	if w.Kind == WaitThread {
		if w.Owner == nil {
			return "the end of a thread"
		}
		return "the end of " + w.Owner.label(waiting)
	}
	text := w.object()
	switch {
	case w.Owner != nil && w.Owner == waiting:
		text += ", which it holds itself"
	case w.Owner != nil && w.Kind == WaitRWLock:
		text += " held for writing by " + w.Owner.label(waiting)
	case w.Owner != nil:
		text += " held by " + w.Owner.label(waiting)
	case w.Readers == 1:
		text += " held by 1 reader"
	case w.Readers > 1:
		text += fmt.Sprintf(" held by %d readers", w.Readers)
	case w.Why != "":
		text += ": " + w.Why
	}
	return text
}

// object names the object.
func (w *Wait) object() string {
	if w.Kind == WaitLock {
		l := RuntimeLock{Address: w.Address, Name: w.Name}
		return l.name()
	}
	text := "a " + nouns[w.Kind]
	if w.HasAddress {
		text = fmt.Sprintf("the %s at %#x", nouns[w.Kind], w.Address)
	}
	if w.Name != "" {
		text += " (" + w.Name + ")"
	}
	return text
}

// label names a thread by its ID, and by its name where another thread has another one.
func (t *Thread) label(other *Thread) string {
	if t.Goroutine != nil { // its ID has the runtime's word for it
		return t.ID
	}
	if t.Name == "" || other != nil && other.Name == t.Name {
		return "thread " + t.ID
	}
	return "thread " + t.ID + " " + strconv.Quote(t.Name)
}

// Deadlock is threads of which each waits for the next one, and the last one for the first: for
// a lock that it holds, or for its end.
type Deadlock struct{ Links []DeadlockLink }

// DeadlockLink is a thread of a deadlock with the object that it waits for.
type DeadlockLink struct {
	Thread *Thread
	Wait   *Wait
}

// maxLinks is how many threads of a deadlock its text names.
const maxLinks = 8

// String describes the deadlock in one line: "thread 11 waits for the mutex at 0x10 held by
// thread 12, which waits for the mutex at 0x40 held by thread 11".
func (d *Deadlock) String() string {
	var b strings.Builder
	isTimed := false
	for i := range d.Links {
		l := &d.Links[i]
		isTimed = isTimed || l.Wait.IsTimed
		switch {
		case i == 0:
			b.WriteString(l.Thread.label(l.Wait.Owner) + " waits for ")
		case i < maxLinks:
			b.WriteString(", which waits for ")
		case i == maxLinks:
			fmt.Fprintf(&b, ", and so on: %d threads, of which the last one waits for ", len(d.Links))
		}
		if i < maxLinks || i == len(d.Links)-1 {
			b.WriteString(l.Wait.Text(l.Thread))
		}
	}
	if isTimed {
		b.WriteString(" (until a timeout)")
	}
	return b.String()
}
