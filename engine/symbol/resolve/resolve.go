// SPDX-License-Identifier: Apache-2.0

// Package resolve says what code of an object is called, by a list of sources of names:
// DWARF, the table of the Go runtime, symbol tables. They are asked in that order.
package resolve

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/symbol/gopclntab"
	"github.com/unwindd/unwindd/engine/symbol/symtab"
)

// maxProblems bounds the list of problems.
const maxProblems = 32

// A Resolver answers from the sources of names that an object has, the first one
// that knows an address.
// It implements symbol.Source and may be used concurrently.
type Resolver struct {
	o, debug *object.Object
	options  dwarf.Options

	sources []*source // in the order in which they are asked

	symbols func() *symtab.Table
	dwarf   func() *dwarf.Reader    // gives nil where there is none
	golang  func() *gopclntab.Table // likewise

	damaged atomic.Bool // there is DWARF that cannot be read

	table atomic.Pointer[symtab.Table] // once it is read

	mu       sync.Mutex
	reader   *dwarf.Reader // once it is open
	problems []string
}

// New makes a resolver of an object and its separate debug file, which may be
// nil. Nothing is read until the first question.
func New(o, debug *object.Object) *Resolver { return NewWith(o, debug, dwarf.Options{}) }

// NewWith is New where files that the debug information leads to are found as
// options say.
func NewWith(o, debug *object.Object, options dwarf.Options) *Resolver {
	r := &Resolver{o: o, debug: debug, options: options}
	r.symbols = sync.OnceValue(r.openSymbols)
	r.dwarf = sync.OnceValue(r.openDWARF)
	r.golang = sync.OnceValue(r.openGo)
	r.sources = []*source{
		describing(r.dwarf), // of the debug file, else of the object
		listing(r.golang),   // .gopclntab
		listing(r.symbols),  // .symtab, .dynsym and MiniDebugInfo of both
	}
	return r
}

func (r *Resolver) openSymbols() *symtab.Table {
	t, err := symtab.New(r.o, r.debug)
	r.Note(err)
	r.table.Store(t)
	return t
}

// MemorySize is about how many bytes are kept of what was read so far; what sections
// were unpacked to is the objects'.
func (r *Resolver) MemorySize() (size uint64) {
	if t := r.table.Load(); t != nil {
		size = t.MemorySize()
	}
	r.mu.Lock()
	d := r.reader
	r.mu.Unlock()
	if d != nil {
		size += d.MemorySize()
	}
	return size
}

// openDWARF takes the debug file's DWARF, else the object's own.
func (r *Resolver) openDWARF() *dwarf.Reader {
	for _, o := range []*object.Object{r.debug, r.o} {
		if o == nil {
			continue
		}
		d, err := dwarf.NewWith(o, r.options)
		if err == nil {
			r.mu.Lock()
			r.reader = d
			r.mu.Unlock()
			return d
		}
		if !errors.Is(err, dwarf.ErrNoDebugInfo) {
			r.damaged.Store(true)
			r.Note(err)
		}
	}
	return nil
}

// Damaged says whether debug information was met by now that is there and cannot
// be read. Problems say why.
func (r *Resolver) Damaged() bool { return r.damaged.Load() }

// Close closes the files that the debug information led to. The object and its
// debug file are their owner's.
func (r *Resolver) Close() error {
	r.mu.Lock()
	d := r.reader
	r.mu.Unlock()
	if d == nil {
		return nil
	}
	return d.Close()
}

func (r *Resolver) openGo() *gopclntab.Table {
	t, err := gopclntab.New(r.o)
	if !errors.Is(err, gopclntab.ErrNoTable) {
		r.Note(err)
	}
	return t
}

// HasGo says whether a table of Go's runtime is there, which has names and lines.
func (r *Resolver) HasGo() bool { return r.golang() != nil }

// Note keeps an error among the Problems, once; nil is none. It is for errors of
// DWARF that somebody asks directly.
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

// Problems are what was wrong so far with the debug information or the symbols,
// sentences that name the file; what they concern was answered without.
func (r *Resolver) Problems() []string {
	r.mu.Lock()
	d := r.reader
	r.mu.Unlock()
	if d != nil {
		for _, p := range d.Problems() {
			r.problem(p)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.problems...)
}

// Frames appends the frames at an ELF virtual address; see symbol.Source. They are
// those of the first source that has some. What a source cannot read becomes a
// problem, and the next one answers: the error is always nil.
//
// The physical function has its name from DWARF, but from its symbol where DWARF
// has none or less of one, and where the compiler cut or cloned the function:
// the symbol says that, and where the piece begins.
func (r *Resolver) Frames(dst []symbol.Frame, address uint64) ([]symbol.Frame, error) {
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

// FramesIn is Frames where several functions have the same code: as one of them, which
// dwarf.Reader.Equals gave, has it.
func (r *Resolver) FramesIn(dst []symbol.Frame, address uint64, function dwarf.Entry) []symbol.Frame {
	dst, err := r.dwarf().FramesIn(dst, address, function)
	r.Note(err)
	return dst
}

// complete gives the physical function, the last of the frames at an address, what
// its symbol says better.
func (r *Resolver) complete(frames []symbol.Frame, address uint64) {
	last := &frames[len(frames)-1]
	if last.Inlined || last.Equals > 0 {
		return // the symbol may be that of another function with the same code
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

// Complete gives a function that DWARF names at an address what its symbol says better,
// as Frames does.
func (r *Resolver) Complete(f *symbol.Frame, address uint64) {
	if s, ok := r.symbols().Function(address); ok {
		completeName(f, &s)
	}
}

// completeName gives a physical function what its symbol says better.
func completeName(last *symbol.Frame, s *symbol.Symbol) {
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

// completeDecoded gives a function whose name was decoded the part or the copy that its
// symbol is of. Compilers number functions that are in others.
func completeDecoded(last *symbol.Frame, s *symbol.Symbol) {
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

// MayBeEqual reports whether the code at an address may be that of several functions, of which
// debug information tells: a linker that made one code of them left their symbols.
func (r *Resolver) MayBeEqual(address uint64) bool {
	return r.dwarf() != nil && r.symbols().IsShared(address)
}

// Rest gives back the memory of what lies in the mapped file and was read so far. It is
// read again as it is needed.
func (r *Resolver) Rest() {
	r.mu.Lock()
	d := r.reader
	r.mu.Unlock()
	if d != nil {
		d.Rest()
	}
}

// DWARF is the reader of the object's debugging information; nil where it has
// none.
func (r *Resolver) DWARF() *dwarf.Reader { return r.dwarf() }
