// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// walker walks one stack after the other. It keeps the memory for frames.
type walker struct {
	process *Process
	thread  *thread
	machine *machine // nil: no architecture reads the thread
	stack   *trace.Stack

	// sampling is true where many stacks are walked, of which only the PCs are needed: names
	// are found later, and the reasons of stops leave out their addresses, whose text would
	// cost more than the walk.
	sampling bool
	compiles bool // compiled rows are valid for this thread
	// isBare is true where a stack is walked for its frames alone: what options ask for is left
	// out.
	isBare bool
	lanes  map[uint32]*walker // of lanes whose stacks were walked beside the thread's

	frames  []*frame
	walked  int           // how many of them are the stack's
	results []trace.Frame // of the walk before, to be overwritten

	input   input
	evals   evaluators
	segment segmentState
	recent  recentCode
	cycle   cycleCheck
	guesses guesses
	ahead   lookahead
	fast    fastState

	laneValues []trace.FrameVariable // of the last variable that was read lane by lane, to be overwritten
}

// recentCode is the code of recent frames: most frames stay in the code of the one before.
type recentCode struct {
	segment *code.Segment // of the frame before
	module  *code.Module  // of the thread's architecture, whose row was looked up last
}

func newWalker(p *Process, th *thread) *walker {
	w := &walker{}
	w.startThread(p, th, &trace.Stack{Thread: th.Thread})
	return w
}

// startThread makes the walker ready for a thread of a target.
func (w *walker) startThread(p *Process, th *thread, stack *trace.Stack) {
	w.process = p
	w.input.setTarget(p)
	w.start(th, stack)
}

// startSample makes the walker ready for a sample of its process.
func (w *walker) startSample(s *Sample, th *thread, stack *trace.Stack) {
	w.input.setSample(s, w.process)
	w.start(th, stack)
}

// release drops the results of a walk.
func (w *walker) release() {
	w.process, w.thread, w.stack, w.recent.segment, w.lanes = nil, nil, nil, nil, nil
	w.input.release()
	w.segment.next, w.segment.cycle = nil, nil
	w.ahead.f = nil
}

// start makes the walker ready for a thread whose memory is set.
func (w *walker) start(th *thread, stack *trace.Stack) {
	w.thread, w.stack, w.walked, w.input.saved, w.lanes = th, stack, 0, nil, nil
	w.recent, w.cycle = recentCode{}, newCycleCheck()
	w.segment = segmentState{limit: w.process.shared.options.MaxFrames}
	w.guesses.reset()
	w.ahead.start(w)
	if w.machine != th.arch {
		w.machine = th.arch
		w.setMachine()
	}
	w.compiles, w.input.isMapped = false, false
	if w.machine == nil || w.machine.Compiler == nil || th.binding == nil {
		return
	}
	w.compiles = true
	for _, width := range th.binding.Widths {
		for _, c := range w.machine.Compiler.Columns() {
			if c.Number-uint64(width.First) < uint64(width.Count) && c.Bits != width.Bits {
				w.compiles = false
			}
		}
	}
	if w.input.isMapped = w.spaceMap(locexpr.DefaultSpace) != nil; w.input.isMapped {
		w.compiles = false
	}
}

func (w *walker) setMachine() {
	w.evals = evaluators{}
	w.setFast()
	if w.machine != nil {
		w.evals = newEvaluators(w.machine)
	}
}

// frame returns the memory of the frame with an index, as new. It is the same for every frame
// with that index.
func (w *walker) frame(index int) *frame {
	if index == len(w.frames) {
		block := make([]frame, frameBlock)
		for i := range block {
			block[i].walker, block[i].index = w, index+i
			w.frames = append(w.frames, &block[i])
		}
	}
	f := w.frames[index]
	*f = frame{walker: w, index: index, callSite: f.callSite[:0], memo: f.memo[:0], entering: f.entering[:0]}
	return f
}

// frameBlock is how many frames are allocated together: most stacks fit.
const frameBlock = 32

// index returns the index of a register in compiled rows.
func (w *walker) index(reg uint64) (i int, ok bool) {
	if w.machine.Compiler == nil {
		return 0, false
	}
	return w.machine.Compiler.Index(reg)
}

