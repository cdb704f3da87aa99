// SPDX-License-Identifier: Apache-2.0

// Package machocore reads Mach-O cores (MH_CORE), which macOS writes when a process dies, and lldb writes
// of a live process.
//
// A core is mapped, never read whole. LC_THREAD has the registers of a thread, LC_SEGMENT_64 a range of
// memory, and LC_NOTE what else the writer knew: which images were loaded, how many bits an address has, the
// IDs of threads. Without such notes the images are found by the list that dyld keeps for debuggers, and else
// by the headers at the beginnings of ranges.
package machocore

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/problems"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// ErrNotCore means that a file is no Mach-O core.
var ErrNotCore = errors.New("not a Mach-O core")

// maxProblems bounds the problems that a core lists.
const maxProblems = 100

// Options sets how a core is read, and where its files are found.
type Options struct {
	// Finder opens the files of images.
	Finder object.Finder
	// Describe returns the description of an ELF machine's architecture, which has the registers
	// of threads. Its error is the reason why threads have no registers.
	Describe func(machine object.ELFMachine) (*sdk.Description, error)
}

// Core is a Mach-O core. It implements target.Target. It may be used concurrently, except for Close.
type Core struct {
	path        string
	mapping     *object.Mapping // nil for bytes in memory
	data        []byte
	file        *macho.File
	finder      object.Finder
	description *sdk.Description // nil: unread says why
	unread      string

	memory  memory
	notes   notes
	images  []*image
	modules []*target.Module
	files   target.FileBytes
	threads []*trace.Thread
	info    trace.Target

	headerBudget uint64 // bytes of headers that may still be read from memory
	imageBudget  uint64 // bytes of images that may still be assembled from memory
	problems     problems.List[string]
}

var (
	_ target.FileMemory = (*Core)(nil)
	_ target.Mapper     = (*Core)(nil)
	_ target.Paged      = (*Core)(nil)
	_ target.Sized      = (*Core)(nil)
)

// IsCore reports whether the first bytes of a file, 16 or more, begin a Mach-O core of 64 bits.
func IsCore(head []byte) bool {
	return len(head) >= 16 && macho.IsMachO(head) && le.Uint32(head[12:]) == macho.TypeCore
}

// OpenMapped opens a core that is mapped already, under the mapping's path, and the files of the code that was
// loaded. Close closes the mapping, and so does an error. The error for a file that is no core wraps
// ErrNotCore. Of a core that is cut or damaged all that is there is read, and Info().Problems lists the
// losses.
func OpenMapped(m *object.Mapping, options Options) (*Core, error) {
	c := &Core{path: m.Path(), mapping: m}
	if err := c.open(m.Data(), options); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// New is OpenMapped for a core in memory. path names it in messages. The bytes must not change as long as the
// Core is open.
func New(path string, data []byte, options Options) (*Core, error) {
	c := &Core{path: path}
	if err := c.open(data, options); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Core) open(data []byte, options Options) error {
	c.data, c.finder = data, options.Finder
	if err := object.Guard(func() error { return c.read(options) }); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return nil
}

// read reads all except the memory.
func (c *Core) read(options Options) error {
	if !IsCore(c.data) {
		return fmt.Errorf("%w: its header does not have the type of a core", ErrNotCore)
	}
	f, err := macho.New(c.path, c.data)
	if err != nil {
		return err
	}
	c.file = f
	for _, p := range f.Problems() {
		c.keep(p)
	}
	c.headerBudget, c.imageBudget = maxAllHeaders, min(uint64(len(c.data)), maxImages)
	c.describe(options)
	c.memory = c.newMemory()
	c.readNotes()
	c.findImages()
	c.addModules()
	c.addThreads()
	c.fillInfo()
	return nil
}

// describe sets the description of the architecture, or why there is none.
func (c *Core) describe(options Options) {
	machine, err := c.machine(), errors.New("no architectures were given")
	switch {
	case machine == nil:
		err = fmt.Errorf("cores of %s are not read, only of x86_64 and arm64", c.file.MachineName())
	case options.Describe != nil:
		c.description, err = options.Describe(object.NewELFMachine(uint16(machine.elf), elf.ELFCLASS64, le))
		err = target.MissingPlugin(err, machine.arch)
	}
	if c.description == nil {
		c.unread = fmt.Sprintf("the registers of %s cannot be read: %v", c.file.MachineName(), err)
		c.problem("threads are not walked: %s", c.unread)
	}
}

// problem adds a sentence to the problems.
func (c *Core) problem(format string, args ...any) {
	c.keep(c.path + ": " + fmt.Sprintf(format, args...))
}

func (c *Core) keep(sentence string) {
	if c.problems.HasRoom(maxProblems) {
		c.problems.Keep(sentence)
	}
}

// Info describes the process as a whole.
func (c *Core) Info() trace.Target { return c.info }

// Modules returns the images that were loaded, by address.
func (c *Core) Modules() []*target.Module { return c.modules }

// Threads returns the threads in the core's order.
func (c *Core) Threads() []*trace.Thread { return c.threads }

// ReadMemory reads the memory that the core has, and memory that it leaves out and the process could not
// write from the files of images.
func (c *Core) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d, address %#x: %w", space, address, target.ErrNoMemory)
	}
	return target.ReadBytes(address, buf, func(address uint64) ([]byte, error) {
		b, _ := c.anyBytes(address)
		return b, nil
	})
}

// anyBytes returns the bytes from an address on that the core has, or else an image's file; and the module
// of the file.
func (c *Core) anyBytes(address uint64) ([]byte, *target.Module) {
	b, next := c.memory.at(address)
	if len(b) > 0 {
		return b, nil
	}
	b, module, _ := c.files.At(address)
	return b[:min(uint64(len(b)), next-address)], module
}

// FromFile returns the module from whose file the memory at an address is read.
func (c *Core) FromFile(address uint64) (m *target.Module, n uint64) {
	b, module := c.anyBytes(address)
	if module == nil || module.Object.Path() == "" {
		module = nil
	}
	return module, max(uint64(len(b)), 1)
}

// MemorySize returns the size of the core, which has the stacks of all threads.
func (c *Core) MemorySize() uint64 { return uint64(len(c.data)) }

// ReleasePages releases the pages of the core that were read.
func (c *Core) ReleasePages() {
	if c.mapping != nil {
		c.mapping.ReleasePages(0, ^uint64(0))
	}
}

// Close unmaps the core and closes the files of images. Nothing that the core returned may be used after it.
func (c *Core) Close() error {
	var errs []error
	for _, m := range c.modules {
		if m.Object != nil {
			errs = append(errs, m.Object.Close())
		}
	}
	c.modules = nil
	if c.mapping != nil {
		errs = append(errs, c.mapping.Close())
	}
	return errors.Join(errs...)
}
