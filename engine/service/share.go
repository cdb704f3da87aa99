// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/unwindd/unwindd/engine/internal/unpack"
)

// budget bounds an amount that all callers have at a time. No caller has more than what stays
// free: one alone has half of it at most, each of two has a third, and another always finds
// some. The jobs of a fleet have no other callers beside them.
type budget struct {
	things string  // in the plural, for messages
	files  *budget // of the descriptors of the files that the bytes are in; nil: they are not counted
	denied func(things string)

	mu    sync.Mutex
	most  int64
	used  int64
	has   map[string]int64 // by caller
	freed chan struct{}    // closed when some is given back; nil: no caller waits for that
}

func newBudget(most int64) *budget {
	return &budget{things: "bytes", most: most, has: map[string]int64{}, denied: func(string) {}}
}

// newBudgetOf makes a budget of things, whose name is in the plural. denied is told when a
// caller gets none.
func newBudgetOf(things string, most int64, denied func(things string)) *budget {
	b := newBudget(most)
	b.things, b.denied = things, denied
	return b
}

// shareError is the error of a caller who wants more than there is, or than its share.
type shareError struct {
	things string
	isOwn  bool // others could have more
}

func (e *shareError) Error() string {
	if e.isOwn {
		return "the caller has its share of all " + e.things + " already: no caller has more than what is left for others"
	}
	return "the requests that are under way have as many " + e.things + " as all of them may"
}

// Is reports whether a target is errNoRoom.
func (e *shareError) Is(target error) bool { return target == errNoRoom }

// share is the part of a budget that one caller uses.
type share struct {
	budget *budget
	caller string
}

// of returns the share of a caller.
func (b *budget) of(caller string) share { return share{b, caller} }

// errNoRoom is the error of a budget, or of a share, that is used up.
var errNoRoom = fmt.Errorf("there is no room for the request")

// try takes an amount, or returns why there is none, and when some is given back.
func (s share) try(n int64) (freed <-chan struct{}, err error) {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.most - b.used - n
	if n <= 0 || left >= 0 && (b.has[s.caller]+n <= left || s.caller == fleetCaller) {
		b.add(s.caller, n)
		return nil, nil
	}
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed, &shareError{b.things, left >= 0}
}

// add changes what a caller has.
func (b *budget) add(caller string, n int64) {
	b.used += n
	if b.has[caller] += n; b.has[caller] == 0 {
		delete(b.has, caller)
	}
}

// take takes an amount.
func (s share) take(n int64) error {
	_, err := s.try(n)
	if err != nil {
		s.budget.denied(s.budget.things)
	}
	return err
}

// await takes an amount as soon as it is there, within a time.
func (s share) await(ctx context.Context, within time.Duration, n int64) error {
	freed, err := s.try(n)
	if err == nil {
		return nil
	}
	late := time.NewTimer(within)
	defer late.Stop()
	for err != nil {
		select {
		case <-freed:
			freed, err = s.try(n)
		case <-late.C:
			s.budget.denied(s.budget.things)
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// give returns an amount to the budget.
func (s share) give(n int64) {
	if n == 0 {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(s.caller, -n)
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// atMost returns the smaller one of an amount and what a caller alone may have.
func (s share) atMost(n int64) int64 {
	if s.caller == fleetCaller {
		return n
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return min(n, s.budget.most/2)
}

// open takes the descriptor of a file that the bytes are in.
func (s share) open() error {
	if s.budget.files == nil {
		return nil
	}
	return s.budget.files.of(s.caller).take(1)
}

// file makes a file without a name in a folder.
func (s share) file(dir string) (*os.File, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	f, err := unpack.Nameless(dir)
	if err != nil {
		s.shut()
	}
	return f, err
}

// shut returns the descriptor of a file that is closed.
func (s share) shut() {
	if s.budget.files != nil {
		s.budget.files.of(s.caller).give(1)
	}
}

// closed closes a file, and returns its descriptor.
func (s share) closed(f *os.File) error {
	defer s.shut()
	return f.Close()
}

// resize changes how much all have. What they have already stays theirs.
func (b *budget) resize(most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = most
}

// inUse returns the amount that all have.
func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// amountOf returns the amount that a caller has.
func (b *budget) amountOf(caller string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.has[caller]
}
