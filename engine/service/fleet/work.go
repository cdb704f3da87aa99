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
	"slices"
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
	// Begin begins a task on the input that receive writes. It returns when the report can
	// be read. The error is a *Fault where the task, or its input, is at fault.
	Begin(ctx context.Context, t *Task, receive func(io.Writer) error) (Report, error)
}

// Report is a report while it comes. It is whole when it was read to io.EOF.
type Report interface {
	io.ReadCloser
	// About describes the report, once it is whole.
	About() About
}

// About describes a report.
type About struct {
	Type string // in HTTP's syntax
	Name string // of the input
	Facts
}

// Fault is the reason why there is no report.
type Fault struct {
	Problem
	// Again: the job may not be at fault, and is tried again.
	Again bool
}

func (f *Fault) Error() string { return f.Detail }

// WorkOptions are the options of a worker.
type WorkOptions struct {
	Name  string // of the worker, in results
	Jobs  int    // that are done at a time
	Tries int    // how often a job that comes to no end is begun; 0: 3
	Pace
}

// Pace tells how soon a fleet takes a worker for dead, and tries again. The zero value
// stands for usualPace.
type Pace struct {
	// Silence is the time after which a job of a silent worker is another's. The first
	// worker of the queue sets it.
	Silence time.Duration
	// Pause is the time before a job is tried again, the first time. It grows.
	Pause time.Duration
}

// usualPace is the default.
var usualPace = Pace{Silence: 20 * time.Second, Pause: 2 * time.Second}

// maxDeliveries bounds how often a job is delivered to workers that do not report its end.
// Many a worker is killed for reasons that are not the job's.
const maxDeliveries = 12

// Worker does jobs of a queue.
type Worker struct {
	WorkOptions
	queue *Queue
	doer  Doer

	busy, again atomic.Int64

	mu      sync.Mutex
	counts  map[State]int                      // of results
	running map[string]context.CancelCauseFunc // jobs under way, by the subjects that cancel them
	users   []*Queue                           // of which jobs are taken, besides the worker's own
}

// NewWorker makes a worker, which Run starts.
func NewWorker(ctx context.Context, q *Queue, d Doer, o WorkOptions) (*Worker, error) {
	if o.Tries == 0 {
		o.Tries = 3
	}
	if o.Silence == 0 {
		o.Pace = usualPace
	}
	w := &Worker{WorkOptions: o, queue: q, doer: d, running: map[string]context.CancelCauseFunc{}, counts: map[State]int{}}
	if q.desk != nil {
		return nil, fmt.Errorf("%w: a worker needs all permissions of the account", ErrRefused)
	}
	err := q.guard(ctx, func(ctx context.Context) error { return w.consume(ctx, q) })
	if err == nil {
		err = w.findUsers(ctx)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// consume makes the consumers of a queue's jobs, from which workers take them.
func (w *Worker) consume(ctx context.Context, q *Queue) error {
	for _, jobs := range q.jobs {
		_, err := jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: w.Silence, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: maxFetchers,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", jobs.CachedInfo().Config.Name, err)
		}
	}
	return nil
}

// queues returns the queues of which the worker takes jobs.
func (w *Worker) queues() []*Queue {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*Queue{w.queue}, w.users...)
}

// findUsers finds the users that have queues.
func (w *Worker) findUsers(ctx context.Context) error {
	names, err := w.queue.users(ctx)
	if err != nil {
		return err
	}
	known := map[string]*Queue{}
	for _, q := range w.queues() {
		known[q.user] = q
	}
	delete(known, w.queue.user)
	var list []*Queue
	var failed error
	for _, name := range names {
		q := known[name]
		if q == nil {
			if q, err = w.queue.of(ctx, name); err == nil {
				err = w.consume(ctx, q)
			}
			if err != nil {
				failed = errors.Join(failed, err) // the others' jobs are done nevertheless
				continue
			}
		}
		delete(known, name)
		list = append(list, q)
	}
	for name := range known {
		w.queue.forget(name) // his streams are gone
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users = list
	return failed
}

// watchUsers finds new users from time to time, and when one of them has submitted a job.
func (w *Worker) watchUsers(ctx context.Context) {
	news := make(chan *nats.Msg, 1)
	if s, err := w.queue.conn.ChanSubscribe(wakeSubject, news); err == nil {
		defer func() { _ = s.Unsubscribe() }()
	}
	tick := time.NewTicker(lookForUsers)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case m := <-news:
			if user := string(m.Data); slices.ContainsFunc(w.queues(), func(q *Queue) bool { return q.user == user }) {
				continue
			}
		}
		if err := w.findUsers(ctx); err != nil && ctx.Err() == nil {
			w.queue.say("users of the queue: %v", err)
		}
		select { // who wakes workers again and again is answered now and then
		case <-ctx.Done():
		case <-time.After(lookForUsers / 50):
		}
	}
}

