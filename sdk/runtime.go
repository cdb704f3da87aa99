// SPDX-License-Identifier: Apache-2.0

package sdk

import "context"

// Runtime teaches the engine one language runtime: the code that it made while the program
// ran, the frames of its interpreter, and threads that the operating system does not have.
// Its methods may be called concurrently. An error of one ends the operation that needed
// its answer; the native stacks are there all the same.
//
// RuntimeBase answers every call but Describe with "nothing".
type Runtime interface {
	// Describe returns the constant properties of the runtime.
	Describe(ctx context.Context) (*RuntimeDescription, error)
	// OpenRuntime examines the runtime in one module of a target. It is called once for
	// each module that the description recognises, before the other calls about it.
	OpenRuntime(ctx context.Context, e RuntimeEngine, req *OpenRuntimeRequest) (*OpenRuntimeAnswer, error)
	// CodeRules finds the rows and functions of code that the runtime made. The error of
	// this call and the next two may wrap ErrObjectNotOpen.
	CodeRules(ctx context.Context, e RuntimeEngine, req *CodeRulesRequest) (*CodeRulesAnswer, error)
	// ManagedFrames finds the frames of the language in the native stacks of threads.
	ManagedFrames(ctx context.Context, e RuntimeEngine, req *ManagedFramesRequest) (*ManagedFramesAnswer, error)
	// ManagedThreads lists the threads that the runtime schedules by itself.
	ManagedThreads(ctx context.Context, e RuntimeEngine, req *ManagedThreadsRequest) (*ManagedThreadsAnswer, error)
}

// RuntimeEngine has the requests that a runtime's plugin may make of the engine while a
// call is under way.
type RuntimeEngine interface {
	Engine
	// FindFunctions returns the function at each address, by the symbols and the debug
	// information of the target's modules, in the order of the addresses: at most
	// MaxFindFunctions.
	FindFunctions(ctx context.Context, addresses []uint64) ([]FunctionPlace, error)
}

// MaxFindFunctions is how many addresses one FindFunctions may have.
const MaxFindFunctions = 1 << 16

// FunctionPlace is the function at an address. The zero value stands for none.
type FunctionPlace struct {
	Name     string // linkage name, without a version
	Start    uint64 // the address of its first instruction; 0: unknown
	HasStart bool
}

// RuntimeDescription has the constant properties of a runtime. It is data: the engine
// requests it once, and needs no call to decide whether a module has the runtime.
type RuntimeDescription struct {
	Name    string // "go", "cpython": the `runtime` of the output
	Version string // the plugin's own version

	Recognises []RuntimeRecogniser
	// Symbols are names of functions and variables whose places OpenRuntime's request
	// lists, in this order.
	Symbols []string
	// Types are types of the debug information whose layouts the request lists, in this
	// order.
	Types []RuntimeType
	// Constants are prefixes of named constants and enumerators of the debug information
	// that the request lists.
	Constants []RuntimeConstants
	// Feature is the sdk's Feature with which the plugin was built: Serve sets it.
	Feature uint32
	// ThreadKind is the word for the threads that the runtime schedules: "goroutine",
	// "task"; "" where it has none.
	ThreadKind string
	// ThreadsOnly says that the runtime has such threads and nothing else, neither code nor
	// frames: it is opened only where its threads are asked for.
	ThreadsOnly bool
}

// RuntimeRecogniser selects the modules that have the runtime. Every member that is set must
// match; one at least is set.
type RuntimeRecogniser struct {
	Section string // the name of a section that the module has
	Symbol  string // the name of a function or variable that the module defines
	BuildID []byte // the module's build ID
}

// RuntimeType is a type of the debug information.
type RuntimeType struct {
	Unit    string   // DW_AT_name of the unit that has it; "": any
	Name    string   // DW_AT_name
	Members []string // paths of members: "sched.pc" is the member pc of the member sched
}

// RuntimeConstants are the constants whose names begin with a prefix.
type RuntimeConstants struct {
	Unit   string // DW_AT_name of the unit that has them; "": any
	Prefix string // never empty
}

