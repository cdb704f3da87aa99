// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/service/worker"
)

// This file has a fleet do the requests for which there is no place here.

// A handover hands requests to a fleet, and answers them by what comes of that.
type handover struct {
	server *Server
	link   *link
	places *queue       // for requests that the fleet has
	with   atomic.Int64 // how many it has

	mu   sync.Mutex
	jobs map[string]*awaited // that somebody waits for here, by ID
}

// An awaited job is one that callers of this server wait for.
type awaited struct {
	callers int
	isOurs  bool // this server put it into the queue
}

// newHandover makes the handover of a server; nil: it has no fleet.
func newHandover(s *Server) *handover {
	if s.Queue == nil {
		return nil
	}
	return &handover{server: s, link: newLink(s), places: newQueue(s.Handed, s.Waiting, s.PerUser), jobs: map[string]*awaited{}}
}

// outcomes are what becomes of a request for which there is no place here, beside the states of
// its job.
const (
	outcomeNoQueue = "no-queue"  // the queue does not answer
	outcomeFull    = "full"      // the queue has no room
	outcomeRefused = "refused"   // the fleet has as many of this server, or of the caller, as it may
	outcomeGone    = "gone"      // the caller went away, or his deadline passed
	outcomeEnding  = "ending"    // this server ended
	outcomeBroken  = "broken"    // the report did not come, or not whole
	outcomeLong    = "too-large" // the report has more bytes than one of this server may have
)

// handOver begins the answer to a request for which there is no place here. The error is errBusy
// where nobody else does it either.
func (s *Server) handOver(ctx context.Context, r *request, j *job.Job, in *os.File, name string) (*answer, error) {
	kind, options, ok := j.Wire(name)
	if s.handover == nil || !ok || r.caller == fleetCaller {
		return nil, errBusy
	}
	t, err := fleet.NewTask(kind, options)
	if err != nil {
		return nil, err
	}
	return s.answer(func(a *answer) error {
		return s.within(ctx, "fleet", func(ctx context.Context, span trace.Span) error {
			outcome, err := s.handover.do(ctx, r, t, in, a)
			s.metrics.handedOver(outcome)
			span.SetAttributes(attribute.String("unwindd.job", r.jobID()), attribute.String("unwindd.outcome", outcome))
			return err
		})
	})
}

// maxAsked is how often a job is asked for whose result somebody else has spoiled.
const maxAsked = 3

// reportPatience is how long a report may take to come from the queue. Its caller may leave
// before.
const reportPatience = time.Hour

// do has the fleet do a job.
func (h *handover) do(ctx context.Context, r *request, t fleet.Task, in io.ReadSeeker, a *answer) (outcome string, err error) {
	q, ctx, leave := h.link.use(ctx)
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
	defer h.places.leave()
	h.with.Add(1)
	defer h.with.Add(-1)
	out := &noted{Writer: a.spool}
	for asked := 1; ; asked++ {
		result, isStale, err := h.ask(ctx, q, r, t, in, asked > 1)
		switch {
		case err != nil:
			return outcomeOf(err), h.refusal(err)
		case isStale && asked < maxAsked:
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
		if ctx.Err() != nil || out.err != nil || out.n > 0 || asked == maxAsked {
			return outcomeBroken, errors.Join(out.err, err)
		}
	}
}

// writeReport writes the report of a result.
func writeReport(ctx context.Context, q *fleet.Queue, r *fleet.Result, to io.Writer) error {
	within, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	err := q.Report(within, r, to)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// A noted writer knows how many bytes it has written, and why it does not write more.
type noted struct {
	io.Writer
	n   int64
	err error
}

// Write implements io.Writer.
func (c *noted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n, c.err = c.n+int64(n), err
	return n, err
}

// A submitError is one of asking the queue for a job.
type submitError struct{ error }

func (e *submitError) Unwrap() error { return e.error }

// ask asks for a job, and waits for its result. isStale says that it is not what the job would
// come to now.
func (h *handover) ask(ctx context.Context, q *fleet.Queue, r *request, t fleet.Task, in io.ReadSeeker, again bool) (result *fleet.Result, isStale bool, err error) {
	how := fleet.How{Again: again}
	if deadline, ok := ctx.Deadline(); ok {
		how.Deadline = deadline.UTC()
	}
	newest := h.link.newestObject()
	job, err := q.Submit(ctx, t, in, how)
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

// maxSkew is how much later than here a clock of another machine may be.
const maxSkew = 5 * time.Second

// isOutdated says that a result is not what the job would come to now: somebody else did not
// want it any more, it failed before, or it was begun before an object was put here that may
// be of its target.
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

// await waits for the result of a job. A job that this server has asked for is canceled when
// nobody here waits for it any more.
func (h *handover) await(ctx context.Context, q *fleet.Queue, job *fleet.Submitted) (result *fleet.Result, err error) {
	h.mu.Lock()
	a := h.jobs[job.ID]
	if a == nil {
		a = &awaited{}
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
		h.link.cancel(q, job.ID)
	}
	return result, err
}

// outcomeOf is what became of a request that has no result.
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

// refusal is what a caller is told for whom the queue does nothing: what he is told without one.
func (h *handover) refusal(err error) error {
	var s *submitError
	switch {
	case errors.As(err, &s):
		h.link.failed(s.error)
		return errBusy
	case errors.Is(err, errLost):
		return errBusy
	}
	return err
}

// resultProblem is the problem that the result of a job without a report is.
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
