// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// bounds keep the work on all stacks of a target in proportion to its bytes. A return address
// is somewhere in the target, in memory or in the registers of a thread, and no two frames have
// the same one; each thread's stack is searched in vain once at most. So all stacks together
// have no more frames than return addresses fit into the target, but a file can have any number
// of threads over the same bytes, each with a stack of thousands of frames.
//
// A stack is never cut below ownFrames.
type bounds struct {
	limited bool // the size of the target's memory is known
	frames  atomic.Int64
	counted atomic.Int64 // frames that are not kept
	scanned atomic.Int64 // bytes that may yet be searched in vain
	checks  atomic.Int64 // steps that may yet be taken to check guesses

	cut, unscanned atomic.Int64 // stacks, for the problems
}

const (
	ownFrames   = 2       // of a thread, without a return address
	frameBytes  = 4       // of a return address, at least
	frameFloor  = 1 << 16 // frames allowed in any target
	countFloor  = 1 << 20 // frames of any target that are only counted
	scanFloor   = 4 << 20 // bytes that any target may be searched for
	scanRatio   = 4
	checkFloor  = 1 << 22 // steps of any target
	checkBytes  = 4       // of memory for a step more
	readSteps   = 1 << 10
	maxByMemory = 1 << 50 // bytes, against overflow
)

func newBounds(state target.Target) *bounds {
	b := &bounds{}
	sized, ok := state.(target.Sized)
	if !ok {
		return b
	}
	b.limited = true
	size := int64(min(sized.MemorySize(), maxByMemory))
	frames := frameFloor + size/frameBytes
	for th, count := range target.ThreadsOf(state).Kinds() {
		frames += int64(count) * (ownFrames + int64(len(th.Registers.Data)/frameBytes))
	}
	b.frames.Store(frames)
	b.counted.Store(countFloor + size/frameBytes)
	b.scanned.Store(scanFloor + scanRatio*size)
	b.checks.Store(checkFloor + size/checkBytes)
	return b
}

// framesOf returns how many frames a thread's stack may have, up to most.
func (b *bounds) framesOf(most int) int {
	if !b.limited {
		return most
	}
	return int(min(int64(most), max(ownFrames, b.frames.Load())))
}

// countable takes up to most frames that are not kept off the budget, and returns how many it
// took.
func (b *bounds) countable(most int) int {
	if b.limited && b.counted.Add(-int64(most)) < 0 {
		return 0
	}
	return most
}

// walked takes the frames of a stack off the budget. limit of most were allowed.
func (b *bounds) walked(stack *trace.Stack, limit, most int) {
	if !b.limited {
		return
	}
	n := len(stack.Frames)
	b.frames.Add(-int64(n))
	if limit < most && n == limit && stack.Stopped.Reason == trace.StopFrameLimit {
		stack.Stopped.Detail = fmt.Sprintf("%d frames: the stacks of the target have more than its memory has room for", n)
		b.cut.Add(1)
	}
}

// mayScan reports whether a stack may still be searched for a return address.
func (b *bounds) mayScan() bool {
	if !b.limited || b.scanned.Load() > 0 {
		return true
	}
	b.unscanned.Add(1)
	return false
}

// scannedInVain takes bytes that had no return address off the budget.
func (b *bounds) scannedInVain(n int) { b.scanned.Add(-int64(n)) }

// mayCheck takes a step for the check of a guess; it returns false where none are left.
func (b *bounds) mayCheck() bool { return !b.limited || b.checks.Add(-1) >= 0 }

// mayRead takes the steps for reading a function of the code, which is as much work.
func (b *bounds) mayRead() bool { return !b.limited || b.checks.Add(-readSteps) >= 0 }

// problems lists what the bounds have cut.
func (b *bounds) problems() (list []string) {
	if n := b.cut.Load(); n > 0 {
		list = append(list, fmt.Sprintf("%d stacks were cut after %d frames or more: all threads together have more frames than the target's memory has room for", n, ownFrames))
	}
	if n := b.unscanned.Load(); n > 0 {
		list = append(list, fmt.Sprintf("%d stacks were not searched for a return address: the target's memory had been searched in vain %d times over", n, scanRatio))
	}
	if b.limited && b.checks.Load() < 0 {
		list = append(list, "guesses were taken for possible without a check: their checks had taken more steps than the target's memory has words")
	}
	return list
}
