// SPDX-License-Identifier: Apache-2.0

package code

import (
	"debug/elf"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
)

// NamedPlace is the place of a function or variable in a code object.
type NamedPlace struct {
	IsKnown bool
	Address uint64 // of the object
	Size    uint64 // bytes; 0: unknown
}

// namedPlaces are the places that were looked for, by name.
type namedPlaces struct {
	mu     sync.Mutex
	inFile map[string]NamedPlace // by the symbols of the file itself
	places map[string]NamedPlace // by all symbols and debug information
}

// Defines returns which of some names the symbols of the object's file define. No other file is
// looked at. A name is looked for once.
func (o *Object) Defines(names []string) map[string]bool {
	found := map[string]bool{}
	if o.File == nil {
		return found
	}
	o.named.mu.Lock()
	defer o.named.mu.Unlock()
	if o.named.inFile == nil {
		o.named.inFile = map[string]NamedPlace{}
	}
	hasTable := o.File.Section(".symtab") != nil
	missing := map[string]bool{}
	for _, name := range names {
		_, isKnown := o.named.inFile[name]
		switch {
		case isKnown:
		case !hasTable && !o.File.MayExport(name): // in most files
			o.named.inFile[name] = NamedPlace{}
		default:
			missing[name] = true
		}
	}
	findPlaces(missing, o.named.inFile, o.File)
	for _, name := range names {
		found[name] = o.named.inFile[name].IsKnown
	}
	return found
}

// Places returns the places of functions and variables, one for each name: by the symbols of the
// file and of its debug file, else by the debug information.
func (o *Object) Places(names []string) []NamedPlace {
	list := make([]NamedPlace, len(names))
	if o.File == nil || len(names) == 0 {
		return list
	}
	files, d := o.laidFiles(), o.DWARF()
	o.named.mu.Lock()
	defer o.named.mu.Unlock()
	if o.named.places == nil {
		o.named.places = map[string]NamedPlace{}
	}
	missing := map[string]bool{}
	for _, name := range names {
		if _, isKnown := o.named.places[name]; !isKnown {
			missing[name] = true
		}
	}
	findPlaces(missing, o.named.places, files...)
	for name := range missing {
		if o.named.places[name].IsKnown || d == nil {
			continue
		}
		globals, err := d.Globals(name)
		if err != nil {
			continue // the reader has the problem
		}
		for _, e := range globals {
			if address, ok := e.StaticAddress(); ok {
				size, _ := e.Size()
				o.named.places[name] = NamedPlace{true, address, size}
				break
			}
		}
	}
	for i, name := range names {
		list[i] = o.named.places[name]
	}
	return list
}

// findPlaces adds to places the names that symbols of files have: of several symbols of a name
// a global one, and else the first.
func findPlaces(names map[string]bool, places map[string]NamedPlace, files ...*object.Object) {
	if len(names) == 0 {
		return
	}
	isGlobal := map[string]bool{}
	for _, file := range files {
		// What can be read of damaged symbols counts.
		_ = file.EachSymbol(func(s *object.Symbol) {
			if s.Name == "" || !s.Defined() || s.Section == uint32(elf.SHN_ABS) || s.Section == uint32(elf.SHN_COMMON) {
				return
			}
			name := s.Name
			if !names[name] {
				if name = symbol.StripVersion(name); !names[name] {
					return
				}
			}
			switch s.Type {
			case elf.STT_FUNC, elf.STT_OBJECT, elf.STT_NOTYPE, elf.STT_GNU_IFUNC:
			default:
				return
			}
			if global := s.Binding != elf.STB_LOCAL; !places[name].IsKnown || global && !isGlobal[name] {
				places[name], isGlobal[name] = NamedPlace{true, s.Address, s.Size}, global
			}
		})
	}
	for name := range names {
		if _, isFound := places[name]; !isFound {
			places[name] = NamedPlace{} // it is not looked for again
		}
	}
}
