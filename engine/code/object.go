// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"debug/elf"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/symbol/resolve"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// An Object is a code object at work: its rows and names, and what its
// architecture's plugin said of it. Its parts are made when they are first
// needed. It may be used concurrently.
//
// Addresses are ELF virtual addresses, or those of a layout; see Offset.
type Object struct {
	// File is what was read; nil: the code is in no file.
	File *object.Object

	library   *Library
	cached    *rowCache // the library's
	key       objectKey // under which it is shared; the zero key of one that is not
	users     int       // modules; under the library's mu
	used      atomic.Uint64
	bytes     atomic.Int64 // about how much memory it keeps
	fileBytes atomic.Int64 // how much of that is of its files
	readSize  atomic.Int64 // of functions in read and covered
	number    uint64       // of no other object of this process: plugins keep what they find in one
	path      string
	arch      string
	processor string
	finder    object.Finder
	isLoose   bool            // see IsLoose
	buildID   []byte          // that the target says
	symbolID  target.SymbolID // likewise; zero: it does not

	laid       *object.Object // File, with the addresses that this object has inside
	layProblem error          // why it has none

	// Of an object that is one target's alone.
	module       *Module
	segments     []target.Segment
	target       sdk.Engine
	readMemory   func(address uint64, buf []byte) (int, error)
	made         *Made
	companion    func(suffix string) (path string, data []byte, err error)
	sourceModule func() ([]byte, error)

	sites     cache[uint64, CallSite]        // by return address
	names     cache[nameKey, []symbol.Frame] // see Names
	calls     cache[nameKey, *Call]          // by return address
	variables cache[nameKey, *Variables]     // by address; nil where no function is described
	scoped    cache[uint64, dwarf.Entry]     // the function at an address
	byName    namedFunctions
	data      dataSymbols

	namersOnce sync.Once
	namers     []symbol.Source // see nameSources

	mu        sync.Mutex
	machine   *Machine // nil until it is needed
	isOpen    bool     // sources and the plugin's answer are there
	sources   []RowSource
	frames    []FrameTable   // of call frame information
	functions []sdk.Function // about which the plugin said something, by start
	tables    []sdk.RowTable // of the plugin
	checksCFI bool           // the plugin says where the code contradicts call frame information
	defaults  *RuleSet
	placed    []sdk.Variable             // that the plugin describes, by address of the object
	special   map[*sdk.Function]*RuleSet // default rules of single functions
	rows      map[rowKey]*Row
	codeRows  map[uint64]*Row        // see rowOfCode; nil: there is none
	readRows  map[rowKey]*Row        // see ReadRow; nil: there is none
	fromRows  map[[2]uint64]*cfi.Row // see RowFrom; nil: there is none
	problems  []string

	symbolsOnce sync.Once
	symbols     *resolve.Resolver // nil without a file
	debug       object.Found
	debugLaid   *object.Object // the debug file, with the addresses of this object

	glanceOnce sync.Once
	glanced    DebugInfo // see glance

	symbolFileOnce sync.Once
	symbolUse      atomic.Pointer[symbolUse] // nil until it was looked for

	wantSymbolsOnce sync.Once

	watchedOnce sync.Once
	watchedList []sdk.SymbolInfo // see watchedSymbols

	dialects dialectList                // of its expressions
	lanes    map[uint64]*LaneAttributes // by address

	lines lineSource // of the source module

	read    readList          // what was read from the code of whole functions
	covered readList          // what rows cover of functions without known bounds
	left    map[uint64]*Exits // where code goes on to; nil: it is not known

	besideOnce sync.Once
	companions atomic.Pointer[[]Companion] // nil until they were looked for
}

// IsLoose says whether it is code that is in no file, which only snapshots have
// modules for. A scan takes it for no more than other targets' code without a
// module.
func (o *Object) IsLoose() bool { return o.isLoose }

// Name is that of the object's file, with the file that it is in; without one it
// is the path that the target has.
func (o *Object) Name() string {
	if o.File != nil {
		return o.File.Name()
	}
	return o.path
}

