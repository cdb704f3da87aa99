// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/gopclntab"
	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
)

// Function returns the bounds of the function that contains an ELF virtual address. The
// first list that has the address is believed: a PDB file, whose functions have ends where the
// exports of its image have none, then the symbols (see symtab.Table.Function).
func (r *Resolver) Function(address uint64) (symbol.Symbol, bool) {
	return functionIn(r.lists, address)
}

// functionIn is Function by some lists.
func functionIn(lists []*source, address uint64) (symbol.Symbol, bool) {
	for _, l := range lists {
		if t := l.functions(); t != nil {
			if s, ok := t.Function(address); ok {
				return s, true
			}
		}
	}
	return symbol.Symbol{}, false
}

// Functions returns all functions by address, one name for each: the functions of a PDB file or
// the symbols, and of every other list whose first function those before it lack, such as the
// table of the Go runtime.
func (r *Resolver) Functions() []symbol.Symbol {
	var list []symbol.Symbol
	for i, l := range r.lists {
		t := l.functions()
		if t == nil {
			continue
		}
		start, ok := t.Start()
		if !ok {
			continue
		}
		if s, ok := functionIn(r.lists[:i], start); ok && s.Start == start {
			continue
		}
		list = append(list, t.Functions()...)
	}
	byAddress := func(a, b symbol.Symbol) int { return cmp.Compare(a.Start, b.Start) }
	if !slices.IsSortedFunc(list, byAddress) {
		slices.SortStableFunc(list, byAddress)
	}
	return list
}

// Named returns the members of Functions that have one of some names. ok is false where the
// symbols do not suffice and the caller must search Functions.
func (r *Resolver) Named(names map[string]bool) (list []symbol.Symbol, ok bool) {
	if r.golang() != nil {
		return nil, false
	}
	return symtab.Named(names, r.o, r.debug)
}

// Addresses returns the addresses of functions by their names in the symbol tables;
// isExported leaves out functions that other code objects cannot see. The symbols are read
// anew each time.
func (r *Resolver) Addresses(isExported bool) *symtab.Addresses {
	debug := r.debug
	if isExported {
		debug = nil // .dynsym is the object's
	}
	a, err := symtab.NewAddresses(isExported, r.o, debug)
	r.Note(err)
	return a
}

// Depth is the stack depth of a Go function at an ELF virtual address; see
// gopclntab.Table.Depth.
func (r *Resolver) Depth(address uint64) (d gopclntab.Depth, ok bool, err error) {
	if t := r.golang(); t != nil {
		return t.Depth(address)
	}
	return d, false, nil
}
