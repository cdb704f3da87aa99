// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"sync"
	"time"
)

// Together has several processes stopped at one moment: none is stopped before all are prepared for being
// copied, and none is copied before all are stopped, since copying takes longer and would delay the stops.
type Together struct {
	prepared, stopped gate
}

// The bounds of the waits for other processes. One that does not come is not waited for: reading the
// mappings of a process may hang, and a thread may be in an uninterruptible wait. Threads that stand
// still are held only as long as others come at a pace at which they do.
const (
	preparedPause = time.Second
	preparedBound = time.Minute
	stoppedPause  = 20 * time.Millisecond
	stoppedBound  = 500 * time.Millisecond
)

// NewTogether returns a Together of n processes, each of which needs a Member.
func NewTogether(n int) *Together {
	return &Together{newGate(n, preparedPause, preparedBound), newGate(n, stoppedPause, stoppedBound)}
}

// Member returns the part of one process: Options.Member of one Open, after which the caller leaves.
func (t *Together) Member() *Member { return &Member{together: t} }

// Member is one process among those that are stopped together. nil is a process by itself.
type Member struct {
	together *Together
	passed   [2]bool // the gates
}

// arrive passes the gates up to and with a number. A process that is looked at a second time, as it has
// executed another program, does not wait.
func (m *Member) arrive(last int, waits bool) {
	if m == nil {
		return
	}
	for i, g := range []*gate{&m.together.prepared, &m.together.stopped}[:last+1] {
		if !m.passed[i] {
			m.passed[i] = true
			g.arrive(waits && i == last)
		}
	}
}

func (m *Member) isPrepared() { m.arrive(0, true) }
func (m *Member) isStopped()  { m.arrive(1, true) }

// Leave has the others not wait for the process any more.
func (m *Member) Leave() { m.arrive(1, false) }

// gate opens when all have come, or when none has come for a pause.
type gate struct {
	pause, bound time.Duration

	mu     sync.Mutex
	left   int
	latest time.Time // when the latest one came
	isOpen bool
	open   chan struct{}
}

func newGate(n int, pause, bound time.Duration) gate {
	return gate{pause: pause, bound: bound, left: n, open: make(chan struct{})}
}

// arrive counts one that has come, and waits until the gate is open, if it is to.
func (g *gate) arrive(waits bool) {
	g.mu.Lock()
	g.left--
	g.latest = time.Now()
	if g.left == 0 {
		g.openNow()
	}
	g.mu.Unlock()
	if waits {
		g.wait()
	}
}

// openNow opens the gate, for those who come later, too. The caller has the lock.
func (g *gate) openNow() {
	if !g.isOpen {
		g.isOpen = true
		close(g.open)
	}
}

// wait waits until the gate is open. Who has waited for too long opens it.
func (g *gate) wait() {
	for end := time.Now().Add(g.bound); ; {
		g.mu.Lock()
		left := min(g.pause-time.Since(g.latest), time.Until(end))
		if left <= 0 {
			g.openNow()
		}
		g.mu.Unlock()
		select {
		case <-g.open:
			return
		case <-time.After(left):
		}
	}
}
