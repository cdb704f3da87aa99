// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// kept has the counts of a queue, from JetStream.
type kept struct {
	jobs, left      uint64 // that were taken, and that are there still
	deliveries      uint64 // how often jobs were given to workers
	pending         int    // jobs that workers have
	results, stored uint64 // that are there, and that ever were
}

// The streams, and their consumers, by the document's names.
const (
	normalJobs    = "UNWINDD_JOBS_NORMAL"
	resultsStream = "UNWINDD_RESULTS"
)

var jobsStreams = []string{"UNWINDD_JOBS_HIGH", normalJobs, "UNWINDD_JOBS_LOW"}

// streamsOf reaches the streams behind a queue.
func streamsOf(url string) (js jetstream.JetStream, end func(), err error) {
	c, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		return nil, nil, err
	}
	js, err = jetstream.New(c)
	return js, c.Close, err
}

// keptBy asks until no job is left, for a minute at most: a job that was acknowledged
// while a server was killed is handed out once more.
func keptBy(url string, n int) (k *kept, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if k, err = keptNow(url); err == nil && k.wrongWith(n) == nil {
			break
		}
	}
	return k, err
}

func keptNow(url string) (*kept, error) {
	js, end, err := streamsOf(url)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	k := &kept{}
	for _, name := range jobsStreams {
		s, err := js.Stream(ctx, name)
		if err != nil {
			return nil, err
		}
		k.jobs, k.left = k.jobs+s.CachedInfo().State.LastSeq, k.left+s.CachedInfo().State.Msgs
		consumers := s.ListConsumers(ctx)
		for c := range consumers.Info() {
			k.deliveries += c.Delivered.Consumer
			k.pending += c.NumAckPending
		}
		if err := consumers.Err(); err != nil {
			return nil, err
		}
	}
	r, err := js.Stream(ctx, resultsStream)
	if err != nil {
		return nil, err
	}
	k.results, k.stored = r.CachedInfo().State.Msgs, r.CachedInfo().State.LastSeq
	return k, nil
}

// wrongWith returns the error once so many jobs have results.
func (k *kept) wrongWith(n int) error {
	var errs []error
	if k.left > 0 || k.pending > 0 {
		errs = append(errs, fmt.Errorf("%d jobs are left, workers have %d", k.left, k.pending))
	}
	if k.results != uint64(n) { //nolint:gosec // not negative
		errs = append(errs, fmt.Errorf("%d results of %d jobs", k.results, n))
	}
	return errors.Join(errs...)
}
