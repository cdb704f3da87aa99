// SPDX-License-Identifier: Apache-2.0

// Package engine walks stacks.
//
// An Engine opens targets (a core, for one) and yields the stack of each of
// their threads. What depends on an architecture comes from a plugin; see
// package sdk for the contract.
//
//	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
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
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/disassembler"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/source"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/elfcore"
	"github.com/unwindd/unwindd/engine/target/minidump"
	"github.com/unwindd/unwindd/engine/target/process"
	"github.com/unwindd/unwindd/engine/target/registered"
	"github.com/unwindd/unwindd/engine/target/snapshot"
	"github.com/unwindd/unwindd/engine/unpack"
	"github.com/unwindd/unwindd/engine/value"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// DefaultMaxFrames is how many physical frames of a stack are walked when
// Options.MaxFrames is 0.
const DefaultMaxFrames = 4096

// AllFrames is the Options.MaxFrames of a caller that wants every frame of a stack.
const AllFrames = math.MaxInt32

// ErrUnknownTarget says that a file is none of the forms of target.
var ErrUnknownTarget = errors.New("not a target")

// Options says what an Engine uses. The zero value walks with the bundled
// architectures as child processes of Plugins.Self.
type Options struct {
	// Plugins says where architectures come from.
	Plugins plugin.Options
	// Sysroot is where paths of a target are looked up; "" is "/".
	Sysroot string
	// IsUnseen says that who reads the reports does not see this machine: see
	// object.Finder. Nothing is looked up beside a target's own file.
	IsUnseen bool
	// Exe is the file of the target's main executable; "" finds it.
	Exe string
	// Modules are files that are modules of the target, by their paths there or base names.
	Modules map[string]string
	// DeviceCore is the file with what processors beside the CPU had when the process
	// of a core died, where that is a file of its own; "" looks for it beside the core.
	DeviceCore string
	// MaxUnpacked is how many bytes a target that comes packed may unpack to; 0 stands for
	// unpack.DefaultMaxBytes, and for bounds on the disk that it takes (unpack.Options).
	MaxUnpacked uint64
	// DebugDirs are searched for separate debug files, and for code.
	DebugDirs []string
	// Remote is asked for files that are not on this machine, as a
	// debuginfod.Client is one; nil: nobody is asked.
	Remote object.Remote
	// Symbols are stores of symbol files, as a symbolstore.Client asks them; nil: only
	// files beside a target's own are looked at.
	Symbols object.Remote
	// MaxFrames bounds the physical frames of a stack that are kept; 0 is
	// DefaultMaxFrames. The others are counted, and the outermost ones kept: see Gap.
	MaxFrames int
	// NoInlines leaves out inlined calls: each frame has its containing
	// function only, at the line table's position.
	NoInlines bool
	// NoSymbols leaves names and positions out altogether.
	NoSymbols bool
	// Registers keeps the general registers of every frame.
	Registers bool
	// Lanes finds what the lanes of a wave do in every frame.
	Lanes bool
	// Locals reads the variables of every frame within limits; nil: none are.
	Locals *value.Limits
	// SourceLines is how many lines of source Target.Source gives, at most
	// source.MaxLines; 0: none.
	SourceLines int
	// Disassembler is the path of an llvm-mc or llvm-objdump, whose text CodeReaders
	// show where an architecture has none of its own; "": they show what is known. It runs
	// confined, which takes Plugins.Self.
	Disassembler string
	// CacheBytes is about how much memory is kept for what was found out about code
	// objects, beside those that targets have loaded; 0 is code.DefaultBytes.
	CacheBytes uint64
}

// An Engine walks stacks. It may be used concurrently.
type Engine struct {
	options Options
	plugins *plugin.Manager
	store   *object.Store
	library *code.Library
	shared  *walk.Shared
	program *disassembler.Program // of Options.Disassembler; nil: none
	isView  bool                  // what it shares is another engine's: see With

	mu      sync.Mutex
	targets map[*Target]struct{}
}

// New makes an engine. It starts no plugin. The error is that of an option without a
// meaning, or that of plugin.NewManager.
func New(options Options) (*Engine, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	m, err := plugin.NewManager(options.Plugins)
	if err != nil {
		return nil, err
	}
	library := code.NewLibrary(m, options.CacheBytes)
	if options.NoSymbols {
		library.ExpectNoNames()
	}
	e := &Engine{
		options: options, plugins: m, store: object.NewStore(), library: library, shared: walk.NewShared(library, options.walks()), targets: map[*Target]struct{}{},
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

// With is an engine with other options that shares with e what e has found out about code
// objects, the files that are open, and the plugins: it costs nothing to make, and a
// process that answers many kinds of questions keeps one engine and asks each by another
// view of it. Plugins, Disassembler and CacheBytes of the options are e's. Close of it
// closes its targets alone, and goes before that of e. The error is that of an option
// without a meaning.
func (e *Engine) With(options Options) (*Engine, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	options.Plugins, options.Disassembler, options.CacheBytes = e.options.Plugins, e.options.Disassembler, e.options.CacheBytes
	return &Engine{
		options: options, plugins: e.plugins, store: e.store, library: e.library, shared: walk.NewShared(e.library, options.walks()),
		program: e.program, isView: true, targets: map[*Target]struct{}{},
	}, nil
}

// walks are the options of walks.
func (o *Options) walks() walk.Options {
	return walk.Options{
		MaxFrames: o.MaxFrames, NoInlines: o.NoInlines, NoSymbols: o.NoSymbols, Registers: o.Registers, Lanes: o.Lanes, Locals: o.Locals,
		TailCalls: !o.NoSymbols,
	}
}

// Close closes the targets that are still open, and ends the plugins unless e is a view
// (With). The error joins those of the targets' Close.
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
	}
	return errors.Join(errs...)
}

