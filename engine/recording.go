package engine

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/sdk"
)

// A recording is what the engine knows of the processes of a perf.data file.
//
// One Target holds the modules of all of them: an object is one module, however
// many processes mapped it, wherever they did, so that its rows and names are
// found once. The module's addresses are those of the object. Where a process has
// it is said by the process' codeSpace.
type recording struct {
	engine *Engine
	file   *perfdata.File // nil: there are samples of accelerators only
	target *Target
	arch   string // of its threads
	// set are the registers of its samples; nil where there is no architecture.
	set     *sdk.RegisterSet
	finder  object.Finder
	exeID   []byte                // the build ID of the finder's Exe
	exeUsed bool                  // Exe was looked at
	process sync.Mutex            // held while what a process has mapped is found
	spaces  map[uint64]*codeSpace // by perfdata.Space.Code
	objects map[objectKey]*module
	dumps   map[string]*jitDump
	maps    map[int]*perfdata.PerfMap // of what a runtime made, by process
	opened  []*object.Object

	mu       sync.Mutex
	problems []string
}

// objectKey tells files apart as the recording does.
type objectKey struct{ path, buildID string }

// A codeSpace is the executable mappings of a process for a time. It does not
// change.
type codeSpace struct {
	code codeIndex
	// anonymous are executable mappings of no file, by address; jit is what a
	// runtime said of the code that it made there, nil where it said nothing.
	anonymous []*perfdata.Mapping
	jit       *jitDump
	mapped    map[uint64]*perfdata.Mapping // what code is of, by start
}

// read reads code, which is that of the mapped object.
func (s *codeSpace) read(address uint64, buf []byte) (int, error) {
	at := s.code.find(address)
	if at == nil || at.module.Object == nil {
		return 0, target.ErrNoMemory
	}
	n, err := at.module.Object.ReadAddress(buf, at.objectAddress(address))
	if n < len(buf) && err == nil {
		err = target.ErrNoMemory
	}
	return n, err
}

// executable says whether an address is in an executable mapping.
func (s *codeSpace) executable(address uint64) bool {
	return s.code.find(address) != nil || s.anonymousAt(address) != nil
}

func (s *codeSpace) anonymousAt(address uint64) *perfdata.Mapping {
	i, _ := slices.BinarySearchFunc(s.anonymous, address, func(m *perfdata.Mapping, a uint64) int {
		if m.End <= a {
			return -1
		}
		return 1
	})
	if i == len(s.anonymous) || s.anonymous[i].Start > address {
		return nil
	}
	return s.anonymous[i]
}

// machines are the ELF machines of what uname -m says.
var machines = map[string]elf.Machine{
	"x86_64": elf.EM_X86_64, "aarch64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64,
	"ppc64": elf.EM_PPC64, "s390x": elf.EM_S390, "loongarch64": elf.EM_LOONGARCH, "i686": elf.EM_386, "armv7l": elf.EM_ARM,
}

// newRecording finds the architecture of a recording.
func (e *Engine) newRecording(f *perfdata.File) *recording {
	r := &recording{
		engine: e, file: f,
		spaces: map[uint64]*codeSpace{}, objects: map[objectKey]*module{},
		dumps: map[string]*jitDump{}, maps: map[int]*perfdata.PerfMap{},
	}
	if f == nil {
		r.target = e.Attach(&Sample{})
		return r
	}
	r.finder = e.Finder(f.Path())
	r.exeID = r.finder.ExeID()
	name := f.Features().Arch
	if name == "" {
		name = hostMachine()
		r.problem("%s does not say of what architecture it is: %s, as this machine, is taken", f.Path(), name)
	}
	r.arch = name
	var arch *plugin.Arch
	number, ok := machines[name]
	if !ok {
		r.problem("%s: the architecture %q is not known: its stacks are not walked", f.Path(), name)
	} else if a, err := e.plugins.ForMachine(uint16(number)); err != nil {
		r.problem("%s: stacks are not walked: %v", f.Path(), err)
	} else {
		arch, r.arch = a, a.Description().Name
		r.set = a.Description().RegisterSet(sdk.PerfSample, "", 0)
	}
	r.target = e.Attach(&Sample{Arch: r.arch})
	if arch != nil {
		// Modules are of it before its process answers.
		r.target.machines = map[string]*machine{r.arch: newMachine(arch)}
	}
	return r
}

// startPlugin starts the plugin of a machine while other things are done. That it
// cannot be started is said when it is needed.
func (e *Engine) startPlugin(ctx context.Context, machine string) {
	number, ok := machines[machine]
	if !ok {
		return
	}
	if a, err := e.plugins.ForMachine(uint16(number)); err == nil {
		nothing := &view{target: newTarget(e, &Sample{})}
		go func() { _, _ = a.BindThreads(ctx, nothing, &sdk.BindThreadsRequest{}) }()
	}
}

