// Package resolve puts together what DWARF and symbol tables say of an object.
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

// A Resolver answers from DWARF where an object has it, else from the table of
// the Go runtime, else from its symbols.
// It implements symbol.Source and may be used concurrently.
type Resolver struct {
	o, debug *object.Object
	options  dwarf.Options

	symbols func() *symtab.Table
	aliases func() *symtab.Aliases
	dwarf   func() *dwarf.Reader    // gives nil where there is none
	golang  func() *gopclntab.Table // likewise

	damaged atomic.Bool // there is DWARF that cannot be read

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
	r.aliases = sync.OnceValue(r.openAliases)
	r.dwarf = sync.OnceValue(r.openDWARF)
	r.golang = sync.OnceValue(r.openGo)
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
		d, err := dwarf.NewWith(o, r.options)
		if err == nil {
			r.mu.Lock()
			r.reader = d
			r.mu.Unlock()
			return d
		}
		if !errors.Is(err, dwarf.ErrNoDebugInfo) {
			r.damaged.Store(true)
			r.problem(err.Error())
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
	if err != nil && !errors.Is(err, gopclntab.ErrNoTable) {
		r.problem(err.Error())
	}
	return t
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

// Frames appends the frames at an ELF virtual address; see symbol.Source. DWARF
// that cannot be read becomes a problem, and symbols answer: the error is
// always nil.
//
// The physical function has its name from DWARF, but from its symbol where DWARF
// has none or less of one, and where the compiler cut or cloned the function:
// the symbol says that, and where the piece begins.
func (r *Resolver) Frames(dst []symbol.Frame, address uint64) ([]symbol.Frame, error) {
	before := len(dst)
	if d := r.dwarf(); d != nil {
		var err error
		if dst, err = d.Frames(dst, address); err != nil {
			r.problem(err.Error())
		}
	}
	if len(dst) == before {
		if t := r.golang(); t != nil {
			var err error
			if dst, err = t.Frames(dst, address); err != nil {
				r.problem(err.Error())
			}
			if len(dst) > before {
				return dst, nil
			}
		}
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
	if last.File == "" && len(dst) == before+1 {
		last.File = r.symbols().File(address)
	}
	if last.Function == "" || says(&s, last) {
		last.Function, last.LinkageName = symtab.Names(s.Name)
		last.Start, last.HasStart = s.Start, true
	} else if !last.HasStart {
		last.Start, last.HasStart = s.Start, true
	} else if last.LinkageName == "" && s.Start == last.Start && strings.HasSuffix(last.Function, "::"+s.Name) {
		last.LinkageName = s.Name // C linkage inside a namespace
	}
	return dst, nil
}

// says tells whether the symbol at an address is a fuller name of the function
// that DWARF has there. It is where the compiler cut a piece out of the
// function or cloned it (f.cold, f.part.0, f.isra.0), and where DWARF has no
// linkage name and the symbol is a mangled name of the same function: gcc
// leaves the linkage names of static functions out.
func says(s *symbol.Symbol, f *symbol.Frame) bool {
	name := f.LinkageName
	if name == "" {
		name = f.Function
	}
	if rest, ok := strings.CutPrefix(s.Name, name); ok {
		return strings.HasPrefix(rest, ".")
	}
	if f.LinkageName != "" {
		// DWARF may have the unified constructor (C4) where the piece is of the
		// complete or the base one.
		whole, _, cut := strings.Cut(s.Name, ".")
		return cut && symbol.Demangle(whole) == f.Function
	}
	if f.HasStart && f.Start != s.Start && !strings.Contains(s.Name, ".") {
		return false
	}
	readable := symbol.Demangle(s.Name)
	return readable != s.Name && contains(readable, plain(f.Function))
}

// plain is the last component of a function's qualified name, without template
// arguments.
func plain(name string) string {
	depth, start, end := 0, 0, len(name)
	for i := 0; i < len(name); i++ {
		if depth == 0 && strings.HasPrefix(name[i:], "operator") && (i == 0 || !isWord(name[i-1])) {
			return name[i:]
		}
		switch name[i] {
		case '<':
			if depth == 0 {
				end = i
			}
			depth++
		case '>':
			depth--
		case ':':
			if depth == 0 {
				start, end = i+1, len(name)
			}
		}
	}
	if start > end {
		return name
	}
	return name[start:end]
}

// contains says whether a readable name has a component.
func contains(readable, component string) bool {
	if component == "" {
		return false
	}
	for rest := readable; ; {
		i := strings.Index(rest, component)
		if i < 0 {
			return false
		}
		end := i + len(component)
		if (i == 0 || !isWord(rest[i-1])) && (end == len(rest) || !isWord(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// Function returns the bounds of the function that holds an ELF virtual
// address, from the symbols, see symtab.Table.Function, else from the table of
// the Go runtime.
func (r *Resolver) Function(address uint64) (symbol.Symbol, bool) {
	if s, ok := r.symbols().Function(address); ok {
		return s, true
	}
	if t := r.golang(); t != nil {
		return t.Function(address)
	}
	return symbol.Symbol{}, false
}

// DWARF is the reader of the object's debugging information; nil where it has
// none.
func (r *Resolver) DWARF() *dwarf.Reader { return r.dwarf() }
