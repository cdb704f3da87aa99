// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/unwindd/unwindd/engine/service/fleet"
)

// addReports adds the reports of jobs of a fleet.
func (c *comparing) addReports(ctx context.Context) error {
	q, err := c.flags.connect(ctx, c.flags.log())
	if err != nil {
		return err
	}
	defer q.Close()
	if c.isOfQueue {
		return q.Results(ctx, func(r *fleet.Result) error {
			if !isCompared(r) {
				return nil // it is of another kind
			}
			defer c.count()
			return c.addReport(ctx, q, r)
		})
	}
	for _, id := range c.ids {
		r, err := q.Result(ctx, id)
		if err == nil {
			err = c.addReport(ctx, q, r)
		} else if errors.Is(err, fleet.ErrNoResult) {
			c.comparer.AddUnread(id, fleet.ErrNoResult)
			err = nil
		}
		if err != nil {
			return err
		}
		c.count()
	}
	return nil
}

// isCompared reports whether a result is one that comparisons read, or would be if the job had not failed.
func isCompared(r *fleet.Result) bool {
	return r.Kind == "compare" || r.Kind == "stack" && (r.State != fleet.Done || strings.HasPrefix(r.Type, "application/json"))
}

// addReport adds the report of a job, or why it has none. The error is that of the queue.
func (c *comparing) addReport(ctx context.Context, q *fleet.Queue, r *fleet.Result) error {
	name := cmp.Or(r.Name, r.ID)
	if !isCompared(r) {
		c.comparer.AddUnread(name, errors.New("its report is of another kind: expected one of submit --as compare, or of stacks with --format json"))
		return nil
	}
	if err := outcomeOf(r, name); err != nil {
		var failed *failedJobError
		if errors.As(err, &failed) {
			err = failed
		}
		c.comparer.AddUnread(name, err)
		return nil
	}
	reader, pipe := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := q.Report(ctx, r, pipe)
		_ = pipe.CloseWithError(err)
		sent <- err
	}()
	err := c.comparer.AddReport(reader, name)
	_ = reader.CloseWithError(errReadEnough) // the sending goroutine waits for a reader
	if sending := <-sent; sending != nil && !errors.Is(sending, errReadEnough) {
		return sending
	}
	if err != nil {
		c.comparer.AddUnread(name, err)
	}
	return nil
}

// errReadEnough ends the sending of a report that is not read on.
var errReadEnough = errors.New("it is not read on")