// Sections are those of the file, with the addresses of this object; there are none
// without a file.
func (o *Object) Sections() []*object.Section {
	if o.laid == nil {
		return nil
	}
	return o.laid.Sections()
}

// Machine is the object's architecture; nil where no plugin has it.
func (o *Object) Machine() *Machine {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.findMachine()
}

// findMachine is Machine for a caller that holds mu.
func (o *Object) findMachine() *Machine {
	if o.machine == nil {
		o.machine, _ = o.library.Machine(o.arch) // what is asked of it says that there is none
	}
	return o.machine
}

// touch says that the object is used now.
func (o *Object) touch() { o.used.Store(o.library.uses.Add(1)) }

// grow says that the object keeps more memory, and makes room for it.
func (o *Object) grow(bytes int) {
	o.touch()
	read := int64(o.readBytes())
	more := int64(bytes) + read - o.fileBytes.Swap(read)
	o.bytes.Add(more)
	if o.library.bytes.Add(more) > int64(o.library.most) {
		o.library.trim()
	}
}

// readBytes is what was made of the file and of its debug file: sections that were
// decompressed or relocated, symbols, indexes of debug information, and functions
// whose code was read.
func (o *Object) readBytes() (n uint64) {
	n = uint64(o.readSize.Load())
	if o.File == nil {
		return n
	}
	o.mu.Lock()
	debug, symbols := o.debug.Object, o.symbols
	o.mu.Unlock()
	n += o.File.MemorySize()
	if debug != nil {
		n += debug.MemorySize()
	}
	if symbols != nil {
		n += symbols.MemorySize()
	}
	return n
}

// forgetFound forgets what can be found out again.
func (o *Object) forgetFound() {
	o.mu.Lock()
	freed := (len(o.rows)+len(o.codeRows))*rowBytes + len(o.left)*exitBytes
	o.rows, o.codeRows, o.readRows, o.fromRows, o.left, o.lanes = map[rowKey]*Row{}, nil, nil, nil, nil, nil
	o.mu.Unlock()
	freed += o.sites.forget() + o.names.forget() + o.calls.forget() + o.variables.forget() + o.scoped.forget() + o.byName.forget()
	o.bytes.Add(-int64(freed))
	o.library.bytes.Add(-int64(freed))
}

// close closes the files of an object that nobody uses.
func (o *Object) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.symbols != nil {
		_ = o.symbols.Close()
	}
	if o.debug.Object != nil {
		_ = o.debug.Object.Close()
	}
	if list := o.companions.Load(); list != nil {
		for _, c := range *list {
			_ = c.object.Close()
		}
	}
	if o.File != nil {
		_ = o.File.Close()
	}
	if u := o.symbolUse.Load(); u != nil && u.file != nil {
		o.library.symbols.release(u.file)
	}
	o.library.bytes.Add(-o.bytes.Swap(0))
	o.cached.forget(o)
}

// Problem adds a sentence about the object, once.
func (o *Object) Problem(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.problem(format, args...)
}

// problem is Problem for a caller that holds mu.
func (o *Object) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, p := range o.problems {
		if p == text {
			return
		}
	}
	o.problems = append(o.problems, text)
}

// resolver has what debug information and symbols say; nil without a file.
func (o *Object) resolver() *resolve.Resolver {
	o.symbolsOnce.Do(func() {
		if o.File == nil {
			return
		}
		debug := o.finder.FindDebug(o.File)
		laid, err := o.laidLike(debug.Object)
		o.mu.Lock()
		defer o.mu.Unlock()
		// Names may be asked for before the plugin is.
		if o.File.Type() == elf.ET_REL && o.findMachine() != nil {
			o.laid.SetRelocations(o.machine.Description.Relocations)
			if laid != nil {
				laid.SetRelocations(o.machine.Description.Relocations)
			}
		}
		o.debug, o.debugLaid = debug, laid
		o.symbols = resolve.NewWith(o.laid, laid, dwarf.Options{Finder: &o.finder})
		if err != nil {
			o.problem("%v", err)
		}
	})
	return o.symbols
}

