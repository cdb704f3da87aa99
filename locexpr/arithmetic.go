// SPDX-License-Identifier: Apache-2.0

package locexpr

import "context"

// This file has the literal operations (A.2.5.4.3.1) and the arithmetic and
// logical ones (A.2.5.4.3.2, DWARF 5, 2.5.1.4). Where one works on the generic
// type here, integers wrap around at its size; typed.go has every type, and
// quick.go the operations that are executed most.

// signed returns an integer of the generic type as a signed one.
func (ev *evaluation) signed(v uint64) int64 { return int64(signExtend(v, ev.bits)) }

func opLit(ev *evaluation) error   { return ev.pushGeneric(ev.inst.Op.number) }
func opConst(ev *evaluation) error { return ev.pushGeneric(ev.inst.Operands[0]) }

func opConstx(ev *evaluation) error {
	v, err := addrx(ev.context, ev.inst.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushGeneric(v)
}

func (ev *evaluation) pushIndex(index, count uint64, what string) error {
	if count != 0 && index >= count {
		return illFormedf("%s %d of %d", what, index, count)
	}
	return ev.pushGeneric(index)
}

// LaneContext has a current lane, for DW_OP_LLVM_push_lane.
type LaneContext interface {
	// Lane returns the current lane, and how many lanes the subprogram has by
	// its DW_AT_LLVM_lanes; 0 where that is not known (A.2.5.4.3.1).
	Lane() (lane, lanes uint64, err error)
}

// IterationContext has a current iteration, for DW_OP_LLVM_push_iteration.
type IterationContext interface {
	// Iteration returns the current iteration, and how many execute
	// concurrently by DW_AT_LLVM_iterations; 0 where that is not known
	// (A.2.5.4.3.1).
	Iteration(ctx context.Context) (iteration, iterations uint64, err error)
}

func opPushLane(ev *evaluation) error {
	c, ok := ev.context.(LaneContext)
	if !ok {
		return noContext("lane")
	}
	lane, lanes, err := c.Lane()
	if err != nil {
		return err
	}
	return ev.pushIndex(lane, lanes, "lane")
}

func opPushIteration(ev *evaluation) error {
	c, ok := ev.context.(IterationContext)
	if !ok {
		return noContext("iteration")
	}
	iteration, iterations, err := c.Iteration(ev.ctx)
	if err != nil {
		return err
	}
	return ev.pushIndex(iteration, iterations, "iteration")
}

func opAbs(ev *evaluation) error {
	s := ev.unary()
	if s == nil {
		return ev.unaryTyped(absOp)
	}
	if ev.signed(s.value.word) < 0 {
		s.value.word = -s.value.word & ev.mask
	}
	return nil
}

func opPlusUconst(ev *evaluation) error {
	s := ev.unary()
	if s == nil {
		return ev.plusTyped(ev.inst.Operands[0])
	}
	s.value.word = (s.value.word + ev.inst.Operands[0]) & ev.mask
	return nil
}

// opDiv divides as signed integers.
func opDiv(ev *evaluation) error {
	s, top := ev.binary()
	if s == nil {
		return ev.binaryTyped(divOp)
	}
	if top == 0 {
		return ErrDivisionByZero
	}
	// Go defines the one quotient that overflows as wrapping around.
	s.value.word = uint64(ev.signed(s.value.word)/ev.signed(top)) & ev.mask
	return nil
}

// opMod divides as unsigned integers.
func opMod(ev *evaluation) error {
	s, top := ev.binary()
	if s == nil {
		return ev.binaryTyped(modOp)
	}
	if top == 0 {
		return ErrDivisionByZero
	}
	s.value.word %= top
	return nil
}

func opNeg(ev *evaluation) error {
	s := ev.unary()
	if s == nil {
		return ev.unaryTyped(negOp)
	}
	s.value.word = -s.value.word & ev.mask
	return nil
}

func opNot(ev *evaluation) error {
	s := ev.unary()
	if s == nil {
		return ev.unaryTyped(notOp)
	}
	s.value.word = ^s.value.word & ev.mask
	return nil
}

func opAnd(ev *evaluation) error   { return ev.binaryTyped(andOp) }
func opOr(ev *evaluation) error    { return ev.binaryTyped(orOp) }
func opXor(ev *evaluation) error   { return ev.binaryTyped(xorOp) }
func opPlus(ev *evaluation) error  { return ev.binaryTyped(addOp) }
func opMinus(ev *evaluation) error { return ev.binaryTyped(subOp) }
func opMul(ev *evaluation) error   { return ev.binaryTyped(mulOp) }
func opShl(ev *evaluation) error   { return ev.binaryTyped(shlOp) }
func opShr(ev *evaluation) error   { return ev.binaryTyped(shrOp) }
func opShra(ev *evaluation) error  { return ev.binaryTyped(shraOp) }
