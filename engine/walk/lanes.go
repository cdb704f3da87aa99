// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/locexpr"
)

// Lane returns the current lane, and how many lanes the function has by DW_AT_LLVM_lanes
// (A.3.3.5). Without it they are the thread's: compilers do not write that attribute, whose
// default would be 1.
func (c surrounded) Lane() (lane, lanes uint64, err error) {
	if c.s.Lane == nil {
		return 0, 0, errNoElement("lane")
	}
	c.walker.input.laneUsed = true
	lanes = uint64(c.ThreadLanes())
	if d := c.attributes(); d != nil && d.Lanes != 0 {
		lanes = d.Lanes
	}
	return uint64(*c.s.Lane), lanes, nil
}

// Iteration returns the current iteration, and how many execute concurrently by
// DW_AT_LLVM_iterations (A.3.3.5): 1 where a function does not have it, and 0, which is not
// known, where there is no debugging information.
func (c surrounded) Iteration(ctx context.Context) (iteration, iterations uint64, err error) {
	if c.s.Iteration == nil {
		return 0, 0, errNoElement("iteration")
	}
	if d := c.attributes(); d != nil {
		if iterations, err = c.iterations(ctx, d); err != nil {
			return 0, 0, fmt.Errorf("DW_AT_LLVM_iterations: %w", err)
		}
	}
	return *c.s.Iteration, iterations, nil
}

// attributes returns the lane attributes of the functions at the frame's PC; nil without
// debugging information.
func (f *frame) attributes() *code.LaneAttributes {
	if f.module == nil || f.isNowhere() {
		return nil
	}
	return f.module.Code.LaneAttributes(f.lookup)
}

// iterations evaluates DW_AT_LLVM_iterations.
func (c surrounded) iterations(ctx context.Context, d *code.LaneAttributes) (uint64, error) {
	if d.Iterations == nil {
		return 1, nil
	}
	exprs, err := d.Iterations.At(c.lookup)
	if err != nil || len(exprs) == 0 {
		return 1, err
	}
	if len(exprs) > 1 {
		return 0, locexpr.IllFormedError(fmt.Errorf("%d expressions: %w", len(exprs), errPlaces))
	}
	u := c.unitContext(d.Function, c.s.Lane)
	l, err := u.evaluate(ctx, d.Iterations.Unit, exprs[0])
	if err != nil {
		return 0, err
	}
	if l.NumPlaces() != 1 || l.Place(0).Storage != locexpr.Implicit {
		return 0, locexpr.IllFormedError(errors.New("expected one implicit location description"))
	}
	bits := c.walker.machine.Description.AddressBits
	var b [8]byte
	if err := l.Read(ctx, c, b[:(bits+7)/8], uint64(bits)); err != nil {
		return 0, err
	}
	n := integer(b[:(bits+7)/8], c.ByteOrder())
	if n == 0 || n>>(bits-1) != 0 {
		return 0, locexpr.IllFormedError(fmt.Errorf("%#x, expected 1 or more", n))
	}
	return n, nil
}

// errCircular is the error where the rule of a register needs that register.
var errCircular = errors.New("circular dependency in call frame information")

// CallFrameEntryRegister returns where register reg was on entry to the frame's
// function: where the caller's register is (A.2.5.4.4.1). A frame without a row
// is at its entry, as far as is known.
func (c frameContext) CallFrameEntryRegister(ctx context.Context, reg uint64) (locexpr.Location, error) {
	if c.source == nil || c.source.Rules == nil {
		if c.callee == nil && c.walker.process.isSynthetic() {
			return c.location(ctx, reg)
		}
		return locexpr.Location{}, fmt.Errorf("call frame information: %w", locexpr.ErrNoContext)
	}
	if slices.Contains(c.entering, reg) {
		return locexpr.Location{}, locexpr.IllFormedError(fmt.Errorf("%w: %s on entry", errCircular, c.walker.registerName(reg)))
	}
	c.entering = append(c.entering, reg)
	defer func() { c.entering = c.entering[:len(c.entering)-1] }()
	return c.saved(ctx, reg)
}

// isSynthetic reports whether the target was made up by the caller.
func (p *Process) isSynthetic() bool {
	_, ok := p.state.(*Synthetic)
	return ok
}
