// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoResult is the error of a job that has no result yet, or does not exist.
var ErrNoResult = errors.New("there is no result")

// Result returns the result of a job. The error wraps ErrNoResult where there is none.
func (q *Queue) Result(ctx context.Context, id string) (r *Result, err error) {
	if q.desk != nil {
		return q.desk.result(ctx, id)
	}
	err = q.guard(ctx, func(ctx context.Context) (err error) {
		r, err = q.result(ctx, id)
		return err
	})
	return r, err
}

func (q *Queue) result(ctx context.Context, id string) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, ackPatience) // the caller may allow more, and the request be lost
	defer cancel()
	m, err := q.results.GetLastMsgForSubject(ctx, q.subject(resultsPrefix)+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("%s: %w", id, ErrNoResult)
	}
	if err != nil {
		return nil, err
	}
	return readResult(id, m.Data)
}

func (q *Queue) hasResult(ctx context.Context, id string) (bool, error) {
	_, err := q.Result(ctx, id)
	if errors.Is(err, ErrNoResult) || errors.Is(err, errForged) {
		return false, nil
	}
	return err == nil, err
}

// dropResult removes the result of a job.
func (q *Queue) dropResult(ctx context.Context, id string) error {
	return q.results.Purge(ctx, jetstream.WithPurgeSubject(q.subject(resultsPrefix)+id))
}

// Report writes the report of a result, which is checked.
func (q *Queue) Report(ctx context.Context, r *Result, w io.Writer) error {
	if r.State != Done {
		return fmt.Errorf("%s: there is no report: it is %s", r.ID, r.State)
	}
	if r.Object == "" {
		return writeChecked("the report of "+r.ID, r.Data, r.SHA256, w)
	}
	if q.desk != nil {
		return q.desk.report(ctx, r, w)
	}
	return q.guard(ctx, func(ctx context.Context) error { return copyOut(ctx, q.reports, r.Object, r.SHA256, w) })
}

// settle stores the result of a job. isFirst is false where the job has another one, which
// stays.
func (q *Queue) settle(ctx context.Context, r *Result) (isFirst bool, err error) {
	r.Version = version
	b, err := pack(r, r.Data)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, ackPatience)
	defer cancel()
	_, err = q.js.Publish(ctx, q.subject(resultsPrefix)+r.ID, b)
	if isTaken(err) {
		return false, nil
	}
	if err != nil {
		return false, full(err)
	}
	if len(b) > maxTold {
		b = nil
	}
	_ = q.conn.Publish(q.subject(donePrefix)+r.ID, b) // waiting callers also look from time to time
	return true, nil
}

// maxTold bounds the bytes of a result, with its report, that is published to waiting
// callers; they ask for a larger one. It is published also where none waits.
const maxTold = 64 << 10

// Cancel cancels a job. ok is false where it has a result already.
func (q *Queue) Cancel(ctx context.Context, id string) (ok bool, err error) {
	if !IsID(id) {
		return false, fmt.Errorf("%q is no job's ID", id)
	}
	if q.desk != nil {
		return q.desk.cancel(ctx, id)
	}
	err = q.guard(ctx, func(ctx context.Context) (err error) {
		ok, err = q.cancel(ctx, id)
		return err
	})
	return ok, err
}

func (q *Queue) cancel(ctx context.Context, id string) (ok bool, err error) {
	ok, err = q.settle(ctx, &Result{ID: id, State: Canceled, Ended: time.Now().UTC()})
	if err != nil || !ok {
		return false, err
	}
	if j := q.withdraw(ctx, id); j != nil {
		q.dropParts(ctx, j)
	}
	return true, nil
}

