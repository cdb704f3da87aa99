package value

import (
	"errors"

	"github.com/unwindd/unwindd/engine/symbol/dwarf"
)

// This file finds types that only an object says: by the function or the table of
// functions that it points to.

var errNoDynamic = errors.New("no type")

func (b *binder) callSymbolType(args []*expr) (*bound, error) { return nil, errNoDynamic }
func (b *binder) callGoType(args []*expr) (*bound, error)     { return nil, errNoDynamic }
func (b *binder) callVtableType(args []*expr) (*bound, error) { return nil, errNoDynamic }

var _ dwarf.Tag
