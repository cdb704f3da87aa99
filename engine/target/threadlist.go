// SPDX-License-Identifier: Apache-2.0

package target

import (
	"iter"

	"github.com/unwindd/unwindd/engine/trace"
)

// Numerous is a Target that may have a million threads, and makes each when it is needed. Threads
// makes all.
type Numerous interface {
	Target
	// ThreadList returns the threads of Threads.
	ThreadList() *ThreadList
}

// ThreadsOf returns the threads of a target.
func ThreadsOf(t Target) *ThreadList {
	if n, ok := t.(Numerous); ok {
		return n.ThreadList()
	}
	return ListThreads(t.Threads())
}

// ThreadList is threads in their order. It may be read concurrently.
type ThreadList struct {
	list   []*trace.Thread
	packed *packedThreads // nil: list has the threads
}

// ListThreads makes a ThreadList of threads.
func ListThreads(list []*trace.Thread) *ThreadList { return &ThreadList{list: list} }

// Len returns the number of threads.
func (l *ThreadList) Len() int {
	if l.packed != nil {
		return l.packed.count
	}
	return len(l.list)
}

// At returns a thread by its index: the same one as long as anything refers to it.
func (l *ThreadList) At(i int) *trace.Thread {
	if l.packed != nil {
		return l.packed.at(i)
	}
	return l.list[i]
}

// ID returns the ID of a thread by its index.
func (l *ThreadList) ID(i int) string {
	if l.packed != nil {
		return l.packed.id(i)
	}
	return l.list[i].ID
}

// Index returns the index of the first thread with an ID; -1: none has it.
func (l *ThreadList) Index(id string) int {
	for i := range l.Len() {
		if l.ID(i) == id {
			return i
		}
	}
	return -1
}

// All yields the threads with their indexes.
func (l *ThreadList) All() iter.Seq2[int, *trace.Thread] {
	return func(yield func(int, *trace.Thread) bool) {
		for i := range l.Len() {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// Kinds yields a thread of each kind, in the order of their first threads, and the number of the
// threads of the kind. Threads of one kind differ at most in their handles and IDs, in the values of
// their registers, and in the coordinates of their waves.
func (l *ThreadList) Kinds() iter.Seq2[*trace.Thread, int] {
	return func(yield func(*trace.Thread, int) bool) {
		if l.packed == nil {
			for _, th := range l.list {
				if !yield(th, 1) {
					return
				}
			}
			return
		}
		for i := range l.packed.kinds {
			k := &l.packed.kinds[i]
			if !yield(l.packed.at(k.first), k.count) {
				return
			}
		}
	}
}

// Where yields the threads of some kinds: is is called with a thread of each, or with each.
func (l *ThreadList) Where(is func(*trace.Thread) bool) iter.Seq2[int, *trace.Thread] {
	return func(yield func(int, *trace.Thread) bool) {
		if l.packed != nil {
			l.packed.where(is, yield)
			return
		}
		for i, th := range l.list {
			if is(th) && !yield(i, th) {
				return
			}
		}
	}
}

// HasHandles reports whether the handle of each thread is its index.
func (l *ThreadList) HasHandles() bool {
	for i, th := range l.list {
		if th.Handle != uint64(i) {
			return false
		}
	}
	return true
}

// Slice returns the threads from an index up to another.
func (l *ThreadList) Slice(from, to int) []*trace.Thread {
	list := make([]*trace.Thread, to-from)
	for i := range list {
		list[i] = l.At(from + i)
	}
	return list
}

// Threads returns all threads at once.
func (l *ThreadList) Threads() []*trace.Thread {
	if l.packed != nil {
		return l.packed.whole()
	}
	return l.list
}
