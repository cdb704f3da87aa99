// SPDX-License-Identifier: Apache-2.0

package locexpr

import "fmt"

// This file has the operations that Intel's graphics compiler writes. Its registers belong to
// a whole thread, of which a lane has some bits, so the operands of other operations are on
// the stack here.

// opIntelRegs pops the number of a register and pushes its location.
func opIntelRegs(ev *evaluation) error {
	reg, err := ev.popCount()
	if err != nil {
		return err
	}
	return ev.pushRegister(reg)
}

// opIntelPushBitPieceStack pops a size in bits, an offset in bits and a
// location, and pushes the bits there as a value.
func opIntelPushBitPieceStack(ev *evaluation) error {
	size, distance, err := ev.popBitRange()
	if err != nil {
		return err
	}
	l, err := ev.popLocation()
	if err != nil {
		return err
	}
	if err := l.shift(distance, ev.context, ev.bits); err != nil {
		return err
	}
	return ev.pushBits(&l, size)
}

// opIntelPieceStack is DW_OP_piece with its size on the stack.
func opIntelPieceStack(ev *evaluation) error {
	size, err := ev.popCount()
	if err != nil {
		return err
	}
	return ev.bytePiece(size)
}

// opIntelBitPieceStack is DW_OP_bit_piece with its size, on top, and its offset
// on the stack.
func opIntelBitPieceStack(ev *evaluation) error {
	size, distance, err := ev.popBitRange()
	if err != nil {
		return err
	}
	return ev.addPart(size, distance)
}

// opIntelRegvalBits pops an offset in bits and the number of a register, and pushes as many
// bits of it as the operand.
func opIntelRegvalBits(ev *evaluation) error {
	offset, err := ev.popDisplacement()
	if err != nil {
		return err
	}
	reg, err := ev.popCount()
	if err != nil {
		return err
	}
	l, err := ev.context.Register(ev.ctx, reg)
	if err != nil {
		return err
	}
	if err := l.shift(bitDisplacement(offset), ev.context, ev.bits); err != nil {
		return err
	}
	return ev.pushBits(&l, ev.inst.Operands[0])
}

// popBitRange pops a size and below it a displacement, both in bits.
func (ev *evaluation) popBitRange() (size uint64, distance displacement, err error) {
	if size, err = ev.popCount(); err != nil {
		return 0, distance, err
	}
	offset, err := ev.popDisplacement()
	return size, bitDisplacement(offset), err
}

// popCount pops a number that must not be negative.
func (ev *evaluation) popCount() (uint64, error) {
	i, err := ev.popIntegral()
	if err != nil {
		return 0, err
	}
	v, ok := i.uint64()
	if !ok {
		return 0, illFormed{fmt.Errorf("%w: a number from 0 to 2^64-1 is needed", ErrType)}
	}
	return v, nil
}
