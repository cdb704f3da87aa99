// SPDX-License-Identifier: Apache-2.0

// Package elfcore reads ELF cores of Linux, which the kernel writes when a process dies, and
// gdb's gcore writes of a live process.
//
// A core is mapped, never read whole. Its notes give threads with registers,
// the signal, the auxiliary vector and the mapped files; its PT_LOAD segments
// give memory. Memory that a core leaves out because a file has it is read from
// that file, provided that the process could not change it; all else that is
// not in the core is unknown, and never guessed.
//
// Code is found by NT_FILE, and else by the auxiliary vector and the dynamic
// loader's list.
package elfcore

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxProblems bounds the problems that a core lists.
const maxProblems = 100

// Options sets how a core is read, and where its files are found.
type Options struct {
	// Finder opens the files that the core names.
	Finder object.Finder
	// Describe returns the description of an ELF machine's architecture, whose register
	// sets (sdk.CoreNote) define the register notes. Its error is the reason why threads
	// have no registers.
	Describe func(machine object.ELFMachine) (*sdk.Description, error)
	// ForNote returns the reader of an owner's notes that this package does not read. Its
	// error wraps target.ErrNoArchitecture if there is none.
	ForNote func(owner string) (NoteReader, error)
	// ForFile returns the reader of a core of a machine that is made of sections. Its error
	// wraps target.ErrNoArchitecture if there is none.
	ForFile func(machine object.ELFMachine) (NoteReader, error)
	// Kind is target.LiveProcess if New reads the copy of a live process; "" is
	// target.ELFCore. NT_FILE lists all mappings of such a process, so the list of its
	// dynamic loader, which is not among the copied memory, is not read.
	Kind trace.Kind
	// Devices is the path of a second core, with the memory of processors beside the CPU
	// and notes about them; "" looks for one beside the core.
	Devices string
	// Map maps the second core, which may be compressed, and returns the problems of the
	// compression; nil maps the file as it is.
	Map func(path string) (m *object.Mapping, problems []string, err error)
}

// Core is an ELF core. It implements target.Target. Except for Close it may be used
// concurrently.
type Core struct {
	path    string
	mapping *object.Mapping   // nil for bytes in memory
	beside  []*object.Mapping // other files that have memory
	finder  object.Finder

	header       coreHeader
	description  *sdk.Description // nil if there is none for the machine
	memory       *memory
	process      process
	pageSize     uint64
	sections     *sectionCore // the core itself, where it is made of sections; else nil
	shared       map[locexpr.AddressSpace]*target.PlacedMemory
	imageBudget  uint64 // bytes of images that may still be assembled from memory
	headerBudget uint64 // bytes of headers that may still be read from memory

	modules         []*target.Module
	objects         []*object.Object // to be closed
	problems        []string
	silenced        int  // number of problems beyond maxProblems
	hasSoughtExe    bool // the executable was looked for
	hasReadSections bool // the plugin of the machine knows the sections
	hasUnread       bool // there is state that no reader here understands
	kind            trace.Kind
	info            trace.Devices
	ofDevices       map[string]*sdk.Description // of the architectures of their threads
	command         struct {
		once sync.Once
		line string
	}
}

var (
	_ target.FileMemory   = (*Core)(nil)
	_ target.ScopedMemory = (*Core)(nil)
	_ target.Paged        = (*Core)(nil)
	_ target.WithStart    = (*Core)(nil)
)

// Open maps a core, reads its notes, and opens the files of the code that was
// loaded. The error for a file that is no core wraps ErrNotCore and names the
// file's format. A truncated or damaged core is read as far as possible, and
// Info().Problems lists the losses.
func Open(path string, options Options) (*Core, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w: the file is empty", path, ErrNotCore)
	}
	if err != nil {
		return nil, err
	}
	return OpenMapped(m, options)
}

