// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// taker takes jobs out of the queues of all users, one at a time, and the users in turns: whoever
// has submitted many jobs, or urgent ones, delays his own. It sends the requests itself: the
// library makes an inbox for each request, which costs as much as the request.
type taker struct {
	worker  *Worker
	queue   *Queue             // the worker's own
	answers *nats.Subscription // to all its requests, one at a time
	wake    chan *nats.Msg
	last    string // the user of the last job
	// empty has the time of the last look that found no job, by stream.
	empty map[string]time.Time
}

func newTaker(w *Worker) (*taker, error) {
	t := &taker{worker: w, queue: w.queue, wake: make(chan *nats.Msg, 1), empty: map[string]time.Time{}}
	return t, t.listen()
}

// listen makes a new inbox. The answer to an earlier request is lost, and the server keeps the
// job.
func (t *taker) listen() (err error) {
	t.end()
	t.answers, err = t.queue.conn.SubscribeSync(t.queue.conn.NewInbox())
	return err
}

func (t *taker) end() {
	if t.answers != nil {
		_ = t.answers.Unsubscribe()
	}
}

// jobs yields the jobs that the taker takes until ctx ends, each with its queue. A job that comes
// after that goes back.
func (t *taker) jobs(ctx context.Context) iter.Seq2[*Queue, *nats.Msg] {
	return func(yield func(*Queue, *nats.Msg) bool) {
		for ctx.Err() == nil {
			q, m := t.next(ctx)
			if m == nil {
				q, m = t.await(ctx)
			}
			switch {
			case m == nil:
			case ctx.Err() != nil:
				_ = m.Nak() // otherwise it waits until this worker is taken for dead
			case !yield(q, m):
				return
			}
		}
	}
}

// lookForJobs is the interval in which an idle worker looks for jobs without being woken.
const lookForJobs = time.Second

// await waits until there may be a job. It returns a job that came before it was subscribed,
// else nil.
func (t *taker) await(ctx context.Context) (*Queue, *nats.Msg) {
	// Each job wakes one of the waiting workers.
	s, err := t.queue.conn.ChanQueueSubscribe(wakeSubject, "idle", t.wake)
	if err == nil {
		defer func() { _ = s.Unsubscribe() }()
		clear(t.empty)
		if q, m := t.next(ctx); m != nil {
			return q, m
		}
	}
	look := time.NewTimer(lookForJobs)
	defer look.Stop()
	select {
	case <-ctx.Done():
	case <-t.wake:
	case <-look.C:
	}
	clear(t.empty)
	return nil, nil
}

// staysEmpty is the time in which a priority without jobs is not asked again. A job that comes
// meanwhile waits so long, while others are done.
const staysEmpty = 20 * time.Millisecond

// next takes the next job, of the user whose turn it is; nil: none waits.
func (t *taker) next(ctx context.Context) (*Queue, *nats.Msg) {
	queues := t.worker.queues()
	first := 0
	for i, q := range queues {
		if q.user == t.last {
			first = i + 1
		}
	}
	for i := range queues {
		q := queues[(first+i)%len(queues)]
		m, err := t.nextOf(ctx, q)
		if err != nil && ctx.Err() == nil {
			t.queue.say("jobs: %v", err)
		}
		switch {
		case m != nil:
			t.last = q.user
			return q, m
		case ctx.Err() != nil, err != nil && !errors.Is(err, nats.ErrNoResponders): // one user's streams may be gone
			return nil, nil
		}
	}
	return nil, nil
}

// nextOf takes a user's next job, of the highest priority; nil: none waits.
func (t *taker) nextOf(ctx context.Context, q *Queue) (*nats.Msg, error) {
	for _, p := range Priorities {
		stream := q.named(jobsOf(p))
		if time.Since(t.empty[stream]) < staysEmpty {
			continue
		}
		m, err := t.take(ctx, q, p)
		if m != nil || err != nil || ctx.Err() != nil {
			return m, err
		}
		t.empty[stream] = time.Now()
	}
	return nil, nil
}

// Statuses of answers without a job.
const (
	statusHeader  = "Status"
	statusNoJob   = "404"
	statusTimeout = "408"
	statusNobody  = "503" // no server has the stream, now
)

// takePatience bounds the time of a server's answer.
const takePatience = 5 * time.Second

// take asks for a job of a priority; nil: there is none. It waits for the answer even when ctx
// ends: a job whose answer is lost would wait until its worker is taken for dead.
func (t *taker) take(ctx context.Context, q *Queue, priority string) (*nats.Msg, error) {
	subject := jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + q.named(jobsOf(priority)) + "." + consumerName
	if err := t.queue.conn.PublishRequest(subject, t.answers.Subject, []byte(`{"batch":1,"no_wait":true}`)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takePatience)
	defer cancel()
	m, err := t.answers.NextMsgWithContext(ctx)
	if err != nil {
		return nil, errors.Join(err, t.listen())
	}
	if strings.HasPrefix(m.Subject, q.subject(jobsPrefix)) { // whatever headers its publisher set
		return m, nil
	}
	switch status := m.Header.Get(statusHeader); status {
	case statusNoJob, statusTimeout:
		return nil, nil
	case statusNobody:
		return nil, nats.ErrNoResponders
	default:
		return nil, errors.New(status + " " + m.Header.Get("Description"))
	}
}
