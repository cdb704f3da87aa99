// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"github.com/unwindd/unwindd/sdk"
)

// Stop is why a thread stopped, as its debugger or the writer of the target recorded it.
// Empty members are not known.
type Stop struct {
	Reason string // one of sdk.StopReasons
	// Address is the address that was accessed, in the default address space.
	Address    uint64
	HasAddress bool
	// TrapID is the operand of the trap instruction.
	TrapID    uint32
	HasTrapID bool
	// PCExact means that the PC is the address of the instruction that stopped the thread.
	// If false, the thread executed that instruction earlier, and the PC is where it would
	// continue.
	PCExact    bool
	HasPCExact bool
	// Details are all causes that the machine recorded, in its own words.
	Details []string
}

// Thread is a thread of the target: an operating system's thread or a wave.
type Thread struct {
	Handle    uint64 // identifies the thread in Scope and in plugin calls: its index in Threads
	ID        string // decimal LWP for a CPU thread
	OwnID     int64  // its LWP in its own PID namespace; 0: it is the one of ID
	Name      string
	Arch      string
	Processor string
	Crashed   bool
	Signal    int
	Stop      *Stop         // why it stopped; nil if that is not known
	IsRunning bool          // a wave that was only interrupted to be dumped
	Registers sdk.Registers // of the top frame
	// Saved are further registers of the top frame, which stay in the target's memory: ten
	// thousand waves have half a gigabyte of registers.
	Saved []sdk.SavedRegisters
	// Memory has the places of the thread's instances of address spaces, if the target's
	// ScopedMemory reads them there.
	Memory []sdk.SpaceMemory
	// Callers are the return addresses that the target recorded, innermost first. They are
	// used where no row leads to a caller.
	Callers []uint64
	// LaneStates are the lanes that have registers and memory of their own, sorted by lane,
	// the one of Lead among them; nil where lanes are parts of wide registers.
	LaneStates []sdk.LaneState
	// Lead is the lane whose state Registers, Saved and Memory are, where there are LaneStates.
	Lead uint32
	// State says in plain words what the thread waits for or does; "" if the target does
	// not.
	State   string
	Problem string // why its registers could not be read
	// IsUnstopped means that a thread of a living process did not stop in the time that it was
	// given, for the reason in Problem.
	IsUnstopped bool
	// Unread is why no architecture reads its registers, so that its stack is not walked;
	// "" if one does.
	Unread string
	// PC is the PC of a thread that no architecture reads, if HasPC.
	PC    uint64
	HasPC bool
	// Named are registers of such a thread, by their names in the target.
	Named []NamedRegister
	// IsInCall means that the PC among Registers is a return address: the thread was
	// suspended in a call whose frame is not recorded.
	IsInCall bool
	// Lanes is the number of the thread's lanes; 0 if the target does not tell.
	Lanes uint32
	// Spaces are the bases of the thread's instances of address spaces, by space, as far
	// as the target has them.
	Spaces []sdk.SpaceBase
	// Wave is the identity of a wave; nil for other threads.
	Wave *sdk.Wave
	// LaunchedBy is the launch of the thread; nil if it is not known.
	LaunchedBy *Launch
	// Goroutine is the goroutine that the thread stands for; nil for other threads.
	Goroutine *Goroutine
	// ManagedFrames are the frames of a thread that a language runtime schedules and that has no
	// native stack, innermost first.
	ManagedFrames []Frame
	// Recorded are the frames of a thread whose whole stack the target recorded without the memory of it,
	// innermost first; nil for other threads.
	Recorded []RecordedFrame
	// Executes is the thread of the goroutine that an operating system's thread executes;
	// nil if there is none.
	Executes *Thread
}

// RecordedFrame is a frame as a report of a crash has it.
type RecordedFrame struct {
	PC    uint64
	Exact bool // no call precedes PC
	// Symbols are the functions that the report names, innermost first; none where it names none. The
	// others are inlined into the last one, from whose first byte PC has the distance Offset, if HasOffset.
	Symbols   []Symbol
	Offset    uint64
	HasOffset bool
}

// NamedRegister is a register of at most 64 bits.
type NamedRegister struct {
	Name  string
	Bits  int
	Value uint64
}

// Launch describes the launch of a thread.
type Launch struct {
	Thread   string // the ID of the launching thread, which need not be in the target
	Kind     string // "dispatch"
	Evidence string // one of the constants below
	// Frames are the PCs of the launcher's stack at the launch, innermost first,
	// where it was recorded.
	Frames []uint64
	// Signal is a number that a thread has in a register or on its stack while it waits
	// for the end of the launch in one of WaitFunctions (linkage names). With LaunchQueue
	// it may tell the launcher; 0 if there is no such number.
	Signal        uint64
	WaitFunctions []string
	// LaunchFunctions are linkage names of functions that launch.
	LaunchFunctions []string
}

// The evidence for the launcher of a thread (`evidence` in the output).
const (
	LaunchRecorded = "recorded" // the launcher's stack was captured at the launch
	LaunchWaiting  = "waiting"  // the launcher is blocked on this launch now
	LaunchQueue    = "queue"    // only the process is known
)
