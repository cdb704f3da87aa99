// SPDX-License-Identifier: Apache-2.0

package job

import (
	"iter"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
)

// ofLane yields the stacks of one lane, of the threads that have it.
func ofLane(stacks iter.Seq[*trace.Stack], lane uint32) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		for s := range stacks {
			if one, ok := s.Lane(lane); ok && !yield(one) {
				return
			}
		}
	}
}

// topOf yields stacks with their n innermost frames. isFolded means that frames which a report folds
// into a line do not count.
func topOf(stacks iter.Seq[*trace.Stack], n int, isFolded bool) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		for s := range stacks {
			count := n
			if isFolded {
				count = report.FramesFor(s, n)
			}
			if !yield(s.Top(count)) {
				return
			}
		}
	}
}

// pulled yields first, then the stacks of next.
func pulled(first *trace.Stack, next func() (*trace.Stack, bool)) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		for s, ok := first, true; ok && yield(s); {
			s, ok = next()
		}
	}
}

// walked counts stacks as they pass, and remembers whether any was walked.
type walked struct {
	target   *engine.Target
	first    *trace.Stack // only the thread, and why it stopped
	isWalked bool         // at least one stack was walked
	counts   Counts
}

// over yields the stacks that it counts.
func (k *walked) over(stacks iter.Seq[*trace.Stack]) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		for s := range stacks {
			if k.first == nil {
				k.first = &trace.Stack{Thread: s.Thread, Stopped: s.Stopped}
			}
			k.isWalked = k.isWalked || s.IsWalked()
			k.counts.add(s)
			if !yield(s) {
				return
			}
		}
	}
}

// Counts counts the stacks that were written, their frames, without inlined calls, by the
// method that found them, and the reasons why the stacks ended.
type Counts struct {
	Stacks int                      `json:",omitempty"`
	Frames map[trace.FoundBy]int    `json:",omitempty"`
	Stops  map[trace.StopReason]int `json:",omitempty"`
}

func (c *Counts) add(s *trace.Stack) {
	if c.Frames == nil {
		c.Frames, c.Stops = map[trace.FoundBy]int{}, map[trace.StopReason]int{}
	}
	c.Stacks++
	c.Stops[s.Stopped.Reason]++
	for i := range s.Frames {
		c.Frames[s.Frames[i].FoundBy]++
	}
}

// AllFrames returns the number of frames of all methods.
func (c *Counts) AllFrames() (sum int) {
	for _, n := range c.Frames {
		sum += n
	}
	return sum
}

// err returns an error where nothing could be walked.
func (k *walked) err() error {
	if k.isWalked {
		return nil
	}
	return k.target.NotWalked(k.first)
}
