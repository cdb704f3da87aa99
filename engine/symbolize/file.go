// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"errors"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/resolve"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
)

// File is a code object whose addresses are symbolized. Addresses are
// ELF virtual addresses of it, of a PE file the image base that it prefers plus
// the RVA, and of a PDB file RVAs; a caller that has a return address passes one
// inside the call.
type File struct {
	Object *object.Object
	Debug  *object.Object // its separate debug file; nil where there is none

	file     *object.Object // Object, or the same before its sections were given addresses
	resolver *resolve.Resolver
	symbols  func() *aliases
	plugins  func() (*plugin.Manager, error) // see Options
	answers  []string                        // of servers that lack its debug file: see object.Answers
	isNoName atomic.Bool                     // an answer had no function
	isNoLine atomic.Bool                     // an answer had no line
}

// A Lack is a file without debug information, for lack of which answers are incomplete.
type Lack struct {
	Path    string
	BuildID []byte
	Answers []string // of the servers that lack it
	// HasNames is true where all answers have functions, and lines are missing alone.
	HasNames bool
	IsMachO  bool // it is a Mach-O file
}

// note notes what an answer about the file's code lacks.
func (f *File) note(frames []trace.Symbol) {
	for i := range frames {
		if s := &frames[i]; s.Function == "" && s.LinkageName == "" && s.Name == "" {
			f.isNoName.Store(true)
		} else if s.Line == 0 {
			f.isNoLine.Store(true)
		}
	}
}

// lack returns what answers lack; ok is false where that is nothing, or no other file would give
// it.
func (f *File) lack(path string) (l Lack, ok bool) {
	if f.Debug != nil || f.Object.HasDebugInfo() || f.resolver.DWARF() != nil || f.Object.Section(".gopclntab") != nil {
		return l, false
	}
	isNoName := f.isNoName.Load() && f.Object.Section(".symtab") == nil
	l = Lack{Path: path, BuildID: f.Object.BuildID(), Answers: f.answers, HasNames: !isNoName, IsMachO: f.Object.IsMachO()}
	return l, isNoName || f.isNoLine.Load()
}

// readSymbols reads the names that tools choose from: the symbols of the object itself,
// without its debug file.
func (f *File) readSymbols() *aliases {
	t, err := newAliases(f.Object)
	f.resolver.Note(err)
	return t
}

func (f *File) close() error {
	err := errors.Join(f.resolver.Close(), f.file.Close())
	if f.Debug != nil {
		err = errors.Join(err, f.Debug.Close())
	}
	return err
}

// Names are the names of the file's code, and its debug information.
func (f *File) Names() *resolve.Resolver { return f.resolver }

// Problems are the problems so far with debug information or symbols.
func (f *File) Problems() []string { return f.resolver.Problems() }

// Frames returns the functions at an address, innermost first, with the names
// that stacks have. There are none where nothing is known.
func (f *File) Frames(address uint64) []trace.Symbol {
	frames, _ := f.resolver.Frames(nil, address) // the error is always nil
	return frames
}

// pdbFrames appends the functions at an address from the PDB file as llvm-symbolizer has them: it
// does not tell where functions begin. Of a linkage name it has the last one alone. Without linkage
// the names come from the records of functions.
func (f *File) pdbFrames(dst []trace.Symbol, address uint64, linkage bool) []trace.Symbol {
	p := f.resolver.PDB()
	if p == nil {
		return dst
	}
	n := len(dst)
	dst, err := p.Frames(dst, address)
	f.resolver.Note(err)
	for i := range dst[n:] {
		s := &dst[n+i]
		s.Start, s.HasStart, s.StartFile, s.StartLine = 0, false, "", 0
		if !linkage || s.Inlined {
			s.LinkageName = ""
		}
	}
	return dst
}

// described appends the functions at an address from DWARF alone. Function is "" for a name
// that looks mangled: each tool demangles it in its own style. See dwarf.Reader.RawFrames for
// isFirst.
func (f *File) described(dst []trace.Symbol, address uint64, isFirst bool) []trace.Symbol {
	d := f.resolver.DWARF()
	if d == nil {
		return dst
	}
	dst, err := d.RawFrames(dst, address, isFirst)
	f.resolver.Note(err)
	return dst
}

// hasMore reports whether names may be elsewhere than in DWARF and the object's own symbols:
// in its debug file, in MiniDebugInfo or in the Go runtime's table.
func (f *File) hasMore() bool {
	if f.Debug != nil || f.Object.Section(".gnu_debugdata") != nil {
		return true
	}
	return f.Object.Section(".gopclntab") != nil || f.Object.Section(".data.rel.ro.gopclntab") != nil
}

// rawNames sets the names of frames from symbols to the raw names of the table.
func rawNames(frames []trace.Symbol) []trace.Symbol {
	for i := range frames {
		if f := &frames[i]; f.LinkageName == "" {
			f.LinkageName = f.Function
		}
	}
	return frames
}

// Locals returns the variables and parameters of the function, or of the inlined
// call, at an address; see dwarf.Reader.Locals. There are none without DWARF.
func (f *File) Locals(address uint64) []symbol.Local {
	d := f.resolver.Variables()
	if d == nil {
		return nil
	}
	list, err := d.Locals(nil, address)
	f.resolver.Note(err)
	return list
}

// Lookup returns the symbols of a raw name, by address.
func (f *File) Lookup(name string) []Named { return f.symbols().find(name) }
