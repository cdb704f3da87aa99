// SPDX-License-Identifier: Apache-2.0

package trace

// Goroutine describes a goroutine, or another thread that a language runtime schedules, as the
// runtime does; empty members are not known. There may be a million goroutines: those that are
// alike share their state and origin.
type Goroutine struct {
	ID uint64
	*GoroutineState
	*GoroutineOrigin
	// WaitSince is when the garbage collector first found it waiting, in nanoseconds of
	// the runtime's clock; 0 if it did not.
	WaitSince uint64
	// WaitAtLeast is a lower bound of how long it has waited, in nanoseconds: until the
	// latest time that the target has.
	WaitAtLeast uint64
	// Thread is the ID of the thread that executes it; "" if none does.
	Thread string
	// Parent is the ID of the goroutine that created it; 0 if unknown.
	Parent uint64
	// WaitsFor are the IDs of goroutines whose end it waits for.
	WaitsFor []uint64
	// Scheduler is the runtime that schedules it; nil: Go's.
	Scheduler *Scheduler
}

// Scheduler is a language runtime that schedules threads.
type Scheduler struct {
	Runtime string // "asyncio"
	Kind    string // its word for such a thread: "task"
}

// Word returns the runtime's word for such a thread: "goroutine", "task".
func (g *Goroutine) Word() string {
	if g.Scheduler == nil {
		return "goroutine"
	}
	return g.Scheduler.Kind
}

// GoroutineState is the scheduling state of a goroutine.
type GoroutineState struct {
	// State is the runtime's name of the state: idle, runnable, running, syscall, waiting,
	// preempted, copystack or a name of a later version. Dead goroutines are not listed.
	State string
	// WaitReason is the runtime's text for why it waits: "chan receive".
	WaitReason string
	IsScanned  bool // the garbage collector is scanning its stack
	IsLocked   bool // no other thread may execute it
}

// GoroutineOrigin is the code that started a goroutine.
type GoroutineOrigin struct {
	// CreatedBy is the go statement, StartedAt the function that it calls; nil if unknown.
	CreatedBy, StartedAt *CodePlace
	IsSystem             bool // the runtime made it for itself
}

// CodePlace is an address in the code of a target with its function and line.
type CodePlace struct {
	PC       uint64
	Function string // "" if unknown
	File     string
	Line     int // 0 if unknown
}
