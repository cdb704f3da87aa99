// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Figures say how a queue is.
type Figures struct {
	Waiting, Running map[string]uint64 // jobs, by priority
	Oldest           time.Duration     // since the oldest job was asked for; 0: there is none
	Bytes            map[string]Bytes  // of streams and stores, by what they have
}

// Bytes are those of a stream or a store.
type Bytes struct{ Used, Most uint64 }

// kept is what a queue keeps, by the streams behind it. JetStream has a stream for each store.
var kept = map[string]string{
	jobsOf("high"): "jobs", jobsOf("normal"): "jobs", jobsOf("low"): "jobs", resultsStream: "results",
	"OBJ_" + inputsBucket: "inputs", "OBJ_" + objectsBucket: "objects", "OBJ_" + reportsBucket: "reports",
}

// Figures asks how the queue is.
func (q *Queue) Figures(ctx context.Context) (*Figures, error) {
	f := &Figures{Waiting: map[string]uint64{}, Running: map[string]uint64{}, Bytes: map[string]Bytes{}}
	for p, jobs := range q.jobs {
		c, err := jobs.Consumer(ctx, consumerName)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue // there was never a worker
		}
		if err != nil {
			return nil, err
		}
		i := c.CachedInfo()
		f.Waiting[p], f.Running[p] = i.NumPending, uint64(i.NumAckPending) //nolint:gosec // positive
	}
	for stream, what := range kept {
		s, err := q.js.Stream(ctx, stream)
		if err != nil {
			return nil, err
		}
		i := s.CachedInfo()
		b := f.Bytes[what]
		f.Bytes[what] = Bytes{b.Used + i.State.Bytes, b.Most + uint64(max(i.Config.MaxBytes, 0))} //nolint:gosec // not negative
		if what == "jobs" && i.State.Msgs > 0 {
			f.Oldest = max(f.Oldest, time.Since(i.State.FirstTime))
		}
	}
	return f, nil
}

// Counts are how many results of each state the worker has stored, and how many jobs it had
// tried again.
func (w *Worker) Counts() (results map[State]int, again int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts), w.again.Load()
}
