// SPDX-License-Identifier: Apache-2.0

package sdk

import "github.com/unwindd/unwindd/locexpr"

// FileSpace is the address space of the bytes of a target's file: its addresses are offsets
// from the file's start. No architecture describes it. What an answer to OpenTarget places
// in it stays in the file until it is read.
const FileSpace locexpr.AddressSpace = 1<<64 - 1

// OpenTargetRequest has the notes of a core that a plugin owns, or the headers of a core that
// has no segments. While the call is under way the plugin reads the core's memory
// (Engine.ReadMemory, of the default address space; the memory of all files that make up
// the core is one), and the bytes of a core without segments (of FileSpace).
type OpenTargetRequest struct {
	Notes []Note
	// File is set for a core whose machine the plugin recognises and that has no segments:
	// its contents are in sections, which the plugin reads by FileSpace.
	File *TargetFile
}

// TargetFile is the ELF header of a core without segments. A table of sections with more
// entries than the header can tell (e_shnum 0, SHN_XINDEX) has them counted here.
type TargetFile struct {
	Machine        uint16 // e_machine
	OSABI          uint8  // EI_OSABI
	ABIVersion     uint8  // EI_ABIVERSION
	Flags          uint32 // e_flags
	Size           uint64 // bytes of the file
	SectionsOffset uint64 // e_shoff
	Sections       uint64 // how many section headers the table has; all are within the file
	SectionSize    uint32 // e_shentsize
	SectionNames   uint32 // the index of the section with the names of sections; 0: there is none
}

// OpenTargetAnswer lists the contents of a vendor's own dump format. Agents, queues,
// dispatches and threads refer to each other by their IDs, which are each unique among
// their kind.
type OpenTargetAnswer struct {
	// Kind is the name of such cores ("rocm-core"); "" where it has nothing of the
	// vendor's after all.
	Kind       string
	Agents     []TargetAgent
	Queues     []TargetQueue
	Dispatches []TargetDispatch
	Threads    []TargetThread
	Objects    []TargetObject
	// Memory is memory that all threads see: of the default address space, whose bytes are
	// in the file (Into is FileSpace), or of another one. Where two entries overlap, the
	// first has the bytes.
	Memory []SpaceMemory
	// WaitFunctions are the linkage names of functions in which a thread of the process
	// waits for a dispatch. See TargetDispatch.Signal and TargetThread.LaunchEvidence.
	WaitFunctions []string
	// LaunchFunctions are the linkage names of functions that launch a dispatch.
	LaunchFunctions []string
	// HostProcess is the process that used the devices; nil: the dump does not say.
	HostProcess *HostProcess
	// Problems are the parts of the dump that could not be read, such as threads that were
	// left out, each a sentence with the place and the expectation.
	Problems []string
}

// HostProcess is the process that used the devices of a dump. Empty members are unknown.
type HostProcess struct {
	PID uint64
	// Time is when the dump was made, in seconds since 1970.
	Time uint64
}

// TargetAgent is a device that executes threads.
type TargetAgent struct {
	ID        string
	Processor string // one of the description's processors; or another, whose state could not be read
}

// TargetQueue is a queue of an agent, to which dispatches are submitted.
type TargetQueue struct {
	ID    string
	Agent string // ID
	Kind  string // in the vendor's words
}

// TargetDispatch is a launch of a kernel that was under way.
type TargetDispatch struct {
	ID     string
	Queue  string    // ID
	Kernel string    // linkage name; "" where the plugin does not know it
	Entry  uint64    // the address of the kernel's first instruction; 0: unknown
	Grid   [3]uint32 // work-items in total; 0: unknown
	Group  [3]uint32 // work-items of a work-group; 0: unknown
	// Signal is a number that a thread of the process has in a register or on its
	// stack while it waits for this dispatch in one of the WaitFunctions; 0: none is known.
	Signal uint64
}

