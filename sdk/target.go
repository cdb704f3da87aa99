// SPDX-License-Identifier: Apache-2.0

package sdk

import "github.com/unwindd/unwindd/locexpr"

// OpenTargetRequest carries the notes of a core that a plugin owns. While the
// call is under way the plugin reads the core's memory (Engine.ReadMemory, of the
// default address space); the memory of all files that make up the core is one.
type OpenTargetRequest struct {
	Notes []Note
}

// OpenTargetAnswer lists what a vendor's own dump format holds. Agents, queues,
// dispatches and threads name each other by their IDs, which are each unique among
// their kind.
type OpenTargetAnswer struct {
	// Kind is what such a core is called ("rocm-core"); "" where it has nothing of the
	// vendor's after all.
	Kind       string
	Agents     []TargetAgent
	Queues     []TargetQueue
	Dispatches []TargetDispatch
	Threads    []TargetThread
	Objects    []TargetObject
	// WaitFunctions are the linkage names of functions in which a thread of the process
	// waits for a dispatch. See TargetDispatch.Signal.
	WaitFunctions []string
	// Problems are what of the dump could not be read, each a sentence that says
	// where it is and what was expected: threads that were left out among them.
	Problems []string
}

// A TargetAgent is a device that executes threads.
type TargetAgent struct {
	ID        string
	Processor string // one of the description's processors; or another, of which nothing could be read
}

// A TargetQueue is a queue of an agent, to which dispatches are submitted.
type TargetQueue struct {
	ID    string
	Agent string // ID
	Kind  string // in the vendor's words
}

// A TargetDispatch is a launch of a kernel that was under way.
type TargetDispatch struct {
	ID     string
	Queue  string    // ID
	Kernel string    // linkage name; "" where the plugin does not know it
	Entry  uint64    // the address of the kernel's first instruction; 0 where it is not known
	Grid   [3]uint32 // work-items in all; 0 where it is not known
	Group  [3]uint32 // work-items of a work-group; 0 where it is not known
	// Signal is a number that a thread of the process has in a register or on its
	// stack while it waits for this dispatch in one of the WaitFunctions; 0: none is known.
	Signal uint64
}

// A TargetThread is a thread (a wave is a thread) found by OpenTarget.
type TargetThread struct {
	ID        string
	Name      string
	Processor string
	Lanes     uint32 // 0: one
	// Registers are those that the plugin states itself, Saved those that lie in
	// memory as they are: what is large stays there. No register is in both.
	Registers Registers
	Saved     []SavedRegisters
	Spaces    []SpaceBase
	// Memory is where instances of address spaces that belong to the thread lie. An
	// address of such a space that is in none of them is not there.
	Memory []SpaceMemory
	Wave   Wave
	// IsRunning says that the thread had not stopped: it was interrupted to be dumped.
	IsRunning bool
	// HasCrashed says that the thread is why there is a dump, or one of several.
	HasCrashed bool
	Stop       ThreadStop
	Problem    string // why it cannot be walked; "" when it can
	// LauncherThread is the thread that launched this one; "" when unknown.
	LauncherThread string
	LaunchKind     string // "dispatch"
	LaunchEvidence string // "recorded", "waiting", "queue"
}

// SavedRegisters are Count registers from number First on, whose bytes lie one
// register after the other in the default address space, from Address on. Each
// has its whole bytes there, as many as the description says.
type SavedRegisters struct {
	First, Count uint32
	Address      uint64
}

// SpaceMemory says that the Size bytes from Start on, of the thread's instance of
// an address space, lie in the default address space from Address on.
type SpaceMemory struct {
	Space                locexpr.AddressSpace
	Start, Size, Address uint64
}

// ThreadStop says why a thread stopped. The zero value says nothing.
type ThreadStop struct {
	// Reason is "" or one of StopReasons. Where several hold, it is the fault.
	Reason string
	// Details are all that the machine says, in its own words ("MEM_VIOL").
	Details []string
	// Address is what was accessed, in the default address space.
	Address    uint64
	HasAddress bool
	// TrapID is the number that the trap instruction has.
	TrapID    uint32
	HasTrapID bool
	// IsPCExact says that the PC is that of the instruction that stopped the thread;
	// where it is false, the thread executed that instruction some time before.
	IsPCExact  bool
	HasPCExact bool
}

// Wave is the identity of a wave of an accelerator. What is empty is not known.
type Wave struct {
	Agent, Queue, Dispatch, Kernel string
	Group                          [3]uint32 // which work-group of the dispatch: x, y, z
	HasGroup                       bool      // Group is known
	InGroup                        uint32    // which wave of the work-group
	HasInGroup                     bool      // InGroup is known
}

// A TargetObject is a code object that only the vendor's notes name. Its file image is a
// part of a file, or lies in memory.
type TargetObject struct {
	URI string // by which the target names it
	// Path is the file; "" for an image in memory.
	Path string
	// Offset and Size are the image's part of the file. Size 0 reaches to its end.
	Offset, Size uint64
	// MemoryAddress is where the image of Size bytes is in the default address space,
	// where Path is "".
	MemoryAddress uint64
	// Bias is what is added to the object's ELF virtual addresses, where it is loaded.
	Bias uint64
}
