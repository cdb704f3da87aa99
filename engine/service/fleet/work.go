// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Doer does jobs.
type Doer interface {
	// Begin begins a task with what receive writes. It returns when there is something to
	// read of the report. The error is a *Fault where the task, or its input, is at fault.
	Begin(ctx context.Context, t *Task, receive func(io.Writer) error) (Report, error)
}

// Report is one that comes. It is whole when it was read to io.EOF.
type Report interface {
	io.ReadCloser
	// About says what the report is, once it is whole.
	About() About
}

// About is what is said of a report.
type About struct {
	Type string // as of HTTP
	Name string // of what it is of
	Facts
}

// Fault is why there is no report.
type Fault struct {
	Problem
	// Again says that it may be another's fault: the job is tried again.
	Again bool
}

func (f *Fault) Error() string { return f.Detail }

// WorkOptions say how a worker works.
type WorkOptions struct {
	Name  string // of the worker, in results
	Jobs  int    // that are done at a time
	Tries int    // how often a job is begun that never comes to an end; 0: 3
	Pace
}

// Pace says how fast a fleet takes a worker for dead, and tries again. The zero value is the
// usual one.
type Pace struct {
	// Silence is how long a job's worker says nothing until the job is another's. It is that
	// of who first works for the queue.
	Silence time.Duration
	// Pause is how long a job waits before it is tried again, the first time. It grows.
	Pause time.Duration
}

// usualPace is the Pace of who says nothing else.
var usualPace = Pace{Silence: 20 * time.Second, Pause: 2 * time.Second}

// maxDeliveries is how often a job is given to workers none of which says how it ended. Many
// a worker is killed for reasons that are not the job's.
const maxDeliveries = 12

// Worker does jobs of a queue.
type Worker struct {
	WorkOptions
	queue *Queue
	doer  Doer

	busy, again atomic.Int64

	mu      sync.Mutex
	counts  map[State]int                      // of results
	running map[string]context.CancelCauseFunc // jobs under way
}

// NewWorker makes a worker. Run has it work.
func NewWorker(ctx context.Context, q *Queue, d Doer, o WorkOptions) (*Worker, error) {
	if o.Tries == 0 {
		o.Tries = 3
	}
	if o.Silence == 0 {
		o.Pace = usualPace
	}
	w := &Worker{WorkOptions: o, queue: q, doer: d, running: map[string]context.CancelCauseFunc{}, counts: map[State]int{}}
	for _, jobs := range q.jobs {
		_, err := jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: o.Silence, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxFetchers,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", jobs.CachedInfo().Config.Name, err)
		}
	}
	return w, nil
}

// consumerName is what a server calls who takes jobs out of a stream.
const consumerName = "workers"

// maxFetchers is how many workers may ask for a job at once.
const maxFetchers = 1 << 14

// Run does jobs until ctx ends. Those that are under way are done then, unless now ends
// too: they are another worker's at once.
func (w *Worker) Run(ctx, now context.Context) error {
	canceled, err := w.queue.conn.Subscribe(cancelPrefix+"*", func(m *nats.Msg) {
		w.cancel(strings.TrimPrefix(m.Subject, cancelPrefix))
	})
	if err != nil {
		return err
	}
	defer func() { _ = canceled.Unsubscribe() }()
	ctx, end := context.WithCancel(ctx)
	defer end()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { w.removeOrphans(ctx) })
	for range w.Jobs {
		t, err := newTaker(w.queue)
		if err != nil {
			end()
			return err
		}
		all.Go(func() {
			defer t.end()
			for m := range t.jobs(ctx) {
				w.do(now, m)
			}
		})
	}
	return nil
}

// count counts a result.
func (w *Worker) count(s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[s]++
}

// Busy is how many jobs are under way.
func (w *Worker) Busy() int { return int(w.busy.Load()) }

// errCanceled is why a job ends that its caller does not want any more.
var errCanceled = errors.New("its caller canceled it")

// cancel ends a job, if it is under way here.
func (w *Worker) cancel(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if end := w.running[id]; end != nil {
		end(errCanceled)
	}
}

// do does the job of a message, and acknowledges it when its result is stored.
func (w *Worker) do(now context.Context, m *nats.Msg) {
	w.busy.Add(1)
	defer w.busy.Add(-1)
	t := &try{worker: w, message: m, begun: time.Now().UTC()}
	t.id = idOf(m.Subject)
	t.unread = t.read()
	ctx, end := context.WithCancelCause(now)
	defer end(nil)
	stop := t.hold(end)
	defer stop()
	w.mu.Lock()
	w.running[t.id] = end
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, t.id)
	}()
	t.run(ctx)
}

// try is one to do a job.
type try struct {
	worker  *Worker
	message *nats.Msg
	id      string
	job     job
	unread  error // why the message cannot be read
	begun   time.Time
	before  tries
	parts   []*Result // that the job is joined from
}

// tries are what became of a job before.
type tries struct {
	Reasons []string `json:"reasons"`
	Waits   int      `json:"waits,omitempty"` // for parts of it
}

