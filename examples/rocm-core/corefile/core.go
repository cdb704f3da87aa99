// SPDX-License-Identifier: Apache-2.0

package corefile

// Layout selects the files of a process's core.
type Layout uint8

const (
	// Unified is one file with host and GPU, as ROCgdb's gcore writes it.
	Unified Layout = iota
	// Split is a host core of the kernel and a GPU core of the runtime.
	Split
	// Merged is a split pair joined into one file: the host's headers, with the GPU's
	// note in a segment of its own. The exact layout of the tool that joins them is not
	// known from its source.
	Merged
)

// Core is a process with GPUs at the moment of its death.
type Core struct {
	Layout Layout
	PID    int
	// Host is the host's core file. Its notes and segments are kept as they
	// are. Without one a host without threads is written.
	Host []byte
	// KFDMajor and KFDMinor are the kernel driver's version; 0.0 is 1.18.
	KFDMajor, KFDMinor uint32
	// RuntimeVersion is r_debug's r_version: 8 to 12.
	RuntimeVersion uint32
	// RuntimeState is kfd_runtime_info's runtime_state. 0 is 1, enabled.
	RuntimeState uint32
	// AgentEntrySize is 120, or 128 with capability2; 0 is 120. QueueEntrySize
	// 0 is 64 and RuntimeInfoSize 0 is 16. Larger entries end in zeros.
	AgentEntrySize, QueueEntrySize, RuntimeInfoSize uint32
	// RDebug is the address of an r_debug that Host has. 0: one is written.
	RDebug uint64
	// UpdatingObjects: the process died while it changed its list of code
	// objects (r_state is not RT_CONSISTENT).
	UpdatingObjects bool
	// RuntimeInGPU puts r_debug, the list and memory:// objects into the GPU's
	// memory, so that a GPU core alone has them. The runtime's are the host's.
	RuntimeInGPU bool
	Agents       []Agent
	CodeObjects  []CodeObject
	Memory       []Memory
	// Piped: the runtime wrote its core into a pipe, where the bytes of the
	// segments follow each other without the padding that p_offset tells of.
	Piped bool
	// SizeLimit is the process's RLIMIT_CORE: the GPU's core of a split pair ends before
	// the first segment that goes over it; all headers are there nevertheless. 0: no
	// limit.
	SizeLimit uint64
}

// Place is the file that memory is in.
type Place uint8

const (
	// GPU is memory that is mapped from /dev/dri/renderD*: in the GPU's core.
	GPU Place = iota
	// Host is all other memory: in the host's core.
	Host
)

// Memory is a mapping with its contents.
type Memory struct {
	Place      Place
	Address    uint64
	Data       []byte
	Size       uint64 // 0: as long as Data; larger: zeros behind Data
	Executable bool
	ReadOnly   bool
}

// Agent is a GPU: kfd_dbg_device_info_entry.
type Agent struct {
	Machine *Machine
	GPUID   uint32
	// Target is gfx_target_version where it is not the machine's.
	Target          uint32
	ExceptionStatus uint64
	// The apertures; 0: LDS at 1<<48 and scratch at 2<<48, 4 GiB each.
	LDSBase, LDSLimit, ScratchBase, ScratchLimit, GPUVMBase, GPUVMLimit uint64
	LocationID, VendorID, DeviceID, RevisionID                          uint32
	SubsystemVendorID, SubsystemDeviceID, FirmwareVersion               uint32
	SIMDs, WavesPerSIMD                                                 uint32
	// ShaderEngines is the number in one XCC; each has one array.
	ShaderEngines uint32
	XCCs          uint32
	// Capability and DebugProperties 0 stand for a GPU that can be debugged and whose
	// dispatches always fill the trap temporaries.
	Capability, DebugProperties, Capability2 uint32
	// TrapHandler is the PC of parked waves: an address in the trap handler.
	TrapHandler uint64
	Queues      []Queue
}

// Queue is kfd_queue_snapshot_entry with the data that it points to.
type Queue struct {
	ID              uint32
	Flags           uint32 // bits 30 (error) and 31 (invalid) of the note's queue_id
	Type            uint32 // KFD_IOC_QUEUE_TYPE_*; 0 is 2, compute AQL
	ExceptionStatus uint64
	// Packets is the ring's length, a power of two. ReadID and WriteID are
	// the ids of the next packet to be done and to be written.
	Packets         uint32
	ReadID, WriteID uint64
	// QueueIn is the memory of the ring and of amd_queue_t.
	QueueIn    Place
	Dispatches []Dispatch
	Scratch    Scratch
	// Groups are the work-groups that have waves, of each XCC in the order of
	// its control stack.
	Groups []Group
	// Event and Payload are err_event_id and err_payload_addr of the header.
	Event   uint32
	Payload uint64
	// StackWords are the two words before the first state of each control
	// stack, which no reader may look at.
	StackWords [2]uint32

	// Addresses; 0: chosen by Build.
	RingAddress, QueueAddress, SaveAddress uint64
}

