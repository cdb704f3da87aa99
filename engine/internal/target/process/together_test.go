// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os/exec"
	"sync"
	"testing"
	"time"
)

// TestProcessesThatAreStoppedTogetherStandStillAtOnce: when the last one is stopped, the first one has not
// gone on.
func TestProcessesThatAreStoppedTogetherStandStillAtOnce(t *testing.T) {
	const count = 8
	together := &Together{newGate(count+1, time.Minute, time.Minute), newGate(count+1, time.Minute, time.Minute)}
	targets := make([]*Target, count)
	var all sync.WaitGroup
	for i := range targets {
		sleeper := start(t, exec.Command("sleep", "600"), false)
		all.Go(func() {
			o := options()
			o.Member = together.Member()
			defer o.Member.Leave()
			var err error
			if targets[i], err = Open(sleeper.Process.Pid, o); err != nil {
				t.Error(err)
			}
		})
	}
	together.Member().Leave() // one that cannot be opened
	all.Wait()
	if t.Failed() {
		return
	}
	var last, first time.Time // the last stop, and the first release
	for _, target := range targets {
		stopped := target.Info().Facts.Process.Kept
		released := stopped.Add(target.stopped)
		if stopped.After(last) {
			last = stopped
		}
		if first.IsZero() || released.Before(first) {
			first = released
		}
		goesOn(t, int(target.Info().Facts.Process.ID))
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	}
	if last.After(first) {
		t.Errorf("one was stopped at %v, and another went on at %v already", last, first)
	}
}

func TestWhoDoesNotComeIsNotWaitedFor(t *testing.T) {
	g := newGate(3, time.Millisecond, time.Minute)
	g.arrive(true)
	if !g.isOpen {
		t.Error("nobody came for a while, and the gate is closed")
	}
	g.arrive(true) // it may come late
	g.arrive(true)
	g = newGate(2, time.Minute, time.Millisecond)
	g.arrive(true)
	if !g.isOpen {
		t.Error("the bound is over, and the gate is closed")
	}
	var alone *Member
	alone.isPrepared()
	alone.isStopped()
}