// lookForUsers is the interval of looking for users with queues.
const lookForUsers = 5 * time.Second

// consumerName is the name of the consumer of each jobs stream.
const consumerName = "workers"

// maxFetchers bounds the workers that ask for a job at once.
const maxFetchers = 1 << 14

// Run does jobs until ctx ends, and then finishes the current ones. If now ends, too, they
// go back to the queue at once.
func (w *Worker) Run(ctx, now context.Context) error {
	for _, subject := range []string{cancelPrefix + "*", userSubjects + "*." + strings.TrimPrefix(cancelPrefix, allSubjects) + "*"} {
		canceled, err := w.queue.conn.Subscribe(subject, func(m *nats.Msg) { w.cancel(m.Subject) })
		if err != nil {
			return err
		}
		defer func() { _ = canceled.Unsubscribe() }()
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { w.removeOrphans(ctx) })
	all.Go(func() { w.watchUsers(ctx) })
	all.Go(func() { w.queue.ServeUsers(ctx) })
	for range w.Jobs {
		t, err := newTaker(w)
		if err != nil {
			end()
			return err
		}
		all.Go(func() {
			defer t.end()
			for q, m := range t.jobs(ctx) {
				w.do(now, q, m)
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

// Busy returns the number of jobs that are under way.
func (w *Worker) Busy() int { return int(w.busy.Load()) }

// errCanceled ends a job whose caller has canceled it.
var errCanceled = errors.New("its caller canceled it")

// cancel ends the job that a subject cancels, if it is under way here.
func (w *Worker) cancel(subject string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if end := w.running[subject]; end != nil {
		end(errCanceled)
	}
}

// do does the job of a message, and acknowledges it when its result is stored.
func (w *Worker) do(now context.Context, q *Queue, m *nats.Msg) {
	w.busy.Add(1)
	defer w.busy.Add(-1)
	t := &try{worker: w, queue: q, message: m, id: idOf(m.Subject), begun: time.Now().UTC()}
	if err := t.read(); err != nil {
		// Whoever sent it has shown no right to the ID: a result would be a lie about another's job.
		q.say("a message that is no job is dropped: %s: %v", m.Subject, err)
		_ = m.Term() // else it comes again
		return
	}
	canceledBy := q.subject(cancelPrefix) + t.id
	ctx, end := context.WithCancelCause(now)
	defer end(nil)
	stop := t.keepAlive(end)
	defer stop()
	w.mu.Lock()
	w.running[canceledBy] = end
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, canceledBy)
	}()
	t.run(ctx)
}

// try is one try of a job.
type try struct {
	worker  *Worker
	queue   *Queue // of the job's user
	message *nats.Msg
	id      string
	job     job
	begun   time.Time
	before  tries
	parts   []*Result // from which the job is joined
}

// tries records the earlier tries of a job.
type tries struct {
	Reasons []string `json:"reasons"`
	Waits   int      `json:"waits,omitempty"` // for its parts
}

// keepAlive tells the queue from time to time that the job is under way. It ends a job that
// has got a result.
func (t *try) keepAlive(end context.CancelCauseFunc) (stop func()) {
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
			_ = t.message.InProgress() // if it does not arrive, the job becomes another worker's
			ctx, cancel := context.WithTimeout(context.Background(), t.worker.Silence/4)
			if has, err := t.hasResult(ctx); err == nil && has {
				end(errCanceled)
			}
			cancel()
		}
	}()
	return func() { close(done); <-ended }
}

// run does the job, and settles it or puts it back.
func (t *try) run(ctx context.Context) {
	if t.isAgain() || t.job.Part != nil {
		has, err := t.hasResult(ctx)
		if has {
			t.queue.dropParts(ctx, &t.job)
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
		t.acknowledge() // it has a result
	case ctx.Err() != nil:
		_ = t.message.Nak() // this worker ends: the job becomes another's at once
	case errors.Is(err, errPartsMissing):
		t.await(ctx)
	case err != nil:
		t.later(err)
	default:
		t.settle(result)
	}
}

// hasResult reports whether the job, or the whole that it is a part of, has a result.
func (t *try) hasResult(ctx context.Context) (bool, error) {
	has, err := t.queue.hasResult(ctx, t.id)
	if whole := t.job.whole(); err == nil && !has && whole != "" {
		return t.queue.hasResult(ctx, whole)
	}
	return has, err
}

// isAgain reports whether the job was delivered before: it may have a result, or recorded tries.
func (t *try) isAgain() bool {
	d, err := t.message.Metadata()
	return err != nil || d.NumDelivered > 1
}

// result makes the result of the job. On an error the job is tried again.
func (t *try) result(ctx context.Context) (*Result, error) {
	r := &Result{ID: t.id, Worker: t.worker.Name, Begun: t.begun, Tries: 1}
	fail := func(s State, name, detail string) (*Result, error) {
		r.State, r.Problem, r.Ended = s, &Problem{name, detail}, time.Now().UTC()
		return r, nil
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
	j, err := readJobOf(t.id, t.message.Data)
	if err == nil {
		t.job = *j
	}
	return err
}

func (t *try) readTries(ctx context.Context) error {
	e, err := t.queue.tries.Get(ctx, t.id)
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
		_, err = t.queue.tries.Put(ctx, t.id, b)
	}
	return err
}

// errNoInput is the error of a job whose input has expired.
var errNoInput = errors.New("its input is not kept any more")

// report does the job, and stores its report.
func (t *try) report(ctx context.Context, r *Result) error {
	if !t.job.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.job.Deadline)
		defer cancel()
	}
	var missed error // why the input did not come
	report, err := t.worker.doer.Begin(ctx, t.task(), func(w io.Writer) error {
		out := &watched{Writer: w}
		err := t.receive(ctx, out)
		if out.err == nil {
			missed = err
		}
		return err
	})
	var f *Fault
	switch {
	case errors.Is(missed, jetstream.ErrObjectNotFound):
		return &Fault{Problem: Problem{"not-found", errNoInput.Error()}}
	case missed != nil: // whatever the doer's error: it is not about the job
		return missed
	case errors.As(err, &f): // also where the input is too large
		return f
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Fault{Problem: Problem{"timed-out", "its deadline passed"}}
	case err != nil:
		return err
	}
	defer report.Close()
	return t.store(ctx, r, report)
}

