package engine

import (
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/locexpr"
)

// Lane is the current lane, of as many as the thread has.
func (c surrounded) Lane() (lane, lanes uint64, err error) {
	if c.s.Lane == nil {
		return c.frameContext.NoContext.Lane()
	}
	lanes = uint64(c.ThreadLanes())
	if lane = uint64(*c.s.Lane); lanes > 0 && lane >= lanes {
		return 0, 0, fmt.Errorf("lane %d of a thread with %d", lane, lanes)
	}
	return lane, lanes, nil
}

// Iteration is the current iteration.
func (c surrounded) Iteration() (iteration, iterations uint64, err error) {
	if c.s.Iteration == nil {
		return c.frameContext.NoContext.Iteration()
	}
	return *c.s.Iteration, 0, nil
}

// errCircular says that the rule of a register asks for that register.
var errCircular = errors.New("circular dependency in call frame information")

// CallFrameEntryRegister says where register reg was on entry to the frame's
// function: where the caller's register is (A.2.5.4.4.1). A frame without a row
// is at its entry, as far as anybody knows.
func (c frameContext) CallFrameEntryRegister(reg uint64) (locexpr.Location, error) {
	if c.source == nil || c.source.row == nil {
		if c.callee == nil && c.walker.target.madeUp() {
			return c.location(reg)
		}
		return locexpr.Location{}, fmt.Errorf("call frame information: %w", locexpr.ErrNoContext)
	}
	for _, busy := range c.entering {
		if busy == reg {
			return locexpr.Location{}, locexpr.IllFormedError(fmt.Errorf("%w: %s on entry", errCircular, c.walker.registerName(reg)))
		}
	}
	c.entering = append(c.entering, reg)
	defer func() { c.entering = c.entering[:len(c.entering)-1] }()
	return c.saved(reg)
}

// madeUp says whether the target is one that the caller made up.
func (t *Target) madeUp() bool {
	_, ok := t.state.(*Synthetic)
	return ok
}
