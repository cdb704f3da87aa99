// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// This file finds the arguments of a function's call, by the call site in the caller's
// debugging information (DWARF 5, 2.5.1.7 and 3.4).

// ErrNoCallValue is the error for an argument of a frame's call that is not known.
var ErrNoCallValue = errors.New("the value at the call is not known")

func noCallValue(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNoCallValue, fmt.Sprintf(format, args...))
}

// call is the call of a frame's function.
type call struct {
	caller *unitContext
	site   dwarf.CallSite
	callee dwarf.Entry // the callee that the site names, or the zero Entry
	err    error       // why it is not known
}

// findCall finds the call of the frame, once.
func (u *unitContext) findCall(ctx context.Context) (*call, error) {
	if u.call == nil {
		u.call = &call{}
		u.call.err = u.call.find(ctx, u)
	}
	return u.call, u.call.err
}

// find looks for the call site at the caller's return address, or of the tail call by which the
// caller was left. The frames of a stack that is still being walked have no callers yet.
func (c *call) find(ctx context.Context, u *unitContext) error {
	if u.function.IsZero() {
		return noCallValue("the function is not described")
	}
	if tail := u.frame.tailCaller(); tail != nil {
		left := tail.called.tail
		c.caller, c.site = tail.unitContext(left.from.body, u.around.Lane), left.site
		callee, err := c.site.Callee()
		if err != nil {
			return err
		}
		c.callee = callee
	} else if err := c.findReturn(u); err != nil {
		return err
	}
	switch {
	case u.frame.called.isByAddress():
		c.callee = dwarf.Entry{}
	case c.callee.IsZero():
		if err := c.checkTarget(ctx, u); err != nil {
			return err
		}
	}
	return u.code.Checked(c.callee, u.function, func() error { return u.checkCallee(c.callee) }, func(err error) bool {
		return errors.Is(err, ErrNoCallValue)
	})
}

// findReturn looks for the call site at the return address of the physical caller.
func (c *call) findReturn(u *unitContext) error {
	f := u.frame.physical()
	if f.index+1 >= f.walker.walked {
		return noCallValue("there is no frame of a caller")
	}
	caller := f.walker.frames[f.index+1]
	switch {
	case caller.isGuess():
		return noCallValue("the caller is a guess")
	case caller.exact:
		return noCallValue("the function was not called, it was put between two instructions of frame %d", caller.index)
	case caller.module == nil || caller.module.Code.DWARF() == nil:
		return noCallValue("the caller has no debugging information")
	}
	known, err := caller.module.Code.Call(caller.offset, caller.function())
	if err != nil {
		return err
	}
	if known.Site.IsZero() {
		return noCallValue("the caller has no call site with the return address %#x", caller.offset)
	}
	function, err := caller.described()
	if err != nil {
		return err
	}
	if function.IsZero() {
		return noCallValue("the caller's function is not described")
	}
	c.caller, c.site, c.callee = caller.unitContext(function, u.around.Lane), known.Site, known.Callee
	return nil
}

// checkTarget checks that the call, whose site does not name the callee, is of the frame's function.
func (c *call) checkTarget(ctx context.Context, u *unitContext) error {
	target, ok, err := c.site.Target()
	if err != nil {
		return err
	}
	entry, hasEntry, err := u.function.EntryPC()
	if err != nil {
		return err
	}
	if !ok || !hasEntry {
		return noCallValue("the call site does not say what it calls")
	}
	v, err := c.caller.passed(ctx, target.Unit, target.Expr)
	if err != nil {
		return err
	}
	if address := (entry + u.ev.LoadBias) & u.frame.walker.machine.addresses; v.Uint64() != address {
		return noCallValue("the call is one of %#x, the function is at %#x", v.Uint64(), address)
	}
	return nil
}

// checkCallee checks that a call of callee, or of a function that its site does not name, where
// callee is the zero Entry, is of the frame's function. A called function may have left by a tail
// call to another one, which then got other arguments.
func (u *unitContext) checkCallee(callee dwarf.Entry) error {
	if !callee.IsZero() {
		same, err := dwarf.SameFunction(callee, u.function)
		if err == nil && !same {
			err = noCallValue("the call is one of another function, the %s", callee)
		}
		if err != nil {
			return err
		}
	}
	return u.checkTailCalls(callee)
}

// maxTailCallers bounds the functions in which tail calls back to a frame's function are looked
// for.
const maxTailCallers = 1 << 8

