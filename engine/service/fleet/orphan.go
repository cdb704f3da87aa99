// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A server that is killed, or whose disk is full, may remember that a job was acknowledged, but
// not that it was removed. No worker gets such an orphan, and it blocks later jobs with its ID.

// lookForOrphans is the interval in which a worker looks for orphans.
const lookForOrphans = 20 * time.Second

// removeOrphans removes orphans from time to time.
func (w *Worker) removeOrphans(ctx context.Context) {
	tick := time.NewTicker(lookForOrphans)
	defer tick.Stop()
	for {
		for _, q := range w.queues() {
			for p, jobs := range q.jobs {
				if err := q.removeOrphans(ctx, p, jobs); err != nil && ctx.Err() == nil {
					w.queue.say("jobs that nobody is given: %v", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// removeOrphans removes the jobs of a priority that are acknowledged, and there.
func (q *Queue) removeOrphans(ctx context.Context, priority string, jobs jetstream.Stream) error {
	ctx, cancel := context.WithTimeout(ctx, lookForOrphans)
	defer cancel()
	// The list of jobs is read before the acknowledged ones, so that a job that comes in
	// between is no orphan.
	info, err := jobs.Info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return err
	}
	c, err := jobs.Consumer(ctx, consumerName)
	if err != nil {
		return err
	}
	return q.removeUpTo(ctx, priority, jobs, info.State.FirstSeq, c.CachedInfo().AckFloor.Stream)
}

// removeUpTo removes the jobs of a stream from first to last. One without a result is enqueued
// again: a caller who wants it anew has removed the result.
func (q *Queue) removeUpTo(ctx context.Context, priority string, jobs jetstream.Stream, first, last uint64) error {
	for first <= last {
		m, err := jobs.GetMsg(ctx, first, jetstream.WithGetMsgSubject(q.subject(jobsPrefix)+priority+".*"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil || m.Sequence > last {
			return err
		}
		id := idOf(m.Subject)
		has, err := q.hasResult(ctx, id)
		if err != nil {
			return err
		}
		if err := jobs.DeleteMsg(ctx, m.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return err
		}
		if j, err := readJobOf(id, m.Data); err == nil && !has {
			if _, err := q.enqueue(ctx, priority, id, j); err != nil {
				return err
			}
		}
		first = m.Sequence + 1
	}
	return nil
}
