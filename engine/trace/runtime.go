// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strconv"
	"strings"
)

// RuntimeThread is a thread as a language runtime sees it, beside the frames of the language.
type RuntimeThread struct {
	Runtime string  // "cpython"
	Module  *Module // that has the runtime
	Name    string  // of the thread, in the program's words; "": it has none
	State   string  // in the runtime's words: "waits for the GIL"; "": unknown
	Locks   []RuntimeLock
	// Exception is the exception that the thread has raised and not handled; nil: none.
	Exception *RuntimeException
}

// RuntimeLock is a lock of a language that a thread holds or waits for.
type RuntimeLock struct {
	Address  uint64
	Name     string // in the language's words: "the GIL", "a java.lang.Object"
	IsWaited bool   // the thread waits for it; else the thread holds it
	// Holder is the thread that holds a lock which is waited for; nil where it is not known.
	Holder *Thread
}

// RuntimeException is an exception of a language on its way to a handler.
type RuntimeException struct {
	Type string // "ValueError"
	Text string // its message; "": it has none
	// Traceback are the functions that it was raised in and left, innermost first.
	Traceback []Symbol
}

// String returns the exception in one line: "ValueError: no such thing".
func (e *RuntimeException) String() string {
	if e.Text == "" {
		return e.Type
	}
	return e.Type + ": " + e.Text
}

// IsSilent reports whether the runtime has said nothing of the thread beside its frames.
func (r *RuntimeThread) IsSilent() bool {
	return r.Name == "" && r.State == "" && len(r.Locks) == 0 && r.Exception == nil
}

// maxLocked is how many locks that a thread holds its text names.
const maxLocked = 4

// Text describes in a few words the state and the locks of a thread of the target: "waits for the
// GIL, which thread 4710 holds". It is "" where nothing is known.
func (r *RuntimeThread) Text(th *Thread) string {
	var parts []string
	state := r.State
	for i := range r.Locks {
		l := &r.Locks[i]
		if !l.IsWaited {
			continue
		}
		text := "waits for " + l.name()
		if state != "" && strings.HasSuffix(state, l.Name) && l.Name != "" {
			text, state = state, ""
		}
		switch {
		case l.Holder == th:
			text += ", which it holds itself"
		case l.Holder != nil:
			text += ", which " + l.Holder.label(th) + " holds"
		}
		parts = append(parts, text)
	}
	if state != "" {
		parts = append([]string{state}, parts...)
	}
	var locked []string
	for i := range r.Locks {
		if l := &r.Locks[i]; !l.IsWaited && (state == "" || !strings.HasSuffix(state, l.Name)) {
			locked = append(locked, l.name())
		}
	}
	if more := len(locked) - maxLocked; more > 0 {
		locked = append(locked[:maxLocked], strconv.Itoa(more)+" more")
	}
	if len(locked) > 0 {
		parts = append(parts, "holds "+strings.Join(locked, ", "))
	}
	return strings.Join(parts, "; ")
}

// name returns the lock's name, with the address of one that is not the only one of its name.
func (l *RuntimeLock) name() string {
	switch {
	case l.Name == "":
		return "the lock at 0x" + strconv.FormatUint(l.Address, 16)
	case strings.HasPrefix(l.Name, "the "):
		return l.Name
	}
	return l.Name + " at 0x" + strconv.FormatUint(l.Address, 16)
}
