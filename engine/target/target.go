// SPDX-License-Identifier: Apache-2.0

// Package target says where state comes from: the threads, registers, memory
// and loaded code of something that runs or ran. Its sub-packages read the
// forms in which such state is kept.
package target

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Kind names a form of target, as in the `kind` of the output.
type Kind string

// The kinds.
const (
	ELFCore     Kind = "elf-core"
	Snapshot    Kind = "snapshot"
	Minidump    Kind = "minidump"
	LiveProcess Kind = "process"   // a living one, whose threads were stopped while their stacks were copied
	ROCmCore    Kind = "rocm-core" // the state of AMD's graphics processors, perhaps with the process that used them
)

// ErrNoMemory says that an address is not in the target: not mapped, or mapped
// and neither dumped nor readable from the mapped file.
var ErrNoMemory = errors.New("address is not in the target")

// ErrNoArchitecture is wrapped by the errors of what looks for an architecture
// and finds none.
var ErrNoArchitecture = errors.New("no architecture plugin")

// MissingPlugin adds to an error that wraps ErrNoArchitecture which executable
// would be the plugin of the named architecture, and where it has to be. It
// returns other errors as they are.
func MissingPlugin(err error, name string) error {
	if !errors.Is(err, ErrNoArchitecture) {
		return err
	}
	return fmt.Errorf("%w; an executable named unwindd-arch-%s in a plugin directory (--plugin-dir, UNWINDD_PLUGIN_DIR) would be one",
		err, name)
}

// ErrEndOfStack says that the recorded bytes of a stack ran out.
var ErrEndOfStack = errors.New("the recorded stack ends here")

// A Target is a process, or what was kept of one. It may be read concurrently.
type Target interface {
	Info() Info
	// Modules are the code objects loaded, by address.
	Modules() []*Module
	// Threads are in the target's own order.
	Threads() []*Thread
	// ReadMemory reads at an address of a space. It returns how many bytes from
	// address on are there; with fewer than len(buf) it returns ErrNoMemory
	// (wrapped, with the address) or the error that reading gave.
	ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error)
	// Mapped says whether address lies in a mapping of the target, and whether
	// that mapping may be executed.
	Mapped(address uint64) (mapped, executable bool)
	Close() error
}

// Sized is a Target whose memory lies in files, so that it knows how much there
// is. The work on all of its threads together is bounded by that.
type Sized interface {
	Target
	// MemorySize is at most how many bytes of memory the target has.
	MemorySize() uint64
}

// ScopedMemory is a Target with address spaces of which a group, a wave or a
// lane has an instance of its own.
type ScopedMemory interface {
	Target
	// ReadScoped reads like ReadMemory, from the instance of space that belongs
	// to the thread.
	ReadScoped(space locexpr.AddressSpace, thread *Thread, address uint64, buf []byte) (int, error)
}

// FileMemory is a Target that reads from the files of its modules what it does
// not have of their memory itself.
type FileMemory interface {
	Target
	// FromFile says whose file the bytes of the default address space from
	// address on are read from, and how many of them, at least 1. m is nil for
	// bytes that the target has itself, and where there are none.
	FromFile(address uint64) (m *Module, n uint64)
}

// Paged is a Target that maps a file of which each stack needs pages of its own.
type Paged interface {
	Target
	// ReleasePages gives back the memory of what was read. It may be read again, and
	// while this runs.
	ReleasePages()
}

// Info is what is known of a target as a whole.
type Info struct {
	Kind   Kind
	Path   string
	Signal int // that ended the process; 0 when none did
	// FaultAddress is the address of the fault, where the signal has one.
	FaultAddress    uint64
	HasFaultAddress bool
	// Machine is the ELF machine of the process.
	Machine uint16
	// Problems are what is wrong with the target as a whole, each a sentence
	// that names file, offset and what was done without it.
	Problems []string
	// Unread says that the target holds state that nothing here reads: that of
	// graphics processors. Problems say which.
	Unread bool
	// Notes are those that no reader of this package owns, for plugins.
	Notes []sdk.Note
	// Devices are those that executed threads, with what was submitted to them.
	Devices Devices
	// Facts are what the target says beside; nil where it says nothing.
	Facts *Facts
}

