package walk

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/locexpr"
)

// unitContext evaluates expressions of debugging information in a frame. All
// that are within one another share an evaluator, and so its limits.
type unitContext struct {
	frame    *frame
	function dwarf.Entry // whose frame it is
	lane     *uint32     // nil: none is current
	ev       *locexpr.Evaluator
}

func (f *frame) unitContext(function dwarf.Entry, lane *uint32) *unitContext {
	u := &unitContext{frame: f, function: function, lane: lane, ev: f.walker.pluginEval.Derive()}
	u.ev.CFI = false
	u.ev.LoadBias = f.pc - f.offset
	return u
}

// in calls f with the evaluator as a unit's expressions need it.
func (u *unitContext) in(unit dwarf.Unit, f func(ev *locexpr.Evaluator) (locexpr.Location, error)) (locexpr.Location, error) {
	dialect, offsetSize := u.ev.Dialect, u.ev.OffsetSize
	u.ev.Dialect, u.ev.OffsetSize = u.frame.module.Code.UnitDialect(unit), unit.OffsetSize()
	defer func() { u.ev.Dialect, u.ev.OffsetSize = dialect, offsetSize }()
	return f(u.ev)
}

// evaluate evaluates an expression of a unit.
func (u *unitContext) evaluate(unit dwarf.Unit, expr []byte) (locexpr.Location, error) {
	return u.in(unit, func(ev *locexpr.Evaluator) (locexpr.Location, error) {
		return ev.Location(expr, u.context(unit))
	})
}

// context is that of an expression of a unit.
func (u *unitContext) context(unit dwarf.Unit) locexpr.Context {
	return surrounded{frameContext{frame: u.frame}, &Surroundings{
		Lane:      u.lane,
		FrameBase: func(locexpr.Context) (locexpr.Location, error) { return u.frameBase() },
		Addrx:     unit.Addrx,
		BaseType:  unit.BaseType,
		CallEntry: func(_ locexpr.Context, ref locexpr.EntryRef) (locexpr.Callee, error) { return u.callEntry(unit, ref) },
	}}
}

// frameBase evaluates DW_AT_frame_base of the function (DWARF 5, 3.3.5).
func (u *unitContext) frameBase() (locexpr.Location, error) {
	l, ok, err := u.function.Location(dwarf.AttrFrameBase)
	if err != nil {
		return locexpr.Location{}, err
	}
	if !ok {
		return locexpr.Location{}, fmt.Errorf("DW_AT_frame_base of the %s: %w", u.function, locexpr.ErrNoContext)
	}
	exprs, err := l.At(u.frame.lookup)
	if err != nil {
		return locexpr.Location{}, err
	}
	if len(exprs) != 1 {
		return locexpr.Location{}, fmt.Errorf("DW_AT_frame_base of the %s has %d expressions here, expected 1", u.function, len(exprs))
	}
	return u.evaluate(l.Unit, exprs[0])
}

// callEntry is what DW_OP_call* does with an entry (A.2.5.4.2): the expression of
// a DW_AT_location runs on the caller's stack, a location list is evaluated.
func (u *unitContext) callEntry(unit dwarf.Unit, ref locexpr.EntryRef) (locexpr.Callee, error) {
	offset := ref.Offset
	if ref.InUnit {
		offset += unit.Offset()
	}
	entry, err := unit.Entry(offset)
	if err != nil {
		return locexpr.Callee{}, locexpr.IllFormedError(err)
	}
	l, ok, err := entry.Location(dwarf.AttrLocation)
	if err != nil || !ok {
		return locexpr.Callee{Kind: locexpr.NoEffect}, err
	}
	c := u.context(l.Unit)
	if l.Lists == nil {
		return locexpr.Callee{
			Kind: locexpr.CalleeExpression, Expr: l.Expr, Context: c,
			Dialect: u.frame.module.Code.UnitDialect(l.Unit), OffsetSize: l.Unit.OffsetSize(),
		}, nil
	}
	place, err := u.in(l.Unit, func(ev *locexpr.Evaluator) (locexpr.Location, error) {
		return ev.EvaluateList(l.Lists, l.Offset, l.Base, c)
	})
	return locexpr.Callee{Kind: locexpr.CalleeLocation, Location: place}, err
}
