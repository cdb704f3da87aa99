// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// queue gives places in turns, to addresses first, and to the callers of each: each waiting address
// gets one before any gets a second, however many callers it has, and so does each of its callers,
// however many requests one of them has. A spare place is for who has none, and the last one for an
// address that has none: one caller with long requests does not keep all others waiting, and neither
// do many callers of one address. Where too many wait, a request of the address that has the most
// gives way to one of an address that has fewer.
type queue struct {
	spare      int // places
	maxWaiting int // in all
	maxPerCall int // of one caller

	mu        sync.Mutex
	free      int // without the spare ones; below 0: spare ones are taken
	waiting   int
	has       map[string][]string // the addresses of the places of each caller
	from      map[string]int      // how many places each address has
	waits     map[string]int      // how many requests of each caller wait
	addresses []string            // of those who wait, the next one first
	turns     map[string][]string // the waiting callers of each address, the next one first
	lines     map[who][]*spot     // their requests, in the order in which they came
}

// who is a caller at an address.
type who struct{ address, caller string }

// spot is a waiting request.
type spot struct {
	ready chan struct{} // closed when it has a place, or none any more
	err   error         // why it has none
}

// errBusy is the error of a full queue: the caller should come again later.
var errBusy = errors.New("too many requests wait already")

func newQueue(places, maxWaiting, maxPerCaller int) *queue {
	return &queue{
		free: places, maxWaiting: maxWaiting, maxPerCall: maxPerCaller,
		has: map[string][]string{}, from: map[string]int{}, waits: map[string]int{}, turns: map[string][]string{}, lines: map[who][]*spot{},
	}
}

// canHave reports whether there is a place for a caller.
func (q *queue) canHave(w who) bool {
	switch spare := q.free + q.spare; {
	case q.free > 0:
		return true
	case len(q.has[w.caller]) > 0 || spare <= 0:
		return false
	default:
		return spare > 1 || q.from[w.address] == 0
	}
}

// take takes a place.
func (q *queue) take(w who) {
	q.free--
	q.has[w.caller] = append(q.has[w.caller], w.address)
	q.from[w.address]++
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
	w := who{caller, caller}
	if r := requestOf(ctx); r != nil {
		w.address = r.address
	}
	q.mu.Lock()
	if q.canHave(w) { // those who wait cannot have it
		q.take(w)
		q.mu.Unlock()
		return nil
	}
	if q.waits[caller] >= q.maxPerCall || q.waiting >= q.maxWaiting && !q.makeRoom(w.address) {
		q.mu.Unlock()
		return errBusy
	}
	s := &spot{ready: make(chan struct{})}
	q.line(w, s)
	q.mu.Unlock()
	select {
	case <-s.ready:
		return s.err
	case <-ctx.Done():
	}
	if !q.withdraw(w, s) && s.err == nil {
		q.leave(caller) // it was given a place meanwhile
	}
	return context.Cause(ctx)
}

// makeRoom refuses the last request of the caller who has the most of them, of the address that has
// the most. ok is false where the new one's address has as many, or would have more then.
func (q *queue) makeRoom(address string) (ok bool) {
	most, number := who{}, 0
	for _, a := range q.addresses {
		if n := q.waitingAt(a); n > number {
			most.address, number = a, n
		}
	}
	if number < q.waitingAt(address)+2 {
		return false
	}
	for _, c := range q.turns[most.address] {
		if len(q.lines[who{most.address, c}]) > len(q.lines[most]) {
			most.caller = c
		}
	}
	last := len(q.lines[most]) - 1
	s := q.lines[most][last]
	q.remove(most, last)
	s.err = errBusy
	close(s.ready)
	return true
}

// waitingAt returns how many requests of an address wait.
func (q *queue) waitingAt(address string) (n int) {
	for _, caller := range q.turns[address] {
		n += len(q.lines[who{address, caller}])
	}
	return n
}

// line has a request wait. Who had none has a turn after all others.
func (q *queue) line(w who, s *spot) {
	if len(q.turns[w.address]) == 0 {
		q.addresses = append(q.addresses, w.address)
	}
	if len(q.lines[w]) == 0 {
		q.turns[w.address] = append(q.turns[w.address], w.caller)
	}
	q.lines[w] = append(q.lines[w], s)
	q.waits[w.caller]++
	q.waiting++
}

// withdraw takes a request out of the queue. ok is false where it has a place.
func (q *queue) withdraw(w who, s *spot) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.lines[w], s)
	if i >= 0 {
		q.remove(w, i)
	}
	return i >= 0
}

// remove removes one of the requests that wait. Who has no other one has no turn.
func (q *queue) remove(w who, i int) {
	q.waiting--
	if q.waits[w.caller]--; q.waits[w.caller] == 0 {
		delete(q.waits, w.caller)
	}
	if q.lines[w] = slices.Delete(q.lines[w], i, i+1); len(q.lines[w]) > 0 {
		return
	}
	delete(q.lines, w)
	if q.turns[w.address] = without(q.turns[w.address], w.caller); len(q.turns[w.address]) > 0 {
		return
	}
	delete(q.turns, w.address)
	q.addresses = without(q.addresses, w.address)
}

func without(list []string, s string) []string {
	i := slices.Index(list, s)
	return slices.Delete(list, i, i+1)
}

// leave returns a caller's place, which the first of those gets who can have it.
func (q *queue) leave(caller string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveBack(caller)
	for _, address := range q.addresses {
		for _, next := range q.turns[address] {
			if w := (who{address, next}); q.canHave(w) {
				q.admit(w)
				return
			}
		}
	}
}

// admit gives a place to the first request of a caller. The next turn of the caller, and of the
// address, comes after all others'.
func (q *queue) admit(w who) {
	q.take(w)
	close(q.lines[w][0].ready)
	q.remove(w, 0)
	if len(q.lines[w]) > 0 {
		q.turns[w.address] = append(without(q.turns[w.address], w.caller), w.caller)
	}
	if len(q.turns[w.address]) > 0 {
		q.addresses = append(without(q.addresses, w.address), w.address)
	}
}

// length returns the number of waiting requests.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}