// Devices are what a target has beside its threads of devices.
type Devices struct {
	Agents     []sdk.TargetAgent
	Queues     []sdk.TargetQueue
	Dispatches []sdk.TargetDispatch
}

// A Module is a code object loaded into a target.
type Module struct {
	ID      int
	Path    string // in the target
	BuildID []byte // of the loaded image, where the target kept it; see IsAssumed
	// IsAssumed says that BuildID is that of the file that was found: the target did not
	// keep it.
	IsAssumed bool
	// Symbols names the build as stores of symbol files do; zero where the target does
	// not say it.
	Symbols SymbolID
	// Version is that of the file, as its maker has it: "10.0.19041.546".
	Version string
	// Base and Size are where the whole image is, where the target says that; else
	// Size is 0, and its Segments are all that is known.
	Base, Size uint64
	Arch       string
	// Processor is the one that the code is for; "" where the target does not
	// say it.
	Processor string
	// Object is the code object; nil where it was not found, and Problem says why.
	// It was opened from the file system, or from the target's own memory (the vDSO).
	Object *object.Object
	// File is where Object was read from; "" for memory.
	File     string
	Problem  string
	Tried    []object.Attempt // files that were looked at for Object and not taken
	Segments []Segment
	// Companion reads what the target keeps beside the code object, under the same
	// name but for what follows the last dot: suffix, with its dot. The path is for
	// messages. Its error for what is not there wraps fs.ErrNotExist. It is nil
	// where Object is not from the target; then the files beside File are its
	// companions. The bytes are valid as long as the target is open.
	Companion func(suffix string) (path string, data []byte, err error)
	// SourceModule reads the SPIR-V, LLVM IR or vISA assembly that the code was
	// made from; nil where the target does not keep it. The bytes are valid as
	// long as the target is open.
	SourceModule func() ([]byte, error)
}

// A Segment is a part of a module that is mapped as one.
type Segment struct {
	Section    string // of a relocatable object; "" for segments
	Address    uint64 // ELF virtual address in the object
	Size       uint64
	Start      uint64 // where Address is in the target
	Executable bool
}

// A SymbolID is what stores of symbol files, Breakpad's and Microsoft's, know a build by.
type SymbolID struct {
	// DebugFile is the base name of the file that has the debug information:
	// "kernel32.pdb", "libc.so.6".
	DebugFile string
	// DebugID are the digits of its identifier: of a GUID and of an age.
	DebugID string
	// CodeID identifies the file of the code: the digits of a build ID, or of a PE
	// file's time and size.
	CodeID string
}

// Confirmed says whether the target states the build ID of Object, so that it is
// known to be what was loaded.
func (m *Module) Confirmed() bool {
	return m.Object != nil && !m.IsAssumed && m.Object.HasID(m.BuildID)
}

// HasCode reports whether the file of the module's code is here, rather than none or its debug
// file alone.
func (m *Module) HasCode() bool { return m.Object != nil && !m.Object.DebugOnly() }

// HoldsCode says whether a segment is executable: as its code object says, and
// where there is none, as far as anybody knows.
func (s *Segment) HoldsCode(o *object.Object) bool {
	if o == nil {
		return true
	}
	if s.Section != "" {
		section := o.Section(s.Section)
		return section == nil || section.Flags&elf.SHF_EXECINSTR != 0
	}
	// Segments that share a page of the file both reach over it: the one of
	// which most is here tells.
	known, executable, most := false, false, uint64(0)
	for _, p := range o.Segments() {
		from, to := max(p.Address, s.Address), min(p.Address+p.MemSize, s.Address+s.Size)
		if p.Address+p.MemSize < p.Address || from >= to || to-from <= most {
			continue
		}
		known, executable, most = true, p.Executable(), to-from
	}
	return executable || !known
}