// OpenMapped is Open for a core that is mapped already, under the mapping's path. Close
// closes the mapping, and so does an error.
func OpenMapped(m *object.Mapping, options Options) (*Core, error) {
	c := &Core{path: m.Path(), mapping: m}
	if err := c.open(m.Data(), options); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// New is Open for a core in memory. path names it in messages. data must not change as long as
// the Core is open.
func New(path string, data []byte, options Options) (*Core, error) {
	c := &Core{path: path}
	if err := c.open(data, options); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open reads all except the memory.
func (c *Core) open(data []byte, options Options) error {
	c.finder = options.Finder
	err := object.Guard(func() error { return c.read(data, options) })
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	if c.silenced > 0 {
		c.problems = append(c.problems, fmt.Sprintf("%s: %d more problems", c.path, c.silenced))
	}
	return nil
}

func (c *Core) read(data []byte, options Options) error {
	header, problems, err := readHeader(data)
	if err != nil {
		return err
	}
	c.header, c.kind = header, cmp.Or(options.Kind, trace.ELFCore)
	if hasSections(&c.header, data) {
		var more []string
		if c.sections, more, err = newSectionCore(c.path, &c.header, data); err != nil {
			more = []string{err.Error()}
		}
		problems = append(problems, more...)
	}
	c.addProblems(problems)
	c.memory, problems = newMemory(data, &c.header)
	c.addProblems(problems)

	c.imageBudget = min(uint64(len(data)), maxImages)
	c.headerBudget = maxAllHeaders
	unread := c.describe(options)
	notes, problems := readNotes(data, &c.header)
	c.addProblems(problems)
	notes = c.addDevices(notes, options)
	if len(notes) == 0 && len(c.header.programs) > 0 {
		c.problem("the core has no notes, so neither threads nor the names of mapped files")
	}
	if len(notes) == 0 {
		c.openDevices(options)
		return nil
	}
	c.process, problems = readProcess(&c.header, notes, c.description, unread)
	if c.isGraphics() { // there is no process with threads
		problems = slices.DeleteFunc(problems, func(p string) bool { return p == noThreads })
	}
	c.addProblems(problems)
	c.pageSize = 4096
	if size := c.process.auxv[atPageSize]; size >= 1024 && size <= 1<<22 && size&(size-1) == 0 {
		c.pageSize = size
	}
	c.findModules()
	c.openDevices(options)
	if c.finder.Exe != "" && !c.hasSoughtExe {
		c.problem("%s was not used: nothing in the core is known to be of the executable", c.finder.Exe)
	}
	return nil
}

// describe sets the architecture's description, and returns why registers cannot be read, "" if
// they can.
func (c *Core) describe(options Options) (unread string) {
	var d *sdk.Description
	err := errors.New("no architectures were given")
	if options.Describe != nil {
		d, err = options.Describe(c.header.elfMachine())
	}
	switch {
	case err != nil:
	case d == nil:
		err = fmt.Errorf("%s has no description", object.DescribeMachine(c.header.machine))
	case d.AddressBits != uint32(8*c.header.size()):
		err = fmt.Errorf("the core is %d-bit, architecture %s is %d-bit", 8*c.header.size(), d.Name, d.AddressBits)
	case (d.ByteOrder == sdk.LittleEndian) != (c.header.order.Uint16([]byte{1, 0}) == 1):
		err = fmt.Errorf("the byte order of the core is not that of architecture %s", d.Name)
	default:
		c.description = d
		return ""
	}
	if !c.isGraphics() { // whose notes have no registers of a thread
		c.problem("the process is of %s: only the PCs of its threads are shown, since nothing here reads their registers: %v",
			c.header.arch(), target.MissingPlugin(err, c.header.arch()))
	}
	return fmt.Sprintf("the registers of %s cannot be read: %v", c.header.arch(), err)
}

// noun returns the word for the target in messages.
func (c *Core) noun() string {
	if c.kind == trace.LiveProcess {
		return "copy"
	}
	return "core"
}

// problem adds a sentence to the problems.
func (c *Core) problem(format string, args ...any) {
	c.addProblems([]string{fmt.Sprintf(format, args...)})
}

func (c *Core) addProblems(problems []string) {
	for _, p := range problems {
		if len(c.problems) >= maxProblems {
			c.silenced++
			continue
		}
		c.problems = append(c.problems, c.path+": "+p)
	}
}

// Info describes the process as a whole.
func (c *Core) Info() trace.Target {
	return trace.Target{
		Kind:            c.kind,
		Path:            c.path,
		Signal:          c.process.signal,
		FaultAddress:    c.process.fault,
		HasFaultAddress: c.process.hasFault,
		Machine:         c.header.machine,
		Problems:        c.problems,
		Unread:          c.hasUnread,
		Notes:           c.process.unclaimed,
		Devices:         c.info,
		Facts:           c.facts(),
	}
}

// Modules returns the code objects that were loaded, by address.
func (c *Core) Modules() []*target.Module { return c.modules }

// Threads returns the threads in the core's order: writers put the thread that took the signal
// first.
func (c *Core) Threads() []*trace.Thread { return c.process.threads }

// MemorySize returns the size of the core, which has the stacks of all threads.
func (c *Core) MemorySize() uint64 {
	size := uint64(len(c.memory.data))
	if c.memory.devices != nil {
		size += uint64(len(c.memory.devices.data))
	}
	return size
}

// ReadScoped reads a thread's instance of an address space, at the place that the thread's
// Memory gives.
func (c *Core) ReadScoped(space locexpr.AddressSpace, thread *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace || thread == nil {
		return c.ReadMemory(space, address, buf)
	}
	if c.shared[space] != nil && !target.HasPlaced(thread, space) {
		return c.readShared(space, address, buf)
	}
	n, err := target.ReadPlaced(c, thread, space, address, buf)
	if err != nil {
		name := fmt.Sprintf("address space %d", space)
		if d := c.ofDevices[thread.Arch]; d != nil {
			if s, ok := d.Space(space); ok {
				name = s.Name
			}
		}
		return n, fmt.Errorf("%s of thread %q: %w", name, thread.ID, err)
	}
	return n, nil
}

// ReadMemory reads memory of the process, which has the default address space, sdk.FileSpace,
// and spaces that all threads of devices share. It does not allocate unless it fails.
func (c *Core) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (n int, err error) {
	switch space {
	case locexpr.DefaultSpace:
	case sdk.FileSpace:
		return c.readFile(address, buf)
	default:
		return c.readShared(space, address, buf)
	}
	if err := object.Guard(func() error { n = c.memory.read(address, buf); return nil }); err != nil {
		return 0, err
	}
	if n < len(buf) {
		return n, fmt.Errorf("%w: %#x", target.ErrNoMemory, address+uint64(n))
	}
	return n, nil
}

// FromFile returns the module whose file has memory that the core lacks.
func (c *Core) FromFile(address uint64) (m *target.Module, n uint64) {
	b, m := c.memory.bytesAt(address)
	if len(b) == 0 {
		return nil, c.memory.gap(address)
	}
	return m, uint64(len(b))
}

// Mapped reports whether the process had an address mapped, and whether as executable. A mapping
// without a program header (gdb writes none for a mapping that a file has) is executable if the
// segment of its code object is.
func (c *Core) Mapped(address uint64) (mapped, executable bool) {
	if s := c.memory.segment(address); s != nil {
		return true, s.flags&elf.PF_X != 0
	}
	if d := c.memory.devices; d != nil && d.segment(address) != nil {
		return true, false // the flags of its program headers are not access rights
	}
	if r := c.process.files.containing(address); r != nil {
		return true, r.isExecutable
	}
	return false, false
}

// Close unmaps the core and closes the code objects. Nothing that the core returned may be used
// afterwards.
func (c *Core) Close() error {
	var errs []error
	for _, o := range c.objects {
		errs = append(errs, o.Close())
	}
	c.objects = nil
	for _, m := range append(c.beside, c.mapping) {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
