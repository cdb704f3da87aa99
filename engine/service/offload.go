// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
)

// This file passes requests for which there is no place here to a fleet.

// offload passes requests to a fleet, and answers them by the results.
type offload struct {
	server     *Server
	connection *connection
	places     *queue       // for requests that the fleet has
	active     atomic.Int64 // the number of requests that it has

	mu   sync.Mutex
	jobs map[string]*pendingJob // that callers wait for here, by ID
}

// pendingJob is a job that callers of this server wait for.
type pendingJob struct {
	callers int
	isOurs  bool // this server submitted it
}

// spareHanded is the number of requests that the fleet has, besides Handed, of callers of whom it has
// no other.
const spareHanded = 2

// newOffload makes the offload of a server; nil: it has no fleet.
func newOffload(s *Server) *offload {
	if s.Queue == nil {
		return nil
	}
	h := &offload{server: s, connection: newConnection(s), places: newQueue(s.Handed, s.Waiting, s.PerUser), jobs: map[string]*pendingJob{}}
	h.places.spare = spareHanded
	return h
}

// Outcomes of requests for which there is no place here, besides the states of their jobs.
const (
	outcomeNoQueue = "no-queue"  // the queue does not answer
	outcomeFull    = "full"      // the queue has no room
	outcomeRefused = "refused"   // the fleet has as many requests of this server, or of the caller, as it may
	outcomeGone    = "gone"      // the caller went away, or the deadline passed
	outcomeEnding  = "ending"    // this server ended
	outcomeBroken  = "broken"    // the report did not come, or not whole
	outcomeLong    = "too-large" // the report has more bytes than this server allows
)

// handOver begins the answer to a request for which there is no place here. The error is errBusy
// where the fleet has no place either.
func (s *Server) handOver(ctx context.Context, r *request, work *worker.Request) (*answer, error) {
	options := work.Job.Options()
	// The fleet has one file of each build ID of this server.
	if s.offload == nil || options == nil || r.caller == fleetCaller || s.differs(r.caller) {
		return nil, errBusy
	}
	t, err := fleet.NewTask(work.Job.Name(), options)
	if err != nil {
		return nil, err
	}
	return s.answer(r, func(a *answer) error {
		return s.within(ctx, "fleet", func(ctx context.Context, span trace.Span) error {
			outcome, err := s.offload.do(ctx, r, t, work.Input, a)
			s.metrics.handedOver(outcome)
			span.SetAttributes(attribute.String("unwindd.job", r.jobID()), attribute.String("unwindd.outcome", outcome))
			return err
		})
	})
}

// maxTries is how often a job is submitted whose result another caller has spoiled.
const maxTries = 3

// reportPatience bounds the time that a report takes to come from the queue. Its caller may
// leave before.
const reportPatience = time.Hour

// do has the fleet do a job.
func (h *offload) do(ctx context.Context, r *request, t fleet.Task, input io.ReadSeeker, a *answer) (outcome string, err error) {
	q, ctx, leave := h.connection.use(ctx)
	if q == nil {
		return outcomeNoQueue, errBusy
	}
	defer leave()
	began := time.Now()
	err = h.places.enter(ctx, r.caller)
	r.waited.Add(int64(time.Since(began)))
	switch {
	case errors.Is(err, errBusy):
		return outcomeRefused, err
	case err != nil:
		return outcomeOf(err), err
	}
	defer h.places.leave(r.caller)
	h.active.Add(1)
	defer h.active.Add(-1)
	out := &trackedWriter{Writer: a.spool}
	for tries := 1; ; tries++ {
		result, isStale, err := h.ask(ctx, q, r, t, input, tries > 1)
		switch {
		case err != nil:
			return outcomeOf(err), h.refusal(err)
		case isStale && tries < maxTries:
			continue
		case result.State != fleet.Done:
			return string(result.State), resultProblem(result)
		}
		if most := h.server.now().Answer; result.Size > most {
			return outcomeLong, &worker.Failure{Kind: worker.TooLarge, Detail: fmt.Sprintf("the answer has more than %d bytes", most)}
		}
		if err = writeReport(ctx, q, result, out); err == nil {
			a.facts = result.Facts
			return string(result.State), nil
		}
		if ctx.Err() != nil || out.err != nil || out.n > 0 || tries == maxTries {
			return outcomeBroken, errors.Join(out.err, err)
		}
	}
}

