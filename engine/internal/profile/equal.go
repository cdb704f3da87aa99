// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file names frames of code that a linker merged from several functions: by the function
// that the caller's call site names, as in stacks of threads.

// isEqual reports whether the code of a frame may be that of several functions.
func (p *framePlace) isEqual(symbols []trace.Symbol) bool {
	n, code := len(symbols), p.module.Code
	return n > 0 && (symbols[n-1].Equals > 0 && code.DWARF() != nil || code.MayBeEqual(p.lookup))
}

// equalFrame is a frame whose caller's call site tells which of several functions it belongs
// to.
type equalFrame struct {
	frame    uint32      // with the names of the function
	function dwarf.Entry // the zero Entry: no call site tells
}

// equalCall is a frame and its caller, with the function chosen for that.
type equalCall struct {
	frame  uint32
	caller equalFrame
}

// equalNames chooses between functions that have the same code.
type equalNames struct {
	*profileBuilder
	calls    map[equalCall]equalFrame
	variants map[equalFrame]uint32 // copies of frames, by the frame that they were copied from
}

// chooseEqual chooses for every stack. Callers come before their callees, because the choice
// for a caller may depend on its own callers.
func (b *profileBuilder) chooseEqual() {
	n := &equalNames{b, map[equalCall]equalFrame{}, map[equalFrame]uint32{}}
	chosen := map[uint32]dwarf.Entry{} // by stack
	for i := range b.out.Stacks {
		s := &b.out.Stacks[i]
		if s.Caller == 0 || !b.places[s.Frame].mayBeEqual {
			continue
		}
		call := equalCall{s.Frame, equalFrame{b.out.Stacks[s.Caller].Frame, chosen[s.Caller]}}
		choice, isKnown := n.calls[call]
		if !isKnown {
			// Unreadable debug information chooses none.
			if object.Guard(func() (err error) { choice, err = n.choose(call); return err }) != nil {
				choice = equalFrame{frame: call.frame}
			}
			n.calls[call] = choice
		}
		s.Frame = choice.frame
		if !choice.function.IsZero() {
			chosen[uint32(i)] = choice.function //nolint:gosec // as indexes of stacks are
		}
	}
}

// choose returns the frame of a call, with the function that is called.
func (n *equalNames) choose(call equalCall) (equalFrame, error) {
	none := equalFrame{frame: call.frame}
	f, p := &n.out.Frames[call.frame], &n.places[call.frame]
	if f.FoundBy.IsGuess() || f.Symbols[len(f.Symbols)-1].Equals == 0 && p.module != n.places[call.caller.frame].module {
		return none, nil // functions that others call by several names are aliases, as free and __libc_free
	}
	callee, err := n.callee(call.caller)
	if err != nil || callee.IsZero() {
		return none, err
	}
	functions, err := p.functions()
	if err != nil || functions[0].IsZero() {
		return none, err
	}
	function, err := p.module.Code.Called(p.lookup, functions[0], callee)
	if err != nil || function.IsZero() || function.Is(functions[0]) {
		return equalFrame{call.frame, function}, err
	}
	key := equalFrame{call.frame, function}
	variant, isThere := n.variants[key]
	if !isThere {
		variant = uint32(len(n.out.Frames)) //nolint:gosec // as in addFrame
		copied := *f
		copied.Symbols = p.module.Code.NamesIn(p.lookup, n.recording.maker.Shared.Options().NoInlines, function)
		n.out.Frames, n.places = append(n.out.Frames, copied), append(n.places, *p)
		n.variants[key] = variant
	}
	return equalFrame{variant, function}, nil
}

// functions returns the functions that the code of a frame belongs to, first the one that it is
// named by; the zero Entry where none is described.
func (p *framePlace) functions() ([]dwarf.Entry, error) {
	list, err := p.module.Code.DWARF().Equals(p.lookup)
	if err != nil || len(list) > 0 {
		return list, err
	}
	own, err := p.module.Code.Function(p.lookup)
	return []dwarf.Entry{own}, err
}

// callee returns the function that a frame called; the zero Entry where that is not known.
func (n *equalNames) callee(caller equalFrame) (callee dwarf.Entry, err error) {
	f, p := &n.out.Frames[caller.frame], &n.places[caller.frame]
	if p.module == nil || f.Exact || f.FoundBy.IsGuess() || p.module.Code.DWARF() == nil {
		return callee, nil
	}
	functions := []dwarf.Entry{caller.function}
	if caller.function.IsZero() && p.mayBeEqual {
		if functions, err = p.functions(); err != nil {
			return callee, err
		}
	}
	return p.module.Code.Callee(p.offset, functions)
}
