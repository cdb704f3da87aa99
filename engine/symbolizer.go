package engine

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/symbol/resolve"
	"github.com/unwindd/unwindd/engine/symbol/symtab"
)

// SymbolizerOptions say how a Symbolizer finds what belongs to a file.
type SymbolizerOptions struct {
	// DebugDirs are searched for separate debug files, after /usr/lib/debug.
	DebugDirs []string
	// Package is a package (.dwp) that has the split units of the files; "":
	// each file's is looked for beside it.
	Package string
	// Relocations are relocation types of the machine of a relocatable object,
	// before those of its System V supplement; nil: none.
	Relocations func(o *object.Object) []object.Relocation
	// Formats are forms of files with code objects inside that are no ELF files;
	// nil: none.
	Formats object.Formats
	// Warn, where it is not nil, is told a sentence of each debug file that is there
	// and could not be used, and of debug information that cannot be relocated. What it
	// concerns is answered without.
	Warn func(text string)
	// Log, where it is not nil, is told what was looked for and where, a
	// sentence at a time.
	Log func(text string)
}

// ErrNoBuildID says that no file with a build ID was found.
var ErrNoBuildID = errors.New("could not find build ID")

// A Symbolizer says what the code in files is called. It starts no plugin, keeps
// the files that it opened, and may be used concurrently.
//
//	s := engine.NewSymbolizer(engine.SymbolizerOptions{})
//	defer s.Close()
//	f, err := s.Open("server")
//	for _, frame := range f.Frames(0x401257) { ... }
type Symbolizer struct {
	options SymbolizerOptions

	mu    sync.Mutex
	files map[string]*symbolFile // by path, or by "build-id:" and the ID
}

// symbolFile is a file that was opened, or why it could not be.
type symbolFile struct {
	file *SymbolFile
	err  error
}

// NewSymbolizer makes a Symbolizer. It opens nothing yet.
func NewSymbolizer(options SymbolizerOptions) *Symbolizer {
	return &Symbolizer{options: options, files: map[string]*symbolFile{}}
}

// Close closes the files; nothing that came out of them may be used any more.
func (s *Symbolizer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.files {
		if f.file != nil {
			errs = append(errs, f.file.close())
		}
	}
	s.files = map[string]*symbolFile{}
	return errors.Join(errs...)
}

// Open opens a code object. The second time it gives the same file, or the same
// error.
func (s *Symbolizer) Open(path string) (*SymbolFile, error) {
	return s.once(path, func() (*object.Object, error) { return object.OpenNestedWith(path, s.options.Formats) })
}

// OpenBuildID opens the file under /usr/lib/debug or DebugDirs that has a build
// ID. The error of an ID that no file has wraps ErrNoBuildID.
func (s *Symbolizer) OpenBuildID(id []byte) (*SymbolFile, error) {
	return s.once("build-id:"+string(id), func() (*object.Object, error) { return s.findBuildID(id) })
}

func (s *Symbolizer) once(key string, open func() (*object.Object, error)) (*SymbolFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.files[key]; ok {
		return f.file, f.err
	}
	f := &symbolFile{}
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
	return nil, fmt.Errorf("build ID %x: %w", id, ErrNoBuildID)
}

// newFile takes an object and finds its debug file.
func (s *Symbolizer) newFile(o *object.Object) *SymbolFile {
	f := &SymbolFile{Object: o}
	finder := object.Finder{DebugDirs: s.options.DebugDirs}
	s.relocate(o)
	if o.HasDebugInfo() {
		s.log("%s: it has debug information itself", o.Name())
	} else {
		found := finder.FindDebug(o)
		for _, a := range found.Tried {
			s.log("%s: debug file %s: %s", o.Name(), a.Path, a.Reason)
		}
		switch {
		case found.Object != nil:
			s.log("%s: debug file %s: taken", o.Name(), found.Path)
			s.relocate(found.Object)
			f.Debug = found.Object
		default:
			s.log("%s: it has no debug information, and no separate debug file was found", o.Name())
			for _, a := range found.Unused() {
				if s.options.Warn != nil {
					s.options.Warn(fmt.Sprintf("%s: debug file %s was not used: %s", o.Name(), a.Path, a.Reason))
				}
			}
		}
	}
	f.resolver = resolve.NewWith(o, f.Debug, dwarf.Options{Finder: &finder, Package: s.options.Package})
	return f
}