// writeReport writes the report of a result.
func writeReport(ctx context.Context, q *fleet.Queue, r *fleet.Result, w io.Writer) error {
	within, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	err := q.Report(within, r, w)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// trackedWriter counts the bytes that it has written, and keeps its error.
type trackedWriter struct {
	io.Writer
	n   int64
	err error
}

// Write implements io.Writer.
func (c *trackedWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n, c.err = c.n+int64(n), err
	return n, err
}

// submitError is an error of submitting a job.
type submitError struct{ error }

func (e *submitError) Unwrap() error { return e.error }

// ask submits a job, and waits for its result. isStale: the job would have another result now.
func (h *offload) ask(ctx context.Context, q *fleet.Queue, r *request, t fleet.Task, input io.ReadSeeker, again bool) (result *fleet.Result, isStale bool, err error) {
	how := fleet.How{Again: again}
	if deadline, ok := ctx.Deadline(); ok {
		how.Deadline = deadline.UTC()
	}
	newest := h.connection.newestObject()
	job, err := q.Submit(ctx, t, input, how)
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		return nil, false, &submitError{err}
	}
	r.setJob(job.ID)
	if result, err = h.await(ctx, q, job); err != nil {
		return nil, false, err
	}
	return result, isOutdated(job, result, newest), nil
}

// maxSkew bounds how far the clock of another machine may be ahead.
const maxSkew = 5 * time.Second

// isOutdated reports whether the job could have another result now: another caller canceled
// it, it failed before, or it began before an object was put here that its target may need.
func isOutdated(job *fleet.Submitted, r *fleet.Result, newest time.Time) bool {
	switch {
	case r.State == fleet.Canceled, r.State == fleet.Expired:
		return true
	case !job.Known:
		return false
	case job.HasResult && r.State != fleet.Done:
		return true
	}
	return r.Begun.Before(newest.Add(maxSkew))
}

// await waits for the result of a job. A job that this server has submitted is canceled when
// its last caller here has gone.
func (h *offload) await(ctx context.Context, q *fleet.Queue, job *fleet.Submitted) (result *fleet.Result, err error) {
	h.mu.Lock()
	a := h.jobs[job.ID]
	if a == nil {
		a = &pendingJob{}
		h.jobs[job.ID] = a
	}
	a.callers++
	a.isOurs = a.isOurs || !job.Known
	h.mu.Unlock()
	err = q.Wait(ctx, []string{job.ID}, func(r *fleet.Result) error {
		result = r
		return nil
	})
	h.mu.Lock()
	a.callers--
	isLast := a.callers == 0
	if isLast {
		delete(h.jobs, job.ID)
	}
	h.mu.Unlock()
	if err != nil && isLast && a.isOurs && outcomeOf(err) == outcomeGone {
		h.connection.cancel(q, job.ID)
	}
	return result, err
}

// outcomeOf returns the outcome of a request that has no result.
func outcomeOf(err error) string {
	switch {
	case errors.Is(err, errEnding):
		return outcomeEnding
	case errors.Is(err, fleet.ErrFull):
		return outcomeFull
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return outcomeGone
	}
	return outcomeNoQueue
}

// refusal returns the error for a caller whom the queue does not serve: the same as without a
// queue.
func (h *offload) refusal(err error) error {
	var s *submitError
	switch {
	case errors.As(err, &s):
		h.connection.failed(s.error)
		return errBusy
	case errors.Is(err, errLost):
		return errBusy
	}
	return err
}

// resultProblem returns the problem of a job without a report.
func resultProblem(r *fleet.Result) error {
	if r.State == fleet.Canceled {
		return canceled.new("the job was canceled at the fleet: " + r.ID)
	}
	if r.Problem != nil {
		if kind := problemKinds[r.Problem.Name]; kind != nil {
			return kind.new(r.Problem.Detail)
		}
	}
	return fmt.Errorf("job %s is %s, with a problem that is not known: %+v", r.ID, r.State, r.Problem)
}
