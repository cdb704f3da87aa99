// SPDX-License-Identifier: Apache-2.0

// Package target describes the state of a process that runs or ran: its threads, registers,
// memory and loaded code. Its sub-packages read the formats of such state.
package target

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Kind names a format of target, as in the `kind` of the output.
type Kind string

// The kinds.
const (
	ELFCore     Kind = "elf-core"
	Snapshot    Kind = "snapshot"
	Minidump    Kind = "minidump"
	LiveProcess Kind = "process"   // a live process, whose threads were stopped while their stacks were copied
	ROCmCore    Kind = "rocm-core" // the state of AMD's graphics processors, perhaps with the process that used them
)

// ErrNoMemory means that an address is not in the target: not mapped, or mapped
// and neither dumped nor readable from the mapped file.
var ErrNoMemory = errors.New("address is not in the target")

// ErrNoArchitecture is wrapped by the errors of searches for an architecture that find none.
var ErrNoArchitecture = errors.New("no architecture plugin")

// MissingPlugin adds to an error that wraps ErrNoArchitecture the name of the executable that
// would be the plugin of an architecture, and where it has to lie. It returns other errors
// unchanged.
func MissingPlugin(err error, name string) error {
	if !errors.Is(err, ErrNoArchitecture) {
		return err
	}
	return fmt.Errorf("%w; an executable named unwindd-arch-%s in a plugin directory (--plugin-dir, UNWINDD_PLUGIN_DIR) would be one",
		err, name)
}

// ErrEndOfStack means that the recorded bytes of a stack ran out.
var ErrEndOfStack = errors.New("the recorded stack ends here")

// Target is a process, or a recording of one. It may be read concurrently.
type Target interface {
	Info() Info
	// Modules are the code objects loaded, by address.
	Modules() []*Module
	// Threads are in the target's own order.
	Threads() []*Thread
	// ReadMemory reads at an address of a space. It returns the number of bytes read; if
	// they are fewer than len(buf) it also returns ErrNoMemory (wrapped, with the address)
	// or the error of reading.
	ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error)
	// Mapped reports whether address lies in a mapping of the target, and whether that
	// mapping is executable.
	Mapped(address uint64) (mapped, executable bool)
	Close() error
}

// Sized is a Target that knows the size of its memory, which lies in files. The size bounds
// the work on all of its threads together.
type Sized interface {
	Target
	// MemorySize is an upper bound of the bytes of memory that the target has.
	MemorySize() uint64
}

// ScopedMemory is a Target with address spaces of which each group, wave or lane has its own
// instance.
type ScopedMemory interface {
	Target
	// ReadScoped reads like ReadMemory, from the thread's instance of space.
	ReadScoped(space locexpr.AddressSpace, thread *Thread, address uint64, buf []byte) (int, error)
}

// FileMemory is a Target that reads memory of its modules that it lacks from their files.
type FileMemory interface {
	Target
	// FromFile returns the module whose file has the bytes of the default address space
	// from address on, and their number, at least 1. m is nil for bytes that the target
	// has itself, and where there are none.
	FromFile(address uint64) (m *Module, n uint64)
}

// Paged is a Target that maps a file, of which each stack needs its own pages.
type Paged interface {
	Target
	// ReleasePages frees the pages that were read. They may be read again, even while
	// this runs.
	ReleasePages()
}

// Info describes a target as a whole.
type Info struct {
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
}

// LoadedModule describes a code object that is loaded into a target.
type LoadedModule struct {
	ID      int
	Path    string // in the target
	BuildID []byte // of the loaded image, if the target has it; see IsAssumed
	// IsAssumed means that BuildID is the build ID of the file that was found: the target
	// does not have one.
	IsAssumed bool
	// Symbols names the build as stores of symbol files do; zero if the target does not
	// tell.
	Symbols SymbolID
	// Version is the version of the file: "10.0.19041.546".
	Version string
	// Base and Size are the range of the whole image, if the target tells; else Size is 0,
	// and only its Segments are known.
	Base, Size uint64
	Arch       string
	// Processor is the processor that the code is for; "" if the target does not tell.
	Processor string
	// File is the path of the file of the code; "" for code in the target's memory, and if
	// none was found: Problem says why.
	File     string
	Problem  string
	Segments []Segment
}

// Module is a code object loaded into a target, with its file.
type Module struct {
	LoadedModule
	// Object is the code object, opened from the file system or from the target's own
	// memory (the vDSO); nil if it was not found.
	Object *object.Object
	Tried  []object.Attempt // files that were read for Object and rejected
	// Companion reads a file that the target has beside the code object: its name is the
	// code object's with suffix (which begins with a dot) in place of the last dot and
	// all after it. The path is for messages. The error for a missing file wraps
	// fs.ErrNotExist. Companion is nil if Object is not from the target; then the files
	// beside File are its companions. The bytes are valid as long as the target is open.
	Companion func(suffix string) (path string, data []byte, err error)
	// SourceModule reads the SPIR-V, LLVM IR or vISA assembly that the code was compiled
	// from; nil if the target does not have it. The bytes are valid as long as the target
	// is open.
	SourceModule func() ([]byte, error)
}

