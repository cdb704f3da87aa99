// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file makes the stacks of threads whose frames the target recorded: as reports of crashes do, which have no
// memory to walk.

// recordedStack makes the stack of a thread of recorded frames. They have the names of their code objects where
// these have any, and else the ones of the report.
func (p *Process) recordedStack(th *trace.Thread) *trace.Stack {
	count := min(len(th.Recorded), p.shared.options.MaxFrames)
	stack := &trace.Stack{
		Thread: th, Lanes: 1, Frames: make([]trace.Frame, count),
		Stopped: trace.Stopped{Reason: trace.StopOutermost, Detail: "the report has no frame outside it"},
	}
	for i := range stack.Frames {
		f := &th.Recorded[i]
		stack.Frames[i] = trace.Frame{PC: f.PC, Exact: f.Exact, FoundBy: trace.ByReport}
	}
	if count < len(th.Recorded) {
		stack.LeftOut = len(th.Recorded) - count
		stack.Stopped = trace.Stopped{Reason: trace.StopFrameLimit, Detail: "the report has more frames"}
	}
	// If a file shrinks only its names are lost.
	_ = object.Guard(func() error {
		for i := range stack.Frames {
			p.placeRecorded(&stack.Frames[i])
		}
		return nil
	})
	if !p.shared.options.NoSymbols {
		for i := range stack.Frames {
			p.nameAsReported(&stack.Frames[i], &th.Recorded[i])
		}
	}
	if p.shared.options.Registers && count > 0 && stack.Frames[0].Exact {
		if list := p.TopRegisters(th); len(list) > 0 {
			stack.Frames[0].Details = &trace.FrameDetails{Registers: list}
		}
	}
	return stack
}

// nameAsReported gives a frame the functions that the report names, where its code object names none, or has no
// lines where the report has some.
func (p *Process) nameAsReported(f *trace.Frame, recorded *trace.RecordedFrame) {
	if !symbol.IsBetterRecorded(f.Symbols, recorded.Symbols) {
		return
	}
	list := slices.Clone(recorded.Symbols)
	if p.shared.options.NoInlines {
		list = list[len(list)-1:]
	}
	for i := range list {
		s := &list[i]
		if name := symbol.Demangle(s.Function); name != s.Function {
			s.Function, s.LinkageName = name, cmp.Or(s.LinkageName, s.Function)
		}
	}
	if s := &list[len(list)-1]; recorded.HasOffset && f.Module != nil {
		s.Start, s.HasStart = f.ModuleOffset-recorded.Offset, true
	}
	f.Symbols = list
}
