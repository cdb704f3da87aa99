// SPDX-License-Identifier: Apache-2.0

package php

import (
	"context"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// segment is the part of a chain that one native activation of execute_ex executes, innermost
// first. The functions of the interpreter that were called by it stand before.
type segment struct {
	builtins, frames []frame
	isElsewhere      bool // on another stack: the frames have resumed the fiber that the native one is of
}

// segments divides a chain. The bottom of a fiber, a function of the interpreter without a name,
// ends the native stack.
func (r *reader) segments(list []frame) (out []segment, rest []frame) {
	isElsewhere, start := false, 0
	take := func(end int) {
		s := segment{isElsewhere: isElsewhere}
		k := start
		for k < end && !r.function(list[k].function).isUser {
			k++
		}
		s.builtins, s.frames = list[start:k], list[k:end]
		out, start = append(out, s), end
	}
	for i := range list {
		c := &list[i]
		f := r.function(c.function)
		if f.err != nil {
			return out, list[start:]
		}
		if !f.isUser {
			if f.name == "" { // the bottom of a fiber
				if i > start {
					take(i)
				}
				isElsewhere, start = true, i+1
			}
			continue
		}
		if c.isTop {
			end := i + 1
			for end < len(list) && list[end].isDelegating {
				end++
			}
			take(end)
		}
	}
	return out, list[start:]
}

// stack finds the frames of PHP in a native stack.
func (r *reader) stack(s *sdk.NativeStack) (out sdk.ManagedStack) {
	top, err := r.Pointer(r.executor + r.layout.executor.frame)
	if err != nil {
		return sdk.ManagedStack{Problem: "executor_globals.current_execute_data: " + err.Error()}
	}
	var wrong error
	if out.Exception, wrong = r.exception(); wrong != nil {
		defer func() {
			if out.Problem == "" {
				out.Problem = "the exception: " + wrong.Error()
			}
		}()
	}
	list, err := r.chain(top)
	if err != nil {
		out.Problem = err.Error()
	}
	r.load(list)
	r.place(s, list, r.takeRegisters(s, list), &out)
	return out
}

// place gives the frames of a chain to native frames. Where isLeft, the innermost activation of
// execute_ex has left its last frame.
func (r *reader) place(s *sdk.NativeStack, list []frame, isLeft bool, out *sdk.ManagedStack) {
	problem := func(err error) {
		if err != nil && out.Problem == "" {
			out.Problem = err.Error()
		}
	}
	segments, rest := r.segments(list)
	own := 0
	for own < len(segments) && !segments[own].isElsewhere {
		own++
	}
	entries := r.entries(s, list, own)
	if isLeft && len(entries) == own+1 {
		entries = entries[1:]
	}
	p := placer{reader: r, stack: s, all: list, isKnown: out.Problem == ""}
	if caller := r.enters(s, entries); caller >= 0 && len(entries) == own-1 {
		entries, p.isEntered = slices.Insert(entries, 0, caller), true
	}
	p.entries = entries
	if p.isKnown = p.isKnown || own == len(entries); p.isKnown && own != len(entries) && !(s.IsCut && own > len(entries)) {
		problem(fmt.Errorf("%d native frames of execute_ex, expected %d by the frames of PHP: which stands for which is not known", len(entries), own))
		p.isKnown = false
	}
	for k := range segments {
		if err := p.add(&segments[k], k); err != nil {
			problem(err)
			out.Runs = p.runs
			return
		}
	}
	if len(rest) > 0 {
		problem(p.addRest(rest))
	}
	problem(r.checkEnd(list, rest))
	out.Runs = p.runs
}

// checkEnd checks that a chain ends where it may: at a frame that native code called, and on a stack
// that is no fiber's at the code of a file.
func (r *reader) checkEnd(list []frame, rest []frame) error {
	if i := slices.IndexFunc(rest, func(f frame) bool { return r.function(f.function).isUser }); i >= 0 {
		return fmt.Errorf("the frame at %#x has none outside it, expected one, or a flag that native code called it", rest[len(rest)-1].address)
	}
	isBottom := func(c frame) bool { f := r.function(c.function); return f.err == nil && !f.isUser && f.name == "" }
	if !slices.ContainsFunc(list, isBottom) {
		return nil
	}
	if f := r.function(list[len(list)-1].function); f.err == nil && (f.name != "" || !f.isUser) {
		return fmt.Errorf("prev_execute_data ends at the function %q, expected the code of a file outside fibers", f.name)
	}
	return nil
}

// entries returns the native frames that stand for activations of execute_ex. Where there are fewer
// than expected, the ones without a name count, which may be such.
func (r *reader) entries(s *sdk.NativeStack, list []frame, expected int) (entries []int) {
	var more []int
	for i := range s.Frames {
		switch {
		case r.isEntry(s.Frames[i]):
			entries, more = append(entries, i), append(more, i)
		case r.mayBeEntry(s, i) && !r.isBuiltin(s.Frames[i].PC, list):
			more = append(more, i)
		}
	}
	if len(entries) < expected && len(more) == expected {
		return more
	}
	return entries
}

// enters returns the index of the native frame further in than all entries that is about to call
// execute_ex, or that it has returned to; -1 where none is.
func (r *reader) enters(s *sdk.NativeStack, entries []int) int {
	end := len(s.Frames)
	if len(entries) > 0 {
		end = entries[0]
	}
	return slices.IndexFunc(s.Frames[:end], func(f sdk.NativeFrame) bool { return f.InModule && callers[f.Function] })
}

// isBuiltin reports whether a PC is near the beginning of a function of PHP itself that frames of a
// list call.
func (r *reader) isBuiltin(pc uint64, list []frame) bool {
	for i := range list {
		if f := r.function(list[i].function); f.err == nil && !f.isUser && pc-f.handler < maxBuiltin {
			return true
		}
	}
	return false
}

// placer makes the runs of one stack.
type placer struct {
	*reader
	stack   *sdk.NativeStack
	entries []int // native frames of execute_ex
	isKnown bool  // there are as many as the frames of PHP have
	// isEntered says that the first entry is no activation yet, but will call one.
	isEntered bool
	all       []frame
	done      int // frames of all that were placed
	runs      []sdk.ManagedRun
}

// take returns the next count frames as frames of PHP.
func (p *placer) take(count int) ([]sdk.ManagedFrame, error) {
	var out []sdk.ManagedFrame
	for range count {
		m, err := p.managedFrame(&p.all[p.done], p.all[p.done+1:])
		if err != nil {
			return out, fmt.Errorf("frame at %#x: %w", p.all[p.done].address, err)
		}
		p.done++
		out = append(out, m)
	}
	return out, nil
}

// run adds a run, or the frames to the last one where that stands at the same place.
func (p *placer) run(first, count int, frames []sdk.ManagedFrame) {
	if len(frames) == 0 {
		return
	}
	if n := len(p.runs) - 1; n >= 0 && int(p.runs[n].First) == first && (p.runs[n].Count == 0 || !p.isKnown) {
		p.runs[n].Frames = append(p.runs[n].Frames, frames...)
		p.runs[n].Count = uint32(count) //nolint:gosec // of native frames
		return
	}
	p.runs = append(p.runs, sdk.ManagedRun{First: uint32(first), Count: uint32(count), Frames: frames}) //nolint:gosec // as above
}

// add places the segment k of the chain.
func (p *placer) add(s *segment, k int) error {
	if s.isElsewhere {
		p.skipBottom()
	}
	entry, count, inner := len(p.stack.Frames), 0, 0
	switch {
	case s.isElsewhere || k >= len(p.entries) && p.isKnown:
	case !p.isKnown: // all before the innermost, whose place is certain
		entry = len(p.stack.Frames)
		if len(p.entries) > 0 {
			entry = p.entries[0]
		}
	default:
		if entry, count = p.entries[k], 1; k == 0 && p.isEntered {
			count = 0
		}
		if k > 0 {
			inner = p.entries[k-1] + 1
		}
		for i := range s.builtins {
			native := p.native(&s.builtins[i], inner, entry)
			frames, err := p.take(1)
			if err != nil {
				return err
			}
			if native < 0 {
				p.run(entry, 0, frames)
				continue
			}
			p.run(native, 1, frames)
			inner = native + 1
		}
		frames, err := p.take(len(s.frames))
		p.run(entry, count, frames)
		return err
	}
	frames, err := p.take(len(s.builtins) + len(s.frames))
	p.run(entry, count, frames)
	return err
}

// addRest places the frames outside the last native activation.
func (p *placer) addRest(rest []frame) error {
	p.skipBottom()
	at := len(p.stack.Frames)
	if !p.isKnown && len(p.entries) > 0 {
		at = p.entries[0]
	} else if len(p.entries) == 0 || !p.isKnown {
		at = len(p.stack.Frames)
	}
	frames, err := p.take(len(rest))
	p.run(at, 0, frames)
	return err
}

// skipBottom leaves out the bottom of a fiber, which is no function of PHP.
func (p *placer) skipBottom() {
	for p.done < len(p.all) {
		if f := p.function(p.all[p.done].function); f.err != nil || f.isUser || f.name != "" {
			return
		}
		p.done++
	}
}

// maxBuiltin bounds the code of a function of the interpreter whose end is not known, in bytes.
const maxBuiltin = 1 << 14

// native returns the index of the native frame of a function of the interpreter among those from
// low to high; -1 where none is found.
func (p *placer) native(c *frame, low, high int) int {
	f := p.function(c.function)
	if f.err != nil || f.handler == 0 {
		return -1
	}
	addresses := make([]uint64, 0, high-low)
	for i := low; i < high; i++ {
		pc := p.stack.Frames[i].PC
		if i > 0 {
			pc-- // in the call
		}
		addresses = append(addresses, pc)
	}
	places, err := p.engine.FindFunctions(p.ctx, addresses)
	if err != nil || len(places) != len(addresses) {
		return -1
	}
	best := -1
	for i, pc := range addresses {
		switch place := &places[i]; {
		case place.HasStart && place.Start == f.handler:
			return low + i
		case !place.HasStart && pc >= f.handler && pc-f.handler < maxBuiltin:
			best = low + i
		}
	}
	return best
}

// registers are where execute_ex keeps the frame and the operation that it executes, by e_machine.
var registers = map[uint16]struct{ frame, op uint32 }{
	62:  {14, 15}, // x86-64: r14, r15
	183: {27, 28}, // AArch64
}

// takeRegisters takes the operation of the innermost frame from the registers, where they have that
// frame: execute_ex itself was interrupted, or a function that it called and that has not used
// them yet. Where they have a frame that leads to the innermost one, that was left.
func (r *reader) takeRegisters(s *sdk.NativeStack, list []frame) (isLeft bool) {
	numbers, isKnown := registers[r.request.Machine]
	if !isKnown || len(list) == 0 {
		return false
	}
	found, err := readRegisters(r.ctx, r.engine, s.Thread, numbers.frame, numbers.op)
	if err != nil {
		return false // the operation in memory counts
	}
	at, op := r.Number(found[0]), r.Number(found[1])
	f := r.function(list[0].function)
	if at == list[0].address {
		if f.isUser && f.err == nil && f.hasOp(op) {
			list[0].op = op
		}
		return false
	}
	c, err := r.frame(at)
	return err == nil && c.isTop && c.caller == list[0].address
}

// readRegisters reads two registers, the first of which has the lower number.
func readRegisters(ctx context.Context, e sdk.RuntimeEngine, thread uint64, first, second uint32) (data [2][]byte, err error) {
	s, err := e.ReadRegisters(ctx, thread, []uint32{first, second})
	if err != nil {
		return data, err
	}
	if len(s.Numbers) != 2 || len(s.Offsets) != 3 || s.Numbers[0] != first || s.Numbers[1] != second {
		return data, fmt.Errorf("registers %d and %d are not there", first, second)
	}
	for i := range data {
		start, end := s.Offsets[i], s.Offsets[i+1]
		if start > end || int(end) > len(s.Data) {
			return data, fmt.Errorf("register %d has no bytes", s.Numbers[i])
		}
		data[i] = s.Data[start:end]
	}
	return data, nil
}