// rule returns the rule for a column in the row of f, or the default, and the evaluator for its
// expression, which is the plugin's for defaults.
func (f *frame) rule(column uint64) (cfi.Rule, *locexpr.Evaluator) {
	if r, ok := f.source.Rules.Rule(column); ok && r.Kind != cfi.Unspecified {
		return r, f.rowEvaluator(f.source)
	}
	return f.source.Defaults.Column(column), f.walker.evals.plugin
}

func (w *walker) scope() locexpr.Scope {
	if len(w.thread.LaneStates) > 0 {
		return locexpr.Scope{Thread: w.thread.Handle, Lane: int32(w.thread.Lead)} //nolint:gosec // below MaxLanes
	}
	return locexpr.Scope{Thread: w.thread.Handle, Lane: -1}
}

func (w *walker) registerName(reg uint64) string {
	if info, ok := w.machine.Description.Register(uint32(reg)); ok && reg <= uint64(^uint32(0)) {
		return info.Name
	}
	return fmt.Sprintf("register %d", reg)
}

// topRegister returns a register of the thread's top frame. One that lies in memory is read
// once in a walk.
func (w *walker) topRegister(reg uint64) (bytes []byte, ok bool) {
	number := uint32(reg) //nolint:gosec // it is compared
	if uint64(number) != reg {
		return nil, false
	}
	if bytes, ok = w.thread.Registers.Get(number); ok || len(w.thread.Saved) == 0 {
		return bytes, ok
	}
	if bytes, ok = w.input.saved[number]; ok {
		return bytes, bytes != nil
	}
	info, ok := w.machine.Description.Register(number)
	if ok {
		bytes, ok = target.ReadSaved(w.process.state, w.thread.Thread, info)
	}
	if !ok {
		bytes = nil
	}
	if w.input.saved == nil {
		w.input.saved = map[uint32][]byte{}
	}
	w.input.saved[number] = bytes
	return bytes, ok
}

// liveRegister reads a register of the thread's top frame.
func (w *walker) liveRegister(reg uint64) (uint64, error) {
	bytes, ok := w.topRegister(reg)
	if !ok {
		return 0, fmt.Errorf("%s %w in the target's registers", w.registerName(reg), code.ErrUndefined)
	}
	if len(bytes) > 8 {
		bytes = bytes[:8]
	}
	return integer(bytes, w.machine.Order), nil
}

// word reads an integer from the default address space.
func (w *walker) word(ctx context.Context, address uint64, bits uint32) (uint64, error) {
	if s := w.input.sample; s != nil && bits == 64 && !w.input.isMapped {
		// Nearly every word that a walk reads is in these bytes.
		if offset := address - s.StackStart; offset < uint64(len(s.Stack)) && uint64(len(s.Stack))-offset >= 8 {
			return integer(s.Stack[offset:offset+8], w.machine.Order), nil
		}
	}
	b := w.input.scratch[:(bits+7)/8]
	var err error
	if w.input.isMapped {
		err = w.readSpace(ctx, locexpr.DefaultSpace, w.scope(), address, b)
	} else {
		_, err = w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, address, b)
	}
	if err != nil {
		return 0, err
	}
	return integer(b, w.machine.Order), nil
}

// walk goes from the thread's registers to its outermost frame.
func (w *walker) walk(ctx context.Context) { w.walkFrom(ctx, w.top()) }

// walkFrom goes from the first frame of a segment to its last, or to the outermost one.
func (w *walker) walkFrom(ctx context.Context, f *frame) {
	isFast := w.sampling && w.input.sample != nil && w.compiles && w.fast.isUsable
	for f != nil {
		if isFast {
			if f = w.walkFast(ctx, f); f == nil {
				return
			}
		}
		w.continueAt(ctx, f)
		w.add(f)
		caller, stopped := w.step(ctx, f)
		w.finish(ctx, f)
		switch {
		case caller == nil:
			w.stack.Stopped = stopped
		case w.repeats(f):
			return
		case f.index+1 == w.segment.limit:
			w.stack.Stopped, w.segment.next = trace.Stopped{Reason: trace.StopFrameLimit, Detail: fmt.Sprintf("%d frames", f.index+1)}, caller
			return
		case ctx.Err() != nil:
			w.stack.Stopped = trace.Stopped{Reason: trace.StopFrameLimit, Detail: "the walk was interrupted: " + ctx.Err().Error()}
			return
		}
		f = caller
	}
}