// bind asks the plugin about the threads of the recording, which starts it.
func (r *recording) bind(ctx context.Context) {
	r.target.bound.Do(func() { r.target.bindAll(ctx) })
}

func (r *recording) close() error {
	err := r.target.Close()
	for _, o := range r.opened {
		o.Close()
	}
	for _, d := range r.dumps {
		d.close()
	}
	for _, m := range r.maps {
		if m != nil {
			m.Close()
		}
	}
	return err
}

func (r *recording) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// space is the code of a version of a process; nil where nothing is known.
func (r *recording) space(v *perfdata.Space) *codeSpace {
	if v == nil {
		return nil
	}
	r.process.Lock()
	defer r.process.Unlock()
	if s, ok := r.spaces[v.Code]; ok {
		return s
	}
	s := &codeSpace{mapped: map[uint64]*perfdata.Mapping{}}
	for m := range v.All() {
		if !m.Executable {
			continue
		}
		if noFile(m.Path) {
			s.anonymous = append(s.anonymous, m)
			continue
		}
		if isJITDump(m.Path) {
			// A runtime maps the first page of its dump to have it in the recording.
			s.jit = r.dump(m.Path)
			continue
		}
		s.code = append(s.code, r.segment(m))
		s.mapped[m.Start] = m
	}
	s.code.sort()
	r.spaces[v.Code] = s
	return s
}

// noFile says whether a mapping has no file behind it: what the kernel calls by
// a name of its own, and files that are memory.
func noFile(name string) bool {
	return name == "" || strings.HasPrefix(name, "//anon") || strings.HasPrefix(name, "[") && name != vdsoName ||
		strings.HasPrefix(name, "anon_inode:") || strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/dev/zero") ||
		strings.HasPrefix(name, "/SYSV")
}

// isJITDump says whether a path is one that runtimes give their dumps
// (tools/perf/Documentation/jitdump-specification.txt).
func isJITDump(name string) bool {
	ok, err := path.Match("jit-*.dump", path.Base(name))
	return ok && err == nil
}

// segment is a mapping of a file as a segment of the file's module.
func (r *recording) segment(m *perfdata.Mapping) moduleSegment {
	mod := r.module(m)
	s := moduleSegment{start: m.Start, end: m.End, module: mod, address: m.Offset}
	if mod.Object == nil {
		return s
	}
	if in, ok := mod.Object.SegmentForMapping(m.Offset, m.End-m.Start, true); ok {
		s.address = in.Address + m.Offset - in.Offset
		return s
	}
	r.problem("%s has no segment at the offset %#x, which was mapped at %#x: the code there is not known", mod.Path, m.Offset, m.Start)
	return s
}