// checkTailCalls checks that the function, once called, is not left by tail calls that lead to
// it again: it would then have other arguments than the call's. A tail call whose target is not
// known may lead anywhere. A tail call of a function that the module does not have, or that is
// not described, is assumed not to lead back.
func (u *unitContext) checkTailCalls(callee dwarf.Entry) error {
	reader := u.code.DWARF()
	waiting := []dwarf.Entry{u.function}
	if !callee.IsZero() && !callee.Is(u.function) {
		// It is not known which of the copies of the function was called.
		instances, err := u.function.Instances(u.function)
		if err != nil {
			return err
		}
		waiting = append(waiting, instances...)
	}
	for next := 0; next < len(waiting); next++ {
		if len(waiting) > maxTailCallers {
			return noCallValue("more than %d functions may have called it by tail calls", maxTailCallers)
		}
		body := waiting[next]
		sites, areAll, err := body.TailCalls()
		if err != nil {
			return err
		}
		if !areAll {
			return noCallValue("the %s may have tail calls that are not described", body)
		}
		for _, site := range sites {
			callee, err := site.Callee()
			if err != nil {
				return err
			}
			if callee.IsZero() {
				return noCallValue("a tail call of the %s may lead back to the function", body)
			}
			same, err := dwarf.SameFunction(callee, u.function)
			if err != nil {
				return err
			}
			if same {
				return noCallValue("tail calls of the %s lead back to the function", body)
			}
			bodies, areAll, err := reader.Bodies(site, callee)
			if err != nil {
				return err
			}
			if !areAll || len(bodies) > maxTailCallers {
				return noCallValue("a tail call of the %s may lead back to the function", body)
			}
			if waiting = appendNew(waiting, bodies); len(waiting) > maxTailCallers {
				break
			}
		}
	}
	return nil
}

// appendNew appends the entries that are not in a list.
func appendNew(list, more []dwarf.Entry) []dwarf.Entry {
next:
	for _, e := range more {
		for _, known := range list {
			if e.Is(known) {
				continue next
			}
		}
		list = append(list, e)
	}
	return list
}

// parameter evaluates, in the caller, the first matching argument of the call. With isData it
// is the memory that the argument points to.
func (u *unitContext) parameter(ctx context.Context, isData bool, fits func(*call, dwarf.CallParameter) (bool, error)) (v locexpr.Value, err error) {
	c, err := u.findCall(ctx)
	if err != nil {
		return v, err
	}
	for p, err := range c.site.Parameters() {
		if err != nil {
			return v, err
		}
		if ok, err := fits(c, p); err != nil || !ok {
			if err != nil {
				return v, err
			}
			continue
		}
		l, ok, err := p.Value()
		if isData {
			l, ok, err = p.DataValue()
		}
		if err != nil {
			return v, err
		}
		if !ok {
			break
		}
		return c.caller.passed(ctx, l.Unit, l.Expr)
	}
	return v, noCallValue("the call site %s does not say it", c.site)
}

// passed evaluates a DW_AT_call_value or DW_AT_call_target in the caller. Clang writes a
// register location there for the contents of the register.
func (u *unitContext) passed(ctx context.Context, unit dwarf.Unit, expr []byte) (v locexpr.Value, err error) {
	if p, ok := u.placeOf(unit, expr); !ok || !p.isRegister() {
		return u.value(ctx, unit, expr)
	}
	err = u.withUnit(unit, func(ev *locexpr.Evaluator) error {
		v, err = ev.EntryValue(ctx, expr, u.context(unit))
		return err
	})
	return v, err
}

// entryPlace is the operand of an expression about a register: the register itself, the sum of
// its value and an offset, or the memory there.
type entryPlace struct {
	register uint64
	offset   int64
	isSum    bool
	data     uint64 // bytes of memory; 0: not the memory
	typ      uint64 // offset of the base type that it is read as; 0: none
}

// isRegister reports whether it is a register itself.
func (p *entryPlace) isRegister() bool { return !p.isSum && p.data == 0 }

// placeOf reads an expression of one of these kinds; ok is false for another one.
func (u *unitContext) placeOf(unit dwarf.Unit, expr []byte) (p entryPlace, ok bool) {
	if len(expr) == 1 && dw.OpReg0 <= expr[0] && expr[0] <= dw.OpReg31 { // the usual one, in every dialect
		return entryPlace{register: uint64(expr[0] - dw.OpReg0)}, true
	}
	n := 0
	dialect := u.code.UnitDialect(unit)
	for instruction, err := range locexpr.Decode(expr, dialect, unit.AddressSize(), u.frame.walker.machine.Order) {
		if err != nil || instruction.Op == nil {
			return p, false
		}
		n++
		switch kind, reg := operationKind(instruction); {
		case n == 1 && kind == "DW_OP_reg":
			p.register = reg
		case n == 1 && kind == "DW_OP_regval_type":
			p.register, p.typ = reg, instruction.Operands[1]
		case n == 1 && kind == "DW_OP_breg":
			p.register, p.isSum, p.offset = reg, true, int64(instruction.Operands[0])
			if instruction.Op.Operands[1] != locexpr.NoOperand { // DW_OP_bregx
				p.offset = int64(instruction.Operands[1])
			}
		case n == 2 && p.isSum && p.offset == 0 && kind == "DW_OP_deref":
			p.isSum, p.data = false, uint64(unit.AddressSize())
		case n == 2 && p.isSum && p.offset == 0 && kind == "DW_OP_deref_size":
			p.isSum, p.data = false, instruction.Operands[0]
		default:
			return p, false
		}
	}
	return p, n > 0
}

