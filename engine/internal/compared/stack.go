// SPDX-License-Identifier: Apache-2.0

package compared

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// Thread returns the thread of a walked stack. start returns the ELF virtual address at which the function
// of a frame without a name begins; ok is false where that is not known.
func (r *Reader) Thread(s *trace.Stack, start func(*trace.Frame) (address uint64, ok bool)) *Thread {
	th := &Thread{ID: s.Thread.ID, Name: s.Thread.Name, Arch: s.Thread.Arch, Crashed: s.Thread.Crashed, Executes: s.Thread.Executes != nil, Ends: endOf(s)}
	if w := s.Thread.Wave; w != nil {
		th.IsWave, th.Kernel = true, w.Kernel
	}
	if s.Thread.Stop != nil {
		th.Stop = s.Thread.Stop.Reason
	}
	if g := s.Thread.Goroutine; g != nil {
		th.Word = g.Word()
		if g.GoroutineOrigin != nil && g.StartedAt != nil {
			th.Entry = g.StartedAt.Function
		}
	}
	for i := range s.Runtimes {
		x := &s.Runtimes[i]
		if x.Name != "" {
			th.Named = append(th.Named, x.Name)
		}
		if x.Exception != nil && th.Raised == "" {
			th.Raised = x.Exception.Type
		}
	}
	c := converter{reader: r, thread: th, start: start}
	th.Frames = r.frames[:0]
	c.chain(s.Frames, &s.Gap, th.IsWave)
	for i := range s.Launchers {
		c.chain(s.Launchers[i].Frames, &s.Launchers[i].Gap, false)
	}
	r.frames = th.Frames
	th.Frames = r.kept(th.Frames)
	return th
}

// kept returns frames that stay: the ones of another thread of the target, where they are the same.
func (r *Reader) kept(frames []trace.ComparedFrame) []trace.ComparedFrame {
	if r.stacks == nil {
		r.stacks, r.seed = map[uint64][]trace.ComparedFrame{}, maphash.MakeSeed()
	}
	sum := uint64(len(frames))
	for i := range frames {
		f := &frames[i]
		sum = bits.RotateLeft64(sum, 5) ^ maphash.String(r.seed, f.Function) + f.Offset + uint64(f.Line)<<32 + uint64(f.Column) //nolint:gosec // a hash
	}
	known, ok := r.stacks[sum]
	if ok && slices.Equal(known, frames) {
		return known
	}
	own := slices.Clone(frames)
	if !ok {
		r.stacks[sum] = own
	}
	return own
}

// endOf returns why a stack ends before its outermost frame: where it continues in launchers, the last one's.
func endOf(s *trace.Stack) string {
	reason := s.Stopped.Reason
	for i := range s.Launchers {
		if next := s.Launchers[i].Stopped.Reason; reason == trace.StopOutermost && next != "" {
			reason = next
		}
	}
	return ending(string(reason))
}

// ending is a reason why a stack ends; "" for one that ends at its outermost frame.
func ending(reason string) string {
	if reason == string(trace.StopOutermost) {
		return ""
	}
	return reason
}

// converter makes the frames of a thread.
type converter struct {
	reader *Reader
	thread *Thread
	start  func(*trace.Frame) (uint64, bool)
}

// chain adds the frames of a thread or of its launcher.
func (c *converter) chain(frames []trace.Frame, gap *trace.Gap, isWave bool) {
	c.frames(frames, isWave)
	if gap.LeftOut > 0 {
		c.thread.Frames = append(c.thread.Frames, leftOut)
		c.frames(gap.Outermost, isWave)
	}
}

func (c *converter) frames(frames []trace.Frame, isWave bool) {
	for i := range frames {
		f := &frames[i]
		if !f.BehindManaged { // else managed frames stand for it
			c.frame(f, isWave)
		}
		c.frames(f.TailCallers(), isWave)
	}
}

// frame adds the calls inlined into a frame, and the frame itself.
func (c *converter) frame(f *trace.Frame, isWave bool) {
	physical := trace.ComparedFrame{IsWave: isWave, IsGuess: f.FoundBy.IsGuess() || f.RestsOnGuess}
	isManaged := false
	if m := f.Managed(); m != nil {
		physical.Runtime, isManaged = m.Runtime, !m.IsNative
	}
	if f.Module != nil && !isManaged {
		physical.Module = ModuleName(f.Module.Path)
	}
	for i := range f.Symbols {
		s := &f.Symbols[i]
		one := physical
		one.Function, one.File, one.Line, one.Column = clip(s.Function), clip(s.File), s.Line, s.Column
		if s.Function != "" {
			one.Short = c.reader.nameOf(s).short
		}
		one.IsInlined, one.IsGuess = i < len(f.Symbols)-1, one.IsGuess || s.ScopeBySource
		if one.Function == "" && one.Module != "" && !one.IsInlined {
			one.Offset = c.offset(f, s)
		}
		c.thread.Frames = append(c.thread.Frames, one)
	}
	if len(f.Symbols) == 0 {
		if physical.Module != "" {
			physical.Offset = c.offset(f, &trace.Symbol{})
		}
		c.thread.Frames = append(c.thread.Frames, physical)
	}
}

// offset returns where a function without a name begins, or, where that is not known, the frame's PC.
func (c *converter) offset(f *trace.Frame, s *trace.Symbol) uint64 {
	if s.HasStart {
		return s.Start
	}
	if start, ok := c.start(f); ok {
		return start
	}
	return f.ModuleOffset
}
