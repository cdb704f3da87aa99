// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/trie"
)

// inStacks finds the stacks that have a function of a match, by stack.
func (f *filter) inStacks(m match) []bool {
	in := make([]bool, len(f.p.Stacks))
	for i := 1; i < len(in); i++ { // a caller comes before those that it called
		s := &f.p.Stacks[i]
		in[i] = in[s.Caller] || m[s.Frame] != 0
	}
	return in
}

// focus selects the samples with functions that match each expression.
func (f *filter) focus() error {
	for i, expression := range f.selector.focus {
		m, isAny := f.matchExpression(expression)
		text := f.selector.selection.Focus[i]
		none := func() error { return f.noFunction("focus", text) }
		if !isAny {
			return none()
		}
		in := f.inStacks(m)
		if err := f.keep(func(s *trace.ProfileSample) bool { return in[s.Stack] }, none); err != nil {
			return err
		}
	}
	return nil
}

// noFunction is the error for an expression that matches no function.
func (f *filter) noFunction(flag, text string) error {
	near := nearFunctions(f.all(), strings.Trim(text, `^$.*+?()[]{}|\`))
	if len(near) == 0 {
		return fmt.Errorf("%s: --%s %s: no function matches", f.p.Path, flag, text)
	}
	return fmt.Errorf("%s: --%s %s: no function matches; near are: %s", f.p.Path, flag, text, strings.Join(near, ", "))
}

// ignore selects the samples without functions that match an expression.
func (f *filter) ignore() error {
	for i, expression := range f.selector.ignore {
		m, isAny := f.matchExpression(expression)
		text := f.selector.selection.Ignore[i]
		if !isAny {
			f.note("--ignore %s: no function matches, and nothing is left out", text)
			continue
		}
		in := f.inStacks(m)
		err := f.keep(func(s *trace.ProfileSample) bool { return !in[s.Stack] }, func() error {
			return fmt.Errorf("%s: --ignore %s: every sample has a function that matches, and none is left", f.p.Path, text)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *filter) note(format string, args ...any) {
	f.result.Notes = append(f.result.Notes, fmt.Sprintf(format, args...))
}

// callers selects the samples with a function, whose stacks are to end there.
func (f *filter) callers() error {
	name := f.selector.selection.Callers
	if name == "" {
		return nil
	}
	found := map[FunctionName]bool{}
	all := f.all()
	for _, known := range FindFunctions(all, name) {
		found[known] = true
	}
	isMatch := func(name *FunctionName) bool { return found[*name] }
	if expression := f.selector.callersExpression; len(found) == 0 && expression != nil {
		isMatch = func(name *FunctionName) bool { return expression.MatchString(name.Function) }
	}
	var isAny bool
	if f.roots, isAny = f.match(isMatch); !isAny {
		return f.noFunction("callers", name)
	}
	in := f.inStacks(f.roots)
	return f.keep(func(s *trace.ProfileSample) bool { return in[s.Stack] }, func() error { return f.noFunction("callers", name) })
}

// hide finds the functions to remove.
func (f *filter) hide() error {
	for i, expression := range f.selector.hidden {
		m, isAny := f.matchExpression(expression)
		if !isAny {
			f.note("--hide %s: no function matches, and nothing is hidden", f.selector.selection.Hide[i])
			continue
		}
		if f.hidden == nil {
			f.hidden = m
			continue
		}
		for frame := range m {
			f.hidden[frame] |= m[frame]
		}
	}
	return nil
}

// changedStacks are new stacks of a profile. Its frames stay at their indices, and new ones
// follow them.
type changedStacks struct {
	stacks []trace.ProfileStack
	frames []trace.ProfileFrame
	tree   *trie.Trie
	parts  map[framePart]uint32
}

// framePart is a frame from one of its functions on.
type framePart struct {
	frame uint32
	from  int
}

// noPart is the part of a frame whose functions are all removed.
const noPart = ^uint32(0)

// change makes new stacks without hidden functions, and, where there are roots, without what
// those called. It returns the new stacks by the profile's.
func (f *filter) change() []uint32 {
	f.changed = changedStacks{
		stacks: make([]trace.ProfileStack, 1, len(f.p.Stacks)), frames: slices.Clip(f.p.Frames), tree: trie.New(len(f.p.Stacks)), parts: map[framePart]uint32{},
	}
	whole, cut := make([]uint32, len(f.p.Stacks)), make([]uint32, len(f.p.Stacks))
	for i := 1; i < len(whole); i++ { // a caller comes before those that it called
		s := &f.p.Stacks[i]
		whole[i] = f.changed.push(whole[s.Caller], f.part(s.Frame, 0))
		if f.roots == nil {
			continue
		}
		if cut[i] = cut[s.Caller]; f.roots[s.Frame] != 0 {
			cut[i] = f.changed.push(whole[s.Caller], f.part(s.Frame, bits.TrailingZeros64(f.roots[s.Frame])))
		}
	}
	if f.roots != nil {
		return cut
	}
	return whole
}

// push is the stack of a frame above a caller.
func (c *changedStacks) push(caller, frame uint32) uint32 {
	if frame == noPart {
		return caller
	}
	stack, isNew := c.tree.Child(caller, frame)
	if isNew {
		c.stacks = append(trie.Grown(c.stacks), trace.ProfileStack{Caller: caller, Frame: frame})
	}
	return stack
}

// part is a frame without its functions before an index, and without hidden ones.
func (f *filter) part(frame uint32, from int) uint32 {
	if from == 0 && (f.hidden == nil || f.hidden[frame] == 0) {
		return frame
	}
	key := framePart{frame, from}
	index, ok := f.changed.parts[key]
	if !ok {
		index = f.newPart(frame, from)
		f.changed.parts[key] = index
	}
	return index
}

func (f *filter) newPart(frame uint32, from int) uint32 {
	whole := &f.p.Frames[frame]
	isHidden := func(i int) bool { return f.hidden != nil && f.hidden.has(frame, i) }
	var left []trace.Symbol
	for i := from; i < len(whole.Symbols); i++ {
		if !isHidden(i) {
			left = append(left, whole.Symbols[i])
		}
	}
	switch {
	case len(left) == 0 && (len(whole.Symbols) > 0 || isHidden(0)):
		return noPart
	case len(left) == len(whole.Symbols):
		return frame
	}
	part := *whole
	part.Symbols = left
	f.changed.frames = append(f.changed.frames, part)
	return uint32(len(f.changed.frames) - 1) //nolint:gosec // at most twice as many as stacks
}