// idOf returns the job's ID in a subject.
func idOf(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// IsID reports whether a text may be a job's ID.
func IsID(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// lookAgain is the interval of looking for results whose news were missed, mostLooks the
// number of looks at a time.
const (
	lookAgain = 5 * time.Second
	mostLooks = 500
)

// Wait calls found with the result of each job, as they come, one at a time. It ends with
// the last one, with found's error, or with ctx.
func (q *Queue) Wait(ctx context.Context, ids []string, found func(*Result) error) error {
	w := &waiting{queue: q, news: make(chan *nats.Msg, 256), left: map[string]bool{}}
	for _, id := range ids {
		w.left[id] = true
	}
	for id := range w.left {
		s, err := q.conn.Subscribe(q.subject(donePrefix)+id, w.hear)
		if err != nil {
			w.end()
			return err
		}
		w.heard = append(w.heard, s)
	}
	defer w.end()
	return q.guard(ctx, func(ctx context.Context) error { return w.run(ctx, found) })
}

// waiting is a call of Wait.
type waiting struct {
	queue *Queue
	news  chan *nats.Msg // about finished jobs, most with their results
	left  map[string]bool
	heard []*nats.Subscription
}

func (w *waiting) hear(m *nats.Msg) {
	select {
	case w.news <- m:
	default: // lookAt finds it later
	}
}

func (w *waiting) end() {
	for _, s := range w.heard {
		_ = s.Unsubscribe()
	}
}

func (w *waiting) run(ctx context.Context, found func(*Result) error) error {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for isFirst := true; len(w.left) > 0; isFirst = false {
		if isFirst {
			if err := w.lookAt(ctx, len(w.left), found); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-w.news:
			if err := w.handle(ctx, m, found); err != nil {
				return err
			}
		case <-again.C:
			if err := w.lookAt(ctx, mostLooks, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAt looks for results of some of the jobs, in a random order.
func (w *waiting) lookAt(ctx context.Context, most int, found func(*Result) error) error {
	for id := range w.left {
		if most--; most < 0 {
			return nil
		}
		if err := w.look(ctx, id, found); err != nil {
			return err
		}
	}
	return nil
}

// handle handles the news that a job is done.
func (w *waiting) handle(ctx context.Context, m *nats.Msg, found func(*Result) error) error {
	id := idOf(m.Subject)
	if len(m.Data) == 0 {
		return w.look(ctx, id, found)
	}
	r, err := readResult(id, m.Data)
	if err != nil {
		w.queue.say("%v", err)
		return w.look(ctx, id, found)
	}
	if !w.left[id] {
		return nil
	}
	delete(w.left, id)
	return found(r)
}

// look looks for the result of a job. A queue that does not answer has none.
func (w *waiting) look(ctx context.Context, id string, found func(*Result) error) error {
	if !w.left[id] {
		return nil
	}
	r, err := w.queue.Result(ctx, id)
	switch {
	case errors.Is(err, ErrNoResult):
		return nil
	case errors.Is(err, ErrRefused):
		return err
	case err != nil && ctx.Err() == nil:
		w.queue.say("the result of %s: %v", id, err)
		return nil
	case err != nil:
		return context.Cause(ctx)
	}
	delete(w.left, id)
	return found(r)
}

// Results calls found with all stored results, the oldest first, except results of parts of
// jobs.
func (q *Queue) Results(ctx context.Context, found func(*Result) error) error {
	if q.desk != nil {
		return q.desk.results(ctx, found)
	}
	return q.guard(ctx, func(ctx context.Context) error {
		return q.resultsFrom(ctx, 1, func(_ uint64, r *Result) error { return found(r) })
	})
}

// resultsFrom calls found with the stored results from a place on, and the place of each.
func (q *Queue) resultsFrom(ctx context.Context, first uint64, found func(place uint64, r *Result) error) error {
	info, err := q.results.Info(ctx)
	if err != nil || info.State.Msgs == 0 || info.State.LastSeq < first {
		return err
	}
	last := info.State.LastSeq
	c, err := q.results.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(first, 1)})
	if err != nil {
		return err
	}
	all, err := c.Messages()
	if err != nil {
		return err
	}
	defer all.Stop()
	for {
		m, err := all.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		place, err := m.Metadata()
		if err != nil {
			return err
		}
		r, err := readResult(idOf(m.Subject()), m.Data())
		switch {
		case err != nil:
			q.say("%v", err)
		case r.Whole == "":
			if err := found(place.Sequence.Stream, r); err != nil {
				return err
			}
		}
		if place.Sequence.Stream >= last || place.NumPending == 0 {
			return nil
		}
	}
}
