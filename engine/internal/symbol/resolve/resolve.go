// SPDX-License-Identifier: Apache-2.0

// Package resolve names the code of an object from a list of sources of names, in this
// order: DWARF, which may be in the object files of a program of macOS, a PDB file, the table of the Go runtime, symbol tables.
package resolve

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/debugmap"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/gopclntab"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdbtypes"
	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// maxProblems bounds the list of problems.
const maxProblems = 32

// Resolver answers from the first of an object's sources of names that knows an address. It
// implements symbol.Source and may be used concurrently.
type Resolver struct {
	o, debug *object.Object
	options  dwarf.Options

	sources []*source // in the order of preference
	lists   []*source // of functions, likewise

	symbols   func() *symtab.Table
	dwarf     func() *dwarf.Reader    // returns nil where there is none
	pdb       func() *pdb.File        // returns nil where there is none
	golang    func() *gopclntab.Table // returns nil where there is none
	variables func() *dwarf.Reader    // of the PDB file; returns nil where there is none

	damaged     atomic.Bool                  // there is debug information that cannot be read
	objectFiles atomic.Pointer[dwarf.Reader] // of the object files of a program, once it is open

	table atomic.Pointer[symtab.Table] // once it is read

	mu       sync.Mutex
	opened   []debugReader // once they are open
	problems []string
}

// New returns a resolver of an object and its separate debug file, which may be nil.
// Nothing is read until the first query.
func New(o, debug *object.Object) *Resolver { return NewWith(o, debug, dwarf.Options{}) }

// NewWith is New with options for finding the files that the debug information leads to.
func NewWith(o, debug *object.Object, options dwarf.Options) *Resolver {
	r := &Resolver{o: o, debug: debug, options: options}
	r.symbols = sync.OnceValue(r.openSymbols)
	r.dwarf = sync.OnceValue(r.openDWARF)
	r.pdb = sync.OnceValue(r.openPDB)
	r.golang = sync.OnceValue(r.openGo)
	r.variables = sync.OnceValue(r.openGenerated)
	dwarf := describing(r.dwarf)  // of the debug file, else of the object, else of the object files of a program of macOS
	pdb := listing(r.pdb)         // likewise
	golang := listing(r.golang)   // .gopclntab
	symbols := listing(r.symbols) // .symtab, .dynsym and MiniDebugInfo of both
	r.sources, r.lists = []*source{dwarf, pdb, golang, symbols}, []*source{pdb, symbols, golang}
	return r
}

func (r *Resolver) openSymbols() *symtab.Table {
	t, err := symtab.New(r.o, r.debug)
	r.Note(err)
	r.table.Store(t)
	return t
}

// MemorySize is about how many bytes the data read so far takes, without unpacked sections,
// which belong to the objects.
func (r *Resolver) MemorySize() (size uint64) {
	if t := r.table.Load(); t != nil {
		size = t.MemorySize()
	}
	for _, d := range r.readers() {
		size += d.MemorySize()
	}
	return size
}

// debugReader is a reader of debug information, DWARF or PDB.
type debugReader interface {
	MemorySize() uint64
	Problems() []string
	ReleasePages()
	Close() error
}

// readers returns the readers that are open.
func (r *Resolver) readers() []debugReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened
}

// keep adds a reader to those that are open.
func (r *Resolver) keep(d debugReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = append(r.opened, d)
}

// openDWARF opens the debug file's DWARF, else the object's own, else that of the object files of a program of macOS.
func (r *Resolver) openDWARF() *dwarf.Reader {
	for _, o := range []*object.Object{r.debug, r.o} {
		if o == nil {
			continue
		}
		d, err := dwarf.NewWith(o, r.options)
		if err == nil {
			r.keep(d)
			return d
		}
		if !errors.Is(err, dwarf.ErrNoDebugInfo) {
			r.damaged.Store(true)
			r.Note(err)
		}
	}
	d := debugmap.New(r.o, r.options, r.Note)
	if d != nil {
		r.keep(d)
		r.objectFiles.Store(d)
	}
	return d
}

// UsesObjectFiles reports whether debug information in the object files of a program of macOS was used so far.
func (r *Resolver) UsesObjectFiles() bool {
	d := r.objectFiles.Load()
	return d != nil && d.UsesObjectFiles()
}

// openPDB opens the PDB file that is the debug file, or the object itself.
func (r *Resolver) openPDB() *pdb.File {
	o := r.pdbObject()
	if o == nil {
		return nil
	}
	base, _ := r.o.ImageBase()
	f, err := pdb.OpenObject(o, base)
	if err != nil {
		r.damaged.Store(true)
		r.Note(err)
		return nil
	}
	r.keep(f)
	return f
}

// pdbObject returns the object that is a PDB file; nil where none is.
func (r *Resolver) pdbObject() *object.Object {
	for _, o := range []*object.Object{r.debug, r.o} {
		if o != nil && o.IsPDB() {
			return o
		}
	}
	return nil
}

// openGenerated makes a reader of the variables and types of the PDB file.
func (r *Resolver) openGenerated() *dwarf.Reader {
	f := r.pdb()
	if f == nil {
		return nil
	}
	d := pdbtypes.New(f, r.Note)
	if d != nil {
		r.keep(d)
	}
	return d
}

// Damaged reports whether unreadable debug information was met so far. Problems tell why.
func (r *Resolver) Damaged() bool { return r.damaged.Load() }

