// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"sync"
	"time"
)

// The times after which the user is told which step of a vendor's start takes long.
const (
	startPatience = time.Second
	// longStartPatience is for a process that runs, or waits for a processor: on a busy machine
	// a start takes its time.
	longStartPatience = 5 * time.Second
	// startPatienceStep is the time between looks at whether it still does.
	startPatienceStep = 250 * time.Millisecond
)

// announce tells the user, once, which step of a start takes long. end
// has to be called when the start has ended.
func (l *launch) announce(c *child) (end func()) {
	if l.waiting == nil {
		return func() {}
	}
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		began := time.Now()
		next := time.NewTimer(startPatience)
		defer next.Stop()
		for {
			select {
			case <-over:
				return
			case <-next.C:
			}
			if pid := c.PID(); time.Since(began) < longStartPatience && (pid == 0 || isRunnable(pid)) {
				next.Reset(startPatienceStep)
				continue
			}
			l.waiting(l.waits(c))
			return
		}
	})
	return func() {
		close(over)
		done.Wait()
	}
}

// waits describes the step that the start of a process waits for.
func (l *launch) waits(c *child) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("plugin %s: waiting for %s from %s (process %d), at most %s in all", l.name, c.pending, l.command[0], c.pid, l.limit.wall)
}
