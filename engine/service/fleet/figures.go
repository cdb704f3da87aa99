// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"maps"
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
	"OBJ_" + inputsBucket: "inputs", "OBJ_" + objectsBucket: "objects", "OBJ_" + reportsBucket: "reports",
}

// Figures asks for the state of the queue.
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
	for stream, what := range contents {
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

// Counts returns how many results of each state the worker has stored, and how many jobs it
// has put back.
func (w *Worker) Counts() (results map[State]int, again int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts), w.again.Load()
}
