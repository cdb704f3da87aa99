// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// queue gives places to callers, in turns: each waiting caller gets one before any gets a
// second, however many requests one of them has. A spare place is for who has none: one caller
// with long requests does not keep all others waiting.
type queue struct {
	spare      int // places
	maxWaiting int // in all
	maxPerCall int // of one caller

	mu      sync.Mutex
	free    int // without the spare ones; below 0: spare ones are taken
	waiting int
	has     map[string]int     // places of callers
	turns   []string           // waiting callers, the next one first
	lines   map[string][]*spot // their requests, each caller's in the order in which they came
}

// spot is a waiting request.
type spot struct {
	ready chan struct{} // closed when it has a place
}

// errBusy is the error of a full queue: the caller should come again later.
var errBusy = errors.New("too many requests wait already")

func newQueue(places, maxWaiting, maxPerCaller int) *queue {
	return &queue{
		free: places, maxWaiting: maxWaiting, maxPerCall: maxPerCaller, has: map[string]int{}, lines: map[string][]*spot{},
	}
}

// canHave reports whether there is a place for a caller.
func (q *queue) canHave(caller string) bool {
	return q.free > 0 || q.free+q.spare > 0 && q.has[caller] == 0
}

// enter waits for a place, which leave returns. The error is errBusy, or why ctx ended.
func (q *queue) enter(ctx context.Context, caller string) error {
	q.mu.Lock()
	if q.canHave(caller) { // those who wait cannot have it
		q.free--
		q.has[caller]++
		q.mu.Unlock()
		return nil
	}
	if q.waiting >= q.maxWaiting || len(q.lines[caller]) >= q.maxPerCall {
		q.mu.Unlock()
		return errBusy
	}
	s := &spot{make(chan struct{})}
	if len(q.lines[caller]) == 0 {
		q.turns = append(q.turns, caller)
	}
	q.lines[caller] = append(q.lines[caller], s)
	q.waiting++
	q.mu.Unlock()
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
	}
	if q.withdraw(caller, s) {
		return context.Cause(ctx)
	}
	q.leave(caller) // it was given a place meanwhile
	return context.Cause(ctx)
}

// withdraw takes a request out of the queue. ok is false where it has a place.
func (q *queue) withdraw(caller string, s *spot) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[caller]
	for i := range line {
		if line[i] == s {
			q.setLine(caller, append(line[:i:i], line[i+1:]...))
			q.waiting--
			return true
		}
	}
	return false
}

// setLine replaces a caller's requests. A caller without any has no turn.
func (q *queue) setLine(caller string, line []*spot) {
	if len(line) > 0 {
		q.lines[caller] = line
		return
	}
	delete(q.lines, caller)
	for i, c := range q.turns {
		if c == caller {
			q.turns = append(q.turns[:i:i], q.turns[i+1:]...)
			return
		}
	}
}

// leave returns a caller's place, which the first of those gets who can have it.
func (q *queue) leave(caller string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	if q.has[caller]--; q.has[caller] == 0 {
		delete(q.has, caller)
	}
	for i := 0; i < len(q.turns); i++ {
		if next := q.turns[i]; q.canHave(next) {
			q.admit(i, next)
			return
		}
	}
}

// admit gives a place to the first request of a caller, whose next turn comes after all others'.
func (q *queue) admit(turn int, caller string) {
	line := q.lines[caller]
	q.free--
	q.has[caller]++
	q.waiting--
	close(line[0].ready)
	q.setLine(caller, line[1:])
	if len(line) > 1 {
		q.turns = append(slices.Delete(q.turns, turn, turn+1), caller)
	}
}

// length returns the number of waiting requests.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}
