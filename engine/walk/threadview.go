// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// ThreadView is the state of a thread as its walk reads it.
type ThreadView struct{ walker *walker }

// View returns the state of a thread whose stack was walked; ok is false where no architecture
// reads it.
func (p *Process) View(ctx context.Context, th *trace.Thread) (v *ThreadView, ok bool) {
	s := p.stateOf(ctx, th)
	if s == nil || s.arch == nil {
		return nil, false
	}
	return &ThreadView{newWalker(p, s)}, true
}

// LaneView walks the stack of a lane that has a state of its own, and returns it with the state
// as that walk reads it; ok is false where there is no such state.
func (p *Process) LaneView(ctx context.Context, th *trace.Thread, lane uint32) (s *trace.Stack, v *ThreadView, ok bool) {
	state := p.stateOf(ctx, th)
	if state == nil || state.arch == nil || target.LaneState(th, lane) == nil {
		return nil, nil, false
	}
	own, err := state.ofLane(lane)
	if err != nil {
		return nil, nil, false
	}
	w := &walker{isBare: true}
	s = &trace.Stack{Thread: own.Thread, Lanes: own.lanes()}
	w.startThread(p, own, s)
	w.guarded(ctx)
	for i := range w.walked {
		f := w.frames[i]
		s.Frames[i].CFASpace, s.Frames[i].CFA, s.Frames[i].HasCFA = f.cfaSpace, f.cfa, f.hasCFA
	}
	return s, &ThreadView{w}, true
}

// Machine returns the thread's architecture.
func (v *ThreadView) Machine() *code.Machine { return v.walker.machine.Machine }

// StackPointer returns the top frame's; it returns an error where it is not known.
func (v *ThreadView) StackPointer() (uint64, error) {
	return v.walker.liveRegister(uint64(v.walker.machine.Description.SP))
}

// Read reads memory of an address space, by the thread's maps.
func (v *ThreadView) Read(ctx context.Context, space locexpr.AddressSpace, address uint64, buf []byte) error {
	return object.Guard(func() error { return v.walker.readSpace(ctx, space, v.walker.scope(), address, buf) })
}
