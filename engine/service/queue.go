// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// queue gives places to callers, in turns: each waiting caller gets one before any gets a
// second, however many requests one of them has. A spare place is for who has none, and the last
// one for an address that has none: one caller with long requests does not keep all others
// waiting, and neither do many callers of one address.
type queue struct {
	spare      int // places
	maxWaiting int // in all
	maxPerCall int // of one caller

	mu      sync.Mutex
	free    int // without the spare ones; below 0: spare ones are taken
	waiting int
	has     map[string][]string // the addresses of the places of each caller
	from    map[string]int      // how many places each address has
	turns   []string            // waiting callers, the next one first
	lines   map[string][]*spot  // their requests, each caller's in the order in which they came
}

// spot is a waiting request.
type spot struct {
	address string
	ready   chan struct{} // closed when it has a place
}

// errBusy is the error of a full queue: the caller should come again later.
var errBusy = errors.New("too many requests wait already")

func newQueue(places, maxWaiting, maxPerCaller int) *queue {
	return &queue{
		free: places, maxWaiting: maxWaiting, maxPerCall: maxPerCaller, has: map[string][]string{}, from: map[string]int{}, lines: map[string][]*spot{},
	}
}

// canHave reports whether there is a place for a caller at an address.
func (q *queue) canHave(caller, address string) bool {
	switch spare := q.free + q.spare; {
	case q.free > 0:
		return true
	case len(q.has[caller]) > 0 || spare <= 0:
		return false
	default:
		return spare > 1 || q.from[address] == 0
	}
}

// take takes a place.
func (q *queue) take(caller, address string) {
	q.free--
	q.has[caller] = append(q.has[caller], address)
	q.from[address]++
}

// giveBack returns a place. It does not matter which one of a caller who has several.
func (q *queue) giveBack(caller string) {
	q.free++
	places := q.has[caller]
	last := len(places) - 1
	if q.from[places[last]]--; q.from[places[last]] == 0 {
		delete(q.from, places[last])
	}
	if q.has[caller] = places[:last]; last == 0 {
		delete(q.has, caller)
	}
}

// enter waits for a place, which leave returns. The error is errBusy, or why ctx ended.
func (q *queue) enter(ctx context.Context, caller string) error {
	address := caller
	if r := requestOf(ctx); r != nil {
		address = r.address
	}
	q.mu.Lock()
	if q.canHave(caller, address) { // those who wait cannot have it
		q.take(caller, address)
		q.mu.Unlock()
		return nil
	}
	if q.waiting >= q.maxWaiting || len(q.lines[caller]) >= q.maxPerCall {
		q.mu.Unlock()
		return errBusy
	}
	s := &spot{address, make(chan struct{})}
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
	q.giveBack(caller)
	for i, next := range q.turns {
		if q.canHave(next, q.lines[next][0].address) {
			q.admit(i, next)
			return
		}
	}
}

// admit gives a place to the first request of a caller, whose next turn comes after all others'.
func (q *queue) admit(turn int, caller string) {
	line := q.lines[caller]
	q.take(caller, line[0].address)
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
