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

// streamsOf are the streams behind what a queue keeps, by their names for users. JetStream has
// a stream for each store.
var streamsOf = map[string]string{
	"jobs": jobsStream, "results": resultsStream, "inputs": "OBJ_" + inputsBucket, "objects": "OBJ_" + objectsBucket, "reports": "OBJ_" + reportsBucket,
}

// Figures asks how the queue is.
func (q *Queue) Figures(ctx context.Context) (*Figures, error) {
	f := &Figures{Waiting: map[string]uint64{}, Running: map[string]uint64{}, Bytes: map[string]Bytes{}}
	for _, p := range Priorities {
		c, err := q.jobs.Consumer(ctx, consumerName(p))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue // there was never a worker
		}
		if err != nil {
			return nil, err
		}
		i := c.CachedInfo()
		f.Waiting[p], f.Running[p] = i.NumPending, uint64(i.NumAckPending) //nolint:gosec // positive
	}
	for name, stream := range streamsOf {
		s, err := q.js.Stream(ctx, stream)
		if err != nil {
			return nil, err
		}
		i := s.CachedInfo()
		f.Bytes[name] = Bytes{i.State.Bytes, uint64(max(i.Config.MaxBytes, 0))} //nolint:gosec // not negative
		if stream == jobsStream && i.State.Msgs > 0 {
			f.Oldest = time.Since(i.State.FirstTime)
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
