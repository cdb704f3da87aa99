package symtab

import (
	"debug/elf"
	"hash/maphash"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
)

// Named finds the functions that have one of some names: those that the Table of the same
// objects has, without making it, which costs much more where there are many symbols.
// ok is false where only the Table tells: one of them has no size, so that others bound
// it, or symbols cannot be read.
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
	// One that has a size is named by itself or by another that begins with it.
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

// A Globals says where functions are by the names that other files call them by: those of
// symbols that are not local. It keeps no names.
type Globals struct {
	seed      maphash.Seed
	addresses map[uint64]uint64 // by the hash of the name
	several   map[uint64]bool   // hashes of names that several functions have
}

// NewGlobals reads the symbols of objects, which are as for New. With an error come those
// that could be read.
func NewGlobals(objects ...*object.Object) (*Globals, error) {
	g := &Globals{maphash.MakeSeed(), map[uint64]uint64{}, map[uint64]bool{}}
	read := collector{keep: func(x *candidate) bool {
		if x.binding == elf.STB_LOCAL {
			return false
		}
		key := maphash.String(g.seed, symbol.StripVersion(x.name))
		if address, isThere := g.addresses[key]; isThere && address != x.start {
			g.several[key] = true
		}
		g.addresses[key] = x.start
		return false
	}}
	return g, read.addAll(objects)
}

// Address is where the function of a name is; ok is false where there is none, or where
// several have the name.
func (g *Globals) Address(name string) (address uint64, ok bool) {
	key := maphash.String(g.seed, name)
	address, ok = g.addresses[key]
	return address, ok && !g.several[key]
}

// MemorySize is about how many bytes it takes.
func (g *Globals) MemorySize() int { return 40 * (len(g.addresses) + len(g.several)) }
