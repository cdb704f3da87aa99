// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Options are the options of a target.
type Options struct {
	// Finder opens the files of modules.
	Finder object.Finder
	// Describe returns the description of an architecture by its name, whose register sets
	// (sdk.MinidumpContext) have the layout of contexts. Its error is the reason why
	// threads have no registers.
	Describe func(arch string) (*sdk.Description, error)
}

// Target is the process of a minidump. It implements target.Target. It may be used
// concurrently, except for Close.
type Target struct {
	*Dump

	finder       object.Finder
	describe     func(arch string) (*sdk.Description, error)
	descriptions map[string]described // by architecture

	threads  []*trace.Thread
	modules  []*target.Module
	files    target.FileBytes
	regions  []region // by address; nil where the dump has no mappings
	info     trace.Target
	spent    uint64 // on images in memory, see spend
	problems []string
}

// described is the answer of Options.Describe.
type described struct {
	*sdk.Description
	err error
}

var (
	_ target.FileMemory = (*Target)(nil)
	_ target.Mapper     = (*Target)(nil)
	_ target.Paged      = (*Target)(nil)
	_ target.Sized      = (*Target)(nil)
)

// OpenTarget opens a dump, and the files of the code that was loaded. It returns the
// errors of Open.
func OpenTarget(path string, options Options) (*Target, error) {
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	return newTarget(d, options)
}

// OpenMapped is OpenTarget for a dump that is mapped already, under the mapping's path.
// Close closes the mapping, and so does an error.
func OpenMapped(m *object.Mapping, options Options) (*Target, error) {
	d, err := openMapped(m)
	if err != nil {
		return nil, err
	}
	return newTarget(d, options)
}

func newTarget(d *Dump, options Options) (*Target, error) {
	t := &Target{Dump: d, finder: options.Finder, describe: options.Describe, descriptions: map[string]described{}}
	if err := object.Guard(func() error { t.fill(); return nil }); err != nil {
		_ = t.Close()
		return nil, fmt.Errorf("%s: %w", d.Path, err)
	}
	return t, nil
}

// Start is how the process was started: Breakpad and Crashpad copy it from /proc on Linux.
func (t *Target) Start() target.Start {
	return target.Start{Command: t.Linux.CommandLine, Environment: t.Linux.Environ}
}

// fill fills the target from the dump.
func (t *Target) fill() {
	t.addThreads()
	t.addRegions()
	t.addModules()
	t.info = trace.Target{
		Kind: trace.Minidump, Path: t.Path, Machine: elfMachines[t.arch()],
		Problems: append(t.Dump.Problems(), t.problems...),
		Facts:    t.Facts(),
	}
	t.addSignal()
}

// elfMachines are the ELF numbers of the processors whose contexts are read.
var elfMachines = map[string]uint16{
	ArchAMD64: uint16(elf.EM_X86_64), ArchARM64: uint16(elf.EM_AARCH64), ArchX86: uint16(elf.EM_386), ArchARM: uint16(elf.EM_ARM),
}

// maxSignal is the highest number of a signal of Linux.
const maxSignal = 64

// addSignal sets the signal that ended the process.
func (t *Target) addSignal() {
	if len(t.Exceptions) == 0 {
		return
	}
	x := &t.Exceptions[0]
	r := t.Reason(x)
	if r.IsRequest {
		return
	}
	if os := t.os(); (os == LinuxOS || os == Android) && x.Code <= maxSignal {
		t.info.Signal = int(x.Code)
	}
	t.info.FaultAddress, t.info.HasFaultAddress = r.Address, r.HasAddress
}

// problem adds a sentence about the dump as a whole.
func (t *Target) problem(format string, args ...any) {
	t.problems = append(t.problems, t.Path+": "+fmt.Sprintf(format, args...))
}

// description returns the description of an architecture, which is requested once.
func (t *Target) description(arch string) (*sdk.Description, error) {
	if a, ok := t.descriptions[arch]; ok {
		return a.Description, a.err
	}
	a := described{err: errors.New("no architectures were given")}
	if t.describe != nil {
		a.Description, a.err = t.describe(arch)
	}
	if a.err != nil {
		a.Description, a.err = nil, target.MissingPlugin(a.err, arch)
	}
	t.descriptions[arch] = a
	return a.Description, a.err
}

