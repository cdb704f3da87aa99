// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// unitContext evaluates expressions of debugging information in a frame. All nested evaluations
// share an evaluator, and so its limits.
type unitContext struct {
	frame    *frame
	code     *code.Object    // the object with the debugging information
	function dwarf.Entry     // the frame's function
	scope    *code.Variables // of function at the frame's place; nil: not needed
	around   Surroundings
	ev       *locexpr.Evaluator

	// isSameThere is true where the variable being read has the same description at the places
	// of waiting lanes and at the frame's PC.
	isSameThere bool
	// hasOwnSpaces is true where the compiler numbers address spaces in its own style.
	hasOwnSpaces bool

	call *call             // the frame's call, or why it is not known; nil until it is looked for
	base *locexpr.Location // DW_AT_frame_base, which no expression changes; nil until it is needed
	last *inUnit           // the last result of context
}

// unitContext returns a context for the expressions of a frame in a function. lane is the
// current one; nil: there is none.
func (f *frame) unitContext(function dwarf.Entry, lane *uint32) *unitContext {
	u := &unitContext{frame: f, function: function, around: Surroundings{Lane: lane}, ev: f.walker.evals.plugin.Derive()}
	u.ev.CFI = false
	if f.module != nil {
		u.code = f.module.Code
	}
	u.ev.LoadBias = f.pc - f.offset
	return u
}

// withUnit calls f with the evaluator set for a unit's expressions.
func (u *unitContext) withUnit(unit dwarf.Unit, f func(ev *locexpr.Evaluator) error) error {
	dialect, offsetSize := u.ev.Dialect, u.ev.OffsetSize
	u.ev.Dialect, u.ev.OffsetSize = u.code.UnitDialect(unit), unit.OffsetSize()
	defer func() { u.ev.Dialect, u.ev.OffsetSize = dialect, offsetSize }()
	return f(u.ev)
}

// evaluate evaluates an expression of a unit.
func (u *unitContext) evaluate(ctx context.Context, unit dwarf.Unit, expr []byte) (l locexpr.Location, err error) {
	err = u.withUnit(unit, func(ev *locexpr.Evaluator) error {
		l, err = ev.Location(ctx, expr, u.context(unit))
		return err
	})
	return l, err
}

// value evaluates an expression of a unit as a value.
func (u *unitContext) value(ctx context.Context, unit dwarf.Unit, expr []byte, initial ...locexpr.Entry) (v locexpr.Value, err error) {
	err = u.withUnit(unit, func(ev *locexpr.Evaluator) error {
		v, err = ev.Value(ctx, expr, u.context(unit), initial...)
		return err
	})
	return v, err
}

// context returns the context of the expressions of a unit.
func (u *unitContext) context(unit dwarf.Unit) *inUnit {
	if u.last == nil || u.last.unit != unit {
		u.last = &inUnit{surrounded{frameContext{frame: u.frame}, &u.around}, u, unit}
	}
	return u.last
}

// inUnit is the context of the expressions of a unit in a frame.
type inUnit struct {
	surrounded
	u    *unitContext
	unit dwarf.Unit
}

var _ interface {
	locexpr.Context
	locexpr.AddressContext
	locexpr.CallContext
	locexpr.EntryContext
	locexpr.EntryValueContext
	locexpr.FrameBaseContext
	locexpr.IterationContext
	locexpr.LaneContext
	locexpr.ObjectContext
	locexpr.ParameterContext
	locexpr.TLSContext
	locexpr.TypeContext
	locexpr.VariableContext
} = (*inUnit)(nil)

// Register returns where a register of the frame is.
func (c *inUnit) Register(ctx context.Context, reg uint64) (locexpr.Location, error) {
	if l, isOne, err := c.intermediate(ctx, reg); isOne {
		return l, err
	}
	if err := c.u.isKept(reg); err != nil {
		return locexpr.Location{}, err
	}
	return c.surrounded.Register(ctx, reg)
}

// RegisterValue returns the value in a register of the frame.
func (c *inUnit) RegisterValue(ctx context.Context, reg uint64) (uint64, error) {
	if l, isOne, err := c.intermediate(ctx, reg); isOne {
		var b [8]byte
		if err == nil {
			err = l.Read(ctx, c, b[:], 64)
		}
		return integer(b[:], c.ByteOrder()), err
	}
	if err := c.u.isKept(reg); err != nil {
		return 0, err
	}
	return c.surrounded.RegisterValue(ctx, reg)
}

// intermediate returns where a register of an intermediate language is, by what the plugin says of
// the frame's place; isOne is false for a register of the machine.
func (c *inUnit) intermediate(ctx context.Context, reg uint64) (l locexpr.Location, isOne bool, err error) {
	if c.u.code == nil || c.u.frame.module == nil || c.u.code != c.u.frame.module.Code {
		return l, false, nil
	}
	expr, isOne := c.u.code.PluginRegister(reg, c.u.frame.lookup)
	if !isOne || expr == nil {
		return locexpr.UndefinedLocation(), isOne, nil
	}
	ev := c.u.frame.walker.evals.plugin.Derive()
	ev.CFI, ev.LoadBias = false, 0
	l, err = ev.Location(ctx, expr, c.surrounded)
	return l, true, err
}

