// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// This file finds variables by their entries of debugging information.

// place evaluates an expression or a location list.
func (u *unitContext) place(ctx context.Context, l *dwarf.Location) (place locexpr.Location, err error) {
	if l.Lists == nil {
		return u.evaluate(ctx, l.Unit, l.Expr)
	}
	err = u.withUnit(l.Unit, func(ev *locexpr.Evaluator) error {
		place, err = ev.EvaluateList(ctx, l.Lists, l.Offset, l.Base, u.context(l.Unit))
		return err
	})
	return place, err
}

// maxOrigins bounds the entries that are followed from a variable to the entry that it is an
// instance or a completion of.
const maxOrigins = 16

// locate returns where a variable, a parameter or a constant is: by its DW_AT_location, or that
// of its abstract entry, which is then the same in all instances (DWARF 5, 3.3.8.2), or by its
// DW_AT_const_value. It returns the undefined location for one that was optimized out.
func (u *unitContext) locate(ctx context.Context, variable dwarf.Entry) (locexpr.Location, error) {
	l, err := variable.Placed()
	if err != nil {
		return locexpr.Location{}, err
	}
	return u.locateAt(ctx, variable, l)
}

// locateAt is locate for a variable whose DW_AT_location, or that of its abstract entry, is l;
// nil: it has none.
func (u *unitContext) locateAt(ctx context.Context, variable dwarf.Entry, l *dwarf.Location) (locexpr.Location, error) {
	if l != nil {
		return u.classed(variable, func() (locexpr.Location, error) { return u.variableLocation(ctx, variable, l) })
	}
	value, ok, err := u.constant(variable)
	if err != nil || !ok {
		return locexpr.UndefinedLocation(), err
	}
	return value, nil
}

// locateHere returns where a variable is that is in scope at the frame's place.
func (u *unitContext) locateHere(ctx context.Context, s *code.ScopedVariable) (locexpr.Location, error) {
	switch {
	case u.frame.walker.machine.Description.AddressClasses != nil: // its addresses do not move with the module
		return u.locateAt(ctx, s.Entry, s.Location)
	case s.IsGone:
		return locexpr.UndefinedLocation(), nil
	case s.Here == nil:
		return u.locateAt(ctx, s.Entry, s.Location)
	}
	v, plan, ok, err := u.planHere(ctx, s)
	switch {
	case ok && err == nil:
		return plan.place(&v)
	case ok:
		return locexpr.Location{}, err
	}
	l, err := u.evaluate(ctx, s.Location.Unit, s.Here)
	if err != nil && !value.IsOptimizedOut(unknown(err)) {
		return u.place(ctx, s.Location) // whose error names the list
	}
	return l, err
}

// classed returns the location of a variable in the space of its DW_AT_address_class, where the
// architecture has a space for it. Addresses of such a space do not move with the module.
func (u *unitContext) classed(variable dwarf.Entry, locate func() (locexpr.Location, error)) (locexpr.Location, error) {
	classes := u.frame.walker.machine.Description.AddressClasses
	if classes == nil {
		return locate()
	}
	n, ok, err := variable.Number(dw.AttrAddressClass)
	if err != nil || !ok {
		return locate()
	}
	space, ok := spaceOfClass(classes, uint64(n)) //nolint:gosec // a class, whatever its sign
	if !ok {
		return locate()
	}
	bias := u.ev.LoadBias
	defer func() { u.ev.LoadBias = bias }()
	u.ev.LoadBias = 0
	l, err := locate()
	if err != nil || l.NumPlaces() != 1 {
		return l, err
	}
	if p := l.Place(0); p.Storage == locexpr.Memory && p.Space == locexpr.DefaultSpace {
		address := p.Address
		if u.code != nil {
			address = u.code.Offset(address) // a cubin that was not placed has offsets in sections
		}
		return locexpr.MemoryLocation(space, address).WithScope(frameContext{frame: u.frame}.Scope()), nil
	}
	return l, nil
}

// spaceOfClass returns the space of a DW_AT_address_class.
func spaceOfClass(classes []sdk.AddressClass, class uint64) (locexpr.AddressSpace, bool) {
	for _, c := range classes {
		if c.Class == class {
			return c.Space, true
		}
	}
	return 0, false
}

