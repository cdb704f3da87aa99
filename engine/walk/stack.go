// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"slices"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/value"
	"github.com/unwindd/unwindd/locexpr"
)

// StopReason is the reason why a stack ends where it does.
type StopReason string

// The reasons.
const (
	StopOutermost    StopReason = "outermost"     // nothing called the last frame, by rules, the object or the ABI
	StopEndOfStack   StopReason = "end-of-stack"  // the recorded bytes of the stack ran out
	StopNoModule     StopReason = "no-module"     // the last frame's PC is in no code object
	StopNoRow        StopReason = "no-row"        // no rule tells how the last frame is left
	StopNoProgress   StopReason = "no-progress"   // the next frame would repeat an earlier one
	StopFrameLimit   StopReason = "frame-limit"   // the most frames allowed
	StopPluginFailed StopReason = "plugin-failed" // the architecture's plugin gave no usable answer
	StopNoMemory     StopReason = "no-memory"     // a saved register is at an address that is not in the target
)

// Stopped is why a stack ends, with the details.
type Stopped struct {
	Reason StopReason
	Detail string
}

// Gap describes the frames of a stack that were not kept: it had more than Options.MaxFrames,
// or Top removed some. It is zero where all are there.
type Gap struct {
	// LeftOut is how many physical frames follow the kept ones and were only counted, and
	// LeftOutCalls how many calls inlined into them, and functions left by tail calls.
	LeftOut, LeftOutCalls int
	// HasGuess is true where one of the frames left out is a guess.
	HasGuess bool
	// Outermost are the frames outside the ones left out, to the end of the stack.
	Outermost []Frame
}

// Stack is the walked stack of one thread, innermost frame first.
type Stack struct {
	Thread *target.Thread
	// Lanes is how many lanes the thread has: 1 for a CPU thread, 0 where it is not known.
	Lanes  uint32
	Frames []Frame
	Gap
	Stopped Stopped
	// EndAssumed is true where the last frame is taken for the outermost one only because its
	// return address is 0: no rule and no ABI marks it.
	EndAssumed bool
	// Launchers continue the stack in the thread that launched this one, in the
	// thread that launched that, and so on, as far as it is known.
	Launchers []Launcher
}

// Top returns the stack with its n innermost physical frames, with the frames of its launchers
// after its own. The others are counted. It ends for the same reason as the whole stack.
func (s *Stack) Top(n int) *Stack {
	top := *s
	top.Frames, top.Gap = topOf(s.Frames, s.Gap, n)
	top.Launchers = slices.Clone(s.Launchers)
	for i := range top.Launchers {
		n = max(n-len(s.Frames)-s.LeftOut-len(s.Outermost), 0)
		l := &top.Launchers[i]
		s = &Stack{Frames: l.Frames, Gap: l.Gap}
		l.Frames, l.Gap = topOf(s.Frames, s.Gap, n)
	}
	return &top
}

// topOf returns the n innermost frames, and the others as a gap.
func topOf(frames []Frame, gap Gap, n int) ([]Frame, Gap) {
	if n >= len(frames) {
		isOutside := n >= len(frames)+gap.LeftOut+len(gap.Outermost)
		if !isOutside {
			gap.LeaveOut(gap.Outermost)
			gap.Outermost = nil
		}
		return frames, gap
	}
	gap.LeaveOut(frames[n:])
	gap.LeaveOut(gap.Outermost)
	gap.Outermost = nil
	return frames[:n:n], gap
}

// LeaveOut adds frames to the gap.
func (g *Gap) LeaveOut(frames []Frame) {
	for i := range frames {
		f := &frames[i]
		g.LeftOut++
		g.LeftOutCalls += max(len(f.Symbols)-1, 0)
		for k := range f.TailCallers() {
			g.LeftOutCalls += max(len(f.TailCallers()[k].Symbols), 1)
		}
		g.HasGuess = g.HasGuess || f.FoundBy.IsGuess()
	}
}

