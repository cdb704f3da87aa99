// SPDX-License-Identifier: Apache-2.0

// Package engine walks stacks.
//
// An Engine opens targets (a core, for one) and yields the stack of each of their
// threads. Everything that depends on an architecture comes from a plugin; see package
// sdk for the contract.
//
//	e, err := engine.New(engine.Options{InProcess: []sdk.Architecture{x86_64.New()}})
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	t, err := e.Open("server.core")
//	if err != nil {
//		return err
//	}
//	for stack := range t.Stacks(ctx) {
//		fmt.Println(stack.Thread.ID, len(stack.Frames), stack.Stopped.Reason)
//	}
package engine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/beside"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/disassembler"
	"github.com/unwindd/unwindd/engine/internal/filekind"
	"github.com/unwindd/unwindd/engine/internal/lock"
	"github.com/unwindd/unwindd/engine/internal/managed"
	"github.com/unwindd/unwindd/engine/internal/source"
	"github.com/unwindd/unwindd/engine/internal/target/applereport"
	"github.com/unwindd/unwindd/engine/internal/target/elfcore"
	"github.com/unwindd/unwindd/engine/internal/target/machocore"
	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/internal/target/registered"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// DefaultMaxFrames is the number of physical frames of a stack that are walked when
// Options.MaxFrames is 0.
const DefaultMaxFrames = 4096

// AllFrames is the Options.MaxFrames of a caller that wants every frame of a stack.
const AllFrames = math.MaxInt32

// ErrUnknownTarget is the error where a file has none of the formats of targets.
var ErrUnknownTarget = errors.New("not a target")

// Options has the options of an Engine. The zero value walks with the bundled
// architectures as child processes of Plugins.Self.
type Options struct {
	// InProcess are architectures that run in this process, without a child: with them an
	// engine needs no plugins.
	InProcess []sdk.Architecture
	// InProcessRuntimes are language runtimes that run in this process, without a child.
	InProcessRuntimes []sdk.Runtime
	// Plugins lists further architectures. Its type promises nothing: it is for executables
	// that start plugins, as unwindd does.
	Plugins plugin.Options
	// Sysroot is the folder in which paths of a target are looked up; "" is "/".
	Sysroot string
	// IsUnseen means that the readers of reports do not see this machine: see
	// object.Finder. Nothing is looked up beside a target's own file.
	IsUnseen bool
	// Exe is the file of the target's main executable; "" finds it.
	Exe string
	// Modules are files that are modules of the target, by their paths there or base names.
	Modules map[string]string
	// DeviceCore is the core of the processors beside the CPU that belongs to a process's
	// core, where it is a separate file; "" looks for it beside the core.
	DeviceCore string
	// MaxUnpacked bounds the bytes that a packed target may unpack to; 0 stands for
	// unpack.DefaultMaxBytes, and for bounds on its disk space (unpack.Options).
	MaxUnpacked uint64
	// Unpack, where it is not nil, makes what takes the bytes of packed targets, instead of temporary files. Its type
	// promises nothing: it is for servers, whose workers write no files.
	Unpack func() (unpack.Sink, error)
	// DebugDirs are searched for separate debug files, and for code.
	DebugDirs []string
	// BuildIDDirs are caches of perf with files by build ID, as ~/.debug
	// (perf-buildid-cache(1)): they are searched for code, debug files and names of kernels.
	BuildIDDirs []string
	// Drives is the directory beneath Sysroot that has a link to each drive of Windows, as "c:": Wine's
	// ~/.wine/dosdevices. "": what a process of Wine has itself counts, and files of minidumps are looked for without
	// their drives.
	Drives string
	// Downloads names the servers and stores of files that are not on this machine.
	Downloads Downloads
	// Remote and Symbols fetch such files instead of Downloads.Debuginfod and
	// Downloads.Stores; nil: these are asked.
	Remote, Symbols object.Remote
	// MaxFrames bounds the physical frames of a stack that are kept; 0 is
	// DefaultMaxFrames. The rest are counted, and the outermost ones kept: see Gap.
	MaxFrames int
	// NoInlines leaves out inlined calls: each frame has its containing
	// function only, at the line table's position.
	NoInlines bool
	// NoSymbols leaves out all names and positions.
	NoSymbols bool
	// Registers keeps the general registers of every frame.
	Registers bool
	// Lanes finds the states of the lanes of a wave in every frame.
	Lanes bool
	// Locals reads the variables of every frame within limits; nil: none are.
	Locals *trace.ValueLimits
	// ForSnapshot copies what Target.Snapshot keeps of a living process while its threads stand still: the
	// variables of language runtimes, too.
	ForSnapshot bool
	// Goroutines copies of a living process what Target.WithGoroutines needs.
	Goroutines bool
	// SourceLines is the number of lines of source that Target.Source returns, at most
	// source.MaxLines; 0: none.
	SourceLines int
	// LocalSource looks for source files on this machine alone: no server is asked for one.
	LocalSource bool
	// Disassembler is the path of an llvm-mc, llvm-objdump or nvdisasm, whose text CodeReaders show
	// where an architecture has no disassembler; "": they show instructions without it.
	// It runs confined, which needs Plugins.Self.
	Disassembler string
	// CacheBytes is the approximate size of the cache of facts of code objects that no
	// open target has loaded; 0 is code.DefaultBytes.
	CacheBytes uint64
}

