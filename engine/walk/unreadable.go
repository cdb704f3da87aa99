// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file is about threads that no architecture reads: their places, and the names of these.

// walkUnreadable makes the stack of a thread that no architecture reads: its place, if the
// target has it.
func (w *walker) walkUnreadable() {
	th := w.thread
	w.stack.Stopped = trace.Stopped{Reason: trace.StopPluginFailed, Detail: th.Unread}
	if !th.HasPC || w.sampling {
		return
	}
	f := trace.Frame{PC: th.PC, Exact: true, FoundBy: trace.ByContext}
	if s := w.segmentAt(th.PC); s != nil {
		address := s.ObjectAddress(th.PC)
		f.Module, f.ModuleOffset = &s.Module.Module.Module, s.Module.Code.Offset(address)
		if !w.process.shared.options.NoSymbols {
			f.Symbols = w.process.names(s.Module, address)
		}
	}
	if w.process.shared.options.Registers && len(th.Named) > 0 {
		f.Details = &trace.FrameDetails{Registers: namedRegisters(th.Thread)}
	}
	w.stack.Frames = append(w.stack.Frames, f)
}

// namedRegisters returns the registers of a thread that no architecture reads, numbered as in
// the target.
func namedRegisters(th *trace.Thread) []trace.RegisterValue {
	list := make([]trace.RegisterValue, len(th.Named))
	for i, r := range th.Named {
		list[i] = trace.RegisterValue{Name: r.Name, Number: uint64(i), Bits: uint32(r.Bits), Value: r.Value} //nolint:gosec // at most 64 bits
	}
	return list
}

// TopRegisters returns the general registers of a thread, walked or not: by number, or in the
// target's order for a thread that no architecture reads.
func (p *Process) TopRegisters(th *trace.Thread) []trace.RegisterValue {
	p.Bind()
	m := p.machineOf(th)
	if m == nil {
		return namedRegisters(th)
	}
	var list []trace.RegisterValue
	for _, r := range m.general {
		number := uint32(r.number) //nolint:gosec // from a description, whose numbers have 32 bits
		info, isKnown := m.Description.Register(number)
		if v, ok := th.Registers.Uint64(number, m.Description.ByteOrder); ok && isKnown && r.lanes == 0 {
			list = append(list, trace.RegisterValue{Name: info.Name, Number: r.number, Bits: r.bits, Value: v})
		}
	}
	return list
}

// Walked returns nil where one of a target's stacks was walked. For a target that was read, and
// whose threads have no architecture that reads them, so that no stack has a frame except its
// thread's place, it returns an error that wraps ErrNotWalked. A core without threads could not
// be read.
func (p *Process) Walked(stacks []*trace.Stack) error {
	for _, s := range stacks {
		if s.IsWalked() {
			return nil
		}
	}
	if len(stacks) == 0 {
		return p.NotWalked(nil)
	}
	return p.NotWalked(stacks[0])
}

// NotWalked returns the error of Walked for a target whose first stack, like all others, was
// not walked; nil: it has none.
func (p *Process) NotWalked(first *trace.Stack) error {
	info := p.Info()
	switch {
	case first != nil:
		return fmt.Errorf("%s: %w: %s", info.Path, trace.ErrNotWalked, first.Stopped.Detail)
	case info.Unread:
		return fmt.Errorf("%s: %w: it has graphics processors alone, which nothing here reads", info.Path, trace.ErrNotWalked)
	case info.Kind == trace.Snapshot || p.list.Len() > 0:
		return nil // there were no threads to walk
	}
	if len(info.Problems) > 0 {
		return fmt.Errorf("no threads: %s", info.Problems[0])
	}
	return fmt.Errorf("%s: no threads", info.Path)
}
