// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Surroundings are the context elements of an evaluation that a frame does not have by itself
// (heterogeneous extension, A.2.5.1). Nil elements are not specified, and an operation that
// needs one fails. Elements from a unit of debugging information, such as a frame base, are
// specified where there is a unit: see Activation.
type Surroundings struct {
	// Module is the module whose debugging information has the expression, for addresses and
	// thread-local storage. nil: the module of the frame's PC.
	Module *target.Module
	// Lane is the current lane; nil: none.
	Lane *uint32
	// Iteration is the current iteration; nil: none.
	Iteration *uint64
	// Object finds the current object.
	Object func(context.Context, locexpr.Context) (locexpr.Location, error)
	// CFA is the frame's CFA where no row has it.
	CFA *locexpr.Location
	// Unit is the unit of debugging information with the expression; nil: none. An Activation
	// gets the unit with each evaluation.
	Unit *InUnit
}

// InUnit is the unit of debugging information with an expression.
type InUnit struct {
	Code *code.Object // the object with the unit's debugging information
	Unit dwarf.Unit
	// Function is the function whose frame base is used. With the zero Entry it is the function
	// of Code at the frame's PC, where that is in Surroundings.Module, or in Code's module.
	Function dwarf.Entry
}

// ErrNoFrame is the error where a stack has fewer frames than an index needs.
var ErrNoFrame = errors.New("no such frame")

// Evaluate calls f with the context of a physical frame of a thread, 0 being the top one, and
// an evaluator for it in a dialect (nil: the canonical one). Locations that an evaluation
// yields can be read in that context, while f runs. A thread has a top frame even where the
// target does not have its PC; the program location is then a context element that is not
// specified.
func (p *Process) Evaluate(ctx context.Context, th *trace.Thread, index int, s Surroundings, dialect *locexpr.Dialect,
	f func(locexpr.Context, *locexpr.Evaluator) error) error {
	state := p.stateOf(ctx, th)
	if state == nil {
		return fmt.Errorf("the thread is not of this target")
	}
	if s.Module != nil && !slices.Contains(p.Modules(), s.Module) {
		return fmt.Errorf("the module %s is not of this target", s.Module.Path)
	}
	p.rebind(ctx, state)
	p.countLanes(ctx, state)
	placed := p.withoutPC(ctx, state)
	if s.Lane != nil {
		var err error
		if placed, err = placed.ofLane(*s.Lane); err != nil {
			return err
		}
	}
	w := newWalker(p, placed)
	return object.Guard(func() error {
		if s.Unit != nil {
			return w.evaluateInUnit(ctx, index, &s, dialect, f)
		}
		fr, err := w.frameAt(ctx, index)
		if err != nil {
			return err
		}
		ev := w.evals.plugin.Derive()
		ev.CFI, ev.LoadBias = false, 0
		if dialect != nil {
			ev.Dialect = dialect
		}
		switch {
		case s.Module != nil:
			ev.LoadBias = loadBias(s.Module)
		case fr.module != nil && fr.module.Object != nil:
			ev.LoadBias = fr.pc - fr.offset
		}
		return f(surrounded{frameContext{frame: fr}, &s}, ev)
	})
}

// evaluateInUnit is Evaluate for an expression of a unit. The arguments of the frame's function
// are found in the frames further out.
func (w *walker) evaluateInUnit(ctx context.Context, index int, s *Surroundings, dialect *locexpr.Dialect,
	f func(locexpr.Context, *locexpr.Evaluator) error) error {
	unit := s.Unit
	if err := unit.Code.Open(ctx); err != nil { // for the dialect of its expressions
		return err
	}
	fr, err := w.walkedFrame(ctx, index)
	if err != nil {
		return err
	}
	u := fr.unitContext(unit.Function, nil)
	isOwn := fr.module != nil && (fr.module.Code == unit.Code || fr.module.Module == s.Module)
	if u.function.IsZero() && isOwn {
		u.function = fr.function()
	}
	if u.function.IsZero() && isOwn {
		if u.function, err = unit.Code.DWARF().Function(fr.lookup); err != nil {
			return err
		}
	}
	u.code, u.around = unit.Code, *s
	switch {
	case s.Module != nil:
		u.ev.LoadBias = loadBias(s.Module)
	case !isOwn:
		u.ev.LoadBias = 0
	}
	u.ev.OffsetSize = unit.Unit.OffsetSize()
	if dialect != nil {
		u.ev.Dialect = dialect
	}
	return f(u.context(unit.Unit), u.ev)
}

// walkedFrame returns a frame of the stack, all of which was walked where the thread has a PC.
func (w *walker) walkedFrame(ctx context.Context, index int) (*frame, error) {
	if w.thread.noPC {
		return w.frameAt(ctx, index)
	}
	w.walk(ctx)
	if index >= w.walked {
		return nil, fmt.Errorf("%w: %d, the stack has %d: %s", ErrNoFrame, index, w.walked, w.stack.Stopped.Detail)
	}
	w.describeCalls(ctx, true)
	return w.frames[index], nil
}

// frameAt walks to a frame and finds its row, if there is one.
func (w *walker) frameAt(ctx context.Context, index int) (*frame, error) {
	f := w.top()
	if f == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoFrame, w.stack.Stopped.Detail)
	}
	if f.isNowhere() {
		if index > 0 {
			return nil, fmt.Errorf("%w: %d, the target does not say the thread's PC", ErrNoFrame, index)
		}
		return f, nil
	}
	for i := 0; ; i++ {
		f.index = i
		caller, stopped := w.step(ctx, f)
		switch {
		case i == index:
			return f, nil
		case caller == nil:
			return nil, fmt.Errorf("%w: %d, the stack has %d: %s", ErrNoFrame, index, i+1, stopped.Detail)
		case i >= w.process.shared.options.MaxFrames:
			return nil, fmt.Errorf("%w: %d is beyond the limit of %d", ErrNoFrame, index, i)
		}
		f = caller
	}
}

// loadBias returns the number that is added to the addresses of a module's object. Each section
// of a relocatable object has its own: it is then 0.
func loadBias(m *target.Module) uint64 {
	for i := range m.Segments {
		if s := &m.Segments[i]; s.Section == "" {
			return s.Start - s.Address
		}
	}
	return 0
}

// surrounded is a frame's context with its surroundings.
type surrounded struct {
	frameContext
	s *Surroundings
}

func (c surrounded) Scope() locexpr.Scope {
	scope := c.frameContext.Scope()
	if c.s.Lane != nil {
		scope.Lane = int32(min(*c.s.Lane, math.MaxInt32))
	}
	return scope
}

func (c surrounded) CFA() (locexpr.Location, error) {
	if c.s.CFA != nil {
		return *c.s.CFA, nil
	}
	return c.frameContext.CFA()
}

func (c surrounded) Object(ctx context.Context) (locexpr.Location, error) {
	if c.s.Object == nil {
		return locexpr.Location{}, errNoElement("object")
	}
	return c.s.Object(ctx, c)
}

// TLS returns the location of an offset in the thread's block of the module's thread-local
// storage.
func (c surrounded) TLS(ctx context.Context, offset uint64) (locexpr.Location, error) {
	m := c.s.Module
	if m == nil && c.module != nil {
		m = c.module.Module
	}
	if m == nil {
		return locexpr.Location{}, errNoElement("module of thread-local storage")
	}
	address, err := c.walker.threadLocal(ctx, m, offset)
	if err != nil {
		return locexpr.Location{}, err
	}
	return locexpr.MemoryLocation(locexpr.DefaultSpace, address), nil
}
