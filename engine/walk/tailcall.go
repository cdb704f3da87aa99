// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds the functions that were left by tail calls between a frame and its caller
// (DWARF 5, 3.4): the caller's call site is of another function, from which tail calls lead to
// the frame's by one path only. They have no physical frame.

// calledBy is how the function of a frame was called, by call sites.
type calledBy struct {
	// byAddress is true where the physical caller's call entered the function by its address,
	// whatever function the call site names.
	byAddress bool
	tails     []*frame // of functions that called its own by tail calls, innermost first
	// The following are set in frames of tails.
	callee *frame   // the physical frame that it belongs to; nil: it is physical
	tail   tailCall // how it was left
}

func (c *calledBy) isByAddress() bool { return c != nil && c.byAddress }

// physical returns the frame itself, or where its function was left by a tail call, the next
// physical frame further in.
func (f *frame) physical() *frame {
	if f.called != nil && f.called.callee != nil {
		return f.called.callee
	}
	return f
}

// describeCalls finds, for every frame of the stack, which of several functions with the same
// code was called, and, if requested, the functions that called it by tail calls. Unreadable
// call sites add none.
func (w *walker) describeCalls(ctx context.Context, hasTails bool) {
	if w.machine == nil || w.thread.lanes() > 1 {
		return
	}
	// A frame's arguments, such as the function it calls, are found through the frames further
	// out.
	for i := w.walked - 1; i >= 0; i-- {
		f, caller := w.frames[i], (*frame)(nil)
		if i+1 < w.walked {
			caller = w.frames[i+1]
		}
		err := object.Guard(func() (err error) {
			if err := w.chooseEqual(f, caller); err != nil || caller == nil || !hasTails {
				return err
			}
			if f.called, err = w.calledBy(ctx, f, caller); err == nil && f.called != nil && len(f.called.tails) > 0 {
				w.addTailCallers(&w.stack.Frames[i], f.called.tails)
				callee, failed := f.called.tails[0].called.tail.site.Callee()
				if failed == nil && !callee.IsZero() {
					failed = w.chooseCallee(f, callee)
				}
				err = failed
			}
			return err
		})
		if err != nil || ctx.Err() != nil {
			f.called = nil
		}
	}
}

// addTailCallers adds the frames of functions that were left by tail calls to the result.
func (w *walker) addTailCallers(out *trace.Frame, tails []*frame) {
	if len(tails) == 0 {
		return
	}
	list := make([]trace.Frame, len(tails))
	for i, f := range tails {
		list[i] = trace.Frame{
			PC: f.pc, FoundBy: f.found, Module: &f.module.Module.Module,
			ModuleOffset: f.module.Code.Offset(f.lookup) + f.offset - f.lookup,
		}
		if !w.process.shared.options.NoSymbols {
			list[i].Symbols = w.process.namesIn(f.module, f.lookup, f.function())
		}
	}
	if out.Details == nil {
		out.Details = &trace.FrameDetails{}
	}
	out.Details.TailCallers = list
}

// calledBy returns how caller called the function of f, where its call site does not name that
// directly; else nil.
func (w *walker) calledBy(ctx context.Context, f, caller *frame) (*calledBy, error) {
	if f.module == nil || caller.module == nil || caller.isGuess() || caller.exact || f.index+1 != caller.index {
		return nil, nil
	}
	pair, isOne := framePair{f.pc, caller.pc, f.exact}, f.equal == nil && caller.equal == nil
	if w.process.tails.isPlain(pair) {
		return nil, nil
	}
	call, err := caller.module.Code.Call(caller.offset, caller.function())
	if err != nil {
		return nil, err
	}
	if call.Site.IsZero() || f.module.Code.DWARF() == nil {
		if isOne {
			w.process.tails.addPlain(pair)
		}
		return nil, nil
	}
	function, err := f.described()
	if err != nil || function.IsZero() {
		return nil, err
	}
	if !call.Callee.IsZero() {
		same, err := dwarf.SameFunction(call.Callee, function)
		if err == nil && same && isOne {
			w.process.tails.addPlain(pair)
		}
		if err != nil || same {
			return nil, err
		}
	}
	last, ok, err := functionOf(f.module, function)
	if err != nil || !ok {
		return nil, err
	}
	callee, err := w.entered(ctx, f, caller, &call)
	if err != nil || callee.module == nil {
		return nil, err
	}
	if callee.entry == last.entry {
		return &calledBy{byAddress: true}, nil
	}
	called := &calledBy{}
	chain := w.process.tailChain(callee, last)
	for i, t := range slices.Backward(chain) {
		tail, err := w.tailFrame(ctx, f, t)
		if err != nil || tail == nil {
			return nil, err
		}
		tail.called.byAddress = i == 0
		called.tails = append(called.tails, tail)
	}
	return called, nil
}