// top returns the frame of the thread's own registers; nil, with the stack's reason, where
// there is none.
func (w *walker) top() *frame {
	th := w.thread
	switch {
	case th.Unread != "":
		w.walkUnreadable()
		return nil
	case th.IsUnstopped:
		w.stack.Stopped = trace.Stopped{Reason: trace.StopNotStopped, Detail: th.Problem}
		return nil
	case th.Problem != "" && !th.noPC:
		w.stack.Stopped = trace.Stopped{Reason: trace.StopNoMemory, Detail: th.Problem}
		return nil
	case w.machine == nil:
		w.stack.Stopped = trace.Stopped{Reason: trace.StopPluginFailed, Detail: th.failure.Error()}
		return nil
	}
	f := w.frame(0)
	f.exact, f.found = !th.IsInCall, trace.ByContext
	switch {
	case th.binding != nil && th.binding.Problem != "":
		w.stack.Stopped = trace.Stopped{Reason: trace.StopNoMemory, Detail: th.binding.Problem}
		return nil
	case th.binding != nil:
		f.pc = th.binding.PC
	default:
		// The plugin did not answer. The register that the description names as the PC still
		// has the thread's place, and nothing more.
		pc, err := w.liveRegister(uint64(w.machine.Description.PC))
		if err != nil {
			w.stack.Stopped = trace.Stopped{Reason: trace.StopPluginFailed, Detail: th.failure.Error()}
			return nil
		}
		f.pc = pc
	}
	if !f.isNowhere() {
		w.place(f)
	}
	return f
}

// place finds the module of a frame.
func (w *walker) place(f *frame) {
	distance := uint64(w.machine.Description.CallDistance)
	if f.exact {
		distance = 0
	}
	if w.recent.segment = w.segmentAt(f.pc - distance); w.recent.segment != nil {
		f.module, f.lookup = w.recent.segment.Module, w.recent.segment.ObjectAddress(f.pc-distance)
		f.offset = f.lookup + distance
		return
	}
	// A trampoline may be the first instruction of its module.
	if w.recent.segment = w.segmentAt(f.pc); w.recent.segment != nil {
		f.module, f.offset = w.recent.segment.Module, w.recent.segment.ObjectAddress(f.pc)
		f.lookup = f.offset
	}
}

// continueAt moves a frame that is returned to at the start of JIT code into that code.
func (w *walker) continueAt(ctx context.Context, f *frame) {
	if f.exact || f.module == nil || f.lookup == f.offset || !f.module.Code.IsJIT() {
		return
	}
	if s := code.Continuation(ctx, w.segmentAt, f.pc); s != nil {
		f.module, f.offset = s.Module, s.ObjectAddress(f.pc)
		f.lookup = f.offset
	}
}

// segmentAt finds a segment, looking first where the frame before was.
func (w *walker) segmentAt(address uint64) *code.Segment {
	if s := w.recent.segment; s != nil && address >= s.Start && address < s.End {
		return s
	}
	return w.input.memory.Segment(address)
}

// add makes the frame part of the result. Later findings about it are added by finish, so a
// walk that is cut off keeps it.
func (w *walker) add(f *frame) {
	w.walked = f.index + 1
	if w.sampling {
		return
	}
	w.stack.Frames = append(w.stack.Frames, trace.Frame{PC: f.pc, Exact: f.exact, FoundBy: f.found, RestsOnGuess: f.restsOnGuess, PassedOver: f.passed})
	if f.module != nil {
		out := &w.stack.Frames[f.index]
		out.Module, out.ModuleOffset = &f.module.Module.Module, f.module.Code.Offset(f.lookup)+f.offset-f.lookup
	}
}

