// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
)

// This file asks plugins for rows before they are needed, in calls in which one is needed: a
// call of another process takes ten times as long as reading a function.

// A Place is an address of an object at which a frame may be.
type Place struct {
	Address uint64
	IsExact bool // the code there is about to execute; else the address is behind a call
}

// Ahead has the places that a walk may come to next.
type Ahead interface {
	// Places returns at most so many places in an object, the likeliest first. The caller holds
	// the lock of the object: nothing is looked up in it.
	Places(o *Object, most int) []Place
}

const (
	// maxAhead is how many functions one call asks about beside the one that is needed.
	maxAhead = 256
	// maxAheadCode is how many bytes of code those functions have together: a plugin in Python
	// reads some hundred thousand bytes within the deadline of a call.
	maxAheadCode = 64 << 10
	// slowAhead is how long a call may take before the next ones ask about fewer functions.
	slowAhead = 2 * time.Second
	// maxPause is how many calls in a row ask about nothing beside, after answers that were not
	// needed.
	maxPause = 256
)

// A Foresight decides how many answers a call asks for before they are needed, by how many of
// those before were. A few answers are asked for one by one, and a walk that needs thousands
// soon asks for maxAhead at once. The zero Foresight is ready; its owner locks it.
type Foresight struct {
	isBegun   bool
	reach     int // how many answers a call asks for beside the one that is needed
	requested int // beside it, by the last call that did
	used      int // how many were needed since
	pause     int // how many further calls ask for none
	vain      int // how long the last pause was
}

// Next begins a call, and returns how many answers it may ask for beside the one that is needed.
func (f *Foresight) Next() int {
	switch {
	case !f.isBegun:
		f.isBegun, f.reach = true, 1
		return 0
	case f.pause > 0:
		f.pause--
		return 0
	case f.requested == 0:
	case 2*f.used >= f.requested:
		f.reach, f.vain = min(2*f.reach, maxAhead), 0
	case 8*f.used >= f.requested:
	case f.reach > 1:
		f.reach = max(1, f.reach/4)
	default:
		f.vain = min(max(4, 2*f.vain), maxPause)
		f.pause, f.requested = f.vain-1, 0
		return 0
	}
	return f.reach
}

// Requested records that a call asked for so many answers beside the one that was needed.
func (f *Foresight) Requested(n int) { f.requested, f.used = n, 0 }

// Used records that an answer was needed which was asked for before.
func (f *Foresight) Used() { f.used++ }

// aheadLimit bounds how many functions calls of a plugin ask about beside the one that is needed.
// It shrinks where the plugin is slow, or fails.
type aheadLimit struct{ less atomic.Int32 }

// most returns the bound.
func (l *aheadLimit) most() int { return maxAhead >> min(l.less.Load(), 16) }

// shrink divides the bound by a power of two.
func (l *aheadLimit) shrink(bits int32) { l.less.Add(bits) }

const (
	shrinkSlow   = 2 // a quarter
	shrinkFailed = 4 // a sixteenth: a process that died or hung is costly
)

// maxSplits is how many further calls find out which functions of a batch have answers that are
// refused.
const maxSplits = 24

// An aheadAnswer is an answer about a function of a batch.
type aheadAnswer struct {
	rules     *sdk.FrameRules // nil: there is none
	isWhole   bool            // they are the answer for all PCs of the function
	isRefused bool            // asked about alone, the function has none either
}

// functionsCall asks a plugin about functions.
type functionsCall func(ctx context.Context, functions []sdk.CodeRange) ([]sdk.FrameRules, error)

// askBeside asks about functions in one call. The first is needed; its error is returned. Where
// the answer is refused, the needed function is asked about alone, and the others by halves, so
// that one function does not cost the others their answers. After a call in which the plugin died
// or hung the others are not asked about, and the next calls ask about fewer.
func (m *Machine) askBeside(ctx context.Context, ask functionsCall, functions []sdk.CodeRange) (needed *sdk.FrameRules, beside []aheadAnswer, err error) {
	began := time.Now()
	list, err := ask(ctx, functions)
	beside = make([]aheadAnswer, len(functions)-1)
	if err == nil {
		if len(beside) > 0 && time.Since(began) > slowAhead {
			m.ahead.shrink(shrinkSlow)
		}
		for i := range beside {
			beside[i].rules = &list[i+1]
		}
		return &list[0], beside, nil
	}
	if len(beside) == 0 || ctx.Err() != nil {
		return nil, beside, err
	}
	isAnswered := plugin.IsAnswered(err)
	if !isAnswered {
		m.ahead.shrink(shrinkFailed)
	}
	if list, err = ask(ctx, functions[:1]); err == nil {
		needed = &list[0]
	}
	if isAnswered {
		s := splitting{ask: ask, left: maxSplits}
		s.answers(ctx, functions[1:], beside)
	}
	return needed, beside, err
}

// splitting asks about functions by halves, where an answer about all of them is refused.
type splitting struct {
	ask  functionsCall
	left int // calls
}

// answers asks about functions. Those that no call is left for have no answer.
func (s *splitting) answers(ctx context.Context, functions []sdk.CodeRange, answers []aheadAnswer) {
	if len(functions) == 0 || s.left == 0 {
		return
	}
	s.left--
	list, err := s.ask(ctx, functions)
	switch {
	case err == nil:
		for i := range list {
			answers[i].rules = &list[i]
		}
	case !plugin.IsAnswered(err) || ctx.Err() != nil:
		s.left = 0
	case len(functions) == 1:
		answers[0].isRefused = true
	default:
		half := len(functions) / 2
		s.answers(ctx, functions[:half], answers[:half])
		s.answers(ctx, functions[half:], answers[half:])
	}
}
