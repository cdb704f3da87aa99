// SPDX-License-Identifier: Apache-2.0

package sdk

import "github.com/unwindd/unwindd/cfi"

// CodeRulesRequest asks about addresses in code that the runtime made. They are the
// addresses to look up: inside the call, where a frame has called another.
type CodeRulesRequest struct {
	Runtime uint64 // handle
	PCs     []uint64
}

// CodeRulesAnswer has one entry for every PC of the request, in order.
type CodeRulesAnswer struct {
	Code []CodeRules
}

// CodeRules are the rows and the names of the function that a PC is in.
type CodeRules struct {
	// Start and End are the function's code, which has the PC; both are 0 where the runtime
	// knows none there.
	Start, End uint64
	// Rows are the rows of the function, as FrameRules of an architecture has them; none
	// where the architecture finds them by the code.
	Rows []cfi.Row
	// Frames are the calls that were inlined at the PC, innermost first, and last the
	// function.
	Frames []ManagedFrame
	Reason string // why there is nothing; "" where there is something
}

// ManagedFramesRequest asks for the frames of the language in native stacks.
type ManagedFramesRequest struct {
	Runtime uint64 // handle
	Threads []NativeStack
	// Variables asks for arguments and locals. Values have at most Depth levels of
	// children, and Elements children or characters each.
	Variables       bool
	Depth, Elements uint32
}

// NativeStack is the native stack of a thread. That of a thread which the runtime schedules, and
// which is mounted, is its carrier's, and has the carrier's handle.
type NativeStack struct {
	Thread uint64        // handle for ReadRegisters
	Frames []NativeFrame // innermost first, without inlined calls
	IsCut  bool          // there are further ones, outside the last, which the engine did not keep
}

// NativeFrame is a native frame of a stack.
type NativeFrame struct {
	PC       uint64
	CFA      uint64 // in the default address space
	HasCFA   bool
	InModule bool   // its code is in the module of the runtime
	Function string // linkage name; "": unknown
}

// ManagedFramesAnswer has one entry for every thread of the request, in order.
type ManagedFramesAnswer struct {
	Stacks []ManagedStack
}

// ManagedStack has the frames of the language in a native stack.
type ManagedStack struct {
	Runs    []ManagedRun // innermost first
	Problem string       // what could not be read, a sentence; "" too

	Name  string // of the thread, in the program's words; "": it has none
	State string // of the thread, in the runtime's words: "waits for the GIL"; "": unknown
	// Locks are the locks of the language that the thread holds or waits for.
	Locks []ManagedLock
	// Exception is the exception that the thread has raised and not handled; nil: none.
	Exception *ManagedException
}

// ManagedLock is a lock of the language that a thread holds or waits for.
type ManagedLock struct {
	Address  uint64 // identifies the lock: two locks of a process have different ones
	Name     string // in the language's words: "the GIL", "a java.lang.Object"
	IsWaited bool   // the thread waits for it; else the thread holds it
}

// ManagedException is an exception of the language on its way to a handler.
type ManagedException struct {
	Type string // in the language's words, never empty: "ValueError", "java.lang.OutOfMemoryError"
	Text string // its message; "": it has none
	// Frames are its traceback, innermost first: where it was raised, and the callers that it
	// has left or will leave.
	Frames []ManagedFrame
}

// ManagedRun is frames of the language that stand for native frames, or between two of
// them. Runs stand for frames that are apart from each other, in the order of the stack.
type ManagedRun struct {
	// The run stands for Count native frames from First on. Where Count is 0, it stands
	// before the frame First, further in; First may be the number of frames then.
	First, Count uint32
	Frames       []ManagedFrame // innermost first, one at least
}

// ManagedKind is the way in which a function of the language is executed.
type ManagedKind uint8

// The kinds of managed frames.
const (
	UnknownManaged ManagedKind = iota
	Interpreted
	Compiled // at run time
	Builtin  // of the runtime itself
	Entry    // where native code entered the runtime
)

// ManagedFrame is a call of a function of the language.
type ManagedFrame struct {
	Function string // "" where it has no name
	File     string // "" where it is unknown
	Line     uint32 // 0: unknown
	Column   uint32 // 0: unknown
	Kind     ManagedKind
	// Variables are the arguments and locals, where they were requested.
	Variables []ManagedVariable
}

// ManagedVariable is a variable of the language, or a value in one.
type ManagedVariable struct {
	Name     string
	Type     string // of its value, in the language's words
	Text     string // the value; "" where it only has children
	Status   ManagedStatus
	IsParam  bool
	Children []ManagedVariable
	// More is how many children were left out.
	More uint64
}

// ManagedStatus is the state of a variable's value.
type ManagedStatus uint8

// The states of values.
const (
	ValueRead       ManagedStatus = iota
	ValueUnset                    // the variable has no value yet
	ValueUnreadable               // Text is the reason
)

// ManagedThreadsRequest asks for the threads that a runtime schedules.
type ManagedThreadsRequest struct {
	Runtime uint64 // handle
	// Frames asks for the frames of threads that have no native stack.
	Frames bool
}

// ManagedThreadsAnswer lists the threads that a runtime schedules.
type ManagedThreadsAnswer struct {
	Threads  []ManagedThread
	Problems []string // what could not be read, each a sentence
}

// ManagedThread is a thread that a runtime schedules: a goroutine, a task, a virtual
// thread.
type ManagedThread struct {
	Number uint64 // the runtime's own, unique among its threads
	Name   string // "": it is called by the function that it began with
	State  string // in the runtime's words: "waiting"
	Reason string // why it waits, in the runtime's words: "chan receive"
	// Parent is the number of the thread that created it; 0: unknown. WaitsFor are the
	// numbers of threads whose end it waits for.
	Parent   uint64
	WaitsFor []uint64
	// CreatedAt is the return address of the call that created it, StartedAt the first
	// instruction of the function that it began with; 0: unknown.
	CreatedAt, StartedAt uint64
	// WaitSince is when it began to wait, in nanoseconds of the runtime's clock; 0: unknown.
	// WaitAtLeast is a lower bound of how long it has waited, in nanoseconds.
	WaitSince, WaitAtLeast uint64
	IsPinned               bool // no other thread than Carrier may execute it
	IsScanned              bool // the garbage collector was at its stack
	IsSystem               bool // the runtime made it for itself

	// Carrier is the ID of the thread of the operating system that executes it; "": none.
	// Where IsMounted, or where that thread's stack leads into (StackLow, StackHigh], it has
	// the registers of the carrier; else it has Registers. IsInCall says that the PC among
	// Registers is a return address.
	Carrier             string
	IsMounted           bool
	StackLow, StackHigh uint64
	Registers           Registers
	IsInCall            bool
	// Frames are the frames of a thread without a native stack, innermost first, where they
	// were requested.
	Frames  []ManagedFrame
	Problem string // why it cannot be walked, or why some of Frames are missing; "" where all is there
}