// addThreads adds the threads. The thread of an exception has the registers of the
// exception: in the list it may have the registers of the function that wrote the dump.
func (t *Target) addThreads() {
	exceptions := map[uint32]*Exception{}
	for i := range t.Exceptions {
		if x := &t.Exceptions[i]; exceptions[x.ThreadID] == nil {
			exceptions[x.ThreadID] = x
		}
	}
	for i := range t.Dump.Threads {
		thread := &t.Dump.Threads[i]
		th := &trace.Thread{Handle: uint64(i), ID: strconv.FormatUint(uint64(thread.ID), 10), Name: thread.Name}
		context := &thread.Context
		if x := exceptions[thread.ID]; x != nil {
			delete(exceptions, thread.ID) // not for another thread of the same ID
			t.addException(th, x)
			if x.Context.format != nil {
				context = &x.Context
			}
		}
		t.addRegisters(th, context, thread.TEB)
		t.threads = append(t.threads, th)
	}
	for id := range exceptions {
		t.problem("the exception is of thread %d, which is not in the list of threads", id)
	}
	for arch, a := range t.descriptions {
		switch {
		case arch == "":
			t.problem("threads are not walked: nothing says of what processor they are; `unwindd dump notes` shows their registers")
		case a.err != nil:
			t.problem("threads of %s are not walked: %v; `unwindd dump notes` shows their registers", arch, a.err)
		}
	}
}

// addException sets the reason why a thread stopped.
func (t *Target) addException(th *trace.Thread, x *Exception) {
	r := t.Reason(x)
	th.Crashed = !r.IsRequest
	if os := t.os(); th.Crashed && (os == LinuxOS || os == Android) && x.Code <= maxSignal {
		th.Signal = int(x.Code)
	}
	if reason, ok := target.StopOfSignal(elfMachines[t.arch()], th.Signal); ok && r.HasAddress {
		th.Stop = &trace.Stop{Reason: reason.Name}
		if reason.HasAddress {
			th.Stop.Address, th.Stop.HasAddress = r.Address, true
		}
	}
}

// addRegisters reads a thread's registers by the context's layout in the architecture's
// description.
func (t *Target) addRegisters(th *trace.Thread, c *Context, teb uint64) {
	if c.format == nil {
		th.Arch = t.arch()
		_, _ = t.description(th.Arch) // adds the problem that there is none
		th.Problem = "the dump has no registers of the thread"
		if len(c.Raw) > 0 {
			th.Problem = fmt.Sprintf("its context, %d bytes at offset %#x, is of no form that is known", len(c.Raw), c.Offset)
		}
		return
	}
	th.Arch = c.Arch
	d, err := t.description(c.Arch)
	if err != nil {
		th.Unread = fmt.Sprintf("the stack of a thread of %s cannot be walked: %v", c.Arch, err)
		c.show(th)
		return
	}
	set := d.RegisterSet(sdk.MinidumpContext, "", uint32(c.format.size))
	if set == nil {
		th.Unread = fmt.Sprintf("architecture %s does not say how a context of %d bytes is laid out", d.Name, c.format.size)
		c.show(th)
		return
	}
	present := sdk.RegisterSet{Source: set.Source, Type: set.Type}
	for _, f := range set.Fields {
		if c.has(int(f.Offset)) {
			present.Fields = append(present.Fields, f)
		}
	}
	present.Decode(c.Raw, &th.Registers)
	if r, ok := d.RegisterByName(blockRegisters[system{c.Arch, t.os()}]); ok && teb != 0 {
		if _, isKnown := th.Registers.Get(r.Number); !isKnown {
			th.Registers.Set(r.Number, binary.LittleEndian.AppendUint64(nil, teb))
		}
	}
	if r, ok := d.RegisterByName(codeMaskRegister); ok && c.Arch == ArchARM64 {
		if mask := t.codeMask(); mask != 0 {
			th.Registers.Set(r.Number, binary.LittleEndian.AppendUint64(nil, mask))
		}
	}
	if _, ok := th.Registers.Get(d.PC); !ok && d.PC != sdk.NoRegister {
		th.Problem = fmt.Sprintf("its context at offset %#x has no program counter: its flags are %#x", c.Offset, c.Flags)
	}
}

