// SPDX-License-Identifier: Apache-2.0

// Package elfcore reads ELF cores of Linux: those that the kernel writes when a
// process dies, and those that gdb's gcore writes of one that lives.
//
// A core is mapped, never read whole. Its notes give threads with registers,
// the signal, the auxiliary vector and the mapped files; its PT_LOAD segments
// give memory. What a core leaves out because a file has it is read from that
// file, where nobody can have changed it in memory; everything else that is not
// in the core is unknown, and never guessed.
//
// Code is found by NT_FILE, and else by what the auxiliary vector and the
// dynamic loader's list say.
package elfcore

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxProblems bounds the sentences about what is wrong with a core.
const maxProblems = 100

// Options says what a core is read with.
type Options struct {
	// Finder opens the files that the core names.
	Finder object.Finder
	// Describe gives the description of an ELF machine's architecture, whose
	// register sets (sdk.CoreNote) say how register notes are read. Its error is
	// the reason why threads have no registers.
	Describe func(machine uint16) (*sdk.Description, error)
	// ForNote gives who reads the notes of an owner that no reader of this package
	// owns. Its error wraps target.ErrNoArchitecture where nobody does.
	ForNote func(owner string) (NoteReader, error)
	// Kind is target.LiveProcess for what New reads of a living process; "" is target.ELFCore.
	// The mappings of such a process are all told by NT_FILE, so the list of its dynamic
	// loader, which is in memory that nobody copied, is not read.
	Kind target.Kind
	// Devices is a second core, with what processors beside the CPU had in memory and
	// the notes about them; "" looks for one beside the core.
	Devices string
	// Map maps that second core, and says what is wrong with what it came in; nil maps the
	// file as it is.
	Map func(path string) (m *object.Mapping, problems []string, err error)
}

// A Core is an ELF core. It implements target.Target. It may be used
// concurrently, but for Close.
type Core struct {
	path    string
	mapping *object.Mapping   // nil for bytes in memory
	beside  []*object.Mapping // other files that memory is in
	finder  object.Finder

	header      coreHeader
	description *sdk.Description // nil where there is none for the machine
	memory      *memory
	process     process
	pageSize    uint64
	imageBudget uint64 // bytes that may still be put together from memory
	headBudget  uint64 // bytes of headers that may still be read from memory

	modules     []*target.Module
	objects     []*object.Object // to be closed
	problems    []string
	silenced    int  // problems beyond maxProblems
	hasAskedExe bool // the executable was looked for
	hasUnread   bool // there is state that nothing here reads
	kind        target.Kind
	info        target.Devices
	ofDevices   map[string]*sdk.Description // of the architectures of their threads
}

var (
	_ target.FileMemory   = (*Core)(nil)
	_ target.ScopedMemory = (*Core)(nil)
	_ target.Paged        = (*Core)(nil)
)

// Open maps a core, reads its notes, and opens the files of the code that was
// loaded. The error for a file that is no core wraps ErrNotCore and says what
// it is. A core that is cut or damaged is read as far as it goes, and
// Info().Problems says what was lost.
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

// New is Open for bytes in memory that have the form of a core. path stands for them in
// messages. Nobody changes data as long as the Core is open.
func New(path string, data []byte, options Options) (*Core, error) {
	c := &Core{path: path}
	if err := c.open(data, options); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open reads all but the memory.
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
	c.header, c.kind = header, cmp.Or(options.Kind, target.ELFCore)
	c.addProblems(problems)
	c.memory, problems = newMemory(data, &c.header)
	c.addProblems(problems)

	c.imageBudget = min(uint64(len(data)), maxImages)
	c.headBudget = maxAllHeaders
	unread := c.describe(options)
	notes, problems := readNotes(data, &c.header)
	c.addProblems(problems)
	notes = c.addDevices(notes, options)
	if len(notes) == 0 && len(c.header.programs) > 0 {
		c.problem("the core has no notes, so neither threads nor the names of mapped files")
	}
	if len(notes) == 0 {
		c.sayGraphics(nil)
		return nil
	}
	c.process, problems = readProcess(&c.header, notes, c.description, unread)
	if c.isGraphics() { // there are no threads of a process
		problems = slices.DeleteFunc(problems, func(p string) bool { return p == noThreads })
	}
	c.addProblems(problems)
	c.pageSize = 4096
	if size := c.process.auxv[atPageSize]; size >= 1024 && size <= 1<<22 && size&(size-1) == 0 {
		c.pageSize = size
	}
	c.findModules()
	c.openDevices(options)
	if c.finder.Exe != "" && !c.hasAskedExe {
		c.problem("%s was not used: nothing in the core is known to be of the executable", c.finder.Exe)
	}
	return nil
}

