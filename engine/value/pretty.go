package value

import (
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/locexpr"
)

// prettyForm reads an object as what its type stands for, where a table knows it.
func (r *Reader) prettyForm(v *Value, t *dwarf.Type, l locexpr.Location, depth int) bool {
	return false
}