// Addrx returns an entry of the unit's part of .debug_addr.
func (c *inUnit) Addrx(index uint64) (uint64, error) { return c.unit.Addrx(index) }

// BaseType returns the base type at an offset of the unit.
func (c *inUnit) BaseType(offset uint64) (*locexpr.BaseType, error) {
	t, err := c.unit.BaseType(offset)
	if err == nil && t.Encoding == locexpr.EncodingFloat {
		t.Format = c.FloatFormat(t)
	}
	return t, err
}

// FrameBase evaluates DW_AT_frame_base of the function (DWARF 5, 3.3.5).
func (c *inUnit) FrameBase(ctx context.Context) (locexpr.Location, error) {
	u := c.u
	if u.function.IsZero() {
		return locexpr.Location{}, errNoElement("frame base")
	}
	if u.base != nil {
		return *u.base, nil
	}
	base, err := c.findFrameBase(ctx)
	if err == nil {
		u.base = &base
	}
	return base, err
}

// baseExpression returns the expression of the function's DW_AT_frame_base at the frame's place.
func (u *unitContext) baseExpression() (unit dwarf.Unit, expr []byte, err error) {
	if u.scope != nil && u.scope.FrameBase != nil {
		return u.scope.BaseUnit, u.scope.FrameBase, nil
	}
	l, ok, err := u.function.Location(dw.AttrFrameBase)
	if err != nil {
		return unit, nil, err
	}
	if !ok {
		return unit, nil, fmt.Errorf("DW_AT_frame_base of the %s: %w", u.function, locexpr.ErrNoContext)
	}
	exprs, err := l.At(u.frame.lookup)
	if err != nil {
		return unit, nil, err
	}
	if len(exprs) != 1 {
		return unit, nil, fmt.Errorf("DW_AT_frame_base of the %s has %d expressions here, expected 1", u.function, len(exprs))
	}
	return l.Unit, exprs[0], nil
}

func (c *inUnit) findFrameBase(ctx context.Context) (locexpr.Location, error) {
	u := c.u
	unit, expr, err := u.baseExpression()
	if err != nil {
		return locexpr.Location{}, err
	}
	if p, ok := u.placeOf(unit, expr); ok && p.isRegister() {
		// It is the register's value: in a frame further out the location of the register is
		// where a callee saved it, or implicit.
		address, err := u.frame.value(ctx, p.register)
		if err != nil {
			return locexpr.Location{}, err
		}
		return locexpr.MemoryLocation(locexpr.DefaultSpace, address).WithScope(c.Scope()), nil
	}
	base, err := u.evaluate(ctx, unit, expr)
	if err != nil || u.frame.walker.machine.Description.AddressClasses == nil || base.NumPlaces() != 1 {
		return base, err
	}
	// Expressions compute with the address alone: the class of a variable has its space.
	if p := base.Place(0); p.Storage == locexpr.Memory && p.BitOffset == 0 {
		return locexpr.MemoryLocation(locexpr.DefaultSpace, p.Address).WithScope(c.Scope()), nil
	}
	return base, nil
}

// CallEntry returns the effect of DW_OP_call* on an entry (A.2.5.4.2): the expression of a
// DW_AT_location runs on the caller's stack and with its object, a location list is evaluated.
// Where there is neither, a DW_AT_const_value is the result.
func (c *inUnit) CallEntry(ctx context.Context, ref locexpr.EntryRef) (locexpr.Callee, error) {
	offset := ref.Offset
	if ref.InUnit {
		offset += c.unit.Offset()
	}
	entry, err := c.unit.Entry(offset)
	if err != nil {
		return locexpr.Callee{}, locexpr.IllFormedError(err)
	}
	l, ok, err := entry.Location(dw.AttrLocation)
	switch {
	case err != nil:
		return locexpr.Callee{}, err
	case !ok:
		value, hasValue, err := c.u.constant(entry)
		if err != nil || !hasValue {
			return locexpr.Callee{Kind: locexpr.NoEffect}, err
		}
		return locexpr.Callee{Kind: locexpr.CalleeLocation, Location: value}, nil
	case l.Lists == nil:
		return locexpr.Callee{
			Kind: locexpr.CalleeExpression, Expr: l.Expr, Context: &inUnit{c.surrounded, c.u, l.Unit},
			Dialect: c.u.code.UnitDialect(l.Unit), OffsetSize: l.Unit.OffsetSize(),
		}, nil
	}
	place, err := c.u.place(ctx, &l)
	return locexpr.Callee{Kind: locexpr.CalleeLocation, Location: place}, err
}

// EntryLocation returns the target of an implicit pointer: the location that the entry at an
// offset of .debug_info describes (DWARF 5, 2.6.1.1.4).
func (c *inUnit) EntryLocation(ctx context.Context, offset uint64) (locexpr.Location, error) {
	entry, err := c.unit.Entry(offset)
	if err != nil {
		return locexpr.Location{}, locexpr.IllFormedError(err)
	}
	l, err := c.u.locate(ctx, entry)
	if size, ok := entry.Size(); err == nil && ok && size <= maxPieceBytes {
		l = l.Object(8*size, c.ByteOrder())
	}
	return l, err
}

// maxPieceBytes bounds the objects that may be in a register or a value.
const maxPieceBytes = 1 << 16
