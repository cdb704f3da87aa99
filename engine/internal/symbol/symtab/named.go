// SPDX-License-Identifier: Apache-2.0

package symtab

import (
	"debug/elf"
	"errors"
	"hash/maphash"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
)

// Named finds the functions that have one of some names. It returns the same functions as
// the Table of these objects without building it, which costs much more for many symbols.
// ok is false where only the Table can tell: one of them has no size and is bounded by
// others, or symbols cannot be read.
func Named(names map[string]bool, objects ...*object.Object) (list []symbol.Symbol, ok bool) {
	ok = true
	starts := map[uint64]bool{}
	find := collector{keep: func(x *candidate) bool {
		if names[symbol.StripVersion(x.name)] {
			starts[x.start] = true
			ok = ok && x.end > x.start
		}
		return false
	}}
	if find.addAll(objects) != nil || !ok {
		return nil, false
	}
	if len(starts) == 0 {
		return nil, true
	}
	// A function that has a size is named by itself or by another that begins with it.
	beside := collector{keep: func(x *candidate) bool { return starts[x.start] }}
	if beside.addAll(objects) != nil {
		return nil, false
	}
	for _, s := range build(beside.list).Functions() {
		if names[s.Name] {
			list = append(list, s)
		}
	}
	return list, true
}

// Addresses finds the addresses of functions by their names in the symbol tables. It keeps
// no names.
type Addresses struct {
	seed  maphash.Seed
	known map[uint64]namedAddress // by the hash of the name
}

type namedAddress struct {
	address  uint64
	isLocal  bool // a function of one source file has the name, or a hidden one
	isUnsure bool // several functions have it, or one that the program chooses
}

// NewAddresses reads the symbols of objects, as New does, except .gnu_debugdata. isExported
// leaves out symbols that other code objects cannot see. With an error it returns the
// symbols that could be read.
func NewAddresses(isExported bool, objects ...*object.Object) (*Addresses, error) {
	a := &Addresses{maphash.MakeSeed(), map[uint64]namedAddress{}}
	read := collector{objects: objects, keep: func(x *candidate) bool {
		if x.dynamic || !isExported {
			a.add(x)
		}
		return false
	}}
	var failed []error
	for _, o := range objects {
		if o != nil {
			failed = append(failed, read.add(o))
		}
	}
	return a, errors.Join(failed...)
}

// add adds a symbol. A global one hides local ones of its name.
func (a *Addresses) add(x *candidate) {
	key := maphash.String(a.seed, symbol.StripVersion(x.name))
	isLocal := x.binding == elf.STB_LOCAL
	old, isThere := a.known[key]
	switch {
	case isThere && isLocal && !old.isLocal:
	case isThere && isLocal == old.isLocal:
		old.isUnsure = old.isUnsure || x.indirect || old.address != x.start
		a.known[key] = old
	default:
		a.known[key] = namedAddress{x.start, isLocal, x.indirect}
	}
}

// Of returns the address of the function of a name. isSure is false where several have the
// name, or where the program chooses one when it starts (STT_GNU_IFUNC).
func (a *Addresses) Of(name string) (address uint64, isSure, ok bool) {
	x, ok := a.known[maphash.String(a.seed, name)]
	return x.address, !x.isUnsure, ok
}

// MemorySize is about how many bytes it takes.
func (a *Addresses) MemorySize() int { return 48 * len(a.known) }