// operationKind returns the kind of an operation about a register, and the register, by its
// name: "DW_OP_reg" of DW_OP_reg5, DW_OP_regx.
func operationKind(instruction locexpr.Instruction) (kind string, register uint64) {
	kind = strings.Replace(instruction.Op.Name, "DW_OP_GNU_", "DW_OP_", 1)
	switch kind {
	case "DW_OP_regx", "DW_OP_bregx":
		return kind[:len(kind)-1], instruction.Operands[0]
	case "DW_OP_regval_type":
		return kind, instruction.Operands[0]
	}
	name := strings.TrimRight(kind, "0123456789")
	if register, err := strconv.ParseUint(kind[len(name):], 10, 8); err == nil {
		return name, register
	}
	return kind, 0
}

// EntryValue returns the function's argument in a register, or in memory that a register
// pointed to, by DW_OP_entry_value (DWARF 5, 2.5.1.7).
func (c *inUnit) EntryValue(ctx context.Context, block []byte) (locexpr.Value, error) {
	u := c.u
	want, isPlace := u.placeOf(c.unit, block)
	v, err := u.parameter(ctx, want.data != 0, func(c *call, p dwarf.CallParameter) (bool, error) {
		l, ok, err := p.Location(dw.AttrLocation)
		if err != nil || !ok || l.Lists != nil {
			return false, err
		}
		if bytes.Equal(l.Expr, block) {
			return true, nil
		}
		known, ok := c.caller.placeOf(l.Unit, l.Expr)
		return isPlace && ok && known.isRegister() && known.register == want.register, nil
	})
	if err != nil {
		return v, err
	}
	return u.shape(ctx, c.unit, v, &want)
}

// shape converts the value of a parameter to the shape of the expression which needs it.
func (u *unitContext) shape(ctx context.Context, unit dwarf.Unit, v locexpr.Value, want *entryPlace) (locexpr.Value, error) {
	switch {
	case want.isSum && v.Type() == nil:
		return locexpr.GenericValue((v.Uint64() + uint64(want.offset)) & u.frame.walker.machine.addresses), nil
	case want.isSum && want.offset != 0:
		return v, noCallValue("the register has a value of type %v", v.Type())
	case want.data > 0 && want.data < 8 && v.Type() == nil:
		return locexpr.GenericValue(v.Uint64() & (1<<(8*want.data) - 1)), nil
	case want.typ != 0 && v.Type() == nil:
		return u.value(ctx, unit, binary.AppendUvarint([]byte{dw.OpConvert}, want.typ), locexpr.ValueEntry(v))
	}
	return v, nil
}

// ParameterValue returns the call's argument for the formal parameter at an offset of the unit,
// by DW_OP_GNU_parameter_ref: for a parameter without a place in the function.
func (c *inUnit) ParameterValue(ctx context.Context, offset uint64) (locexpr.Value, error) {
	entry, err := c.unit.Entry(c.unit.Offset() + offset)
	if err != nil {
		return locexpr.Value{}, locexpr.IllFormedError(err)
	}
	root, err := entry.Root()
	if err != nil {
		return locexpr.Value{}, err
	}
	return c.u.parameter(ctx, false, func(_ *call, p dwarf.CallParameter) (bool, error) {
		formal, err := p.Parameter()
		if err != nil || formal.IsZero() {
			return false, err
		}
		own, err := formal.Root()
		return own.Is(root), err
	})
}

// atEntry returns the call's argument for a formal parameter of the function, by the
// parameter's place when the function is entered: a register, or memory of the caller's frame.
func (u *unitContext) atEntry(ctx context.Context, parameter dwarf.Entry) (v locexpr.Value, err error) {
	entry, ok, err := u.function.EntryPC()
	if err != nil {
		return v, err
	}
	l, hasPlace, err := parameter.Location(dw.AttrLocation)
	if err != nil {
		return v, err
	}
	if !ok || !hasPlace {
		return v, noCallValue("the %s has no location", parameter)
	}
	exprs, err := l.At(entry)
	if err != nil {
		return v, err
	}
	if len(exprs) != 1 {
		return v, noCallValue("the %s has %d locations where the function is entered", parameter, len(exprs))
	}
	if p, ok := u.placeOf(l.Unit, exprs[0]); ok && p.isRegister() {
		return u.context(l.Unit).EntryValue(ctx, exprs[0])
	}
	place, err := u.evaluate(ctx, l.Unit, exprs[0])
	if err != nil {
		return v, err
	}
	space, address, ok := place.MemoryAddress()
	if !ok {
		return v, noCallValue("the %s is in no register and no memory where the function is entered", parameter)
	}
	return u.parameter(ctx, false, func(c *call, p dwarf.CallParameter) (bool, error) {
		l, ok, err := p.Location(dw.AttrLocation)
		if err != nil || !ok || l.Lists != nil {
			return false, err
		}
		if known, ok := c.caller.placeOf(l.Unit, l.Expr); !ok || !known.isSum {
			return false, nil
		}
		there, err := c.caller.evaluate(ctx, l.Unit, l.Expr)
		if err != nil {
			return false, nil //nolint:nilerr // another parameter may match
		}
		inSpace, place, ok := there.MemoryAddress()
		return ok && inSpace == space && place == address, nil
	})
}