// TakeBack removes frames from the gap, the last ones that LeaveOut added. HasGuess stays set
// if one of them is a guess.
func (g *Gap) TakeBack(frames []Frame) {
	counted := Gap{}
	counted.LeaveOut(frames)
	g.LeftOut -= counted.LeftOut
	g.LeftOutCalls -= counted.LeftOutCalls
}

// LaunchedBy returns the thread's launch, as the target has it, or as the walk found it; nil
// where nothing is known.
func (s *Stack) LaunchedBy() *target.Launch {
	if len(s.Launchers) > 0 {
		return s.Launchers[0].Launch
	}
	return s.Thread.LaunchedBy
}

// Frame is one activation of a function: a physical frame. Calls that were inlined into it are
// in Symbols. It is small, since stacks may be kept by the hundred thousand.
type Frame struct {
	// PC is the address of the next instruction. In every frame but the top
	// one and those next to a signal it is a return address (design of the
	// walk: lookups use the byte before it).
	PC uint64
	// CFA is the canonical frame address, in CFASpace. HasCFA is false where no
	// row was found for the frame.
	CFA      uint64
	CFASpace locexpr.AddressSpace
	// Module is the module of the code; nil where PC is in none.
	Module *target.LoadedModule
	// ModuleOffset is PC as an ELF virtual address of Module.
	ModuleOffset uint64
	FoundBy      code.FoundBy
	// Symbols are the functions at PC, innermost first; the last one is the function that the
	// frame belongs to, the others were inlined. Empty where nothing is known. All frames at
	// one PC of a code object share them: they must not be changed.
	Symbols []symbol.Frame
	// Details are requested by Options; nil: there are none.
	Details *FrameDetails
	HasCFA  bool
	// Exact is true where PC is an instruction that was about to execute, not a return address.
	Exact bool
	// Imprecise is true where the thread did not stop at PC, but at an instruction that it
	// executed before: PC, and everything found by it, is where it would go on.
	Imprecise bool
	// RestsOnGuess is true where a frame further in is a guess: this one is right only if that
	// one is.
	RestsOnGuess bool
	// PassedOver is how many words of the stack that may be return addresses lie nearer than
	// the one that a scan took for this frame: there may be frames between it and the
	// one further in.
	PassedOver uint16
	// SignalFrame is true for a signal trampoline.
	SignalFrame bool
}

// FrameDetails are details of a frame that Options ask for.
type FrameDetails struct {
	// Registers are the frame's general registers that could be recovered, by
	// number (Options.Registers).
	Registers []RegisterValue
	// Lanes are the states of a wave's lanes in the frame: the groups in the order of their
	// first lanes (Options.Lanes). A CPU thread has none.
	Lanes []LaneGroup
	// Locals are the variables in scope, by the function in Symbols that has them
	// (Options.Locals). A function that is not described has none.
	Locals [][]Variable
	// TailCallers are the functions that called the frame's by tail calls, innermost first,
	// where call sites leave only one path from its caller to it. They have no physical frame
	// any more: PC is the address after the tail call, FoundBy is ByCallSite, and there is no
	// CFA.
	TailCallers []Frame
}

// Variable is a variable of a frame with its value.
type Variable struct {
	value.Variable
	// Lanes are the lanes of a wave that have this value; nil for a CPU thread, and where no
	// lane is known to be there.
	Lanes LaneSet
}

// Locals returns the variables in the frame's details.
func (f *Frame) Locals() [][]Variable {
	if f.Details == nil {
		return nil
	}
	return f.Details.Locals
}

// Registers returns the registers in the frame's details.
func (f *Frame) Registers() []RegisterValue {
	if f.Details == nil {
		return nil
	}
	return f.Details.Registers
}

// TailCallers returns the frames in the frame's details.
func (f *Frame) TailCallers() []Frame {
	if f.Details == nil {
		return nil
	}
	return f.Details.TailCallers
}

// Lanes returns the groups of lanes in the frame's details.
func (f *Frame) Lanes() []LaneGroup {
	if f.Details == nil {
		return nil
	}
	return f.Details.Lanes
}

// RegisterValue is a general register of a frame.
type RegisterValue struct {
	Name   string
	Number uint64
	Bits   uint32
	Value  uint64
}
