// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/resolve"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk/reloc"
)

// Options are how a Symbolizer finds the files that belong to a file.
type Options struct {
	// Sysroot is the directory that paths in files are relative to; "" is "/".
	Sysroot string
	// IsUnseen is object.Finder's: the client does not see this machine.
	IsUnseen bool
	// DebugDirs are searched for separate debug files, after /usr/lib/debug.
	DebugDirs []string
	// DefaultMachine is the machine whose file is opened in a universal file of macOS, where the path does
	// not name one: "arm64"; "": the only one.
	DefaultMachine string
	// Remote is a source of debug information, by build ID, that is not on this machine; nil:
	// none.
	Remote object.Remote
	// Symbols are stores that have PDB files; nil: none.
	Symbols object.Remote
	// Package is a package (.dwp) that has the split units of the files; "": each file's is
	// looked for beside it.
	Package string
	// Relocations are relocation types of the machine (e_machine) of a relocatable object,
	// which take precedence over those in its System V supplement; nil: none.
	Relocations func(machine uint16) []reloc.Entry
	// Formats are formats of files with code objects inside, other than ELF; nil: none.
	Formats object.Formats
	// Plugins returns the architectures that read code for symbol files of programs whose unwind information
	// leaves out prologues and epilogues, as that of macOS does; nil: code is not read.
	Plugins func() (*plugin.Manager, error)
	// Warn, where it is not nil, receives a sentence about each problem of a file, each debug
	// file that could not be used, and debug information that cannot be relocated. Questions
	// are then answered without these.
	Warn func(text string)
	// Log, where it is not nil, receives the files that were looked for and the places, a
	// sentence at a time.
	Log func(text string)
}

// ErrNoBuildID means that no file with a build ID was found.
var ErrNoBuildID = errors.New("could not find build ID")

// Symbolizer opens files and finds the names of their code and data. It starts no plugin
// but Options.Plugins, keeps the files that it opened, and may be used concurrently.
type Symbolizer struct {
	options Options

	mu    sync.Mutex
	files map[string]*opened // by path, or by "build-id:" and the ID

	profiles profileFiles
}

// opened is a file that was opened, or the error of opening it.
type opened struct {
	file *File
	err  error
}

// New makes a Symbolizer. It opens nothing yet.
func New(options Options) *Symbolizer {
	return &Symbolizer{options: options, files: map[string]*opened{}}
}

// Close closes the files; nothing that came from them may be used any more.
func (s *Symbolizer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.files {
		if f.file != nil {
			errs = append(errs, f.file.close())
		}
	}
	s.files = map[string]*opened{}
	s.profiles.mu.Lock()
	defer s.profiles.mu.Unlock()
	return errors.Join(append(errs, s.profiles.close())...)
}

// Open opens a code object; FILE:MACHINE is one in a universal file. The second time it returns the same file, or
// the same error.
func (s *Symbolizer) Open(path string) (*File, error) {
	return s.once(path, func() (*object.Object, error) {
		file, machine := object.CutMachine(path)
		return object.OpenMachine(file, cmp.Or(machine, s.options.DefaultMachine), s.options.Formats)
	})
}

// OpenBuildID opens the file under /usr/lib/debug or DebugDirs that has a build ID, or else
// the debug information that Remote has for it, or the code, which may have a symbol table.
// The error of an ID that no file has wraps ErrNoBuildID.
func (s *Symbolizer) OpenBuildID(id []byte) (*File, error) {
	return s.once(buildIDKey(id), func() (*object.Object, error) { return s.findBuildID(id) })
}

// OpenCode opens the code that Remote has for a build ID, or else what OpenBuildID opens.
func (s *Symbolizer) OpenCode(id []byte) (*File, error) {
	return s.once("code:"+string(id), func() (*object.Object, error) {
		finder := object.Finder{IsUnseen: s.options.IsUnseen, Remote: s.options.Remote}
		if o, _ := finder.FetchExecutable(id); o != nil {
			return o, nil
		}
		return s.findBuildID(id)
	})
}

func (s *Symbolizer) once(key string, open func() (*object.Object, error)) (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.files[key]; ok {
		return f.file, f.err
	}
	f := &opened{}
	s.files[key] = f
	o, err := open()
	if err != nil {
		f.err = err
		return nil, err
	}
	f.file = s.newFile(o)
	return f.file, nil
}

func (s *Symbolizer) log(format string, args ...any) {
	if s.options.Log != nil {
		s.options.Log(fmt.Sprintf(format, args...))
	}
}

