// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sync"
	"time"
)

// leastBytes have to come, or go, within the idle time: less counts as nothing.
const leastBytes = 64 << 10

// allowance bounds the time for which a caller is waited for, all waits together, until it has
// sent or taken leastBytes. The zero value of a pointer has no bounds.
type allowance struct {
	idle    time.Duration
	expired func() // ends the wait

	mu     sync.Mutex
	timer  *time.Timer // nil until the first wait
	isShut bool
	left   time.Duration // for the rest of leastBytes
	began  time.Time     // when the current wait began; zero: there is none
	moved  int64
}

func newAllowance(idle time.Duration, expired func()) *allowance {
	return &allowance{idle: idle, left: idle, expired: expired}
}

// wait begins to wait, unless that has begun already.
func (p *allowance) wait() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() && !p.isShut {
		p.start()
	}
}

// shut ends all waits, those to come too.
func (p *allowance) shut() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	p.isShut = true
}

// start starts the clock.
func (p *allowance) start() {
	p.began = time.Now()
	if p.timer == nil {
		p.timer = time.AfterFunc(p.left, p.end)
		return
	}
	p.timer.Reset(p.left)
}

// end ends a wait that has taken too long.
func (p *allowance) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.began.IsZero() && time.Since(p.began) >= p.left {
		p.expired()
	}
}

// rest ends a wait: the caller has done its part.
func (p *allowance) rest() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
}

func (p *allowance) stop() {
	if p.began.IsZero() {
		return
	}
	p.left = max(p.left-time.Since(p.began), 0)
	p.began = time.Time{}
	p.timer.Stop()
}

// count counts bytes. leastBytes of them begin the time anew.
func (p *allowance) count(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved += int64(n); p.moved >= leastBytes {
		p.anew()
	}
}

// renew begins the time anew.
func (p *allowance) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.anew()
}

func (p *allowance) anew() {
	isWaiting := !p.began.IsZero()
	p.stop()
	if p.left, p.moved = p.idle, 0; isWaiting {
		p.start()
	}
}