// describe asks for the architecture's description, and says why registers
// cannot be read where it is of no use.
func (c *Core) describe(options Options) (unread string) {
	var d *sdk.Description
	err := errors.New("no architectures were given")
	if options.Describe != nil {
		d, err = options.Describe(c.header.machine)
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
	if !c.isGraphics() { // of which nothing is a register of a thread
		c.problem("the process is of %s: only the PCs of its threads are shown, since nothing here reads their registers: %v",
			c.header.arch(), target.MissingPlugin(err, c.header.arch()))
	}
	return fmt.Sprintf("the registers of %s cannot be read: %v", c.header.arch(), err)
}

// noun is what the bytes are called in sentences about their memory.
func (c *Core) noun() string {
	if c.kind == target.LiveProcess {
		return "copy"
	}
	return "core"
}

// problem adds a sentence about what is wrong.
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

// Info is what is known of the process as a whole.
func (c *Core) Info() target.Info {
	return target.Info{
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

// Modules are the code objects that were loaded, by address.
func (c *Core) Modules() []*target.Module { return c.modules }

// Threads are in the core's order. Producers write the thread that took the
// signal first.
func (c *Core) Threads() []*target.Thread { return c.process.threads }

// MemorySize is the size of the core, which has the stacks of all threads.
func (c *Core) MemorySize() uint64 {
	size := uint64(len(c.memory.data))
	if c.memory.devices != nil {
		size += uint64(len(c.memory.devices.data))
	}
	return size
}

// ReadScoped reads the instance of an address space that belongs to a thread, where
// the thread's Memory says that it lies.
func (c *Core) ReadScoped(space locexpr.AddressSpace, thread *target.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace || thread == nil {
		return c.ReadMemory(space, address, buf)
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

// ReadMemory reads memory of the process, of which there is one address space:
// the default one. It does not allocate unless it fails.
func (c *Core) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (n int, err error) {
	if space != 0 {
		return 0, fmt.Errorf("address space %d, address %#x: %w", space, address, target.ErrNoMemory)
	}
	if err := object.Guard(func() error { n = c.memory.read(address, buf); return nil }); err != nil {
		return 0, err
	}
	if n < len(buf) {
		return n, fmt.Errorf("%w: %#x", target.ErrNoMemory, address+uint64(n))
	}
	return n, nil
}

// FromFile says whose file memory is read from that the core does not have.
func (c *Core) FromFile(address uint64) (m *target.Module, n uint64) {
	b, m := c.memory.from(address)
	return m, max(uint64(len(b)), 1)
}

// Mapped says whether the process had an address mapped, and with the right to
// execute. A mapping that the core has no program header for (gdb leaves out
// those that a file has) is executable where its code object says so.
func (c *Core) Mapped(address uint64) (mapped, executable bool) {
	if s := c.memory.segment(address); s != nil {
		return true, s.flags&elf.PF_X != 0
	}
	if d := c.memory.devices; d != nil && d.segment(address) != nil {
		return true, false // the flags of its program headers are no rights
	}
	if r := c.process.files.at(address); r != nil {
		return true, r.isExecutable
	}
	return false, false
}

// Close unmaps the core and closes the code objects. Nothing that the core gave
// may be used after it.
func (c *Core) Close() error {
	var errs []error
	for _, o := range c.objects {
		errs = append(errs, o.Close())
	}
	c.objects = nil
	if c.mapping != nil {
		errs = append(errs, c.mapping.Close())
	}
	for _, m := range c.beside {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
