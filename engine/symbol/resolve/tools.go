package resolve

import (
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/symtab"
)

// Described appends what DWARF alone says of an ELF virtual address; see
// symbol.Source. DWARF that cannot be read becomes a problem.
func (r *Resolver) Described(dst []symbol.Frame, address uint64) []symbol.Frame {
	d := r.dwarf()
	if d == nil {
		return dst
	}
	dst, err := d.Frames(dst, address)
	if err != nil {
		r.problem(err.Error())
	}
	return dst
}

// Aliases returns the names that other tools choose from: the symbols of the
// object itself, of no separate debug file.
func (r *Resolver) Aliases() *symtab.Aliases { return r.aliases() }

func (r *Resolver) openAliases() *symtab.Aliases {
	t, err := symtab.NewAliases(r.o)
	if err != nil {
		r.problem(err.Error())
	}
	return t
}