func (w *walker) finish(ctx context.Context, f *frame) {
	if w.sampling {
		return
	}
	if !f.settled {
		w.placeBehindCall(ctx, f)
	}
	if w.isBare {
		return
	}
	options := &w.process.shared.options
	out := &w.stack.Frames[f.index]
	out.Exact = f.exact
	if f.hasCFA {
		out.CFASpace, out.CFA, out.HasCFA = f.cfaSpace, f.cfa, true
	}
	if f.source != nil {
		out.SignalFrame = f.source.IsSignalFrame()
	}
	generated := w.generatedAt(ctx, f)
	switch {
	case options.NoSymbols:
	case generated != nil && len(generated.Symbols) > 0:
		out.Symbols = generated.Symbols
	case f.module != nil:
		out.Symbols = w.process.names(f.module, f.named())
	case w.process.unplaced != nil:
		out.Symbols = w.process.unplaced(w.callOf(f))
	}
	if generated != nil && generated.Managed != nil {
		out.Details = &trace.FrameDetails{Managed: generated.Managed}
	}
	if !options.Lanes && !options.Registers && options.Locals == nil {
		return
	}
	var d trace.FrameDetails // copied only where it is not empty, to allocate nothing else
	if options.Lanes || options.Locals != nil {
		var below []trace.LaneGroup
		if f.index > 0 {
			below = w.stack.Frames[f.index-1].Lanes()
		}
		d.Lanes = f.laneGroups(ctx, below)
	}
	if options.Registers && !w.segment.isCounting {
		d.Registers = f.registers(ctx)
	}
	if d.Lanes != nil || d.Registers != nil {
		out.Details = &trace.FrameDetails{Managed: out.Managed(), Registers: d.Registers, Lanes: d.Lanes}
	}
}

// callOf returns the address that a frame of code in no module is named by: in its call, or its
// PC.
func (w *walker) callOf(f *frame) uint64 {
	if f.exact {
		return f.pc
	}
	return f.pc - uint64(w.machine.Description.CallDistance)
}

// named returns the address that a frame is named by: its call's, or the PC of code that is
// entered by returning to it.
func (f *frame) named() uint64 {
	if !f.isPlain && f.source != nil && (f.source.IsSignalFrame() || f.source.IsEntered) {
		return f.offset
	}
	return f.lookup
}

// registers returns the general registers of a frame that have a value.
func (f *frame) registers(ctx context.Context) []trace.RegisterValue {
	w := f.walker
	lanes := w.thread.lanes()
	var values []trace.RegisterValue
	f.listed = make([]slot, len(w.machine.general))
	for i, r := range w.machine.general {
		if r.lanes != 0 && r.lanes != lanes {
			continue
		}
		s, err := f.list(ctx, i, r.number)
		if err != nil || s.kind == slotUndefined {
			continue
		}
		f.listed[i] = s
		if v, err := f.read(ctx, &s, r.number, r.bits); err == nil {
			values = append(values, trace.RegisterValue{Name: w.registerName(r.number), Number: r.number, Bits: r.bits, Value: v})
		}
	}
	return values
}

// list is find for the register with index i among the listed ones. A register that the row of
// the next frame in leaves unchanged is where it was found for that frame.
func (f *frame) list(ctx context.Context, i int, reg uint64) (slot, error) {
	if _, isPlaced := f.placed(reg); !isPlaced && f.callee.listed != nil && !f.callee.compiled && f.callee.source != nil && f.callee.source.Rules != nil {
		if rule, _ := f.callee.rule(reg); rule.Kind == cfi.SameValue {
			return f.callee.listed[i], nil
		}
	}
	return f.find(ctx, reg)
}

// repeats reports whether the walk goes in a cycle: the same PC and CFA have occurred before.
// The repeated frames are removed again.
func (w *walker) repeats(f *frame) bool {
	if !f.hasCFA {
		return false
	}
	if w.segment.cycle != nil {
		return w.segment.cycle.repeats(f)
	}
	period := w.cycle.period(f)
	if period == 0 {
		return false
	}
	first := 0
	for !isSameActivation(w.frames[first], w.frames[first+period]) {
		first++
	}
	w.walked = first + period
	if !w.sampling {
		w.stack.Frames = w.stack.Frames[:w.walked]
	}
	w.stack.Stopped = trace.Stopped{Reason: trace.StopNoProgress, Detail: fmt.Sprintf("frame %d would be frame %d again", first+period, first)}
	return true
}

