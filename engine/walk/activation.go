// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Activation is a frame of a stack whose registers can still be read.
type Activation struct {
	frame  *frame
	around Surroundings
}

// Activations walks the stack of a thread as Walk does, without launchers, and also returns its
// frames, the top one first.
func (p *Process) Activations(ctx context.Context, th *trace.Thread) (*trace.Stack, []Activation) {
	stack := &trace.Stack{Thread: th}
	state := p.stateOf(ctx, th)
	if state == nil {
		stack.Stopped = trace.Stopped{Reason: trace.StopNoMemory, Detail: "the thread is not of this target"}
		return stack, nil
	}
	stack.Lanes = state.lanes()
	w := &walker{}
	w.startThread(p, state, stack)
	if len(th.Recorded) > 0 {
		w.segment.limit = 1 // only the registers of the top frame are known
	}
	w.guarded(ctx)
	if len(th.Recorded) > 0 {
		return p.recordedStack(th), w.recordedTop(th)
	}
	w.describeCalls(ctx, true)
	list := make([]Activation, w.walked)
	for i := range list {
		list[i] = Activation{frame: w.frames[i]}
	}
	return stack, list
}

// Refresh asks the plugin about a thread whose state in the target has changed. The error is
// the plugin's.
func (p *Process) Refresh(ctx context.Context, th *trace.Thread) error {
	s := p.stateOf(ctx, th)
	if s == nil || s.arch == nil {
		return nil // a walk reports why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.bind(ctx, s.arch, s)
	return s.failure
}

// Index returns the index of the frame in its stack.
func (a Activation) Index() int { return a.frame.index }

// Module returns the module of the frame's code; nil where the PC is in none.
func (a Activation) Module() *code.Module { return a.frame.module }

// Lookup returns the address to look up debug information by: an address of the module's code
// object, inside the call of a frame that has called.
func (a Activation) Lookup() uint64 { return a.frame.lookup }

// Location returns where a register of the frame is (A.2.5.4.4.4). It returns an error where
// that is not known.
func (a Activation) Location(ctx context.Context, reg uint64) (locexpr.Location, error) {
	return a.frame.location(ctx, reg)
}

// Context returns the context in which expressions are evaluated and locations are read.
func (a Activation) Context() locexpr.Context { return frameContext{frame: a.frame} }

// With returns the frame with surroundings, such as a lane. Their Module is ignored: the
// frame's is used.
func (a Activation) With(s Surroundings) Activation {
	s.Module = nil
	return Activation{a.frame, s}
}

func (a Activation) unitContext(function dwarf.Entry) *unitContext {
	u := a.frame.unitContext(function, a.around.Lane)
	u.around = a.around
	return u
}

// Evaluate evaluates an expression of a unit of debugging information. function is the entry of
// the frame's function; with the zero Entry nothing is known of it. The function's arguments at
// the call (DW_OP_entry_value) are found in the frames further out. The evaluation reads the
// target's files, which may be truncated meanwhile: call it inside object.Guard.
func (a Activation) Evaluate(ctx context.Context, function dwarf.Entry, unit dwarf.Unit, expr []byte) (locexpr.Location, error) {
	return a.unitContext(function).evaluate(ctx, unit, expr)
}

// Locate returns where a variable, a parameter or a constant is by its entry, in a frame of a
// function. It returns the undefined location where it was optimized out, and an implicit one
// for a DW_AT_const_value. Guard as Evaluate does.
func (a Activation) Locate(ctx context.Context, function, variable dwarf.Entry) (locexpr.Location, error) {
	return a.unitContext(function).locate(ctx, variable)
}

// UnitContext returns the context to read locations in that the expressions of a unit gave:
// their implicit pointers point to entries. Guard as Evaluate does.
func (a Activation) UnitContext(function dwarf.Entry, unit dwarf.Unit) locexpr.Context {
	return a.unitContext(function).context(unit)
}

// AtEntry returns the argument for a formal parameter in the call of the frame's function, even
// if the function has changed it since. The error wraps ErrNoCallValue where it is not known.
// Guard as Evaluate does.
func (a Activation) AtEntry(ctx context.Context, function, parameter dwarf.Entry) (locexpr.Value, error) {
	return a.unitContext(function).atEntry(ctx, parameter)
}

// recordedTop returns the top frame of a thread whose frames were recorded, if its registers are the frame's.
func (w *walker) recordedTop(th *trace.Thread) []Activation {
	if w.walked == 0 || w.frames[0].pc != th.Recorded[0].PC {
		return nil
	}
	return []Activation{{frame: w.frames[0]}}
}
