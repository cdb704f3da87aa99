// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Options says what a target is made with.
type Options struct {
	// Finder opens the files of modules.
	Finder object.Finder
	// Describe gives the description of an architecture by its name, whose register sets
	// (sdk.MinidumpContext) say how contexts are read. Its error is the reason why
	// threads have no registers.
	Describe func(arch string) (*sdk.Description, error)
}

// A Target is a process of which a minidump was kept. It implements target.Target. It may
// be used concurrently, but for Close.
type Target struct {
	*Dump

	finder       object.Finder
	describe     func(arch string) (*sdk.Description, error)
	descriptions map[string]described // by architecture

	threads  []*target.Thread
	modules  []*target.Module
	files    target.FileBytes
	regions  []region // by address; nil where the dump does not say what is mapped
	info     target.Info
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

// OpenTarget opens a dump, and the files of the code that was loaded. Its errors are those
// of Open.
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

// fill makes what a target has of what the dump has.
func (t *Target) fill() {
	t.addThreads()
	t.addRegions()
	t.addModules()
	t.info = target.Info{
		Kind: target.Minidump, Path: t.Path, Machine: elfMachines[t.arch()],
		Problems: append(t.Dump.Problems(), t.problems...),
		Facts:    t.Facts(),
	}
	t.addSignal()
}

// elfMachines are the numbers that ELF has for the processors whose contexts are read.
var elfMachines = map[string]uint16{
	ArchAMD64: uint16(elf.EM_X86_64), ArchARM64: uint16(elf.EM_AARCH64), ArchX86: uint16(elf.EM_386), ArchARM: uint16(elf.EM_ARM),
}

// maxSignal is the highest number of a signal of Linux.
const maxSignal = 64

// addSignal fills in why the process ended.
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

// description is that of an architecture, which is asked for once.
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

// addThreads makes the threads. The one of an exception has the registers of that: those
// in the list may be of the function that wrote the dump.
func (t *Target) addThreads() {
	exceptions := map[uint32]*Exception{}
	for i := range t.Exceptions {
		if x := &t.Exceptions[i]; exceptions[x.ThreadID] == nil {
			exceptions[x.ThreadID] = x
		}
	}
	for i := range t.Dump.Threads {
		of := &t.Dump.Threads[i]
		th := &target.Thread{Handle: uint64(i), ID: strconv.FormatUint(uint64(of.ID), 10), Name: of.Name}
		context := &of.Context
		if x := exceptions[of.ID]; x != nil {
			delete(exceptions, of.ID) // another thread of its ID is not the one
			t.addException(th, x)
			if x.Context.form != nil {
				context = &x.Context
			}
		}
		t.addRegisters(th, context, of.TEB)
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

// addException says why a thread stopped.
func (t *Target) addException(th *target.Thread, x *Exception) {
	r := t.Reason(x)
	th.Crashed = !r.IsRequest
	if os := t.os(); th.Crashed && (os == LinuxOS || os == Android) && x.Code <= maxSignal {
		th.Signal = int(x.Code)
	}
	if reason, ok := target.StopOfSignal(elfMachines[t.arch()], th.Signal); ok && r.HasAddress {
		th.Stop = &target.Stop{Reason: reason.Name}
		if reason.HasAddress {
			th.Stop.Address, th.Stop.HasAddress = r.Address, true
		}
	}
}

// addRegisters reads a thread's registers as the architecture's description lays out the
// context.
func (t *Target) addRegisters(th *target.Thread, c *Context, teb uint64) {
	if c.form == nil {
		th.Arch = t.arch()
		_, _ = t.description(th.Arch) // says that there is none
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
	set := d.RegisterSet(sdk.MinidumpContext, "", uint32(c.form.size))
	if set == nil {
		th.Unread = fmt.Sprintf("architecture %s does not say how a context of %d bytes is laid out", d.Name, c.form.size)
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
	if _, ok := th.Registers.Get(d.PC); !ok && d.PC != sdk.NoRegister {
		th.Problem = fmt.Sprintf("its context at offset %#x has no program counter: its flags are %#x", c.Offset, c.Flags)
	}
}

// A system is a processor and an operating system.
type system struct{ arch, os string }

// blockRegisters are the registers with the address of a thread's own block of data, which
// contexts do not have: the thread environment block of Windows (winnt.h, NtCurrentTeb),
// and what Crashpad has in its place on Linux.
var blockRegisters = map[system]string{
	{ArchAMD64, Windows}: "gs.base", {ArchAMD64, LinuxOS}: "fs.base", {ArchAMD64, Android}: "fs.base",
}

// show gives a thread that no architecture reads its PC, and those of its registers that
// programs compute with.
func (c *Context) show(th *target.Thread) {
	th.PC, th.HasPC = c.PC()
	for _, name := range c.form.general() {
		if v, ok := c.Uint64(name); ok {
			th.Named = append(th.Named, target.NamedRegister{Name: name, Bits: c.form.bits(), Value: v})
		}
	}
}

// has says whether the flags of a context say that the register at an offset is there.
func (c *Context) has(offset int) bool {
	for i := range c.form.fields {
		if f := &c.form.fields[i]; f.offset <= offset && offset < f.offset+f.size {
			return c.groups&uint64(f.group) != 0
		}
	}
	return false
}

// Info is what is known of the process as a whole.
func (t *Target) Info() target.Info { return t.info }

// Threads are in the dump's order.
func (t *Target) Threads() []*target.Thread { return t.threads }

// Modules are the code objects that were loaded, by address.
func (t *Target) Modules() []*target.Module { return t.modules }

// ReadMemory reads the memory that the dump has, and what it leaves out from the files of
// modules, where nobody can have changed it.
func (t *Target) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (n int, err error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d, address %#x: %w", space, address, target.ErrNoMemory)
	}
	err = object.Guard(func() error {
		for n < len(buf) {
			at := address + uint64(n)
			if at < address {
				return nil
			}
			if got := t.copyMemory(at, buf[n:]); got > 0 {
				n += got
				continue
			}
			b, _ := t.fromFile(at)
			if len(b) == 0 {
				return nil
			}
			n += copy(buf[n:], b)
		}
		return nil
	})
	switch {
	case err != nil:
		return n, fmt.Errorf("address %#x: %w", address+uint64(n), err)
	case n < len(buf):
		return n, fmt.Errorf("%w: %#x", target.ErrNoMemory, address+uint64(n))
	}
	return n, nil
}

// fromFile are the bytes that a file has from an address on, up to where the dump has
// others, and whose they are.
func (t *Target) fromFile(address uint64) ([]byte, *target.Module) {
	b, of, _ := t.files.At(address)
	return b[:min(uint64(len(b)), t.nextMemory(address)-address)], of
}

// FromFile says whose file the memory at an address is read from.
func (t *Target) FromFile(address uint64) (m *target.Module, n uint64) {
	if here := t.memoryAt(address); here > 0 {
		return nil, here
	}
	b, of := t.fromFile(address)
	if of == nil || of.Object.Path() == "" {
		of = nil
	}
	return of, max(uint64(len(b)), 1)
}

// MemorySize is how many bytes of memory the dump has.
func (t *Target) MemorySize() (n uint64) {
	for i := range t.memory {
		n += t.memory[i].Size
	}
	return n
}

// ReleasePages gives back the pages of the dump that were read.
func (t *Target) ReleasePages() {
	if t.mapping != nil {
		t.mapping.ReleasePages(0, ^uint64(0))
	}
}

// Close unmaps the dump and closes the files of modules. Nothing that the target gave may
// be used after it.
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