// Engine walks stacks. It may be used concurrently.
type Engine struct {
	options Options
	plugins *plugin.Manager
	store   *object.Store
	library *code.Library
	shared  *walk.Shared
	remotes *Remotes              // of Options.Downloads
	program *disassembler.Program // of Options.Disassembler; nil: none
	isView  bool                  // it shares another engine's parts: see With
	// indexes and devices remember folders for many targets; nil: each target looks itself.
	indexes *object.FolderIndexes
	devices *beside.Folders

	runtimes func() []managed.Runtime // the language runtimes that can be used

	mu      sync.Mutex
	targets map[*Target]struct{}
}

// New makes an engine. It starts no plugin. The error is about an invalid option, wraps a
// ServerError, or comes from plugin.NewManager.
func New(options Options) (*Engine, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	remotes, err := options.Downloads.Connect()
	if err != nil {
		return nil, err
	}
	options.Plugins.InProcess = slices.Concat(options.Plugins.InProcess, options.InProcess)
	options.Plugins.InProcessRuntimes = slices.Concat(options.Plugins.InProcessRuntimes, options.InProcessRuntimes)
	m, err := plugin.NewManager(options.Plugins)
	if err != nil {
		return nil, err
	}
	options.fetchFrom(remotes)
	library := code.NewLibrary(m, options.CacheBytes)
	if options.NoSymbols {
		library.ExpectNoNames()
	}
	e := &Engine{
		options: options, plugins: m, store: object.NewStore(), library: library, shared: walk.NewShared(library, options.walks()),
		remotes: remotes, targets: map[*Target]struct{}{}, runtimes: sync.OnceValue(func() (list []managed.Runtime) {
			for _, r := range m.Runtimes() {
				list = append(list, r)
			}
			return list
		}),
	}
	if options.Disassembler != "" {
		e.program = disassembler.New(options.Disassembler, m)
	}
	return e, nil
}

// complete checks options and fills in defaults.
func (o *Options) complete() error {
	switch {
	case o.MaxFrames < 0:
		return fmt.Errorf("MaxFrames is %d, expected 0 or more", o.MaxFrames)
	case o.MaxFrames == 0:
		o.MaxFrames = DefaultMaxFrames
	}
	return nil
}

// fetchFrom completes the sources of files that are not on this machine.
func (o *Options) fetchFrom(r *Remotes) {
	if o.Remote == nil {
		o.Remote = r.Debuginfod
	}
	if o.Symbols == nil {
		o.Symbols = r.Stores
	}
}

// With is a view of the engine with other options. It shares with e the cache of code
// objects, the open files and the plugins, and costs nothing to make: a process with many
// kinds of requests keeps one engine and a view for each kind. InProcess, InProcessRuntimes, Plugins,
// Downloads, Disassembler and CacheBytes of the options are e's. Its Close closes its targets alone, and
// comes before e's. The error is about an invalid option.
func (e *Engine) With(options Options) (*Engine, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	options.Plugins, options.Disassembler, options.CacheBytes = e.options.Plugins, e.options.Disassembler, e.options.CacheBytes
	options.fetchFrom(e.remotes)
	return &Engine{
		options: options, plugins: e.plugins, store: e.store, library: e.library, shared: walk.NewShared(e.library, options.walks()),
		remotes: e.remotes, program: e.program, isView: true, targets: map[*Target]struct{}{}, runtimes: e.runtimes,
	}, nil
}

// walks returns the options of walks.
func (o *Options) walks() walk.Options {
	return walk.Options{
		MaxFrames: o.MaxFrames, NoInlines: o.NoInlines, NoSymbols: o.NoSymbols, Registers: o.Registers, Lanes: o.Lanes, Locals: o.Locals,
		TailCalls: !o.NoSymbols,
	}
}