// module is the module of a mapped file.
func (r *recording) module(m *perfdata.Mapping) *module {
	key := objectKey{m.Path, string(m.BuildID)}
	if mod := r.objects[key]; mod != nil {
		return mod
	}
	t := &target.Module{Path: m.Path, BuildID: m.BuildID, Arch: r.arch}
	found := r.find(m)
	if t.Object = found.Object; t.Object != nil {
		r.opened = append(r.opened, t.Object)
		t.File = found.Path
		if t.BuildID == nil {
			t.BuildID = t.Object.BuildID()
		}
		for _, s := range t.Object.Segments() {
			t.Segments = append(t.Segments, target.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
		}
	}
	t.Problem = found.Problem
	mod := r.addModule(t)
	r.objects[key] = mod
	return mod
}

// addModule adds a module whose code is that of its object.
func (r *recording) addModule(t *target.Module) *module {
	mod := r.target.newModule(t)
	mod.placeSegments()
	mod.arch = r.target.machines[r.arch]
	mod.code = func(address uint64, buf []byte) (int, error) {
		if t.Object == nil {
			return 0, fmt.Errorf("its code is not known: %s", t.Problem)
		}
		return t.Object.ReadAddress(buf, address)
	}
	r.target.addModule(mod)
	return mod
}

// find finds the file of a mapping.
func (r *recording) find(m *perfdata.Mapping) object.Found {
	if m.Path == vdsoName {
		return r.findVDSO(m.BuildID)
	}
	isExe := r.finder.IsExe(r.exeID, m.Path, m.BuildID)
	r.exeUsed = r.exeUsed || isExe
	found := r.finder.Find(m.Path, m.BuildID, isExe)
	if found.Object != nil && (!found.Object.IsELF() || elf.Machine(found.Object.Machine()) != r.machine()) && r.set != nil {
		o := found.Object
		found = object.Found{Problem: fmt.Sprintf("%s was not used: it is for %s", found.Path, object.DescribeMachine(o.Machine()))}
		o.Close()
	}
	return found
}

func (r *recording) machine() elf.Machine {
	if m, ok := machines[r.file.Features().Arch]; ok {
		return m
	}
	return machines[hostMachine()]
}

// vdsoName is what the kernel calls the code that it maps into each process.
const vdsoName = "[vdso]"

// findVDSO takes the vDSO of this process: it is in no file, and the same for all
// processes of a kernel.
func (r *recording) findVDSO(buildID []byte) object.Found {
	image, err := ownVDSO()
	if err != nil {
		return object.Found{Problem: fmt.Sprintf("%s: %v", vdsoName, err)}
	}
	o, err := object.New(vdsoName, image)
	if err != nil {
		return object.Found{Problem: err.Error()}
	}
	switch {
	case len(buildID) > 0 && bytes.Equal(buildID, o.BuildID()):
		return object.Found{Object: o, Checked: true}
	case len(buildID) > 0:
		return object.Found{Problem: fmt.Sprintf("%s: the build ID is %x, that of this machine's is %x", vdsoName, buildID, o.BuildID())}
	case r.file.Features().OSRelease == osRelease():
		return object.Found{Object: o, Problem: "the recording does not tell its build ID: that of the same kernel release was taken"}
	}
	return object.Found{Problem: fmt.Sprintf("%s: it is that of Linux %s, and this is another", vdsoName, r.file.Features().OSRelease)}
}

// perfMap is the map of what the runtime of a process made; nil where there is
// none. Like perf, it takes files of this user and of root only: everyone may
// write to /tmp.
func (r *recording) perfMap(pid int) *perfdata.PerfMap {
	if m, ok := r.maps[pid]; ok {
		return m
	}
	r.maps[pid] = nil
	name := filepath.Join(r.root(), "tmp", fmt.Sprintf("perf-%d.map", pid))
	if !ownFile(name) {
		return nil
	}
	m, err := perfdata.OpenPerfMap(name)
	if err != nil {
		r.problem("%v", err)
		return nil
	}
	for _, p := range m.Problems() {
		r.problem("%s", p)
	}
	r.maps[pid] = m
	return m
}

func (r *recording) root() string {
	if r.engine.options.Sysroot == "" {
		return "/"
	}
	return r.engine.options.Sysroot
}

// A jitDump is a dump with a module for each of its functions that a stack went
// through.
type jitDump struct {
	file *perfdata.JITDump
	mu   sync.Mutex
	made map[*perfdata.JITFunction]*moduleSegment
}

func (d *jitDump) close() {
	if d != nil {
		d.file.Close()
	}
}

// dump opens a dump; nil where it cannot be read.
func (r *recording) dump(name string) *jitDump {
	if d, ok := r.dumps[name]; ok {
		return d
	}
	r.dumps[name] = nil
	file := filepath.Join(r.root(), name)
	if !ownFile(file) {
		r.problem("%s: it is neither this user's nor root's: it is not read", file)
		return nil
	}
	j, err := perfdata.OpenJITDump(file)
	if err != nil {
		r.problem("%v", err)
		return nil
	}
	for _, p := range j.Problems() {
		r.problem("%s", p)
	}
	d := &jitDump{file: j, made: map[*perfdata.JITFunction]*moduleSegment{}}
	r.dumps[name] = d
	return d
}

// segment is the code that was at an address at a time; nil where there was none.
// It is a module by itself: what follows at the address is another one.
func (d *jitDump) segment(r *recording, time, address uint64) *moduleSegment {
	f := d.file.Find(time, address)
	if f == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.made[f]; s != nil {
		return s
	}
	mod := r.addModule(&target.Module{
		Path: f.Name, Arch: r.arch,
		Segments: []target.Segment{{Address: f.Address, Size: f.Size, Start: f.Address, Executable: true}},
	})
	mod.made = f
	mod.code = func(address uint64, buf []byte) (int, error) {
		if at := address - f.Address; at < uint64(len(f.Code)) {
			if n := copy(buf, f.Code[at:]); n < len(buf) {
				return n, target.ErrNoMemory
			}
			return len(buf), nil
		}
		return 0, target.ErrNoMemory
	}
	s := &moduleSegment{start: f.Address, end: f.Address + f.Size, module: mod, address: f.Address}
	d.made[f] = s
	return s
}

// A madeCode finds code that a runtime made.
type madeCode struct {
	recording *recording
	dump      *jitDump
	time      uint64
}

func (c *madeCode) find(address uint64) *moduleSegment {
	if c == nil || c.dump == nil {
		return nil
	}
	return c.dump.segment(c.recording, c.time, address)
}

// madeFrame is what a runtime calls code that it made.
func madeFrame(f *perfdata.JITFunction, address uint64) symbol.Frame {
	frame := symbol.Frame{Function: f.Name, Start: f.Address, HasStart: true}
	for i := range f.Lines {
		if l := &f.Lines[i]; l.Address <= address {
			frame.File, frame.Line, frame.Column = l.File, int(l.Line), int(l.Column)
		}
	}
	return frame
}