// OpenSymbols finds the debug file, and reads the symbols of both: all where names will
// be asked for, else those that the plugin is told about. Whoever asks for a row or a
// name needs them.
func (o *Object) OpenSymbols() {
	r := o.resolver()
	switch {
	case r == nil:
	case !o.library.noNames.Load():
		r.Functions()
	default:
		if m := o.Machine(); m != nil {
			o.watchedSymbols(m)
		}
	}
}

// DWARF is the debug information; nil where there is none.
func (o *Object) DWARF() *dwarf.Reader {
	if r := o.resolver(); r != nil {
		return r.DWARF()
	}
	return nil
}

// UnitDialect is the dialect of the expressions of a unit of .debug_info.
func (o *Object) UnitDialect(u dwarf.Unit) *locexpr.Dialect { return o.dialects.ofUnit(u) }

// Open asks the plugin about the object, once. A plugin that fails is asked again
// by who comes next.
func (o *Object) Open(ctx context.Context) error {
	o.resolver() // finds the debug file, whose .debug_frame counts too
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open(ctx)
}

// ErrOtherMachine says that code is not the thread's to execute.
var ErrOtherMachine = noRow("the module is of another architecture than its thread")

// open is Open for a caller that holds mu, and that has asked for the resolver.
func (o *Object) open(ctx context.Context) error {
	if o.isOpen {
		return nil
	}
	machine := o.findMachine()
	if machine == nil {
		return ErrOtherMachine
	}
	o.defaults = machine.Defaults
	if o.File != nil {
		if err := o.askPlugin(ctx); err != nil {
			return err
		}
	}
	o.openSources()
	o.isOpen = true
	return nil
}

// DefaultRule is the rule of a register that neither a row nor the plugin's answer about
// a function mentions.
func (o *Object) DefaultRule(register uint64) cfi.Rule {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.defaults == nil {
		return cfi.Rule{}
	}
	return o.defaults.Column(register)
}

// askPlugin asks the plugin about the object's file.
func (o *Object) askPlugin(ctx context.Context) error {
	o.File.SetRelocations(o.machine.Description.Relocations)
	answer, err := o.machine.Plugin.OpenObject(ctx, objectEngine{o}, o.openRequest())
	if err != nil {
		return err
	}
	for _, p := range answer.Problems {
		o.problem("%s", p)
	}
	if len(answer.Nested) > 0 && o.File.IsForeign() {
		o.problem("%s holds %d code objects, of which the module does not name one, as FILE#%.200s: they are not used",
			o.File.Name(), len(answer.Nested), answer.Nested[0].Name)
	}
	if o.dialects, err = newDialectList(o.machine, answer); err != nil {
		return err
	}
	if f := o.pe(); f != nil {
		o.defaults = peRules(f)
	} else if answer.DefaultRules != nil {
		o.defaults = NewRuleSet(answer.DefaultRules)
	}
	o.tables, o.checksCFI = answer.Tables, answer.ChecksCFI
	o.takeFunctions(answer.Functions)
	o.takePositions(answer.PositionMaps)
	o.takeVariables(answer.Variables)
	o.special = map[*sdk.Function]*RuleSet{}
	for i := range o.functions {
		if f := &o.functions[i]; f.DefaultRules != nil {
			o.special[f] = NewRuleSet(f.DefaultRules)
		}
	}
	return nil
}

func (o *Object) openRequest() *sdk.OpenObjectRequest {
	f := o.File
	req := &sdk.OpenObjectRequest{
		Object:  o.handle(),
		Path:    o.path,
		Machine: f.Machine(),
		OSABI:   f.OSABI(),
		Flags:   f.Flags(),

		Processor: o.processor,
	}
	for _, p := range o.openCompanions() {
		o.problem("%s", p)
	}
	for i, c := range *o.companions.Load() {
		req.Companions = append(req.Companions, sdk.Companion{Suffix: c.suffix, Object: o.companionHandle(i)})
	}
	for _, s := range f.StandIns() {
		req.Sections = append(req.Sections, sdk.SectionInfo{
			Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Address, Size: s.Size,
		})
	}
	req.Symbols = o.watchedSymbols(o.machine)
	return req
}

