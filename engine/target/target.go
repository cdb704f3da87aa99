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
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
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
	Info() trace.Target
	// Modules are the code objects loaded, by address.
	Modules() []*Module
	// Threads are in the target's own order.
	Threads() []*trace.Thread
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
	ReadScoped(space locexpr.AddressSpace, thread *trace.Thread, address uint64, buf []byte) (int, error)
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

// Module is a code object loaded into a target, with its file.
type Module struct {
	trace.Module
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

// Confirmed reports whether the target states the build ID of Object, so that Object is known
// to be the file that was loaded.
func (m *Module) Confirmed() bool {
	return m.Object != nil && !m.IsAssumed && m.Object.HasID(m.BuildID)
}

// HasCode reports whether Object has the module's code: a debug file alone has none.
func (m *Module) HasCode() bool { return m.Object != nil && !m.Object.DebugOnly() }

// HasCodeAt reports whether the file of the code is there, and does not have the code at an address of it encrypted.
func (m *Module) HasCodeAt(address uint64) bool { return m.HasCode() && !m.Object.IsEncrypted(address) }

// HoldsCode reports whether a segment of a code object is executable. Without a code object it
// may be.
func HoldsCode(o *object.Object, s *trace.Segment) bool {
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