// step finds the caller of f: by its row, or by what the target recorded. Without a caller it
// returns why the stack ends.
func (w *walker) step(ctx context.Context, f *frame) (*frame, trace.Stopped) {
	caller, stopped := w.stepByRow(ctx, f)
	if len(w.thread.Callers) == 0 {
		return caller, stopped
	}
	return w.stepRecorded(f, caller, stopped)
}

// stepByRow finds the row of f and recovers its caller. Without a caller it returns why the stack
// ends.
func (w *walker) stepByRow(ctx context.Context, f *frame) (*frame, trace.Stopped) {
	if w.thread.binding == nil {
		return nil, trace.Stopped{Reason: trace.StopPluginFailed, Detail: w.thread.failure.Error()}
	}
	source, err := w.findRow(ctx, f)
	if err != nil {
		return w.withoutRow(ctx, f, err)
	}
	f.source = source
	if source.Rules == nil {
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: source.Outermost}
	}
	if source.IsSignalFrame() || source.IsEntered {
		f.exact = true
	}
	if source.Switches != "" && w.hasOneStack() {
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: source.Switches}
	}
	if source.IsSearched && source.Outermost == "" {
		return w.bySearch(ctx, f, source)
	}
	if source.By == trace.ByFunctionBody {
		return w.byBody(ctx, f, source)
	}
	caller, err := w.recover(ctx, f, source)
	if source.Otherwise != nil {
		source, caller, err = w.otherwise(ctx, f, source, caller, err)
	}
	if w.machine.hasLink && err == nil && source.Outermost == "" && source.Switches == "" {
		if instead, stop, ok := w.withoutLink(ctx, f, caller); ok {
			return instead, stop
		}
	}
	if source.Outermost != "" {
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: source.Outermost}
	}
	if err != nil {
		if source.Switches != "" {
			reason, _ := stopReason(err)
			return nil, trace.Stopped{Reason: reason, Detail: fmt.Sprintf("%s, and the way to the one that it was called on cannot be read: %v", source.Switches, err)}
		}
		if errors.Is(err, code.ErrUndefined) {
			return w.withoutRegister(ctx, f, err)
		}
		return nil, w.stopFor(err)
	}
	if caller == nil && source.Switches != "" {
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: source.Switches}
	}
	if caller == nil {
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: "the return address is undefined"}
	}
	if source.By == trace.ByRules && caller.pc != 0 {
		if may, err := w.mayReturnTo(ctx, caller); err != nil {
			return nil, w.stopFor(err)
		} else if !may {
			return w.insteadOfRead(ctx, f, source)
		}
	}
	if source.IsEntered && !w.isCode(caller.pc) {
		// The code that put the function there gave it no return address.
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: "nothing called the function: it was returned to"}
	}
	if caller.pc == 0 {
		return w.zeroReturn(ctx, f, caller)
	}
	return caller, trace.Stopped{}
}

// withoutRegister goes on where the row of f needs a register that is not known.
func (w *walker) withoutRegister(ctx context.Context, f *frame, cause error) (*frame, trace.Stopped) {
	rules := f.source.Rules
	switch rule, ok := rules.Rule(rules.ReturnAddress); {
	case ok && rule.Kind == cfi.Undefined:
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: "the return address is undefined"}
	case f.isGuessed():
		return w.guess(ctx, f, cause)
	case f.hasRecordBelow():
		f.forget()
		caller, err := w.byFramePointer(ctx, f)
		switch {
		case err != nil:
			return nil, w.stopFor(err)
		case caller != nil:
			return caller, trace.Stopped{}
		}
		f.forget()
	}
	return nil, w.stopFor(cause)
}

// hasRecordBelow reports whether a frame, or one that it was found through, was found by a
// frame record, which need not give the stack pointer.
func (f *frame) hasRecordBelow() bool {
	for ; f != nil; f = f.callee {
		if f.found == trace.ByFramePointer || f.found == trace.ByBackChain {
			return true
		}
	}
	return false
}

// hasOneStack reports whether a sample is walked, which has the bytes of one stack.
func (w *walker) hasOneStack() bool {
	if w.input.sample != nil {
		return true
	}
	_, is := w.process.state.(*Sample)
	return is
}