// entered returns the function that the call of caller, which led to f, entered; its module is
// nil where it is not known.
func (w *walker) entered(ctx context.Context, f, caller *frame, call *code.Call) (e tailFunction, err error) {
	pc, ok, err := w.calledAddress(ctx, caller, call)
	if err != nil || !ok {
		return e, err
	}
	for range maxFollowed {
		s := w.segmentAt(pc)
		if s == nil {
			return e, nil
		}
		offset, o := s.ObjectAddress(pc), s.Module.Code
		if !o.IsLinkageCode(offset) {
			d := o.DWARF()
			if d == nil {
				return e, nil
			}
			entry := o.EntryOf(offset)
			body, err := d.FunctionFrom(entry)
			if err != nil || body.IsZero() {
				return e, err
			}
			return tailFunction{s.Module, body, pc - (offset - entry)}, nil
		}
		next, isKnown, err := w.leadsTo(ctx, pc, f)
		if err != nil || !isKnown || len(next) != 1 {
			return e, err
		}
		pc = next[0]
	}
	return e, nil
}

// calledAddress returns the target of a frame's call: by its instruction where that has it,
// else by its DW_AT_call_target, or by the callee if the object has one code of it.
func (w *walker) calledAddress(ctx context.Context, caller *frame, call *code.Call) (pc uint64, ok bool, err error) {
	site, err := w.callSite(ctx, caller.pc)
	switch {
	case err != nil || !site.IsAfterCall:
		return 0, false, err
	case site.IsDirect:
		return (caller.pc + uint64(site.Target)) & w.machine.addresses, true, nil
	}
	target, ok, err := call.Site.Target()
	if err != nil {
		return 0, false, err
	}
	if ok {
		function, err := caller.described()
		if err != nil {
			return 0, false, err
		}
		v, err := caller.unitContext(function, nil).passed(ctx, target.Unit, target.Expr)
		if err != nil {
			return 0, false, nil //nolint:nilerr // the register may be lost
		}
		return v.Uint64() & w.machine.addresses, true, nil
	}
	if call.Callee.IsZero() {
		return 0, false, nil
	}
	bodies, err := call.Callee.Instances(call.Site.Entry)
	if err != nil || len(bodies) != 1 {
		return 0, false, err
	}
	entry, ok, err := bodies[0].EntryPC()
	return (entry + caller.pc - caller.offset) & w.machine.addresses, ok, err
}

// tailFrame returns the frame of a function that was left by a tail call before f was there;
// nil where the address of the call is not known. Its registers are the ones that f's caller
// has again: a function restores the registers that it must preserve before it is left. The
// place of its frame is not known.
func (w *walker) tailFrame(ctx context.Context, f *frame, t tailCall) (*frame, error) {
	call, end, ok, err := t.site.PC()
	if err != nil || !ok {
		return nil, err
	}
	d := w.machine.Description
	tail := &frame{
		walker: w, callee: f, index: f.index, found: trace.ByCallSite, module: t.from.module,
		called: &calledBy{callee: f, tail: t},
	}
	if end == 0 { // clang writes the instruction's start, gcc its end
		if end, err = w.instructionEnd(ctx, t.from.module, call); err != nil {
			return nil, err
		}
	}
	tail.offset, tail.lookup = end, end-uint64(d.CallDistance)
	start, ok := tail.module.Start(tail.lookup)
	if !ok {
		return nil, nil
	}
	tail.pc = start + uint64(d.CallDistance)
	if equals, err := tail.module.Code.DWARF().Equals(tail.lookup); err == nil && slices.ContainsFunc(equals, t.from.body.Is) {
		tail.equal = &equalFunction{t.from.body, true}
	}
	tail.callSite = []placedRegister{{register: uint64(d.PC), slot: slot{kind: slotValue, bits: tail.pc}}}
	for _, lost := range []uint32{d.SP, d.ReturnAddress} {
		if lost != d.PC {
			tail.callSite = append(tail.callSite, placedRegister{register: uint64(lost)})
		}
	}
	return tail, nil
}

// instructionEnd returns the end of an instruction at an address of a module's object.
func (w *walker) instructionEnd(ctx context.Context, m *code.Module, start uint64) (uint64, error) {
	address, ok := m.Start(start)
	if !ok {
		return 0, target.ErrNoMemory
	}
	d := disassembly{
		Process: w.process, arch: w.machine, processor: w.thread.Processor, lanes: w.thread.lanes(),
		segment: w.segmentAt(address), address: address,
	}
	lines, err := d.lines(ctx, 0, 0)
	if err != nil {
		return 0, err
	}
	return start + uint64(len(lines[0].Bytes)), nil
}

// tailCaller returns the frame of the function that called f's by a tail call; nil where none
// did.
func (f *frame) tailCaller() *frame {
	if f.called == nil {
		return nil
	}
	list := f.called.tails
	if callee := f.called.callee; callee != nil {
		list = callee.called.tails[slices.Index(callee.called.tails, f)+1:]
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// TailCallers returns the frames of functions that were left by tail calls between the frame
// and its caller, innermost first, as Frame.TailCallers has them. They are no physical frames:
// only their registers that calls preserve are known, and they have no CFA.
func (a Activation) TailCallers() []Activation {
	if a.frame.called == nil {
		return nil
	}
	list := make([]Activation, len(a.frame.called.tails))
	for i, t := range a.frame.called.tails {
		list[i] = Activation{frame: t}
	}
	return list
}
