// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// addThreads adds the threads.
func (c *collector) addThreads() {
	list := make([]*trace.Thread, 0, len(c.Threads()))
	left, reduced, without := uint64(keptRegisters), 0, 0
	for _, th := range c.Threads() {
		by, isFound := c.launchers[th.Handle]
		if len(th.Saved) > 0 || len(th.LaneStates) > 0 || isFound {
			own := *th
			if !c.addLanes(&own, &left) {
				without++
			}
			if isFound {
				own.LaunchedBy = by
			}
			if c.addRegisters(&own, &left) {
				reduced++
			}
			th = &own
		}
		list = append(list, th)
	}
	c.result.Contents.Threads = list
	if reduced > 0 {
		c.problem("of %d threads that did not crash, the snapshot has only the registers that their stacks need: all would be more than %d MiB",
			reduced, keptRegisters>>20)
	}
	if without > 0 {
		c.problem("of %d threads the snapshot has the registers of one lane each: those of all lanes would be more than %d MiB", without, keptRegisters>>20)
	}
	for _, th := range c.Threads() {
		if why := th.Problem + th.Unread; why != "" && len(th.Registers.Numbers) == 0 { // at most one is not ""
			c.problem("thread %s: the snapshot has no registers of it: %s", th.ID, why)
		}
	}
}

// addLanes gives the lanes that have states of their own their registers, unless there are too
// many: then the result is false, and the thread has its lead's state alone.
func (c *collector) addLanes(th *trace.Thread, left *uint64) bool {
	m := c.walked.Machine(th)
	if len(th.LaneStates) == 0 || m == nil {
		return true
	}
	lanes := make([]sdk.LaneState, len(th.LaneStates))
	size := uint64(0)
	for i := range lanes {
		l := &th.LaneStates[i]
		of := trace.Thread{Registers: l.Registers, Saved: l.Saved}
		lanes[i] = sdk.LaneState{Lane: l.Lane, Registers: target.AllRegisters(c.Target, &of, m.Description), Memory: l.Memory}
		if size += uint64(len(lanes[i].Registers.Data)); size > *left && !th.Crashed {
			th.LaneStates, th.Lead = nil, 0
			return false
		}
	}
	*left -= min(size, *left)
	th.LaneStates = lanes
	return true
}

// addRegisters gives a thread the registers that are in memory. Once there are very many,
// a thread that did not crash keeps only the ones that its stack needs, and the result is
// true.
func (c *collector) addRegisters(th *trace.Thread, left *uint64) (isReduced bool) {
	m := c.walked.Machine(th)
	if m == nil || len(th.Saved) == 0 {
		return false
	}
	size := uint64(0)
	for _, s := range th.Saved {
		if info, ok := m.Description.Register(s.First); ok {
			size += uint64(s.Count) * ((uint64(info.Bits) + 7) / 8)
		}
	}
	all := target.AllRegisters(c.Target, th, m.Description)
	th.Saved = nil
	if isReduced = size > *left && !th.Crashed; !isReduced {
		*left -= min(size, *left)
		th.Registers = all
		return false
	}
	needed := c.needed[th.Handle]
	th.Registers = th.Registers.Clone()
	for i, number := range all.Numbers {
		if all.Offsets[i+1]-all.Offsets[i] <= 8 || needed[number] {
			value, _ := all.Get(number)
			th.Registers.Set(number, value)
		}
	}
	return true
}
