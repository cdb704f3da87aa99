// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/kallsyms"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/host"
	"github.com/unwindd/unwindd/sdk"
)

// recording is the engine's knowledge of the processes of a perf.data file.
//
// One Target has the modules of all of them: an object is one module, however many processes
// mapped it, and wherever, so that its rows and names are found once. The module's addresses
// are the object's own. The process's codeSpace has the place where a process mapped it.
type recording struct {
	maker   *Maker
	file    *perfdata.File // nil: there are samples of accelerators only
	process *walk.Process
	arch    string // of its threads
	// set are the registers of its samples; nil where there is no architecture.
	set     *sdk.RegisterSet
	narrow  *narrowArch // of the 32-bit processes; nil where there is none
	finder  object.Finder
	exeID   []byte                // the build ID of the finder's Exe
	exeUsed bool                  // Exe was looked at
	mapping sync.Mutex            // locked while the mappings of a process are looked up
	spaces  map[uint64]*codeSpace // by perfdata.Space.Code
	objects map[objectKey]*code.Module
	// unchecked are modules without evidence that their file was the mapped one.
	unchecked map[*code.Module]bool
	finders   map[string]*object.Finder // by root
	roots     map[int]string            // of processes that have their own
	generated generatedCode
	opened    []*object.Object
	mapped    []*object.Mapping // files that opened objects are parts of
	sched     *schedReader      // of the scheduler's events; nil: they are not read
	// ownKernel reads the running kernel's names.
	ownKernel func() (*kallsyms.Table, error)

	mu       sync.Mutex
	problems []string
}

// objectKey identifies a file of the recording. Two roots may have different files with one
// path, and with one build ID.
type objectKey struct{ root, path, buildID string }

// machines are the ELF machines by the output of uname -m.
var machines = map[string]object.ELFMachine{
	"x86_64":      machine(elf.EM_X86_64, elf.ELFCLASS64, elf.ELFDATA2LSB),
	"aarch64":     machine(elf.EM_AARCH64, elf.ELFCLASS64, elf.ELFDATA2LSB),
	"riscv64":     machine(elf.EM_RISCV, elf.ELFCLASS64, elf.ELFDATA2LSB),
	"ppc64le":     machine(elf.EM_PPC64, elf.ELFCLASS64, elf.ELFDATA2LSB),
	"ppc64":       machine(elf.EM_PPC64, elf.ELFCLASS64, elf.ELFDATA2MSB),
	"s390x":       machine(elf.EM_S390, elf.ELFCLASS64, elf.ELFDATA2MSB),
	"loongarch64": machine(elf.EM_LOONGARCH, elf.ELFCLASS64, elf.ELFDATA2LSB),
	"i686":        machine(elf.EM_386, elf.ELFCLASS32, elf.ELFDATA2LSB),
	"x86":         machine(elf.EM_386, elf.ELFCLASS32, elf.ELFDATA2LSB), // of simpleperf
	"armv7l":      machine(elf.EM_ARM, elf.ELFCLASS32, elf.ELFDATA2LSB),
	"armv8l":      machine(elf.EM_ARM, elf.ELFCLASS32, elf.ELFDATA2LSB),
	"arm":         machine(elf.EM_ARM, elf.ELFCLASS32, elf.ELFDATA2LSB), // of simpleperf
	"riscv32":     machine(elf.EM_RISCV, elf.ELFCLASS32, elf.ELFDATA2LSB),
	"s390":        machine(elf.EM_S390, elf.ELFCLASS32, elf.ELFDATA2MSB),
	"ppc":         machine(elf.EM_PPC, elf.ELFCLASS32, elf.ELFDATA2MSB),
	"sparc64":     machine(elf.EM_SPARCV9, elf.ELFCLASS64, elf.ELFDATA2MSB),
}

// narrowMachines are the machines whose 32-bit programs the kernels of others execute.
var narrowMachines = map[string]object.ELFMachine{"x86_64": machines["i686"]}

// narrowArch is the architecture of the 32-bit processes of a 64-bit kernel.
type narrowArch struct {
	name    string
	machine object.ELFMachine
	set     *sdk.RegisterSet // of samples
}

// newNarrowArch finds the architecture of the 32-bit processes of a machine; nil where there
// is none.
func (k *Maker) newNarrowArch(machine string) *narrowArch {
	narrow, ok := narrowMachines[machine]
	if !ok {
		return nil
	}
	a, err := k.Plugins.ForMachine(narrow)
	if err != nil {
		return nil
	}
	set := a.Description().RegisterSet(sdk.PerfSample, "", 0)
	if set == nil {
		return nil
	}
	return &narrowArch{name: a.Description().Name, machine: narrow, set: set}
}

