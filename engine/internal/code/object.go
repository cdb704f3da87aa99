// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// An Object is a code object at work: its rows and names, and the answers of its
// architecture's plugin about it. Its parts are made when they are first needed. It may be
// used concurrently.
//
// Addresses are ELF virtual addresses, or addresses of a layout; see Offset.
//
// Locks are taken in this order: the sync.Once of debug, names, names.lines, answers.data and
// breakpad.wantOnce, whose functions take mu; mu; the other sync.Once and Library.mu; the lock of
// a cache, in which nothing else is taken.
type Object struct {
	// File is the file that the object was read from; nil: the code is in no file.
	File *object.Object

	identity               // constant
	layout                 // constant
	memory   targetMemory  // constant once the module is loaded
	finder   object.Finder // of separate files; constant
	library  *Library
	cached   *rowCache // of the library; every frame reads it, apart from the library's counters
	usage    usage

	debug    debugFiles
	breakpad breakpadUse
	beside   companionFiles
	names    nameFinder
	ptx      ptxLines
	answers  addressAnswers
	named    namedPlaces

	mu       sync.Mutex // guards the rest
	machine  *Machine   // nil until it is needed
	isOpen   bool       // plugin and rows.sources are set; they do not change any more
	plugin   pluginAnswer
	rows     rowFinder
	code     codeReader
	problems []string
}

// newObject makes an object of an identity, with one user.
func newObject(l *Library, file *object.Object, id identity) *Object {
	o := &Object{File: file, identity: id, layout: newLayout(file), library: l, cached: l.rows}
	o.usage.users = 1
	o.code.object = o
	if file != nil {
		file.Retain()
	}
	return o
}

// Name returns the name of the object's file, with the file that contains it; without one it
// is the path that the target has.
func (o *Object) Name() string {
	if o.File != nil {
		return o.File.Name()
	}
	return o.path
}

// Sections returns the sections of the file, with the addresses of this object; there are none
// without a file.
func (o *Object) Sections() []*object.Section {
	if o.laid == nil {
		return nil
	}
	return o.laid.Sections()
}

// Machine returns the object's architecture; nil where no plugin has it.
func (o *Object) Machine() *Machine {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.findMachine()
}

// findMachine is Machine for a caller that holds mu.
func (o *Object) findMachine() *Machine {
	if o.machine == nil {
		o.machine, _ = o.library.Machine(o.arch) // open reports that there is none
	}
	return o.machine
}

// forgetFound forgets what can be found out again.
func (o *Object) forgetFound() {
	freed := o.rows.forget() + o.code.exits.known.forget() + o.names.known.forget() + o.answers.forget()
	o.usage.bytes.Add(-int64(freed))
	o.library.bytes.Add(-int64(freed))
}

// close closes the files of an object that has no users.
func (o *Object) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.debug.close()
	o.beside.close()
	if o.File != nil {
		_ = o.File.Close()
	}
	if u := o.breakpad.use.Load(); u != nil && u.file != nil {
		o.library.symbols.release(u.file)
	}
	o.library.bytes.Add(-o.usage.bytes.Swap(0))
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
	if text := fmt.Sprintf(format, args...); !slices.Contains(o.problems, text) {
		o.problems = append(o.problems, text)
	}
}

// Open asks the plugin about the object, once. A plugin that fails is asked again by the
// next caller.
func (o *Object) Open(ctx context.Context) error {
	o.resolver() // finds the debug file, whose .debug_frame counts too
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open(ctx)
}

// ErrOtherMachine is the error of code of another architecture than the thread's.
var ErrOtherMachine = noRow("the module is of another architecture than its thread")

// open is Open for a caller that holds mu, and that called resolver before.
func (o *Object) open(ctx context.Context) error {
	if o.isOpen {
		return nil
	}
	machine := o.findMachine()
	if machine == nil {
		return ErrOtherMachine
	}
	o.plugin.defaults = machine.Defaults
	if o.File != nil {
		if err := o.askPlugin(ctx); err != nil {
			return err
		}
	}
	o.openSources()
	o.isOpen = true
	return nil
}

func (o *Object) hasOpened() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isOpen
}

// DefaultRule returns the rule of a register that neither a row nor the plugin's answer about
// a function mentions.
func (o *Object) DefaultRule(register uint64) cfi.Rule {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.plugin.defaults == nil {
		return cfi.Rule{}
	}
	return o.plugin.defaults.Column(register)
}

// FunctionAt returns the plugin's description of the function at an address; nil: there is
// none.
func (o *Object) FunctionAt(ctx context.Context, address uint64) *sdk.Function {
	if o.File == nil || o.Open(ctx) != nil {
		return nil // a walk reports the error
	}
	return o.plugin.function(address)
}

// UnitDialect returns the dialect of the expressions of a unit of .debug_info.
func (o *Object) UnitDialect(u dwarf.Unit) *locexpr.Dialect { return o.plugin.dialects.ofUnit(u) }

// symbolAt returns the function that the symbols, the symbol file, or the runtime that made
// the code, have at an address.
func (o *Object) symbolAt(address uint64) (symbol.Symbol, bool) {
	switch {
	case o.memory.jit != nil:
		return o.memory.jit.Functions.Function(address)
	case o.debug.resolver != nil:
		if s, ok := o.debug.resolver.Function(address); ok && s.End > s.Start {
			return s, true
		}
	}
	return o.symbolFunction(address)
}

// isCFA reports whether a row has a rule for the CFA.
func isCFA(row *cfi.Row) bool { return row.CFA.Kind != cfi.NoCFA }
