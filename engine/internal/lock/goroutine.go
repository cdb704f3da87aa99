// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// goWait describes why a goroutine waits, by the runtime's text for that. It waits for a
// semaphore, a word of the lock at offset.
type goWait struct {
	kind   string
	offset uint64
}

// goWaits are by trace.GoroutineState.WaitReason. A Mutex is a state and its semaphore; an RWMutex
// is a Mutex and the semaphores of writers and of readers (src/sync/rwmutex.go).
var goWaits = map[string]goWait{
	"sync.Mutex.Lock":    {trace.WaitMutex, 4},
	"sync.RWMutex.Lock":  {trace.WaitRWLock, 8},
	"sync.RWMutex.RLock": {trace.WaitRWLock, 12},
}

const noGoOwner = "Go's locks do not record their owners"

// semaphores are the variables with the address of the semaphore, by function: the runtime's
// record of a waiting goroutine has it.
const (
	semaphoreFunction = "runtime.semacquire1"
	semaphoreVariable = "s"
	semaphoreMember   = "elem"
)

// goroutine returns the lock that a goroutine waits for.
func (f *Finder) goroutine(ctx context.Context, s *trace.Stack) *trace.Wait {
	state := s.Thread.Goroutine.GoroutineState
	if state == nil {
		return nil
	}
	reason, isKnown := goWaits[state.WaitReason]
	if !isKnown {
		return nil
	}
	w := &trace.Wait{Kind: reason.kind, Why: noGoOwner}
	if !f.mayWalk() {
		return w
	}
	stack, frames := f.process.Activations(ctx, s.Thread)
	semaphore, ok := semaphoreOf(ctx, stack, frames)
	if !ok || semaphore < reason.offset {
		return w
	}
	w.Address, w.HasAddress = semaphore-reason.offset, true
	w.Name = cmp.Or(f.globalName(w.Address), localName(ctx, stack, frames, w.Address))
	return w
}

// semaphoreOf returns the address of the semaphore that a goroutine waits for.
func semaphoreOf(ctx context.Context, stack *trace.Stack, frames []walk.Activation) (address uint64, ok bool) {
	for i := range frames[:min(len(frames), maxInner, len(stack.Frames))] {
		names := stack.Frames[i].Symbols
		if len(names) == 0 || names[len(names)-1].Function != semaphoreFunction {
			continue
		}
		for _, level := range frames[i].Locals(ctx, trace.ValueLimits{Depth: 4, Elements: 1}) {
			for k := range level {
				if v := &level[k]; v.Name == semaphoreVariable && !v.IsShadowed {
					return pointerIn(member(&v.Value, semaphoreMember))
				}
			}
		}
	}
	return 0, false
}

// member returns the member of the structure that a pointer leads to; nil where there is none.
func member(v *trace.Value, name string) *trace.Value {
	for range 3 {
		for i := range v.Children {
			if v.Children[i].Name == name {
				return &v.Children[i]
			}
		}
		if len(v.Children) != 1 {
			return nil
		}
		v = &v.Children[0]
	}
	return nil
}

// pointerIn returns the pointer that a value is, or that is its first part.
func pointerIn(v *trace.Value) (address uint64, ok bool) {
	for range 3 {
		if v == nil {
			return 0, false
		}
		text, _, _ := strings.Cut(v.Text, " ")
		if hex, isHex := strings.CutPrefix(text, "0x"); isHex {
			address, err := strconv.ParseUint(hex, 16, 64)
			return address, err == nil && address != 0
		}
		if len(v.Children) == 0 {
			return 0, false
		}
		v = &v.Children[0]
	}
	return 0, false
}