// hold says that the job is under way, from time to time. A job that has a result is ended.
func (t *try) hold(end context.CancelCauseFunc) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(t.worker.Silence / 4)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			_ = t.message.InProgress() // a message that does not arrive makes it another's, too
			ctx, cancel := context.WithTimeout(context.Background(), t.worker.Silence/4)
			if has, err := t.hasResult(ctx); err == nil && has {
				end(errCanceled)
			}
			cancel()
		}
	}()
	return func() { close(done); <-ended }
}

// run does the job, and says what became of it.
func (t *try) run(ctx context.Context) {
	if t.isAgain() || t.job.Part != nil {
		has, err := t.hasResult(ctx)
		if has {
			t.worker.queue.dropParts(ctx, &t.job)
			t.acknowledge()
			return
		}
		if err != nil {
			t.later(err)
			return
		}
	}
	result, err := t.result(ctx)
	switch {
	case errors.Is(context.Cause(ctx), errCanceled):
		t.acknowledge() // that is its result
	case ctx.Err() != nil:
		_ = t.message.Nak() // this worker ends: it is another's at once
	case errors.Is(err, errPartsMissing):
		t.await(ctx)
	case err != nil:
		t.later(err)
	default:
		t.settle(result)
	}
}

// hasResult reports whether the job has a result, or that of which it is a part: nobody needs it
// then.
func (t *try) hasResult(ctx context.Context) (bool, error) {
	has, err := t.worker.queue.hasResult(ctx, t.id)
	if whole := t.job.whole(); err == nil && !has && whole != "" {
		return t.worker.queue.hasResult(ctx, whole)
	}
	return has, err
}

// isAgain reports whether a worker was given the job before: it may have a result, or a reason why it
// has none.
func (t *try) isAgain() bool {
	d, err := t.message.Metadata()
	return err != nil || d.NumDelivered > 1
}

// result makes the result of the job; the error says that it is to be tried again.
func (t *try) result(ctx context.Context) (*Result, error) {
	r := &Result{ID: t.id, Worker: t.worker.Name, Begun: t.begun, Tries: 1}
	fail := func(s State, name, detail string) (*Result, error) {
		r.State, r.Problem, r.Ended = s, &Problem{name, detail}, time.Now().UTC()
		return r, nil
	}
	if t.unread != nil {
		return fail(Failed, "usage", t.unread.Error())
	}
	r.Kind, r.Whole = t.job.Kind, t.job.whole()
	if t.isAgain() {
		if err := t.readTries(ctx); err != nil {
			return nil, err
		}
	}
	r.Tries, r.Reasons = len(t.before.Reasons)+1, t.before.Reasons
	if !t.job.Deadline.IsZero() && time.Now().After(t.job.Deadline) {
		return fail(Expired, "timed-out", "its deadline passed at "+t.job.Deadline.Format(time.RFC3339))
	}
	if d, err := t.message.Metadata(); err == nil && d.NumDelivered > maxDeliveries+uint64(t.before.Waits) { //nolint:gosec // it counts up
		return fail(Parked, "died", fmt.Sprintf("%d workers began it, and none said how it ended", d.NumDelivered-1-uint64(t.before.Waits))) //nolint:gosec // likewise
	}
	if t.job.isSplit() {
		parts, failed, err := t.askForParts(ctx)
		switch {
		case err != nil:
			return nil, err
		case failed != nil && failed.Problem != nil:
			return fail(failed.State, failed.Problem.Name, failed.Problem.Detail)
		case failed != nil:
			return fail(failed.State, "canceled", "a part of it was "+string(failed.State))
		}
		t.parts = parts
	}
	err := t.report(ctx, r)
	var f *Fault
	switch {
	case err == nil:
		r.State, r.Ended = Done, time.Now().UTC()
		return r, nil
	case ctx.Err() != nil || !errors.As(err, &f):
		return nil, err
	case !f.Again:
		return fail(Failed, f.Name, f.Detail)
	}
	t.before.Reasons = append(t.before.Reasons, f.Detail)
	if r.Tries >= t.worker.Tries {
		r.Reasons = t.before.Reasons
		return fail(Parked, f.Name, f.Detail)
	}
	return nil, errors.Join(f, t.writeTries(ctx))
}

// read reads the message.
func (t *try) read() error {
	j, err := readJob(t.message.Data)
	if err != nil {
		return fmt.Errorf("a job that cannot be read: %w", err)
	}
	t.job = *j
	if id := t.job.id(); id != t.id {
		return fmt.Errorf("a job called %s, expected %s", t.id, id)
	}
	return nil
}

