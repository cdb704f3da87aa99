// SPDX-License-Identifier: Apache-2.0

package target

// A Goroutine is what Go's runtime knows of a goroutine. What is empty is not known.
// There may be a million: what many have in common they share.
type Goroutine struct {
	ID uint64
	*GoroutineState
	*GoroutineOrigin
	// WaitSince is when the garbage collector found it waiting first, in
	// nanoseconds of the clock that the runtime uses; 0: it did not.
	WaitSince uint64
	// WaitAtLeast is for how long it has waited at least, in nanoseconds: until the
	// last time that is in the target. It may have been longer.
	WaitAtLeast uint64
	// Thread is the ID of the thread that executes it; "" where none does.
	Thread string
	// Parent is the ID of the goroutine that created it; 0: unknown.
	Parent uint64
}

// A GoroutineState is what a goroutine does.
type GoroutineState struct {
	// State is the runtime's name of it: idle, runnable, running, syscall, waiting,
	// preempted, copystack or one of a later version. A goroutine that ended is none.
	State string
	// WaitReason is what it waits for, in the runtime's words: "chan receive".
	WaitReason string
	IsScanned  bool // the garbage collector is scanning its stack
	IsLocked   bool // no other thread may execute it
}

// A GoroutineOrigin is where a goroutine comes from.
type GoroutineOrigin struct {
	// CreatedBy is the go statement, StartedAt the function that it calls; nil:
	// unknown.
	CreatedBy, StartedAt *CodePlace
	IsSystem             bool // the runtime made it for itself
}

// A CodePlace is a place in the code of a target, by what its debug information says.
type CodePlace struct {
	PC       uint64
	Function string // "": unknown
	File     string
	Line     int // 0: unknown
}