// TargetThread is a thread (a wave is a thread) found by OpenTarget.
type TargetThread struct {
	ID        string
	Name      string
	Processor string
	Lanes     uint32 // 0: one
	// Registers are the registers with their bytes, Saved the registers whose bytes are in
	// memory: large ones stay there. No register is in both.
	Registers Registers
	Saved     []SavedRegisters
	Spaces    []SpaceBase
	// Memory is the memory of the thread's instances of address spaces. An address of such
	// a space that is in none of them is not there.
	Memory []SpaceMemory
	// Callers are the return addresses that the dump recorded, innermost first. They are used
	// where no row leads to a caller.
	Callers []uint64
	// LaneStates are the lanes that have registers and memory of their own, sorted by Lane,
	// the one of Lead among them; nil where lanes are parts of wide registers. A register and an
	// address space that are in none of them are the same for all lanes, and the thread's.
	LaneStates []LaneState
	// Lead is the lane whose state the thread's own Registers, Saved and Memory are, where
	// there are LaneStates: the stack is walked by it.
	Lead uint32
	// State says in plain words what the thread waits for or does: "blocked on barrier 2";
	// "" where the dump does not.
	State string
	Wave  Wave
	// IsRunning says that the thread had not stopped: it was interrupted to be dumped.
	IsRunning bool
	// HasCrashed says that the thread is the reason of the dump, or one of several.
	HasCrashed bool
	Stop       ThreadStop
	Problem    string // why it cannot be walked; "" when it can
	// LauncherThread is the thread that launched this one; "" when unknown.
	LauncherThread string
	LaunchKind     string // "dispatch"
	// LaunchEvidence is "recorded", "waiting" or "queue". With "queue" the stack of
	// LauncherThread decides: where it is in one of the WaitFunctions or LaunchFunctions, it is
	// waiting.
	LaunchEvidence string
}

// LaneState is the state of one lane that has registers and memory of its own. A register
// that it lacks, and that another lane's state has, is unknown for the lane.
type LaneState struct {
	Lane      uint32
	Registers Registers // that are in no Saved
	Saved     []SavedRegisters
	Memory    []SpaceMemory
}

// SavedRegisters are Count registers from number First on, whose bytes are one
// register after the other in the space Into, from Address on. Each has all its bytes
// there, by its size in the description.
type SavedRegisters struct {
	First, Count uint32
	Address      uint64
	Into         locexpr.AddressSpace // 0, the default one, or FileSpace
}

// SpaceMemory is Size bytes from Start on of an instance of an address space, which are in
// the space Into from Address on.
type SpaceMemory struct {
	Space                locexpr.AddressSpace
	Start, Size, Address uint64
	Into                 locexpr.AddressSpace // 0, the default one, or FileSpace
}

// ThreadStop is why a thread stopped. The zero value stands for unknown.
type ThreadStop struct {
	// Reason is "" or one of StopReasons. Where several apply, it is the fault.
	Reason string
	// Details are all states of the machine, in its own words ("MEM_VIOL").
	Details []string
	// Address is the accessed address, in the default address space.
	Address    uint64
	HasAddress bool
	// TrapID is the number of the trap instruction.
	TrapID    uint32
	HasTrapID bool
	// IsPCExact says that the PC is at the instruction that stopped the thread;
	// where it is false, the thread executed that instruction some time before.
	IsPCExact  bool
	HasPCExact bool
}

// Wave is the identity of a wave of an accelerator. Empty members are unknown.
type Wave struct {
	Agent, Queue, Dispatch, Kernel string
	Group                          [3]uint32 // the work-group of the dispatch: x, y, z
	HasGroup                       bool      // Group is known
	InGroup                        uint32    // the number of the wave in the work-group
	HasInGroup                     bool      // InGroup is known
	Cluster                        [3]uint32 // the cluster of work-groups: x, y, z
	HasCluster                     bool      // Cluster is known
}

// TargetObject is a code object that is only in the vendor's notes. Its file image is a
// part of a file, or is in memory.
type TargetObject struct {
	URI string // the target's name of it
	// Path is the file; "" for an image in memory.
	Path string
	// Offset and Size are the range of the image in the file. Size 0 reaches to its end.
	Offset, Size uint64
	// MemoryAddress is the address of the image of Size bytes in the space Into, where Path
	// is "".
	MemoryAddress uint64
	Into          locexpr.AddressSpace // 0, the default one, or FileSpace
	// Bias is the difference of the object's loaded addresses to its ELF virtual addresses.
	Bias uint64
}