// Segment is a contiguous part of a module.
type Segment struct {
	Section    string // of a relocatable object; "" for segments
	Address    uint64 // ELF virtual address in the object
	Size       uint64
	Start      uint64 // the target's address of Address
	Executable bool
}

// SymbolID identifies a build in stores of symbol files, Breakpad's and Microsoft's.
type SymbolID struct {
	// DebugFile is the base name of the file that has the debug information:
	// "kernel32.pdb", "libc.so.6".
	DebugFile string
	// DebugID has the digits of its identifier: of a GUID and of an age.
	DebugID string
	// CodeID identifies the file of the code: the digits of a build ID, or of a PE
	// file's time and size.
	CodeID string
}

// Confirmed reports whether the target states the build ID of Object, so that Object is known
// to be the file that was loaded.
func (m *Module) Confirmed() bool {
	return m.Object != nil && !m.IsAssumed && m.Object.HasID(m.BuildID)
}

// HasCode reports whether Object has the module's code: a debug file alone has none.
func (m *Module) HasCode() bool { return m.Object != nil && !m.Object.DebugOnly() }

// HoldsCode reports whether a segment of a code object is executable. Without a code object it
// may be.
func HoldsCode(o *object.Object, s *Segment) bool {
	if o == nil {
		return true
	}
	if s.Section != "" {
		section := o.Section(s.Section)
		return section == nil || section.Flags&elf.SHF_EXECINSTR != 0
	}
	// Segments that share a page of the file both cover it: the segment with the largest
	// part here decides.
	known, executable, largest := false, false, uint64(0)
	for _, p := range o.Segments() {
		start, end := max(p.Address, s.Address), min(p.Address+p.MemSize, s.Address+s.Size)
		if p.Address+p.MemSize < p.Address || start >= end || end-start <= largest {
			continue
		}
		known, executable, largest = true, p.Executable(), end-start
	}
	return executable || !known
}

// Contains reports whether address lies in an executable segment, and returns its ELF virtual
// address.
func (m *LoadedModule) Contains(address uint64) (objectAddress uint64, ok bool) {
	for i := range m.Segments {
		s := &m.Segments[i]
		if s.Executable && address-s.Start < s.Size {
			return address - s.Start + s.Address, true
		}
	}
	return 0, false
}

// Start returns the target's address of an ELF virtual address of the module.
func (m *LoadedModule) Start(objectAddress uint64) (address uint64, ok bool) {
	for i := range m.Segments {
		s := &m.Segments[i]
		if objectAddress-s.Address < s.Size {
			return objectAddress - s.Address + s.Start, true
		}
	}
	return 0, false
}

// SortModules puts modules in the order of their lowest addresses, those without segments last,
// and numbers them.
func SortModules(list []*Module) {
	lowest := func(m *Module) uint64 {
		address := ^uint64(0)
		for i := range m.Segments {
			address = min(address, m.Segments[i].Start)
		}
		return address
	}
	slices.SortStableFunc(list, func(a, b *Module) int { return cmp.Compare(lowest(a), lowest(b)) })
	for i, m := range list {
		m.ID = i
	}
}

// Thread is a thread of the target: an operating system's thread or a wave.
type Thread struct {
	Handle    uint64 // identifies the thread in Scope and in plugin calls: its index in Threads
	ID        string // decimal LWP for a CPU thread
	Name      string
	Arch      string
	Processor string
	Crashed   bool
	Signal    int
	Stop      *Stop         // why it stopped; nil if that is not known
	IsRunning bool          // it was not stopped when it was dumped
	Registers sdk.Registers // of the top frame
	// Saved are further registers of the top frame, which stay in the target's memory: ten
	// thousand waves have half a gigabyte of registers.
	Saved []sdk.SavedRegisters
	// Memory has the places of the thread's instances of address spaces in the default
	// one, if the target's ScopedMemory reads them there.
	Memory  []sdk.SpaceMemory
	Problem string // why its registers could not be read
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
	// Executes is the thread of the goroutine that an operating system's thread executes;
	// nil if there is none.
	Executes *Thread
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
}

// The evidence for the launcher of a thread (`evidence` in the output).
const (
	LaunchRecorded = "recorded" // the launcher's stack was captured at the launch
	LaunchWaiting  = "waiting"  // the launcher is blocked on this launch now
	LaunchQueue    = "queue"    // only the process is known
)
