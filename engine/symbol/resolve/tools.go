package resolve

import (
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
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

// Locals returns the variables of the function at an ELF virtual address, as DWARF
// has them; see dwarf.Reader.Locals.
func (r *Resolver) Locals(address uint64) []symbol.Local {
	d := r.dwarf()
	if d == nil {
		return nil
	}
	list, err := d.Locals(nil, address)
	if err != nil {
		r.problem(err.Error())
	}
	return list
}

// Variable returns the variable that holds an ELF virtual address, as DWARF has
// it; see dwarf.Reader.Variable.
func (r *Resolver) Variable(address uint64, name string) (dwarf.Variable, bool) {
	d := r.dwarf()
	if d == nil {
		return dwarf.Variable{}, false
	}
	v, ok, err := d.Variable(address, name)
	if err != nil {
		r.problem(err.Error())
	}
	return v, ok
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
