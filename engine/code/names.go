// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"sort"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
)

// nameSources make the sources of an object's names, in the order in which they
// are asked: the first that knows an address names it. What the code was made
// from adds to it; see fromSource. An object that has nothing for a source to
// read has nil for it.
var nameSources = []func(*Object) symbol.Source{
	newMadeNames,     // of code that a runtime made
	newBreakpadNames, // a symbol file, where there is no debug information
	newSymbolNames,   // debug information and symbols
	newPublicNames,   // public symbols of the symbol file
	newPluginNames,   // of the plugin
}

// A nameKey is an address, whether inlined calls are left out, and which of several
// functions with the same code is there; the zero Entry: that is not known.
type nameKey struct {
	address    uint64
	isPhysical bool
	function   dwarf.Entry
}

// frameBytes is about what a symbol.Frame takes; its texts are shared.
const frameBytes = 200

func nameBytes(frames []symbol.Frame) int { return 64 + len(frames)*frameBytes }

// Names are the functions at an address of the object, innermost first; there are
// none where nothing is known. isPhysical leaves out inlined calls: it is the
// containing function alone, at the position of the innermost. The slice is shared:
// nobody changes it.
func (o *Object) Names(address uint64, isPhysical bool) []symbol.Frame {
	return o.NamesIn(address, isPhysical, dwarf.Entry{})
}

// NamesIn is Names where several functions have the same code: as one of them, which
// dwarf.Reader.Equals gave, has it. Of the zero Entry it is Names.
func (o *Object) NamesIn(address uint64, isPhysical bool, function dwarf.Entry) []symbol.Frame {
	key := nameKey{address, isPhysical, function}
	frames, known := o.names.find(key)
	if known {
		return frames
	}
	isOpen := o.hasOpened() // the plugin may name what nothing else does
	frames = o.findNames(address, function)
	if n := len(frames); n > 1 && isPhysical {
		physical := frames[n-1]
		physical.File, physical.Line, physical.Column = frames[0].File, frames[0].Line, frames[0].Column
		frames = []symbol.Frame{physical}
	}
	if isOpen || len(frames) > 0 && !o.hasSourceModule() {
		keep(o, &o.names, key, frames, nameBytes(frames))
	}
	return frames
}

// AllNames is Names, and asks the plugin about the object before: it is for
// addresses that no walk came to.
func (o *Object) AllNames(ctx context.Context, address uint64, isPhysical bool) []symbol.Frame {
	if frames, known := o.names.find(nameKey{address: address, isPhysical: isPhysical}); known {
		return frames
	}
	// What the plugin does not say is not known, nor what is in a file that is cut.
	_ = object.Guard(func() error { return o.Open(ctx) })
	return o.Names(address, isPhysical)
}

func (o *Object) hasOpened() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isOpen
}

// findNames asks the sources.
func (o *Object) findNames(address uint64, function dwarf.Entry) (frames []symbol.Frame) {
	if !function.IsZero() {
		if frames = o.symbols.FramesIn(nil, address, function); len(frames) > 0 {
			return o.fromSource(frames, address)
		}
	}
	o.namersOnce.Do(func() {
		for _, open := range nameSources {
			if s := open(o); s != nil {
				o.namers = append(o.namers, s)
			}
		}
	})
	for _, s := range o.namers {
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

// newMadeNames are the names that a runtime gave to code that it made.
func newMadeNames(o *Object) symbol.Source {
	if o.made == nil {
		return nil
	}
	return o.made.Functions
}

// symbolNames are what debug information and symbols say.
type symbolNames struct{ object *Object }

func newSymbolNames(o *Object) symbol.Source {
	if o.resolver() == nil {
		return nil
	}
	return symbolNames{o}
}

func (s symbolNames) Frames(dst []symbol.Frame, address uint64) ([]symbol.Frame, error) {
	before := len(dst)
	frames, err := s.object.symbols.Frames(dst, address)
	if base := s.object.base(address); base > 0 {
		for i := before; i < len(frames); i++ {
			if frames[i].HasStart {
				frames[i].Start -= base
			}
		}
	}
	return frames, err
}

// pluginNames are the functions that the plugin knows. They are for code whose
// names are only in what the plugin reads, such as a vISA stream.
type pluginNames struct{ object *Object }

func newPluginNames(o *Object) symbol.Source { return pluginNames{o} }

func (s pluginNames) Frames(dst []symbol.Frame, address uint64) ([]symbol.Frame, error) {
	o := s.object
	if !o.hasOpened() { // what the plugin said is set with it, and stays
		return dst, nil
	}
	f := o.function(address)
	if f == nil || f.Name == "" {
		return dst, nil
	}
	return append(dst, symbol.Frame{Function: f.Name, Start: o.Offset(o.startOf(f.Start, f.Name)), HasStart: true}), nil
}

// startOf is where a function begins of which a part begins at an address: one
// that is in parts has other functions, such as its subroutines, between them.
func (o *Object) startOf(start uint64, name string) uint64 {
	first := sort.Search(len(o.functions), func(i int) bool { return o.functions[i].Start >= start })
	for i := first - 1; i >= 0 && o.functions[i].End == o.functions[i+1].Start; i-- {
		if o.functions[i].Name == name {
			start = o.functions[i].Start
		}
	}
	return start
}
