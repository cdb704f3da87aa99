// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// nameSources make the sources of an object's names, in the order in which they are asked: the
// first that knows an address names it. The source module adds to it; see fromSource. An object
// that has nothing for a source to read has nil for it.
var nameSources = []func(*Object) symbol.Source{
	newJITNames,      // the runtime, for JIT code
	newBreakpadNames, // a symbol file, where there is no debug information
	newSymbolNames,   // debug information and symbols
	newPublicNames,   // public symbols of the symbol file
	newPluginNames,   // functions that the plugin describes
}

// nameFinder has the sources of an object's names, and the names that they gave. once makes the
// sources; known and lines have their own locks.
type nameFinder struct {
	once    sync.Once
	sources []symbol.Source
	known   cache[nameKey, []trace.Symbol]
	lines   sourceLines
}

// A nameKey is an address, whether inlined calls are left out, and one of several functions with
// the same code there; the zero Entry: it is not known which.
type nameKey struct {
	address    uint64
	isPhysical bool
	function   dwarf.Entry
}

// frameBytes is about how much memory a trace.Symbol takes; its texts are shared.
const frameBytes = 200

func nameBytes(frames []trace.Symbol) int { return 64 + len(frames)*frameBytes }

// Names returns the functions at an address of the object, innermost first; none where nothing is
// known. isPhysical leaves out inlined calls: the result is the containing function alone, at
// the position of the innermost. The slice is shared, and must not be changed.
func (o *Object) Names(address uint64, isPhysical bool) []trace.Symbol {
	return o.NamesIn(address, isPhysical, dwarf.Entry{})
}

// NamesIn is Names for one of several functions with the same code, which dwarf.Reader.Equals
// gave. With the zero Entry it is Names.
func (o *Object) NamesIn(address uint64, isPhysical bool, function dwarf.Entry) []trace.Symbol {
	key := nameKey{address, isPhysical, function}
	frames, known := o.names.known.find(key)
	if known {
		return frames
	}
	isOpen := o.hasOpened() // the plugin may have the only name
	frames = o.findNames(address, function)
	if n := len(frames); n > 1 && isPhysical {
		physical := frames[n-1]
		physical.File, physical.Line, physical.Column = frames[0].File, frames[0].Line, frames[0].Column
		frames = []trace.Symbol{physical}
	}
	if isOpen || len(frames) > 0 && !o.hasSourceModule() {
		keep(o, &o.names.known, key, frames, nameBytes(frames))
	}
	return frames
}

// AllNames is Names, and asks the plugin about the object before: it is for addresses at which no
// walk has been.
func (o *Object) AllNames(ctx context.Context, address uint64, isPhysical bool) []trace.Symbol {
	if frames, known := o.names.known.find(nameKey{address: address, isPhysical: isPhysical}); known {
		return frames
	}
	// Without an answer of the plugin, or of a file that is cut, the other sources remain.
	_ = object.Guard(func() error { return o.Open(ctx) })
	return o.Names(address, isPhysical)
}

// findNames asks the sources.
func (o *Object) findNames(address uint64, function dwarf.Entry) (frames []trace.Symbol) {
	if !function.IsZero() {
		if frames = o.debug.resolver.FramesIn(nil, address, function); len(frames) > 0 {
			return o.fromSource(frames, address)
		}
	}
	o.names.once.Do(func() {
		for _, open := range nameSources {
			if s := open(o); s != nil {
				o.names.sources = append(o.names.sources, s)
			}
		}
	})
	for _, s := range o.names.sources {
		var err error
		if frames, err = s.Frames(nil, address); err != nil {
			o.Problem("%s", err)
		}
		if len(frames) > 0 {
			break
		}
	}
	if len(frames) == 0 {
		o.wantSymbols()
	}
	return o.fromSource(frames, address)
}

// newJITNames returns the names of the runtime that made JIT code.
func newJITNames(o *Object) symbol.Source {
	if o.memory.jit == nil {
		return nil
	}
	return o.memory.jit.Functions
}

// symbolNames are the names of debug information and symbols.
type symbolNames struct{ object *Object }

func newSymbolNames(o *Object) symbol.Source {
	if o.resolver() == nil {
		return nil
	}
	return symbolNames{o}
}

func (s symbolNames) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	before := len(dst)
	frames, err := s.object.debug.resolver.Frames(dst, address)
	if base := s.object.base(address); base > 0 {
		for i := before; i < len(frames); i++ {
			if frames[i].HasStart {
				frames[i].Start -= base
			}
		}
	}
	return frames, err
}

// pluginNames are the functions that the plugin describes, for code whose names only the plugin can
// read, as in a vISA stream.
type pluginNames struct{ object *Object }

func newPluginNames(o *Object) symbol.Source { return pluginNames{o} }

func (s pluginNames) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	o := s.object
	if !o.hasOpened() { // the plugin's answer is set with it, and constant
		return dst, nil
	}
	f := o.plugin.function(address)
	if f == nil || f.Name == "" {
		return dst, nil
	}
	return append(dst, trace.Symbol{Function: f.Name, Start: o.Offset(o.plugin.startOf(f.Start, f.Name)), HasStart: true}), nil
}
