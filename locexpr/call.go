// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"fmt"
)

// This file has the calls of DWARF procedures (A.2.5.4.2).

// CallContext has debugging information entries for DW_OP_call*.
type CallContext interface {
	// CallEntry returns the effect of DW_OP_call* with an entry (A.2.5.4.2).
	CallEntry(ctx context.Context, ref EntryRef) (Callee, error)
}

// EntryRef names a debugging information entry.
type EntryRef struct {
	Offset uint64
	InUnit bool // Offset counts from the compilation unit's start, not from .debug_info's
}

// CalleeKind is the kind of effect that DW_OP_call* has.
type CalleeKind uint8

// The kinds of callees (A.2.5.4.2).
const (
	NoEffect         CalleeKind = iota // the entry has neither attribute: nothing happens
	CalleeExpression                   // a DW_AT_location of class exprloc: it runs on the same stack
	CalleeLocation                     // a DW_AT_location of class loclist, evaluated, or a DW_AT_const_value as an implicit location: it is pushed
)

// Callee is the effect of DW_OP_call* with a debugging information entry.
type Callee struct {
	Kind     CalleeKind
	Location Location // of a CalleeLocation

	// Of a CalleeExpression: its bytes, and the compilation unit that holds
	// them.
	Expr       []byte
	Context    Context  // the caller's, except for the compilation unit; nil: the same
	Dialect    *Dialect // nil: the same
	OffsetSize int      // as Evaluator.OffsetSize; 0: the same
}

// callSteps is the cost of finding a debugging information entry.
const callSteps = 16

func opCallUnit(ev *evaluation) error {
	return ev.call(EntryRef{Offset: ev.inst.Operands[0], InUnit: true})
}

func opCallRef(ev *evaluation) error { return ev.call(EntryRef{Offset: ev.inst.Operands[0]}) }

func (ev *evaluation) call(ref EntryRef) error {
	if err := ev.charge(callSteps); err != nil {
		return err
	}
	c, ok := ev.context.(CallContext)
	if !ok {
		return noContext(unitElement)
	}
	callee, err := c.CallEntry(ev.ctx, ref)
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
	if ev.calls++; ev.e.nesting+ev.calls > ev.settings.Limits.nesting() {
		return fmt.Errorf("%w: more than %d evaluations within each other", ErrLimit, ev.settings.Limits.nesting())
	}
	outer, dec, inst, starts, hasStarts := ev.context, ev.dec, ev.inst, ev.starts, ev.hasStarts
	ev.starts, ev.hasStarts = nil, false
	ev.dec.Expr, ev.dec.pos = callee.Expr, 0
	if callee.Context != nil {
		ev.context = callee.Context
	}
	if callee.Dialect != nil {
		ev.dec.Dialect = callee.Dialect
	}
	if callee.OffsetSize != 0 {
		ev.dec.OffsetSize = callee.OffsetSize
	}
	err := ev.operations()
	ev.context, ev.dec, ev.starts, ev.hasStarts = outer, dec, starts, hasStarts
	ev.calls--
	if err != nil {
		ev.inst = inst
	}
	return err
}
