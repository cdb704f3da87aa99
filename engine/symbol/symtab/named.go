package symtab

import (
	"debug/elf"
	"errors"
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
	seed  maphash.Seed
	known map[uint64]globalFunction // by the hash of the name
}

type globalFunction struct {
	address   uint64
	isDynamic bool // other code objects call it by the name, too
	isUnsure  bool // several functions have the name, or one that the program chooses
}

// NewGlobals reads the symbols of objects, which are as for New but for .gnu_debugdata,
// whose symbols are local. With an error come those that could be read.
func NewGlobals(objects ...*object.Object) (*Globals, error) {
	g := &Globals{maphash.MakeSeed(), map[uint64]globalFunction{}}
	read := collector{keep: func(x *candidate) bool {
		if x.binding == elf.STB_LOCAL {
			return false
		}
		key := maphash.String(g.seed, symbol.StripVersion(x.name))
		old, isThere := g.known[key]
		g.known[key] = globalFunction{
			x.start, x.dynamic || old.isDynamic,
			x.indirect || old.isUnsure || isThere && old.address != x.start,
		}
		return false
	}}
	var failed []error
	for _, o := range objects {
		if o != nil {
			failed = append(failed, read.add(o))
		}
	}
	return g, errors.Join(failed...)
}

// Address is where the function of a name is. isDynamic says that other code objects call
// it by the name, too. isSure is false where several have the name, or where the program
// chooses one when it starts (STT_GNU_IFUNC).
func (g *Globals) Address(name string) (address uint64, isDynamic, isSure, ok bool) {
	x, ok := g.known[maphash.String(g.seed, name)]
	return x.address, x.isDynamic, !x.isUnsure, ok
}

// MemorySize is about how many bytes it takes.
func (g *Globals) MemorySize() int { return 48 * len(g.known) }
