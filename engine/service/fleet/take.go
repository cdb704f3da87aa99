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

// taker takes jobs out of the queue, one at a time. It asks by messages of its own: the library
// makes an inbox for each question, which costs as much as the question.
type taker struct {
	queue   *Queue
	answers *nats.Subscription // to all its questions, one at a time
	wake    chan *nats.Msg
	// empty is when no job of a priority waited, the last time that somebody looked.
	empty []time.Time
}

func newTaker(q *Queue) (*taker, error) {
	t := &taker{queue: q, wake: make(chan *nats.Msg, 1), empty: make([]time.Time, len(Priorities))}
	return t, t.listen()
}

// listen makes a new inbox. The answer to a question of before finds nobody: a server keeps the
// job then.
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

// jobs are those that this taker takes until ctx ends. One that comes then goes back.
func (t *taker) jobs(ctx context.Context) iter.Seq[*nats.Msg] {
	return func(yield func(*nats.Msg) bool) {
		for ctx.Err() == nil {
			m := t.next(ctx)
			if m == nil {
				m = t.await(ctx)
			}
			switch {
			case m == nil:
			case ctx.Err() != nil:
				_ = m.Nak() // else it is another's when this worker is taken for dead
			case !yield(m):
				return
			}
		}
	}
}

// lookForJobs is how often an idle worker looks for jobs of which it was not told.
const lookForJobs = time.Second

// await waits until there may be a job, and takes one that came before it could be told; nil:
// none did.
func (t *taker) await(ctx context.Context) *nats.Msg {
	// One of those who wait is told of a job.
	s, err := t.queue.conn.ChanQueueSubscribe(wakeSubject, "idle", t.wake)
	if err == nil {
		defer func() { _ = s.Unsubscribe() }()
		clear(t.empty)
		if m := t.next(ctx); m != nil {
			return m
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
	return nil
}

// staysEmpty is how long nobody asks again for jobs of a priority that has none: one that comes
// meanwhile waits for so long, while others are done.
const staysEmpty = 20 * time.Millisecond

// next takes the next job, of the highest priority; nil: none waits.
func (t *taker) next(ctx context.Context) *nats.Msg {
	for i, p := range Priorities {
		if time.Since(t.empty[i]) < staysEmpty {
			continue
		}
		m, err := t.take(ctx, p)
		if err != nil && ctx.Err() == nil {
			t.queue.say("jobs: %v", err)
		}
		if m != nil || err != nil || ctx.Err() != nil {
			return m
		}
		t.empty[i] = time.Now()
	}
	return nil
}

// Statuses of answers that are no job.
const (
	statusHeader  = "Status"
	statusNoJob   = "404"
	statusTimeout = "408"
	statusNobody  = "503" // no server has the stream, now
)

// takePatience is how long a server may take to answer.
const takePatience = 5 * time.Second

// take asks for a job of a priority; nil: there is none. It waits for the answer also where ctx
// ends: a job that nobody hears of would wait until its worker is taken for dead.
func (t *taker) take(ctx context.Context, priority string) (*nats.Msg, error) {
	question := jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + jobsOf(priority) + "." + consumerName
	if err := t.queue.conn.PublishRequest(question, t.answers.Subject, []byte(`{"batch":1,"no_wait":true}`)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takePatience)
	defer cancel()
	m, err := t.answers.NextMsgWithContext(ctx)
	if err != nil {
		return nil, errors.Join(err, t.listen())
	}
	if strings.HasPrefix(m.Subject, jobsPrefix) { // whatever headers somebody gave it
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