// watchedSymbols are the functions that the architecture named: a library has a
// hundred thousand, and the plugin reads the symbol table itself if it wants all.
// One without a size ends where the next function begins, so that is told too.
func (o *Object) watchedSymbols(m *Machine) []sdk.SymbolInfo {
	if o.symbols == nil || len(m.watched) == 0 {
		return nil
	}
	o.watchedOnce.Do(func() {
		if o.library.noNames.Load() {
			if list, ok := o.symbols.Named(m.watched); ok {
				for _, s := range list {
					o.watchedList = append(o.watchedList, o.symbolInfo(&s))
				}
				return
			}
		}
		isUnbounded, last := false, uint64(0)
		for _, s := range o.symbols.Functions() {
			switch {
			case m.watched[s.Name]:
				isUnbounded, last = s.End == s.Start, s.Start
			case isUnbounded && s.Start > last:
				isUnbounded = false
			default:
				continue
			}
			o.watchedList = append(o.watchedList, o.symbolInfo(&s))
		}
	})
	return o.watchedList
}

// symbolInfo is what the plugin is told of a function.
func (o *Object) symbolInfo(s *symbol.Symbol) sdk.SymbolInfo {
	return sdk.SymbolInfo{Name: s.Name, Address: o.Offset(s.Start), Size: s.End - s.Start}
}

// symbolAt is the function that the symbols, the symbol file, or the runtime that made
// the code, have at an address.
func (o *Object) symbolAt(address uint64) (symbol.Symbol, bool) {
	switch {
	case o.made != nil:
		return o.made.Functions.Function(address)
	case o.symbols != nil:
		if s, ok := o.symbols.Function(address); ok && s.End > s.Start {
			return s, true
		}
	}
	return o.symbolFunction(address)
}

// A Bounds is where a function lies, if something says so.
type Bounds struct {
	Start, End uint64
	IsKnown    bool
	Name       string
}

// BoundsAt are those of the function at an address: what call frame information
// gives it, or else its symbol.
func (o *Object) BoundsAt(address uint64) Bounds {
	o.resolver()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bounds(address)
}

// bounds is BoundsAt for a caller that holds mu.
func (o *Object) bounds(address uint64) Bounds {
	if b := o.describedBounds(address); b.IsKnown {
		return b
	}
	if s, ok := o.symbolAt(address); ok && s.End > s.Start {
		return Bounds{s.Start, s.End, true, s.Name}
	}
	if f := o.pe(); f != nil {
		if fn, ok, err := f.FunctionAt(address); ok && err == nil {
			return Bounds{Start: fn.Start, End: fn.End, IsKnown: true}
		}
	}
	return Bounds{}
}

// FunctionAt is what the plugin says about the function at an address; nil: nothing.
func (o *Object) FunctionAt(ctx context.Context, address uint64) *sdk.Function {
	if o.File == nil || o.Open(ctx) != nil {
		return nil // a walk says why
	}
	return o.function(address)
}

// isCFA says whether a row has a rule for the CFA.
func isCFA(row *cfi.Row) bool { return row.CFA.Kind != cfi.NoCFA }

// FindDebug looks for the separate debug file of the object where it is looked for when
// names are asked for. The caller closes what is found.
func (o *Object) FindDebug() object.Found {
	if o.File == nil {
		return object.Found{}
	}
	return o.finder.FindDebug(o.File)
}

// GlanceDebug says whether there is one without asking anybody; see object.Finder.
func (o *Object) GlanceDebug() (has bool, tried []object.Attempt) {
	if o.File == nil {
		return false, nil
	}
	return o.finder.GlanceDebug(o.File)
}