// Scratch is the private memory of a queue: compute_tmpring_size and
// amd_queue_t's scratch_backing_memory_location.
type Scratch struct {
	// Waves is the number of waves that it has memory for: in all of an XCC, or from
	// gfx11 on in each shader engine. WaveBytes is the size of one wave's.
	Waves, WaveBytes uint64
	Address          uint64 // 0: chosen by Build
}

// Dispatch is a packet of the ring: hsa_kernel_dispatch_packet_t.
type Dispatch struct {
	ID uint64 // its id; the packet lies at ID modulo Packets
	// Header 0 is a kernel dispatch with the barrier bit. The packet at the
	// queue's ReadID has the type INVALID (1) while it runs.
	Header     uint16
	Dimensions uint16
	Group      [3]uint16
	Grid       [3]uint32
	// PrivateBytes and LDSBytes are the packet's segment sizes.
	PrivateBytes, LDSBytes uint32
	// KernelObject is the address of a kernel descriptor in Memory or in a
	// code object. 0: one is written whose entry is Entry.
	KernelObject, Entry uint64
	Arguments           uint64
	Completion          uint64
}

// Group is a work-group of a dispatch.
type Group struct {
	XCC      int
	Dispatch int // index in the queue's Dispatches
	ID       [3]uint32
	Lanes    int // 64 or 32; 0: the machine's first
	// LDS is the group's memory, filled up with zeros to the machine's unit
	// or to LDSSize. It is in the record of the first wave.
	LDS     []byte
	LDSSize int
	// Cluster is the number of groups of the group's cluster in x, y and z; zeros: the
	// dispatch has no clusters (from gfx1250 on).
	Cluster [3]uint32
	// WholeLDS: the group has taken over all LDS of a gfx12 work-group processor.
	WholeLDS bool
	Waves    []Wave
}

// Wave has the contents of a wave's record.
type Wave struct {
	// PC is the address of the instruction that the wave is at. One that
	// s_trap stopped is at that s_trap (see SavedPC).
	PC, Exec, VCC uint64
	// SGPRs are s0 and on without the aliased ones; missing ones are 0.
	SGPRs []uint32
	// VGPRs are v0's lanes, v1's lanes and so on; AGPRs the accumulation
	// registers likewise, and SharedVGPRs of 32 lanes each.
	VGPRs, AGPRs, SharedVGPRs []uint32
	// Registers of the hardware block. The bits of Stopped, Halted, Exceptions and
	// Enabled are added to them.
	M0, Mode, Status, TrapSts                       uint32
	StatePriv, ExcpFlagPriv, ExcpFlagUser, TrapCtrl uint32
	XNACKMask                                       uint64
	// FlatScratch 0 is the address of the wave's scratch where the machine
	// keeps it there.
	FlatScratch uint64

	// Stopped: the trap handler has stopped the wave; SavedHalt is the halt bit before
	// that. A wave that was only preempted is not stopped.
	Stopped, SavedHalt bool
	// Halted: a wave that is not stopped has its halt bit set.
	Halted bool
	// TrapID is the number of the s_trap, 15 for larger ones.
	TrapID uint8
	// Exceptions that were raised. Masked are the ones that are not enabled, of
	// exceptions that have an enable bit.
	Exceptions, Masked []Exception
	// ID is the debugger's number of the wave; 0: no debugger has seen it.
	ID uint64
	// NoTTMPs: the wave began before the trap temporaries were set up, so
	// dispatch, group and position are unknown. From version 10 on.
	NoTTMPs bool
	// Noise fills the bits of trap temporaries that nothing defines.
	Noise uint32

	// HasScratch, its place, and its bytes as they lie in memory.
	HasScratch   bool
	ScratchSlot  int
	ShaderEngine int
	Scratch      []byte
	// Events are words put before the wave's in the control stack, which
	// readers skip; bit 30 is set by the writer.
	Events []uint32
}

// CodeObject is an entry of the runtime's list.
type CodeObject struct {
	// URI is the entry's name. Empty: memory:// of Image, which is put into
	// host memory.
	URI string
	// Image is the ELF file. Its segments are put at Load + p_vaddr.
	Image []byte
	Load  uint64
	// Unloaded: the segments are not in GPU memory.
	Unloaded bool
}
