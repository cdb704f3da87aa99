// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"slices"
)

// Launcher is the thread that launched another one, with its stack where the other one's
// continues in it.
type Launcher struct {
	// Launch is the launching thread and how that is known, as the target has it.
	*Launch
	// Thread is the launcher where it is in the target; nil where it is not.
	Thread *Thread
	// Frames are the launcher's, innermost first: as recorded at the launch, with FoundBy
	// ByLaunch, or of the thread as it waits. They may be shared with other stacks. There
	// are none where only the process is known.
	Frames []Frame
	Gap
	Stopped Stopped // why the launcher's stack ends; zero where it was recorded
	// Problem is why there are no frames where there could be some; else "".
	Problem string
}

// Lane returns the stack of one lane: the frames that it is in, each at the lane's place. A
// lane that waits has its logical PC; a frame in which its place is not described has no
// Symbols. Frames that are not its own are left out. ok is false where all are: the thread has
// no such lane, it had nothing to do, or lanes were not requested.
func (s *Stack) Lane(lane uint32) (one *Stack, ok bool) {
	one = &Stack{Thread: s.Thread, Lanes: s.Lanes, Stopped: s.Stopped, Wait: s.Wait, Runtimes: s.Runtimes, Launchers: s.Launchers}
	for i := range s.Frames {
		f := &s.Frames[i]
		if !f.IsNative() {
			continue // runtimes execute one function at a time
		}
		g := LaneGroupOf(f.Lanes(), lane)
		if g == nil {
			return nil, false
		}
		if g.State == LaneNotOnEntry {
			continue
		}
		own := *f
		only := *g
		only.Lanes = NewLaneSet(lane + 1)
		only.Lanes.Add(lane)
		own.Details = &FrameDetails{Registers: f.Registers(), Lanes: []LaneGroup{only}}
		locals := f.Locals()
		if g.State != LaneActive {
			locals = g.Locals
		}
		own.Details.Locals, own.Details.Lanes[0].Locals = ofLane(locals, lane), nil
		switch {
		case g.State == LaneActive:
		case g.HasPC:
			own.PC, own.ModuleOffset, own.Symbols, own.Exact = g.PC, g.ModuleOffset, g.Symbols, true
			own.Imprecise = false // the lane waits there
		default:
			own.Symbols = nil
		}
		one.Frames = append(one.Frames, own)
	}
	return one, len(one.Frames) > 0
}

// ofLane returns the variables that a lane has.
func ofLane(levels [][]FrameVariable, lane uint32) [][]FrameVariable {
	if levels == nil {
		return nil
	}
	own := make([][]FrameVariable, len(levels))
	for i, list := range levels {
		for _, v := range list {
			if v.Lanes == nil || v.Lanes.Has(lane) {
				v.Lanes = nil
				own[i] = append(own[i], v)
			}
		}
	}
	return own
}

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
	StopNotStopped   StopReason = "not-stopped"   // the thread of a living process did not stop, so that its registers are not known
)

// Stopped is why a stack ends, with the details.
type Stopped struct {
	Reason StopReason
	Detail string
}

// Gap describes the frames of a stack that were not kept: it had more than engine.Options.MaxFrames,
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
	Thread *Thread
	// Lanes is how many lanes the thread has: 1 for a CPU thread, 0 where it is not known.
	Lanes  uint32
	Frames []Frame
	Gap
	Stopped Stopped
	// EndAssumed is true where the last frame is taken for the outermost one only because its
	// return address is 0: no rule and no ABI marks it.
	EndAssumed bool
	// Wait is the lock, or another object, that the thread waits for; nil if it waits for none
	// that is known.
	Wait *Wait
	// Runtimes are the language runtimes that know the thread, each with its state.
	Runtimes []RuntimeThread
	// Launchers continue the stack in the thread that launched this one, in the
	// thread that launched that, and so on, as far as it is known.
	Launchers []Launcher
}

// IndexBehind returns the index in Frames of the frame that follows the n innermost native ones,
// which a walk counts alone; len(Frames) where none does.
func (s *Stack) IndexBehind(n int) int {
	for i := range s.Frames {
		if n == 0 {
			return i
		}
		if s.Frames[i].IsNative() {
			n--
		}
	}
	return len(s.Frames)
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
func (s *Stack) LaunchedBy() *Launch {
	if len(s.Launchers) > 0 {
		return s.Launchers[0].Launch
	}
	return s.Thread.LaunchedBy
}

// ErrNotWalked is wrapped by the error of Walked for a target that was read, and in which
// nothing could be walked for lack of an architecture.
var ErrNotWalked = errors.New("nothing in it could be walked")

// IsWalked reports whether there was an architecture to walk the stack, even if it was cut
// short at once.
func (s *Stack) IsWalked() bool {
	return s.Thread.Unread == "" && (len(s.Frames) > 0 || s.Stopped.Reason != StopPluginFailed)
}
