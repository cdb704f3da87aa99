// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"github.com/unwindd/unwindd/sdk"
)

// Kind names a format of target, as in the `kind` of the output.
type Kind string

// The kinds.
const (
	ELFCore     Kind = "elf-core"
	MachOCore   Kind = "macho-core"
	Snapshot    Kind = "snapshot"
	Minidump    Kind = "minidump"
	LiveProcess Kind = "process"      // a live process, whose threads were stopped while their stacks were copied
	ROCmCore    Kind = "rocm-core"    // the state of AMD's graphics processors, perhaps with the process that used them
	AppleReport Kind = "apple-report" // the frames that a report of macOS or iOS has
	CUDACore    Kind = "cuda-core"    // the state of NVIDIA's graphics processors, perhaps with the process that used them
)

// Target describes a target as a whole.
type Target struct {
	Kind   Kind
	Path   string
	Signal int // that ended the process; 0 if none did
	// FaultAddress is the address of the fault, if HasFaultAddress.
	FaultAddress    uint64
	HasFaultAddress bool
	// Machine is the ELF machine of the process.
	Machine uint16
	// Problems list the defects of the target as a whole, each a sentence that names the
	// file, the offset and the consequence.
	Problems []string
	// Unread means that the target has state of graphics processors that no reader here
	// understands. Problems describe it.
	Unread bool
	// Notes are the notes that no reader here owns, for plugins.
	Notes []sdk.Note
	// Devices are the devices that executed threads, and the work submitted to them.
	Devices Devices
	// Facts are further facts about the process; nil if the target has none.
	Facts *Facts
}

// Devices lists the agents, queues and dispatches of a target.
type Devices struct {
	Agents     []sdk.TargetAgent
	Queues     []sdk.TargetQueue
	Dispatches []sdk.TargetDispatch
	// Host is the process that used the devices; nil if the target does not tell.
	Host *sdk.HostProcess
}
