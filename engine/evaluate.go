package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

// Surroundings are the context elements of an evaluation that a frame does not
// have by itself (heterogeneous extension, A.2.5.1). Those that are nil are not
// specified, and an operation that needs one fails.
type Surroundings struct {
	// Lane is the current lane; nil: none.
	Lane *uint32
	// Iteration is the current iteration; nil: none.
	Iteration *uint64
	// Object finds the current object.
	Object func(locexpr.Context) (locexpr.Location, error)
	// CFA is the frame's CFA where no row says it.
	CFA *locexpr.Location
	// FrameBase evaluates DW_AT_frame_base of the frame's function.
	FrameBase func(locexpr.Context) (locexpr.Location, error)
	// Addrx is an entry of the unit's part of .debug_addr.
	Addrx func(index uint64) (uint64, error)
	// EntryValue finds what a register or expression was at the call.
	EntryValue func(expr []byte) (locexpr.Value, error)
	// ParameterValue finds what the call gave to the formal parameter at an
	// offset of the compilation unit.
	ParameterValue func(offset uint64) (locexpr.Value, error)
	// EntryLocation evaluates the location of the debugging information entry
	// at an offset of .debug_info, to which an implicit pointer points.
	EntryLocation func(ctx locexpr.Context, entry uint64) (locexpr.Location, error)
	// BaseType is the base type at an offset of the compilation unit.
	BaseType func(offset uint64) (*locexpr.BaseType, error)
}

// ErrNoFrame says that a stack has fewer frames than were asked for.
var ErrNoFrame = errors.New("no such frame")

// Evaluate calls f with the context of a physical frame of a thread, 0 being
// the top one, and an evaluator for it in the dialect given (nil: the canonical
// one). Locations that an evaluation yields can be read in that context, while
// f runs.
func (t *Target) Evaluate(ctx context.Context, th *target.Thread, index int, s Surroundings, dialect *locexpr.Dialect,
	f func(locexpr.Context, *locexpr.Evaluator) error) error {
	t.bound.Do(func() { t.bindAll(ctx) })
	state := t.threads[th]
	if state == nil {
		return fmt.Errorf("the thread is not of this target")
	}
	t.rebind(ctx, state)
	w := newWalker(t, state)
	return object.Guard(func() error {
		fr, err := w.frameAt(ctx, index)
		if err != nil {
			return err
		}
		ev := w.pluginEval
		ev.CFI = false
		if dialect != nil {
			ev.Dialect = dialect
		}
		if fr.module != nil && fr.module.Object != nil {
			ev.LoadBias = fr.pc - fr.offset
		}
		return f(surrounded{frameContext{frame: fr}, &s}, &ev)
	})
}

// frameAt walks to a frame and finds its row, if there is one.
func (w *walker) frameAt(ctx context.Context, index int) (*frame, error) {
	f := w.top()
	if f == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoFrame, w.stack.Stopped.Detail)
	}
	for i := 0; ; i++ {
		f.index = i
		caller, stopped := w.step(ctx, f)
		switch {
		case i == index:
			return f, nil
		case caller == nil:
			return nil, fmt.Errorf("%w: %d, the stack has %d: %s", ErrNoFrame, index, i+1, stopped.Detail)
		case i >= w.target.engine.options.MaxFrames:
			return nil, fmt.Errorf("%w: %d is beyond the limit of %d", ErrNoFrame, index, i)
		}
		f = caller
	}
}

// surrounded is a frame's context with what surrounds it.
type surrounded struct {
	frameContext
	s *Surroundings
}

func (c surrounded) Scope() locexpr.Scope {
	scope := c.frameContext.Scope()
	if c.s.Lane != nil {
		scope.Lane = int32(*c.s.Lane)
	}
	return scope
}

func (c surrounded) CFA() (locexpr.Location, error) {
	if c.s.CFA != nil {
		return *c.s.CFA, nil
	}
	return c.frameContext.CFA()
}

func (c surrounded) FrameBase() (locexpr.Location, error) {
	if c.s.FrameBase == nil {
		return c.frameContext.FrameBase()
	}
	return c.s.FrameBase(c)
}

func (c surrounded) Object() (locexpr.Location, error) {
	if c.s.Object == nil {
		return c.frameContext.Object()
	}
	return c.s.Object(c)
}

func (c surrounded) Addrx(index uint64) (uint64, error) {
	if c.s.Addrx == nil {
		return c.frameContext.Addrx(index)
	}
	return c.s.Addrx(index)
}

func (c surrounded) EntryValue(expr []byte) (locexpr.Value, error) {
	if c.s.EntryValue == nil {
		return c.frameContext.EntryValue(expr)
	}
	return c.s.EntryValue(expr)
}

func (c surrounded) ParameterValue(offset uint64) (locexpr.Value, error) {
	if c.s.ParameterValue == nil {
		return locexpr.Value{}, fmt.Errorf("calling frame: %w", locexpr.ErrNoContext)
	}
	return c.s.ParameterValue(offset)
}

func (c surrounded) EntryLocation(entry uint64) (locexpr.Location, error) {
	if c.s.EntryLocation == nil {
		return c.frameContext.EntryLocation(entry)
	}
	return c.s.EntryLocation(c, entry)
}

func (c surrounded) BaseType(offset uint64) (*locexpr.BaseType, error) {
	if c.s.BaseType == nil {
		return nil, fmt.Errorf("compilation unit: %w", locexpr.ErrNoContext)
	}
	return c.s.BaseType(offset)
}