// isCode reports whether an address is in executable memory.
func (w *walker) isCode(address uint64) bool {
	_, executable := w.input.memory.Mapped(address)
	return executable
}

// zeroReturnAddress says that a row leads to address 0.
const zeroReturnAddress = "the return address is 0"

// zeroReturn goes on above a return address of 0. It ends a stack whose first function got it
// as its return address, as coroutines do. But where frames lie above, the return address of a
// called function was overwritten.
func (w *walker) zeroReturn(ctx context.Context, f, caller *frame) (*frame, trace.Stopped) {
	stop := trace.Stopped{Reason: trace.StopOutermost, Detail: zeroReturnAddress}
	column := f.source.Rules.ReturnAddress
	i, indexed := w.index(column)
	if s, err := f.findSaved(ctx, column, i, indexed); err != nil || s.kind != slotMemory {
		return nil, stop // it is 0 by a rule, or in the register of a first function
	}
	if f.source.By == trace.ByRules {
		// The code was read as if the function had been called.
		stop = trace.Stopped{Reason: trace.StopNoRow, Detail: zeroReturnAddress}
	}
	above, err := w.byFramePointer(ctx, caller)
	if err != nil {
		return nil, w.stopFor(err)
	}
	caller.forget()
	overwritten := above != nil
	if !overwritten {
		if overwritten, err = w.hasStackAbove(ctx, f.cfa); err != nil {
			return nil, w.stopFor(err)
		}
	}
	if overwritten {
		return caller, trace.Stopped{}
	}
	w.stack.EndAssumed = stop.Reason == trace.StopOutermost
	return nil, stop
}

// isGuessed reports whether a frame, or one that it was found through, is a guess that left
// registers unknown.
func (f *frame) isGuessed() bool {
	for ; f != nil; f = f.callee {
		if f.found == trace.ByScan {
			return true
		}
	}
	return false
}

// stopFor converts an error of a walk to a stop.
func (w *walker) stopFor(err error) trace.Stopped {
	if w.sampling {
		return sampleStop(err)
	}
	reason, _ := stopReason(err)
	return trace.Stopped{Reason: reason, Detail: err.Error()}
}

// sampleStop leaves out the parts that differ from sample to sample. Nearly all samples end at
// the end of their bytes.
func sampleStop(err error) trace.Stopped {
	if errors.Is(err, target.ErrEndOfStack) {
		return trace.Stopped{Reason: trace.StopEndOfStack, Detail: target.ErrEndOfStack.Error()}
	}
	reason, general := stopReason(err)
	return trace.Stopped{Reason: reason, Detail: general.Error()}
}

// stopReason returns the reason for an error, and the error without its details, where others
// have it too.
func stopReason(err error) (reason trace.StopReason, general error) {
	var failure *plugin.Failure
	switch {
	case errors.As(err, &failure):
		return trace.StopPluginFailed, err
	case errors.Is(err, target.ErrEndOfStack):
		return trace.StopEndOfStack, target.ErrEndOfStack
	case errors.Is(err, target.ErrNoMemory):
		return trace.StopNoMemory, target.ErrNoMemory
	case errors.Is(err, object.ErrFileShrank):
		return trace.StopNoMemory, object.ErrFileShrank
	case errors.Is(err, code.ErrUndefined):
		return trace.StopNoRow, code.ErrUndefined
	}
	return trace.StopNoRow, err
}

// rowError adds the part of a row to an error about it.
func (w *walker) rowError(part string, err error) error {
	if w.sampling {
		return err
	}
	return fmt.Errorf("%s: %w", part, err)
}

// findRow finds the row of a frame, in its module or in code of no module.
func (w *walker) findRow(ctx context.Context, f *frame) (*code.Row, error) {
	if f.exact || !w.isFirst(f) {
		return w.rowAt(ctx, f, f.exact)
	}
	row, err := w.rowAt(ctx, f, true)
	if err == nil && !row.IsSignalFrame() {
		return nil, &code.NoRow{Reasons: []string{"the PC is at the start of executable memory: no call is before it"}}
	}
	return row, err
}