func (t *try) readTries(ctx context.Context) error {
	e, err := t.worker.queue.tries.Get(ctx, t.id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(e.Value(), &t.before)
}

func (t *try) writeTries(ctx context.Context) error {
	b, err := json.Marshal(t.before)
	if err == nil {
		_, err = t.worker.queue.tries.Put(ctx, t.id, b)
	}
	return err
}

// errNoInput says that the input of a job is not kept any more.
var errNoInput = errors.New("its input is not kept any more")

// report does the job, and stores its report.
func (t *try) report(ctx context.Context, r *Result) error {
	if !t.job.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.job.Deadline)
		defer cancel()
	}
	var missed error // why the queue did not give the input
	report, err := t.worker.doer.Begin(ctx, t.task(), func(w io.Writer) error {
		to := &watched{Writer: w}
		err := t.receive(ctx, to)
		if to.err == nil {
			missed = err
		}
		return err
	})
	var f *Fault
	switch {
	case errors.Is(missed, jetstream.ErrObjectNotFound):
		return &Fault{Problem: Problem{"not-found", errNoInput.Error()}}
	case missed != nil: // whatever the doer makes of it: it says nothing about the job
		return missed
	case errors.As(err, &f): // it may be about what was received: that it is too large
		return f
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Fault{Problem: Problem{"timed-out", "its deadline passed"}}
	case err != nil:
		return err
	}
	defer report.Close()
	return t.store(ctx, r, report)
}

// A watched writer keeps the error of who is written to.
type watched struct {
	io.Writer
	err error
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// store puts a report where its result says: into it, where it is small.
func (t *try) store(ctx context.Context, r *Result, report Report) error {
	most := t.worker.queue.maxInline()
	head, err := io.ReadAll(io.LimitReader(report, most+1))
	if err != nil {
		return err
	}
	h := sha256.New()
	if int64(len(head)) <= most {
		r.Data, r.Size = head, int64(len(head))
		_, _ = h.Write(head) // it never fails
	} else if err := t.storeLarge(ctx, r, io.TeeReader(io.MultiReader(bytes.NewReader(head), report), h)); err != nil {
		return err
	}
	r.SHA256 = hex.EncodeToString(h.Sum(nil))
	about := report.About()
	r.Type, r.Name, r.Facts = about.Type, about.Name, about.Facts
	return nil
}

// storeLarge puts a report into the store. Two workers that do the same job at the same time
// do not write the same object.
func (t *try) storeLarge(ctx context.Context, r *Result, report io.Reader) error {
	r.Object = t.id + "." + nuid.Next()
	ctx, cancel := context.WithTimeout(ctx, transferPatience)
	defer cancel()
	info, err := t.worker.queue.reports.Put(ctx, jetstream.ObjectMeta{Name: r.Object}, report)
	if err != nil {
		return full(err)
	}
	r.Size = int64(info.Size) //nolint:gosec // of what was read
	return nil
}

// settleFor is how long a worker tries to store the result of a job that is done.
const settleFor = time.Minute

// settle stores the result, and acknowledges the job. While the queue does not answer, it
// tries again: the job is held.
func (t *try) settle(r *Result) {
	q := t.worker.queue
	ctx, cancel := context.WithTimeout(context.Background(), settleFor)
	defer cancel()
	for {
		isFirst, err := t.settleOnce(ctx, r)
		if err == nil {
			if isFirst {
				t.worker.count(r.State)
			}
			q.dropParts(ctx, &t.job)
			t.acknowledge()
			return
		}
		if errors.Is(err, ErrFull) || errors.Is(err, nats.ErrConnectionClosed) || ctx.Err() != nil {
			t.later(err)
			return
		}
		q.say("the result of %s: %v", t.id, err)
		select {
		case <-ctx.Done():
		case <-time.After(t.worker.Pause):
		}
	}
}

// settleOnce tries to store the result. isFirst is false where another one is the job's: the
// report of this one is removed.
func (t *try) settleOnce(ctx context.Context, r *Result) (isFirst bool, err error) {
	q := t.worker.queue
	if isFirst, err = q.settle(ctx, r); isFirst || err != nil {
		return isFirst, err
	}
	// It may be this one, whose acknowledgement was lost: then its report is needed.
	kept, err := q.Result(ctx, t.id)
	if err != nil {
		return false, err
	}
	if isFirst = kept.isSame(r); !isFirst && r.Object != "" {
		_ = q.reports.Delete(ctx, r.Object) // it goes when its time has passed
	}
	return isFirst, nil
}

// acknowledge takes the job out of the queue: it has a result. Where that does not arrive
// somebody else finds the result.
func (t *try) acknowledge() {
	if err := t.message.Ack(); err != nil {
		t.worker.queue.say("job %s: %v", t.id, err)
	}
}

// mostPause is how long a job waits at most before it is tried again.
const mostPause = 5 * time.Minute

// later has the job tried again, later each time.
func (t *try) later(err error) {
	pause := t.worker.Pause
	if d, err := t.message.Metadata(); err == nil {
		pause = min(pause<<min(d.NumDelivered-1, 8), mostPause)
	}
	t.worker.again.Add(1)
	t.worker.queue.say("job %s is tried again in %v: %v", t.id, pause, err)
	if err := t.message.NakWithDelay(pause); err != nil {
		t.worker.queue.say("job %s: %v", t.id, err)
	}
}
