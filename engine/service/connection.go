// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
)

// This file keeps a server connected to the queue of a fleet, and sends the queue the objects
// that were put here: workers need them for the jobs that are handed over.

const (
	// lookAtQueue is the interval of checks whether the queue answers.
	lookAtQueue = 500 * time.Millisecond
	// connectAgain is the time before another attempt to connect.
	connectAgain = 5 * time.Second
	// renewObjects is the interval of checks whether the queue has forgotten objects.
	renewObjects = time.Hour
	// usualLost is how long callers of jobs wait for a queue that has stopped answering.
	usualLost = 30 * time.Second
	// queuePatience bounds the time of an answer of the queue.
	queuePatience = 5 * time.Second
)

// errLost ends the waiting for a queue that has not answered for long.
var errLost = errors.New("the queue does not answer any more")

// connection is the connection to a queue.
type connection struct {
	server *Server
	lost   time.Duration
	ctx    context.Context // ended with the server
	end    context.CancelCauseFunc
	ended  chan struct{} // closed when nothing runs any more

	mu       sync.Mutex
	queue    *fleet.Queue // nil: it has never answered
	isReady  bool         // it answers, and has the objects of this server
	isLogged bool         // the log has that it does not answer
	owes     bool         // it may lack an object of this server
	newest   time.Time    // when an object was put here last
	session  context.Context
	hangUp   context.CancelCauseFunc // ends session
}

func newConnection(s *Server) *connection {
	l := &connection{server: s, lost: s.queueLost, ended: make(chan struct{})}
	if l.lost == 0 {
		l.lost = usualLost
	}
	if s.store.Amount().Files > 0 { // the times of putting them are not known
		l.newest = time.Now()
	}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.session, l.hangUp = context.WithCancelCause(l.ctx)
	return l
}

// close ends the connection. Callers who still wait get errEnding.
func (l *connection) close() {
	l.end(errEnding)
	select {
	case <-l.ended:
	case <-time.After(lastWords): // it is connecting, which takes its time
	}
}

// endBy sends errEnding to callers who wait, early enough to arrive before ctx ends.
func (l *connection) endBy(ctx context.Context) (stop func()) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return func() {}
	}
	left := time.Until(deadline)
	t := time.AfterFunc(left-min(lastWords, left/2), func() { l.end(errEnding) })
	return func() { t.Stop() }
}

// run keeps the connection until the server ends.
func (l *connection) run() {
	defer close(l.ended)
	q := l.connect()
	if q == nil {
		return
	}
	defer q.Close()
	l.server.WatchFleet(q, nil)
	tick := time.NewTicker(lookAtQueue)
	defer tick.Stop()
	var away, renewed time.Time
	for l.ctx.Err() == nil {
		switch {
		case !q.IsConnected():
			if away.IsZero() {
				away = time.Now()
			}
			l.failed(fleet.ErrNoQueue)
			if time.Since(away) > l.lost {
				l.giveUp()
			}
		case !l.ready() || time.Since(renewed) > renewObjects:
			away, renewed = time.Time{}, time.Now()
			l.settle(q)
		}
		select {
		case <-l.ctx.Done():
		case <-tick.C:
		}
	}
}

// connect reaches the queue; nil: the server ended before.
func (l *connection) connect() *fleet.Queue {
	o := *l.server.Queue
	o.Patience = queuePatience
	o.Log = func(text string) { l.server.Log.Debug("queue", "text", foreign(text)) }
	for l.ctx.Err() == nil {
		q, err := fleet.Connect(l.ctx, o)
		if err == nil {
			l.mu.Lock()
			l.queue = q
			l.mu.Unlock()
			return q
		}
		l.failed(err)
		select {
		case <-l.ctx.Done():
		case <-time.After(connectAgain):
		}
	}
	return nil
}

// ready reports whether requests may be handed over.
func (l *connection) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isReady
}

// failed records that the queue failed. No job is handed to it until it answers again.
func (l *connection) failed(err error) {
	l.mu.Lock()
	isLogged := l.isLogged
	l.isReady, l.isLogged = false, true
	l.mu.Unlock()
	if !isLogged && l.ctx.Err() == nil {
		l.server.Log.Warn("the queue of the fleet does not answer: what is over the limits is refused", "reason", foreign(err.Error()))
	}
}

