// SPDX-License-Identifier: Apache-2.0

// Package comparison compares the stacks of many targets: it makes one tree of them, and classes of targets
// whose stacks are alike. A Part is the state of a comparison of some targets. Parts are merged in any order
// and any grouping, and the result is the same.
package comparison

import (
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// Options choose the threads that are compared. An option of one part is one of all that it is merged with.
type Options struct {
	// ByThread compares each thread, not each target; a single target is compared by its threads in any case.
	ByThread bool
	// CrashedOnly leaves out the threads that did not crash. A Part keeps them.
	CrashedOnly bool
}

// or returns the options that one of two has.
func (o Options) or(other Options) Options {
	return Options{ByThread: o.ByThread || other.ByThread, CrashedOnly: o.CrashedOnly || other.CrashedOnly}
}

// Target is a target at one moment, in the form in which it is compared.
type Target struct {
	Path   string
	Labels map[string]string
	// Host, PID and Started identify the process, as far as they are known.
	Host    string
	PID     int64
	Started time.Time
	// Taken is when the stacks were taken; zero where it is not known.
	Taken time.Time
	// Unread is why the target could not be read; "": it was.
	Unread string
	// Facts, Problems are as in trace.TargetClass and trace.ComparedTarget.
	Facts, Problems []string
	Threads         []Thread
	// Modules are all modules with a build ID.
	Modules []trace.ModuleBuild
}

// Thread is a thread with its stack.
type Thread struct {
	ID      string
	Role    string // as in trace.ClassThread
	Crashed bool
	// Frames are the stack, outermost first.
	Frames []trace.ComparedFrame
	// Ends is why the stack ends before its outermost frame; "": it does not.
	Ends string
}
