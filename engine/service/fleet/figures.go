// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Figures describe the state of a queue.
type Figures struct {
	Waiting, Running map[string]uint64 // jobs, by priority
	Oldest           time.Duration     // age of the oldest job; 0: there is none
	Bytes            map[string]Bytes  // of streams and stores, by kind of content
}

// Bytes are the bytes of streams or stores, used and at most.
type Bytes struct{ Used, Most uint64 }

// contents has the content of each stream. JetStream has a stream for each store, too.
var contents = map[string]string{
	jobsOf("high"): "jobs", jobsOf("normal"): "jobs", jobsOf("low"): "jobs", resultsStream: "results",
	storePrefix + inputsBucket: "inputs", storePrefix + objectsBucket: "objects", storePrefix + reportsBucket: "reports",
}

// Ping returns an error where the queue does not answer.
func (q *Queue) Ping(ctx context.Context) error {
	if q.desk != nil {
		return q.desk.hello(ctx)
	}
	return q.guard(ctx, func(ctx context.Context) error {
		_, err := q.results.Info(ctx)
		return err
	})
}

// Figures asks for the state of the queue, of all users together. The error wraps ErrRefused where
// the user may not see it.
func (q *Queue) Figures(ctx context.Context) (*Figures, error) {
	if q.desk != nil {
		return nil, fmt.Errorf("%w: it may not see the figures", ErrRefused)
	}
	f := &Figures{Waiting: map[string]uint64{}, Running: map[string]uint64{}, Bytes: map[string]Bytes{}}
	err := q.guard(ctx, func(ctx context.Context) error {
		if err := f.add(ctx, q); err != nil {
			return err
		}
		users, err := q.users(ctx)
		for _, user := range users {
			var own *Queue
			if own, err = q.of(ctx, user); err == nil {
				err = f.add(ctx, own)
			}
			if err != nil {
				break
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// add adds the state of the streams of a user.
func (f *Figures) add(ctx context.Context, q *Queue) error {
	for p, jobs := range q.jobs {
		c, err := jobs.Consumer(ctx, consumerName)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue // there was never a worker
		}
		if err != nil {
			return err
		}
		i := c.CachedInfo()
		f.Waiting[p] += i.NumPending
		f.Running[p] += uint64(i.NumAckPending) //nolint:gosec // positive
	}
	for stream, what := range contents {
		s, err := q.js.Stream(ctx, q.streamOf(stream))
		if err != nil {
			return err
		}
		i := s.CachedInfo()
		b := f.Bytes[what]
		f.Bytes[what] = Bytes{b.Used + i.State.Bytes, b.Most + uint64(max(i.Config.MaxBytes, 0))} //nolint:gosec // not negative
		if what == "jobs" && i.State.Msgs > 0 {
			f.Oldest = max(f.Oldest, time.Since(i.State.FirstTime))
		}
	}
	return nil
}

// storePrefix begins the names of the streams of stores.
const storePrefix = "OBJ_"

// streamOf returns the name of a stream, or of that of a store, of the queue.
func (q *Queue) streamOf(name string) string {
	if store, ok := strings.CutPrefix(name, storePrefix); ok {
		return storePrefix + q.named(store)
	}
	return q.named(name)
}

// Counts returns how many results of each state the worker has stored, and how many jobs it
// has put back.
func (w *Worker) Counts() (results map[State]int, again int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts), w.again.Load()
}
