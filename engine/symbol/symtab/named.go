package symtab

import (
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
