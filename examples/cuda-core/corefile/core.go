// SPDX-License-Identifier: Apache-2.0

package corefile

// Core is a core to be written.
type Core struct {
	// Driver is the driver's release, such as 575: it says which members rows have.
	Driver  int
	Meta    Meta // written from driver 565 on
	Global  []Memory
	Devices []Device
	Layout  Layout
	// Seed puts the sections into an order of its own where it is not 0.
	Seed uint64
}

// Layout is an order of the sections. The driver's is not known.
type Layout int

// The orders of sections.
const (
	DepthFirst Layout = iota // what belongs to a row stands behind its table
	ByKind                   // all sections of one kind stand together
)

// Meta says who wrote the core.
type Meta struct {
	Generator      string
	Driver         [2]uint32
	CUDA           [2]uint32
	Flags          uint32
	SecondsOfEpoch uint32
}

// Memory is memory of the process.
type Memory struct {
	Address   uint64
	Data      []byte
	IsManaged bool
}

// Device is a GPU.
type Device struct {
	Name, Type, SM    string
	ID                uint32
	PCIBus, PCIDevice uint32
	SMCount           uint32
	WarpsPerSM        uint32
	Lanes             uint32
	Registers         uint32
	Predicates        uint32
	Major, Minor      uint32
	InstructionSize   uint32
	Status            uint32
	UniformRegisters  uint32 // from driver 400 on
	UniformPredicates uint32
	Barriers          uint32 // from driver 575 on
	Contexts          []Context
	Grids             []Grid
	SMs               []SM
}

// Context is a context of a device.
type Context struct {
	ID                         uint64
	Shared, Local, GlobalStart uint64 // the windows of generic addresses
	Device                     uint32
	HostThread                 uint32
	Modules                    []Module
}

// Module is a module of a context. An image of no bytes is not written.
type Module struct {
	Handle              uint64
	Relocated, Original []byte
}

// Grid is a launch of a kernel.
type Grid struct {
	ID, Context, Function, Entry, Module uint64
	Parent                               uint64
	ParametersAt                         uint64 // offset in constant bank 0
	Kind, Origin, Status, Registers      uint32
	Blocks, Block                        [3]uint32 // blocks of the grid, lanes of a block
	IsBlocking                           bool
	HostThread                           uint32
	Cluster, PreferredCluster            [3]uint32 // from drivers 525 and 565 on
	Parameters                           []byte
	Banks                                []Bank // from driver 550 on
}

// Bank is a constant bank of a grid.
type Bank struct {
	Address    uint64
	Size, Bank uint32
}

// SM is a multiprocessor. Its exception is written from driver 555 on.
type SM struct {
	ID         uint32
	Exception  uint32
	ErrorPC    uint64
	HasErrorPC bool
	Target     *[3]uint32 // the block that a cluster's exception names; from driver 565 on
	Text       string     // from driver 580 on
	Blocks     []Block
}

// Block is a block of a grid (a CTA).
type Block struct {
	Grid                uint64
	Index               [3]uint32
	Cluster, ClusterDim [3]uint32 // from drivers 525 and 565 on
	Shared              []byte
	Warps               []Warp
}

// Warp is a warp of a block.
type Warp struct {
	ID                uint32
	ErrorPC           uint64
	HasErrorPC        bool
	Valid, Active     uint32 // masks of lanes
	IsBroken          bool
	Registers         uint32 // from driver 525 on
	SharedSize        uint32 // from driver 570 on
	InSyscall         uint32 // masks of lanes, from driver 575 on
	CBUActive         uint32
	CBUExited         uint32
	CBUCollective     uint32
	BarrierScope      uint32 // from driver 590 on
	BarrierText       string
	Uniform           []uint32 // from driver 400 on
	UniformPredicates []uint32
	Barriers          []uint32 // from driver 575 on
	Lanes             []Lane
}

// Lane is a lane of a warp: a thread in CUDA's words.
type Lane struct {
	PC, Offset          uint64
	Number              uint32
	Thread              [3]uint32
	Exception           uint32
	Depth, SyscallDepth uint32
	CC                  uint32
	State               uint32    // from driver 575 on
	RPC                 [2]uint32 // from driver 615 on: the low half, the high half
	LocalStart          uint64
	Local               []byte
	Registers           []uint32
	Predicates          []uint32
	Frames              []Frame
}

// Frame is a row of the recorded stack.
type Frame struct {
	Offset, Address uint64
	Level           uint32
}