// Close closes the targets that are still open, and ends the plugins unless e is a view
// (With). The error joins the errors of the targets' Close.
func (e *Engine) Close() error {
	e.mu.Lock()
	open := make([]*Target, 0, len(e.targets))
	for t := range e.targets {
		open = append(open, t)
	}
	e.mu.Unlock()
	var errs []error
	for _, t := range open {
		errs = append(errs, t.Close())
	}
	if !e.isView {
		e.library.Close()
		e.plugins.Close()
		e.remotes.Close()
	}
	return errors.Join(errs...)
}

// Plugins is the engine's plugin manager.
func (e *Engine) Plugins() *plugin.Manager { return e.plugins }

// Library has the code objects that targets have loaded.
func (e *Engine) Library() *code.Library { return e.library }

// Finder finds the files of a target whose own file is at path.
func (e *Engine) Finder(path string) object.Finder {
	f := object.Finder{
		Sysroot:   e.options.Sysroot,
		Drives:    e.options.Drives,
		Exe:       e.options.Exe,
		Provided:  e.options.Modules,
		DebugDirs: e.options.DebugDirs,

		BuildIDDirs: e.options.BuildIDDirs,
		Formats:     code.NewFormats(e.plugins),
		Store:       e.store,
		Remote:      e.options.Remote,
		Symbols:     e.options.Symbols,
		IsUnseen:    e.options.IsUnseen,
		Indexes:     e.indexes,
		Told:        &object.Told{},
	}
	if path != "" && !e.options.IsUnseen {
		f.Folders = []string{filepath.Dir(path)}
	}
	return f
}

// opener opens one format of targets.
type opener struct {
	magic string                                                    // the first bytes of such a file
	is    func(head string) bool                                    // tells such a file where it has no magic; nil: magic does
	open  func(e *Engine, m *object.Mapping) (target.Target, error) // m is closed with the target, and after an error
	not   error                                                     // wrapped by open's error for a file of another format
}

// openers has the formats of targets. The last one has no magic: its error describes a
// file that is not a target.
var openers = []opener{
	{magic: "PK\x03\x04", open: (*Engine).openSnapshot, not: snapshot.ErrNotSnapshot},
	{magic: "MDMP", open: (*Engine).openMinidump, not: minidump.ErrNotMinidump},
	{magic: "PMDM", open: (*Engine).openMinidump, not: minidump.ErrNotMinidump}, // of a big-endian machine
	{magic: "\xcf\xfa\xed\xfe", open: (*Engine).openMachOCore, not: machocore.ErrNotCore},
	{is: filekind.IsAppleReport, open: (*Engine).openAppleReport, not: errNever},
	{open: (*Engine).openCore, not: elfcore.ErrNotCore},
}

// Open opens a target file, told by its first bytes: a core, a minidump or a snapshot, as
// it is or packed (package unpack). The error for a file that is not a target wraps
// ErrUnknownTarget.
func (e *Engine) Open(path string) (*Target, error) {
	in, err := unpack.Open(path, e.unpacking())
	return e.openInput(path, in, err)
}

// OpenFile opens a target in an open file, as Open does: a regular file, or a pipe, which
// is read to its end. name is the target's path in messages. The error for a file that is
// not a target wraps ErrUnknownTarget.
func (e *Engine) OpenFile(f *os.File, name string) (*Target, error) {
	in, err := unpack.Read(f, name, e.unpacking())
	return e.openInput(name, in, err)
}

// describe returns the description of a machine's architecture, whose plugin starts meanwhile.
func (e *Engine) describe(machine object.ELFMachine) (*sdk.Description, error) {
	return prepared(e.plugins.ForMachine(machine))
}

// coreOptions returns how a core is read.
func (e *Engine) coreOptions(path string) elfcore.Options {
	return elfcore.Options{Finder: e.Finder(path), Describe: e.describe, ForNote: e.noteReader, ForFile: e.fileReader, Map: e.mapPacked}
}

func (e *Engine) openCore(m *object.Mapping) (target.Target, error) {
	path := m.Path()
	if elfcore.IsOfSections([]byte(firstBytes(m))) {
		return e.openOfSections(m)
	}
	options := e.coreOptions(path)
	if named := e.options.DeviceCore; named != "" && !isOfSections(named) {
		options.Devices = named
	}
	if e.options.DeviceCore == "" {
		// Beside a core of devices, the core of the process is opened.
		if host := elfcore.HostCore(path); host != "" {
			_ = m.Close()
			options.Devices, options.Finder = path, e.Finder(host)
			return orNil(elfcore.Open(host, options))
		}
	}
	return orNil(elfcore.OpenMapped(m, options))
}