// relocate prepares a relocatable object, and says what cannot be relocated.
func (s *Symbolizer) relocate(o *object.Object) {
	if o.Type() != elf.ET_REL {
		return
	}
	if s.options.Relocations != nil {
		o.SetRelocations(s.options.Relocations(o))
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

// A SymbolFile is a code object whose addresses are symbolized. Addresses are
// ELF virtual addresses of it; a caller that has a return address passes one
// inside the call.
type SymbolFile struct {
	Object *object.Object
	Debug  *object.Object // its separate debug file; nil where there is none

	resolver *resolve.Resolver
}

func (f *SymbolFile) close() error {
	err := errors.Join(f.resolver.Close(), f.Object.Close())
	if f.Debug != nil {
		err = errors.Join(err, f.Debug.Close())
	}
	return err
}

// Problems are what was wrong so far with debug information or symbols.
func (f *SymbolFile) Problems() []string { return f.resolver.Problems() }

// Frames returns the functions at an address, innermost first, with the names
// that stacks have. There are none where nothing is known.
func (f *SymbolFile) Frames(address uint64) []symbol.Frame {
	frames, _ := f.resolver.Frames(nil, address) // the error is always nil
	return frames
}

// FramesLLVM appends the frames at an address as llvm-symbolizer has them, one
// at least: what DWARF says, and where linkage says so the last one has the name
// and start of the symbol that llvm-symbolizer takes. What nothing is known of
// without DWARF and that symbol is then as in Frames.
//
// LinkageName is the raw name, and Name the DW_AT_name where there is no
// linkage name.
func (f *SymbolFile) FramesLLVM(dst []symbol.Frame, address uint64, linkage bool) []symbol.Frame {
	frames := f.resolver.Described(dst, address)
	described := len(frames) > len(dst)
	if !described {
		frames = append(frames, symbol.Frame{})
	}
	last := &frames[len(frames)-1]
	if !linkage {
		return frames
	}
	s, ok := f.resolver.Aliases().LLVM(address)
	switch {
	case ok:
		last.LinkageName = symbol.StripVersion(s.Name)
		last.Start, last.HasStart = s.Start, true
		if last.File == "" {
			last.File = s.File
		}
	case !described && f.hasMore():
		if known := f.Frames(address); len(known) > 0 {
			return append(dst, rawNames(known)...)
		}
	}
	return frames
}

// FramesGNU appends the frames at an address as addr2line has them, without
// inlines a single one; none where it knows nothing. A function without a
// linkage name has that of the symbol that addr2line takes, where no call is
// inlined into it.
func (f *SymbolFile) FramesGNU(dst []symbol.Frame, address uint64, inlines bool) []symbol.Frame {
	section, ok := f.sectionAt(address)
	if !ok {
		return dst
	}
	n := len(dst)
	frames := f.resolver.Described(dst, address)
	s, ok := f.resolver.Aliases().GNU(section, address)
	if len(frames) == n {
		if ok {
			return append(dst, symbol.Frame{LinkageName: s.Name, Start: s.Start, HasStart: true, File: s.File})
		}
		if f.hasMore() {
			return append(dst, rawNames(f.Frames(address))...)
		}
		return dst
	}
	if !inlines {
		frames = frames[:n+1]
	}
	if first := &frames[n]; ok && !first.Inlined && len(frames) == n+1 && first.LinkageName == "" {
		first.LinkageName = s.Name
		if first.File == "" {
			first.File = s.File
		}
	}
	return frames
}

// hasMore says whether names may be elsewhere than in DWARF and the object's own
// symbols: in its debug file, in MiniDebugInfo or in the Go runtime's table.
func (f *SymbolFile) hasMore() bool {
	if f.Debug != nil || f.Object.Section(".gnu_debugdata") != nil {
		return true
	}
	return f.Object.Section(".gopclntab") != nil || f.Object.Section(".data.rel.ro.gopclntab") != nil
}

// rawNames gives frames of symbols the raw names that they have in the table.
func rawNames(frames []symbol.Frame) []symbol.Frame {
	for i := range frames {
		if f := &frames[i]; f.LinkageName == "" {
			f.LinkageName = f.Function
		}
	}
	return frames
}

// sectionAt is the section of the memory image that holds an address.
func (f *SymbolFile) sectionAt(address uint64) (uint32, bool) {
	for _, s := range f.Object.Sections() {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_TLS == 0 && address >= s.Address && address-s.Address < s.Size {
			return uint32(s.Index), true
		}
	}
	return 0, false
}

// A Datum is what is known of the data at an address.
type Datum struct {
	symtab.Named // the symbol that holds it; the zero Named where none does
	// DeclFile and DeclLine are where the variable is declared. Without debug
	// information of it they are the symbol's file and 0.
	DeclFile string
	DeclLine int
}

// Data returns the symbol of data or code that holds an address, and where the
// variable there is declared, as llvm-symbolizer has it: without a file where
// the number of that is in the abbreviation (DW_FORM_implicit_const), and for
// the first byte only of a variable that completes a declaration, as static
// members do.
func (f *SymbolFile) Data(address uint64) Datum {
	var d Datum
	d.Named, _ = f.resolver.Aliases().LLVM(address)
	d.DeclFile = d.File
	v, ok := f.resolver.Variable(address, symbol.StripVersion(d.Name))
	if !ok || v.Line == 0 || v.Completes && address != v.Start {
		return d
	}
	d.DeclFile, d.DeclLine = v.File, v.Line
	if v.ImplicitFile {
		d.DeclFile = ""
	}
	return d
}

// Locals returns the variables and parameters of the function, or of the inlined
// call, at an address; see dwarf.Reader.Locals. There are none without DWARF.
func (f *SymbolFile) Locals(address uint64) []symbol.Local { return f.resolver.Locals(address) }

// Lookup returns the symbols of a raw name.
func (f *SymbolFile) Lookup(name string) []symtab.Named { return f.resolver.Aliases().Find(name) }
