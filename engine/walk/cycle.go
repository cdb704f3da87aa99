// SPDX-License-Identifier: Apache-2.0

package walk

// cycleCheck detects that a walk goes in a cycle: it meets its checkpoint again. The checkpoint
// moves to the newest frame whenever the count of frames has doubled.
type cycleCheck struct {
	checkpoint *frame
	doubled    int // the index of the frame that will be the next checkpoint
}

func newCycleCheck() cycleCheck { return cycleCheck{doubled: 2} }

// period returns how many frames further in the activation of a frame occurred before; 0:
// nowhere, as far as is known.
func (c *cycleCheck) period(f *frame) int {
	if c.checkpoint != nil && isSameActivation(c.checkpoint, f) {
		return f.index - c.checkpoint.index
	}
	if c.checkpoint == nil || f.index == c.doubled {
		c.checkpoint, c.doubled = f, 2*f.index+2
	}
	return 0
}

// deepCycleCheck is a cycleCheck of a stack that is walked by segments, whose frames are not
// kept.
type deepCycleCheck struct {
	checkpoint frame
	index      int // of the checkpoint, among all frames of the stack
	doubled    int
	period     int // how many frames repeat; 0: there is no cycle
}

// continueDeep returns the check for the segments after c's.
func (c *cycleCheck) continueDeep() *deepCycleCheck {
	d := &deepCycleCheck{doubled: c.doubled}
	if c.checkpoint != nil {
		d.checkpoint, d.index = *c.checkpoint, c.checkpoint.index
	}
	return d
}

// repeats reports whether the activation of a frame occurred before.
func (c *deepCycleCheck) repeats(f *frame) bool {
	index := f.walker.segment.before + f.index
	if isSameActivation(&c.checkpoint, f) {
		c.period = index - c.index
		return true
	}
	if index >= c.doubled {
		c.checkpoint, c.index, c.doubled = *f, index, 2*index+2
	}
	return false
}

// isSameActivation compares frames by PC and CFA together: frames may share a
// CFA, and the stack may grow either way.
func isSameActivation(a, b *frame) bool {
	return a.pc == b.pc && a.cfa == b.cfa && a.cfaSpace == b.cfaSpace && a.hasCFA && b.hasCFA
}