// watched keeps the error of its Writer.
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

// store stores a report: in its result, where it is small, else in the store of reports.
func (t *try) store(ctx context.Context, r *Result, report Report) error {
	most := t.queue.maxInline()
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
// write two objects.
func (t *try) storeLarge(ctx context.Context, r *Result, report io.Reader) error {
	r.Object = t.id + "." + nuid.Next()
	ctx, cancel := context.WithTimeout(ctx, transferPatience)
	defer cancel()
	info, err := t.queue.reports.Put(ctx, jetstream.ObjectMeta{Name: r.Object}, report)
	if err != nil {
		return full(err)
	}
	r.Size = int64(info.Size) //nolint:gosec // a size
	return nil
}

// settleFor is the time in which a worker tries to store a result.
const settleFor = time.Minute

// settle stores the result, and acknowledges the job. While the queue does not answer, it
// tries again, and keeps the job.
func (t *try) settle(r *Result) {
	q := t.queue
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

// settleOnce tries to store the result. isFirst is false where the job has another one; then
// the report of this one is removed.
func (t *try) settleOnce(ctx context.Context, r *Result) (isFirst bool, err error) {
	q := t.queue
	if isFirst, err = q.settle(ctx, r); isFirst || err != nil {
		return isFirst, err
	}
	// The result there may be this one, if its acknowledgement was lost: then its report is
	// needed.
	kept, err := q.Result(ctx, t.id)
	if errors.Is(err, errForged) {
		if err = q.dropResult(ctx, t.id); err == nil {
			return q.settle(ctx, r)
		}
	}
	if err != nil {
		return false, err
	}
	if isFirst = kept.isSame(r); !isFirst && r.Object != "" {
		_ = q.reports.Delete(ctx, r.Object) // otherwise it expires
	}
	return isFirst, nil
}

// acknowledge removes a job with a result from the queue. If that does not arrive, another
// worker finds the result.
func (t *try) acknowledge() {
	if err := t.message.Ack(); err != nil {
		t.queue.say("job %s: %v", t.id, err)
	}
}

// mostPause bounds the time before a job is tried again.
const mostPause = 5 * time.Minute

// later puts the job back to be tried again, after a pause that grows.
func (t *try) later(err error) {
	pause := t.worker.Pause
	if d, err := t.message.Metadata(); err == nil {
		pause = min(pause<<min(d.NumDelivered-1, 8), mostPause)
	}
	t.worker.again.Add(1)
	t.queue.say("job %s is tried again in %v: %v", t.id, pause, err)
	if err := t.message.NakWithDelay(pause); err != nil {
		t.queue.say("job %s: %v", t.id, err)
	}
}