// OpenRuntimeRequest describes a module that has the runtime, as it is in a target.
type OpenRuntimeRequest struct {
	// Runtime is the handle of the runtime in this module of this target, for the other
	// calls. It is not used for another one as long as the plugin runs.
	Runtime uint64
	Object  uint64 // handle for ReadSection
	Path    string // of the module
	BuildID []byte

	Machine       uint16 // e_machine
	AddressBits   uint32
	ByteOrder     ByteOrder
	PC, SP, FP    uint32 // DWARF numbers of the module's architecture; NoRegister where there is none
	ReturnAddress uint32
	HasDebugInfo  bool // the module's debug information is there
	// MemorySize is how many bytes of memory the target has; 0: unknown. Counts that do not
	// fit into them are wrong.
	MemorySize uint64

	Segments  []RuntimeSegment // of the module, by address
	Sections  []SectionInfo    // of its file, in order, including the null section
	Symbols   []SymbolPlace    // of the description's Symbols, one each
	Types     []TypeLayout     // of the description's Types, one each
	Constants []NamedConstant  // of the description's Constants
	Threads   []RuntimeThread  // of the target
}

// RuntimeSegment is a range of the module's file in the memory of the target.
type RuntimeSegment struct {
	Address uint64 // virtual address in the file
	Size    uint64 // bytes
	Start   uint64 // address in memory
}

// MemoryAddress returns the address in memory of a virtual address in the module's file,
// if the target has that part of the module.
func (r *OpenRuntimeRequest) MemoryAddress(address uint64) (uint64, bool) {
	for i := range r.Segments {
		if s := &r.Segments[i]; address-s.Address < s.Size {
			return s.Start + (address - s.Address), true
		}
	}
	return 0, false
}

// SymbolPlace is the place of a function or variable in memory.
type SymbolPlace struct {
	IsKnown bool
	Address uint64 // in memory
	Size    uint64 // bytes; 0: unknown
}

// TypeLayout is the layout of a type of the debug information.
type TypeLayout struct {
	Size    uint64        // bytes
	Members []MemberPlace // one for each path; nil where the type was not found
	Problem string        // why the type or its first missing member was not found; "" where all were
}

// MemberPlace is the place of a member in its type. Size 0 stands for a member that the
// type does not have.
type MemberPlace struct{ Offset, Size uint64 } // bytes

// NamedConstant is a constant of the debug information.
type NamedConstant struct {
	Name  string
	Value int64
}

// RuntimeThread is a thread of the target.
type RuntimeThread struct {
	Thread uint64 // handle for ReadRegisters
	ID     string // decimal LWP
	Name   string
}

// OpenRuntimeAnswer describes the runtime in a module. The zero answer stands for a runtime
// that has nothing to add: no further call is made about it.
type OpenRuntimeAnswer struct {
	Version string // of the runtime: "go1.26.1"; "": unknown
	// Code are the ranges of code that the runtime made, by address, apart from each other.
	// CodeRules is called for PCs in them.
	Code []RuntimeCode
	// HasFrames says that ManagedFrames knows frames of the threads in Threads, or of all
	// threads of the target where Threads is empty.
	HasFrames bool
	Threads   []uint64 // handles, ascending
	// HasThreads says that ManagedThreads knows threads.
	HasThreads bool
	// Locks are the locks that are known without the stacks of threads. Threads that wait for
	// each other by them are a deadlock.
	Locks []RuntimeLock
	// Fatal is the message with which the runtime itself ended the process: "Fatal Python error:
	// Aborted"; "": it did not, or kept none.
	Fatal    string
	Problems []string // what could not be read, each a sentence
}

// RuntimeLock is a lock of the language with the threads that hold it and wait for it.
type RuntimeLock struct {
	Address   uint64   // identifies the lock, as ManagedLock has it
	Name      string   // in the language's words: "the GIL", "a java.lang.Object"
	Holder    uint64   // handle of a thread
	HasHolder bool     // a thread holds the lock, and it is Holder
	Waiters   []uint64 // handles of threads, ascending
}

// RuntimeCode is code that a runtime made: addresses in memory.
type RuntimeCode struct {
	Start, End uint64
	Name       string // in the runtime's words: "code heap"; "" where it has none
}