// isFirst reports whether the return address that is the PC of a frame is the first address of
// its module, or of executable memory of no module. Calls do not return there: the kernel made
// a signal handler return to it. qemu has its trampolines in such a page.
func (w *walker) isFirst(f *frame) bool {
	distance := uint64(w.machine.Description.CallDistance)
	if f.module != nil {
		return f.lookup == f.offset && distance > 0
	}
	return w.isCode(f.pc) && !w.isCode(f.pc-distance)
}

// row finds the row in force at the PC of a frame that is in a module.
func (w *walker) row(ctx context.Context, f *frame, isExact bool) (*code.Row, error) {
	if f.module != w.recent.module {
		if f.module.Arch != w.machine.Description.Name {
			return nil, code.ErrOtherMachine
		}
		w.recent.module = f.module
	}
	w.ahead.f = f
	return f.module.RowAhead(ctx, f.offset, isExact, w.ahead.places())
}

// recover computes the CFA of f and the state of its caller. A nil caller without an error
// means that the return address is undefined: f is outermost.
func (w *walker) recover(ctx context.Context, f *frame, source *code.Row) (*frame, error) {
	if err := f.findCFA(ctx, source); err != nil {
		f.cfaProblem(err)
		return nil, w.rowError("CFA", err)
	}
	var column uint64
	var i int
	indexed := true
	if f.compiled {
		w.placeBehindCall(ctx, f)
		f.settle(source.Fast.Same)
		i = int(source.Fast.Return)
		column = w.machine.Compiler.Columns()[i].Number
	} else {
		if err := f.applyCallSite(ctx); err != nil {
			return nil, w.rowError("call site", err)
		}
		w.placeBehindCall(ctx, f)
		f.settle(0)
		f.evaluateRules(ctx)
		column = source.Rules.ReturnAddress
		i, indexed = w.index(column)
	}
	s, err := f.findSaved(ctx, column, i, indexed)
	if err != nil {
		return nil, w.rowError("return address", err)
	}
	if s.kind == slotUndefined {
		return nil, nil
	}
	caller := w.frame(f.index + 1)
	caller.callee, caller.found, caller.restsOnGuess = f, source.By, f.isGuess()
	bits, ok := w.bits(column, i, indexed)
	if !ok || bits > 64 {
		return nil, fmt.Errorf("return address: column %d is no register of at most 64 bits of %s", column, w.machine.Description.Name)
	}
	pc, err := caller.read(ctx, &s, column, bits)
	if err != nil {
		return nil, w.rowError("return address", err)
	}
	caller.pc = w.withoutSignature(ctx, f, source, pc)
	caller.exact = source.IsSignalFrame() || source.IsInjected
	w.place(caller)
	return caller, nil
}

// cfaProblem reports that the CFA of a frame cannot be evaluated.
func (f *frame) cfaProblem(err error) {
	if f.module != nil && f.source.By != trace.ByFramePointer && f.source.By != trace.ByBackChain && f.source.By != trace.ByScan {
		f.module.CFAProblem(f.source, err)
	}
}

// findCFA computes the CFA of a frame by its row.
func (f *frame) findCFA(ctx context.Context, source *code.Row) error {
	w := f.walker
	if !source.IsCompiled || !w.compiles {
		l, err := source.Rules.CFA.Location(ctx, f.rowEvaluator(source), frameContext{frame: f})
		if err != nil {
			return err
		}
		f.cfaSpace, f.cfa, f.hasCFA = l.MemoryAddress()
		if source.IsSearched {
			below, _ := f.parametersBelow()
			f.cfa = (f.cfa + below) & w.machine.addresses
		}
		return nil
	}
	v, err := f.compiledValue(ctx, int(source.Fast.Register))
	if err != nil {
		return err
	}
	f.cfa, f.cfaSpace = (v+uint64(int64(source.Fast.Offset)))&w.machine.addresses, locexpr.DefaultSpace
	f.hasCFA, f.compiled = true, true
	return nil
}

// bits returns the size of a register; i is its index in compiled rows, where indexed.
func (w *walker) bits(reg uint64, i int, indexed bool) (uint32, bool) {
	if indexed {
		return w.machine.Compiler.Columns()[i].Bits, true
	}
	return w.machine.RegisterBits(reg)
}