// archOf returns the architecture of a mapped file.
func (r *recording) archOf(o *object.Object) string {
	if r.narrow != nil && o != nil && o.ELFMachine().IsLike(r.narrow.machine) {
		return r.narrow.name
	}
	return r.arch
}

// machine returns a machine of package elf's constants.
func machine(number elf.Machine, class elf.Class, data elf.Data) object.ELFMachine {
	return object.ELFMachine{Number: uint16(number), Class: class, Data: data}
}

// newRecording finds the architecture of a recording.
func (k *Maker) newRecording(f *perfdata.File) *recording {
	r := &recording{
		maker: k, file: f,
		spaces: map[uint64]*codeSpace{}, objects: map[objectKey]*code.Module{}, unchecked: map[*code.Module]bool{},
		ownKernel: sync.OnceValues(func() (*kallsyms.Table, error) { return openKernelNames(ownKallsyms) }),
		roots:     map[int]string{}, generated: newGeneratedCode(), finders: map[string]*object.Finder{},
	}
	if f == nil {
		r.process = k.Shared.NewProcess(&walk.Sample{}, k.Finder(""))
		return r
	}
	r.finder = k.Finder(f.Path())
	if k.Mapped != nil {
		r.finder.Owner = k.Mapped.Owner()
	}
	r.exeID = r.finder.ExeID()
	name := f.Features().Arch
	if name == "" {
		name = host.Machine()
		r.problem("%s does not say of what architecture it is: %s, as this machine, is taken", f.Path(), name)
	}
	r.arch = name
	number, ok := machines[name]
	if !ok {
		r.problem("%s: the architecture %q is not known: its stacks are not walked", f.Path(), name)
	} else if a, err := k.Plugins.ForMachine(number); err != nil {
		r.problem("%s: stacks are not walked: %v", f.Path(), err)
	} else {
		r.arch = a.Description().Name
		r.set = a.Description().RegisterSet(sdk.PerfSample, "", 0)
	}
	finder := k.Finder("")
	finder.Owner = r.finder.Owner
	sample := &walk.Sample{Sample: trace.Sample{Arch: r.arch}}
	if r.narrow = k.newNarrowArch(name); r.narrow != nil {
		sample.OtherArchs = []string{r.narrow.name}
	}
	r.process = k.Shared.NewProcess(sample, finder)
	return r
}

// startPlugin starts the plugin of a machine while other things are done. A failure to start is
// reported when the plugin is needed.
func (k *Maker) startPlugin(ctx context.Context, machine string) {
	number, ok := machines[machine]
	if !ok {
		return
	}
	if a, err := k.Plugins.ForMachine(number); err == nil {
		go func() { _, _ = a.BindThreads(ctx, nothing{}, &sdk.BindThreadsRequest{}) }()
	}
}

// nothing is the engine of a call that starts a plugin.
type nothing struct{}

var errNothing = errors.New("the call is about nothing")

func (nothing) ReadMemory(context.Context, sdk.MemoryRange, []byte) (int, error) {
	return 0, errNothing
}
func (nothing) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errNothing
}
func (nothing) ReadSection(context.Context, uint64, string) ([]byte, error) { return nil, errNothing }

// bind finds the architectures of the recording, whose plugins start with it.
func (r *recording) bind() {
	r.process.Bind()
}

func (r *recording) close() {
	r.process.Close()
	for _, o := range r.opened {
		_ = o.Close()
	}
	for _, m := range r.mapped {
		_ = m.Close()
	}
	r.generated.close()
}

// addProblems adds sentences, each once.
func (r *recording) addProblems(list []string) {
	for _, p := range list {
		r.problem("%s", p)
	}
}

func (r *recording) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// segment returns a mapping of a file as a segment of the file's module. The file is looked up
// under a root; "" is the engine's.
func (r *recording) segment(root string, m *perfdata.Mapping) code.Segment {
	mod := r.module(root, m)
	s := code.Segment{Start: m.Start, End: m.End, Module: mod, Address: m.Offset}
	if place(&s, m.Offset) {
		return s
	}
	if part, start, ok := r.finderOf(root).FindPart(m.Path, m.Offset, m.End-m.Start); ok {
		copied := *m
		copied.Path, copied.BuildID = part, nil
		if segment := (code.Segment{Start: m.Start, End: m.End, Module: r.module(root, &copied)}); place(&segment, m.Offset-start) {
			return segment
		}
	}
	if mod.Object == nil {
		return s
	}
	r.problem("%s has no segment at the offset %#x, which was mapped at %#x: the code there is not known", mod.Path, m.Offset, m.Start)
	return s
}