// Close closes the files that the debug information led to, but not the object and its
// debug file.
func (r *Resolver) Close() error {
	var failed []error
	for _, d := range r.readers() {
		failed = append(failed, d.Close())
	}
	return errors.Join(failed...)
}

func (r *Resolver) openGo() *gopclntab.Table {
	t, err := gopclntab.New(r.o)
	if !errors.Is(err, gopclntab.ErrNoTable) {
		r.Note(err)
	}
	return t
}

// HasGo reports whether there is a table of Go's runtime, which has names and lines.
func (r *Resolver) HasGo() bool { return r.golang() != nil }

// Note adds an error to the Problems, once; nil is none. It is for errors of callers that
// use DWARF directly.
func (r *Resolver) Note(err error) {
	if err != nil {
		r.problem(err.Error())
	}
}

func (r *Resolver) problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) == maxProblems {
		return
	}
	for _, p := range r.problems {
		if p == text {
			return
		}
	}
	r.problems = append(r.problems, text)
}

// Problems are the faults of the debug information or the symbols so far, sentences that
// name the file; answers leave the faulty parts out.
func (r *Resolver) Problems() []string {
	for _, d := range r.readers() {
		for _, p := range d.Problems() {
			r.problem(p)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.problems...)
}

// Frames appends the frames at an ELF virtual address from the first source that has some;
// see symbol.Source. A part that a source cannot read becomes a problem, and the next
// source answers: the error is always nil.
//
// The physical function has its name from DWARF, except where its symbol has a fuller one,
// and where the compiler cut or cloned the function: the symbol tells that, and where the
// piece begins.
func (r *Resolver) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	before := len(dst)
	for _, s := range r.sources {
		names := s.names()
		if names == nil {
			continue
		}
		var err error
		if dst, err = names.Frames(dst, address); err != nil {
			r.problem(err.Error())
		}
		if len(dst) > before {
			if s.isCompleted {
				r.complete(dst[before:], address)
			}
			break
		}
	}
	return dst, nil
}

// FramesIn is Frames for one of several functions with the same code, an entry of
// dwarf.Reader.Equals.
func (r *Resolver) FramesIn(dst []trace.Symbol, address uint64, function dwarf.Entry) []trace.Symbol {
	dst, err := r.dwarf().FramesIn(dst, address, function)
	r.Note(err)
	return dst
}

// complete improves the physical function, the last of the frames at an address, by its
// symbol.
func (r *Resolver) complete(frames []trace.Symbol, address uint64) {
	last := &frames[len(frames)-1]
	if last.Inlined || last.Equals > 0 {
		return // the symbol may belong to another function with the same code
	}
	s, ok := r.symbols().Function(address)
	if !ok {
		return
	}
	if last.File == "" && len(frames) == 1 {
		last.File = r.symbols().File(address)
	}
	completeName(last, &s)
}

// Complete improves a function that DWARF names at an address by its symbol, as Frames
// does.
func (r *Resolver) Complete(f *trace.Symbol, address uint64) {
	if s, ok := r.symbols().Function(address); ok {
		completeName(f, &s)
	}
}

// completeName improves the name of a physical function by its symbol.
func completeName(last *trace.Symbol, s *symbol.Symbol) {
	if last.IsDecoded {
		completeDecoded(last, s)
		return
	}
	if last.Function == "" || isFullerName(s, last) {
		last.Function, last.LinkageName = symtab.Names(s.Name)
		last.Start, last.HasStart = s.Start, true
	} else if !last.HasStart {
		last.Start, last.HasStart = s.Start, true
	} else if last.LinkageName == "" && s.Start == last.Start && strings.HasSuffix(last.Function, "::"+s.Name) {
		last.LinkageName = s.Name // C linkage inside a namespace
	}
}

// completeDecoded adds to a decoded name the part or the copy that the symbol names.
// Compilers number nested functions.
func completeDecoded(last *trace.Symbol, s *symbol.Symbol) {
	rest, isPart := strings.CutPrefix(s.Name, last.LinkageName)
	if !isPart || rest != "" && rest[0] != '.' {
		return
	}
	last.LinkageName, last.Start, last.HasStart = s.Name, s.Start, true
	for strings.HasPrefix(rest, ".") && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' {
		rest = strings.TrimLeft(rest[1:], "0123456789")
	}
	if rest != "" {
		last.Function += " (" + rest + ")"
	}
}

// MayBeEqual reports whether the debug information may have several functions for the code
// at an address: a linker that merged their code kept their symbols.
func (r *Resolver) MayBeEqual(address uint64) bool {
	return r.dwarf() != nil && r.symbols().IsShared(address)
}

// ReleasePages releases the pages of the mapped files that were read so far. They are read again
// when needed.
func (r *Resolver) ReleasePages() {
	for _, d := range r.readers() {
		d.ReleasePages()
	}
	if o := r.pdbObject(); o != nil {
		o.ReleasePages(o.Data())
	}
}

// DWARF returns the reader of the object's debugging information, which may be in the object files that a program of
// macOS was linked of; nil where it has none.
func (r *Resolver) DWARF() *dwarf.Reader { return r.dwarf() }

// PDB returns the PDB file of the object; nil where there is none.
func (r *Resolver) PDB() *pdb.File { return r.pdb() }

// Variables returns the reader of the object's variables and types: of DWARF, else of the PDB
// file, which is translated when it is needed; nil where there is neither.
func (r *Resolver) Variables() *dwarf.Reader {
	if d := r.dwarf(); d != nil {
		return d
	}
	return r.variables()
}
