package cfi

import (
	"fmt"
	"math"

	"github.com/unwindd/unwindd/locexpr"
)

// Location returns the CFA that the rule defines in the frame of ctx: one
// memory byte address, of any address space, bound to the scope of ctx. ev
// evaluates expressions; it is not needed for the other forms.
//
// The forms are those of A.6.4.2.2. ErrNoCFA when the row defined none;
// ErrNotMemory when an expression yields anything but a memory byte address;
// ErrAddressSpace when the architecture has no such space; ErrRegisterSize when
// the register is smaller than an address of the space.
func (c CFARule) Location(ev *locexpr.Evaluator, ctx locexpr.Context) (locexpr.Location, error) {
	switch c.Kind {
	case CFARegister:
		return c.registerLocation(ctx)
	case CFAExpression:
		l, err := evaluateLocation(ev, ctx, c.Expr)
		if err != nil {
			return locexpr.Location{}, fmt.Errorf("CFA: %w", err)
		}
		if _, _, ok := l.MemoryAddress(); !ok {
			return locexpr.Location{}, &Error{Err: ErrNotMemory, Detail: l.String()}
		}
		return l, nil
	}
	return locexpr.Location{}, &Error{Err: ErrNoCFA}
}

// registerLocation is DW_OP_constu AS; DW_OP_LLVM_aspace_bregx R, B
// (A.2.5.4.4.3): the low S bits of register plus displacement, S being the
// address size of the space.
func (c CFARule) registerLocation(ctx locexpr.Context) (locexpr.Location, error) {
	spaceBits, ok := ctx.SpaceBits(c.Space)
	if !ok || spaceBits == 0 || spaceBits > 64 {
		return locexpr.Location{}, &Error{Err: ErrAddressSpace, Detail: fmt.Sprintf("CFA in space %d", c.Space)}
	}
	if n, ok := ctx.RegisterBits(c.Register); ok && n < spaceBits {
		return locexpr.Location{}, sizeError("CFA register", c.Register, n, "an address", uint64(spaceBits))
	}
	v, err := ctx.RegisterValue(c.Register)
	if err != nil {
		return locexpr.Location{}, fmt.Errorf("CFA register %d: %w", c.Register, err)
	}
	address := (v + uint64(c.Offset)) & (^uint64(0) >> (64 - spaceBits))
	return locexpr.MemoryLocation(c.Space, address).WithScope(ctx.Scope()), nil
}

// Location returns where the caller's register of a column is, or the implicit
// location that holds its value (A.6.4.1). ctx is that of the frame whose row
// the rule is from, and cfa is that frame's CFA. ErrNoRule for Unspecified,
// whose default is the architecture's, and for Architectural.
func (r Rule) Location(ev *locexpr.Evaluator, ctx locexpr.Context, column uint64, cfa locexpr.Location) (locexpr.Location, error) {
	l, err := r.location(ev, ctx, column, cfa)
	if err != nil {
		return locexpr.Location{}, fmt.Errorf("column %d: %w", column, err)
	}
	return l, nil
}

func (r Rule) location(ev *locexpr.Evaluator, ctx locexpr.Context, column uint64, cfa locexpr.Location) (locexpr.Location, error) {
	switch r.Kind {
	case Undefined:
		return locexpr.UndefinedLocation(), nil
	case SameValue:
		return ctx.Register(column)
	case Offset:
		return move(cfa, r.Offset)
	case ValOffset:
		return r.valOffset(ctx, column, cfa)
	case Register:
		from, known := ctx.RegisterBits(r.Register)
		to, ok := ctx.RegisterBits(column)
		if known && ok && from != to {
			return locexpr.Location{}, sizeError("register", r.Register, from, "column", uint64(to))
		}
		return ctx.Register(r.Register)
	case Expression:
		return evaluateLocation(ev, ctx, r.Expr, locexpr.LocationEntry(cfa))
	case ValExpression:
		return r.valExpression(ev, ctx, column, cfa)
	case Architectural:
		return locexpr.Location{}, &Error{Err: ErrNoRule, Detail: "the rule is the architecture's"}
	}
	return locexpr.Location{}, &Error{Err: ErrNoRule}
}

// valOffset is the address CFA+N as a value. The register must have the size
// of an address of the CFA's space; a column that is no register takes that
// size.
func (r Rule) valOffset(ctx locexpr.Context, column uint64, cfa locexpr.Location) (locexpr.Location, error) {
	if _, _, ok := cfa.MemoryAddress(); !ok {
		return locexpr.Location{}, &Error{Err: ErrNotMemory, Detail: cfa.String()}
	}
	l, err := move(cfa, r.Offset)
	if err != nil {
		return locexpr.Location{}, err
	}
	space, address, _ := l.MemoryAddress()
	bits, ok := ctx.SpaceBits(space)
	if !ok || bits == 0 || bits > 64 {
		return locexpr.Location{}, &Error{Err: ErrAddressSpace, Detail: fmt.Sprintf("CFA in space %d", space)}
	}
	if n, ok := ctx.RegisterBits(column); ok && n != bits {
		return locexpr.Location{}, sizeError("register", column, n, "an address", uint64(bits))
	}
	if address > ^uint64(0)>>(64-bits) {
		return locexpr.Location{}, &Error{Err: ErrOverflow, Detail: fmt.Sprintf("address %#x of space %d, which has %d bits", address, space, bits)}
	}
	return locexpr.ImplicitUint64(address, bits, ctx.ByteOrder()), nil
}

// valExpression is the value of the expression, which must have the size of
// the register; a column that is no register takes the value's.
func (r Rule) valExpression(ev *locexpr.Evaluator, ctx locexpr.Context, column uint64, cfa locexpr.Location) (locexpr.Location, error) {
	unrestricted := ev.CFI
	ev.CFI = true
	v, err := ev.Value(r.Expr, ctx, locexpr.LocationEntry(cfa))
	ev.CFI = unrestricted
	if err != nil {
		return locexpr.Location{}, err
	}
	bits := v.Bits()
	if n, ok := ctx.RegisterBits(column); ok && uint64(n) != bits {
		return locexpr.Location{}, sizeError("register", column, n, "the value", bits)
	}
	if l, ok := v.ImplicitPointer(); ok {
		return l, nil
	}
	if bits <= 64 {
		return locexpr.ImplicitUint64(v.Uint64(), uint32(bits), ctx.ByteOrder()), nil
	}
	return locexpr.ImplicitLocation(v.Bytes(ctx.ByteOrder())), nil
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
func evaluateLocation(ev *locexpr.Evaluator, ctx locexpr.Context, expr []byte, initial ...locexpr.Entry) (locexpr.Location, error) {
	unrestricted := ev.CFI
	ev.CFI = true
	l, err := ev.Location(expr, ctx, initial...)
	ev.CFI = unrestricted
	return l, err
}

func sizeError(what string, number uint64, bits uint32, other string, otherBits uint64) *Error {
	return &Error{Err: ErrRegisterSize, Detail: fmt.Sprintf("%s %d has %d bits, %s %d", what, number, bits, other, otherBits)}
}