func (s *Symbolizer) findBuildID(id []byte) (*object.Object, error) {
	if len(id) > 1 {
		for _, dir := range append([]string{object.DebugDir}, s.options.DebugDirs...) {
			path := filepath.Join(dir, fmt.Sprintf(".build-id/%x/%x.debug", id[:1], id[1:]))
			o, err := object.Open(path)
			if err != nil {
				s.log("build ID %x: %v", id, err)
				continue
			}
			if bytes.Equal(o.BuildID(), id) {
				s.log("build ID %x: %s", id, path)
				return o, nil
			}
			s.log("build ID %x: %s has the build ID %x", id, path, o.BuildID())
			_ = o.Close()
		}
	}
	finder := object.Finder{IsUnseen: s.options.IsUnseen, Remote: s.options.Remote}
	for _, fetch := range []func([]byte) (*object.Object, []object.Attempt){finder.FetchDebug, finder.FetchExecutable} {
		o, tried := fetch(id)
		for _, a := range tried {
			s.log("build ID %x: %s: %s", id, a.Path, a.Reason)
		}
		if o != nil {
			s.log("build ID %x: %s", id, o.Path())
			return o, nil
		}
	}
	return nil, fmt.Errorf("build ID %x: %w", id, ErrNoBuildID)
}

// newFile takes an object and finds its debug file.
func (s *Symbolizer) newFile(o *object.Object) *File {
	return s.newFileOf(&object.Finder{Sysroot: s.options.Sysroot, IsUnseen: s.options.IsUnseen, DebugDirs: s.options.DebugDirs, Remote: s.options.Remote, Symbols: s.options.Symbols}, o)
}

// newFileOf is newFile with a finder.
func (s *Symbolizer) newFileOf(finder *object.Finder, o *object.Object) *File {
	s.warn(o)
	file := o
	o = s.layOut(file)
	s.relocate(o)
	debug, answers := s.findDebug(finder, o)
	f := &File{Object: o, file: file, Debug: debug, plugins: s.options.Plugins, answers: answers}
	f.resolver = resolve.NewWith(o, debug, dwarf.Options{Finder: finder, Package: s.options.Package})
	f.symbols = sync.OnceValue(f.readSymbols)
	return f
}

// findDebug finds the separate debug file of an object without debug information of its own;
// nil: there is none, and answers are of the servers that lack it.
func (s *Symbolizer) findDebug(finder *object.Finder, o *object.Object) (debug *object.Object, answers []string) {
	if o.HasDebugInfo() {
		s.log("%s: it has debug information itself", o.Name())
		return nil, nil
	}
	found := finder.FindDebug(o)
	for _, a := range found.Tried {
		s.log("%s: debug file %s: %s", o.Name(), a.Path, a.Reason)
	}
	if found.Object != nil {
		s.log("%s: debug file %s: taken", o.Name(), found.Path)
		s.warn(found.Object)
		s.relocate(found.Object)
		return found.Object, nil
	}
	s.log("%s: it has no debug information, and no separate debug file was found", o.Name())
	for _, a := range found.Unused() {
		if s.options.Warn != nil {
			s.options.Warn(fmt.Sprintf("%s: debug file %s was not used: %s", o.Name(), a.Path, a.Reason))
		}
	}
	return nil, object.Answers(found.Tried)
}

// Lacking returns the files without debug information whose answers are incomplete so far, by path.
func (s *Symbolizer) Lacking() (list []Lack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.file == nil {
			continue
		}
		if l, ok := f.file.lack(f.file.Object.Name()); ok {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b Lack) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// warn reports problems with the headers of a file, for instance that it is cut.
func (s *Symbolizer) warn(o *object.Object) {
	for _, problem := range o.Problems() {
		if s.options.Warn != nil {
			s.options.Warn(problem)
		}
	}
}

// relocate prepares a relocatable object, and reports relocations that cannot be applied.
func (s *Symbolizer) relocate(o *object.Object) {
	if !o.IsRelocatable() {
		return
	}
	if s.options.Relocations != nil {
		o.SetRelocations(s.options.Relocations(o.Machine()))
	}
	if s.options.Warn == nil {
		return
	}
	for _, name := range []string{".debug_info", ".debug_line"} {
		if section := o.Section(name); section != nil {
			if _, err := section.Data(); err != nil && !errors.Is(err, object.ErrNoData) {
				s.options.Warn(err.Error())
			}
		}
	}
}
