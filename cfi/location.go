// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/unwindd/unwindd/locexpr"
)

// Location returns the CFA that the rule defines in a frame: one memory byte address, of any
// address space, bound to the scope of the frame. ev evaluates expressions and has the
// address size of the default space. Where ev is nil, which it may be for a register and an
// offset, the frame has it.
//
// The kinds of rules are defined in A.6.4.2.2. ErrNoCFA when the row defined none;
// ErrNotMemory when an expression yields anything but a memory byte address; ErrAddressSpace
// when the architecture has no such space; ErrRegisterSize when the register is smaller than
// an address of the space.
func (c CFARule) Location(ctx context.Context, ev *locexpr.Evaluator, frame locexpr.Context) (locexpr.Location, error) {
	switch c.Kind {
	case CFARegister:
		return c.registerLocation(ctx, ev, frame)
	case CFAExpression:
		l, err := evaluateLocation(ctx, ev, frame, c.Expr)
		if err != nil {
			return locexpr.Location{}, err
		}
		if _, _, ok := l.MemoryAddress(); !ok {
			return locexpr.Location{}, notMemory(l)
		}
		return l, nil
	}
	return locexpr.Location{}, &Error{Err: ErrNoCFA}
}

// registerLocation is DW_OP_constu AS; DW_OP_LLVM_aspace_bregx R, B
// (A.2.5.4.4.3): the low S bits of register plus displacement, S being the
// address size of the space.
func (c CFARule) registerLocation(ctx context.Context, ev *locexpr.Evaluator, frame locexpr.Context) (locexpr.Location, error) {
	bits, err := spaceBits(ev, frame, c.Space)
	if err != nil {
		return locexpr.Location{}, err
	}
	v, err := registerValue(ctx, frame, c.Register, bits)
	if err != nil {
		return locexpr.Location{}, fmt.Errorf("CFA register %d: %w", c.Register, err)
	}
	address := (v + uint64(c.Offset)) & lowMask(bits)
	return locexpr.MemoryLocation(c.Space, address).WithScope(frame.Scope()), nil
}

// registerValue returns the low bits of a register, which must have as many.
func registerValue(ctx context.Context, frame locexpr.Context, register uint64, bits uint32) (uint64, error) {
	size, known := frame.RegisterBits(register)
	switch {
	case known && size < bits:
		return 0, sizeError(register, size, "an address", uint64(bits))
	case known && size > 64:
		return wideRegisterValue(ctx, frame, register, size, bits)
	}
	return frame.RegisterValue(ctx, register)
}

// wideRegisterValue returns the low bits of a register of size bits. On a
// big-endian machine they are its last ones.
func wideRegisterValue(ctx context.Context, frame locexpr.Context, register uint64, size, bits uint32) (uint64, error) {
	l, err := frame.Register(ctx, register)
	if err == nil && frame.ByteOrder() == locexpr.BigEndian {
		l, err = l.Offset(int64(size - bits))
	}
	if err != nil {
		return 0, err
	}
	var buf [8]byte
	if err := l.Read(ctx, frame, buf[:(bits+7)/8], uint64(bits)); err != nil {
		return 0, err
	}
	if frame.ByteOrder() == locexpr.BigEndian {
		return binary.BigEndian.Uint64(buf[:]) >> (64 - bits), nil
	}
	return binary.LittleEndian.Uint64(buf[:]), nil
}

// spaceBits returns the address size of a space, as an evaluation sees it: that
// of the default space is the size of the generic type.
func spaceBits(ev *locexpr.Evaluator, frame locexpr.Context, space locexpr.AddressSpace) (uint32, error) {
	var bits uint32
	known := true
	if ev == nil || space != locexpr.DefaultSpace {
		bits, known = frame.SpaceBits(space)
	} else if bits = ev.AddressBits; bits == 0 {
		bits = 64
	}
	if !known || bits == 0 || bits > 64 {
		return 0, &Error{Err: ErrAddressSpace, Detail: fmt.Sprintf("the CFA is in space %d", space)}
	}
	return bits, nil
}

func lowMask(bits uint32) uint64 { return ^uint64(0) >> (64 - bits) }

// Location returns the location of the caller's register of a column, or the implicit
// location that holds its value (A.6.4.1). frame is the one whose row has the rule, and cfa
// is that frame's CFA. ErrNoRule for Unspecified, whose default is the architecture's, and
// for Architectural; ErrLanes where a ValOffsetPerLane has no number of lanes or leaves a
// remainder.
func (r Rule) Location(ctx context.Context, ev *locexpr.Evaluator, frame locexpr.Context, column uint64, cfa locexpr.Location) (locexpr.Location, error) {
	l, err := r.location(ctx, ev, frame, column, cfa)
	if err != nil {
		return locexpr.Location{}, fmt.Errorf("column %d: %w", column, err)
	}
	return l, nil
}

