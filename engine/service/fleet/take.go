// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A taker takes jobs out of the queue, one at a time. It asks by messages of its own: the library
// makes an inbox for each question, which costs as much as the question.
type taker struct {
	queue   *Queue
	inbox   string             // to which answers are sent, with a number behind it
	answers *nats.Subscription // for as long as it works
	asked   uint64
	wake    chan *nats.Msg
	// empty is when no job of a priority waited, the last time that somebody looked.
	empty []time.Time
}

func newTaker(q *Queue) (*taker, error) {
	t := &taker{queue: q, inbox: q.conn.NewInbox(), wake: make(chan *nats.Msg, 1), empty: make([]time.Time, len(Priorities))}
	var err error
	t.answers, err = q.conn.SubscribeSync(t.inbox + ".*")
	return t, err
}

func (t *taker) end() { _ = t.answers.Unsubscribe() }

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
	t.asked++
	answer := t.inbox + "." + strconv.FormatUint(t.asked, 10)
	question := jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + jobsOf(priority) + "." + consumerName
	if err := t.queue.conn.PublishRequest(question, answer, []byte(`{"batch":1,"no_wait":true}`)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takePatience)
	defer cancel()
	for {
		m, err := t.answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		switch status := m.Header.Get(statusHeader); {
		case status == "": // also one that was asked for earlier, and comes late
			return m, nil
		case m.Subject != answer: // that there was none earlier
		case status == statusNoJob, status == statusTimeout:
			return nil, nil
		case status == statusNobody:
			return nil, nats.ErrNoResponders
		default:
			return nil, errors.New(status + " " + m.Header.Get("Description"))
		}
	}
}
