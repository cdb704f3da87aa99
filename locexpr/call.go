// SPDX-License-Identifier: Apache-2.0

package locexpr

import "fmt"

// This file has the calls of DWARF procedures (A.2.5.4.2).

// callSteps is what finding a debugging information entry costs.
const callSteps = 16

func opCallUnit(ev *evaluation) error {
	return ev.call(EntryRef{Offset: ev.in.Operands[0], InUnit: true})
}

func opCallRef(ev *evaluation) error { return ev.call(EntryRef{Offset: ev.in.Operands[0]}) }

func (ev *evaluation) call(ref EntryRef) error {
	if err := ev.charge(callSteps); err != nil {
		return err
	}
	callee, err := ev.ctx.CallEntry(ref)
	if err != nil {
		return err
	}
	switch callee.Kind {
	case NoEffect:
		return nil
	case CalleeLocation:
		return ev.pushLocation(&callee.Location)
	case CalleeExpression:
		return ev.callExpression(&callee)
	}
	return fmt.Errorf("callee of kind %d", callee.Kind)
}

// callExpression continues with the operations of the callee on the same stack,
// in the compilation unit that holds them.
func (ev *evaluation) callExpression(callee *Callee) error {
	if ev.calls++; ev.e.nesting+ev.calls > ev.by.Limits.nesting() {
		return fmt.Errorf("%w: more than %d evaluations within each other", ErrLimit, ev.by.Limits.nesting())
	}
	ctx, dec, in, starts, hasStarts := ev.ctx, ev.dec, ev.in, ev.starts, ev.hasStarts
	ev.starts, ev.hasStarts = nil, false
	ev.dec.Expr, ev.dec.pos = callee.Expr, 0
	if callee.Context != nil {
		ev.ctx = callee.Context
	}
	if callee.Dialect != nil {
		ev.dec.Dialect = callee.Dialect
	}
	if callee.OffsetSize != 0 {
		ev.dec.OffsetSize = callee.OffsetSize
	}
	err := ev.operations()
	ev.ctx, ev.dec, ev.starts, ev.hasStarts = ctx, dec, starts, hasStarts
	ev.calls--
	if err != nil {
		ev.in = in
	}
	return err
}