// system is a processor and an operating system.
type system struct{ arch, os string }

// blockRegisters are the registers with the address of a thread's own block of data, which
// contexts do not have: the thread environment block of Windows (winnt.h, NtCurrentTeb),
// and the address that Crashpad stores instead on Linux.
var blockRegisters = map[system]string{
	{ArchAMD64, Windows}: "gs.base", {ArchAMD64, LinuxOS}: "fs.base", {ArchAMD64, Android}: "fs.base",
}

// codeMaskRegister has the bits of a code address that pointer authentication may have set.
const codeMaskRegister = "pauth_cmask"

// narrowAddresses are the systems of arm64 whose processes have addresses of 47 bits, and which do not
// ignore the top byte of code addresses: all bits above may be a signature's.
var narrowAddresses = []string{Windows, MacOS, IOS}

// codeMask returns the mask of signatures: Crashpad writes that of the system; else it is the system's as
// far as it is known here; 0 leaves it to the architecture.
func (t *Target) codeMask() uint64 {
	if t.Crashpad != nil && t.Crashpad.AddressMask != 0 {
		mask := t.Crashpad.AddressMask
		if mask&1 != 0 { // of the bits that are an address
			mask = ^mask
		}
		return mask
	}
	if slices.Contains(narrowAddresses, t.os()) {
		return ^uint64(1<<47 - 1)
	}
	return 0
}

// show sets the PC and the general registers of a thread whose architecture has no
// plugin.
func (c *Context) show(th *trace.Thread) {
	th.PC, th.HasPC = c.PC()
	for _, name := range c.format.general() {
		if v, ok := c.Uint64(name); ok {
			th.Named = append(th.Named, trace.NamedRegister{Name: name, Bits: c.format.bits(), Value: v})
		}
	}
}

// has reports whether the flags of a context include the register at an offset.
func (c *Context) has(offset int) bool {
	for i := range c.format.fields {
		if f := &c.format.fields[i]; f.offset <= offset && offset < f.offset+f.size {
			return c.groups&uint64(f.group) != 0
		}
	}
	return false
}

// Info returns information about the process as a whole.
func (t *Target) Info() trace.Target { return t.info }

// Threads returns the threads in the dump's order.
func (t *Target) Threads() []*trace.Thread { return t.threads }

// Modules returns the code objects that were loaded, by address.
func (t *Target) Modules() []*target.Module { return t.modules }

// ReadMemory reads the memory that the dump has, and unwritable memory that it leaves out
// from the files of modules.
func (t *Target) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (n int, err error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d, address %#x: %w", space, address, target.ErrNoMemory)
	}
	return target.ReadBytes(address, buf, func(address uint64) ([]byte, error) {
		b, _ := t.anyBytes(address)
		return b, nil
	})
}

// anyBytes returns the bytes from an address on that the dump has, or else a module's file, up to the
// next memory of the dump; and the module of the file.
func (t *Target) anyBytes(address uint64) ([]byte, *target.Module) {
	b, next := t.bytesAt(address)
	if len(b) > 0 {
		return b, nil
	}
	b, module, _ := t.files.At(address)
	return b[:min(uint64(len(b)), next-address)], module
}

// FromFile returns the module from whose file the memory at an address is read.
func (t *Target) FromFile(address uint64) (m *target.Module, n uint64) {
	b, module := t.anyBytes(address)
	if module == nil || module.Object.Path() == "" {
		module = nil
	}
	return module, max(uint64(len(b)), 1)
}

// MemorySize returns the number of bytes of memory that the dump has.
func (t *Target) MemorySize() (n uint64) {
	for i := range t.memory {
		n += t.memory[i].Size
	}
	return n
}

// ReleasePages releases the pages of the dump that were read.
func (t *Target) ReleasePages() { t.mapping.ReleasePages(0, ^uint64(0)) }

// Close unmaps the dump and closes the files of modules. Nothing that the target returned
// may be used after it.
func (t *Target) Close() error {
	var errs []error
	for _, m := range t.modules {
		if m.Object != nil {
			errs = append(errs, m.Object.Close())
		}
	}
	t.modules = nil
	return errors.Join(append(errs, t.Dump.Close())...)
}