// Contains says whether address lies in an executable segment, and gives its
// ELF virtual address.
func (m *Module) Contains(address uint64) (objectAddress uint64, ok bool) {
	for i := range m.Segments {
		s := &m.Segments[i]
		if s.Executable && address-s.Start < s.Size {
			return address - s.Start + s.Address, true
		}
	}
	return 0, false
}

// Start returns where an ELF virtual address of the module is in the target.
func (m *Module) Start(objectAddress uint64) (address uint64, ok bool) {
	for i := range m.Segments {
		s := &m.Segments[i]
		if objectAddress-s.Address < s.Size {
			return objectAddress - s.Address + s.Start, true
		}
	}
	return 0, false
}

// A Thread is a thread of the target: an operating system's thread or a wave.
type Thread struct {
	Handle    uint64 // identifies the thread in Scope and in plugin calls; index in Threads
	ID        string // decimal LWP for a CPU thread
	Name      string
	Arch      string
	Processor string
	Crashed   bool
	Signal    int
	Stop      *Stop         // why it stopped; nil where nothing is known
	IsRunning bool          // it had not stopped when it was dumped
	Registers sdk.Registers // of the top frame
	// Saved are further registers of the top frame, which lie in the target's memory:
	// those of ten thousand waves have half a gigabyte. Register reads both.
	Saved []sdk.SavedRegisters
	// Memory is where the thread's instances of address spaces lie in the default
	// one, of a target whose ScopedMemory reads them there.
	Memory  []sdk.SpaceMemory
	Problem string // why its registers could not be read
	// Unread is why no architecture reads its registers; "" where one does. The
	// thread's stack is not walked then.
	Unread string
	// PC is where a thread is that no architecture reads, if HasPC.
	PC    uint64
	HasPC bool
	// Named are registers of such a thread, by the names that the target has.
	Named []NamedRegister
	// IsInCall says that the PC among Registers is a return address: the thread was
	// put aside while it called something that is not among its frames.
	IsInCall bool
	// Lanes is how many lanes the target says that the thread has; 0 where it
	// does not say it.
	Lanes uint32
	// Spaces are the bases of the thread's instances of address spaces, by
	// space, as far as the target says them.
	Spaces []sdk.SpaceBase
	// Wave is the identity of a wave; nil for other threads.
	Wave *Wave
	// LaunchedBy is where the thread was launched; nil where nothing is known.
	LaunchedBy *Launch
	// Goroutine is the goroutine that the thread is; nil: it is none.
	Goroutine *Goroutine
	// Executes is the thread of the goroutine that a thread of an operating system
	// executes; nil: none.
	Executes *Thread
}

// A NamedRegister is a register of 64 bits at most.
type NamedRegister struct {
	Name  string
	Bits  int
	Value uint64
}

// A Wave is the identity of a wave.
type Wave = sdk.Wave

// A Launch says what launched a thread.
type Launch struct {
	Thread   string // the ID of the launching thread, which need not be in the target
	Kind     string // "dispatch"
	Evidence string // one of the constants below
	// Frames are the PCs of the launcher's stack at the launch, innermost first,
	// where it was recorded.
	Frames []uint64
	// Signal is a number that a thread has in a register or on its stack while it
	// waits for the launch to end in one of WaitFunctions, by their linkage names. Of
	// a LaunchQueue they may tell the launcher. 0: nobody is looked for.
	Signal        uint64
	WaitFunctions []string
}

// How it is known who launched a thread (the `evidence` of the output).
const (
	LaunchRecorded = "recorded" // the launcher's stack was captured at the launch
	LaunchWaiting  = "waiting"  // the launcher is blocked on this launch now
	LaunchQueue    = "queue"    // only the process is known
)
