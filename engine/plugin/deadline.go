// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// wallFactor is the factor by which a plugin may exceed its deadline on the clock: a
// machine under load gives it the processor for a part of the time only.
const wallFactor = 10

// deadline ends a plugin's work when processor has passed both as processor time and on
// the clock, or when wall has passed on the clock.
type deadline struct{ processor, wall time.Duration }

func deadlineOf(d time.Duration) deadline { return deadline{d, wallFactor * d} }

// Causes of the end of a context.
var (
	errProcessorTime = fmt.Errorf("the processor time is used up: %w", context.DeadlineExceeded)
	errClockTime     = fmt.Errorf("the time is over, and processor time is not known: %w", context.DeadlineExceeded)
)

// limit returns a context that ends with the deadline. used returns the
// processor time that was used since; where it returns an error, the time on the
// clock counts instead. release must be called.
func (d deadline) limit(ctx context.Context, used func() (time.Duration, error)) (limited context.Context, release func()) {
	limited, stop := context.WithTimeout(ctx, d.wall)
	limited, cancel := context.WithCancelCause(limited)
	var mu sync.Mutex // of timer, until it is set
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(d.processor, func() {
		mu.Lock()
		defer mu.Unlock()
		if limited.Err() != nil {
			return
		}
		switch n, err := used(); {
		case err != nil:
			cancel(errClockTime)
		case n >= d.processor:
			cancel(errProcessorTime)
		default:
			timer.Reset(d.processor / 10)
		}
	})
	return limited, func() {
		timer.Stop()
		cancel(nil)
		stop()
	}
}

// passed describes the part of a deadline that had passed when a context of limit ended.
func (d deadline) passed(limited context.Context) string {
	switch cause := context.Cause(limited); {
	case errors.Is(cause, errProcessorTime):
		return d.processor.String() + " of processor time"
	case errors.Is(cause, errClockTime):
		return d.processor.String()
	}
	return d.wall.String()
}

// isOutOfTime reports whether a context ended because of a deadline.
func isOutOfTime(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// processorClock shares the processor time of a process out among the calls under way in
// it: time that it uses during n calls counts 1/n for each.
type processorClock struct {
	read func() (time.Duration, error) // the time that the process has used so far

	mu      sync.Mutex
	calls   int
	updated time.Duration // the process's time when share was last updated
	share   time.Duration // of a call that has been under way from the beginning
}

// begin counts a call. used returns the time that the call has used since.
func (c *processorClock) begin() (used func() (time.Duration, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.advance() // used returns the error
	c.calls++
	began := c.share
	return func() (time.Duration, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		err := c.advance()
		return c.share - began, err
	}
}

// end stops counting a call.
func (c *processorClock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.advance()
	c.calls--
}

// advance updates share. The mutex is locked.
func (c *processorClock) advance() error {
	now, err := c.read()
	if err != nil {
		return err
	}
	if c.calls > 0 {
		c.share += (now - c.updated) / time.Duration(c.calls)
	}
	c.updated = now
	return nil
}
