// Package resolve puts together what DWARF and symbol tables say of an object.
package resolve

import (
	"errors"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/symbol/symtab"
)

// maxProblems bounds the list of problems.
const maxProblems = 32

// A Resolver answers from DWARF where an object has it, else from its symbols.
// It implements symbol.Source and may be used concurrently.
type Resolver struct {
	o, debug *object.Object

	symbols func() *symtab.Table
	dwarf   func() *dwarf.Reader // nil inside: none

	mu       sync.Mutex
	problems []string
}

// New makes a resolver of an object and its separate debug file, which may be
// nil. Nothing is read until the first question.
func New(o, debug *object.Object) *Resolver {
	r := &Resolver{o: o, debug: debug}
	r.symbols = sync.OnceValue(r.openSymbols)
	r.dwarf = sync.OnceValue(r.openDWARF)
	return r
}

func (r *Resolver) openSymbols() *symtab.Table {
	t, err := symtab.New(r.o, r.debug)
	if err != nil {
		r.problem(err.Error())
	}
	return t
}

// openDWARF takes the debug file's DWARF, else the object's own.
func (r *Resolver) openDWARF() *dwarf.Reader {
	for _, o := range []*object.Object{r.debug, r.o} {
		if o == nil {
			continue
		}
		d, err := dwarf.New(o)
		if err == nil {
			return d
		}
		if !errors.Is(err, dwarf.ErrNoDebugInfo) {
			r.problem(err.Error())
		}
	}
	return nil
}

// problem notes a sentence once.
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
	d := r.dwarf()
	if d != nil {
		for _, p := range d.Problems() {
			r.problem(p)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.problems...)
}

// Frames appends the frames at an ELF virtual address; see symbol.Source. DWARF
// that cannot be read becomes a problem, and symbols answer: the error is
// always nil.
//
// The physical function has its name from DWARF. Where DWARF has none it is the
// symbol's, and so it is where the compiler cut the function or made a clone of
// it (f.cold, f.part.0, f.isra.0): then the symbol says more, and says where
// that piece begins.
func (r *Resolver) Frames(dst []symbol.Frame, address uint64) ([]symbol.Frame, error) {
	before := len(dst)
	if d := r.dwarf(); d != nil {
		var err error
		if dst, err = d.Frames(dst, address); err != nil {
			r.problem(err.Error())
		}
	}
	if len(dst) == before {
		return r.symbols().Frames(dst, address)
	}
	last := &dst[len(dst)-1]
	if last.Inlined {
		return dst, nil
	}
	s, ok := r.symbols().Function(address)
	if !ok {
		return dst, nil
	}
	name := last.LinkageName
	if name == "" {
		name = last.Function
	}
	switch {
	case last.Function == "" || isPieceOf(s.Name, name):
		last.Function, last.LinkageName = symtab.Names(s.Name)
		last.Start, last.HasStart = s.Start, true
	case !last.HasStart:
		last.Start, last.HasStart = s.Start, true
	}
	if last.LinkageName == "" && last.Function != s.Name && symbol.Demangle(s.Name) != last.Function && last.HasStart && last.Start == s.Start {
		// C linkage inside a namespace, or a language that does not say.
		if endsWith(last.Function, s.Name) {
			last.LinkageName = s.Name
		}
	}
	return dst, nil
}

// isPieceOf says whether a symbol names a clone or a part of a function.
func isPieceOf(symbol, function string) bool {
	rest, ok := strings.CutPrefix(symbol, function)
	return ok && strings.HasPrefix(rest, ".")
}

func endsWith(qualified, name string) bool {
	return strings.HasSuffix(qualified, "::"+name)
}

// Function returns the bounds of the function that holds an ELF virtual
// address, from the symbols; see symtab.Table.Function.
func (r *Resolver) Function(address uint64) (symbol.Symbol, bool) {
	return r.symbols().Function(address)
}