// place gives a segment the address of its module at an offset of the module's file; it returns
// false where no segment of the file is there.
func place(s *code.Segment, offset uint64) bool {
	if s.Module.Object == nil {
		return false
	}
	segment, ok := s.Module.Object.SegmentForMapping(offset, s.End-s.Start, true)
	if ok {
		s.Address = segment.Address + offset - segment.Offset
	}
	return ok
}

// module returns the module of a mapped file.
func (r *recording) module(root string, m *perfdata.Mapping) *code.Module {
	key := objectKey{root, m.Path, string(m.BuildID)}
	if mod := r.objects[key]; mod != nil {
		return mod
	}
	t := &target.Module{Module: trace.Module{Path: m.Path, BuildID: m.BuildID}}
	found, finder := r.find(root, m)
	t.Arch = r.archOf(found.Object)
	if t.Object = found.Object; t.Object != nil {
		r.opened = append(r.opened, t.Object)
		t.File = found.File()
		if t.BuildID == nil {
			t.BuildID = t.Object.BuildID()
		}
		for _, s := range t.Object.Segments() {
			t.Segments = append(t.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
		}
	}
	t.Problem = found.Problem
	var mod *code.Module
	if finder == &r.finder {
		mod = r.process.AddModule(t, nil)
	} else {
		mod = r.process.AddModuleOf(t, finder)
	}
	r.objects[key] = mod
	if t.Object != nil && !found.Checked && t.File != "" {
		r.unchecked[mod] = true
	}
	return mod
}

// find finds the file of a mapping, and returns its finder. Before a process has changed its
// root it has the host's files: one with the recorded build ID is right.
func (r *recording) find(root string, m *perfdata.Mapping) (object.Found, *object.Finder) {
	if found, ok := r.findMapped(m); ok {
		return found, &r.finder
	}
	if m.Path == object.VDSOName {
		return r.findVDSO(m.BuildID), &r.finder
	}
	finder := r.finderOf(root)
	found := r.findBy(finder, m)
	if root == "" || found.Object != nil {
		return found, finder
	}
	host := r.findBy(&r.finder, m)
	if host.Object != nil && host.Checked {
		return host, &r.finder
	}
	if host.Object != nil {
		host.Object.Close()
	}
	return found, finder
}

func (r *recording) findBy(finder *object.Finder, m *perfdata.Mapping) object.Found {
	isExe := finder.IsExe(r.exeID, m.Path, m.BuildID)
	r.exeUsed = r.exeUsed || isExe
	found := r.checkMapped(finder, m, finder.Find(m.Path, m.BuildID, isExe))
	if machine := r.machine(); found.Object != nil && machine.Number != 0 && !found.Object.ELFMachine().IsLike(machine) && r.archOf(found.Object) == r.arch {
		o := found.Object
		found = object.Found{Problem: fmt.Sprintf("%s was not used: it is for %s", found.Path, object.DescribeMachine(o.Machine()))}
		o.Close()
	}
	return found
}

// machine returns the machine of the recording's code; its number is 0 where it is not known.
func (r *recording) machine() object.ELFMachine {
	if name := r.file.Features().Arch; name != "" {
		return machines[name]
	}
	return machines[host.Machine()]
}

// findVDSO finds the vDSO, which is the same for all processes of a kernel: of this process, or a
// copy in a file.
func (r *recording) findVDSO(buildID []byte) object.Found {
	found := r.ownVDSO(buildID)
	if found.Object != nil || len(buildID) == 0 {
		return found
	}
	// By its build ID alone: files may have it, as in a cache of perf.
	finder := r.finder
	finder.Remote, finder.Symbols, finder.Exe, finder.Provided = nil, nil, "", nil
	if other := finder.Find("", buildID, false); other.Object != nil {
		return other
	}
	return found
}

// ownVDSO returns the vDSO of this process, where it is the recorded one.
func (r *recording) ownVDSO(buildID []byte) object.Found {
	image, err := object.OwnVDSO()
	if err != nil {
		return object.Found{Problem: fmt.Sprintf("%s: %v", object.VDSOName, err)}
	}
	o, err := object.New(object.VDSOName, image)
	if err != nil {
		return object.Found{Problem: err.Error()}
	}
	switch {
	case len(buildID) > 0 && bytes.Equal(buildID, o.BuildID()):
		return object.Found{Object: o, Checked: true}
	case len(buildID) > 0:
		return object.Found{Problem: fmt.Sprintf("%s: the build ID is %x, that of this machine's is %x", object.VDSOName, buildID, o.BuildID())}
	case r.file.Features().OSRelease == host.Release():
		return object.Found{Object: o, Problem: "the recording does not tell its build ID: that of the same kernel release was taken"}
	}
	return object.Found{Problem: fmt.Sprintf("%s: it is that of Linux %s, and this is another", object.VDSOName, r.file.Features().OSRelease)}
}