func (r Rule) location(ctx context.Context, ev *locexpr.Evaluator, frame locexpr.Context, column uint64, cfa locexpr.Location) (locexpr.Location, error) {
	switch r.Kind {
	case Undefined:
		return locexpr.UndefinedLocation(), nil
	case SameValue:
		return frame.Register(ctx, column)
	case Offset:
		return move(cfa, r.Offset)
	case ValOffset:
		return r.valOffset(ev, frame, column, cfa, 1)
	case ValOffsetPerLane:
		counter, ok := frame.(LaneCounter)
		if !ok || counter.ThreadLanes() == 0 {
			return locexpr.Location{}, &Error{Err: ErrLanes, Detail: "how many there are is not known"}
		}
		return r.valOffset(ev, frame, column, cfa, uint64(counter.ThreadLanes()))
	case Register:
		sourceBits, known := frame.RegisterBits(r.Register)
		columnBits, ok := frame.RegisterBits(column)
		if known && ok && sourceBits != columnBits {
			return locexpr.Location{}, sizeError(r.Register, sourceBits, "column", uint64(columnBits))
		}
		return frame.Register(ctx, r.Register)
	case Expression:
		return evaluateLocation(ctx, ev, frame, r.Expr, locexpr.LocationEntry(cfa))
	case ValExpression:
		return r.valExpression(ctx, ev, frame, column, cfa)
	case Architectural:
		return locexpr.Location{}, &Error{Err: ErrNoRule, Detail: "the rule is the architecture's"}
	}
	return locexpr.Location{}, &Error{Err: ErrNoRule}
}

// LaneCounter is a Context that knows the number of lanes of its thread.
type LaneCounter interface {
	// ThreadLanes returns the number of lanes of the thread; 0 where it is not known.
	ThreadLanes() uint32
}

// valOffset is the address CFA+N as a value, divided. The register must have the size of an
// address of the CFA's space; a column that is no register takes that size.
func (r Rule) valOffset(ev *locexpr.Evaluator, frame locexpr.Context, column uint64, cfa locexpr.Location, divisor uint64) (locexpr.Location, error) {
	if _, _, ok := cfa.MemoryAddress(); !ok {
		return locexpr.Location{}, notMemory(cfa)
	}
	l, err := move(cfa, r.Offset)
	if err != nil {
		return locexpr.Location{}, err
	}
	space, address, _ := l.MemoryAddress()
	bits, err := spaceBits(ev, frame, space)
	if err != nil {
		return locexpr.Location{}, err
	}
	if n, ok := frame.RegisterBits(column); ok && n != bits {
		return locexpr.Location{}, sizeError(column, n, "an address", uint64(bits))
	}
	if address > lowMask(bits) {
		return locexpr.Location{}, &Error{Err: ErrOverflow, Detail: fmt.Sprintf("address %#x of space %d, which has %d bits", address, space, bits)}
	}
	if address%divisor != 0 {
		return locexpr.Location{}, &Error{Err: ErrLanes, Detail: fmt.Sprintf("address %#x of space %d, %d lanes", address, space, divisor)}
	}
	return locexpr.ImplicitUint64(address/divisor, bits, frame.ByteOrder()), nil
}

// valExpression is the value of the expression, which must have the size of the register; a
// column that is no register takes the value's size.
func (r Rule) valExpression(ctx context.Context, ev *locexpr.Evaluator, frame locexpr.Context, column uint64, cfa locexpr.Location) (locexpr.Location, error) {
	unrestricted := ev.CFI
	ev.CFI = true
	v, err := ev.Value(ctx, r.Expr, frame, locexpr.LocationEntry(cfa))
	ev.CFI = unrestricted
	if err != nil {
		return locexpr.Location{}, err
	}
	bits := v.Bits()
	if n, ok := frame.RegisterBits(column); ok && uint64(n) != bits {
		return locexpr.Location{}, sizeError(column, n, "the value", bits)
	}
	if l, ok := v.ImplicitPointer(); ok {
		return l, nil
	}
	if bits <= 64 {
		return locexpr.ImplicitUint64(v.Uint64(), uint32(bits), frame.ByteOrder()), nil
	}
	return locexpr.ImplicitLocation(v.Bytes(frame.ByteOrder())), nil
}

// move is DW_OP_LLVM_offset n on a location (A.2.5.4.4.1).
func move(l locexpr.Location, n int64) (locexpr.Location, error) {
	if n > math.MaxInt64/8 || n < math.MinInt64/8 {
		return locexpr.Location{}, &Error{Err: ErrOverflow, Detail: fmt.Sprintf("CFA%+d", n)}
	}
	return l.Offset(8 * n)
}

// evaluateLocation evaluates an expression of call frame information, under the
// restrictions of A.6.4.2.
func evaluateLocation(ctx context.Context, ev *locexpr.Evaluator, frame locexpr.Context, expr []byte, initial ...locexpr.Entry) (locexpr.Location, error) {
	unrestricted := ev.CFI
	ev.CFI = true
	l, err := ev.Location(ctx, expr, frame, initial...)
	ev.CFI = unrestricted
	return l, err
}

// notMemory is the error of a CFA that is not in memory. The text of a composite may be long.
func notMemory(l locexpr.Location) *Error {
	if p := l.Place(0); p.Storage == locexpr.Composite {
		return &Error{Err: ErrNotMemory, Detail: "a composite location"}
	}
	return &Error{Err: ErrNotMemory, Detail: l.String()}
}

func sizeError(register uint64, bits uint32, other string, otherBits uint64) *Error {
	return &Error{Err: ErrRegisterSize, Detail: fmt.Sprintf("register %d has %d bits, %s %d", register, bits, other, otherBits)}
}