// Plugins is the engine's plugin manager.
func (e *Engine) Plugins() *plugin.Manager { return e.plugins }

// Library holds the code objects that targets have loaded.
func (e *Engine) Library() *code.Library { return e.library }

// Finder says where the engine looks for the files of a target whose own file
// is at path.
func (e *Engine) Finder(path string) object.Finder {
	f := object.Finder{
		Sysroot:   e.options.Sysroot,
		Exe:       e.options.Exe,
		Provided:  e.options.Modules,
		DebugDirs: e.options.DebugDirs,
		Formats:   code.NewFormats(e.plugins),
		Store:     e.store,
		Remote:    e.options.Remote,
		Symbols:   e.options.Symbols,
		IsUnseen:  e.options.IsUnseen,
	}
	if path != "" && !e.options.IsUnseen {
		f.Folders = []string{filepath.Dir(path)}
	}
	return f
}

// An opener opens one form of target.
type opener struct {
	magic string                                                    // the first bytes of such a file
	open  func(e *Engine, m *object.Mapping) (target.Target, error) // m is closed with the target, and after an error
	not   error                                                     // what open's error wraps for a file that is another thing
}

// openers are the forms of target. The last one has no magic: it says of a
// file that is no target what the file is.
var openers = []opener{
	{"PK\x03\x04", (*Engine).openSnapshot, snapshot.ErrNotSnapshot},
	{"MDMP", (*Engine).openMinidump, minidump.ErrNotMinidump},
	{"PMDM", (*Engine).openMinidump, minidump.ErrNotMinidump}, // of a big-endian machine
	{"", (*Engine).openCore, elfcore.ErrNotCore},
}

// Open opens a target file, told by its first bytes: a core, a minidump or a snapshot, as
// it is or packed (package unpack). The error of a file that is no target wraps
// ErrUnknownTarget.
func (e *Engine) Open(path string) (*Target, error) {
	in, err := unpack.Open(path, e.unpacking())
	return e.openInput(path, in, err)
}

// OpenFile opens what a file has that is open, as Open does: a regular file, or a pipe,
// which is read to its end. name is the target's path in all that is said. The error of
// what is no target wraps ErrUnknownTarget.
func (e *Engine) OpenFile(f *os.File, name string) (*Target, error) {
	in, err := unpack.Read(f, name, e.unpacking())
	return e.openInput(name, in, err)
}

func (e *Engine) openCore(m *object.Mapping) (target.Target, error) {
	options := elfcore.Options{
		Describe: func(machine uint16) (*sdk.Description, error) { return prepared(e.plugins.ForMachine(machine)) },
		ForNote:  e.noteReader,
		Devices:  e.options.DeviceCore,
		Map:      e.mapPacked,
	}
	path := m.Path()
	if options.Devices == "" {
		// The core of the process beside one of devices is the one to begin with.
		if host := elfcore.HostCore(path); host != "" {
			_ = m.Close()
			options.Devices, options.Finder = path, e.Finder(host)
			return orNil(elfcore.Open(host, options))
		}
	}
	options.Finder = e.Finder(path)
	return orNil(elfcore.OpenMapped(m, options))
}

func (e *Engine) noteReader(owner string) (elfcore.NoteReader, error) {
	a, err := e.plugins.ForNote(owner)
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

// prepared is description for a target that is being opened: while its files are
// read the plugin starts.
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

// OpenProcess copies the registers and stacks of a living process, whose threads stand
// still as long as that takes; see process.Open, whose errors it returns.
func (e *Engine) OpenProcess(pid int) (*Target, error) {
	t, err := process.Open(pid, process.Options{
		Finder:   e.Finder(""),
		Describe: func(machine uint16) (*sdk.Description, error) { return prepared(e.plugins.ForMachine(machine)) },
	})
	if err != nil {
		return nil, err
	}
	own := e.Attach(t)
	own.readPerfMap()
	return own, nil
}

// RecordProcess looks at a living process again and again, and writes what it saw to file,
// a recording that Profile reads; see process.Record, whose errors it returns.
func (e *Engine) RecordProcess(ctx context.Context, pid int, file io.WriteSeeker, options RecordOptions) (Recorded, error) {
	options.Describe = func(machine uint16) (*sdk.Description, error) { return prepared(e.plugins.ForMachine(machine)) }
	return process.Record(ctx, pid, file, options)
}

// A located target says itself where its files are.
type located interface{ Finder() object.Finder }

// finderOf says where the files of a target are.
func (e *Engine) finderOf(state target.Target) object.Finder {
	if l, ok := state.(located); ok {
		return l.Finder()
	}
	return e.Finder(state.Info().Path)
}

// Attach walks a target that the caller made. Close closes it.
func (e *Engine) Attach(state target.Target) *Target { return e.attach(state, e.finderOf(state)) }

// addRegistered adds the code that the program made and registered for debuggers.
func (t *Target) addRegistered() {
	state := t.State()
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
	if kind := state.Info().Kind; kind == target.ELFCore || kind == target.LiveProcess {
		t.registered = problems // others need not have the list
	}
	if len(list) > 0 {
		t.SetModules(slices.Concat(state.Modules(), list))
	}
}

// attach is Attach for a target whose files a finder finds.
func (e *Engine) attach(state target.Target, finder object.Finder) *Target {
	t := &Target{Process: e.shared.NewProcess(state, finder), engine: e}
	t.addRegistered()
	t.sources = sync.OnceValue(func() *source.Files { return source.New(&finder) })
	e.mu.Lock()
	e.targets[t] = struct{}{}
	e.mu.Unlock()
	return t
}