// settle checks that the queue answers, and sends it the objects that it lacks.
func (l *connection) settle(q *fleet.Queue) {
	l.mu.Lock()
	l.owes = false
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.ctx, queuePatience)
	err := q.Ping(ctx)
	cancel()
	if err == nil {
		err = l.shareAll(q)
	}
	if err != nil {
		l.failed(err)
		return
	}
	l.mu.Lock()
	wasReady := l.isReady
	l.isReady = !l.owes
	if l.isReady {
		l.isLogged = false
	}
	if l.session.Err() != nil {
		l.session, l.hangUp = context.WithCancelCause(l.ctx)
	}
	isReady := l.isReady
	l.mu.Unlock()
	if isReady && !wasReady {
		l.server.Log.Info("the queue of the fleet answers: what is over the limits is handed to it")
	}
}

// giveUp sends errLost to callers who wait.
func (l *connection) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangUp(errLost)
}

// use returns the queue, and a context that ends with ctx, with the server, and when the queue
// is lost. q is nil where the queue does not answer.
func (l *connection) use(ctx context.Context) (q *fleet.Queue, within context.Context, leave func()) {
	l.mu.Lock()
	q, session := l.queue, l.session
	if !l.isReady {
		q = nil
	}
	l.mu.Unlock()
	if q == nil {
		return nil, ctx, func() {}
	}
	within, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session, func() { end(context.Cause(session)) })
	return q, within, func() { stop(); end(nil) }
}

// cancel cancels a job without a caller.
func (l *connection) cancel(q *fleet.Queue, id string) {
	ctx, stop := context.WithTimeout(l.ctx, queuePatience)
	defer stop()
	if _, err := q.Cancel(ctx, id); err != nil {
		l.server.Log.Warn("a job of the fleet is not canceled", "job", id, "reason", foreign(err.Error()))
	}
}

// newestObject returns the time when an object was put here last.
func (l *connection) newestObject() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

// share sends the queue the files of a build ID that changed here, or removes them there.
func (l *connection) share(ctx context.Context, id []byte) {
	l.mu.Lock()
	q := l.queue
	l.newest = time.Now()
	if !l.isReady {
		q, l.owes = nil, true
	}
	l.mu.Unlock()
	if q == nil {
		return
	}
	for _, kind := range []string{objects.Executable, objects.DebugInfo} {
		err := l.send(ctx, q, objects.File{ID: id, Kind: kind, Path: l.server.store.Find(id, kind)})
		if err != nil && !errors.Is(err, fleet.ErrFull) {
			l.mu.Lock()
			l.owes = true
			l.mu.Unlock()
			l.failed(err)
			return
		}
	}
}

// shareAll sends the queue all objects that it lacks, the most recently used first.
func (l *connection) shareAll(q *fleet.Queue) error {
	list, err := l.server.store.All()
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.Path = l.server.store.Find(f.ID, f.Kind); f.Path == "" {
			continue // it was removed meanwhile
		}
		err := l.send(l.ctx, q, f)
		if errors.Is(err, fleet.ErrFull) {
			return nil // the rest does not fit either
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends the queue a file, if it lacks it; one without a path is removed there.
func (l *connection) send(ctx context.Context, q *fleet.Queue, f objects.File) error {
	if f.Path == "" {
		return q.DropObject(ctx, f.ID, f.Kind)
	}
	file, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed for a newer one
	}
	if err != nil {
		return err
	}
	defer file.Close()
	sent, err := q.PutObject(ctx, f.ID, f.Kind, file)
	switch {
	case err != nil:
		l.server.metrics.shared("failed")
		l.server.Log.Warn("an object is not in the queue of the fleet: stacks that are handed over lack it", "build-id", hex.EncodeToString(f.ID), "reason", foreign(err.Error()))
	case sent:
		l.server.metrics.shared("sent")
	default:
		l.server.metrics.shared("there")
	}
	return err
}
