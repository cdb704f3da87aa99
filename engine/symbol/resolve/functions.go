package resolve

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/gopclntab"
)

// Functions returns all functions that the symbols name, by address, one name
// for each, and those of the table of the Go runtime where the symbols do not have
// them.
func (r *Resolver) Functions() []symbol.Symbol {
	list := r.symbols().Functions()
	t := r.golang()
	if t == nil {
		return list
	}
	start, ok := t.Start()
	if !ok {
		return list
	}
	if s, ok := r.symbols().Function(start); ok && s.Start == start {
		return list
	}
	list = append(list, t.Functions()...)
	slices.SortStableFunc(list, func(a, b symbol.Symbol) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

// Depth is how deep the stack of a Go function is at an ELF virtual address; see
// gopclntab.Table.Depth.
func (r *Resolver) Depth(address uint64) (d gopclntab.Depth, ok bool, err error) {
	if t := r.golang(); t != nil {
		return t.Depth(address)
	}
	return d, false, nil
}