func (e *Engine) openMachOCore(m *object.Mapping) (target.Target, error) {
	return orNil(machocore.OpenMapped(m, machocore.Options{Finder: e.Finder(m.Path()), Describe: e.describe}))
}

func (e *Engine) noteReader(owner string) (elfcore.NoteReader, error) {
	a, err := e.plugins.ForNote(owner)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (e *Engine) fileReader(machine object.ELFMachine) (elfcore.NoteReader, error) {
	a, err := e.plugins.ForMachine(machine)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (e *Engine) openSnapshot(m *object.Mapping) (target.Target, error) {
	return orNil(snapshot.OpenMapped(m, snapshot.Options{
		Finder:   e.Finder(m.Path()),
		Describe: func(arch string) (*sdk.Description, error) { return prepared(e.plugins.Find(arch)) },
	}))
}

func (e *Engine) openMinidump(m *object.Mapping) (target.Target, error) {
	return orNil(minidump.OpenMapped(m, minidump.Options{
		Finder: e.Finder(m.Path()),
		Describe: func(arch string) (*sdk.Description, error) {
			return prepared(e.plugins.FindOrdered(arch, sdk.LittleEndian))
		},
	}))
}

// errNever is wrapped by no error: the format of a file is certain by its first bytes.
var errNever = errors.New("")

func (e *Engine) openAppleReport(m *object.Mapping) (target.Target, error) {
	return orNil(applereport.OpenMapped(m, applereport.Options{
		Finder:   e.Finder(m.Path()),
		Describe: func(arch string) (*sdk.Description, error) { return prepared(e.plugins.Find(arch)) },
	}))
}

// orNil keeps a nil pointer from becoming a Target that is not nil.
func orNil[T target.Target](t T, err error) (target.Target, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// prepared is description for a target that is being opened: the plugin starts while
// files are read.
func prepared(a *plugin.Arch, err error) (*sdk.Description, error) {
	if err == nil {
		a.Prepare()
	}
	return description(a, err)
}

func description(a *plugin.Arch, err error) (*sdk.Description, error) {
	if err != nil {
		return nil, err
	}
	return a.Description(), nil
}

// located is a target with a Finder of its own.
type located interface{ Finder() object.Finder }

// finderOf is the Finder of a target's files.
func (e *Engine) finderOf(state target.Target) object.Finder {
	if l, ok := state.(located); ok {
		return l.Finder()
	}
	return e.Finder(state.Info().Path)
}

// Attach makes a Target of the caller's state. Its Close closes state.
func (e *Engine) Attach(state target.Target) *Target { return e.attach(state, e.finderOf(state)) }

// managedOptions returns how language runtimes are asked.
func (e *Engine) managedOptions() managed.Options {
	o := managed.Options{Locals: e.options.Locals, MaxFrames: e.options.MaxFrames}
	if o.Locals == nil && e.options.ForSnapshot {
		o.Locals = &trace.DefaultValueLimits
	}
	return o
}

// addRegistered adds the JIT code that the program registered for debuggers.
func (t *Target) addRegistered() {
	state := t.process.State()
	list, problems := registered.Modules(state.Modules(), func(address uint64, buf []byte) (n int, err error) {
		guarded := object.Guard(func() error {
			n, err = state.ReadMemory(locexpr.DefaultSpace, address, buf)
			return nil
		})
		if guarded != nil {
			return 0, guarded
		}
		return n, err
	})
	if kind := state.Info().Kind; kind == trace.ELFCore || kind == trace.LiveProcess {
		t.registered = problems // a system without such code has no list
	}
	if len(list) > 0 {
		t.process.SetModules(slices.Concat(state.Modules(), list))
	}
}

// attach is Attach for a target whose files a finder finds.
func (e *Engine) attach(state target.Target, finder object.Finder) *Target {
	t := &Target{process: e.shared.NewProcess(state, finder), engine: e}
	if state.Info().Kind != walk.SampleKind { // which has no memory that a runtime could read
		t.managed = managed.New(t.process, e.runtimes, e.managedOptions())
	}
	t.addRegistered()
	t.sources = sync.OnceValue(func() *source.Files { return source.New(&finder) })
	t.locks = sync.OnceValue(func() *lock.Finder { return lock.NewFinder(t.process) })
	e.mu.Lock()
	e.targets[t] = struct{}{}
	e.mu.Unlock()
	return t
}