// constant returns a DW_AT_const_value as an implicit location.
func (u *unitContext) constant(e dwarf.Entry) (l locexpr.Location, ok bool, err error) {
	if block, ok, err := e.Block(dw.AttrConstValue); ok || err != nil {
		return locexpr.ImplicitLocation(block), ok, err
	}
	if n, ok, err := e.Number(dw.AttrConstValue); ok || err != nil {
		return u.integer(n, e), ok, err
	}
	if !e.Has(dw.AttrConstValue) {
		return l, false, nil
	}
	text, ok, err := e.Text(dw.AttrConstValue)
	return locexpr.ImplicitLocation(append([]byte(text), 0)), ok, err
}

// maxConstant bounds the size of an integer, in bytes.
const maxConstant = 16

// integer returns a constant of the size of the entry's type.
func (u *unitContext) integer(n int64, e dwarf.Entry) locexpr.Location {
	size, ok := e.Size()
	if !ok || size == 0 || size > maxConstant {
		size = 8
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(n >> min(8*i, 63))
	}
	if u.frame.walker.machine.Order == locexpr.BigEndian {
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
	return locexpr.ImplicitLocation(b)
}

// VariableValue returns the value of the variable at an offset of .debug_info.
func (c *inUnit) VariableValue(ctx context.Context, offset uint64) (locexpr.Value, error) {
	entry, err := c.unit.Entry(offset)
	if err != nil {
		return locexpr.Value{}, locexpr.IllFormedError(err)
	}
	if entry, err = c.u.concrete(entry); err != nil {
		return locexpr.Value{}, err
	}
	l, err := c.u.locate(ctx, entry)
	if err != nil {
		return locexpr.Value{}, err
	}
	size, typ, err := c.u.valueType(entry)
	if err != nil {
		return locexpr.Value{}, err
	}
	b := make([]byte, size)
	if err := l.Object(8*size, c.ByteOrder()).Read(ctx, c, b, 8*size); err != nil {
		return locexpr.Value{}, err
	}
	if typ == nil {
		return locexpr.GenericValue(integer(b, c.ByteOrder())), nil
	}
	return locexpr.ValueOf(typ, b, c.ByteOrder())
}

// concrete returns the instance around the frame's PC of an abstract variable, which gcc names
// in the bounds of arrays in inlined functions.
func (u *unitContext) concrete(e dwarf.Entry) (dwarf.Entry, error) {
	if e.Has(dw.AttrLocation) || e.Has(dw.AttrConstValue) || u.frame.module == nil {
		return e, nil
	}
	scopes, err := u.code.DWARF().ScopesIn(u.frame.lookup, u.frame.function())
	if err != nil {
		return e, err
	}
	root, err := e.Root()
	if err != nil {
		return e, err
	}
	for _, s := range scopes {
		for v, err := range s.Variables() {
			if err != nil {
				return e, err
			}
			if own, err := v.Root(); err == nil && own.Is(root) {
				return v, nil
			}
		}
	}
	return e, nil
}

// errNoValueType is the error for a variable with a type that the stack of an evaluation cannot
// have.
var errNoValueType = errors.New("expected a base type, an enumeration or a pointer")

// valueType returns the size of a variable in bytes, and its base type: nil, which is the
// generic type, for a pointer, and for an enumeration that is no larger than that.
func (u *unitContext) valueType(variable dwarf.Entry) (size uint64, typ *locexpr.BaseType, err error) {
	t, err := variable.Type()
	for n := 0; err == nil && !t.IsZero() && n < maxOrigins; n++ {
		switch t.Tag() {
		case dw.TagBaseType:
			typ, err := t.BaseType()
			if err != nil {
				return 0, nil, err
			}
			return (typ.Size() + 7) / 8, typ, nil
		case dw.TagPointerType, dw.TagReferenceType, dw.TagRvalueReferenceType, dw.TagEnumerationType:
			size, ok := variable.Size()
			if !ok || size == 0 || size*8 > uint64(u.frame.walker.machine.Description.AddressBits) {
				return 0, nil, locexpr.IllFormedError(fmt.Errorf("type of the %s: %d bytes: %w", variable, size, errNoValueType))
			}
			return size, nil, nil
		}
		t, err = t.Type()
	}
	if err == nil {
		err = locexpr.IllFormedError(fmt.Errorf("type of the %s: %w", variable, errNoValueType))
	}
	return 0, nil, err
}
